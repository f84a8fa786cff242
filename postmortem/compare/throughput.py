"""Whether steps are faster or slower after than before, and whether the two can be compared at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from postmortem.compare.noise import Repeats
from postmortem.compare.steps import Steps, known, level_facts, span_of, steps_of
from postmortem.compare.work import Work, work
from postmortem.query import Session
from postmortem.stats import StepTimes, compare_step_times
from postmortem.stats.throughput import Side

NOT_SAME = "The work per step is not the same"


def throughput(
    session: Session,
    changed: Sequence[Mapping[str, Any]],
    *,
    bound: float,
    run_noise: float,
    more: Repeats | None = None,
) -> dict[str, Any]:
    """The ratio of typical step times (after / before) with its interval and word, and what stands behind it.

    Where only the batch differs, time per sample is compared instead; where the work differs otherwise, the
    numbers are shown and the word is undecided. With several runs a side (`more`) the runs are the unit.
    """
    runs = [steps_of(session, run) for run in session.runs]
    task = work(session, changed)
    scale = task.scale or 1.0
    measured = more.run_noise if more else None
    run_noise = measured if measured is not None else run_noise
    found = compare_step_times(
        runs[0].seconds, runs[1].seconds / scale,
        scheduled=[run.scheduled for run in runs], run_noise=run_noise, equivalence=bound,
    )  # fmt: skip
    sides = (found.before, found.after)
    others = _confounders(changed)
    return {
        **_verdict(found, task, more, others),
        "comparable": task.comparable,
        "different_work": list(task.changed),
        "confounders": others,
        "steady": {name: span_of(run, side) for name, run, side in zip(("before", "after"), runs, sides, strict=True)},
        "sides": {
            name: level_facts(run, side, factor)
            for name, run, side, factor in zip(("before", "after"), runs, sides, (1.0, scale), strict=True)
        },
        "phases": _phases(session, runs, sides),
        "break_even_noise": known(found.judgement.break_even_noise),
        "assumptions": {
            "bound": bound,
            "run_noise": run_noise,
            "run_noise_measured": measured is not None,
            "wander": known(found.ratio.wander),
        },
        "repeats": {"before": more.levels[0], "after": more.levels[1]} if more else None,
        "more_steps": found.judgement.more_steps,
        "more_runs": found.judgement.more_runs,
        "query": "step_times_compared",
    }  # fmt: skip


def _verdict(found: StepTimes, task: Work, more: Repeats | None, others: Sequence[str]) -> dict[str, Any]:
    ratio, judged = found.ratio, found.judgement
    value, low, high = ratio.ratio, ratio.low, ratio.high
    if more and more.judgement and more.interval and task.comparable:
        judged, found_runs = more.judgement, more.interval
        value, low, high = found_runs.estimate, found_runs.low, found_runs.high
    unit, why = "step time after / before", judged.why
    if not task.comparable and task.scale is not None:
        unit = f"time per {task.unit} after / before"
        why = f"{NOT_SAME} ({', '.join(task.changed)} changed), so time per {task.unit} is compared: {why}"
        why = why.replace("step time changed", "it changed")
    elif task.scale is None:
        judged = replace(judged, word="undecided")
        why = f"{NOT_SAME}: {', '.join(task.changed)} changed."
    elif judged.word in {"faster", "slower"} and len(others) > 1:
        why = f"{why}. {len(others)} things changed that can do this ({_some(others)}): which one did is not shown"
    return {
        "verdict": judged.word,
        "why": why,
        "ratio": known(value),
        "ci": [known(low), known(high)],
        "n": [ratio.n_before, ratio.n_after],
        "n_effective": [known(ratio.n_eff_before), known(ratio.n_eff_after)],
        "unit": unit,
    }


def _confounders(changed: Sequence[Mapping[str, Any]]) -> list[str]:
    """What else differs that can make steps faster or slower: versions, devices, settings known to hide a slowdown."""
    return [
        str(change["what"])
        for change in changed
        if change["kind"] in {"environment", "topology", "workload"} or "throughput" in change["can_mask"]
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _phases(session: Session, runs: Sequence[Steps], sides: Sequence[Side]) -> list[dict[str, Any]]:
    """What each phase that timers measured adds to the change, over the levels that were compared."""
    spans = [span_of(run, side) for run, side in zip(runs, sides, strict=True)]
    if spans[0] is None or spans[1] is None:
        return []
    before, after = session.runs
    return session.rows(
        "phases_compared", before=before, after=after, before_first=spans[0][0], after_first=spans[1][0]
    )
