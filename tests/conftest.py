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


# Files of a few long tests. Two workers take one file after another: what is long comes first, or one waits at the end.
_LONG = (
    "test_truth", "test_samples", "test_compare", "test_cli", "test_torch_trace", "test_report_store", "test_trace_peers",
    "test_trace_views", "test_report_browser", "test_ingest", "test_checkpoints", "test_crashes", "test_slow_runs",
    "test_not_finite", "test_log_forms", "test_report", "test_kept",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, in the order of _LONG; the others as they were."""
    place = {name: number for number, name in enumerate(_LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(_LONG)))
