"""How often are two healthy runs of one job, as whole comparisons of ingested folders, called anything but "no change"?

    python benchmarks/simulate_pairs.py [--pairs 100] [--runs ../shared/data/runs]

Both sides of a pair are made from the logs of real healthy runs of one job: the same run or two of them, in any order,
truncated, split, or with the step times shuffled in blocks; the number of ranks varies from pair to pair. Prints one line
per pair that got another verdict and the counts per way; ends with exit code 1 where fewer than 98 of 100 are right.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from postmortem.compare import compare
from postmortem.errors import PostmortemError
from postmortem.runs import ingest_folders, open_runs

LINE = re.compile(r"\[rank (\d+)\] step (\d+): loss=(\S+), grad_norm=(\S+), step_time=([\d.]+), rss_gb=([\d.]+)")
LEAST = 100  # steps of a run that is worth cutting up
BLOCK = 10
WAYS = ("truncated", "split", "shuffled", "other run", "other run, truncated", "other run, shuffled")
WORLDS = (1, 2, 3, 4, 8, 16)


def healthy(folder):
    """Return {name: (steps, ranks, 4) array of loss, gradient norm, step time, memory} of the long healthy runs."""
    found = {}
    for run in sorted(folder.glob("*_after")):
        rows = {}
        for path in sorted(run.rglob("*.log")):
            for rank, step, *values in LINE.findall(path.read_text(errors="replace")):
                rows[int(step), int(rank)] = [float(value) for value in values]
        ranks = sorted({rank for _, rank in rows})
        steps = sorted({step for step, _ in rows if all((step, rank) in rows for rank in ranks)})
        if len(steps) >= LEAST:
            found[run.name] = np.array([[rows[step, rank] for rank in ranks] for step in steps])
    return found


def shuffled(rng, run):
    """Return the run with its step times in another order of blocks; the first block is the warm-up and stays."""
    times = run[:, :, 2]
    blocks = [times[i : i + BLOCK] for i in range(BLOCK, len(times), BLOCK)]
    out = run.copy()
    out[:, :, 2] = np.concatenate([times[:BLOCK], *(blocks[i] for i in rng.permutation(len(blocks)))])
    return out


def pair(rng, real, way):
    """Return both sides of a pair."""
    one, other = (real[name] for name in rng.choice(sorted(real), 2, replace=False))
    if way == "split":
        cut = int(rng.integers(len(one) // 4, 3 * len(one) // 4))
        sides = [one[:cut], one[cut:]]
    elif way == "truncated":
        sides = [one[: int(rng.integers(24, len(one) + 1))] for _ in range(2)]
    elif way == "shuffled":
        sides = [one, shuffled(rng, one)]
    else:
        sides = [one, other]
        if "shuffled" in way:
            sides = [shuffled(rng, side) for side in sides]
        if "truncated" in way:
            sides = [side[int(rng.integers(0, 60)) :][: int(rng.integers(24, 340))] for side in sides]
    return sides if rng.random() < 0.5 else sides[::-1]


def write(folder, run, world, rng):
    """Write the logs of `world` ranks; ranks beyond those that were measured repeat them, one percent off."""
    folder.mkdir(parents=True)
    for rank in range(world):
        part = run[:, rank % run.shape[1]].copy()
        if rank >= run.shape[1]:
            part[:, 2] *= 1 + 0.01 * rng.standard_normal(len(part))
        lines = [
            f"[rank {rank}] step {step}: loss={loss:.4f}, grad_norm={norm:.4f}, step_time={time:.4f}, rss_gb={memory:.4f}"
            for step, (loss, norm, time, memory) in enumerate(part, 1)
        ]
        (folder / f"rank{rank}.log").write_text("\n".join(lines) + "\n")


def verdict(folder, sides, world, rng):
    """Ingest both sides and compare them: the verdict and its reason."""
    for name, side in zip(("before", "after"), sides, strict=True):
        write(folder / name, side, world, rng)
    store = folder / "store"
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            ingest_folders([f"{name}={folder / name}" for name in ("before", "after")], store, jobs=1)
            found = compare(open_runs(store, ["before", "after"], wanted=2))
    except PostmortemError as error:
        return "error", str(error)
    return found["verdict"], found["why"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=Path("../shared/data/runs"))
    options = parser.parse_args()
    real = healthy(options.runs)
    counts = Counter()
    for number in range(options.pairs):
        rng = np.random.default_rng([options.seed, number])
        way, world = WAYS[number % len(WAYS)], int(rng.choice(WORLDS))
        sides = pair(rng, real, way)
        with tempfile.TemporaryDirectory() as folder:
            word, why = verdict(Path(folder), sides, world, rng)
        counts[way, word] += 1
        if word != "no change":
            print(
                f"pair {number}: {way}, {world} ranks, {[len(side) for side in sides]} steps: {word}: {why}", flush=True
            )
    for (way, word), count in sorted(counts.items()):
        print(f"{way:22} {word} {count}")
    right = sum(count for (_, word), count in counts.items() if word == "no change")
    print(f"# no change: {right} of {options.pairs} pairs from {len(real)} runs")
    return 0 if right >= 0.98 * options.pairs else 1


if __name__ == "__main__":
    sys.exit(main())
