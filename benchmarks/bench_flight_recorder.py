"""Speed of hang diagnosis: 1,024 dumps of 2,000 operations each, ingested and diagnosed with two processes.

Usage: python benchmarks/bench_flight_recorder.py [RANKS] [OPERATIONS]
"""

import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
STEPS = ("all_reduce", "wrapper", "forward", "backward", "step", "train_batch", "main", "<module>")
CULPRIT = 13


class C10Pickler:
    """Writes what c10's pickler writes: texts once, then by number; containers each time anew."""

    def __init__(self):
        self.memo = {}

    def dump(self, value):
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if value is None:
            return b"N"
        if isinstance(value, int):
            if 0 <= value < 256:
                return b"K" + struct.pack("B", value)
            return b"J" + struct.pack("<i", value) if abs(value) < 1 << 31 else b"\x8a\x08" + struct.pack("<q", value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, tuple):
            return b"".join(map(self.dump, value)) + b"\x86"
        if isinstance(value, dict):
            return b"}(" + b"".join(self.dump(k) + self.dump(v) for k, v in value.items()) + b"u"
        return b"](" + b"".join(map(self.dump, value)) + b"e"

    def _text(self, value):
        number = self.memo.get(value)
        if number is not None:
            return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)
        number = self.memo[value] = len(self.memo)
        data = value.encode()
        put = b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)
        return b"X" + struct.pack("<I", len(data)) + data + put


def head(rank, ranks, pending):
    """Groups and counters of a rank; every rank has three groups."""
    tensor, data = rank // 8, rank % 8
    groups = {
        "0": ("default_pg", list(range(ranks))),
        "T": (f"TENSOR {tensor}", list(range(8 * tensor, 8 * tensor + 8))),
        "D": (f"DATA {data}", list(range(data, ranks, 8))),
    }
    names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
    status = {
        str(n): dict(zip(names, (50_000 - (absent := rank == CULPRIT and key == "T"), -1, 50_000 - (absent or (pending and key == "T"))), strict=True))
        for n, key in enumerate(groups)
    }  # fmt: skip
    config = {key: {"name": key, "desc": desc, "ranks": str(members)} for key, (desc, members) in groups.items()}
    return {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27.3", "pg_status": status}


def entries(operations, pending, absent):
    """Operations of a rank; the last is one of its tensor group."""
    keys, counts = "0TD", {}
    for back in range(operations):
        key = "T" if back == 0 else keys[back % 3]
        counts[key] = counts.get(key, 50_001) - 1
        if absent and back == 0:
            continue
        done = back or not pending
        n = operations - back
        yield {
            "frames": [{"name": s, "filename": f"/job/src/module_{n % 4}.py", "line": 7 * k + n % 12} for k, s in enumerate(STEPS)],
            "record_id": 90_000 + n, "pg_id": keys.index(key), "process_group": (key, "undefined"), "thread_name": "python3",
            "thread_id": "23456244340032", "collective_seq_id": counts[key], "p2p_seq_id": 0, "op_id": counts[key],
            "profiling_name": "nccl:all_reduce", "time_created_ns": 1_758_610_505_000_000_000 + n * 10**6,
            "input_sizes": [[4096, 5120]], "input_dtypes": ["BFloat16"], "output_sizes": [[4096, 5120]],
            "output_dtypes": ["BFloat16"], "state": "completed" if done else "scheduled", "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None, "retired": bool(done), "timeout_ms": 600_000, "is_p2p": False,
        }  # fmt: skip


def write(folder, ranks, operations):
    """Dumps of a job in which rank 13 does not come to the last operation of its tensor group."""
    made = {}
    for rank in range(ranks):
        pending, absent = rank // 8 == CULPRIT // 8, rank == CULPRIT
        pickler = C10Pickler()
        front = pickler.dump(head(rank, ranks, pending))[:-1] + pickler.dump("entries")
        role = (pending, absent, len(pickler.memo))
        if role not in made:
            made[role] = pickler.dump(list(entries(operations, pending, absent))[::-1])
        (folder / f"nccl_trace_rank_{rank}").write_bytes(b"\x80\x02" + front + made[role] + b"u.")


def main(ranks=1024, operations=2000):
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "run"
        folder.mkdir()
        write(folder, ranks, operations)
        size = sum(f.stat().st_size for f in folder.iterdir())
        started = time.time()
        done = subprocess.run(
            [sys.executable, "-m", "postmortem", "diagnose", str(folder), "--json"],
            cwd=home, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, check=False, text=True,
        )  # fmt: skip
        seconds = time.time() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        named = done.stdout.split('"culprit_ranks": ', 1)[-1].split("]", 1)[0].strip("[ \n")
        print(
            f"{ranks} dumps of {operations} operations, {size / 1e6:.0f} MB: {seconds:.1f} s "
            f"({used.ru_utime + used.ru_stime:.1f} s of processor time), largest process {used.ru_maxrss / 1024:.0f} MB, "
            f"named: {named}"
        )
        if named != str(CULPRIT):
            print(done.stdout[:1000], done.stderr[-1000:])
        return named != str(CULPRIT)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
