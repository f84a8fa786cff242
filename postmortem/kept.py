"""What is kept of a large run beside its tables: views that every command would compute anew from all rows."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from postmortem import resources
from postmortem.ingest import MANIFEST
from postmortem.store import Store

WORTH_ROWS = 2_000_000
"""Rows of metrics from which on computing the views takes longer than a second."""
_FOLDER = "kept"


def worth(store: Store, run: str) -> bool:
    """Whether the run has so many metrics that its views are kept."""
    parts = (store.path / run / "metric").glob("*.parquet")
    rows: int = sum(pq.read_metadata(part).num_rows for part in parts)
    return rows >= WORTH_ROWS


def state(store: Store, run: str) -> str:
    """What the kept views rest on: the manifest, every part that lies there, the views' SQL, and DuckDB's version."""
    home = store.path / run
    parts = sorted(f"{part.parent.name}/{part.name} {part.stat().st_size}" for part in home.glob("*/*.parquet"))
    told = "\n".join([(home / MANIFEST).read_text(), *parts, _views(), duckdb.__version__])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def states(store: Store, runs: Iterable[str]) -> dict[str, str]:
    """Run -> its present state, of those runs that keep anything."""
    return {run: state(store, run) for run in runs if (store.path / run / _FOLDER).is_dir()}


def files(store: Store, now: Mapping[str, str], view: str) -> dict[str, Path]:
    """Run -> file that holds the rows of `view`, of those runs that keep it in the state that is given."""
    paths = {run: store.path / run / _FOLDER / mark / f"{view}.parquet" for run, mark in now.items()}
    return {run: path for run, path in paths.items() if path.exists()}


def clear(store: Store, run: str, now: str) -> None:
    """Remove what is kept of other states of the run, and what a killed ingest left half written."""
    for old in (store.path / run / _FOLDER).glob("*"):
        if old.name != now:
            shutil.rmtree(old)
    for half in (store.path / run / _FOLDER / now).glob("*.tmp"):
        half.unlink()


def write(store: Store, run: str, now: str, view: str, rows: pa.Table) -> None:
    """Keep the rows of `view`."""
    path = store.path / run / _FOLDER / now / f"{view}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    pq.write_table(rows, temporary, compression="zstd")
    temporary.replace(path)


@cache
def _views() -> str:
    return "".join(
        path.read_text() for path in resources.declarations("queries", "*.sql") if path.parent.name == "views"
    )
