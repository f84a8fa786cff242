"""Two runs' step times, from warm-up to verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from postmortem.stats.change import ChangePoint, change_points
from postmortem.stats.medians import (
    Interval,
    Ratio,
    median_interval,
    quantile_interval,
    ratio_of_medians,
    spread,
)
from postmortem.stats.verdict import EQUIVALENCE, Judgement, judge_ratio
from postmortem.stats.warmup import steady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

RUN_NOISE = 0.01  # standard deviation between runs of one job that is assumed where none was measured


@dataclass(frozen=True)
class Side:
    """One run: which steps are ordinary (mask of its steps), where its level changed, and how it scatters.

    `part`: ordinary steps of the level that was compared (the last one), `typical` their median. `healthy`: those
    of the first level. `jitter`: scatter of single steps relative to their median. `per_1000`: time of 1000 steps
    of all kinds, spikes and scheduled work included, in the unit of the step times.
    """

    ordinary: NDArray[np.bool_]
    changes: tuple[ChangePoint, ...]
    part: Floats
    healthy: Floats
    typical: Interval
    p95: Interval
    p99: Interval
    jitter: float
    per_1000: float


@dataclass(frozen=True)
class StepTimes:
    """The comparison of two runs; `ratio` is of the levels that both runs ended with."""

    before: Side
    after: Side
    ratio: Ratio
    judgement: Judgement


def split_run(x: ArrayLike, scheduled: ArrayLike | None = None) -> Side:
    """Set warm-up and scheduled steps aside and find the levels of the rest; indexes are those of `x`.

    Levels are sought with the scheduled steps in place, so that a change among them is dated rightly.
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    ordinary = steady(values, scheduled)
    places = np.flatnonzero(steady(values))
    found = [_at(point, places) for point in change_points(values[places])]
    part = values[_between(ordinary, found[-1].index if found else 0, len(values))]
    healthy = values[_between(ordinary, 0, found[0].index if found else len(values))]
    finite = values[np.isfinite(values)]
    return Side(
        ordinary=ordinary,
        changes=tuple(found),
        part=part,
        healthy=healthy,
        typical=median_interval(part),
        p95=quantile_interval(part, 0.95),
        p99=quantile_interval(part, 0.99),
        jitter=spread(np.log(part[part > 0.0])),
        per_1000=1000.0 * float(finite.mean()) if len(finite) else np.nan,
    )


def _between(ordinary: NDArray[np.bool_], start: int, end: int) -> NDArray[np.intp]:
    """Return the indexes of the ordinary steps from `start` to before `end`."""
    places = np.flatnonzero(ordinary)
    return places[(places >= start) & (places < end)]


def _at(point: ChangePoint, places: NDArray[np.intp]) -> ChangePoint:
    """Return the change point with indexes of the whole run instead of its ordinary steps."""
    index, low, high = (int(places[i]) for i in (point.index, point.low_index, point.high_index))
    return replace(point, index=index, low_index=low, high_index=high)


def compare_step_times(
    before: ArrayLike,
    after: ArrayLike,
    *,
    scheduled: Sequence[ArrayLike | None] = (None, None),
    run_noise: float = RUN_NOISE,
    equivalence: float = EQUIVALENCE,
) -> StepTimes:
    """Compare the step times of two runs that do the same work per step.

    `before`, `after`: one value per step in step order, the maximum over ranks. `scheduled`: masks of the
    steps that are no ordinary ones (checkpoint, evaluation, profiler, after a restart). A run whose level
    changed once for good is compared by the level it ended with; where levels come and go, no typical step exists.
    """
    left, right = split_run(before, scheduled[0]), split_run(after, scheduled[1])
    found = (*left.changes, *right.changes)
    unsettled = len(found) > 1 or not all(point.lasts for point in found)
    if unsettled:
        parts = [np.asarray(x, dtype=np.float64)[side.ordinary] for x, side in ((before, left), (after, right))]
    else:
        parts = [left.part, right.part]
    ratio = ratio_of_medians(parts[0], parts[1], run_noise=run_noise)
    return StepTimes(left, right, ratio, judge_ratio(ratio, equivalence=equivalence, change_inside=unsettled))
