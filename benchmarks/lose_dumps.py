"""Remove Flight Recorder dumps at random and see whether a healthy rank is ever named.

Usage: python benchmarks/lose_dumps.py SHARED_DATA [TRIALS]
"""

import random
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from evidence import MemorySession, dumps  # noqa: E402

ANSWERS = ("exact", "part", "undecided", "wrong")


def trial(parts, kept, truth):
    """'exact', 'part' (some culprits named), 'undecided' or 'wrong'."""
    session = MemorySession([b for rank in kept for b in parts[rank]])
    named = {row["rank"] for row in session.rows_of_view("hang_suspect")}
    if named - truth:
        return "wrong"
    return "exact" if named == truth else "part" if named else "undecided"


def main(data, trials):
    wrong = 0
    for folder, known in tomllib.loads((data / "TRUTH.toml").read_text())["flight_recorder"].items():
        files = sorted((data / folder).glob("_dump_*"))
        parts = {int(f.name.rsplit("_", 1)[1]): dumps([f]) for f in files}
        truth = set(known["culprit"])
        rng = random.Random(1)
        results = Counter()
        for _ in range(trials):
            kept = rng.sample(sorted(parts), rng.randint(1, len(parts) - 1))
            results[trial(parts, kept, truth)] += 1
        split = ", ".join(f"{results[name]} {name} ({results[name] / max(trials, 1):.1%})" for name in ANSWERS)
        print(f"{folder}: {trial(parts, list(parts), truth)} with all dumps; of {trials} removals {split}", flush=True)
        wrong += results["wrong"]
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)))
