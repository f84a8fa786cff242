"""Which records match which pattern: one pass for all literals, then each pattern's expression on its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.formats import Pattern, patterns
from postmortem.parsers import _shapes
from postmortem.parsers._blocks import OPENERS
from postmortem.parsers._text import Ints

LONGEST = 1 << 16
"""Characters of a record that patterns look at; a longer one is kept whole, but a pattern sees only its head."""


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """Records that a pattern has.

    Attributes:
        pattern: the pattern.
        at: row numbers of the records.
        captures: a column of text for each capture.
        starts: byte of the block where the message of each record begins.
        places: where the captures stand in the forms of these records; empty if every record was tried by itself.
        of: the form of each record, as a row of `places`.
    """

    pattern: Pattern
    at: Ints
    captures: pl.DataFrame
    data: bytes
    starts: Ints
    places: Mapping[str, _shapes.Places]
    of: Ints


class Owners:
    """Which patterns match which forms.

    Attributes:
        of: for each form the number of the pattern that has it, or -1.
        row: for each form its row in the places of that pattern.
        places: for each pattern where its captures stand in its forms.
        suspects: for each pattern that asks for certain digits the forms of which a line may match.
        openers: forms that contain one of OPENERS.
    """

    def __init__(self) -> None:
        self.of = self.row = self.openers = np.empty(0, np.int64)
        self.places: dict[int, dict[str, _shapes.Places]] = {}
        self.suspects: dict[int, Ints] = {}

    def add(self, forms: pl.Series) -> None:
        """Find the pattern of each further form; where several match, the first in order has it."""
        if (forms.str.len_bytes() > LONGEST).any():
            forms = forms.str.head(LONGEST)
        candidates, known = _candidates(forms, _literals()), len(self.of)
        of, row = np.full(len(forms), -1), np.zeros(len(forms), np.int64)
        for number, pattern in enumerate(patterns()):
            at = _suspects(pattern, forms, candidates)
            at = at[of[at] < 0]
            if not len(at):
                continue
            if pattern.exact:
                self.suspects[number] = np.concatenate([self.suspects.get(number, at[:0]), at + known])
                continue
            at = at[forms[at].str.contains(pattern.regex).to_numpy()]
            of[at] = number
            if pattern.captures and pattern.emit and len(at):
                row[at] = self._place(number, _shapes.captured(forms[at], pattern.regex))
        opened = [candidates[literal] for literal in map(_shapes.masked_text, OPENERS) if literal in candidates]
        self.openers = np.concatenate([self.openers, *(at + known for at in opened)])
        self.of, self.row = np.concatenate([self.of, of]), np.concatenate([self.row, row])

    def _place(self, number: int, fresh: dict[str, _shapes.Places]) -> Ints:
        """Add places to those of a pattern, and say in which rows they are."""
        known = self.places.setdefault(number, {name: place.take(0) for name, place in fresh.items()})
        count = len(next(iter(known.values())).at)
        self.places[number] = {name: known[name].joined(place) for name, place in fresh.items()}
        return np.arange(count, count + len(next(iter(fresh.values())).at))


def match(text: pl.Series, texts: _shapes.Texts, owners: Owners) -> tuple[list[Match], list[int]]:
    """Find the pattern of each text; where several match, the first in order has it.

    Returns the matches, and the numbers of the texts that contain one of OPENERS.
    """
    of = owners.of[texts.of].astype(np.int16)
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(np.bincount(of + 1, minlength=len(patterns()) + 1))
    taken = np.zeros(len(of), np.bool_)
    found = []
    for number, pattern in enumerate(patterns()):
        rows = order[ends[number] : ends[number + 1]]
        if number in owners.suspects:
            rows = texts.having(owners.suspects[number])
        rows = rows[~taken[rows]]
        if not len(rows):
            continue
        if pattern.exact:
            result = _tested(pattern, text, texts, rows)
            taken[result.at] = True
        else:
            result = _placed(pattern, owners.places.get(number, {}), texts, rows, owners.row[texts.of[rows]])
        found.append(result)
    return [result for result in found if len(result.at)], texts.having(owners.openers).tolist()


def _suspects(pattern: Pattern, forms: pl.Series, candidates: dict[str, Ints]) -> Ints:
    literals = map(_shapes.masked_text, pattern.contains)
    hits = [candidates[literal] for literal in literals if literal in candidates]
    hits += [
        np.flatnonzero(forms.str.starts_with(_shapes.masked_text(literal)).to_numpy()) for literal in pattern.starts
    ]
    return np.unique(np.concatenate(hits)) if hits else np.empty(0, np.int64)


def _tested(pattern: Pattern, text: pl.Series, texts: _shapes.Texts, rows: Ints) -> Match:
    """Records of which each has to be tried, because the pattern asks for certain digits."""
    some = text[rows].str.head(LONGEST).to_frame("t")
    groups = some.select(pl.col("t").str.extract_groups(f"(?P<whole_>{pattern.regex})")).unnest("t")
    hit = groups["whole_"].is_not_null()
    rows = rows[hit.to_numpy()]
    captures = groups.filter(hit).select(pattern.captures)
    return Match(pattern, rows, captures, texts.data, texts.starts[rows], {}, rows)


def _placed(
    pattern: Pattern, places: Mapping[str, _shapes.Places], texts: _shapes.Texts, rows: Ints, of: Ints
) -> Match:
    """Records whose form matches, so that it says where the captures stand."""
    starts = texts.starts[rows]
    captures = {name: places[name].read(texts.data, starts, of) for name in places}
    frame = pl.DataFrame(captures) if captures else pl.DataFrame(height=len(rows))
    return Match(pattern, rows, frame, texts.data, starts, places, of)


@cache
def _literals() -> list[str]:
    return sorted({_shapes.masked_text(text) for text in [*OPENERS, *(t for p in patterns() for t in p.contains)]})


def _candidates(text: pl.Series, literals: list[str]) -> dict[str, npt.NDArray[np.int64]]:
    """Literal -> numbers of the texts that contain it."""
    some = text.str.contains_any(literals)
    at = np.flatnonzero(some.to_numpy())
    if not len(at):
        return {}
    hits = (
        text.filter(some)
        .to_frame("text")
        .select(pl.col("text").str.extract_many(literals, overlapping=True))
        .to_series()
    )
    rows = np.repeat(at, hits.list.len().to_numpy())
    codes = hits.explode().cast(pl.Enum(literals)).to_physical().to_numpy()
    order = np.argsort(codes, kind="stable")
    codes, rows = codes[order], rows[order]
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    groups = np.split(rows, starts[1:])
    return {literals[int(codes[start])]: _distinct(group) for start, group in zip(starts, groups, strict=True)}


def _distinct(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows are in order; a literal may occur in a text several times."""
    return rows[np.concatenate(([True], rows[1:] != rows[:-1]))]
