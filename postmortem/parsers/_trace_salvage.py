"""Events out of a damaged stretch of a trace: split where events begin, mend what is known to break, drop the rest."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from postmortem.parsers import _trace_columns as columns
from postmortem.parsers import _trace_scan as scan

# A border between events: the keys are those that writers of the format put first.
BORDER = re.compile(rb'(?<=\})\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|s|bp|args)"\s*:)')
_CLOSE = re.compile(rb"\s*,?\s*\]")
_LOST_CLOSE = re.compile(rb'\}\s*\](?=\s*(?:,\s*"[A-Za-z_]+"\s*:\s*["\d{\[]|\}\s*\Z))')


class Rescue(NamedTuple):
    """What came out of a damaged stretch.

    Attributes:
        text: the good events, joined by commas.
        events: the same, decoded.
        dropped: number of pieces that stayed unreadable.
        first: offset of the first of them in the stretch, or None.
        used: bytes of the stretch that are done with.
        closed: whether the event array ends at `used`.
    """

    text: bytes
    events: list[columns.Event]
    dropped: int
    first: int | None
    used: int
    closed: bool


def rescue(stretch: bytes, *, last: bool) -> Rescue:
    """Save the events of a stretch that starts at an event; unless it is the last one its last piece is left alone."""
    starts = [0, *(m.end() for m in BORDER.finditer(stretch))]
    ends = [*starts[1:], len(stretch)]
    texts: list[bytes] = []
    events: list[columns.Event] = []
    dropped, first = 0, None
    for start, end in zip(starts, ends, strict=True):
        if end == len(stretch) and not last and len(starts) > 1:
            return Rescue(b",".join(texts), events, dropped, first, start, closed=False)
        piece = stretch[start:end].rstrip(b" \t\r\n,")
        one, close = _one(piece)
        if one is None:
            if piece:
                dropped += 1
                first = start if first is None else first
        else:
            texts.append(one[0])
            events += one[1]
        if close is not None:
            return Rescue(b",".join(texts), events, dropped, first, start + close, closed=True)
    return Rescue(b",".join(texts), events, dropped, first, len(stretch), closed=False)


def _one(piece: bytes) -> tuple[tuple[bytes, list[columns.Event]] | None, int | None]:
    """The event of a piece, as text and decoded; and the offset after the array's closing bracket, if it is here."""
    empty = _CLOSE.match(piece)
    if empty:
        return None, empty.end()
    for text in (piece, mend(piece)):
        end = scan.first_value(text)
        try:
            events = columns.decode(text[:end])
        except msgspec.DecodeError:
            continue
        if events:
            rest = _CLOSE.match(text, end)
            return (text[:end], events), (len(piece) - len(text) + rest.end() if rest else None)
    lost = _LOST_CLOSE.search(piece)
    return None, lost.end() if lost else None


def mend(piece: bytes) -> bytes:
    """Bring bytes that JSON forbids into a form that it allows."""
    text = piece.decode("utf-8", "replace").encode()
    return re.sub(rb"[\x00-\x1f]", b" ", text)
