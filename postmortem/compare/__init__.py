"""Two diagnoses + two sets of samples -> verdicts: fixed, not fixed, masked, regressed, no change, undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from postmortem.compare.alone import measures
from postmortem.compare.changes import changes
from postmortem.compare.faults import judge_faults, overall
from postmortem.compare.gradient import gradient
from postmortem.compare.loss import loss
from postmortem.compare.memory import memory
from postmortem.compare.noise import Repeats, noise, repeats
from postmortem.compare.stability import stability
from postmortem.compare.throughput import throughput
from postmortem.compare.traces import stragglers
from postmortem.diagnosis import diagnose
from postmortem.query import Session

SCHEMA = "postmortem.comparison/1"

__all__ = ["SCHEMA", "compare", "measures", "noise"]


def compare(
    session: Session,
    *,
    bound: float = 0.03,
    run_noise: float = 0.01,
    further: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> dict[str, Any]:
    """Compare the two runs of `session`; the result is the JSON of schemas/json/comparison.schema.json.

    Args:
        session: a session on two runs, the first is the one before the fix.
        bound: relative difference of step times within which two runs count as equivalent.
        run_noise: relative standard deviation of step times between runs of the same job.
        further: more runs of the same store on each side; their step times take part in the throughput verdict.

    """
    before, after = session.runs
    with ThreadPoolExecutor(2) as pool:  # DuckDB works while another thread holds Python
        sides = tuple(pool.map(lambda run: diagnose(session.only(run)), (before, after)))
    changed = changes(session)
    more = _more(session, further, bound) if any(further) else None
    speed = throughput(session, changed, bound=bound, run_noise=run_noise, more=more)
    growing = memory(session)
    judged = judge_faults(session, sides, changed, bound=bound)
    verdict, why = overall(judged, speed, growing)
    document: Mapping[str, Any] = {
        "schema": SCHEMA,
        "before": before,
        "after": after,
        "verdict": verdict,
        "why": why,
        "faults": judged,
        "throughput": speed,
        "stragglers": stragglers(session, sides),
        "stability": stability(session, sides, judged),
        "memory": growing,
        "loss": loss(session, same_work=speed["comparable"]),
        "gradient": gradient(session, same_work=speed["comparable"]),
        "changes": changed,
        "limits": _limits(sides, speed["assumptions"]),
        "before_diagnosis": sides[0],
        "after_diagnosis": sides[1],
    }
    return dict(document)


def _limits(sides: tuple[Mapping[str, Any], ...], assumed: Mapping[str, Any]) -> list[str]:
    """What neither run can show, and what was assumed."""
    said = [
        f"{side['run']['name']}: {sentence}"
        for side in sides
        for sentence in side["limits"]
        if not sentence.startswith("A single run")
    ]
    noise = f"that runs of the same job differ by {assumed['run_noise']:.1%} by chance"
    if assumed["run_noise_measured"]:
        return [*said, f"Measured on the further runs that were given: {noise}."]
    return [*said, f"One run stands for each side; {noise} is an assumption."]


def _more(session: Session, further: tuple[Sequence[str], Sequence[str]], bound: float) -> Repeats:
    before, after = ([run, *others] for run, others in zip(session.runs, further, strict=True))
    return repeats(Session(session.store, [*before, *after]), (before, after), bound)
