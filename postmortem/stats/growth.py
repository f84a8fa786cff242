"""Whether memory grows with every step, only stepped up, or cannot be told.

Every trend test calls a step, a plateau after warm-up or a sawtooth "increasing"; so a leak is claimed only
where the lower envelope still rises in the last half without its largest jump, and no slower than before: what
fills up slowly (a cache, a logarithm, a square root) rises to the end as well, but a forecast from it is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import stdtrit

from postmortem.stats.medians import Interval, neighbour_correlation, spread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

WINDOWS = 24  # per series, so that twelve envelope points carry the slope
LEAST_WINDOW = 5
LEAST_WINDOWS = 8
SHORT = 100  # steps under which windows are too few and the steps themselves are looked at
LEAST_STEPS = 20  # steps that a noisy short series must have
EXACT_STEPS = 8  # steps that a series must have whose increments are all alike; a profiler grows memory for five
PERIODIC = 0.3  # autocorrelation at a lag that counts as a period
RELEVANT = 0.02  # share of the level (or of the headroom) that growth over the horizon must reach
ALIKE = 0.25  # part of a typical increment by which increments may differ and still be alike
OUTLYING = 6.0  # robust standard deviations by which a jump between windows is a step of its own
GIVEN_BACK = 0.3  # part of the rise that a fall between windows must reach to count as given back
# The start that is left out (a half, fourth, ...) and the part of its first slope that the second half of the rest must
# keep: the square root of time keeps 0.63 behind an eighth, 0.72 behind a quarter, 0.84 behind a half.
LINEAR = ((8, 0.66), (4, 0.75), (2, 0.87))
GIVEN = "it rises, but was given back before"
SLOWING = "it rises, but is not shown to rise as fast as before"
SHORT_OF_WINDOWS = "too few steps for its period"
PAGES = 65536.0  # bytes per step: allocators creep by pages without leaking


@dataclass(frozen=True)
class Growth:
    """Slope per step with its interval, and what it means.

    `noise`: standard deviation of single values around the trend. `largest_jump`: between neighbouring
    windows. `rise`: from the first to the last window. Slopes of both halves tell linear growth from slowing.
    """

    kind: Literal["growing", "flat", "undecided"]
    slope: float
    low: float
    high: float
    n: int
    noise: float
    first_half_slope: float
    second_half_slope: float
    largest_jump: float
    rise: float
    why: str


def sen_slope(t: ArrayLike, y: ArrayLike, level: float = 0.95, *, split: int = 0) -> tuple[float, float, float]:
    """Return the Theil-Sen slope of `y` over `t` with its interval (Sen, JASA 63, 1968).

    `split`: index of a step in level; only pairs on one side of it are compared, and the variances of both
    sides' Kendall scores add up.
    """
    times, values = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(values)
    left, right = np.triu_indices(n, 1)
    run = times[right] - times[left]
    used = (run > 0.0) & ((left < split) == (right < split))
    slopes = np.sort((values[right] - values[left])[used] / run[used])
    if not len(slopes):
        return math.nan, -math.inf, math.inf
    variance = _kendall_variance(values[:split]) + _kendall_variance(values[split:])
    reach = NormalDist().inv_cdf(0.5 + level / 2.0) * math.sqrt(variance)
    low, high = round((len(slopes) - reach) / 2.0), round((len(slopes) + reach) / 2.0)
    return float(np.median(slopes)), float(slopes[max(low - 1, 0)]), float(slopes[min(high, len(slopes) - 1)])


def _kendall_variance(values: Floats) -> float:
    """Return the variance of Kendall's score of `values` without a trend, ties taken into account."""
    n, ties = len(values), np.unique(values, return_counts=True)[1]
    pairs = n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    return max(pairs, 0.0) / 18.0


def period(x: ArrayLike) -> int:
    """Return the period of `x` in steps after its trend is removed, or 0 where there is none."""
    values = np.asarray(x, dtype=np.float64)
    n = len(values)
    t = np.arange(n) - (n - 1) / 2.0
    rest = values - values.mean()
    rest = rest - t * float(t @ rest) / float(t @ t)
    power = float(rest @ rest)
    if n < 16 or power <= 0.0:
        return 0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(rest, size)
    acf = np.fft.irfft(spectrum * spectrum.conj(), size)[: n // 2] / power
    below = np.flatnonzero(acf < 0.0)
    if not len(below):
        return 0
    lag = int(below[0]) + int(np.argmax(acf[below[0] :]))
    return lag if acf[lag] > PERIODIC else 0


def growth(
    x: ArrayLike,
    *,
    floor: float = PAGES,
    horizon: float | None = None,
    headroom: float | None = None,
    window: int | None = None,
    level: float = 0.95,
) -> Growth:
    """Judge whether the series `x` (one value per step, for example bytes) grows.

    `floor`: slope per step that is not worth a mention, unless it adds up to 2 % of the level. `horizon`:
    steps that the run still has to last (default: as many as seen). `headroom`: what is left (default: the
    level). `window`: steps per window, found from the series by default.
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    n = len(values)
    if n < SHORT and window is None:
        return _short(values, floor, level)
    length = period(values)
    width = window or _whole_periods(max(math.ceil(n / WINDOWS), LEAST_WINDOW), length)
    count = n // width
    if count < LEAST_WINDOWS:
        return _summary(values, 1, values, _slope(values[n // 2 :], 1, values, level), "undecided", SHORT_OF_WINDOWS)
    lower = np.quantile(values[n - count * width :].reshape(count, width), 0.05, axis=1)
    tail, end, calm = lower[count // 2 :], lower[count * 3 // 4 :], _without_period(values, length)
    slope, low, high = _slope(tail, width, calm, level, _outlying_jump(tail))
    least = _least_slope(values, floor)
    still = _slope(_without_largest_jump(tail), width, calm, level)[1], _slope(end, width, calm, 0.9)[1]
    given_back = -float(np.diff(lower).min()) > GIVEN_BACK * (tail[-1] - tail[0])
    summary = partial(_summary, lower, width, values, (slope, low, high))
    if low > least and min(still) > 0.0:
        doubt = GIVEN if given_back or _was_higher(values, width, lower, tail) else _slows(lower, width, calm)
        return summary("undecided" if doubt else "growing", doubt or "the lower envelope rises to the end")
    room = RELEVANT * (headroom if headroom is not None else abs(float(np.median(values))))
    if low <= least and (high <= least or high * (horizon if horizon is not None else n) < room):
        return summary("flat", "growth over the horizon is too small to matter")
    rose = slope > least
    return summary("undecided", "it rose, but is not shown to go on" if rose else "the slope is too uncertain")


def _slope(points: Floats, width: int, values: Floats, level: float, split: int = 0) -> tuple[float, float, float]:
    """Return slope and interval of window values, widened for what dependent steps add between windows.

    The variance of means of `width` steps of an AR(1) process, and of neighbouring means together, are known
    in closed form; the interval grows by the root of their ratio, which is (1 + r) / (1 - r) for single steps,
    and by Student's t for the few independent steps that are left.
    """
    slope, low, high = sen_slope(np.arange(len(points)) * float(width), points, level, split=split)
    if not math.isfinite(slope):
        return slope, low, high
    wider = _wider(values, width, len(points), slope)
    freedom, most = max(len(points) / wider**2 - 2.0, 3.0), max(len(points) - 2.0, 3.0)
    wider *= float(stdtrit(freedom, 0.5 + level / 2.0) / stdtrit(most, 0.5 + level / 2.0))
    return slope, slope - (slope - low) * wider, slope + (high - slope) * wider


def _slows(points: Floats, width: int, values: Floats) -> str:
    """Return a doubt unless the second half of what follows the start is shown to rise no slower than the first."""
    shown = any(_margin(points[len(points) // part :], width, values, least) > 0.0 for part, least in LINEAR)
    return "" if shown else SLOWING


def _margin(points: Floats, width: int, values: Floats, share: float) -> float:
    """Return the lower 97.5 % limit of (slope of the second half - share * slope of the first), from a parabola.

    A step that stands out has a term of its own; dependent steps widen the interval as in `_slope`.
    """
    t, jump = np.linspace(-1.0, 1.0, len(points)), _outlying_jump(points)
    columns = [np.ones_like(t), t, t**2, *([t >= t[jump]] if jump else [])]
    design, freedom = np.column_stack(columns).astype(np.float64), len(points) - len(columns)
    if freedom < 2:
        return -math.inf
    inverse = np.linalg.pinv(design)
    found = inverse @ points
    rest = points - design @ found
    weights = np.zeros(len(columns))
    weights[1:3] = 1.0 - share, 1.0 + share  # slopes at the middles of both halves are b - c and b + c
    wider = _wider(values, width, len(points), float(points[-1] - points[0]) / (len(points) - 1) / width)
    error = math.sqrt(float(rest @ rest) / freedom) * float(np.linalg.norm(weights @ inverse)) * wider
    return float(weights @ found) - float(stdtrit(max(freedom / wider**2, 2.0), 0.975)) * error


def _wider(values: Floats, width: int, count: int, slope: float) -> float:
    """Return by how much what dependent steps add between the last `count` windows widens an interval."""
    part = values[len(values) - count * width :]
    r = min(neighbour_correlation(part - slope * np.arange(len(part))), max(1.0 - 3.0 / len(part), 0.0))
    return 1.0 / math.sqrt(max(1.0 - 2.0 * r * (1.0 - r**width) / (width * (1.0 - r**2)), 1e-3))


def _was_higher(values: Floats, width: int, lower: Floats, tail: Floats) -> bool:
    """Tell whether the first window held a level for some steps that the last one has not clearly passed."""
    first = values[: len(values) - (len(lower) - 1) * width]
    size = min(LEAST_WINDOW, len(first))
    held = np.median(np.lib.stride_tricks.sliding_window_view(first, size), axis=1).max()
    return bool(held > np.quantile(values[-width:], 0.9) - GIVEN_BACK * (tail[-1] - tail[0]))


def _least_slope(values: Floats, floor: float) -> float:
    return min(floor, RELEVANT * abs(float(np.median(values))) / max(len(values), 1))


def _whole_periods(width: int, length: int) -> int:
    """Round a window up to whole periods: the envelope must not depend on where in a period it begins."""
    return math.ceil(width / length) * length if length else width


def _without_period(values: Floats, length: int) -> Floats:
    """Return `values` less the typical course of a period: within whole periods it is no scatter."""
    if not length:
        return values
    t = np.arange(len(values))
    rest = values - np.polyval(np.polyfit(t, values, 1), t)
    course = np.array([np.median(rest[phase::length]) for phase in range(length)])
    return np.asarray(values - course[t % length])


def _outlying_jump(points: Floats) -> int:
    """Return the index behind a jump that stands out among all jumps: a step in level, not part of the slope."""
    jumps = np.diff(points)
    rest = np.abs(jumps - np.median(jumps)) if len(jumps) else jumps
    if len(jumps) < 4 or rest.max() <= OUTLYING * 1.4826 * np.median(rest):
        return 0
    return int(np.argmax(rest)) + 1


def _without_largest_jump(points: Floats) -> Floats:
    steps = np.diff(points)
    if not len(steps):
        return points
    steps[np.argmax(steps)] = np.median(steps)
    return np.asarray(np.r_[points[0], points[0] + steps.cumsum()])


def _summary(
    points: Floats,
    width: int,
    values: Floats,
    trend: tuple[float, float, float],
    kind: Literal["growing", "flat", "undecided"],
    why: str,
) -> Growth:
    """Describe the trend of `points`, one per `width` steps of `values`."""
    half = len(points) // 2
    jumps = np.diff(points)
    slope, low, high = trend
    return Growth(
        kind=kind,
        slope=slope,
        low=low,
        high=high,
        n=len(values),
        noise=spread(values - slope * np.arange(len(values))),
        first_half_slope=sen_slope(np.arange(half) * float(width), points[:half])[0],
        second_half_slope=sen_slope(np.arange(len(points) - half) * float(width), points[half:])[0],
        largest_jump=float(jumps[np.argmax(np.abs(jumps))]) if len(jumps) else math.nan,
        rise=float(points[-1] - points[0]) if len(points) else math.nan,
        why=why,
    )


def _short(values: Floats, floor: float, level: float) -> Growth:
    """Judge a short series by its single steps; the first is left out (allocators fill up)."""
    rest = values[1:]
    tail = rest[len(rest) // 2 :]
    slope, low, high = _slope(tail, 1, rest, level, _outlying_jump(tail))
    summary = partial(_summary, rest, 1, values, (slope, low, high))
    if len(rest) < EXACT_STEPS:
        return summary("undecided", "too few steps")
    least, steps = _least_slope(rest, floor), np.diff(rest)
    typical = float(np.median(steps))
    if typical > least and bool(np.all(np.abs(steps - typical) <= ALIKE * typical)):
        return summary("growing", "every step adds as much")
    if len(values) < LEAST_STEPS:
        return summary("undecided", "too few steps")
    climbs, room = low > least and _climbs(rest, slope), RELEVANT * abs(float(np.median(values)))
    if climbs and low * len(values) > room:
        doubt = _slows(rest, 1, rest)
        return summary("undecided" if doubt else "growing", doubt or "it rises in every quarter, to the end")
    if low <= least and (high <= least or high * len(values) < room):
        return summary("flat", "growth in the last half is too small to matter")
    return summary("undecided", "it rose, but is not shown to go on")


def _climbs(rest: Floats, slope: float) -> bool:
    """Tell whether each of the last three quarters rises by itself and lies above the one before."""
    quarters = np.array_split(_without_largest_jump(rest), 4)
    levels = [float(np.median(part)) for part in quarters]
    slopes = [sen_slope(np.arange(len(part)), part)[0] for part in quarters[1:]]
    return bool(np.all(np.diff(levels) > 0.0)) and min(slopes) > ALIKE * slope


def time_to_limit(
    x: ArrayLike, limit: float, *, window: int | None = None, floor: float = 0.0, level: float = 0.95
) -> Interval:
    """Return the steps left until `x` reaches `limit` at its present slope, infinite where none is shown.

    The upper envelope (90 % quantile of the last window) reaches the limit first.
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    found = growth(values, window=window, floor=floor, level=level)
    width = window or max(math.ceil(len(values) / WINDOWS), LEAST_WINDOW)
    room = limit - float(np.quantile(values[-width:], 0.9)) if len(values) else math.nan
    steps = [max(room, 0.0) / slope if slope > 0.0 else math.inf for slope in (found.slope, found.high, found.low)]
    return Interval(steps[0], steps[1], steps[2], len(values), float(len(values)))
