"""Loss curves: spikes and their recovery, NaN, and where two runs part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from postmortem.stats.medians import Interval, median_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

PAST = 51  # values that the baseline before a value is taken from
LEAST_PAST = 3
STANDS_OUT = 8.0  # robust standard deviations above the baseline
LEAST_RISE = 0.1  # in units of the loss
RECENT = 10  # values whose median must be back
BACK = 3.0  # robust standard deviations within which it counts as back
_AT_ONCE = 50_000  # windows whose medians are taken together, to bound the memory
FAST = 100  # values within which a spike recovers fast


@dataclass(frozen=True)
class Spike:
    """A rise of the loss: positions in the series (from 0); `recovered` is None where it never came back."""

    start: int
    peak: int
    recovered: int | None
    baseline: float
    highest: float
    kind: Literal["recovered", "slow recovery", "not recovered", "undecided"]


def first_not_finite(x: ArrayLike) -> int | None:
    """Return the position of the first NaN or infinity, or None."""
    places = np.flatnonzero(~np.isfinite(np.asarray(x, dtype=np.float64)))
    return int(places[0]) if len(places) else None


def spikes(x: ArrayLike) -> list[Spike]:
    """Find spikes of a loss curve; values that are not finite are left out (see `first_not_finite`)."""
    raw = np.asarray(x, dtype=np.float64).ravel()
    places = np.flatnonzero(np.isfinite(raw))
    values = raw[places]
    found, free = [], LEAST_PAST
    for at in map(int, _rises(values)):
        if at < free:
            continue
        baseline, scale = _level(values[max(at - PAST, 0) : at])
        if values[at] - baseline > max(STANDS_OUT * scale, LEAST_RISE):
            spike, free = _follow(values, places, at, baseline, scale)
            found.append(spike)
    return found


def _rises(values: Floats) -> NDArray[np.intp]:
    """Positions that may begin a spike: those too early to say, and those above the median of their past."""
    early = np.arange(min(PAST, len(values)))
    if len(values) <= PAST:
        return early
    windows = np.lib.stride_tricks.sliding_window_view(values, PAST)[:-1]
    parts = np.array_split(windows, len(windows) // _AT_ONCE + 1)
    medians = np.concatenate([np.median(part, axis=1) for part in parts])
    return np.concatenate([early, PAST + np.flatnonzero(values[PAST:] - medians > LEAST_RISE)])


def _level(past: Floats) -> tuple[float, float]:
    """Return median and robust scatter of the past, its trend removed by differences where that is less."""
    baseline = float(np.median(past))
    scatter = 1.4826 * float(np.median(np.abs(past - baseline)))
    return baseline, scatter


def _follow(values: Floats, places: NDArray[np.intp], start: int, baseline: float, scale: float) -> tuple[Spike, int]:
    """Follow a spike from `start` to its recovery or the end; return it and the position to go on from."""
    limit = baseline + max(BACK * scale, LEAST_RISE / 2.0)
    calm = np.flatnonzero(values[start:] <= limit)
    back: int | None = None
    for offset in calm:
        after = values[start + offset : start + offset + RECENT]
        if float(np.median(after)) <= limit:
            back = start + int(offset)
            break
    end = len(values) if back is None else back
    peak = start + int(np.argmax(values[start:end]))
    kind: Literal["recovered", "slow recovery", "not recovered", "undecided"]
    if back is not None:
        kind = "recovered" if back - start <= FAST else "slow recovery"
    else:
        kind = "not recovered" if len(values) - start > RECENT else "undecided"
    spike = Spike(
        start=int(places[start]),
        peak=int(places[peak]),
        recovered=None if back is None else int(places[back]),
        baseline=baseline,
        highest=float(values[peak]),
        kind=kind,
    )
    return spike, end + 1


def paired_difference(before: ArrayLike, after: ArrayLike, level: float = 0.95) -> Interval:
    """Return the median of after - before at equal steps, for runs with the same data order.

    Both are aligned by the caller; pairs with a value that is not finite are left out.
    """
    a, b = np.asarray(before, dtype=np.float64).ravel(), np.asarray(after, dtype=np.float64).ravel()
    if len(a) != len(b):
        raise ValueError("paired series must have the same length")
    return shift_interval(b - a, level)


def shift_interval(differences: ArrayLike, level: float = 0.95) -> Interval:
    """Return the median of differences (of any sign) with its interval."""
    values = np.asarray(differences, dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(math.nan, -math.inf, math.inf, 0, 0.0)
    return median_interval(values, level, logarithmic=False)


def first_difference(before: ArrayLike, after: ArrayLike) -> int | None:
    """Return the first position at which two aligned series are not equal (NaN equals NaN), or None."""
    a, b = np.asarray(before, dtype=np.float64).ravel(), np.asarray(after, dtype=np.float64).ravel()
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    places = np.flatnonzero(~same)
    return int(places[0]) if len(places) else None
