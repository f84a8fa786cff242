"""Speed and memory of reading checkpoints; beside torch where an interpreter that has it is given.

Without arguments the peer is this interpreter, and the comparison is left out where it has no torch.

python benchmarks/bench_checkpoints.py [--peer /path/to/python-with-torch] [--gib 1] [--sparse-gib 20]
"""

import argparse
import io
import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem.parsers import _values  # noqa: E402

PEER = r"""
import json, re, sys, time
import torch
torch.set_num_threads(1)
start, cpu = time.perf_counter(), time.process_time()
held = torch.load(sys.argv[1], mmap=True, weights_only=True, map_location="cpu")
found = [bool(t.isnan().any()) for t in held.values()]
if sys.argv[2] == "all":
    found = [(int(t.isnan().sum()), int(t.isinf().sum()), int((t == 0).sum()), float(t.min()), float(t.max()),
              float(t.mean()), float(t.norm())) for t in held.values()]
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])]))
"""
OWN = r"""
import json, re, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from postmortem.parsers import torch_checkpoint
from postmortem.records import Issue, Source
path = Path(sys.argv[1])
source = Source("r", path.name, path, "torch_checkpoint", path.stat().st_size, "d", options={"checkpoints": sys.argv[2]})
start, cpu = time.perf_counter(), time.process_time()
issues = [item for item in torch_checkpoint.parse(source) if isinstance(item, Issue)]
assert not issues, issues
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])]))
"""


def _tensor(key: str, numel: int) -> bytes:
    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    count = b"\x8a\x08" + struct.pack("<q", numel)
    identity = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + count + b"tQ"
    return (
        text(key)
        + b"ctorch._utils\n_rebuild_tensor_v2\n("
        + identity
        + b"K\x00"
        + count
        + b"\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
    )


def write(path: Path, sizes: list[int], fill) -> None:
    """A file of torch.save with float32 tensors of `sizes` elements; `fill` writes (or skips) their bytes."""
    pickle = b"\x80\x02}(" + b"".join(_tensor(str(i), size) for i, size in enumerate(sizes)) + b"u."
    directory = []
    with path.open("w+b") as file:
        for name, size in [
            ("data.pkl", len(pickle)),
            ("version", 2),
            *((f"data/{i}", 4 * n) for i, n in enumerate(sizes)),
        ]:
            header, raw = file.tell(), f"{path.stem}/{name}".encode()
            gap = -(header + 30 + len(raw) + 4) % 64
            file.write(struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, 0, 0, 0, 33, 0, 0, 0, len(raw), gap + 4) + raw)
            file.write(b"FB" + struct.pack("<H", gap) + b"Z" * gap)
            start = file.tell()
            if name.startswith("data/"):
                fill(file, size)
            else:
                file.write(pickle if name == "data.pkl" else b"3\n")
            file.truncate(start + size)
            directory.append((raw, _values.crc32(file, start, size), size, header))
            file.seek(start + size)
        begin = file.tell()
        for raw, crc, size, header in directory:
            extra = struct.pack("<2H3Q", 1, 24, size, size, header)
            head = (
                b"PK\x01\x02",
                0,
                0,
                0,
                0,
                0,
                33,
                crc,
                2**32 - 1,
                2**32 - 1,
                len(raw),
                len(extra),
                0,
                0,
                0,
                0,
                2**32 - 1,
            )
            file.write(struct.pack("<4s6H3I5H2I", *head) + raw + extra)
        end, count = file.tell(), len(directory)
        file.write(struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x31E, 0x2D, 0, 0, count, count, end - begin, begin))
        file.write(struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, 2**32 - 1, 2**32 - 1, 0))


def run(python: str, code: str, *args: str) -> tuple[float, float, float]:
    """(seconds, CPU seconds, peak MB)."""
    out = subprocess.run([python, "-c", code, *args], check=True, capture_output=True, text=True).stdout
    wall, cpu, kilobytes = json.loads(out.splitlines()[-1])
    return wall, cpu, kilobytes / 1024


def report(what: str, size: int, measured: tuple[float, float, float]) -> float:
    wall, cpu, peak = measured
    print(f"{what:52} {size / cpu / 1e9:6.2f} GB/s per core  {size / wall / 1e9:6.2f} GB/s elapsed  {peak:7.0f} MB")
    return cpu


def measure(what: str, size: int, call) -> None:
    call()
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    report(what, size, (time.perf_counter() - wall, time.process_time() - cpu, 0))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--peer", default=sys.executable)
    arguments.add_argument("--gib", type=float, default=0.5)
    arguments.add_argument("--sparse-gib", type=float, default=20)
    given = arguments.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shard.pt"
        sizes = [int(given.gib * (1 << 28) / 4)] * 4
        write(path, sizes, lambda file, size: file.write(rng.standard_normal(size // 4, np.float32)))
        size = path.stat().st_size
        with path.open("rb") as file:
            measure("CRC-32", size, lambda: _values.crc32(file, 0, size))
        numbers = rng.standard_normal(int(given.gib * (1 << 26)), np.float32)
        for dtype, data in (
            ("float32", numbers), ("bfloat16", (numbers.view("<u4") >> 16).astype("<u2")),
            ("float16", numbers.astype("<f2")),
            ("int8, absmax", (numbers * (127 / np.abs(numbers).max())).astype("i1")),
            ("int8, five values", numbers.astype("i1")),
            ("int16", (numbers * 1000).astype("<i2")),
            ("float8_e4m3fn", rng.integers(0, 256, len(numbers)).astype("u1")),
        ):  # fmt: skip
            file = io.BytesIO(data.tobytes())
            measure(
                f"statistics, {dtype}",
                data.nbytes,
                lambda f=file, n=data.nbytes, t=dtype: _values.statistics(f, 0, n, t.split(",")[0]),
            )
        for mode in ("structure", "deep"):
            own = report(f"{mode}, {size >> 20} MiB", size, run(sys.executable, OWN, str(path), mode, str(ROOT)))
        if subprocess.run([given.peer, "-c", "import torch"], check=False, capture_output=True).returncode:
            print(f"skipped: {given.peer} has no torch to compare with; name an interpreter that has it with --peer")
        else:
            for mode, what in (("isnan", "isnan"), ("all", "the same statistics")):
                peer = report(f"torch.load(mmap=True) and {what}", size, run(given.peer, PEER, str(path), mode))
                print(f"{'':52} postmortem (with checksums) takes {own / peer:.2f} of its CPU time")
        path.unlink()
        if given.sparse_gib:
            write(path, [int(given.sparse_gib * (1 << 28))], lambda _file, _size: None)
            measured = run(sys.executable, OWN, str(path), "deep", str(ROOT))
            report(f"deep, sparse {path.stat().st_size >> 30} GiB", path.stat().st_size, measured)


if __name__ == "__main__":
    main()
