"""Remove Flight Recorder dumps at random and see whether a healthy rank is ever named.

Usage: python benchmarks/lose_dumps.py SHARED_DATA [TRIALS]
"""

import random
import sys
import tomllib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from evidence import MemorySession, dumps


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
        print(folder, "all dumps:", trial(parts, list(parts), truth), dict(results))
        wrong += results["wrong"]
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)))
