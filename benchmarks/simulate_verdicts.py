"""How often are the verdicts on simulated and resampled runs right, wrong or open?

    python benchmarks/simulate_verdicts.py [--reps 100] [--part pairs] [--runs ../shared/data/runs]

Pairs of runs with a known truth are made from real step times (blocks of 20 steps drawn again and again) and
from AR(1) series with heavy tails. Prints one line per setting; ends with exit code 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from postmortem import stats  # noqa: E402

EFFECTS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10)
BLOCK = 20
ENOUGH = {
    f"ar1 n={n} rho={rho}" for n, rho in ((300, 0.0), (300, 0.5), (1000, 0.0), (1000, 0.5), (1000, 0.8), (3000, 0.8))
}
STEP = re.compile(r"\[rank (\d+)\] step (\d+): .*?step_time=([\d.]+)")


def real_series(folder):
    """Return {name: step times} of the runs in `folder` with 100 steps or more, longest rank per step."""
    found = {}
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        steps = {}
        for path in sorted(run.rglob("*.log")):
            for _, step, value in STEP.findall(path.read_text(errors="replace")):
                steps[int(step)] = max(float(value), steps.get(int(step), 0.0))
        if len(steps) >= 100:
            found[run.name] = np.array([steps[step] for step in sorted(steps)])
    return found


def ar1(rng, n, rho, *, tails=True):
    """Return an AR(1) series of variance 1, with t3 or normal noise."""
    noise = rng.standard_t(3, n + 300) / math.sqrt(3) if tails else rng.standard_normal(n + 300)
    return lfilter([math.sqrt(1 - rho**2)], [1, -rho], noise)[300:]


def simulated(rng, n, rho, scatter=0.03):
    """Return step times with a spike every 100 steps and random stragglers."""
    x = np.exp(scatter * ar1(rng, n, rho))
    x[int(rng.integers(100)) :: 100] *= 5
    return x * np.where(rng.random(n) < 0.02, 1 + rng.random(n), 1)


def contended(rng, n):
    """Return step times of a machine that is shared now and then: 8 % slower, for 150 steps on average."""
    state = np.cumsum(rng.random(n) < 1 / 150) % 2
    return simulated(rng, n, 0.3) * (1 + 0.08 * state)


def resampled(rng, n, real, scatter):
    """Return `n` steps drawn in blocks from a real run, their scatter scaled."""
    blocks = [real[i : i + BLOCK] for i in rng.integers(0, len(real) - BLOCK, math.ceil(n / BLOCK))]
    y, middle = np.log(np.concatenate(blocks)[:n]), np.log(np.median(real))
    return np.exp(middle + scatter * (y - middle))


def disturbed(rng, x):
    """Add what real runs have: a warm-up, more spikes and a slow drift of up to 1 % either way."""
    n = len(x)
    x = x * np.linspace(1, 1 + rng.uniform(-0.01, 0.01), n)
    length = int(rng.integers(1, max(n // 8, 2)))
    x[:length] *= np.linspace(2, 1.1, length)
    x[rng.random(n) < 0.01] *= 4
    return x


def pairs(settings, reps, seed=0):
    """Yield (setting, effect, Counter of words) for every setting: a function rng -> series."""
    for name, make in settings.items():
        for effect in EFFECTS:
            rng = np.random.default_rng([seed, *name.encode()])
            words = Counter()
            for _ in range(reps):
                before, after = make(rng), make(rng) * (1 + effect)
                if rng.random() < 0.5:
                    word = stats.compare_step_times(before, after).judgement.word
                else:  # the other way round it is an improvement
                    word = stats.compare_step_times(after, before).judgement.word
                    word = {"faster": "slower", "slower": "faster"}.get(word, word)
                words[word] += 1
            yield name, effect, words


def pair_settings(real):
    """Return the settings of the ratio: name -> function that makes one run."""
    found = {}
    for n in (60, 100, 300, 1000, 3000):
        for rho in (0.0, 0.5, 0.8):
            found[f"ar1 n={n} rho={rho}"] = lambda rng, n=n, rho=rho: simulated(rng, n, rho)
        found[f"ar1 n={n} rho=0.5 disturbed"] = lambda rng, n=n: disturbed(rng, simulated(rng, n, 0.5))
        found[f"contended n={n}"] = lambda rng, n=n: contended(rng, n)
        for scatter in (0.1, 0.3, 1.0) if real else ():
            pool = list(real.values())
            found[f"real n={n} scatter x{scatter}"] = lambda rng, n=n, s=scatter, pool=pool: resampled(
                rng, n, pool[0], s
            )
            found[f"real n={n} scatter x{scatter} disturbed"] = lambda rng, n=n, s=scatter, pool=pool: disturbed(
                rng, resampled(rng, n, pool[0], s)
            )
    return found


def coverage(reps, seed=1):
    """Yield (n, rho, coverage of the interval of two runs, the same with noise between runs of 1 %)."""
    for n in (300, 1000, 3000):
        for rho in (0.0, 0.5, 0.8):
            rng = np.random.default_rng([seed, n, int(10 * rho)])
            inner = outer = 0
            for _ in range(reps):
                a, b = simulated(rng, n, rho), simulated(rng, n, rho) * 1.05
                found = stats.ratio_of_medians(a, b, level=0.95)
                inner += found.inner_low <= 1.05 <= found.inner_high
                shift = math.exp(math.sqrt(2) * 0.01 * rng.standard_normal())
                outer += found.low * shift <= 1.05 <= found.high * shift
            yield n, rho, inner / reps, outer / reps


def healthy_windows(real, reps, seed=2):
    """Return how often two stretches of healthy runs of one job are called different, in any order and split."""
    rng, names, wrong, changed = np.random.default_rng(seed), sorted(real), 0, 0
    for _ in range(reps):
        parts = []
        for name in rng.choice(names, 2):
            n = int(rng.choice([24, 40, 60, 100, 150, 200, 300, 400]))
            start = int(rng.integers(0, max(len(real[name]) - n, 0) + 1))
            parts.append(real[name][start : start + n])
        found = stats.compare_step_times(*parts)
        wrong += found.judgement.word in {"faster", "slower"}
        changed += bool(found.before.changes or found.after.changes)
    return wrong / reps, changed / reps


def changes_inside(reps, seed=4):
    """Yield (setting, n, steps called slower for good, change points of any kind) of single runs; effects at half the run."""
    for n in (100, 300, 900, 3000):
        settings = {"contended": (lambda rng, n=n: contended(rng, n), 0.0)}
        for rho, scatter in ((0.0, 0.03), (0.5, 0.03), (0.8, 0.03), (0.95, 0.05), (0.99, 0.1), (0.995, 0.1)):
            for effect in (0.0, 0.07, 0.10) if rho < 0.9 else (0.0,):
                name = f"ar1 rho={rho} +{effect:.0%}"
                settings[name] = (lambda rng, n=n, r=rho, s=scatter: simulated(rng, n, r, s), effect)
        for name, (make, effect) in settings.items():
            rng, called, seen = np.random.default_rng([seed, n, *name.encode()]), 0, 0
            for _ in range(reps):
                x = make(rng)
                x[n // 2 :] *= 1 + effect
                found = [p for p in stats.change_points(x) if not p.transient]
                called += any(p.lasts and p.ratio >= 1.05 for p in found)
                seen += bool(found)
            yield name, n, called / reps, seen / reps


GB, MB = 1e9, 1e6
LEAKS = ("leak", "sawtooth leak", "late leak")
SETTLED = ("flat", "plateau", "sawtooth", "step")
SHAPES = (*LEAKS, *SETTLED, "stopped", "one tooth", "logarithm", "root")


def memory(kind, rng, n, rho):
    """Return a memory series around 10 GB with 10 MB of noise; leaks gain 1 MB per step."""
    t = np.arange(n, dtype=float)
    x = 10 * GB + 10 * MB * ar1(rng, n, rho, tails=False)
    if "leak" in kind:
        x += MB * t
    if kind == "plateau":
        x -= 300 * MB * np.exp(-t / (n / 12))
    if kind == "stopped":
        x += MB * np.minimum(t, n * rng.uniform(0.3, 0.75))
    if "sawtooth" in kind:
        length = int(rng.integers(20, max(n // 9, 21)))
        x += 200 * MB * ((t + rng.integers(length)) % length) / length
    if kind == "one tooth":  # a fall that the run may just not have seen
        length = rng.uniform(0.55, 1.2) * n
        x += 200 * MB * ((t + rng.uniform(0, length)) % length) / length
    if kind == "logarithm":
        x += 300 * MB * np.log1p(t / rng.uniform(1, 20))
    if kind == "root":
        x += 30 * MB * np.sqrt(t)
    if kind == "late leak":  # on top of the common leak
        x += MB * np.maximum(t - 0.4 * n, 0) - MB * t
    if kind == "step":
        x += 200 * MB * (t >= rng.integers(n // 10, n * 9 // 10))
    return x


def slopes(reps, seed=3):
    """Yield (kind, n, rho, Counter of kinds, coverage of the slope's interval)."""
    for n in (150, 300, 600, 1500, 5000):
        for rho in (0.0, 0.5, 0.8):
            for kind in SHAPES:
                rng = np.random.default_rng([seed, n, int(10 * rho), *kind.encode()])
                words, inside = Counter(), 0
                for _ in range(reps):
                    found = stats.growth(memory(kind, rng, n, rho))
                    words[found.kind] += 1
                    inside += found.low <= (MB if "leak" in kind else 0.0) <= found.high
                yield kind, n, rho, words, inside / reps


def share(words, reps):
    return "  ".join(f"{word} {count / reps:.3f}" for word, count in sorted(words.items()))


class Promises:
    """What was promised and not held, with the chance that so few repetitions bring."""

    def __init__(self):
        self.broken = []

    def at_most(self, what, share, most, reps):
        if share > most + 2 * math.sqrt(most * (1 - most) / reps):
            self.broken.append(f"{what}: {share:.3f}, at most {most} was promised")

    def at_least(self, what, share, least, reps):
        if share < least - 2 * math.sqrt(least * (1 - least) / reps):
            self.broken.append(f"{what}: {share:.3f}, at least {least} was promised")


def report_pairs(promises, real, reps, only):
    print(f"# ratio of step times, {reps} pairs per line; 'slower' is the truth where the effect is not 0")
    for name, effect, words in pairs({k: v for k, v in pair_settings(real).items() if only in k}, reps):
        print(f"{name:34} effect {effect:.0%}: {share(words, reps)}", flush=True)
        false = words["faster"] + (words["slower"] if effect == 0 else 0)
        promises.at_most(f"{name} {effect:.0%}: false claims", false / reps, 0.05, reps)
        if effect == 0.05 and name in ENOUGH:
            promises.at_least(f"{name}: 5 % found", words["slower"] / reps, 0.95, reps)


def report_coverage(promises, reps):
    print("# coverage of the 95 % interval of the ratio (two runs alone; with noise between runs)")
    for n, rho, inner, outer in coverage(reps):
        print(f"n={n} rho={rho}: {inner:.3f} {outer:.3f}", flush=True)
        promises.at_least(f"coverage n={n} rho={rho}", inner, 0.93, reps)


def report_changes(promises, reps):
    print("# a run by itself, slower from half of it on: called slower for good, any change point")
    for name, n, called, seen in changes_inside(reps):
        print(f"{name:22} n={n}: {called:.3f} {seen:.3f}", flush=True)
        if "+0%" in name or name == "contended":
            promises.at_most(f"{name} n={n}: called slower", called, 0.05, reps)


def report_windows(promises, real, reps):
    wrong, changed = healthy_windows(real, reps)
    print(f"# stretches of healthy runs: called different {wrong:.4f}, change points in {changed:.4f}")
    promises.at_most("healthy stretches called different", wrong, 0.02, reps)


def report_slopes(promises, reps):
    print("# memory: kinds, and coverage of the 95 % interval of the slope where it has one")
    for kind, n, rho, words, inside in slopes(reps):
        covered = f"coverage {inside:.3f}" if kind in {*LEAKS, *SETTLED} else ""
        print(f"{kind:14} n={n} rho={rho}: {share(words, reps)}  {covered}", flush=True)
        if kind not in LEAKS:
            promises.at_most(f"{kind} n={n} rho={rho}: called growing", words["growing"] / reps, 0.05, reps)
        elif n >= 600:
            promises.at_least(f"{kind} n={n} rho={rho}: called growing", words["growing"] / reps, 0.95, reps)
        if covered:
            promises.at_least(f"{kind} n={n} rho={rho}: coverage", inside, 0.93, reps)


def run_part(name, options):
    """Run one part of the report; return what it printed and the promises that broke."""
    real, promises, reps, said = real_series(options.runs), Promises(), options.reps, io.StringIO()
    with contextlib.redirect_stdout(said):
        if name == "pairs":
            report_pairs(promises, real, reps, options.only)
        elif name == "coverage":
            report_coverage(promises, 2 * reps)
        elif name == "changes":
            report_changes(promises, reps)
        elif name == "slopes":
            report_slopes(promises, max(reps // 2, 20))
        elif real:
            report_windows(promises, real, 5 * reps)
    return said.getvalue(), promises.broken


PARTS = ("pairs", "coverage", "changes", "slopes", "windows")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=100)
    parser.add_argument("--only", default="", help="settings of the ratio whose name contains this")
    parser.add_argument("--part", choices=PARTS, help="this part only")
    parser.add_argument("--runs", type=Path, default=Path("../shared/data/runs"))
    options = parser.parse_args()
    parts, broken = (options.part,) if options.part else PARTS, []
    with ProcessPoolExecutor(2) as pool:
        for said, failed in pool.map(run_part, parts, [options] * len(parts)):
            print(said, end="", flush=True)
            broken += failed
    print("\n".join(["# broken promises:", *broken]) if broken else "# every promise held")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
