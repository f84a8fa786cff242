"""Speed of reading logs: MB/s per core and peak memory, beside `grep -E` and `lnav` on the same file.

    python benchmarks/bench_logs.py [LOG] [--size MB]

The file is LOG (one of the samples, if none is given) repeated until it has the size, with the numbers of its steps
moved on; gzip files are not supported.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")

from postmortem import schema
from postmortem.parsers import lines
from postmortem.records import Batch, Source

SAMPLE = Path(__file__).resolve().parent.parent / "sample_traces/nan/before/train.log"
STEP = re.compile(r"((?:step|steps|iteration|global_step)[ =:]+)(\d+)")


def repeated(log: Path, target: Path, size: int) -> None:
    text, written, round_ = log.read_text(errors="replace"), 0, 0
    with target.open("w", encoding="utf-8") as file:
        while written < size:
            moved = STEP.sub(lambda m, k=round_: m[1] + str(int(m[2]) + 100_000 * k), text)
            written += file.write(moved)
            round_ += 1


def ours(file: Path) -> tuple[float, float, int]:
    """(wall seconds, processor seconds, rows) of parsing and checking against the tables, without writing Parquet."""
    source = Source("run", file.name, file, "lines", file.stat().st_size, "0")
    wall, cpu, rows = time.perf_counter(), time.process_time(), 0
    for item in lines.parse(source):
        if isinstance(item, Batch):
            rows += schema.tables()[item.table].conform(item, "run", file.name).num_rows
    return time.perf_counter() - wall, time.process_time() - cpu, rows


def command(*words: str) -> float | None:
    if shutil.which(words[0]) is None:
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path, nargs="?", default=SAMPLE)
    parser.add_argument("--size", type=int, default=200, help="MB of the file that is read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.log"
        repeated(options.log, file, options.size * 10**6)
        size = file.stat().st_size / 1e6
        wall, cpu, rows = ours(file)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"postmortem {size / cpu:8.1f} MB/s per core ({size / wall:.1f} MB/s wall), {rows} rows, peak {peak:.0f} MiB"
        )
        pattern = r"error|fatal|exception|nan|inf|overflow|killed|timeout|step[ =][0-9]+"
        for name, words in {
            "grep -E": ("grep", "-cEi", pattern, str(file)),
            "lnav": ("lnav", "-n", "-c", ";SELECT count(*) FROM all_logs", str(file)),
        }.items():
            used = command(*words)
            print(f"{name:10} {'not installed' if used is None else f'{size / used:8.1f} MB/s per core'}")


if __name__ == "__main__":
    sys.exit(main())
