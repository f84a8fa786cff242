"""Mutated traces: no crash, nothing over 10 s, never more than 1 GB.

    python benchmarks/fuzz_traces.py [--inputs 20000] [--seed 1]

Small traces of every era (made here, and cut out of ../shared where it is) are mutated byte by byte, block by block and
token by token, some of them after compression, and parsed. Events kept and dropped are counted against what was there.
"""

import argparse
import gzip
import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem import schema  # noqa: E402
from postmortem.parsers import torch_trace  # noqa: E402
from postmortem.records import Batch, Issue, Source  # noqa: E402

SHARED = ROOT.parent / "shared/data/traces"
TOKENS = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"N/A", b"NaN", b"null", b"1e999", b"-1", b"\x00", b"\xff\xfe", b"\n",
    b'"traceEvents": [', b'"ph": "X"', b"99999999999999999999999999", b'{"', b"}]}", b"\\u", b"0.1e-400", b'"ts": 0', b"[" * 3000,
]  # fmt: skip
SLOW, LARGE = 10.0, 1_000_000  # seconds; kB of resident memory


def seeds() -> list[bytes]:
    """Small documents of every era and shape."""

    def event(i, ts):
        args = {"External id": i, "stream": 7, "Bytes": -5, "grid": [1, 2, 3], "x": {"y": ["a", {"b": 1}]}}
        return {
            "ph": "X",
            "cat": "kernel",
            "name": f'k{i} "q" \\ \u00e9',
            "pid": 1,
            "tid": "s 7",
            "ts": ts,
            "dur": 1.5,
            "args": args,
        }

    eras = [1.6e15, 5340363885454.181, 12]
    found = []
    for ts in eras:
        events = [event(i, ts + i) for i in range(12)]
        head = {"schemaVersion": 1, "distributedInfo": {"rank": 3}, "baseTimeNanoseconds": 1790857026000000000}
        found += [json.dumps({**head, "traceEvents": events, "traceName": "t"}, indent=n).encode() for n in (None, 2)]
        found += [json.dumps(events).encode(), json.dumps({"traceEvents": events, **head}).encode()]
    for file in sorted(SHARED.glob("hta/*/*.gz"))[:6]:
        text = gzip.decompress(file.read_bytes())
        found.append(text[:6000] + b"]" + text[-500:])
    return found


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to eight changes of a document."""
    text = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(text) + 1)
        kind = chance.randrange(6)
        if kind == 0 and text:
            text[at % len(text)] = chance.randrange(256)
        elif kind == 1:
            text[at:at] = chance.choice(TOKENS)
        elif kind == 2:
            del text[at : at + chance.choice((1, 3, 50, 1000))]
        elif kind == 3:
            text[at : at + chance.randrange(1, 9)] = chance.choice(TOKENS)
        elif kind == 4:
            other = chance.randrange(len(text) + 1)
            text[at:at] = text[other : other + chance.randrange(200)]
        else:
            del text[at:]
    return bytes(text)


def parse(file: Path) -> tuple[int, int]:
    """Parse a file as ingest would; (events kept, issues)."""
    rows, issues = 0, 0
    source = Source("run", file.name, file, "torch_trace", file.stat().st_size, "digest")
    for item in torch_trace.parse(source):
        if isinstance(item, Batch):
            table = schema.tables()[item.table].conform(item, "run", file.name)
            rows += table.num_rows if item.table == "trace_event" else 0
        issues += isinstance(item, Issue)
    return rows, issues


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    documents, slowest, kept = seeds(), 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rank0.json.gz"
        for i in range(options.inputs):
            data = mutate(chance.choice(documents), chance)
            if i % 5 == 0:
                data = mutate(gzip.compress(data), chance)
            file.write_bytes(data)
            start = time.perf_counter()
            try:
                rows, _ = parse(file)
            except Exception:
                (Path.cwd() / "fuzz_failure.bin").write_bytes(data)
                print(f"input {i} failed; it is kept as fuzz_failure.bin")
                raise
            kept += rows
            slowest = max(slowest, time.perf_counter() - start)
            if (i + 1) % 1000 == 0:
                print(f"{i + 1} inputs, slowest {slowest:.3f} s", file=sys.stderr, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{options.inputs} inputs, {kept} events kept, slowest {slowest:.3f} s, peak {peak // 1000} MB")
    if slowest > SLOW or peak > LARGE:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
