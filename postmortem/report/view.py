"""The JSON of `diagnose` or `compare` -> the model of a page, in its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from postmortem.report import numbers, stages, words
from postmortem.report.blocks import blocks
from postmortem.report.model import CHANGES, SENTENCES, Document, Page, RunView, Table, sides, span, text


def build(document: Document) -> Page:
    """The model of either document.

    Raises:
        KeyError: the document has neither schema.
    """
    is_comparison = str(document.get("schema", "")).startswith("postmortem.comparison/")
    return _comparison(document) if is_comparison else _diagnosis(document)


def _diagnosis(document: Document) -> Page:
    primary = document.get("primary")
    name = text(document.get("run", {}).get("name"), "run")
    word = "fault" if primary else "no fault found"
    who = words.ranks(primary.get("culprit_ranks")) if primary else ""
    title = words.fault(primary["fault"]) if primary else "no fault found"
    return Page(
        title=f"{title}: {name}", comparison=False, verdict=word,
        headline=title + (f", {who}" if who else ""),
        why=words.sentence(text(primary["statement"])) if primary else ("Nothing that the files show is a fault; see below what was not checked."),
        figures=numbers.of_run(document, primary), change=numbers.may_change_diagnosis(document),
        verdicts=stages.overview(document.get("faults", [])), faults=stages.faults(document, "run", {}),
        changes=Table((), ()), blocks=blocks(document), chain=stages.chain(document), runs=_runs(document), limits=_limits(document),
        queries=_names(document),
    )  # fmt: skip


def _comparison(document: Document) -> Page:
    verdict = text(document.get("verdict"), "undecided")
    judged = {str(f.get("fault")): f for f in document.get("faults", [])}
    before, after = (text(document.get(side), side) for side in ("before", "after"))
    found = sides(document) or _from_verdicts(document)
    faults = [
        fault for side, part in found.items() for fault in stages.faults(_with_own(part, side, judged), side, judged)
    ]
    return Page(
        title=f"{verdict}: {before} → {after}", comparison=True, verdict=verdict, headline=verdict,
        why=text(document.get("why")), figures=numbers.of_comparison(document), change=numbers.may_change(document),
        verdicts=stages.verdicts(document), faults=faults, changes=_changes(document), blocks=blocks(document),
        chain=stages.chain(found.get("before", {})), runs=_runs(document), limits=_limits(document), queries=_names(document),
    )  # fmt: skip


def _with_own(part: Document, side: str, judged: Mapping[str, Document]) -> Document:
    """The diagnosis of one side, with the faults that only the comparison shows."""
    known = {fault.get("fault") for fault in part.get("faults") or []}
    own = [e[side] for name, e in judged.items() if name not in known and (e.get(side) or {}).get("causes")]
    return {**part, "faults": [*(part.get("faults") or []), *own]}


def _from_verdicts(document: Document) -> dict[str, Document]:
    """Diagnoses in outline, where the document carries only the verdicts per fault."""
    return {
        side: {"faults": [f[side] for f in document.get("faults", []) if f.get(side)]} for side in ("before", "after")
    }


def _changes(document: Document) -> Table:
    ordered = sorted(document.get("changes") or [], key=lambda c: not c.get("can_mask"))
    rows = [
        (text(c.get("what")), text(c.get("kind")), words.plain(c.get("before")), words.plain(c.get("after")), ", ".join(map(words.fault, c.get("can_mask") or [])))
        for c in ordered
    ]  # fmt: skip
    return Table(("what", "kind", "before", "after", "can hide"), rows[:CHANGES], max(0, len(rows) - CHANGES))


def _runs(document: Document) -> list[RunView]:
    return [_run(part, side) for side, part in sides(document).items()]


def _run(document: Document, side: str) -> RunView:
    run, coverage = document.get("run") or {}, document.get("coverage") or {}
    hosts = [str(h) for h in run.get("hosts") or []]
    facts = [
        ("ranks", words.number(run.get("world_size"))), ("hosts", words.cut(", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else ""), 300)),
        ("steps", span(run)), ("started", words.when(run.get("started"))), ("ended", words.when(run.get("ended"))), ("end", text(run.get("end"))),
    ]  # fmt: skip
    files = coverage.get("files") or {}
    read = [("files " + key.replace("_", " "), words.number(value)) for key, value in files.items()]
    read += [
        (key.replace("_", " "), words.number(value))
        for key, value in coverage.items()
        if key.startswith("ranks_") or key == "issues"
    ]
    missing = [text(s) for s in coverage.get("missing") or []]
    notes = [text(n.get("statement") if isinstance(n, Mapping) else n) for n in document.get("notes") or []]
    return RunView(
        side, text(run.get("name"), side), [f for f in facts if f[1]], read,
        _capped(missing), _capped(notes), _capped([words.plain(e, 400) for e in document.get("environment") or []]),
    )  # fmt: skip


def _capped(sentences: Sequence[str]) -> list[str]:
    more = len(sentences) - SENTENCES
    return [*sentences[:SENTENCES], *([f"… and {words.number(more)} more."] if more > 0 else [])]


def _limits(document: Document) -> list[str]:
    said = [text(s) for s in document.get("limits") or []]
    always = [
        "The page speaks of what the files hold. What was not collected is not judged: an absent error is no proof of health.",
        "Causes are candidates, ordered by the evidence for and against them; the experiments tell them apart.",
        "Events on different hosts are ordered only as finely as their clocks agree.",
        "Charts keep the first, last, lowest and highest value of every slice of steps; tables under them are thinned.",
    ]
    if "run" not in document and not said:
        always.insert(
            2,
            "Two runs are compared, one on each side unless more were given: noise from run to run is assumed, not measured, where it says so.",
        )
    return said + always


def _names(document: Document) -> list[str]:
    return [str(name) for name in document.get("queries") or []]
