"""How long a typical step takes, and how much longer after than before.

One value is one step of the job (the maximum over its ranks: ranks wait for each other, so they are no
independent observations). Steps of one run depend on each other, so the number of steps is replaced by an
effective number; intervals have a closed form, so the same input gives the same report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr, chdtri, stdtrit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

ENOUGH = 30.0  # effective steps under which the normal approximation of a quantile's rank is not trusted
WANDER_LEVEL = 0.8  # healthy runs of one job are told apart in 1 of 100 at 0.8, in 4 of 100 at 0.5
STRETCH = 50  # steps within which the level is taken to stand still
BATCHES = 10  # batch means: Schmeiser, Operations Research 30(3), 1982, finds little gain beyond 10 to 30


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; `n_eff` is the number of independent steps it is worth."""

    estimate: float
    low: float
    high: float
    n: int
    n_eff: float


def finite(x: ArrayLike) -> Floats:
    """Return the finite values of `x` as a flat array of doubles."""
    values = np.asarray(x, dtype=np.float64).ravel()
    return values[np.isfinite(values)]


def autocorrelation_time(x: ArrayLike) -> float:
    """Return tau = 1 + 2 * sum of autocorrelations of the series `x`, at least 1.

    The sum ends by Geyer's initial monotone sequence (Statistical Science 7(4), 1992): sums of neighbouring
    pairs are taken while they are positive, each no larger than the one before.
    """
    values = np.asarray(x, dtype=np.float64)
    n = len(values)
    centred = values - values.mean() if n else values
    power = float(centred @ centred)
    if n < 4 or power <= 0.0:
        return 1.0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    rho = np.fft.irfft(spectrum * spectrum.conj(), size)[:n] / power
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    return max(1.0, 2.0 * float(pairs.sum()) - 1.0)


def effective_size(x: ArrayLike) -> float:
    """Return how many independent steps the median of `x` is worth.

    The dependence that matters for a median is that of the indicator {x <= median}: on the values
    themselves, spikes dominate the variance and hide the dependence.
    """
    values = finite(x)
    if not len(values):
        return 0.0
    return len(values) / autocorrelation_time(values <= np.median(values))


def order_ranks(n: int, level: float) -> tuple[int, int] | None:
    """Return the ranks (from 1) of the exact order-statistic interval of a median, or None if n is too small."""
    tail = (1.0 - level) / 2.0
    if n < 1 or 0.5**n > tail:
        return None
    below = int(np.flatnonzero(bdtr(np.arange(n // 2 + 1), n, 0.5) <= tail)[-1]) + 1
    return below, n + 1 - below


def median_interval(x: ArrayLike, level: float = 0.95, *, logarithmic: bool = True) -> Interval:
    """Return the median of `x` and its interval, in the unit of `x`.

    With 30 effective steps or more: the quantiles at 1/2 +- z / (2 sqrt(n_eff)). With fewer: the exact
    order-statistic interval of as many independent steps, and (-inf, inf) where even the extremes do not
    reach the level. Values are interpolated on the log scale where all are positive and `logarithmic` is set.
    """
    values = np.sort(finite(x))
    n, n_eff = len(values), effective_size(x)
    if not n:
        return Interval(math.nan, -math.inf, math.inf, 0, 0.0)
    positive = logarithmic and bool(values[0] > 0.0)
    middle = float(np.median(np.log(values) if positive else values))
    low, high = _quantile_limits(np.log(values) if positive else values, n_eff, level)
    if positive:
        middle, low, high = math.exp(middle), math.exp(low), math.exp(high)  # exp(-inf) is 0
    return Interval(middle, low, high, n, n_eff)


def quantile_interval(x: ArrayLike, q: float, level: float = 0.95) -> Interval:
    """Return the quantile `q` of `x` with its order-statistic interval; dependence as for the median.

    A limit is infinite where no value stands for it: the 99 % quantile of few steps has no upper limit.
    """
    values = np.sort(finite(x))
    n = len(values)
    if not n:
        return Interval(math.nan, -math.inf, math.inf, 0, 0.0)
    estimate = float(np.quantile(values, q))
    time = autocorrelation_time(finite(x) <= estimate)
    tail, size = (1.0 - level) / 2.0, max(int(n / time), 1)
    chances = bdtr(np.arange(size + 1), size, q)
    below, above = int(np.searchsorted(chances, tail)), int(np.searchsorted(chances, 1.0 - tail)) + 1
    low = float(values[min(int((below - 1) / size * n), n - 1)]) if below >= 1 else -math.inf
    high = float(values[min(int((above - 1) / size * n), n - 1)]) if above <= size else math.inf
    return Interval(estimate, low, high, n, n / time)


def _quantile_limits(ordered: Floats, n_eff: float, level: float) -> tuple[float, float]:
    if n_eff >= ENOUGH:
        half = NormalDist().inv_cdf(0.5 + level / 2.0) / (2.0 * math.sqrt(n_eff))
        low, high = np.quantile(ordered, [0.5 - half, 0.5 + half])
        return float(low), float(high)
    ranks = order_ranks(int(n_eff), level)
    if ranks is None:
        return -math.inf, math.inf
    edge = (ranks[0] - 1) / int(n_eff) * len(ordered)  # the same share of the steps in each tail
    position = min(math.floor(edge), (len(ordered) - 1) // 2)
    return float(ordered[position]), float(ordered[len(ordered) - 1 - position])


@dataclass(frozen=True)
class Ratio:
    """Typical step time after / before with its interval, run-to-run noise included.

    `inner_low`, `inner_high`: the interval of these two runs alone. `batch_low`, `batch_high`: cross-check by
    batch medians (NaN with fewer than 40 steps a side). `run_noise`: relative standard deviation between runs
    that was assumed; `wander`: what slow changes within the runs may amount to, the larger of both sides (a run
    that wanders differs at least as much from the next one); the larger of the two widened the interval.
    `spread`: standard deviation of single steps in logs, the larger of both sides.
    """

    ratio: float
    low: float
    high: float
    n_before: int
    n_after: int
    n_eff_before: float
    n_eff_after: float
    level: float
    run_noise: float
    wander: float
    inner_low: float
    inner_high: float
    batch_low: float
    batch_high: float
    spread: float


def ratio_of_medians(before: ArrayLike, after: ArrayLike, *, level: float = 0.90, run_noise: float = 0.01) -> Ratio:
    """Compare two runs' steady steps (positive values of one unit): median after / median before.

    Interval by MOVER (Zou and Donner, Statistics in Medicine 27, 2008) on the logs of the medians, widened
    by the noise between runs of the same job, which no number of steps shows.
    """
    a, b = finite(before), finite(after)
    a, b = a[a > 0.0], b[b > 0.0]
    left, right = median_interval(a, level), median_interval(b, level)
    if not len(a) or not len(b):
        return _no_ratio(left, right, level, run_noise)
    d = math.log(right.estimate) - math.log(left.estimate)
    down = math.hypot(_gap(right.low, right.estimate), _gap(left.estimate, left.high))
    up = math.hypot(_gap(right.estimate, right.high), _gap(left.low, left.estimate))
    slow = max(wander(np.log(a)), wander(np.log(b)))
    noise = math.sqrt(2.0) * NormalDist().inv_cdf(0.5 + level / 2.0) * max(run_noise, slow)
    batch = _batch_interval(np.log(a), np.log(b), level)
    return Ratio(
        ratio=exponential(d),
        low=exponential(d - math.hypot(down, noise)),
        high=exponential(d + math.hypot(up, noise)),
        n_before=len(a),
        n_after=len(b),
        n_eff_before=left.n_eff,
        n_eff_after=right.n_eff,
        level=level,
        run_noise=run_noise,
        wander=slow,
        inner_low=exponential(d - down),
        inner_high=exponential(d + up),
        batch_low=exponential(batch[0]),
        batch_high=exponential(batch[1]),
        spread=max(spread(np.log(a)), spread(np.log(b))),
    )


def _no_ratio(left: Interval, right: Interval, level: float, run_noise: float) -> Ratio:
    nan = math.nan
    sizes = (left.n, right.n, left.n_eff, right.n_eff)
    return Ratio(nan, 0.0, math.inf, *sizes, level, run_noise, 0.0, 0.0, math.inf, nan, nan, nan)


def exponential(value: float) -> float:
    """Return e to the power of `value`, infinite where a double cannot hold it."""
    return math.exp(value) if not value > 709.0 else math.inf


def _gap(low: float, high: float) -> float:
    """Return the distance of two positive values on the log scale; infinite where one limit is unknown."""
    return math.log(high) - math.log(low) if low > 0.0 and math.isfinite(high) else math.inf


def _batch_interval(a: Floats, b: Floats, level: float) -> tuple[float, float]:
    """Return Welch's interval of the difference of batch medians, or NaN where batches are too short."""
    if min(len(a), len(b)) < 4 * BATCHES:
        return math.nan, math.nan
    left, right = (np.array([np.median(part) for part in np.array_split(y, BATCHES)]) for y in (a, b))
    d = float(right.mean() - left.mean())
    va, vb = left.var(ddof=1) / BATCHES, right.var(ddof=1) / BATCHES
    if va + vb <= 0.0:
        return d, d
    freedom = (va + vb) ** 2 * (BATCHES - 1) / (va**2 + vb**2)
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * math.sqrt(va + vb)
    return d - half, d + half


def neighbour_correlation(y: ArrayLike) -> float:
    """Return the correlation of neighbouring values of `y` within stretches, slow changes left out, 0 to 0.99.

    From how often neighbours lie on the same side of their stretch's median, as if the series were a Gaussian
    AR(1) process, whose indicator has the correlations (2 / pi) asin(rho^k).
    """
    values = finite(y)
    if len(values) < 8:
        return 0.0
    count = max(1, len(values) // STRETCH)
    parts = [part <= np.median(part) for part in np.array_split(values, count)]
    agree = float(np.mean(np.concatenate([part[1:] == part[:-1] for part in parts])))
    size = len(values) / count
    neighbours = min((2.0 * agree - 1.0 + 1.0 / size) / (1.0 - 3.0 / size), 0.99)
    return math.sin(math.pi / 2.0 * max(neighbours, 0.0))


def short_range_time(y: ArrayLike) -> float:
    """Return the autocorrelation time of {y <= median} that the correlation of neighbours explains."""
    rho = neighbour_correlation(y)
    powers = rho ** np.arange(1, 1 + math.ceil(-20.0 / math.log(rho)) if rho > 1e-9 else 1)
    return 1.0 + 4.0 / math.pi * float(np.arcsin(powers).sum())


def wander(y: ArrayLike) -> float:
    """Return the standard deviation of slow changes of the level of `y` that cannot be ruled out.

    Upper 80 % limit of the scatter of batch medians, less what single steps, which depend on each other,
    explain. A series too short for batches may wander by three tenths of the scatter of its steps.
    """
    values = finite(y)
    if len(values) < 4 * BATCHES:
        return 0.3 * spread(values) if len(values) else 0.0
    parts = np.array_split(values, BATCHES)
    rest = np.concatenate([part - np.median(part) for part in parts])
    explained = math.pi / 2.0 * spread(rest) ** 2 * short_range_time(values) * BATCHES / len(values)
    seen = float(np.var([np.median(part) for part in parts], ddof=1))
    limit = seen * (BATCHES - 1) / float(chdtri(BATCHES - 1, WANDER_LEVEL))
    return math.sqrt(max(limit - explained, 0.0))


def spread(y: ArrayLike) -> float:
    """Return the standard deviation of `y` as its median absolute deviation tells it."""
    values = finite(y)
    return 1.4826 * float(np.median(np.abs(values - np.median(values)))) if len(values) else math.nan


def ratio_of_run_medians(before: ArrayLike, after: ArrayLike, *, level: float = 0.90) -> Interval:
    """Compare several runs a side by their medians (one positive value per run, two or more each): Welch's t.

    Returns the ratio after / before of the geometric means; n counts runs. The run is the independent unit,
    so no noise between runs has to be assumed.
    """
    a, b = np.log(finite(before)), np.log(finite(after))
    d = float(b.mean() - a.mean())
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if va + vb <= 0.0:
        return Interval(math.exp(d), math.exp(d), math.exp(d), len(a) + len(b), float(len(a) + len(b)))
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = float(stdtrit(freedom, 0.5 + level / 2.0)) * math.sqrt(va + vb)
    return Interval(math.exp(d), math.exp(d - half), math.exp(d + half), len(a) + len(b), freedom + 2.0)


def run_noise(medians: ArrayLike) -> Interval:
    """Return the standard deviation between healthy runs in logs, with its 90 % interval (chi-square).

    `medians`: typical step time of each run, two or more.
    """
    y = np.log(finite(medians))
    freedom = len(y) - 1
    if freedom < 1:
        return Interval(math.nan, 0.0, math.inf, len(y), float(len(y)))
    sd = float(y.std(ddof=1))
    low, high = (sd * math.sqrt(freedom / float(chdtri(freedom, tail))) for tail in (0.05, 0.95))
    return Interval(sd, low, high, len(y), float(len(y)))
