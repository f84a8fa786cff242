"""The JSON of `diagnose` or `compare` -> what a page shows, in its order. HTML and Markdown render the same model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from postmortem.report import words

Document: TypeAlias = Mapping[str, Any]
EVIDENCE = 40
CHANGES = 200
SENTENCES = 60


@dataclass(frozen=True, slots=True)
class Figure:
    """A key number: what it is, its value, and its interval, n and meaning."""

    label: str
    value: str
    detail: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a heading row; the first cell of a row names it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0


@dataclass(frozen=True, slots=True)
class FaultView:
    """One fault through its four stages."""

    name: str
    side: str
    title: str
    statement: str
    facts: Sequence[tuple[str, str]]
    mechanisms: Sequence[str]
    causes: Sequence[Mapping[str, Any]]
    unproven: Sequence[str]
    experiments: Sequence[Mapping[str, str]]
    evidence: Table
    verdict: str
    why: str
    findings: Sequence[str]


@dataclass(frozen=True, slots=True)
class RunView:
    """One run: its facts, what was read of it, and what is worth a mention."""

    side: str
    name: str
    facts: Sequence[tuple[str, str]]
    coverage: Sequence[tuple[str, str]]
    missing: Sequence[str]
    notes: Sequence[str]
    environment: Sequence[str]


@dataclass(frozen=True)
class Page:
    """Everything a report shows except its charts."""

    title: str
    comparison: bool
    verdict: str
    headline: str
    why: str
    figures: Sequence[Figure]
    change: Sequence[str]
    verdicts: Table
    faults: Sequence[FaultView]
    changes: Table
    memory: Table
    chain: Table
    runs: Sequence[RunView]
    limits: Sequence[str]
    queries: Sequence[str] = field(default_factory=list)


def build(document: Document) -> Page:
    """The model of either document.

    Raises:
        KeyError: the document has neither schema.
    """
    is_comparison = str(document.get("schema", "")).startswith("postmortem.comparison/")
    return _comparison(document) if is_comparison else _diagnosis(document)


def sides(document: Document) -> dict[str, Document]:
    """side -> diagnosis, as far as the document carries them."""
    if "run" in document:
        return {"run": document}
    return {s: document[f"{s}_diagnosis"] for s in ("before", "after") if document.get(f"{s}_diagnosis")}


def _diagnosis(document: Document) -> Page:
    primary = document.get("primary")
    name = _text(document.get("run", {}).get("name"), "run")
    word = "fault" if primary else "no fault found"
    who = words.ranks(primary.get("culprit_ranks")) if primary else ""
    title = words.fault(primary["fault"]) if primary else "no fault found"
    return Page(
        title=f"{title}: {name}", comparison=False, verdict=word,
        headline=title + (f", {who}" if who else ""),
        why=_text(primary["statement"] if primary else "Nothing that the files show is a fault; see below what was not checked."),
        figures=_run_figures(document, primary), change=_may_change_diagnosis(document),
        verdicts=_fault_table(document.get("faults", [])), faults=_faults(document, "run", {}),
        changes=Table((), ()), memory=Table((), ()), chain=_chain(document), runs=_runs(document), limits=_limits(document),
        queries=_names(document),
    )  # fmt: skip


def _comparison(document: Document) -> Page:
    verdict = _text(document.get("verdict"), "undecided")
    judged = {str(f.get("fault")): f for f in document.get("faults", [])}
    before, after = (_text(document.get(side), side) for side in ("before", "after"))
    found = sides(document) or _from_verdicts(document)
    faults = [fault for side, part in found.items() for fault in _faults(part, side, judged)]
    return Page(
        title=f"{verdict}: {before} → {after}", comparison=True, verdict=verdict, headline=verdict,
        why=_text(document.get("why")), figures=_comparison_figures(document), change=_may_change(document),
        verdicts=_verdict_table(document), faults=faults, changes=_changes(document), memory=_memory(document),
        chain=_chain(found.get("before", {})), runs=_runs(document), limits=_limits(document), queries=_names(document),
    )  # fmt: skip


def _from_verdicts(document: Document) -> dict[str, Document]:
    """Diagnoses in outline, where the document carries only the verdicts per fault."""
    return {
        side: {"faults": [f[side] for f in document.get("faults", []) if f.get(side)]} for side in ("before", "after")
    }


def _text(value: Any, otherwise: str = "") -> str:
    return words.cut(value, 1200) if value not in (None, "") else otherwise


def _runs_of(document: Document) -> dict[str, Document]:
    return sides(document)


# --- key numbers ------------------------------------------------------------------------------------------


def _run_figures(document: Document, primary: Document | None) -> list[Figure]:
    run = document.get("run", {})
    out = []
    if primary:
        out.append(Figure("who began it", words.ranks(primary.get("culprit_ranks")) or "no single rank", f"confidence {_text(primary.get('confidence'), 'not stated')}"))
        onset, last = primary.get("onset_step"), run.get("last_step")
        after = f"of {words.number(last)} steps" if last is not None else ""
        out.append(Figure("onset", f"step {words.number(onset)}" if onset is not None else "no step stated", " · ".join(filter(None, [after, words.when(primary.get("onset_time"))]))))
    hosts = len(run.get("hosts") or [])
    out.append(Figure("size", f"{words.number(run.get('world_size'))} ranks", f"{hosts} host{'s' if hosts != 1 else ''}" if hosts else "hosts not stated"))
    out.append(Figure("steps", _span(run), f"end: {_text(run.get('end'), 'unknown')}"))
    return out


def _span(run: Document) -> str:
    if run.get("last_step") is None:
        return "none stated"
    return f"{words.number(run.get('first_step'))} to {words.number(run.get('last_step'))}"


def _comparison_figures(document: Document) -> list[Figure]:
    makers = (_throughput, _stability, _worst_memory, _loss)
    return [figure for make in makers if (figure := make(document)) is not None]


def _throughput(document: Document) -> Figure | None:
    found = document.get("throughput") or {}
    if not found:
        return None
    ratio, word = words.finite(found.get("ratio")), _text(found.get("verdict"), "undecided")
    if ratio is None:
        return Figure("step time, after / before", "not known", f"{word}: {_text(found.get('why'), 'no step times on both sides')}", words.tone(word))
    spread = words.interval(found.get("ci"))
    n = " and ".join(words.number(v) for v in found.get("n") or [])
    parts = [f"interval {spread}" if spread else "", f"n = {n} steps" if n else "", word]
    return Figure("step time, after / before", f"{words.number(ratio)} ×", " · ".join(filter(None, parts)), words.tone(word))


def _stability(document: Document) -> Figure | None:
    found = document.get("stability") or {}
    have, needed = found.get("clean_steps_after"), found.get("needed")
    if have is None and needed is None:
        return None
    word = _text(found.get("verdict"), "")
    bound = words.finite(found.get("upper_bound_after"))
    parts = [
        f"{words.number(needed)} needed" if needed is not None else "",
        f"failure rate after at most {words.number(bound)} per step" if bound is not None else "", word,
    ]  # fmt: skip
    return Figure("clean steps after", words.number(have), " · ".join(filter(None, parts)), words.tone(word) if word else "")


def _worst_memory(document: Document) -> Figure | None:
    rows = [row for row in document.get("memory") or [] if row.get("before") or row.get("after")]
    if not rows:
        return None
    worst = max(rows, key=lambda row: max(words.finite((row.get(s) or {}).get("slope")) or 0.0 for s in ("before", "after")))
    unit = _text(worst.get("unit"), "B/step")
    before, after = ((worst.get(side) or {}) for side in ("before", "after"))
    value = " → ".join(words.amount(side.get("slope"), unit) if side.get("slope") is not None else "unknown" for side in (before, after))
    where = f"{_text(worst.get('kind')).replace('_', ' ')}, {words.ranks([worst.get('rank')]) or 'job'}"
    spread = words.interval(after.get("ci"), unit)
    word = _text(worst.get("verdict"))
    return Figure("steepest memory growth", value, " · ".join(filter(None, [where, f"after: {spread}" if spread else "", word])), words.tone(word))


def _loss(document: Document) -> Figure | None:
    found = document.get("loss") or {}
    word = _text(found.get("verdict"))
    if not word:
        return None
    detail = _text(found.get("why"))
    spread = words.interval(found.get("ci"))
    parts = [detail, f"after / before {words.number(found['ratio'])}" if words.finite(found.get("ratio")) is not None else "", f"interval {spread}" if spread else ""]
    return Figure("loss", word, " · ".join(filter(None, parts)), words.tone(word))


# --- what would change the verdict ------------------------------------------------------------------------


def _may_change(document: Document) -> list[str]:
    said = [_text(s) for s in document.get("would_change") or []]
    if said:
        return said[:SENTENCES]
    out = []
    stability = document.get("stability") or {}
    have, needed = (words.finite(stability.get(k)) for k in ("clean_steps_after", "needed"))
    if have is not None and needed is not None and have < needed:
        out.append(f"{words.number(needed - have)} more clean steps in the run after: it has {words.number(have)} of the {words.number(needed)} needed.")
    if document.get("verdict") == "masked":
        out += [
            f"The run after repeated with {_text(c.get('what'))} back at {words.plain(c.get('before'))}: if the fault stays away, it is fixed."
            for c in document.get("changes") or [] if c.get("can_mask")
        ]  # fmt: skip
    noise = words.finite((document.get("throughput") or {}).get("break_even_noise"))
    if noise is not None:
        out.append(f"Run-to-run noise above {words.number(noise * 100)} %: the throughput verdict holds below that.")
    missing = [sentence for part in sides(document).values() for sentence in (part.get("coverage") or {}).get("missing") or []]
    if missing and document.get("verdict") == "undecided":
        out.append("Evidence that is missing on one side; it is listed under coverage.")
    if document.get("verdict") == "fixed":
        out.append("The same fault seen once more in a longer run after the change.")
    return out


def _may_change_diagnosis(document: Document) -> list[str]:
    said = [_text(s) for s in document.get("would_change") or []]
    if said:
        return said[:SENTENCES]
    primary = document.get("primary")
    missing = (document.get("coverage") or {}).get("missing") or []
    if not primary:
        return [f"Evidence that was not there: {_text(s)}" for s in missing[:5]]
    fault = next((f for f in document.get("faults") or [] if f.get("fault") == primary.get("fault")), {})
    out = [
        f"{_text(e.get('title'))}: if instead {_lower(_text(e.get('expect_if_false')))}"
        for e in (fault.get("experiments") or [])[:2] if e.get("expect_if_false")
    ]  # fmt: skip
    return out + [f"Evidence that was not there: {_text(s)}" for s in missing[:3]]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


# --- faults -----------------------------------------------------------------------------------------------


def _fault_table(faults: Sequence[Document]) -> Table:
    rows = [
        (words.fault(f.get("fault")), _text(f.get("severity"), "fault"), words.ranks(f.get("culprit_ranks")) or "no single rank",
         words.number(f["onset_step"]) if f.get("onset_step") is not None else "—", _text(f.get("confidence"), "—"), _text(f.get("statement")))
        for f in faults
    ]  # fmt: skip
    return Table(("fault", "severity", "began at", "onset step", "confidence", "statement"), rows)


def _verdict_table(document: Document) -> Table:
    rows = [
        (words.fault(f.get("fault")), _brief(f.get("before")), _brief(f.get("after")), _text(f.get("verdict"), "undecided"), _text(f.get("why")))
        for f in document.get("faults") or []
    ]  # fmt: skip
    return Table(("fault", "before", "after", "verdict", "why"), rows)


def _brief(fault: Any) -> str:
    if not isinstance(fault, Mapping):
        return "absent"
    who, onset = words.ranks(fault.get("culprit_ranks")), fault.get("onset_step")
    parts = [who, f"from step {words.number(onset)}" if onset is not None else ""]
    return ", ".join(filter(None, parts)) or "present"


def _faults(document: Document, side: str, judged: Mapping[str, Document]) -> list[FaultView]:
    return [_fault(fault, side, judged.get(str(fault.get("fault")), {})) for fault in document.get("faults") or []]


def _fault(fault: Document, side: str, judged: Document) -> FaultView:
    causes = sorted(fault.get("causes") or [], key=lambda c: words.finite(c.get("rank_of_likelihood")) or 1e9)
    proven = [c for c in causes if c.get("for") or c.get("against")]
    where = f"in the run {side}" if side != "run" else ""
    return FaultView(
        name=_text(fault.get("fault"), "fault"), side=side,
        title=f"{words.fault(fault.get('fault'))} {where}".strip(), statement=_text(fault.get("statement")),
        facts=_fault_facts(fault), mechanisms=[_text(m) for m in fault.get("mechanisms") or []],
        causes=[{"title": _text(c.get("title")), "for": _texts(c.get("for")), "against": _texts(c.get("against"))} for c in proven],
        unproven=[_text(c.get("title")) for c in causes if c not in proven],
        experiments=[{k: _text(e.get(k)) for k in ("title", "change", "expect_if_true", "expect_if_false")} for e in fault.get("experiments") or []],
        evidence=_evidence(fault.get("evidence") or []),
        verdict=_text(judged.get("verdict")), why=_text(judged.get("why")) or _text(fault.get("verification")) or _needs(fault),
        findings=_unique(e.get("finding") for e in [fault, *(fault.get("evidence") or [])]),
    )  # fmt: skip


def _needs(fault: Document) -> str:
    """What a fix has to show, from one incident in T steps: 19 T clean steps (95 % confidence)."""
    onset = words.finite(fault.get("onset_step"))
    if fault.get("fault") in {"throughput"}:
        return "A run that passes the step of onset with its step time back within 3 % of the healthy part, and no other change that explains it."
    if onset:
        return f"One incident in {words.number(onset)} steps asks for {words.number(19 * onset)} clean steps (95 % confidence), and no other change that hides it."
    return "A run that is long enough to have shown the fault again, and no other change that hides it; `postmortem compare` decides."


def _texts(values: Any) -> list[str]:
    return [_text(v.get("text") if isinstance(v, Mapping) else v) for v in values or []]


def _unique(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(v) for v in values if v))


def _fault_facts(fault: Document) -> list[tuple[str, str]]:
    onset = fault.get("onset_step")
    facts = [
        ("began at", words.ranks(fault.get("culprit_ranks")) or "no single rank"),
        ("onset", f"step {words.number(onset)}" if onset is not None else ""), ("time", words.when(fault.get("onset_time"))),
        ("severity", _text(fault.get("severity"))), ("confidence", _text(fault.get("confidence"))),
    ]  # fmt: skip
    return [fact for fact in facts if fact[1]]


def _evidence(rows: Sequence[Document]) -> Table:
    out = [(_where(r), _id(r.get("rank")), _id(r.get("step")), words.when(r.get("time")), words.cut(r.get("text") or "", 400)) for r in rows]
    kept = list(dict.fromkeys(out))
    return Table(("source", "rank", "step", "time", "text"), kept[:EVIDENCE], max(0, len(kept) - EVIDENCE))


def _where(row: Document) -> str:
    source = _text(row.get("source"), "—")
    return f"{source}:{row['line']}" if row.get("line") is not None else source


def _id(value: Any) -> str:
    return "" if value is None else words.number(value)


def _chain(document: Document) -> Table:
    """The chain of causes, where the diagnosis carries one."""
    rows = [
        (words.when(r.get("time")) or _id(r.get("step")), words.ranks(r.get("ranks") or [r.get("rank")]) or "job", _text(r.get("role")), words.cut(r.get("text") or r.get("statement") or "", 300), _where(r))
        for r in document.get("chain") or []
    ]  # fmt: skip
    return Table(("time or step", "who", "role", "what", "source"), rows[:EVIDENCE], max(0, len(rows) - EVIDENCE))


# --- what changed, what was read --------------------------------------------------------------------------


def _changes(document: Document) -> Table:
    ordered = sorted(document.get("changes") or [], key=lambda c: not c.get("can_mask"))
    rows = [
        (_text(c.get("what")), _text(c.get("kind")), words.plain(c.get("before")), words.plain(c.get("after")), ", ".join(map(words.fault, c.get("can_mask") or [])))
        for c in ordered
    ]  # fmt: skip
    return Table(("what", "kind", "before", "after", "can hide"), rows[:CHANGES], max(0, len(rows) - CHANGES))


def _memory(document: Document) -> Table:
    def cell(side: Any, unit: str) -> str:
        if not isinstance(side, Mapping) or side.get("slope") is None:
            return "—"
        spread = words.interval(side.get("ci"), unit)
        return words.amount(side["slope"], unit) + (f" ({spread})" if spread else "")

    rows = [
        (f"{_text(m.get('kind')).replace('_', ' ')}, {words.ranks([m.get('rank')]) or 'job'}", cell(m.get("before"), m.get("unit") or "B/step"), cell(m.get("after"), m.get("unit") or "B/step"), _text(m.get("verdict")))
        for m in document.get("memory") or []
    ]  # fmt: skip
    rows.sort(key=lambda row: row[3] in {"", "no change", "flat"})
    return Table(("memory", "slope before", "slope after", "verdict"), rows[:64], max(0, len(rows) - 64))


def _runs(document: Document) -> list[RunView]:
    return [_run(part, side) for side, part in sides(document).items()]


def _run(document: Document, side: str) -> RunView:
    run, coverage = document.get("run") or {}, document.get("coverage") or {}
    hosts = [str(h) for h in run.get("hosts") or []]
    facts = [
        ("ranks", words.number(run.get("world_size"))), ("hosts", words.cut(", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else ""), 300)),
        ("steps", _span(run)), ("started", words.when(run.get("started"))), ("ended", words.when(run.get("ended"))), ("end", _text(run.get("end"))),
    ]  # fmt: skip
    files = coverage.get("files") or {}
    read = [("files " + key.replace("_", " "), words.number(value)) for key, value in files.items()]
    read += [(key.replace("_", " "), words.number(value)) for key, value in coverage.items() if key.startswith("ranks_") or key == "issues"]
    missing = [_text(s) for s in coverage.get("missing") or []]
    notes = [_text(n.get("statement") if isinstance(n, Mapping) else n) for n in document.get("notes") or []]
    return RunView(
        side, _text(run.get("name"), side), [f for f in facts if f[1]], read,
        _capped(missing), _capped(notes), _capped([words.plain(e, 400) for e in document.get("environment") or []]),
    )  # fmt: skip


def _capped(sentences: Sequence[str]) -> list[str]:
    more = len(sentences) - SENTENCES
    return [*sentences[:SENTENCES], *([f"… and {words.number(more)} more."] if more > 0 else [])]


def _limits(document: Document) -> list[str]:
    said = [_text(s) for s in document.get("limits") or []]
    always = [
        "The page speaks of what the files hold. What was not collected is not judged: an absent error is no proof of health.",
        "Causes are candidates, ordered by the evidence for and against them; the experiments tell them apart.",
        "Events on different hosts are ordered only as finely as their clocks agree.",
        "Charts keep the first, last, lowest and highest value of every slice of steps; tables under them are thinned.",
    ]
    if "run" not in document:
        always.insert(2, "Two runs are compared, one on each side unless more were given: noise from run to run is assumed, not measured, where it says so.")
    return said + always


def _names(document: Document) -> list[str]:
    return [str(name) for name in document.get("queries") or []]
