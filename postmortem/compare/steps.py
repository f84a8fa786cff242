"""The steps of a run as the statistics need them: numbers in step order, and which steps are no ordinary ones."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from postmortem.query import Session
from postmortem.stats import Interval


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
