"""Reading speed and memory of logs, beside `grep -E` and `lnav` on the same file.

    python benchmarks/bench_logs.py [LOG ...] [--megabytes 200]

Each LOG (default: the log of a sample run) is repeated to the size asked for, with the numbers of its steps moved on.
Ours is a whole ingest of the file into Parquet, lnav's is its index of the file and one count, grep's is one search for
words of trouble and steps, each in a process of its own. MB/s are of one core (CPU seconds, which a busy machine
disturbs less); the peak is the VmHWM that the working process reads of itself.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "sample_traces/nan/before/train.log"
STEP = re.compile(r"((?:step|steps|iteration|global_step)[ =:]+)(\d+)")

OURS = """
import sys, tempfile, time, pyarrow
from pathlib import Path
from postmortem.ingest import ingest_source
from postmortem.parsers import parsers
from postmortem.records import Source
parsers()
pyarrow.set_cpu_count(1)
file = Path(sys.argv[1])
with tempfile.TemporaryDirectory() as store:
    cpu = time.process_time()
    found = ingest_source(Path(store), Source("run", file.name, file, "lines", file.stat().st_size, "digest"))
    cpu = time.process_time() - cpu
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(cpu, found.rows, int(peak) * 1024 // 10**6)
"""
PEERS = {
    "grep -E": ("grep", "-cEi", r"error|fatal|exception|nan|inf|overflow|killed|timeout|step[ =][0-9]+"),
    "lnav": ("lnav", "-n", "-c", ";SELECT count(*) FROM all_logs"),
}


def repeat(log: Path, megabytes: int, target: Path) -> None:
    """Write `log` until the file has the size, each time with later steps."""
    text, written, round_ = log.read_text(errors="replace"), 0, 0
    with target.open("w", encoding="utf-8") as file:
        while written < megabytes * 10**6:
            written += file.write(STEP.sub(lambda m, k=round_: m[1] + str(int(m[2]) + 100_000 * k), text))
            round_ += 1


def ours(file: Path) -> tuple[float, int, int]:
    """(CPU seconds, rows, peak memory in MB) of one ingest."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", OURS, str(file)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    cpu, rows, peak = done.stdout.split()
    return float(cpu), int(rows), int(peak)


def peer(*command: str) -> float | None:
    """CPU seconds of a command, or None where it is not installed."""
    if shutil.which(command[0]) is None:
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="*", default=[SAMPLE])
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    for log in options.log:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.log"
            repeat(log, options.megabytes, file)
            size = file.stat().st_size / 1e6
            cpu, rows, peak = ours(file)
            print(f"{log.name}, {size:.0f} MB")
            print(f"  postmortem {size / cpu:8.1f} MB/s, peak {peak} MB, {rows} rows")
            for name, words in PEERS.items():
                used = peer(*words, str(file))
                told = f"{size / used:8.1f} MB/s, {cpu / used:.1f} times ours" if used else " not installed: skipped"
                print(f"  {name:10} {told}", flush=True)


if __name__ == "__main__":
    main()
