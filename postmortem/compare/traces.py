"""Whether a slowness that profiler traces showed is gone from the traces of the after-run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postmortem.query import Session

LEAST_STEPS = 3
REST = 0.25
"""Share of a phase's time that may be left of what made the steps slow."""

_PHASES = {"trace_data_loader": "data loader"}


def judge_traced(session: Session, fault: Mapping[str, Any]) -> tuple[str, str]:
    """Verdict and reason for a fault without an onset, found in traces before and absent from the after-run."""
    before, after = session.runs
    rows = {row["phase"]: row for row in session.rows("trace_phases_compared", before=before, after=after)}
    step = rows.get("step")
    if step is None or step["after_steps"] < LEAST_STEPS:
        return (
            "undecided",
            "Traces showed it before, and the after-run has too few profiled steps to show it.",
        )
    missing = _ranks(session, before) - _ranks(session, after)
    if missing:
        return (
            "undecided",
            f"Traces showed it before, and ranks {sorted(missing)} have no trace in the after-run.",
        )
    said = _said(rows)
    phase = rows.get(_PHASES.get(str(fault.get("finding")), ""))
    if phase and phase["after_ms"] > REST * phase["before_ms"]:
        return "undecided", f"Less of it, but more than a quarter is left: {said}."
    if step["after_ms"] >= step["before_ms"]:
        return "undecided", f"No longer in the traces, but steps are not faster: {said}."
    return "fixed", f"No longer in the traces, and steps are faster: {said}."


def _ranks(session: Session, run: str) -> set[int]:
    session.need(["trace_step"])
    rows = session.connection.execute("SELECT DISTINCT rank FROM trace_step WHERE run_id = $run", {"run": run})
    return {row[0] for row in rows.fetchall()}


def _said(rows: Mapping[str, Mapping[str, Any]]) -> str:
    step = rows["step"]
    sign = 1 if step["change_ms"] > 0 else -1
    largest = max((row for row in rows.values() if row is not step), key=lambda row: sign * row["change_ms"])
    return (
        f"a profiled step takes {step['after_ms']:.1f} ms instead of {step['before_ms']:.1f} ms, and the largest part "
        f"of the change is {largest['phase']} with {largest['after_ms']:.1f} ms instead of {largest['before_ms']:.1f} ms "
        f"({step['before_steps']} and {step['after_steps']} profiled steps)"
    )
