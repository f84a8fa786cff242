"""Whether the two loss curves agree where both runs have them, and how each behaved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from postmortem.compare.paired import judge_pairs
from postmortem.compare.steps import known
from postmortem.query import Session
from postmortem.stats import Interval, exact_rate_test, spikes

_CURVE = "SELECT step, loss, text, not_finite, samples FROM loss_steps WHERE run_id = $run ORDER BY step"
_OVERFLOWS = (
    "SELECT count(DISTINCT coalesce(step, after_step, line)) FROM event WHERE run_id = $run AND kind = 'overflow'"
)
_SCALE = (
    "SELECT arg_min(value, step), arg_max(value, step), min(value) FROM metric "
    "WHERE run_id = $run AND name = 'loss_scale' AND step IS NOT NULL"
)


@dataclass(frozen=True)
class Curve:
    """The loss of one run in step order."""

    steps: Sequence[int]
    loss: Sequence[float]
    text: Sequence[str | None]
    not_finite: Sequence[int]
    samples: Sequence[int | None]

    def axis(self, *, samples: bool) -> dict[int, int]:
        """Position of each value by step, or by samples consumed."""
        marks = self.samples if samples else self.steps
        return {int(mark): place for place, mark in enumerate(marks) if mark is not None}


def loss(session: Session, *, same_work: bool = True) -> dict[str, Any]:
    """Paired differences of the losses at equal steps, with the interval of their median.

    Args:
        session: a session on two runs.
        same_work: whether a step is the same work in both; else values at equal samples are paired.

    """
    curves = [_curve(session, run) for run in session.runs]
    by_samples = not same_work and all(any(mark is not None for mark in c.samples) for c in curves)
    axes = [curve.axis(samples=by_samples) for curve in curves]
    common = sorted(axes[0].keys() & axes[1].keys())
    pairs = [(axes[0][mark], axes[1][mark]) for mark in common]
    sides = {
        name: _side(session, run, c) for name, run, c in zip(("before", "after"), session.runs, curves, strict=True)
    }
    return {
        **_verdict(curves, pairs),
        "paired_by": "samples" if by_samples else "step",
        "equal_in_print_until": _equal_until(curves, pairs, common),
        "overflows": _overflows(sides),
        **sides,
        "query": "loss_steps",
    }


def losses(session: Session) -> dict[str, Any]:
    """How the loss of the one run of `session` behaved: values, spikes, overflows, loss scale."""
    (run,) = session.runs
    return {"run": _side(session, run, _curve(session, run)), "query": "loss_steps"}


def _curve(session: Session, run: str) -> Curve:
    session.need(["loss_steps"])
    rows = session.connection.execute(_CURVE, {"run": run}).fetchall()
    return Curve(*(list(zip(*rows, strict=True)) or [()] * 5))


def _verdict(curves: Sequence[Curve], pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    values = np.array([(curves[0].loss[i], curves[1].loss[j]) for i, j in pairs], dtype=np.float64).reshape(-1, 2)
    values = values[np.isfinite(values).all(axis=1)]
    return judge_pairs(values[:, 0], values[:, 1], "a finite loss", _facts)


def _facts(found: Interval) -> dict[str, Any]:
    return {
        "why": f"median difference {found.estimate:.4g} ({found.low:.4g} to {found.high:.4g}) over {found.n} steps",
        "difference": known(found.estimate),
        "ci": [known(found.low), known(found.high)],
    }


def _equal_until(curves: Sequence[Curve], pairs: Sequence[tuple[int, int]], common: Sequence[int]) -> int | None:
    """Return the last common step (or sample count) up to which both runs printed the same digits, if any."""
    last = None
    for mark, (i, j) in zip(common, pairs, strict=True):
        if curves[0].text[i] is None or curves[0].text[i] != curves[1].text[j]:
            break
        last = mark
    return last


def _side(session: Session, run: str, curve: Curve) -> dict[str, Any]:
    bad = [step for step, count in zip(curve.steps, curve.not_finite, strict=True) if count]
    # fetchone() would leave the connection with an unfinished result.
    ((first, last, least),) = session.connection.execute(_SCALE, {"run": run}).fetchall() or [(None, None, None)]
    counted = session.connection.execute(_OVERFLOWS, {"run": run}).fetchall()
    return {
        "steps": len(curve.steps),
        "last_loss": known(curve.loss[-1]) if curve.steps else None,
        "first_not_finite": int(bad[0]) if bad else None,
        "not_finite_steps": len(bad),
        "spikes": [
            {
                "step": int(curve.steps[spike.start]),
                "peak_step": int(curve.steps[spike.peak]),
                "recovered_step": None if spike.recovered is None else int(curve.steps[spike.recovered]),
                "baseline": spike.baseline,
                "highest": spike.highest,
                "kind": spike.kind,
            }
            for spike in spikes(curve.loss)
        ],
        "overflows": int(counted[0][0]) if counted else 0,
        "loss_scale": {"first": known(first), "last": known(last), "least": known(least)},
    }


def _overflows(sides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Overflows per step, after / before, by the exact test; None where neither run had any."""
    before, after = sides["before"], sides["after"]
    if not before["steps"] or not after["steps"] or not before["overflows"] + after["overflows"]:
        return None
    found = exact_rate_test(before["overflows"], before["steps"], after["overflows"], after["steps"])
    return {"ratio": known(found.ratio), "ci": [known(found.low), known(found.high)], "p": found.p_two_sided}
