"""Events out of a damaged stretch of a trace: split where events begin, mend what is known to break, drop the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from postmortem.parsers import _trace_columns as columns
from postmortem.parsers import _trace_mend as mend
from postmortem.parsers import _trace_scan as scan

_START = rb'\{\s*"(?:ph|cat|name|pid|tid|ts|dur|id|s|bp|args)"\s*:'
# A border between events: the keys are those that writers of the format put first.
BORDER = re.compile(rb"(?<=\})\s*,\s*(?=" + _START + rb")")
_EVENT = re.compile(_START)
# Another event or list after it shows that a bracket closes a stray list between the events, not the array.
_CLOSE = re.compile(rb"\s*,?\s*\](?!\s*,\s*[{\[])")
_LOST_CLOSE = re.compile(rb'\}\s*\](?=\s*(?:,\s*"[A-Za-z_]+"\s*:\s*["\d{\[]|\}\s*\Z))')
_BETWEEN = b" \t\r\n,"


class Rescue(NamedTuple):
    """What came out of a damaged stretch.

    Attributes:
        text: the good events, joined by commas.
        events: the same, decoded.
        mended: number of events that had to be mended.
        dropped: number of pieces that stayed unreadable.
        first: offset of the first of them in the stretch, or None.
        used: bytes of the stretch that are done with.
        closed: whether the event array ends at `used`.
    """

    text: bytes
    events: list[columns.Event]
    mended: int
    dropped: int
    first: int | None
    used: int
    closed: bool


def rescue(stretch: bytes, *, last: bool) -> Rescue:
    """Save the events of a stretch that starts at an event; unless it is the last one, its last piece is left alone."""
    starts = [0, *(m.end() for m in BORDER.finditer(stretch))]
    ends = [*starts[1:], len(stretch)]
    done = len(starts) if last or len(starts) == 1 else len(starts) - 1
    work = _Work(stretch, starts, ends)
    work.range(0, done)
    used = work.close if work.close is not None else ends[done - 1]
    return Rescue(
        b",".join(work.texts),
        work.events,
        work.mended,
        work.dropped,
        work.first,
        used,
        work.close is not None,
    )


class _Work:
    """The pieces of one stretch, and what was saved so far."""

    def __init__(self, stretch: bytes, starts: list[int], ends: list[int]) -> None:
        self.stretch = stretch
        self.starts = starts
        self.ends = ends
        self.texts: list[bytes] = []
        self.events: list[columns.Event] = []
        self.mended = 0
        self.dropped = 0
        self.first: int | None = None
        self.close: int | None = None

    def range(self, low: int, high: int) -> None:
        """Save pieces low to high - 1: all at once, and where that fails by halves."""
        if self.close is not None:
            return
        text = self.stretch[self.starts[low] : self.ends[high - 1]].strip(_BETWEEN)
        if text and self._keep(text):
            return
        if high - low == 1:
            self._one(self.starts[low], text)
            return
        middle = (low + high) // 2
        self.range(low, middle)
        self.range(middle, high)

    def _keep(self, text: bytes) -> bool:
        try:
            events = columns.decode(text)
        except msgspec.DecodeError:
            return False
        self.texts.append(text)
        self.events += events
        return True

    def _one(self, start: int, piece: bytes) -> None:
        """Save the events of one piece: mostly one, and more where what lies between two is no border."""
        while piece and self.close is None:
            rest = self._first(start, piece)
            start += len(piece) - len(rest)
            piece = rest

    def _first(self, start: int, piece: bytes) -> bytes:
        """Save the first event of a piece; what is left of the piece begins with another event, or is empty."""
        empty = _CLOSE.match(piece)
        if empty:
            self.close = start + empty.end()
            return b""
        for text in _candidates(piece):
            end = scan.first_value(text)
            if end and self._keep(text[:end]):
                rest = _CLOSE.match(text, end)
                surplus = text.startswith((b"}", b" }", b"\n}"), end)  # brackets that close nothing
                self.mended += text is not piece or surplus
                if rest:
                    self.close = start + max(len(piece) - len(text) + rest.end(), 1)
                    return b""
                if surplus:
                    end = len(text) - len(text[end:].lstrip(b"}] \t\r\n"))
                return self._skip_odd(start + len(piece) - len(text) + end, text[end:].strip(_BETWEEN))
        self._drop(start)
        lost = _LOST_CLOSE.search(piece)
        if lost:
            self.close = start + lost.end()
        return b""

    def _skip_odd(self, start: int, rest: bytes) -> bytes:
        """Leave out what is no event, up to the next one."""
        if not rest or _EVENT.match(rest):
            return rest
        self._drop(max(start, 0))
        following = _EVENT.search(rest)
        return rest[following.start() :] if following else b""

    def _drop(self, place: int) -> None:
        self.dropped += 1
        self.first = place if self.first is None else self.first


def _candidates(piece: bytes) -> Iterator[bytes]:
    """Readings of one damaged event, the most faithful first."""
    yield piece
    yield from mend.attempts(piece)
    # The end of an event may be missing: another one begins inside the piece.
    inner = [match.start() for match in _EVENT.finditer(piece, 1)]
    if inner:
        yield piece[inner[-1] :]
        yield from mend.attempts(piece[inner[-1] :])
