"""Diagnosis or comparison -> HTML, Markdown and JSON that carry the same facts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postmortem import console
from postmortem.errors import PostmortemError
from postmortem.query import Session
from postmortem.redact import Redactor, hosts_in, users_in
from postmortem.report.data import Data, cleaned, gather
from postmortem.report.words import printable

__all__ = ["html", "markdown", "write"]


def html(document: Mapping[str, Any], data: Data, *, static: bool = False, redact: Redactor | None = None) -> str:
    """The report as one HTML file of at most 2 MB.

    Args:
        document: the JSON of `diagnose` or `compare`.
        data: rows behind the charts, from `gather`; may be empty.
        static: leave every script out.
        redact: replaces names; without it only secrets are masked.
    """
    from postmortem.report import page  # noqa: PLC0415 (altair costs a second, and JSON needs none)

    hide = redact or Redactor(names=False)
    safe = printable(hide.value(document))
    return page.render(safe, cleaned(data, hide), static=static, redacted=hide.names)


def markdown(document: Mapping[str, Any], *, redact: Redactor | None = None) -> str:
    """The report as Markdown of at most 60 KB."""
    from postmortem.report import ticket  # noqa: PLC0415

    return ticket.render(printable((redact or Redactor(names=False)).value(document)))


def write(
    document: Mapping[str, Any],
    session: Session,
    *,
    html: Path | None = None,
    markdown: Path | None = None,
    as_json: bool = False,
    static: bool = False,
    redact: bool = False,
) -> None:
    """Write what was asked for: files for HTML and Markdown, standard output for JSON or a short text.

    Raises:
        PostmortemError: a file cannot be written.
    """
    views = _sessions(session)
    hide = _redactor(document, views) if redact else Redactor(names=False)
    if html:
        _save(
            html,
            globals()["html"](
                document, gather(views, session if len(session.runs) > 1 else None), static=static, redact=hide
            ),
        )
    if markdown:
        _save(markdown, globals()["markdown"](document, redact=hide))
    if as_json:
        console.result(json.dumps(_finite(hide.value(document)), indent=2, ensure_ascii=False, allow_nan=False))
    elif not html:
        console.result(globals()["markdown"](document, redact=hide))


def _finite(value: Any) -> Any:
    """JSON has no infinities: a bound that is not known is null."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sessions(session: Session) -> dict[str, Session]:
    if len(session.runs) == 1:
        return {"run": session}
    return {side: Session(session.store, [run]) for side, run in zip(("before", "after"), session.runs, strict=False)}


def _redactor(document: Mapping[str, Any], views: Mapping[str, Session]) -> Redactor:
    hosts = {row["host"] for view in views.values() for row in view.rows("host_names")}
    said = [json.dumps(document, default=str)]
    return Redactor({*hosts, *hosts_in(said)}, users_in(said))


def _save(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise PostmortemError(f"{path} cannot be written: {error.strerror}.", "Name another file.") from error
    console.message(f"Wrote {path}.")
