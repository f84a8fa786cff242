"""Our intervals and change points beside those of statsmodels, arch and ruptures, on the same made-up series.

    python benchmarks/compare_statistics.py --peer PYTHON [--reps 20]

PYTHON is an interpreter with those three packages; the product does without them. Compared: the slope of memory with
OLS and Newey-West errors, the ratio of medians with a stationary bootstrap (block length of the indicator of the median),
change points with PELT on medians of 30 steps. Prints coverage of both, the ratio of widths and how often they overlap.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 (the peers and the product are imported by different interpreters)
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N, TRUE_RATIO = 600, 1.05


def slope(y):
    """Newey-West: OLS with heteroskedasticity and autocorrelation consistent errors."""
    import statsmodels.api as sm

    design = sm.add_constant(np.arange(len(y)))
    found = sm.OLS(y, design).fit(cov_type="HAC", cov_kwds={"maxlags": round(len(y) ** 0.5)})
    return [found.params[1], *found.conf_int()[1]]


def ratio(pair):
    """Politis and Romano's stationary bootstrap of both medians."""
    from arch.bootstrap import StationaryBootstrap, optimal_block_length

    drawn, middles = [], []
    for seed, y in enumerate(np.log(pair)):
        length = float(optimal_block_length((y <= np.median(y)).astype(float)).stationary.iloc[0])
        boot = StationaryBootstrap(max(length, 1.0), y, seed=seed).bootstrap(400)
        drawn.append(np.array([np.median(data[0][0]) for data in boot]))
        middles.append(np.median(y))
    limits = np.quantile(drawn[1] - drawn[0], [0.025, 0.975])
    return np.exp([middles[1] - middles[0], *limits]).tolist()


def changes(x):
    """PELT with squared error on medians of 30 steps."""
    import ruptures

    y, size = np.log(x), 30
    offset = len(y) % size
    bins = np.median(y[offset:].reshape(-1, size), axis=1)
    jumps = np.diff(bins)
    sigma = 1.4826 * np.median(np.abs(jumps - np.median(jumps))) / math.sqrt(2)
    found = ruptures.Pelt("l2", min_size=5, jump=1).fit(bins).predict(4 * sigma**2 * math.log(len(bins)))
    return [offset + size * cut for cut in found[:-1]]


def as_peer(file):
    peers = {"slope": slope, "ratio": ratio, "changes": changes}
    series = np.load(file)
    print(json.dumps({name: peers[name.split()[0]](series[name]) for name in series.files}))


def ours(reps):
    """Return series and our answers, by name."""
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    from simulate_verdicts import memory, simulated

    from postmortem import stats

    series, found = {}, {}
    for rho in (0.0, 0.5, 0.8):
        for number in range(reps):
            rng = np.random.default_rng([number, round(10 * rho)])
            for kind in ("flat", "leak"):
                x = memory(kind, rng, N, rho)
                grown = stats.growth(x)
                name = f"slope {kind} rho={rho} {number}"
                series[name], found[name] = x[N // 2 :], [grown.slope, grown.low, grown.high]
            pair = np.array([simulated(rng, N, rho), simulated(rng, N, rho) * TRUE_RATIO])
            told = stats.ratio_of_medians(*pair, level=0.95)
            name = f"ratio of_medians rho={rho} {number}"
            series[name], found[name] = pair, [told.ratio, told.inner_low, told.inner_high]
            for kind, factor in (("none", 1.0), ("tenth", 1.1)):
                x = simulated(rng, 900, rho)
                x[450:] *= factor
                name = f"changes {kind} rho={rho} {number}"
                series[name], found[name] = x, [point.index for point in stats.change_points(x)]
    return series, found


def report(found, peer):
    truths = {"slope flat": 0.0, "slope leak": 1e6, "ratio of_medians": TRUE_RATIO}
    for setting in sorted({name.rsplit(" ", 1)[0] for name in found}):
        names = [name for name in found if name.rsplit(" ", 1)[0] == setting]
        if setting.startswith("changes"):
            hits = [sum(any(abs(i - 450) <= 30 for i in side[name]) for name in names) for side in (found, peer)]
            told = [sum(bool(side[name]) for name in names) for side in (found, peer)]
            print(
                f"{setting:28} of {len(names)}: any point ours {told[0]}, PELT {told[1]}; at 450 +- 30 ours {hits[0]}, PELT {hits[1]}"
            )
            continue
        truth = truths[setting.rsplit(" ", 1)[0]]
        cover = [np.mean([side[name][1] <= truth <= side[name][2] for name in names]) for side in (found, peer)]
        widths = np.median([(found[n][2] - found[n][1]) / (peer[n][2] - peer[n][1]) for n in names])
        overlap = np.mean([found[n][1] <= peer[n][2] and peer[n][1] <= found[n][2] for n in names])
        print(
            f"{setting:28} of {len(names)}: coverage ours {cover[0]:.2f}, peer {cover[1]:.2f}; width ours / peer {widths:.2f}; overlap {overlap:.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python with statsmodels, arch and ruptures")
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--as-peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_peer:
        return as_peer(options.as_peer)
    if not options.peer:
        print("Left out: --peer names no Python with statsmodels, arch and ruptures.")
        return None
    series, found = ours(options.reps)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "series.npz"
        np.savez(file, **series)
        done = subprocess.run([options.peer, __file__, "--as-peer", file], check=True, stdout=subprocess.PIPE)
    return report(found, json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
