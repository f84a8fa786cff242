"""The model as Markdown for a ticket, a comment or a CI summary: under 60 KB, nothing in it formats, links or calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from postmortem.report import view, words
from postmortem.report.model import Document, FaultView, Page

LARGEST = 60_000
"""B: a comment of GitHub holds 65,536 characters."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&-])")
_CELL = 300


def escape(text: object) -> str:
    """Text that Markdown shows as it stands: no formatting, HTML, link, table cell, or mention."""
    line = " ".join(words.cut(text, 1200).split())
    line = _SPECIAL.sub(r"\\\1", line)
    # A zero-width joiner after "@", and inside URL schemes, keeps forges from notifying people and linking.
    return line.replace("@", "@\u2060").replace("://", ":\u2060//").replace("www.", "www\u2060.")


def code(text: object, *, cell: bool = False) -> str:
    """Text as inline code, in a fence longer than any run of backticks in it; a table cell cannot hold a bare pipe."""
    line = " ".join(words.cut(text, _CELL).split())
    line = line.replace("|", "\\|") if cell else line
    if not line:
        return ""
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}"


def render(document: Document) -> str:
    """The Markdown of a document whose texts are redacted already."""
    page = view.build(document)
    parts = [*_top(page), *_faults(page), *_changes(page), *_coverage(page)]
    return _fit(parts)


def _fit(parts: Sequence[str]) -> str:
    """Whole sections as long as they fit; the most important come first."""
    kept, size = [], 0
    for part in parts:
        size += len(part.encode()) + 1
        if size > LARGEST - 200:
            kept.append("\n*Shortened to fit a comment; the HTML report holds the rest.*\n")
            break
        kept.append(part)
    return "\n".join(kept)


def _top(page: Page) -> Iterable[str]:
    names = " → ".join(escape(run.name) for run in page.runs) or escape(page.title)
    yield f"## {words.symbol(page.verdict)} {escape(page.headline[:1].upper() + page.headline[1:])}: {names}\n\n{escape(page.why)}\n"
    if page.figures:
        yield _table(("", "value", "detail"), [(f.label, f.value, f.detail) for f in page.figures])
    if page.change:
        yield "**What would change this verdict**\n\n" + _list(page.change)
    if page.verdicts.rows:
        yield "### Faults\n\n" + _table(page.verdicts.head, page.verdicts.rows, page.verdicts.more)
    if page.chain.rows:
        yield "**Chain of causes**\n\n" + _table(page.chain.head, page.chain.rows, page.chain.more)


def _faults(page: Page) -> Iterable[str]:
    for fault in page.faults:
        facts = "; ".join(f"{k}: {v}" for k, v in fault.facts)
        yield f"### {escape(fault.title[:1].upper() + fault.title[1:])}\n\n1. **Fault.** {escape(fault.statement)} ({escape(facts)})"
        yield ("2. **Mechanism and candidate causes.** " + escape(" ".join(fault.mechanisms)) + "\n" + _causes(fault))
        tries = [
            f"   - {escape(e['title'])}: {code(e['change'])}. If right: {escape(e['expect_if_true'])}. If not: {escape(e['expect_if_false'])}."
            for e in fault.experiments[:8]
        ]
        yield "3. **Experiments.**\n" + "\n".join(tries)
        yield f"4. **Verification.** {escape(fault.verdict)} {escape(fault.why)}\n"
        if fault.evidence.rows:
            rows = [
                (where, rank, step, time, code(text, cell=True))
                for where, rank, step, time, text in fault.evidence.rows[:15]
            ]
            more = fault.evidence.more + max(0, len(fault.evidence.rows) - 15)
            yield "Evidence:\n\n" + _table(fault.evidence.head, rows, more, raw=4)


def _causes(fault: FaultView) -> str:
    lines = []
    for place, cause in enumerate(fault.causes[:8], 1):
        for_ = "".join(f" For: {s}." for s in cause["for"])
        against = "".join(f" Against: {s}." for s in cause["against"])
        lines.append(f"   - {place}. {escape(cause['title'])}.{escape(for_)}{escape(against)}")
    return "\n".join(lines)


def _changes(page: Page) -> Iterable[str]:
    if page.comparison:
        head, rows = page.changes.head, page.changes.rows[:60]
        more = page.changes.more + max(0, len(page.changes.rows) - 60)
        yield "### What changed\n\n" + (_table(head, rows, more) if rows else "Nothing that was found.\n")
    for block in page.blocks:
        title = f"### {block.title}" + (f": {block.verdict}" if block.verdict else "")
        said = f"{escape(block.sentence)}\n\n" if block.sentence else ""
        yield f"{title}\n\n{said}" + _table(block.table.head, block.table.rows, block.table.more)


def _coverage(page: Page) -> Iterable[str]:
    yield "### Coverage\n"
    for run in page.runs:
        facts = "; ".join(f"{k}: {v}" for k, v in [*run.facts, *run.coverage])
        yield f"- {escape(run.name)}: {escape(facts)}\n" + "\n".join(
            f"  - {escape(s)}" for s in [*run.missing[:20], *run.notes[:20]]
        )
    yield "\n### Limits\n\n" + _list(page.limits)


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escape(s)}" for s in sentences) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], more: int = 0, raw: int | None = None) -> str:
    """A pipe table; column `raw` is Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += [
        "| " + " | ".join(c if i == raw else escape(words.cut(c, _CELL)) for i, c in enumerate(row)) + " |"
        for row in rows
    ]
    return "\n".join(lines) + "\n" + (f"\n{words.number(more)} more rows are in the store.\n" if more else "")
