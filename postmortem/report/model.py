"""What a page shows, as plain data: filled from the JSON of `diagnose` or `compare`, rendered as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Block:
    """A table of numbers with its verdict, the sentence that sums it up, and the queries behind it."""

    title: str
    verdict: str
    sentence: str
    table: Table
    queries: Sequence[str]


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
    further: Sequence[Mapping[str, str]]
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
    blocks: Sequence[Block]
    chain: Table
    runs: Sequence[RunView]
    limits: Sequence[str]
    queries: Sequence[str] = field(default_factory=list)


def sides(document: Document) -> dict[str, Document]:
    """Side -> diagnosis, as far as the document carries them."""
    if "run" in document:
        return {"run": document}
    return {s: document[f"{s}_diagnosis"] for s in ("before", "after") if document.get(f"{s}_diagnosis")}


def text(value: Any, otherwise: str = "") -> str:
    """A text of the document, shortened."""
    return words.cut(value, 1200) if value not in (None, "") else otherwise


def span(run: Document) -> str:
    """The steps of a run, from first to last."""
    if run.get("last_step") is None:
        return "none stated"
    return f"{words.number(run.get('first_step'))} to {words.number(run.get('last_step'))}"
