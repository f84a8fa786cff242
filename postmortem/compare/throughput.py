"""Are steps faster or slower after than before, and can the two be compared at all?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.query import Session
from postmortem.stats import change_points, judge_ratio, ratio_of_medians, steady

Sides = tuple[Mapping[str, Any], ...]


def throughput(
    session: Session, sides: Sides, changed: Sequence[Mapping[str, Any]], *, bound: float, run_noise: float
) -> dict[str, Any]:
    """The ratio of typical step times (after / before) with its interval and word."""
    before, after = (_steady(session, run) for run in session.runs)
    ratio = ratio_of_medians(before, after, run_noise=run_noise)
    inside = any(len(change_points(part)) for part in (before, after) if len(part))
    judged = judge_ratio(ratio, equivalence=bound, change_inside=inside)
    work = [change["what"] for change in changed if change["kind"] in {"workload", "topology"}]
    word, why = judged.word, judged.why
    if work:
        word, why = "undecided", f"The work per step is not the same: {', '.join(work)} changed."
    return {
        "verdict": word,
        "why": why,
        "ratio": ratio.ratio,
        "ci": [ratio.low, ratio.high],
        "n": [ratio.n_before, ratio.n_after],
        "unit": "step time after / before",
        "comparable": not work,
        "assumptions": {"bound": bound, "run_noise": run_noise, "break_even_noise": judged.break_even_noise},
        "more_steps": judged.more_steps,
        "more_runs": judged.more_runs,
    }


def _steady(session: Session, run: str) -> list[float]:
    session.need(["step_times"])
    rows = session.connection.execute(
        "SELECT seconds FROM step_times WHERE run_id = $run ORDER BY step", {"run": run}
    ).fetchall()
    values = [float(row[0]) for row in rows]
    if not values:
        return []
    return [value for value, ordinary in zip(values, steady(values), strict=True) if ordinary]
