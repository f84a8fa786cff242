"""Where schemas/, queries/ and sample_traces/ are: inside an installed wheel, or beside a checkout."""

from __future__ import annotations

from pathlib import Path

from postmortem.errors import PostmortemError

_PACKAGE = Path(__file__).resolve().parent
# An editable install does not see hatchling's force-include, so the checkout is the fallback.
_ROOTS = (_PACKAGE / "_data", _PACKAGE.parent)


def folder(name: str) -> Path:
    """Return the folder `name` ("schemas", "queries" or "sample_traces").

    Raises:
        PostmortemError: the installation is incomplete.

    """
    for root in _ROOTS:
        if (root / name).is_dir():
            return root / name
    raise PostmortemError(f"The folder {name}/ is missing from this installation.", "Reinstall train-postmortem.")


def declarations(name: str, pattern: str) -> list[Path]:
    """Every declaration below folder `name` that matches `pattern`, in a stable order."""
    return sorted(folder(name).rglob(pattern))
