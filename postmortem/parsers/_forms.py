"""The forms of a file's records: whatever was met once is known for the rest of the file."""

from __future__ import annotations

import numpy as np
import polars as pl

from postmortem.parsers import _leadins, _match, _physical
from postmortem.parsers._shapes import distinct, masked
from postmortem.parsers._text import Ints, cut

_MUCH = 16 << 20
"""Bytes of shapes that are remembered; a file of ever new shapes is read block by block."""


class Forms:
    """What the records of one file look like.

    Attributes:
        leadins: the lead-ins that the file uses.
        table: a row for each record of each shape of line, as `_leadins.split` gives them.
        owners: which pattern each row's message matches.
    """

    def __init__(self) -> None:
        self.leadins = _leadins.LeadIns()
        self._forget()

    def _forget(self) -> None:
        self._regexes = self.leadins.regexes()
        self._numbers: dict[str, int] = {}
        self._bytes = 0
        self._records = np.empty(0, np.int64)
        self.table = pl.DataFrame()
        self.owners = _match.Owners()

    def read(self, physical: _physical.Physical) -> tuple[Ints, Ints]:
        """The line (its place in `physical`) and the form (its row in `table`) of each record."""
        shapes, of = distinct(cut(masked(physical.data), physical.starts, physical.lengths))
        self.leadins.learn(shapes, pl.Series(np.bincount(of)))
        if self.leadins.regexes() != self._regexes or self._bytes > _MUCH:
            self._forget()
        names = shapes.to_list()
        if fresh := [name for name in names if name not in self._numbers]:
            self._add(fresh)
        return self._expanded(np.array([self._numbers[name] for name in names])[of])

    def _add(self, fresh: list[str]) -> None:
        numbers = np.arange(len(self._numbers), len(self._numbers) + len(fresh))
        self._numbers |= dict(zip(fresh, numbers.tolist(), strict=True))
        self._bytes += sum(map(len, fresh))
        forms = pl.DataFrame({"shape": numbers, "start": np.zeros(len(fresh), np.int64), "raw": fresh})
        forms = _physical.apart(_leadins.split(forms, self.leadins), self.leadins)
        self.table = pl.concat([self.table, forms]) if self.table.height else forms
        self._records = np.bincount(self.table["shape"].to_numpy())
        self.owners.add(forms["text"])

    def _expanded(self, shapes: Ints) -> tuple[Ints, Ints]:
        """A line is one record or, where several were printed onto one line, more."""
        first, counts = (np.cumsum(self._records) - self._records)[shapes], self._records[shapes]
        at = np.repeat(np.arange(len(shapes)), counts)
        return at, np.arange(len(at)) + np.repeat(first - np.cumsum(counts) + counts, counts)
