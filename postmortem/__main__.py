"""`python -m postmortem`."""

from postmortem.cli import main

if __name__ == "__main__":
    main()
