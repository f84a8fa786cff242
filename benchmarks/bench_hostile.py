"""Time and memory of refusing hostile pickles and checkpoint files; the aim is a second and 200 MB each.

Memory is what a refusal takes beyond what the process, with the pickles made for it, held before.

Usage: python benchmarks/bench_hostile.py
"""

import re
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from test_checkpoints import HOSTILE_FILES, rows  # noqa: E402
from test_unpickle import HOSTILE, Refused, load  # noqa: E402

from postmortem.parsers import torch_checkpoint  # noqa: E402


def refuse_pickle(data: bytes) -> None:
    try:
        load(data, classes="inert")
    except Refused:
        return
    raise AssertionError("not refused")


def main() -> None:
    tasks = {f"pickle: {name}": (refuse_pickle, data) for name, (data, _) in HOSTILE.items()}
    folder = Path(tempfile.mkdtemp())
    for name, make in HOSTILE_FILES.items():
        path = folder / f"{name.replace(' ', '_')}.pt"
        make(path)
        tasks[f"file: {name}"] = (lambda path: rows(torch_checkpoint, path), path)
    took, needed = {}, {}
    for name, (refuse, what) in tasks.items():
        before = _peak()
        start = time.process_time()
        refuse(what)
        took[name] = time.process_time() - start
        needed[name] = _peak(reset=False) - before
    for name, seconds in sorted(took.items(), key=lambda item: -item[1])[:8]:
        print(f"{seconds:6.3f} s  {needed[name]:4} MB  {name}")
    print(f"{len(took)} refused, slowest {max(took.values()):.3f} s, most memory {max(needed.values())} MB")


def _peak(*, reset: bool = True) -> int:
    """MB that this process holds at most since the last reset, which sets the mark to what it holds now."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024


if __name__ == "__main__":
    main()
