"""Fixtures that several test files share."""

from __future__ import annotations

from pathlib import Path

import pytest
from evidence import ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real inputs beside the checkout; tests that need it skip where it is absent."""
    folder = ROOT.parent / "shared"
    if not (folder / "data" / "TRUTH.toml").exists():
        pytest.skip("../shared is not here")
    return folder
