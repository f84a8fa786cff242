"""Mutate the bytes of real inputs and read them: no parser may crash, take over 10 s or hold over 1 GB.

Usage: python benchmarks/fuzz_inputs.py [INPUTS] [SEED]     (`make fuzz`; 20,000 inputs by default)

Seeds are pieces of the sample runs, and of ../shared/data where it exists, one set per parser that claims them. An
exception that leaves a parser is a bug, though ingest would turn it into an issue of kind "error": it is printed with the
input's number, and the exit code is 1.
"""

from __future__ import annotations

import collections
import gzip
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem import schema  # noqa: E402
from postmortem.discover import _claim, inflate  # noqa: E402
from postmortem.parsers import parsers  # noqa: E402
from postmortem.records import Batch, Source  # noqa: E402

PIECE = 24_000  # B of a seed: enough for hundreds of records, small enough for thousands of inputs a minute
PER_FORMAT = 12
TOO_LONG = 10  # s
TOO_LARGE = 1 << 20  # KiB


def seeds() -> dict[str, list[tuple[str, bytes]]]:
    """Format -> (path, bytes) of pieces that the format's parser claims."""
    found: dict[str, list[tuple[str, bytes]]] = collections.defaultdict(list)
    folders = [ROOT / "sample_traces", ROOT.parent / "shared" / "data"]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    random.Random(0).shuffle(files)
    for file in files:
        with file.open("rb") as stream:
            raw = stream.read(1 << 20)
        data = inflate(raw) if raw.startswith(b"\x1f\x8b") else raw
        if file.suffix not in {".pt", ".safetensors", ".distcp"}:  # a torn archive is nothing but torn
            data = data[:PIECE]
        name = _claim(file.name.removesuffix(".gz"), data)
        if name in parsers() and data and len(found[name]) < PER_FORMAT:
            found[name].append((file.name.removesuffix(".gz"), data))
    return found


def mutate(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """One to four edits at random places."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at, to = sorted(dice.randrange(len(out) + 1) for _ in range(2))
        to = min(to, at + dice.choice([1, 8, 200, 4000]))
        kind = dice.randrange(8)
        if kind == 0 and out:
            out[min(at, len(out) - 1)] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del out[at:to]
        elif kind == 2:
            out[at:at] = dice.randbytes(dice.choice([1, 3, 64]))
        elif kind == 3:
            out[at:at] = out[at:to] * dice.choice([1, 2, 50])
        elif kind == 4:
            del out[at:]
        elif kind == 5:
            out[at:at] = dice.choice(TOKENS)
        elif kind == 6:
            out[at:to] = other[at:to]
        else:
            out[at:to] = bytes(dice.randrange(256) for _ in range(to - at))
        out = out[: 4 * PIECE] if len(data) <= PIECE else out
    return bytes(out)


TOKENS = [
    b"\0", b"\n", b"\r", b'"', b"\\", b"{", b"[", b"]" * 9, b"[" * 5000, b"NaN", b"-Infinity", b"1e999", b"-1",
    b"99999999999999999999999", b"\xff\xfe", b"\x1b[31m", b"\xe2\x80\xa8", b"[rank3]: ", b"null", b"0x", b"," * 99,
]  # fmt: skip


def read(name: str, file: Path, path: str) -> None:
    """Read the file as ingest would, and let every exception but OSError out."""
    source = Source("run", path, file, name, file.stat().st_size, "0" * 32, options={"checkpoints": "deep"})
    try:
        for item in parsers()[name].parse(source):
            if isinstance(item, Batch):
                schema.tables()[item.table].conform(item, "run", path)
    except OSError:
        return


def trials(count: int, seed: int) -> Iterator[tuple[int, str, str, bytes]]:
    """Number, format, path and bytes of each input."""
    sets, dice = seeds(), random.Random(seed)
    names = sorted(sets)
    for number in range(count):
        name = names[number % len(names)]
        (path, data), (_, other) = dice.choice(sets[name]), dice.choice(sets[name])
        made = mutate(data, other, dice)
        yield number, name, path, gzip.compress(made, 1) if number % 17 == 0 else made


def main(count: int = 20_000, seed: int = 1) -> int:
    """Run the trials; return the number of failures."""

    def late(*_: object) -> None:
        raise TimeoutError(f"over {TOO_LONG} s")

    signal.signal(signal.SIGALRM, late)
    failed: collections.Counter[str] = collections.Counter()
    tried: collections.Counter[str] = collections.Counter()
    slowest, started = 0.0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "input"
        for number, name, path, data in trials(count, seed):
            file.write_bytes(data)
            tried[name] += 1
            begun = time.monotonic()
            signal.alarm(TOO_LONG)
            try:
                read(name, file, path)
            except Exception as error:  # noqa: BLE001 (every kind of exception is what is looked for)
                failed[f"{name}: {type(error).__name__}"] += 1
                if failed.total() <= 5:
                    traceback.print_exc(limit=-4)
                    print(f"input {number} (seed {seed}, {name}, {path})")
            finally:
                signal.alarm(0)
            slowest = max(slowest, time.monotonic() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{tried.total()} inputs in {time.monotonic() - started:.0f} s: {dict(sorted(tried.items()))}")
    print(f"slowest {slowest:.2f} s, peak memory {peak >> 10} MiB, failures {dict(failed) or 'none'}")
    return failed.total() + (peak > TOO_LARGE)


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:3]))))
