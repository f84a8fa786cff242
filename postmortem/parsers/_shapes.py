"""Lines that differ in their digits alone have one shape, and are read once.

A log of a million lines has a few hundred shapes. No lead-in and hardly any pattern asks which digit stands where it
allows one, so whatever matches one line of a shape matches all, in the same places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from postmortem.parsers._text import Ints, cut, joined

_MASK = bytes(ord("0") if chr(byte) in "0123456789" else byte for byte in range(256))


def masked(data: bytes) -> bytes:
    """The same bytes with 0 for every digit."""
    return data.translate(_MASK)


@cache
def masked_text(text: str) -> str:
    """The same text with 0 for every digit."""
    return masked(text.encode()).decode()


def distinct(texts: pl.Series) -> tuple[pl.Series, Ints]:
    """The different texts in order of appearance, and for each of `texts` its number among them."""
    different = texts.unique(maintain_order=True)
    return different, texts.cast(pl.Enum(different)).to_physical().to_numpy().astype(np.int64)


class Places(NamedTuple):
    """What an expression captured in each shape.

    Attributes:
        text: the captured text with 0 for every digit; null where the group took no part.
        at: byte offset of the text in the shape; -1 where it holds no digit, so that it is the same in every line.
        size: bytes of the text where it holds a digit, else -1.
    """

    text: pl.Series
    at: Ints
    size: Ints

    def take(self, count: int) -> Places:
        """Those of the first shapes."""
        return Places(self.text.head(count), self.at[:count], self.size[:count])

    def joined(self, others: Places) -> Places:
        """Those of these shapes, and then of others."""
        numbers = (np.concatenate(pair) for pair in ((self.at, others.at), (self.size, others.size)))
        return Places(pl.concat([self.text, others.text]), *numbers)

    def read(self, data: bytes, starts: Ints, shapes: Ints) -> pl.Series:
        """What lines captured that start at `starts` in `data` and have these shapes (row numbers of `text`)."""
        varying = self.size >= 0
        if not varying.any():
            return self.text[shapes]
        found = cut(data, starts + self.at[shapes], self.size[shapes])
        if varying.all() or self.text.null_count() == np.count_nonzero(~varying):
            return found
        return found.zip_with(pl.Series(varying[shapes]), self.text[shapes])


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of one kind, such as the messages of a block, and their forms.

    Attributes:
        data: buffer that holds the texts, and `starts` the byte where each begins.
        forms: the different texts with 0 for every digit, and `of` the number of its form for each text.
    """

    data: bytes
    starts: Ints
    forms: pl.Series
    of: Ints

    def having(self, forms: Ints) -> Ints:
        """The numbers of the texts that have one of these forms."""
        wanted = np.zeros(len(self.forms), np.bool_)
        wanted[forms] = True
        return np.flatnonzero(wanted[self.of])

    def groups(self, regex: str) -> list[pl.Series]:
        """What the groups of an expression capture in each text, null where it does not match."""
        return [place.read(self.data, self.starts, self.of) for place in captured(self.forms, regex).values()]


def addressed(shapes: pl.Series) -> pl.Series:
    """`shapes`, then once more for each decimal digit of an offset: copy k has digit k of its own offset at each digit.

    A regex engine that returns texts only thus says where they stood, if the expression takes any digit for another.
    """
    data, starts, lengths = joined(shapes)
    digits = np.frombuffer(data, np.uint8).copy()
    at = np.flatnonzero(digits == ord("0"))
    offsets = at - starts[np.searchsorted(starts, at, side="right") - 1]
    copies = [shapes]
    for power in range(len(str(offsets.max(initial=0)))):
        digits[at] = ord("0") + offsets // 10**power % 10
        copies.append(cut(digits.tobytes(), starts, lengths))
    return pl.concat(copies)


def captured(shapes: pl.Series, regex: str) -> dict[str, Places]:
    """Where the groups of an expression stand in each shape."""
    groups = _groups(addressed(shapes), regex)
    return dict(zip(groups.columns, places(groups.get_columns(), len(shapes)), strict=True))


def repeated(within: Places, regex: str) -> tuple[Ints, dict[str, Places]]:
    """How often an expression matches in each captured text, and where the groups of all those matches stand in it."""
    hits = addressed(within.text.fill_null("")).str.extract_all(regex)
    counts = hits.head(len(within.at)).list.len().to_numpy().astype(np.int64)
    groups = _groups(hits.explode(empty_as_null=False, keep_nulls=False), regex)
    return counts, dict(zip(groups.columns, places(groups.get_columns(), int(counts.sum())), strict=True))


def _groups(texts: pl.Series, regex: str) -> pl.DataFrame:
    return texts.to_frame("t").select(pl.col("t").str.extract_groups(regex)).unnest("t")


def places(found: Sequence[pl.Series], count: int) -> list[Places]:
    """What was captured in the copies of `count` shapes that `addressed` made, for each of several groups."""
    copies = len(found[0]) // count if count else 1
    every = pl.concat(found).to_frame("t")
    firsts = every.select(
        lead=pl.col("t").str.find("[0-9]"),
        digit=pl.col("t").str.extract("([0-9])", 1),
        size=pl.col("t").str.len_bytes(),
    )
    numbers = firsts.cast(pl.Int64).fill_null(-1).to_numpy().reshape(len(found), copies, count, 3)
    lead, size = numbers[:, 0, :, 0], numbers[:, 0, :, 2]
    offsets = np.tensordot(numbers[:, 1:, :, 1], 10 ** np.arange(copies - 1), (1, 0)) - lead
    at, size = np.where(lead >= 0, offsets, -1), np.where(lead >= 0, size, -1)
    return [Places(group.head(count), at[number], size[number]) for number, group in enumerate(found)]
