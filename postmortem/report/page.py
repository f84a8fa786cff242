"""Model and charts -> one HTML file that loads nothing, runs nothing it was not built with, and reads without scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from altair.utils.schemapi import debug_mode
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from postmortem.query import queries
from postmortem.report import carried, charts, checkpoints, curves, ranks, svg, transport, view, waiting, words
from postmortem.report.data import Data, Result
from postmortem.report.model import Document, Page, sides, text

_FOLDER = Path(__file__).parent
LARGEST = 2_000_000
"""B that a report may have: it has to pass as an attachment of a ticket or a mail."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart as the template takes it: `svg` and `json` are safe text, the rest is escaped there."""

    name: str
    title: str
    sentence: str
    svg: str
    json: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    queries: Sequence[str]
    more: int = 0


def render(document: Document, data: Data, *, static: bool, redacted: bool) -> str:
    """The page of a document whose texts are redacted already.

    Args:
        document: the JSON of `diagnose` or `compare`.
        data: rows of queries/report for each side.
        static: leave every script out.
        redacted: whether names were replaced, which the page says.
    """
    page = view.build(document)
    drawn = [_draw(figure) for figure in _figures(data, marks(document))]
    text = _fill(page, drawn, document, data, static=static, redacted=redacted)
    if len(text.encode()) > LARGEST and not static:  # the pictures say the same without their scripts
        text = _fill(page, drawn, document, data, static=True, redacted=redacted)
    return text


def _fill(
    page: Page,
    drawn: Sequence[Drawn],
    document: Document,
    data: Data,
    *,
    static: bool,
    redacted: bool,
) -> str:
    css, boot = _file("page.css"), _file("boot.js")
    bundle = "" if static else _bundle()
    values: dict[str, Any] = {
        "page": page, "figures": drawn, "sources": _sources(page, data), "static": static, "redacted": redacted,
        "css": css, "boot": boot, "bundle": bundle, "facts": "" if static else svg.script_json(document),
        "csp": _policy(css, [] if static else [bundle, boot]), "glossary": words.GLOSSARY, "version": _version(),
    }  # fmt: skip
    text: str = _template().render(values)
    return text


_CHARTS: Sequence[Callable[[Data, charts.Marks], charts.Figure | None]] = (
    curves.step_time, carried.phases, carried.operators, ranks.lateness, waiting.phases, waiting.waits, waiting.progress, transport.transports,
    transport.pairs, ranks.timeline, curves.loss, curves.grad_norm, curves.memory, checkpoints.divergence, checkpoints.grid,
)  # fmt: skip


def _figures(data: Data, extra: charts.Marks) -> list[charts.Figure]:
    """Every chart that the data carry. Tests check them against Vega-Lite's schema; doing so each time takes a second."""
    with debug_mode(False):
        return [figure for make in _CHARTS if (figure := make(data, extra)) is not None]


def _draw(figure: charts.Figure) -> Drawn:
    spec = words.printable(figure.spec, 300)
    try:
        picture = svg.draw(spec, figure.name)
    except ValueError:  # a picture that Vega cannot draw must not cost the report; its data table stays
        picture, spec = "This chart could not be drawn; its data are below.", None
    return Drawn(
        figure.name, figure.title, figure.sentence, picture, svg.script_json(spec) if spec else "",
        figure.head, figure.rows, figure.queries,
    )  # fmt: skip


def marks(document: Document) -> charts.Marks:
    """Onsets, steady parts and slopes that the verdicts state, for the charts."""
    found = sides(document)
    onsets = [
        {"step": fault["onset_step"], "label": _onset_label(side, fault)}
        for side, part in found.items() for fault in part.get("faults") or [] if fault.get("onset_step") is not None
    ]  # fmt: skip
    throughput = document.get("throughput") or {}
    steady = {side: tuple(span) for side, span in (throughput.get("steady") or {}).items() if span}
    levels = {
        side: (part["typical_ci"][0] * 1e3, part["typical_ci"][1] * 1e3)
        for side, part in (throughput.get("sides") or {}).items() if words.interval(part.get("typical_ci")) and None not in part["typical_ci"]
    }  # fmt: skip
    slopes = {
        (side, str(row.get("kind")), row.get("rank")): row[side]["slope"]
        for row in document.get("memory") or [] for side in ("before", "after", "run")
        if isinstance(row.get(side), Mapping) and words.finite(row[side].get("slope")) is not None
    }  # fmt: skip
    phases = [
        {"phase": text(row["phase"]), "difference": row["difference"],
         "n": f"{words.number(row['before_steps'])} and {words.number(row['after_steps'])}"}
        for row in throughput.get("phases") or [] if words.finite(row.get("difference")) is not None
    ]  # fmt: skip
    return charts.Marks(onsets[:6], steady, levels, slopes, phases)


def _onset_label(side: str, fault: Mapping[str, Any]) -> str:
    where = "" if side == "run" else f" ({side})"
    return f"{words.fault(fault.get('fault'))}{where}"


def _sources(page: Page, data: Data) -> dict[str, Any]:
    """Name -> title and SQL of every query that stands behind the page."""
    asked = {name: result for found in [*data.sides.values(), data.pair] for name, result in found.items()}
    known = queries()
    behind = [part.findings for part in page.faults] + [block.queries for block in page.blocks] + [page.queries]
    for name in (name for names in behind for name in names):
        if name in known and name not in asked:
            asked[name] = Result(name, known[name].title, known[name].sql, ())
    return asked


def _policy(css: str, scripts: Iterable[str]) -> str:
    """Content security policy: nothing loads; only the scripts with these hashes run.

    Vega sets styles of its own in the interactive page, so that one has to allow them.
    """
    allowed = " ".join(f"'sha256-{_hash(text)}'" for text in scripts)
    style = "'unsafe-inline'" if allowed else f"'sha256-{_hash(css)}'"
    script = f" script-src {allowed};" if allowed else ""
    return f"default-src 'none';{script} style-src {style}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _bundle() -> str:
    import vl_convert  # noqa: PLC0415 (84 MB)

    text = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub forgets the default
    if "</script" in text.lower() or "<!--" in text:
        raise ValueError("The Vega bundle cannot be put into a page safely.")
    return text


@cache
def _file(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(tone=words.tone, symbol=words.symbol, number=words.number)
    return environment.get_template("page.html")


@cache
def _version() -> str:
    try:
        return version("train-postmortem")
    except PackageNotFoundError:
        return "(checkout)"
