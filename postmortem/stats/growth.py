"""Whether memory grows with every step, only stepped up, or cannot be told.

Every trend test calls a step, a plateau after warm-up or a sawtooth "increasing"; so a leak is claimed only
where the lower envelope still rises in the last half without its largest jump.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from postmortem.stats.medians import Interval, spread

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

WINDOWS = 24  # per series, so that twelve envelope points carry the slope
LEAST_WINDOW = 5
LEAST_WINDOWS = 8
SHORT = 100  # steps under which windows are too few and the steps themselves are looked at
LEAST_STEPS = 20  # steps that a noisy short series must have
EXACT_STEPS = 5  # steps that a series must have whose increments are all alike
PERIODIC = 0.3  # autocorrelation at a lag that counts as a period
RELEVANT = 0.02  # share of the level (or of the headroom) that growth over the horizon must reach
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


def sen_slope(t: ArrayLike, y: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """Return the Theil-Sen slope of `y` over `t` with its interval (Sen, JASA 63, 1968)."""
    times, values = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(values)
    left, right = np.triu_indices(n, 1)
    run = times[right] - times[left]
    slopes = np.sort((values[right] - values[left])[run > 0.0] / run[run > 0.0])
    if not len(slopes):
        return math.nan, -math.inf, math.inf
    ties = np.unique(values, return_counts=True)[1]
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18.0
    reach = NormalDist().inv_cdf(0.5 + level / 2.0) * math.sqrt(max(variance, 0.0))
    low, high = round((len(slopes) - reach) / 2.0), round((len(slopes) + reach) / 2.0)
    if low < 1 and n < LEAST_STEPS:
        low, high = 1, len(slopes)
    return float(np.median(slopes)), float(slopes[max(low - 1, 0)]), float(slopes[min(high, len(slopes) - 1)])


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
    width = window or max(math.ceil(n / WINDOWS), math.ceil(1.1 * period(values)), LEAST_WINDOW)
    count = n // width
    if count < LEAST_WINDOWS:
        return _summary(values, values, 1, "undecided", level, "too few steps for its period")
    lower = np.quantile(values[n - count * width :].reshape(count, width), 0.05, axis=1)
    tail = lower[count // 2 :]
    slope, low, high = sen_slope(np.arange(len(tail)) * float(width), tail, level)
    calm = _without_largest_jump(tail)
    calm_low = sen_slope(np.arange(len(calm)) * float(width), calm, level)[1]
    least = _least_slope(values, floor)
    room = RELEVANT * (headroom if headroom is not None else abs(float(np.median(values))))
    if low > least and calm_low > least:
        return _summary(lower, tail, width, "growing", level, "the lower envelope rises to the end", values)
    if high * (horizon if horizon is not None else n) < room or high <= least:
        return _summary(
            lower, tail, width, "flat", level, "growth over the horizon is too small to matter", values
        )
    why = "it rose, but is not shown to go on" if slope > 0.0 else "the interval of the slope is too wide"
    return _summary(lower, tail, width, "undecided", level, why, values)


def _least_slope(values: Floats, floor: float) -> float:
    return min(floor, RELEVANT * abs(float(np.median(values))) / max(len(values), 1))


def _without_largest_jump(points: Floats) -> Floats:
    steps = np.diff(points)
    if not len(steps):
        return points
    steps[np.argmax(steps)] = np.median(steps)
    return np.asarray(np.r_[points[0], points[0] + steps.cumsum()])


def _summary(
    points: Floats,
    tail: Floats,
    width: int,
    kind: Literal["growing", "flat", "undecided"],
    level: float,
    why: str,
    values: Floats | None = None,
) -> Growth:
    """Describe the trend of `tail` (last part of `points`, one per `width` steps)."""
    raw = points if values is None else values
    if len(points) < 2:
        nan = math.nan
        return Growth(kind, nan, -math.inf, math.inf, len(raw), nan, nan, nan, nan, nan, why)
    half = len(points) // 2
    slope, low, high = sen_slope(np.arange(len(tail)) * float(width), tail, level)
    first = sen_slope(np.arange(half) * float(width), points[:half])[0] if half > 1 else math.nan
    second = sen_slope(np.arange(len(points) - half) * float(width), points[half:])[0]
    jumps = np.diff(points)
    return Growth(
        kind=kind,
        slope=slope,
        low=low,
        high=high,
        n=len(raw),
        noise=spread(raw - slope * np.arange(len(raw))),
        first_half_slope=first,
        second_half_slope=second,
        largest_jump=float(jumps[np.argmax(np.abs(jumps))]),
        rise=float(points[-1] - points[0]),
        why=why,
    )


def _short(values: Floats, floor: float, level: float) -> Growth:
    """Judge a short series by its single steps; the first is left out (allocators fill up)."""
    rest = values[1:]
    if len(rest) < EXACT_STEPS:
        return _summary(values, values, 1, "undecided", level, "too few steps")
    least = _least_slope(rest, floor)
    steps = np.diff(rest)
    typical = float(np.median(steps))
    if typical > least and bool(np.all(np.abs(steps - typical) <= 0.25 * typical)):
        return _summary(rest, rest, 1, "growing", level, "every step adds as much")
    tail = rest[len(rest) // 2 :]
    slope, low, high = sen_slope(np.arange(len(tail)), tail, level)
    if len(values) < LEAST_STEPS:
        return _summary(rest, tail, 1, "undecided", level, "too few steps")
    climbs, room = low > least and _climbs(rest, slope), RELEVANT * abs(float(np.median(values)))
    if climbs and low * len(values) > room:
        return _summary(rest, tail, 1, "growing", level, "it rises in every quarter, to the end")
    if not climbs and (high <= least or high * len(values) < room):
        return _summary(rest, tail, 1, "flat", level, "growth in the last half is too small to matter")
    return _summary(rest, tail, 1, "undecided", level, "it rose, but is not shown to go on")


def _climbs(rest: Floats, slope: float) -> bool:
    """Tell whether each of the last three quarters rises by itself and lies above the one before."""
    quarters = np.array_split(_without_largest_jump(rest), 4)
    levels = [float(np.median(part)) for part in quarters]
    slopes = [sen_slope(np.arange(len(part)), part)[0] for part in quarters[1:]]
    return bool(np.all(np.diff(levels) > 0.0)) and min(slopes) > 0.25 * slope


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
    steps = [
        max(room, 0.0) / slope if slope > 0.0 else math.inf for slope in (found.slope, found.high, found.low)
    ]
    return Interval(steps[0], steps[1], steps[2], len(values), float(len(values)))
