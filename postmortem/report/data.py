"""Runs the queries behind the charts, one side at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postmortem.query import Session, queries
from postmortem.redact import Redactor
from postmortem.report.words import printable

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of one query over one run."""

    name: str
    title: str
    sql: str
    rows: Sequence[Row]


Data = Mapping[str, Mapping[str, Result]]
"""side ("before", "after" or "run") -> query name -> its result."""


def gather(sessions: Mapping[str, Session]) -> Data:
    """Ask every query of queries/report over each side's run.

    A query that names another one in `instead_of` is asked on every side where that one left a side without rows.
    """
    asked = [query for query in queries().values() if query.folder == "report"]
    first = [query.name for query in asked if "instead_of" not in query.header]
    data = {side: {name: _ask(session, name) for name in first} for side, session in sessions.items()}
    for query in asked:
        other = query.header.get("instead_of")
        if other and not all(found[other].rows for found in data.values()):
            for side, session in sessions.items():
                data[side][query.name] = _ask(session, query.name)
    return data


def _ask(session: Session, name: str) -> Result:
    query = queries()[name]
    return Result(name, query.title, query.sql, session.rows(name))


def cleaned(data: Data, redactor: Redactor) -> Data:
    """The same data with every text redacted and free of hidden characters."""
    return {
        side: {
            name: Result(name, result.title, result.sql, printable(redactor.value(list(result.rows))))
            for name, result in found.items()
        }
        for side, found in data.items()
    }
