"""Reading speed and memory of profiler traces, beside HolisticTraceAnalysis on the same file.

    python benchmarks/bench_traces.py [--trace FILE] [--megabytes 250] [--peer /path/to/python/with/HTA]

FILE (default: the trace_diff/control trace of ../shared) is repeated to the size asked for. Ours is a whole ingest of
the file into Parquet, HTA's is its own loader into pandas (`hta.common.trace.parse_trace_file`), each in a process of its
own. MB are of JSON, times are of one core (CPU seconds, which a busy machine disturbs less) and of the wall clock.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT.parent / "shared/data/traces/hta/trace_diff/control/control.json.gz"

CLOCK = """
import time
class Clock:
    def __enter__(self): self.wall, self.cpu = time.perf_counter(), time.process_time()
    def __exit__(self, *_): print(time.perf_counter() - self.wall, time.process_time() - self.cpu)
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
file = Path(sys.argv[1])
with tempfile.TemporaryDirectory() as store, Clock():
    outcome = ingest_source(Path(store), Source("run", file.name, file, "torch_trace", file.stat().st_size, "digest"))
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


def measure(python: str, program: str, file: Path) -> dict[str, float]:
    """Run a program on a file; its speed without start-up in MB/s of CPU and wall time, and its peak memory in MB."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen([python, "-c", program, str(file)], cwd=ROOT, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise SystemExit(errors.read().decode())
        wall, cpu = map(float, output.read().split())
    size = file.stat().st_size / 1e6
    return {"cpu": size / cpu, "wall": size / wall, "peak": usage.ru_maxrss / 1e3}


def two_at_once(file: Path) -> float:
    """Speed of two processes on two files together, over that of one alone."""
    one = measure(sys.executable, OURS, file)["wall"]
    with ThreadPoolExecutor(2) as pool:
        return sum(m["wall"] for m in pool.map(lambda _: measure(sys.executable, OURS, file), range(2))) / one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, default=SAMPLE)
    parser.add_argument("--megabytes", type=int, default=250)
    parser.add_argument("--peer", help="a Python that has HolisticTraceAnalysis and pandas<3")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if not options.trace.exists():
        print(f"There is no {options.trace}; give one with --trace.")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        repeat(options.trace, options.megabytes, file)
        result = {"megabytes": round(file.stat().st_size / 1e6)}
        for name, python, program in (("postmortem", sys.executable, OURS), ("hta", options.peer, PEER)):
            if python:
                best = max((measure(python, program, file) for _ in range(options.rounds)), key=lambda m: m["cpu"])
                result[name] = {key: round(value, 1) for key, value in best.items()}
        if options.peer:
            result["ratio"] = {key: round(result["postmortem"][key] / result["hta"][key], 2) for key in ("cpu", "wall")}
        result["two processes"] = round(two_at_once(file), 2)
        print(json.dumps(result))


if __name__ == "__main__":
    main()
