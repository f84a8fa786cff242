"""Runs the queries behind the charts, one side at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class Data:
    """Rows behind the charts.

    Attributes:
        sides: side ("before", "after" or "run") -> query name -> its result.
        pair: query name -> its result over both runs; empty where there is nothing to say about the pair.
    """

    sides: Mapping[str, Mapping[str, Result]] = field(default_factory=dict)
    pair: Mapping[str, Result] = field(default_factory=dict)

    def paired(self, name: str) -> Sequence[Row]:
        """Rows of a query over both runs; none where it was not asked."""
        return self.pair[name].rows if name in self.pair else ()


PAIRED = ("twin_divergence", "twin_metrics", "twin_shards")
"""What is asked about two runs at once; only the first where it says that they are no twins."""


def gather(sessions: Mapping[str, Session], both: Session | None = None) -> Data:
    """Ask every query of queries/report over each side's run.

    A query that names another one in `instead_of` is asked on every side where that one left a side without rows.

    Args:
        sessions: a session per side.
        both: a session on the two runs, where there are two.
    """
    asked = [query for query in queries().values() if query.folder == "report" and query.name not in PAIRED]
    first = [query.name for query in asked if "instead_of" not in query.header]
    sides = {side: {name: _ask(session, name) for name in first} for side, session in sessions.items()}
    for query in asked:
        other = query.header.get("instead_of")
        if other and not all(found[other].rows for found in sides.values()):
            for side, session in sessions.items():
                sides[side][query.name] = _ask(session, query.name)
    return Data(sides, _pair(both) if both else {})


def _pair(both: Session) -> dict[str, Result]:
    runs = {"before": both.runs[0], "after": both.runs[-1]}
    known = [name for name in PAIRED if name in queries()]
    found = {}
    for name in known:
        found[name] = _ask(both, name, **runs)
        if name == PAIRED[0] and not any(row["twins"] for row in found[name].rows):
            break
    for name in ("transport_changes", "trace_operators_compared"):
        found[name] = _ask(both, name, **runs)
    return found


def _ask(session: Session, name: str, **params: str) -> Result:
    query = queries()[name]
    return Result(name, query.title, query.sql, session.rows(name, **params))


def cleaned(data: Data, redactor: Redactor) -> Data:
    """The same data with every text redacted and free of hidden characters."""

    def clean(found: Mapping[str, Result]) -> dict[str, Result]:
        return {
            name: Result(name, result.title, result.sql, printable(redactor.value(list(result.rows))))
            for name, result in found.items()
        }

    return Data({side: clean(found) for side, found in data.sides.items()}, clean(data.pair))
