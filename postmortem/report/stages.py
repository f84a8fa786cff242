"""Faults through their four stages: what it is, why, how to isolate it, what verifies a fix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from postmortem.report import words
from postmortem.report.model import EVIDENCE, Document, FaultView, Table, text


def overview(faults: Sequence[Document]) -> Table:
    """One row per fault of a run."""
    rows = [
        (words.fault(f.get("fault")), text(f.get("severity"), "fault"), words.ranks(f.get("culprit_ranks")) or "no single rank",
         words.number(f["onset_step"]) if f.get("onset_step") is not None else "—", text(f.get("confidence"), "—"), text(f.get("statement")))
        for f in faults
    ]  # fmt: skip
    return Table(("fault", "severity", "began at", "onset step", "confidence", "statement"), rows)


def verdicts(document: Document) -> Table:
    """One row per fault of either run, with its verdict."""
    rows = [
        (words.fault(f.get("fault")), _brief(f.get("before")), _brief(f.get("after")), text(f.get("verdict"), "undecided"), text(f.get("why")))
        for f in document.get("faults") or []
    ]  # fmt: skip
    return Table(("fault", "before", "after", "verdict", "why"), rows)


def _brief(fault: Any) -> str:
    if not isinstance(fault, Mapping):
        return "absent"
    who, onset = words.ranks(fault.get("culprit_ranks")), fault.get("onset_step")
    parts = [who, f"from step {words.number(onset)}" if onset is not None else ""]
    return ", ".join(filter(None, parts)) or "present"


def faults(document: Document, side: str, judged: Mapping[str, Document]) -> list[FaultView]:
    """The faults of one side, each with its verdict where there is one."""
    return [_fault(fault, side, judged.get(str(fault.get("fault")), {})) for fault in document.get("faults") or []]


def _fault(fault: Document, side: str, judged: Document) -> FaultView:
    tries = [_experiment(e) for e in fault.get("experiments") or []]
    causes = sorted(fault.get("causes") or [], key=lambda c: words.finite(c.get("rank_of_likelihood")) or 1e9)
    proven = [c for c in causes if c.get("for") or c.get("against")]
    likely = {c.get("id") for c in proven if len(c.get("for") or []) > len(c.get("against") or [])}
    where = f"in the run {side}" if side != "run" else ""
    return FaultView(
        name=text(fault.get("fault"), "fault"), side=side,
        title=f"{words.fault(fault.get('fault'))} {where}".strip(), statement=words.sentence(text(fault.get("statement"))),
        facts=_fault_facts(fault), mechanisms=[text(m) for m in fault.get("mechanisms") or []],
        causes=[{"title": text(c.get("title")), "for": _texts(c.get("for")), "against": _texts(c.get("against"))} for c in proven],
        unproven=[text(c.get("title")) for c in causes if c not in proven],
        experiments=[e for e in tries if e["cause"] in likely] or tries[:3],
        further=[e for e in tries if e["cause"] not in likely] if any(e["cause"] in likely for e in tries) else tries[3:],
        evidence=_evidence(fault.get("evidence") or []),
        verdict=text(judged.get("verdict")), why=text(judged.get("why")) or text(fault.get("verification")) or _needs(fault),
        findings=_unique(e.get("finding") for e in [fault, *(fault.get("evidence") or [])]),
    )  # fmt: skip


def _needs(fault: Document) -> str:
    """What a fix has to show, from one incident in T steps: 19 T clean steps (95 % confidence)."""
    onset = words.finite(fault.get("onset_step"))
    if fault.get("fault") == "throughput":
        return "A run that passes the step of onset with its step time back within 3 % of the healthy part, and no other change that explains it."
    if onset:
        return f"One incident in {words.number(onset)} steps asks for {words.number(19 * onset)} clean steps (95 % confidence), and no other change that hides it."
    return "A run that is long enough to have shown the fault again, and no other change that hides it; `postmortem compare` decides."


def _experiment(experiment: Document) -> dict[str, str]:
    return {k: text(experiment.get(k)) for k in ("cause", "title", "change", "expect_if_true", "expect_if_false")}


def _texts(values: Any) -> list[str]:
    return [text(v.get("text") if isinstance(v, Mapping) else v) for v in values or []]


def _unique(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(v) for v in values if v))


def _fault_facts(fault: Document) -> list[tuple[str, str]]:
    onset = fault.get("onset_step")
    facts = [
        ("began at", words.ranks(fault.get("culprit_ranks")) or "no single rank"),
        ("onset", f"step {words.number(onset)}" if onset is not None else ""), ("time", words.when(fault.get("onset_time"))),
        ("severity", text(fault.get("severity"))), ("confidence", text(fault.get("confidence"))),
    ]  # fmt: skip
    return [fact for fact in facts if fact[1]]


def _evidence(rows: Sequence[Document]) -> Table:
    out = [
        (
            _where(r),
            _id(r.get("rank")),
            _id(r.get("step")),
            words.when(r.get("time")),
            words.cut(r.get("text") or "", 400),
        )
        for r in rows
        if r.get("source") or r.get("text")
    ]
    kept = list(dict.fromkeys(out))
    return Table(("source", "rank", "step", "time", "text"), kept[:EVIDENCE], max(0, len(kept) - EVIDENCE))


def _where(row: Document) -> str:
    source = text(row.get("source"), "—")
    return f"{source}:{row['line']}" if row.get("line") is not None else source


def _id(value: Any) -> str:
    return "" if value is None else words.number(value)


def chain(document: Document) -> Table:
    """The chain of causes, where the diagnosis carries one."""
    rows = [
        (words.when(r.get("time")) or _id(r.get("step")), words.ranks(r.get("ranks") or [r.get("rank")]) or "job", text(r.get("role")), words.cut(r.get("text") or r.get("statement") or "", 300), _where(r))
        for r in document.get("chain") or []
    ]  # fmt: skip
    return Table(("time or step", "who", "role", "what", "source"), rows[:EVIDENCE], max(0, len(rows) - EVIDENCE))
