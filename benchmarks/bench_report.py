"""How long the report of a large run takes, how much memory, and how large it gets.

python benchmarks/bench_report.py [--ranks 1024] [--steps 100000] [--store DIR]: makes a store of two runs in which every rank prints its
step time and loss at every step (the store is kept and used again if --store names one), then builds the report from it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem import report, schema  # noqa: E402
from postmortem.ingest import LAST, MANIFEST, STORE_VERSION  # noqa: E402
from postmortem.query import Session, keep  # noqa: E402
from postmortem.report.data import gather  # noqa: E402
from postmortem.store import Store  # noqa: E402


def make(store: Path, run: str, ranks: int, steps: int) -> None:
    """One run, a log per rank: step times around 0.3 s with a spike every 1000 steps, a loss that falls, memory."""
    connection = duckdb.connect()
    for rank in range(ranks):
        base = f"SELECT 'rank{rank}.log' AS source, s.step AS line, {rank} AS rank, s.step AS step"
        _write(
            connection, store / run, "metric", rank,
            f"""SELECT source, line, time, rank, step, name, CAST(text AS DOUBLE) AS value, text FROM (
                {base}, n.name AS name, 1700000000000000000 + s.step * 300000000 AS time, printf('%.4f', CASE n.name
                WHEN 'step_time' THEN 0.3 + 0.02 * sin(s.step * 0.1 + {rank}) + CASE WHEN s.step % 1000 = 0 THEN 1 ELSE 0 END
                ELSE 8 * exp(-s.step / 20000.0) + 2 + 0.1 * sin(s.step) + 0.05 * sin(s.step * 0.7 + {13 * rank}) END) AS text
                FROM range(1, {steps} + 1) s(step), (VALUES ('step_time'), ('loss')) n(name)) ORDER BY step""",
        )  # fmt: skip
        _write(
            connection, store / run, "memory", rank,
            f"""{base}, 'host_rss' AS kind,
                4000000000 + {1000 * rank} + {1000 if rank == 517 % ranks else 0} * s.step + hash(s.step) % 100000 AS bytes
                FROM range(100, {steps} + 1, 100) s(step)""",
        )  # fmt: skip
        _write(
            connection, store / run, "source", rank,
            f"""SELECT 'rank{rank}.log' AS source, 'lines' AS format, 'read' AS status, {rank} AS rank,
                '{rank:032x}' AS digest, {2 * steps} AS rows, 0 AS bytes, 0 AS issues, 0 AS dropped""",
        )  # fmt: skip
    versions = {name: table.version for name, table in schema.tables().items()}
    (store / run / MANIFEST).write_text(
        json.dumps({"run": run, "store": STORE_VERSION, "tables": versions, "sources": []})
    )


def _write(connection: duckdb.DuckDBPyConnection, run: Path, table: str, part: int, sql: str) -> None:
    """Rows of `sql` as one part of a table, its other columns null."""
    (run / table).mkdir(parents=True, exist_ok=True)
    given = {c[0] for c in connection.execute(f"DESCRIBE {sql}").fetchall()}
    columns = ", ".join(
        f"'{run.name}' AS run_id" if c.name == "run_id"
        else f'"{c.name}"::{schema.TYPES[c.type][1]} AS "{c.name}"' if c.name in given
        else f'NULL::{schema.TYPES[c.type][1]} AS "{c.name}"'
        for c in schema.tables()[table].columns
    )  # fmt: skip
    connection.execute(
        f"COPY (SELECT {columns} FROM ({sql})) TO '{run / table / f'{part:032x}.parquet'}' (FORMAT parquet, COMPRESSION zstd)"
    )


def _keep(store: Path) -> None:
    """Keep the views that a large run keeps, as the end of ingest does."""
    began = time.perf_counter()
    for run in ("before", "after"):
        keep(Store(store), run)
    print(
        f"views kept in {time.perf_counter() - began:.1f} s ({time.process_time():.1f} s of processor), peak {_peak():.0f} MiB"
    )


def _peak() -> float:
    """Highest resident memory of this process so far, in MiB."""
    kib = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(kib.split()[1]) / 1024


def main() -> None:
    """Make the store if need be, build the report twice (interactive, static), print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    store = given.store or Path(tempfile.mkdtemp())
    for run in ("before", "after"):
        if not (store / run / MANIFEST).exists():
            make(store, run, given.ranks, given.steps)
    (store / LAST).write_text(json.dumps({"runs": ["before", "after"]}))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:  # what ingest does; its peak is its own
        pool.submit(_keep, store).result()
    began, used = time.perf_counter(), time.process_time()
    data = gather({run: Session(Store(store), [run]) for run in ("before", "after")})
    asked = time.perf_counter()
    page = report.html({"schema": "postmortem.comparison/1", "verdict": "no change"}, data)
    done, used = time.perf_counter(), time.process_time() - used
    static = report.html({"schema": "postmortem.comparison/1", "verdict": "no change"}, data, static=True)
    print(
        f"{given.ranks} ranks, {given.steps} steps, two runs: queries {asked - began:.1f} s, page {done - asked:.1f} s, "
        f"{used:.1f} s of processor, peak {_peak():.0f} MiB, {len(page.encode()) / 1e6:.2f} MB, static {len(static.encode()) / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main()
