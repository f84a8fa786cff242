"""Records of several lines: tracebacks, the launcher's tables, stack dumps. Each kind is a small machine.

A machine is fed the lines of one writer (the lead-ins say which) and only between its opening line and its end,
so that interleaved ranks do not disturb each other and ordinary lines cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from postmortem import schema
from postmortem.parsers import _dumps, _stacks, _tables
from postmortem.parsers._record import COLUMNS, Line, Machine

_KINDS: dict[str, type[Machine]] = {
    literal: kind for kind in (*_stacks.MACHINES, *_tables.MACHINES, *_dumps.MACHINES) for literal in kind.OPENS
}


_TYPES: dict[str, Any] = {"int32": pl.Int32, "int64": pl.Int64, "float64": pl.Float64}
OPENERS = tuple(_KINDS)
"""Literals of which one is in the first line of every record of several lines."""


class Marked(NamedTuple):
    """Rows of one table, and which records (by row number) were recognised as what (format and role)."""

    table: str
    rows: pl.DataFrame
    at: list[int]
    marks: list[tuple[str, str]]


class Machines:
    """The open records of one file, by writer."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, ...], Machine] = {}

    def feed(self, lines: pl.DataFrame, openers: list[int]) -> Iterator[Marked]:
        """Read the records that open, go on or end in a block; `openers` are the lines that contain one of OPENERS."""
        if not openers and not self._open:
            return
        at = 0 if self._open else openers[0]
        rows: dict[str, list[dict[str, Any]]] = {}
        marks: list[tuple[int, str, str]] = []
        view = lines.select(COLUMNS)
        fetched: list[Line] = []
        pending, opening = iter(openers), frozenset(openers)
        opener = next(pending, None)
        while at < view.height:
            if not self._open:
                while opener is not None and opener < at:
                    opener = next(pending, None)
                if opener is None:
                    break
                at = opener
            if not fetched or not fetched[0].at <= at <= fetched[-1].at:
                fetched = _lines(view, at)
            for line in fetched[at - fetched[0].at :]:
                self._step(line, rows, marks, opens=line.at in opening)
                at = line.at + 1
                if not self._open:
                    break
        yield from _frames(rows, marks)

    def close(self) -> Iterator[Marked]:
        """End every record that is still open."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for machine in self._open.values():
            _store(machine, rows)
        self._open.clear()
        yield from _frames(rows, [])

    def _step(
        self, line: Line, rows: dict[str, list[dict[str, Any]]], marks: list[tuple[int, str, str]], *, opens: bool
    ) -> None:
        machine = self._open.get(line.writer)
        if machine is not None:
            taken = machine.take(line)
            if taken:
                marks.append((line.at, machine.FORMAT, machine.role))
                return
            if taken is False:
                _store(machine, rows)
                del self._open[line.writer]
        for literal, kind in _KINDS.items() if opens else ():
            if literal in line.text and (fresh := kind.open(line)) is not None:
                marks.append((line.at, fresh.FORMAT, fresh.role))
                if (interrupted := self._open.get(line.writer)) is not None:
                    _store(interrupted, rows)
                self._open[line.writer] = fresh
                return


def _lines(view: pl.DataFrame, start: int, count: int = 64) -> list[Line]:
    """Lines from `start` on, in small slices: a record is short, a block is long."""
    return [Line(start + offset, *row) for offset, row in enumerate(view.slice(start, count).iter_rows())]


def _store(machine: Machine, rows: dict[str, list[dict[str, Any]]]) -> None:
    for table, row in machine.rows():
        rows.setdefault(table, []).append(row)


def _frames(rows: dict[str, list[dict[str, Any]]], marks: list[tuple[int, str, str]]) -> Iterator[Marked]:
    at, names = [row for row, _, _ in marks], [(name, role) for _, name, role in marks]
    for table, found in rows.items():
        yield Marked(table, _frame(table, found), at, names)
        at, names = [], []
    if at:
        yield Marked("line", pl.DataFrame(), at, names)


def _frame(table: str, found: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows in the declared types; a number that no column can hold is null."""
    types = {c.name: _TYPES.get(c.type, pl.String) for c in schema.tables()[table].columns}
    said = set[str]().union(*found)
    return pl.DataFrame(
        {n: pl.Series(n, [row.get(n) for row in found], types[n], strict=False) for n in types if n in said}
    )
