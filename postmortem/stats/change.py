"""The steps at which the step time changed for good, and by how much."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtri

from postmortem.stats.medians import autocorrelation_time, exponential, order_ranks, spread
from postmortem.stats.warmup import warm_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

BIN = 30  # steps per bin, and
PENALTY = 4.0  # factor of sigma^2 ln k: both chosen on simulated series with heavy tails and stragglers
LEAST_BINS = 8
LEAST_SEGMENT = 5  # bins that a level must last
BAI = 11.03  # 95 % point of the change's location: Bai, Review of Economics and Statistics 79, 1997
LARGE = math.log(1.5)  # healthy stretches of ten steps were seen to differ by 1.4 times
CLEAR = math.log(1.03)  # smallest change that few steps can show, where they hardly scatter
SCATTERS = 3.0  # standard deviations of single steps that a change found from few steps must exceed
CERTAIN = 6.0  # steps under which the intervals must be as far apart as the levels
LEAST_STEPS = 5  # steps that a level must last to be found from few steps
PARTS = 10  # stretches whose medians show how much the level wanders by itself
PARTS_LEVEL = 0.8  # upper limit of that scatter which is believed: it comes from few stretches
BEYOND = 5.0  # standard errors, slow wandering included, that a change must exceed: its place was chosen
SWING = math.log(1.09)  # smaller changes come and go on machines that are shared: 8 % for 150 steps on average, ...
QUIET = 5.0  # standard deviations of single steps: a change this clear does not come from what makes steps scatter
LONG = 240  # ... where a run that switched once holds both levels this long by chance in 1 of 25
SHARP = 0.7  # part of a change that the 30 steps before and behind it must show: a run that wanders has no such edge


@dataclass(frozen=True)
class ChangePoint:
    """The first step of a new level (`index`), the levels, and the range that holds the step at 95 %.

    `transient`: levels come and go: a later one is back within the margin of the level before, or the level after
    was there before. `lasts`: the change is large, or both levels held so long that neighbours on a shared machine are
    no better explanation; a single small switch in a short run may be either.
    """

    index: int
    before: float
    after: float
    ratio: float
    low_index: int
    high_index: int
    transient: bool
    lasts: bool = True


def change_points(x: ArrayLike, *, margin: float = 0.03) -> list[ChangePoint]:
    """Find lasting changes of the typical value of `x` (positive, one per step); the warm-up is left out.

    Small changes need long series (medians of 30-step bins); large ones are found from few steps.
    `margin`: relative change that is worth a mention.
    """
    logs, least = _logs(x), math.log1p(margin)
    if not len(logs):
        return []
    start = warm_up(np.exp(logs))
    start = start if start < len(logs) else 0
    y = logs[start:]
    cuts = sorted({*_large_cuts(y, 0, len(y)), *_binned_cuts(y, least)})
    apart = _drop_weakest(y, _merge(y, cuts, least), _certainty, BEYOND)  # what slow wandering shows by itself goes
    found = describe(y, apart, least)
    return [
        replace(p, index=p.index + start, low_index=p.low_index + start, high_index=p.high_index + start) for p in found
    ]


def _logs(x: ArrayLike) -> Floats:
    """Return the logs; a step without a usable time takes the value of the step before."""
    values = np.asarray(x, dtype=np.float64).ravel()
    usable = np.isfinite(values) & (values > 0.0)
    if not usable.any():
        return np.zeros(0)
    places = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    return np.log(values[np.where(places < 0, np.argmax(usable), places)])


def optimal_partition(z: ArrayLike, penalty: float, least: int = 2) -> list[int]:
    """Return the first index of each segment but the first, minimising squared error + penalty per segment.

    Exact optimal partitioning (Jackson et al., IEEE Signal Processing Letters 12(2), 2005).
    """
    values = np.asarray(z, dtype=np.float64)
    k = len(values)
    sums, squares = np.r_[0.0, values.cumsum()], np.r_[0.0, (values**2).cumsum()]
    best, last = np.full(k + 1, np.inf), np.zeros(k + 1, dtype=int)
    best[0] = -penalty
    for end in range(least, k + 1):
        starts = np.arange(end - least + 1)
        cost = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        total = best[starts] + cost + penalty
        last[end] = int(np.argmin(total))
        best[end] = total[last[end]]
    cuts, end = [], k
    while end > 0:
        end = int(last[end])
        cuts.append(end)
    return sorted(cut for cut in cuts if cut > 0)


def _binned_cuts(y: Floats, margin: float) -> list[int]:
    size = max(BIN, math.ceil(3.0 * _local_time(y)))
    k = len(y) // size
    if k < LEAST_BINS:
        return []
    offset = len(y) - k * size
    bins = np.median(y[offset:].reshape(k, size), axis=1)
    sigma = spread(np.diff(bins)) / math.sqrt(2.0)
    cuts = optimal_partition(bins, max(PENALTY * sigma**2 * math.log(k), 1e-12))
    edges = [0, *cuts, k]
    kept = [
        cut
        for left, cut, right in zip(edges, cuts, edges[2:], strict=False)
        if min(cut - left, right - cut) >= LEAST_SEGMENT
        and abs(np.median(bins[cut:right]) - np.median(bins[left:cut])) >= margin
    ]
    return [_refine(y, offset + cut * size, size) for cut in kept]


def _local_time(y: Floats) -> float:
    """Return the autocorrelation time of {y <= median of its 100-step block}: a shift must not inflate it."""
    blocks = [y[start : start + 100] for start in range(0, len(y), 100)]
    return autocorrelation_time(np.concatenate([block <= np.median(block) for block in blocks])) if blocks else 1.0


def _refine(y: Floats, cut: int, reach: int) -> int:
    """Return the split near `cut` that is likeliest under a median before and after it (Laplace)."""
    low, high = max(cut - reach, 1), min(cut + reach, len(y) - 1)
    left, right = np.median(y[max(low - 2 * reach, 0) : low]), np.median(y[high : high + 2 * reach])
    gain = np.abs(y[low:high] - right) - np.abs(y[low:high] - left)
    return low + int(np.argmax(np.r_[0.0, gain.cumsum()]))


def _large_cuts(y: Floats, start: int, end: int) -> list[int]:
    """Split y[start:end] again and again where few steps suffice to show a change."""
    part = y[start:end]
    cut = _best_split(part)
    if cut is None or not _clear(part[:cut], part[cut:]):
        return []
    middle = start + cut
    return [*_large_cuts(y, start, middle), middle, *_large_cuts(y, middle, end)]


def _best_split(part: Floats) -> int | None:
    """Return the likeliest single split: largest sum of ranks (Pettitt), then the likeliest step around it."""
    n = len(part)
    if n < 2 * LEAST_STEPS:
        return None
    ranks = np.empty(n)
    ranks[np.argsort(part, kind="stable")] = np.arange(1, n + 1)
    rise = np.abs(2.0 * ranks.cumsum()[:-1] - np.arange(1, n) * (n + 1))
    weight = np.sqrt(np.arange(1, n) * np.arange(n - 1, 0, -1.0))
    rough = int(np.argmax((rise / weight)[LEAST_STEPS - 1 : n - LEAST_STEPS])) + LEAST_STEPS
    left, right = np.median(part[:rough]), np.median(part[rough:])
    gain = np.abs(part - right) - np.abs(part - left)
    return int(np.argmax(np.r_[-np.inf, gain.cumsum()[:-1]][LEAST_STEPS : n - LEAST_STEPS + 1])) + LEAST_STEPS


def _clear(left: Floats, right: Floats) -> bool:
    """Tell whether two stretches differ far beyond their scatter, by exact order-statistic intervals."""
    ranks = order_ranks(len(left), 0.9), order_ranks(len(right), 0.9)
    if ranks[0] is None or ranks[1] is None:
        return False
    a, b = np.sort(left), np.sort(right)
    scatter = max(spread(a), spread(b))
    wanted = max(CLEAR, min(LARGE, SCATTERS * scatter))
    shift = abs(float(np.median(b) - np.median(a)))
    up, down = b[ranks[1][0] - 1] - a[ranks[0][1] - 1], a[ranks[0][0] - 1] - b[ranks[1][1] - 1]
    gap = wanted * min(1.0, CERTAIN / min(len(a), len(b)))  # the split was chosen, and steps depend on each other
    return shift >= wanted and max(float(up), float(down)) >= gap


def _merge(y: Floats, cuts: list[int], margin: float) -> list[int]:
    """Drop cuts whose levels do not differ by the margin, smallest difference first."""
    cuts = [cut for place, cut in enumerate(cuts) if not place or cut - cuts[place - 1] >= LEAST_STEPS]
    return _drop_weakest(y, cuts, _shift, margin)


def _drop_weakest(y: Floats, cuts: list[int], strength: Callable[[Floats, Floats], float], least: float) -> list[int]:
    """Drop the weakest cut, by the stretches on its two sides, until all that are left have the least strength."""
    while cuts:
        edges = [0, *cuts, len(y)]
        strengths = [strength(y[a:b], y[b:c]) for a, b, c in zip(edges, cuts, edges[2:], strict=False)]
        weakest = int(np.argmin(strengths))
        if strengths[weakest] >= least:
            break
        del cuts[weakest]
    return cuts


def _shift(left: Floats, right: Floats) -> float:
    return abs(float(np.median(right) - np.median(left)))


def _certainty(left: Floats, right: Floats) -> float:
    """Return the shift of the median in standard errors that hold under slow wandering.

    The long-run variance is that of medians of stretches around their own level (batch means: Schmeiser,
    Operations Research 30(3), 1982), at its upper limit: single steps tell nothing of slow changes.
    """
    size = max((len(left) + len(right)) // PARTS, 1)
    parts = [np.median(side[len(side) % size :].reshape(-1, size), axis=1) for side in (left, right)]
    rest = np.concatenate([part - part.mean() for part in parts if len(part)])
    freedom = max(len(rest) - 2, 1)
    variance = size * float(rest @ rest) / float(chdtri(freedom, PARTS_LEVEL))
    error = math.sqrt(variance * (1.0 / len(left) + 1.0 / len(right)))
    return _shift(left, right) / error if error > 0.0 else math.inf


def describe(y: Floats, cuts: list[int], margin: float) -> list[ChangePoint]:
    """Return the change points of the log series `y` at `cuts`, with levels, location ranges and persistence."""
    edges = [0, *cuts, len(y)]
    levels = [float(np.median(y[a:b])) for a, b in pairwise(edges)]
    points = []
    for place, cut in enumerate(cuts):
        low, high = location_interval(y[edges[place] : cut], y[cut : edges[place + 2]])
        point = ChangePoint(
            index=cut,
            before=math.exp(levels[place]),
            after=math.exp(levels[place + 1]),
            ratio=exponential(levels[place + 1] - levels[place]),
            low_index=cut + low,
            high_index=cut + high,
            transient=False,
            lasts=_lasts(y[edges[place] : cut], y[cut : edges[place + 2]]),
        )
        back = any(abs(level - levels[place]) < margin for level in levels[place + 2 :])
        again = any(abs(level - levels[place + 1]) < margin for level in levels[:place])
        points.append(replace(point, transient=back or again))
    return points


def _lasts(left: Floats, right: Floats) -> bool:
    """Tell whether two neighbouring levels are more than the swings and the wandering of a shared machine."""
    shift, edge = _shift(left, right), _shift(left[-BIN:], right[:BIN])
    clear = min(SWING, QUIET * max(spread(left), spread(right)))
    return shift >= LARGE or (edge >= SHARP * shift and (shift >= clear or min(len(left), len(right)) >= LONG))


def location_interval(left: ArrayLike, right: ArrayLike) -> tuple[int, int]:
    """Return the 95 % range of a change's place relative to it: k +- floor(11.03 s^2 / d^2) + 1 (Bai 1997)."""
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    d = float(np.mean(b) - np.mean(a))
    rest = np.concatenate([a - a.mean(), b - b.mean()])
    scale = float(rest @ rest) / max(len(rest), 1)
    reach = int(min(BAI * scale / d**2, len(rest))) + 1 if d else len(rest)
    return -min(reach, len(a)), min(reach, len(b) - 1)
