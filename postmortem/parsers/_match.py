"""Which records match which pattern: one pass for all literals, then each pattern's expression on its candidates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import polars as pl

from postmortem.formats import Pattern

LONGEST = 1 << 16
"""Characters of a record that patterns look at; a longer one is kept whole, but a pattern sees only its head."""


class Match(NamedTuple):
    """Records that a pattern has: their row numbers, and a column `capture.<name>` of text for each capture."""

    pattern: Pattern
    at: pl.Series
    captures: pl.DataFrame


def match(lines: pl.DataFrame, patterns: Sequence[Pattern]) -> list[Match]:
    """Find the pattern of each record; where several match, the first in order has it."""
    text = lines["text"]
    if int(text.str.len_bytes().max() or 0) > LONGEST:
        text = text.str.head(LONGEST)
    candidates = _candidates(text, _literals(tuple(patterns)))
    taken = pl.Series("taken", [False], dtype=pl.Boolean).new_from_index(0, lines.height)
    found = []
    for pattern in patterns:
        hits = [candidates[literal] for literal in pattern.contains if literal in candidates]
        if not hits:
            continue
        at = (pl.concat(hits).unique().sort() if len(hits) > 1 else hits[0]).rename("at")
        at = at.filter(~taken[at])
        if at.is_empty():
            continue
        result = _captures(pattern, text[at], at)
        if result is not None:
            found.append(result)
            taken[result.at] = True
    return found


@cache
def _literals(patterns: tuple[Pattern, ...]) -> list[str]:
    return sorted({literal for p in patterns for literal in p.contains})


def _candidates(text: pl.Series, literals: list[str]) -> dict[str, pl.Series]:
    """Literal -> numbers of the records that contain it."""
    frame = text.to_frame("text").with_row_index("at")
    some = frame.filter(pl.col("text").str.contains_any(literals))
    hits = some.select("at", pl.col("text").str.extract_many(literals, overlapping=True).list.unique().alias("literal"))
    hits = hits.explode("literal", keep_nulls=True, empty_as_null=True).filter(pl.col("literal").is_not_null())
    return {str(key[0]): part["at"] for key, part in hits.partition_by("literal", as_dict=True, maintain_order=True).items()}


def _captures(pattern: Pattern, text: pl.Series, at: pl.Series) -> Match | None:
    hit = text.str.contains(pattern.regex)
    if not hit.any():
        return None
    at = at.filter(hit)
    if not pattern.captures:
        return Match(pattern, at, pl.DataFrame(height=len(at)))
    names = {name: f"capture.{name}" for name in pattern.captures}
    groups = text.filter(hit).to_frame("text").select(pl.col("text").str.extract_groups(pattern.regex)).unnest("text")
    return Match(pattern, at, groups.select(names.keys()).rename(names))


def strip(pattern: bytes, data: bytes) -> bytes:
    """Remove every match from bytes."""
    return re.sub(pattern, b"", data)
