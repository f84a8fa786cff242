"""Which records match which pattern: one pass for all literals, then each pattern's expression on its candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem.formats import Pattern

LONGEST = 1 << 16
"""Characters of a record that patterns look at; a longer one is kept whole, but a pattern sees only its head."""


class Match(NamedTuple):
    """Records that a pattern has: their row numbers, and a column `capture.<name>` of text for each capture."""

    pattern: Pattern
    at: pl.Series
    captures: pl.DataFrame


def match(text: pl.Series, patterns: Sequence[Pattern], others: tuple[str, ...] = ()) -> tuple[list[Match], list[int]]:
    """Find the pattern of each text; where several match, the first in order has it.

    Returns the matches, and the numbers of the texts that contain one of the literals `others`.
    """
    if (text.str.len_bytes() > LONGEST).any():
        text = text.str.head(LONGEST)
    candidates = _candidates(text, _literals(tuple(patterns), others))
    taken = np.zeros(len(text), np.bool_)
    found = []
    for pattern in patterns:
        hits = [candidates[literal] for literal in pattern.contains if literal in candidates]
        hits += [np.flatnonzero(text.str.starts_with(literal).to_numpy()) for literal in pattern.starts]
        if not hits:
            continue
        at = np.unique(np.concatenate(hits)) if len(hits) > 1 else hits[0]
        at = at[~taken[at]]
        if len(at) and (result := _captures(pattern, text[at], at)):
            found.append(result)
            taken[result.at.to_numpy()] = True
    also = [candidates[literal] for literal in others if literal in candidates]
    return found, np.unique(np.concatenate(also)).tolist() if also else []


@cache
def _literals(patterns: tuple[Pattern, ...], others: tuple[str, ...]) -> list[str]:
    return sorted({literal for p in patterns for literal in p.contains}.union(others))


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


def _captures(pattern: Pattern, text: pl.Series, at: npt.NDArray[np.int64]) -> Match | None:
    if not pattern.captures or not pattern.emit:
        at = at[text.str.contains(pattern.regex).to_numpy()]
        return Match(pattern, pl.Series("at", at), pl.DataFrame(height=len(at))) if len(at) else None
    regex = f"(?P<whole_>{pattern.regex})"
    groups = text.to_frame("text").select(pl.col("text").str.extract_groups(regex)).unnest("text")
    hit = groups["whole_"].is_not_null()
    if not hit.any():
        return None
    captures = groups.select(pl.col(name).alias(f"capture.{name}") for name in pattern.captures)
    if hit.all():
        return Match(pattern, pl.Series("at", at), captures)
    return Match(pattern, pl.Series("at", at[hit.to_numpy()]), captures.filter(hit))
