"""Reading speed and memory of profiler traces, beside HolisticTraceAnalysis on the same file.

    python benchmarks/bench_traces.py [--trace FILE] [--megabytes 250 2000] [--peer /path/to/python/with/HTA]

FILE (default: the trace_diff/control trace of ../shared) is repeated to the size asked for. Ours is a whole ingest of
the file into Parquet, HTA's is its own loader into pandas (`hta.common.trace.parse_trace_file`), each in a process of its
own. MB are of JSON, times are of one core (CPU seconds, which a busy machine disturbs less) and of the wall clock; the
peak is the VmHWM that the working process reads of itself. Two processes on two files are compared with one process on
the same two files, by the wall clock.
"""

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT.parent / "shared/data/traces/hta/trace_diff/control/control.json.gz"

CLOCK = """
import time
class Clock:
    def __enter__(self): self.start, self.cpu = time.perf_counter(), time.process_time()
    def __exit__(self, *_):
        peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(self.start, time.perf_counter(), time.process_time() - self.cpu, peak)
"""
OURS = (
    CLOCK
    + """
import sys, tempfile, pyarrow
from pathlib import Path
from postmortem.ingest import ingest_source
from postmortem.parsers import parsers
from postmortem.records import Source
parsers()
pyarrow.set_cpu_count(1)
with tempfile.TemporaryDirectory() as store, Clock():
    for number, file in enumerate(map(Path, sys.argv[1:])):
        ingest_source(Path(store), Source("run", file.name, file, "torch_trace", file.stat().st_size, f"digest{number}"))
"""
)
PEER = (
    CLOCK
    + """
import logging, sys, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.common.trace import parse_trace_file
with Clock():
    parse_trace_file(sys.argv[1])
"""
)


def repeat(sample: Path, megabytes: int, target: Path) -> None:
    """Write `sample` with its events repeated until the file has about the size asked for."""
    text = sample.read_bytes()
    text = gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text
    start = re.search(rb'"traceEvents"\s*:\s*\[', text).end()
    end = start + text[start:].rindex(b"\n  ]")
    times = max(1, round(megabytes * 1e6 / (end - start)))
    with target.open("wb") as file:
        file.write(text[:start])
        for i in range(times):
            file.write((b"," if i else b"") + text[start:end])
        file.write(text[end:])


class Run(NamedTuple):
    """One process at work without its start-up: moments on the machine's clock and CPU time in s, peak memory in MB."""

    start: float
    end: float
    cpu: float
    peak: float


def measure(python: str, program: str, *files: Path) -> Run:
    """Run a program on files."""
    done = subprocess.run(
        [python, "-c", program, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    start, end, cpu, peak = map(float, done.stdout.split()[-4:])
    return Run(start, end, cpu, peak / 1024)


def best(python: str, program: str, file: Path, rounds: int) -> Run:
    """Return the run with the least CPU time of a few."""
    return min((measure(python, program, file) for _ in range(rounds)), key=lambda run: run.cpu)


def two_at_once(file: Path, other: Path, rounds: int) -> float:
    """How much sooner two processes are done with two files than one process is."""
    one = min(run.end - run.start for run in (measure(sys.executable, OURS, file, other) for _ in range(rounds)))
    times = []
    for _ in range(rounds):
        with ThreadPoolExecutor(2) as pool:
            pair = list(pool.map(lambda each: measure(sys.executable, OURS, each), (file, other)))
        times.append(max(run.end for run in pair) - min(run.start for run in pair))
    return one / min(times)


def compare(sample: Path, megabytes: int, peer: str | None, rounds: int) -> None:
    """Print every figure for one size of file, one to a line."""
    if os.getloadavg()[0] > 1:
        print(f"Others keep this machine busy (load {os.getloadavg()[0]:.1f}): figures of the wall clock say little.")
    with tempfile.TemporaryDirectory() as folder:
        file, other = Path(folder) / "trace.json", Path(folder) / "other.json"
        repeat(sample, megabytes, file)
        other.hardlink_to(file)
        size = file.stat().st_size / 1e6
        runs = {"postmortem": best(sys.executable, OURS, file, rounds)}
        if peer:
            runs["hta"] = best(peer, PEER, file, rounds)
        for name, run in runs.items():
            wall = run.end - run.start
            print(
                f"{size:.0f} MB, {name}: {size / run.cpu:.1f} MB/s of CPU, {size / wall:.1f} MB/s of wall clock, ",
                end="",
            )
            print(f"peak {run.peak:.0f} MB", flush=True)
        print(f"{size:.0f} MB, peak under 400 MB: {'yes' if runs['postmortem'].peak < 400 else 'NO'}")
        if peer:
            ratio = runs["hta"].cpu / runs["postmortem"].cpu
            print(f"{size:.0f} MB, times as fast as hta (CPU; at least 6 asked): {ratio:.2f}")
        else:
            print(f"{size:.0f} MB, times as fast as hta: not measured, no --peer given")
        gain = two_at_once(file, other, rounds)
        print(
            f"{size:.0f} MB, two processes on two files over one process on them (at least 1.7 asked): {gain:.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, default=SAMPLE)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[250])
    parser.add_argument("--peer", help="a Python that has HolisticTraceAnalysis and pandas<3")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if not options.trace.exists():
        print(f"There is no {options.trace}; give one with --trace.")
        return
    for megabytes in options.megabytes:
        compare(options.trace, megabytes, options.peer, options.rounds)


if __name__ == "__main__":
    main()
