"""Sources -> engine -> Parquet parts -> manifest. A killed ingest leaves no half table and repeats nothing twice."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from postmortem import console, engine, schema
from postmortem.discover import discover
from postmortem.errors import BusyError, DeclarationError, InputError
from postmortem.parsers import parsers
from postmortem.records import Batch, Issue, Source

MANIFEST = "manifest.json"
LAST = "last.json"
STORE_VERSION = 1
_SMALL = 4 << 20  # B; below this, starting worker processes takes longer than the work
_GROUP_ROWS = 1 << 17
_GROUP_BYTES = 16 << 20  # a row may be megabytes long
_MAX_ISSUES = 1000  # rows per file; what goes beyond is counted in one more row

# What discover found out about files that no parser may open.
_NOT_READ = {
    "unknown": Issue("unknown", "No parser knows this file, so nothing was read from it."),
    "refused": Issue("hostile", "Not a regular file inside the run folder, so it was not opened."),
    "unreadable": Issue("unreadable", "The file cannot be opened."),
    "empty": Issue("empty", "The file is empty."),
}


@dataclass
class Outcome:
    """What became of one source."""

    source: Source
    status: str
    rows: int = 0
    issues: int = 0
    dropped: int = 0


def ingest(
    runs: Mapping[str, Path],
    store: Path,
    *,
    url: str = "local://",
    jobs: int | None = None,
    options: Mapping[str, str] | None = None,
) -> dict[str, list[Outcome]]:
    """Read every run folder into the store and return what became of each file.

    Args:
        runs: name in the store -> folder.
        store: the store's folder; it is made if needed.
        url: engine, see `engine.executor`.
        jobs: processes of the local engine.
        options: what parsers are asked, for example {"checkpoints": "deep"}.

    Raises:
        InputError: a folder is missing, empty, or holds nothing that any parser knows.
        StoreError: another ingest holds one of the runs.

    """
    found = {name: discover(name, folder, options) for name, folder in runs.items()}
    for name, sources in found.items():
        if all(source.format in _NOT_READ for source in sources):
            raise InputError(
                f"Nothing in {runs[name]} is known to postmortem ({len(sources)} files).",
                "`postmortem formats` lists what can be read.",
            )
    outcomes = {name: _ingest_run(store / name, runs[name], sources, url, jobs) for name, sources in found.items()}
    with (store / ".lock").open("a") as file:  # ingests of other runs write it too
        fcntl.flock(file, fcntl.LOCK_EX)
        _write_json(store / LAST, {"runs": list(runs)})
    return outcomes


def _ingest_run(home: Path, folder: Path, sources: list[Source], url: str, jobs: int | None) -> list[Outcome]:
    home.mkdir(parents=True, exist_ok=True)
    with lock(home):
        done = {path.stem for path in (home / "source").glob("*.parquet")}
        todo = [source for source in sources if source.digest not in done]
        progress = console.Progress(f"ingest {home.name}", sum(source.bytes for source in todo))
        for outcome in _spread(home, todo, url, jobs):
            progress.advance(outcome.source.bytes)
        progress.close()
        _drop_stale(home, {source.digest for source in sources})
        outcomes = [_outcome(home, source) for source in sources]
        _write_json(home / MANIFEST, _manifest(home.name, folder, outcomes))
    return outcomes


@contextmanager
def lock(home: Path) -> Iterator[None]:
    """Hold the run for this process; the kernel lets go of it when the process dies, however it dies."""
    with (home / ".lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            owner = file.read().strip() or "unknown"
            raise BusyError(
                f"The run {home.name} is being ingested by process {owner}.",
                "Wait for it, or use another --store.",
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
        file.truncate(0)


def _spread(home: Path, sources: Sequence[Source], url: str, jobs: int | None) -> Iterator[Outcome]:
    """Give every source to the engine, the largest first so that none is left over at the end."""
    if url == "local://" and jobs is None and sum(source.bytes for source in sources) < _SMALL:
        jobs = 1
    order = sorted(sources, key=lambda source: -source.bytes)
    waiting = {source.path: source for source in order}
    try:
        with engine.executor(url, jobs) as pool:
            for outcome in _gather(pool, home, order):
                waiting.pop(outcome.source.path)
                yield outcome
    except BrokenProcessPool:
        # One file killed its worker (out of memory, a crash in a library): find it by giving each its own.
        for source in waiting.values():
            yield _alone(home, source)


def _gather(pool: Executor, home: Path, sources: Sequence[Source]) -> Iterator[Outcome]:
    for future in as_completed([pool.submit(ingest_source, home, source) for source in sources]):
        yield future.result()


def _alone(home: Path, source: Source) -> Outcome:
    try:
        with engine.executor("local://", 2) as pool:
            return pool.submit(ingest_source, home, source).result()
    except BrokenProcessPool:
        issue = Issue("error", "Reading this file killed the process that read it, so nothing of it was kept.")
        return _finish(Parts(home, source), "failed", [issue])


@dataclass
class Parts:
    """The Parquet parts of one source: written under a temporary name, renamed when whole."""

    home: Path
    source: Source
    rows: int = 0
    _open: dict[str, tuple[Path, pq.ParquetWriter]] = field(default_factory=dict)
    _held: dict[str, list[pa.Table]] = field(default_factory=dict)

    def write(self, batch: Batch) -> None:
        """Add rows; small batches are held back until they make a row group."""
        declared = schema.tables().get(batch.table)
        if declared is None:
            raise DeclarationError(f"There is no table {batch.table}.")
        table = declared.conform(batch, self.source.run_id, self.source.path)
        self.rows += table.num_rows
        held = self._held.setdefault(batch.table, [])
        held.append(table)
        if sum(p.num_rows for p in held) >= _GROUP_ROWS or sum(p.nbytes for p in held) >= _GROUP_BYTES:
            self._flush(batch.table)

    def _flush(self, name: str) -> None:
        held = self._held.pop(name, [])
        if not sum(table.num_rows for table in held):
            return
        if name not in self._open:
            path = self.home / name / f".{self.source.digest}.{os.getpid()}.tmp"
            path.parent.mkdir(parents=True, exist_ok=True)
            # Dictionaries pay only where texts repeat; trying them on long texts costs a third of the time.
            few = [field.name for field in held[0].schema if pa.types.is_dictionary(field.type)]
            writer = pq.ParquetWriter(path, held[0].schema, compression="zstd", compression_level=1, use_dictionary=few)
            self._open[name] = (path, writer)
        table = held[0] if len(held) == 1 else pa.concat_tables(held).unify_dictionaries()
        self._open[name][1].write_table(table, row_group_size=_GROUP_ROWS)

    def close(self) -> None:
        """Make every part visible under its final name."""
        for name in list(self._held):
            self._flush(name)
        for path, writer in self._open.values():
            writer.close()
            path.replace(path.with_name(f"{self.source.digest}.parquet"))
        self._open.clear()


def ingest_source(home: Path, source: Source) -> Outcome:
    """Read one source into its parts. Runs in a worker; any failure of a parser becomes an issue row."""
    parts = Parts(home, source)
    if source.format in _NOT_READ:
        status = source.format if source.format in {"unknown", "empty"} else "failed"
        return _finish(parts, status, [_NOT_READ[source.format]])
    issues: list[Issue] = []
    try:
        for item in parsers()[source.format].parse(source):
            if isinstance(item, Batch):
                parts.write(item)
            else:
                issues.append(item)
    except OSError as error:
        issues.append(Issue("unreadable", f"Reading stopped: {error.strerror or error}."))
    except Exception as error:  # noqa: BLE001 (the one place where a parser's bug is turned into a row)
        issues.append(Issue("error", f"The parser {source.format} stopped: {type(error).__name__}: {error}."))
    partial = any(issue.dropped or issue.kind in {"unreadable", "error", "truncated"} for issue in issues)
    status = "read" if not partial else ("partial" if parts.rows else "failed")
    return _finish(parts, status, issues)


def _finish(parts: Parts, status: str, issues: list[Issue]) -> Outcome:
    rows, dropped = parts.rows, sum(issue.dropped for issue in issues)
    kept = issues[:_MAX_ISSUES]
    if len(issues) > len(kept):
        kept.append(Issue("limit", f"{len(issues) - len(kept)} more issues of this file are not listed."))
    if kept:
        names = ("kind", "message", "line", "offset", "dropped")
        parts.write(Batch("issue", {name: [getattr(issue, name) for issue in kept] for name in names}))
    parts.close()
    outcome = Outcome(parts.source, status, rows, len(issues), dropped)
    _write_receipt(parts, outcome)
    return outcome


def _write_receipt(parts: Parts, outcome: Outcome) -> None:
    source = outcome.source
    row = {
        "format": source.format, "status": outcome.status, "bytes": source.bytes, "digest": source.digest,
        "rank": source.rank, "local_rank": source.local_rank, "host": source.host,
        "rows": outcome.rows, "issues": outcome.issues, "dropped": outcome.dropped,
    }  # fmt: skip
    parts.write(Batch("source", {name: [value] for name, value in row.items()}))
    parts.close()


def _outcome(home: Path, source: Source) -> Outcome:
    row = pq.read_table(home / "source" / f"{source.digest}.parquet").to_pylist()[0]
    return Outcome(source, row["status"], row["rows"], row["issues"], row["dropped"])


def _drop_stale(home: Path, wanted: set[str]) -> None:
    """Remove what an earlier state of the folder, or a killed ingest, left behind."""
    for path in [*home.glob("*/*.parquet"), *home.glob("*/.*.tmp")]:
        if path.suffix == ".tmp" or path.stem not in wanted:
            path.unlink()


def _manifest(run_id: str, folder: Path, outcomes: list[Outcome]) -> dict[str, object]:
    return {
        "store": STORE_VERSION,
        "run": run_id,
        "folder": str(folder.resolve()),
        "tables": {name: table.version for name, table in schema.tables().items()},
        "sources": [
            {"path": o.source.path, "digest": o.source.digest, "format": o.source.format, "status": o.status}
            for o in outcomes
        ],
    }


def _write_json(path: Path, value: object) -> None:
    """Write a file whole; its writers hold a lock, so that what a killed one left half written is written over."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    temporary.replace(path)
