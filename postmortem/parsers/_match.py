"""Which records match which pattern: one pass for all literals, then each pattern's expression on its candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.formats import Pattern
from postmortem.parsers import _shapes
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


def match(
    text: pl.Series, texts: _shapes.Texts, patterns: Sequence[Pattern], others: tuple[str, ...] = ()
) -> tuple[list[Match], list[int]]:
    """Find the pattern of each text; where several match, the first in order has it.

    Returns the matches, and the numbers of the texts that contain one of the literals `others`.
    """
    forms = texts.forms
    if (forms.str.len_bytes() > LONGEST).any():
        forms = forms.str.head(LONGEST)
    candidates = _candidates(forms, _literals(tuple(patterns), others))
    settled, taken = np.zeros(len(forms), np.bool_), np.zeros(len(texts.of), np.bool_)
    found = []
    for pattern in patterns:
        at = _suspects(pattern, forms, candidates)
        at = at[~settled[at]]
        if not len(at):
            continue
        if not pattern.exact:
            at = at[forms[at].str.contains(pattern.regex).to_numpy()]
            settled[at] = True
        rows, place = texts.having(at)
        free = ~taken[rows]
        rows, place = rows[free], place[free]
        if pattern.exact:
            result = _tested(pattern, text, texts, rows)
        else:
            result = _placed(pattern, forms[at], texts, rows, place)
        if len(result.at):
            found.append(result)
            taken[result.at] = True
    also = [candidates[literal] for literal in map(_shapes.masked_text, others) if literal in candidates]
    return found, texts.having(np.unique(np.concatenate(also)))[0].tolist() if also else []


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


def _placed(pattern: Pattern, forms: pl.Series, texts: _shapes.Texts, rows: Ints, of: Ints) -> Match:
    """Records whose form matches, so that it says where the captures stand."""
    starts = texts.starts[rows]
    if not pattern.captures or not pattern.emit or not len(rows):
        return Match(pattern, rows, pl.DataFrame(height=len(rows)), texts.data, starts, {}, of)
    places = _shapes.captured(forms, pattern.regex)
    captures = pl.DataFrame({name: places[name].read(texts.data, starts, of) for name in pattern.captures})
    return Match(pattern, rows, captures, texts.data, starts, places, of)


@cache
def _literals(patterns: tuple[Pattern, ...], others: tuple[str, ...]) -> list[str]:
    return sorted({_shapes.masked_text(text) for text in [*others, *(t for p in patterns for t in p.contains)]})


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
