"""The steps of a run as the statistics need them: numbers in step order, and which steps are no ordinary ones."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from postmortem.query import Session
from postmortem.stats import Interval
from postmortem.stats.throughput import Side


@dataclass(frozen=True)
class Steps:
    """Step times of one run in step order, in seconds; `reasons` holds the steps that are set aside, and why."""

    steps: np.ndarray
    seconds: np.ndarray
    reasons: dict[int, str]

    @property
    def scheduled(self) -> np.ndarray:
        """Mask of the steps that are no ordinary ones."""
        return np.isin(self.steps, list(self.reasons))

    def set_aside(self, ordinary: np.ndarray) -> dict[str, int]:
        """How many steps are not ordinary, by reason."""
        names = [self.reasons.get(int(step), "warm-up") for step in self.steps[~ordinary]]
        return dict(Counter(names))


def steps_of(session: Session, run: str) -> Steps:
    """Read the step times of `run`; the slowest rank counts."""
    session.need(["step_times", "scheduled_steps"])
    asked = {"run": run}
    rows = session.connection.execute(
        "SELECT step, seconds FROM step_times WHERE run_id = $run ORDER BY step", asked
    ).fetchall()
    reasons = session.connection.execute(
        "SELECT step, min(reason) FROM scheduled_steps WHERE run_id = $run GROUP BY step", asked
    ).fetchall()
    steps = np.array([row[0] for row in rows], dtype=np.int64)
    return Steps(steps, np.array([row[1] for row in rows], dtype=np.float64), dict(reasons))


def known(value: float | None) -> float | None:
    """The number, or None where it is not known or not finite: JSON has neither NaN nor infinity."""
    return float(value) if value is not None and math.isfinite(value) else None


def shown(interval: Interval) -> dict[str, Any]:
    """An interval as JSON: the estimate, its limits and how many values it rests on."""
    return {
        "estimate": known(interval.estimate),
        "ci": [known(interval.low), known(interval.high)],
        "n": interval.n,
    }


def span_of(run: Steps, side: Side) -> list[int] | None:
    """First and last step of the level that the run ended with."""
    steps = run.steps[side.ordinary]
    if not len(side.part):
        return None
    return [int(steps[-len(side.part)]), int(steps[-1])]


def level_facts(run: Steps, side: Side, scale: float = 1.0) -> dict[str, Any]:
    """What one run looks like: levels, tails, jitter, what was set aside. Seconds are those of a step."""
    tails = {name: shown(quantile) for name, quantile in (("p95", side.p95), ("p99", side.p99))}
    for tail in tails.values():
        tail["estimate"] = _times(tail["estimate"], scale)
        tail["ci"] = [_times(limit, scale) for limit in tail["ci"]]
    return {
        "typical_seconds": _times(shown(side.typical)["estimate"], scale),
        "typical_ci": [_times(limit, scale) for limit in shown(side.typical)["ci"]],
        **tails,
        "jitter": known(side.jitter),
        "seconds_per_1000_steps": _times(known(side.per_1000), scale),
        "set_aside": run.set_aside(side.ordinary),
        "changes": [
            {
                "step": int(run.steps[point.index]),
                "between": [int(run.steps[point.low_index]), int(run.steps[point.high_index])],
                "before_seconds": point.before * scale,
                "after_seconds": point.after * scale,
                "ratio": point.ratio,
                "transient": point.transient,
                "lasts": point.lasts,
            }
            for point in side.changes
        ],
    }


def _times(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
