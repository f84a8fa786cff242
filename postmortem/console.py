"""The only writer: the result goes to standard output, progress and messages to standard error."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


def result(text: str) -> None:
    """Write the thing that was asked for."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def message(text: str) -> None:
    """Tell the user something that is not the result."""
    sys.stderr.write(text + "\n")


@dataclass
class Progress:
    """A bar on a terminal, a plain line at every tenth elsewhere.

    Args:
        title: what is being done.
        total: how much there is to do, in any unit.

    """

    title: str
    total: int
    done: int = 0
    _tenths: int = field(default=0, init=False)

    def advance(self, amount: int) -> None:
        """Count `amount` more of `total` as done."""
        self.done += amount
        share = min(1.0, self.done / self.total) if self.total else 1.0
        if sys.stderr.isatty():
            bar = "#" * int(share * 30)
            sys.stderr.write(f"\r{self.title} [{bar:<30}] {share:4.0%}")
        elif int(share * 10) > self._tenths:
            self._tenths = int(share * 10)
            sys.stderr.write(f"{self.title}: {share:.0%}\n")

    def close(self) -> None:
        """Leave the bar behind on its own line."""
        if sys.stderr.isatty():
            sys.stderr.write("\n")
