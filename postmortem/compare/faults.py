"""The verdict on each fault, and on the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postmortem import faults as knowledge
from postmortem.compare.memory import memory
from postmortem.compare.stability import exposure
from postmortem.compare.traces import judge_traced
from postmortem.diagnosis import EVIDENCE_ROWS, explained, findings
from postmortem.query import Session, queries
from postmortem.stats import ratio_of_medians

Sides = tuple[Mapping[str, Any], ...]

REST = 0.25
"""Share of a slowdown that may be left, with its interval, where the healthy part is too short for the bound."""


STOPPED = "crash_external_stop"
"""The finding of a run that somebody stopped: it shows no more of a fault than a run that goes on."""


def judge_faults(
    session: Session, sides: Sides, changed: Sequence[Mapping[str, Any]], *, bound: float
) -> list[dict[str, Any]]:
    """One entry per class of fault that either run shows, with its verdict."""
    found = [{f["fault"]: f for f in side["faults"] if f["severity"] == "fault"} for side in sides]
    judged = []
    for name in knowledge.NAMES:
        before, after = (side.get(name) for side in found)
        if before is None and after is None:
            continue
        verdict, why = _judge(session, sides, before, after, changed, bound)
        judged.append({"fault": name, "before": _short(before), "after": _short(after), "verdict": verdict, "why": why})
    return judged + _silent(session, judged)


def _short(fault: Mapping[str, Any] | None) -> dict[str, Any] | None:
    keys = (
        "fault",
        "kind",
        "culprit_ranks",
        "onset_step",
        "onset_time",
        "confidence",
        "statement",
        "explained_by",
    )
    return None if fault is None else {key: fault.get(key) for key in keys}


def _judge(
    session: Session,
    sides: Sides,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    changed: Sequence[Mapping[str, Any]],
    bound: float,
) -> tuple[str, str]:
    stopped = after is not None and after["finding"] == STOPPED
    if before is None:
        if stopped:
            return "undecided", "The after-run was stopped from outside before it was done, for whatever reason."
        return "regressed", f"New in the after-run: {after['statement'] if after else ''}."
    if after is not None and (not stopped or before["finding"] == STOPPED):
        return "not fixed", f"Still there: {after['statement']}."
    masks = [change["what"] for change in changed if before["fault"] in change["can_mask"]]
    if masks:
        return "masked", f"Gone, but {_and(masks)} changed as well, which alone can hide it."
    return _judge_gone(session, sides, before, bound)


def _judge_gone(session: Session, sides: Sides, before: Mapping[str, Any], bound: float) -> tuple[str, str]:
    """A fault that no longer shows, and that no change is known to hide."""
    if not _would_show(session, before):
        return "undecided", "Gone, but the values that showed it before were not recorded in the after-run."
    if before["kind"] == "state":
        return _judge_state(session, before, bound)
    return _judge_incident(session, sides, before)


_SHOWN_BY = {"nan_loss": "loss", "gradient_not_finite": "grad_norm"}


def _would_show(session: Session, before: Mapping[str, Any]) -> bool:
    """Whether the after-run recorded what showed the fault before: a value of each rank named, or the norm of all."""
    name = _SHOWN_BY.get(str(before.get("finding")))
    if name is None:
        return True
    session.need(["metrics"])
    rows = session.connection.execute(
        "SELECT DISTINCT name, rank FROM metrics WHERE run_id = $run AND name IN ($name, 'grad_norm')",
        {"run": session.runs[1], "name": name},
    ).fetchall()
    seen = {rank for what, rank in rows if what == name}
    return (bool(seen) and set(before["culprit_ranks"]) <= seen) or any(what == "grad_norm" for what, _ in rows)


def _judge_incident(session: Session, sides: Sides, before: Mapping[str, Any]) -> tuple[str, str]:
    """A crash, a hang, a failed allocation, a first NaN: long enough without it is what counts."""
    found = exposure(session, sides, [before["onset_step"]])
    if found.steps is None or not found.clean:
        why = "Gone, but steps are not known for both runs, so nothing says whether it would have shown."
        return "undecided", why
    if not found.enough:
        return "undecided", f"Gone, but {found.said}."
    return "fixed", f"Gone for long enough: {found.said}, and nothing that changed is known to hide it."


def _judge_state(session: Session, before: Mapping[str, Any], bound: float) -> tuple[str, str]:
    """Slow, or leaking: the after-run must pass the onset and be back where the healthy part was."""
    if before["fault"] == "throughput":
        return _judge_slow(session, before, bound)
    return _judge_leak(session)


def _judge_slow(session: Session, fault: Mapping[str, Any], bound: float) -> tuple[str, str]:
    onset = fault["onset_step"]
    if onset is None:
        return judge_traced(session, fault)
    before, after = (_seconds(session, run) for run in session.runs)
    if not after or max(after) < onset:
        return "undecided", f"The after-run does not pass step {onset}, at which it began before."
    healthy = [seconds for step, seconds in before.items() if step < onset][1:]
    slow = [seconds for step, seconds in before.items() if step >= onset]
    later = [seconds for step, seconds in after.items() if step >= onset]
    if min(len(healthy), len(slow), len(later)) < LEAST_STEPS:
        return "undecided", "Too few step times before the onset, after it, or in the after-run."
    gain, rest = ratio_of_medians(slow, later), ratio_of_medians(healthy, later)
    excess = ratio_of_medians(healthy, slow).ratio - 1.0
    allowed = 1.0 + max(bound, REST * excess)
    said = f"a step takes {gain.ratio:.2f} times as long as in the slow part, {rest.ratio:.2f} times as in the healthy"
    if gain.high < 1.0 and rest.high <= allowed:
        return "fixed", f"Back to the level before step {onset}: {said} (at most {rest.high:.2f})."
    if rest.low > allowed or gain.low > 1.0:
        return "not fixed", f"Not back to the level before step {onset}: {said} (at least {rest.low:.2f})."
    return "undecided", f"Faster, but not shown to be back: {said} ({rest.low:.2f} to {rest.high:.2f})."


LEAST_STEPS = 5


def _seconds(session: Session, run: str) -> dict[int, float]:
    session.need(["step_times"])
    rows = session.connection.execute(
        "SELECT step, seconds FROM step_times WHERE run_id = $run ORDER BY step", {"run": run}
    ).fetchall()
    return {int(step): float(seconds) for step, seconds in rows}


def _judge_leak(session: Session) -> tuple[str, str]:
    """A leak is gone where every series that grew before is shown to grow by a small part of that at most."""
    grown = [row for row in memory(session) if row["before"] and row["before"]["kind"] == "growing"]
    paired = [row for row in grown if row["after"]]
    if not paired or len(paired) < len(grown):
        return "undecided", "Memory that grew before was not recorded in the after-run."
    still = [row for row in paired if row["after"]["kind"] == "growing"]
    if still:
        return "not fixed", f"{still[0]['kind']} still grows by {still[0]['after']['slope']:.0f} B per step."
    worst = max(paired, key=lambda row: row["after"]["ci"][1] / row["before"]["slope"])
    most, steps = worst["after"]["ci"][1], min(row["after"]["n"] for row in paired)
    said = f"at most {most:.0f} B per step, {worst['before']['slope']:.0f} before"
    if any(row["verdict"] != "fixed" for row in paired) or steps < LEAST_LEAK_STEPS:
        return "undecided", f"No longer shown to grow, but not shown to be flat either: {said}."
    return "fixed", f"Memory no longer grows: {said}."


LEAST_LEAK_STEPS = 20


def _silent(session: Session, judged: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Twins that part: two runs of one job that must agree to the last digit and do not."""
    if any(entry["fault"] == "silent" for entry in judged):
        return []
    before, after = session.runs
    rows = session.rows("twin_divergence", before=before, after=after) if "twin_divergence" in queries() else []
    row = rows[0] if rows else {"confidence": None}
    if row["confidence"] is None:  # no twins, or twins that agree
        return []
    known = [side for entry in judged for side in (entry["before"], entry["after"]) if side]
    if any(_began_by(fault["onset_step"], row["step"]) for fault in known):
        return []  # the parting is what that fault did to the numbers
    shown = {
        "fault": "silent", "kind": "incident", "culprit_ranks": row["shard_ranks"] or [], "onset_step": row["step"],
        "onset_time": None, "confidence": row["confidence"], "statement": row["text"], "explained_by": None,
        "severity": "fault", "finding": "twin_divergence", **_explained(session.only(before), row),
    }  # fmt: skip
    why = "The two runs are twins and part, so one of them is wrong; that it is the before-run is your word, not ours."
    return [{"fault": "silent", "before": shown, "after": None, "verdict": "undecided", "why": why}]


def _explained(session: Session, row: Mapping[str, Any]) -> dict[str, Any]:
    """Causes, experiments and evidence of twins that part: what the before-run shows, and how they part."""
    fired = {finding.query.name: finding.statement for finding in findings(session)}
    fired["twin_divergence"] = f"they agree for {row['agreed_steps']} steps"
    evidence = []
    if row["step"] is not None:
        fired["twin_metrics"] = f"{row['metric']} at step {row['step']}: {row['before_text']} and {row['after_text']}"
        evidence.append({key: row[key] for key in ("source", "line", "rank", "step")} | {"text": fired["twin_metrics"]})
    if row["differing"] is not None and row["differing"] < row["shards"]:
        fired["twin_shards"] = f"{row['differing']} of {row['shards']} in {row['tag']}"
    evidence += [
        {"source": source, "line": None, "rank": None, "step": row["tag_step"], "text": "differs from its twin"}
        for source in row["shard_sources"] or []
    ]
    nowhen = {"time": None, "finding": "twin_divergence"}
    return explained("silent", fired) | {"evidence": [entry | nowhen for entry in evidence[:EVIDENCE_ROWS]]}


def _began_by(onset: int | None, step: int | None) -> bool:
    return onset is None or step is None or onset <= step


def overall(
    judged: Sequence[Mapping[str, Any]], speed: Mapping[str, Any], growing: Sequence[Mapping[str, Any]]
) -> tuple[str, str]:
    """The verdict on the whole and its reason: the worst news wins, a fault that another explains is not counted."""
    counted = [e for e in judged if not (e["before"] or {}).get("explained_by") or e["after"]] or list(judged)
    for verdict in ("regressed", "not fixed", "masked", "undecided"):
        for entry in counted:
            if entry["verdict"] == verdict:
                return verdict, f"{_title(entry)}: {entry['why']}"
    if speed["verdict"] == "slower" and speed["comparable"]:
        return "regressed", f"Steps take {speed['ratio']:.2f} times as long as before."
    leaking = [row for row in growing if row["verdict"] == "growing"]
    if leaking:
        return "regressed", f"{leaking[0]['kind']} of rank {leaking[0]['rank']} grows in the after-run only."
    if counted:
        return "fixed", " ".join(f"{_title(entry)}: {entry['why']}" for entry in counted)
    if speed["verdict"] == "slower":  # time per sample or token: the other work may be the reason
        return "undecided", f"{speed['why']}. Whether that comes from the other work or from a fault is not shown."
    so = "steps take as long as before" if speed["verdict"] == "equivalent" else "nothing is shown to have got worse"
    return "no change", f"Nothing is wrong on either side, and {so}: {speed['why']}."


def _title(entry: Mapping[str, Any]) -> str:
    return knowledge.faults()[entry["fault"]].title


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
