"""What profiler traces of both runs show: whether a slowness is gone, and who made the others wait before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def stragglers(session: Session, sides: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Who made the others wait in each run, and whether it is the same; None where a run's traces do not tell.

    Ranks are named by the finding trace_straggler in the diagnoses `sides`. The verdict is same, same host, another,
    gone, new, none, or undecided where the after-run has too few profiled steps to say that it is gone.
    """
    before, after = session.runs
    steps = _compared(session)
    if not steps.get(before) or not steps.get(after):
        return None
    first, then = map(_standing_out, sides)
    rows = session.rows("stragglers_compared", before=before, after=after, most=1024)
    told = [row for row in rows if row["rank"] in first + then]
    return {
        "verdict": _same(rows, first, then) if then or steps[after] >= LEAST_STEPS else "undecided",
        "why": " ".join([_named("Before", first), _named("After", then), *map(_cost, told)]),
        "ranks": list(rows[:8]),
        "query": "stragglers_compared",
    }


def _compared(session: Session) -> dict[str, int]:
    """Run -> number of profiled steps in which the arrivals of several ranks could be compared."""
    session.need(["aligned_collective"])
    sql = "SELECT run_id, count(DISTINCT step) FROM aligned_collective GROUP BY run_id"
    return dict(session.connection.execute(sql).fetchall())


def _standing_out(diagnosed: Mapping[str, Any]) -> list[int]:
    """The rank that makes the others wait most, if any does."""
    said = (line for fault in diagnosed["faults"] for line in fault["evidence"])
    return [line["rank"] for line in said if line["finding"] == "trace_straggler"][:1]


def _same(rows: Sequence[Mapping[str, Any]], first: list[int], then: list[int]) -> str:
    if not first or not then:
        return "gone" if first else "new" if then else "none"
    if first == then:
        return "same"
    host = [{row["rank"]: row[f"{side}_host"] for row in rows} for side in ("before", "after")]
    several = all(len(set(hosts.values())) > 1 for hosts in host)
    return "same host" if several and host[0].get(first[0]) == host[1].get(then[0]) is not None else "another"


def _named(when: str, ranks: list[int]) -> str:
    return f"{when}, rank {ranks[0]} makes the others wait." if ranks else f"{when}, no rank stands out."


def _cost(row: Mapping[str, Any]) -> str:
    sides = [
        f"{row[f'{side}_ms']:.1f} ms of a profiled step, last in {row[f'{side}_led']} of {row[f'{side}_steps']}, {side}"
        for side in ("before", "after")
        if row[f"{side}_ms"] is not None
    ]
    return f"Rank {row['rank']} typically costs them {'; '.join(sides)}."


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
