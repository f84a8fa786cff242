"""Where events end, in a piece of a trace's event array: by structure alone, without decoding.

The usual cut is the last place that looks like a border between two events; decoding the piece proves it, since
a cut inside an event leaves a bracket or a string open. Only where that fails, and at the end of the array, the
brackets are counted.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

# libkineto/src/output_json.cpp of pytorch/kineto writes every event this way.
_KINETO_BORDER = b"\n  },\n  {"
_BORDER = re.compile(rb"\}\s*,\s*\{")
_NEAR = 1 << 18  # B searched backwards for a border of other writers


class Scan(NamedTuple):
    """End of the last complete event (0 where there is none) and place of the bracket that closes the array."""

    end: int
    close: int | None


def border(piece: bytes) -> int:
    """Offset just after the last event that seems complete, or 0."""
    at = piece.rfind(_KINETO_BORDER)
    if at >= 0:
        return at + 4
    last = 0
    for match in _BORDER.finditer(piece, max(0, len(piece) - _NEAR)):
        last = match.start() + 1
    return last


def scan(piece: bytes) -> Scan:
    """Count the brackets of a piece that starts between two events (or just after the opening bracket)."""
    places, depth = _brackets(piece)
    closing = np.flatnonzero(depth < 0)
    stop = int(closing[0]) if len(closing) else len(places)
    ends = np.flatnonzero(depth[:stop] == 0)
    end = int(places[ends[-1]]) + 1 if len(ends) else 0
    closes = stop < len(places) and piece[places[stop]] == ord("]")
    return Scan(end, int(places[stop]) if closes else None)


def first_value(piece: bytes) -> int:
    """Offset after the first complete object or array of a piece, or 0."""
    places, depth = _brackets(piece)
    zero = np.flatnonzero(depth <= 0)
    return int(places[zero[0]]) + 1 if len(zero) and depth[zero[0]] == 0 else 0


def _brackets(piece: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Places of all brackets outside strings, and the depth after each."""
    data = np.frombuffer(piece, np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if b"\\" in piece:
        quotes = quotes[~np.isin(quotes, _escaped(data))]
    folded = data | 0x20  # [ and { fall together, and so do ] and }
    places = np.flatnonzero((folded == ord("{")) | (folded == ord("}")))
    places = places[np.searchsorted(quotes, places) % 2 == 0]
    return places, np.cumsum(np.where(folded[places] == ord("{"), 1, -1))


def _escaped(data: np.ndarray) -> np.ndarray:
    """Places of bytes that an odd run of backslashes precedes."""
    slashes = np.flatnonzero(data == ord("\\"))
    first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
    last = np.append(first[1:], len(slashes)) - 1
    odd = (last - first) % 2 == 0
    following: np.ndarray = slashes[last[odd]] + 1
    return following
