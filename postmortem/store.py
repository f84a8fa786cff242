"""The store's layout, and one DuckDB connection with a view per table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from postmortem import schema
from postmortem.errors import StoreError
from postmortem.ingest import LAST, MANIFEST, STORE_VERSION

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")


def run_name(text: str) -> str:
    """Turn a label or a folder name into a name that is safe as a folder of the store."""
    name = re.sub(r"[^A-Za-z0-9_.+-]+", "_", text).lstrip(".+-") or "run"
    return name[:100]


def quoted(paths: Iterable[Path]) -> str:
    """Paths as SQL texts with commas between them."""
    return ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths)


@dataclass(frozen=True)
class Store:
    """A folder of ingested runs: `<run>/<table>/<digest>.parquet` and `<run>/manifest.json`."""

    path: Path

    def runs(self) -> list[str]:
        """Names of the runs whose ingest was finished, in alphabetical order."""
        return sorted(path.parent.name for path in self.path.glob(f"*/{MANIFEST}"))

    def last(self) -> list[str]:
        """The runs of the last ingest, in the order they were given.

        Raises:
            StoreError: nothing was ingested yet.

        """
        try:
            names = json.loads((self.path / LAST).read_text())["runs"]
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(
                f"Nothing was ingested into {self.path} yet.", "Run `postmortem ingest RUN...`."
            ) from error
        return [str(name) for name in names]

    def folder(self, run: str) -> Path | None:
        """Where the files of a run lay when it was ingested; None where that was not written down."""
        self._check(run)
        stated = json.loads((self.path / run / MANIFEST).read_text()).get("folder")
        return Path(stated) if isinstance(stated, str) else None

    def connect(self, runs: Sequence[str]) -> duckdb.DuckDBPyConnection:
        """Open DuckDB in memory with one view per declared table, holding the rows of `runs` only.

        Raises:
            StoreError: a run is not in the store, or another version of postmortem wrote it.

        """
        for run in runs:
            self._check(run)
        connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
        # DuckDB draws a bar over stdout where __main__ has no file, as under `python -c`.
        connection.execute("SET enable_progress_bar = false")
        for name, table in schema.tables().items():
            parts = [part for run in runs for part in sorted((self.path / run / name).glob("*.parquet"))]
            if parts:
                columns = ", ".join(f'"{column.name}"' for column in table.columns)
                connection.execute(f'CREATE VIEW "{name}" AS SELECT {columns} FROM read_parquet([{quoted(parts)}])')
            else:
                connection.execute(table.ddl)
        return connection

    def _check(self, run: str) -> None:
        if not _NAME.fullmatch(run) or run not in self.runs():
            known = ", ".join(self.runs()) or "none"
            raise StoreError(f"There is no run {run} in {self.path}.", f"Known runs: {known}.")
        manifest = json.loads((self.path / run / MANIFEST).read_text())
        versions = {name: table.version for name, table in schema.tables().items()}
        if (manifest.get("store"), manifest.get("tables")) != (STORE_VERSION, versions):
            raise StoreError(
                f"The run {run} was written by another version of postmortem.",
                "Ingest it again into a new --store.",
            )
