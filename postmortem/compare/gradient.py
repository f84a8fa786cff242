"""The gradient norm of one run or two: its level, its highest value, and whether it differs at equal steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from postmortem.compare.paired import judge_pairs
from postmortem.compare.steps import known
from postmortem.query import Session
from postmortem.stats import Interval

QUERY = "metric_steps"
_CURVE = f"SELECT step, value FROM {QUERY} WHERE run_id = $run AND name = 'grad_norm' ORDER BY step"
_BROKEN = "SELECT min(first_step) FROM metric_not_finite WHERE run_id = $run AND name = 'grad_norm'"


def gradient(session: Session, *, same_work: bool = True) -> dict[str, Any] | None:
    """Ratio of the gradient norms after / before at equal steps with its interval; None where neither run states any.

    Args:
        session: a session on two runs.
        same_work: whether a step is the same work in both; else the norms are shown and not compared.
    """
    before, after = (_curve(session, run) for run in session.runs)
    sides = {
        name: _side(session, run, curve)
        for name, run, curve in zip(("before", "after"), session.runs, (before, after), strict=True)
    }
    if not before and not after:
        return None
    return {**_verdict(before, after, same_work=same_work), **sides, "query": QUERY}


def gradient_norms(session: Session) -> dict[str, Any]:
    """Level and highest value of the gradient norm of the one run of `session`."""
    (run,) = session.runs
    return {"run": _side(session, run, _curve(session, run)), "query": QUERY}


def _curve(session: Session, run: str) -> dict[int, float]:
    session.need([QUERY])
    return dict(session.connection.execute(_CURVE, {"run": run}).fetchall())


def _side(session: Session, run: str, curve: dict[int, float]) -> dict[str, Any]:
    session.need(["metric_not_finite"])
    ((broken,),) = session.connection.execute(_BROKEN, {"run": run}).fetchall()
    highest = max(curve, key=lambda step: curve[step], default=None)
    return {
        "steps": len(curve),
        "typical": known(float(np.median(list(curve.values())))) if curve else None,
        "highest": None if highest is None else known(curve[highest]),
        "highest_step": highest,
        "first_not_finite": broken,
    }


def _verdict(before: dict[int, float], after: dict[int, float], *, same_work: bool) -> dict[str, Any]:
    """Norms scatter by factors, so their logarithms are paired."""
    if not same_work:
        return {"verdict": "undecided", "why": "A step is not the same work in both runs.", "n": 0}
    common = sorted(step for step in before.keys() & after.keys() if before[step] > 0 and after[step] > 0)
    left, right = (np.log([curve[step] for step in common]) for curve in (before, after))
    return judge_pairs(left, right, "a gradient norm", _facts)


def _facts(found: Interval) -> dict[str, Any]:
    ratio, low, high = np.exp([found.estimate, found.low, found.high])
    return {
        "why": f"{ratio:.4g} times as large ({low:.4g} to {high:.4g}) over {found.n} equal steps",
        "ratio": known(ratio),
        "ci": [known(low), known(high)],
    }
