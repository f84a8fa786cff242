"""Columns of text cut out of a buffer by offsets: no text is copied, so a cut costs the same however long it is."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Ints = npt.NDArray[np.int64]

PADDING = bytes(16)
"""What has to follow the text in a buffer, so that twelve bytes can be read anywhere in it."""
_INLINE = (
    12  # bytes; a shorter text stands in the view itself (Arrow columnar format, variable-size binary view layout)
)
_AT_ONCE = 1 << 14  # views; what is made on the way then stays in the processor's cache
_KEEP = np.array([list(np.frombuffer((b"\xff" * n).ljust(16, b"\0"), "<u8")) for n in range(_INLINE + 1)], "<u8")
_HEAD = _KEEP[:, 0] & 0xFFFFFFFF  # by length: which of the first four bytes belong to the text,
_REST = _KEEP[:, 0] >> 32 | _KEEP[:, 1] << 32  # and which of the next eight


def cut(data: bytes, starts: Ints, lengths: Ints) -> pl.Series:
    """The texts that stand at `starts` in `data` (UTF-8, then PADDING); a negative length is null.

    A view is four words of 32 bits: the length, the first four bytes, and then either the rest of a short text, or
    the number of a buffer (0) and the offset there. They are made as two words of 64 bits.
    """
    known = lengths >= 0
    if not known.all():
        found = cut(data, np.where(known, starts, 0), np.where(known, lengths, 0))
        return pl.select(pl.when(pl.Series(known)).then(found)).to_series()
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    views = np.empty((len(starts), 2), "<u8")
    for first in range(0, len(starts), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        _view(words, starts[some], lengths[some], views[some])
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pl.Series(pa.Array.from_buffers(pa.string_view(), len(starts), buffers))


def _view(words: npt.NDArray[np.uint64], starts: Ints, lengths: Ints, views: npt.NDArray[np.uint64]) -> None:
    kept = np.minimum(lengths, _INLINE)
    views[:, 0] = lengths.astype("<u8") | (words[starts] & _HEAD[kept]) << 32
    views[:, 1] = np.where(lengths <= _INLINE, words[starts + 4] & _REST[kept], starts.astype("<u8") << 32)


def joined(texts: pl.Series) -> tuple[bytes, Ints, Ints]:
    """One buffer of all texts, with the start and length of each; a null has length -1."""
    lengths = texts.str.len_bytes().cast(pl.Int64).fill_null(-1).to_numpy()
    ends = np.cumsum(np.maximum(lengths, 0))
    data = "".join(texts.drop_nulls().to_list()).encode() + PADDING
    return data, ends - np.maximum(lengths, 0), lengths


def plain(name: str) -> str:
    """A spelling in lower case, with one underscore for every run of other characters."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
