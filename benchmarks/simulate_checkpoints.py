"""Damages copies of real checkpoints in every known way; each has to be found, the right file named, no other.

python benchmarks/simulate_checkpoints.py [TRIALS] [SEED]
"""

import collections
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import checkpoint_damage  # noqa: E402

# run -> ZeRO stage; those of stage 1 have several checkpoints, so tags can be swapped and compared there.
RUNS = {"corrupt_after": 1, "crash_after": 1, "leak_after": 1, "zero2_gas": 2, "zero3": 3}


def main() -> int:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 520
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    runs = ROOT.parent / "shared" / "data" / "runs"
    if not runs.is_dir():
        print("skipped: ../shared is not here")
        return 0
    counts: collections.Counter = collections.Counter()
    problems = []
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        benches = []
        for name in RUNS:
            home = Path(folder) / name
            home.mkdir()
            benches.append(checkpoint_damage.Bench(runs / name / "checkpoints", home))
            undamaged = benches[-1].named()
            problems += [f"undamaged {name}: {undamaged}"] if undamaged else []
        stages = list(RUNS.values())
        for number in range(trials):
            bench = benches[number % len(benches)]
            kind = rng.choice(checkpoint_damage.kinds(bench))
            problem = checkpoint_damage.trial(bench, rng, kind)
            what = "right" if problem is None else "false" if "falsely" in problem else "missed"
            counts[kind.__name__, stages[number % len(benches)], what] += 1
            problems += [problem] if problem else []
    print(f"{'damage':16} stage  trials  right file named  missed  another file accused")
    for kind, stage in sorted({(kind, stage) for kind, stage, _ in counts}):
        right, missed, false = (counts[kind, stage, what] for what in ("right", "missed", "false"))
        print(f"{kind:16} {stage:5}  {right + missed + false:6}  {right:16}  {missed:6}  {false:20}")
    print(f"{trials} trials in {time.perf_counter() - start:.0f} s, {len(problems)} wrong")
    print(*problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
