"""Evidence in memory: batches of parsers -> a query session, without files and store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from postmortem import schema
from postmortem.ingest import ingest
from postmortem.parsers import flight_recorder, lines
from postmortem.query import Session
from postmortem.records import Batch, Source
from postmortem.sqlfunctions import register
from postmortem.store import Store

ROOT = Path(__file__).resolve().parent.parent
"""Folder of the checkout."""


class MemorySession(Session):
    """A session over batches instead of a store."""

    def __init__(self, batches: Iterable[tuple[str, Batch]]) -> None:
        self.runs = ["run"]
        self.connection = duckdb.connect(config={"threads": 1})  # small tables: more threads only cost
        self.connection.execute("SET enable_progress_bar = false")
        register(self.connection)
        self._made = set(schema.tables())
        self._states: dict[str, str] = {}  # nothing is kept of what was never written
        parts: dict[str, list[pa.Table]] = {}
        for source, batch in batches:
            table = schema.tables()[batch.table]
            parts.setdefault(batch.table, []).append(table.conform(batch, "run", source))
        self._kept = {name: pa.concat_tables(tables).unify_dictionaries() for name, tables in parts.items()}
        for name, table in schema.tables().items():
            if name in self._kept:
                self.connection.register(name, self._kept[name])
            else:
                self.connection.execute(table.ddl)

    def rows_of_view(self, name: str) -> list[dict[str, object]]:
        """Every row of one view."""
        self.need([name])
        rows: list[dict[str, object]] = self.connection.table(name).to_arrow_table().to_pylist()
        return rows


def dumps(files: Iterable[Path]) -> list[tuple[str, Batch]]:
    """Every batch of some Flight Recorder dumps."""
    found = []
    for file in files:
        source = Source("run", file.name, file, "flight_recorder", file.stat().st_size, "0")
        found += [(file.name, item) for item in flight_recorder.parse(source) if isinstance(item, Batch)]
    return found


def logs(files: Iterable[Path]) -> list[tuple[str, Batch]]:
    """Every batch of some text logs."""
    found = []
    for file in files:
        source = Source("run", file.name, file, "lines", file.stat().st_size, "0")
        found += [(file.name, item) for item in lines.parse(source) if isinstance(item, Batch)]
    return found


def stored(home: Path, runs: Sequence[Mapping[str, str]]) -> Store:
    """Write runs (path in the folder -> text) and ingest them as run0, run1, ..."""
    folders = {f"run{number}": home / f"run{number}" for number in range(len(runs))}
    for folder, files in zip(folders.values(), runs, strict=True):
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    ingest(folders, home / "store", jobs=1)
    return Store(home / "store")
