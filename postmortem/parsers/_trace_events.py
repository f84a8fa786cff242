"""A stream of bytes -> decoded pieces of the event array, and the document around it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from postmortem.parsers import _trace_columns as columns
from postmortem.parsers import _trace_salvage as salvage
from postmortem.parsers import _trace_scan as scan
from postmortem.records import Issue

PIECE = 2 << 20  # B of JSON decoded at a time; more leaves the caches of the processor
LIMIT = 64 << 20  # B; the longest single event, head or trailer that is read
_ARRAY = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_LIST_ROOT = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\[")
_BETWEEN = b" \t\r\n,"
_OVERLAP = 100  # B searched again, as the key of an array may lie across what was read before and after


class Piece(NamedTuple):
    """A stretch of the event array: its text without the array's brackets, and decoded."""

    text: bytes
    events: list[columns.Event]


class Reader:
    """Reads one document.

    Attributes:
        head, trailer: the bytes before and after the events, once they were passed.
        offset: inflated bytes that are done with.
        dropped: events that could not be read.
    """

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self.head = b""
        self.trailer = b""
        self.offset = 0
        self.dropped = 0
        self._blocks = iter(blocks)
        self._buffer = b""
        self._more = True
        self._closed = False

    def open(self) -> bool:
        """Read up to the first event; false where the file holds no event array."""
        while True:
            found = _LIST_ROOT.search(self._buffer) or _ARRAY.search(self._buffer)
            if found:
                self.head = self._buffer[: found.end()]
                self._skip(found.end())
                return True
            if not self._more or len(self._buffer) > LIMIT:
                self.head = self._buffer
                return False
            self._fill(len(self._buffer) + 1)

    def pieces(self) -> Iterator[Piece | Issue]:
        """Every piece up to the end of the array, or of the file; then the trailer, and further arrays in it, are read."""
        further = True
        while further:
            yield from self._array()
            further = self._read_trailer()

    def _array(self) -> Iterator[Piece | Issue]:
        """Every piece up to the end of the array, or of the file."""
        while not self._closed and (self._more or self._buffer.strip(_BETWEEN)):
            self._fill(PIECE)
            if self._more and (piece := self._take(scan.border(self._buffer))):
                yield piece
            else:
                yield from self._last_or_odd()
        if not self._closed:
            yield Issue(
                "truncated",
                "The file ends inside the list of events; the rest is missing.",
                offset=self.offset,
            )

    def _last_or_odd(self) -> Iterator[Piece | Issue]:
        """The end of the array, an event longer than a piece, or damage."""
        found = scan.scan(self._buffer)
        if found.end == 0 and found.close is None and self._is_long():
            self._fill(2 * len(self._buffer))
        elif found.end == 0 and found.close is not None and self._is_gap(0, found.close):
            self._close(found.close + 1)
        elif piece := self._take(found.end):
            closes = found.close is not None and self._is_gap(0, found.close - found.end)
            yield piece
            if closes and found.close is not None:
                self._close(found.close - found.end + 1)
        else:
            yield from self._rescue()

    def _rescue(self) -> Iterator[Piece | Issue]:
        rescue = salvage.rescue(self._buffer, last=not self._more)
        if rescue.events:
            yield Piece(rescue.text, rescue.events)
        if rescue.dropped:
            self.dropped += rescue.dropped
            message = f"{rescue.dropped} damaged stretches of the list of events are left out, each about one event."
            yield Issue("malformed", message, offset=self.offset + (rescue.first or 0), dropped=rescue.dropped)
        if rescue.mended:
            message = (
                f"{rescue.mended} events break the rules of JSON and were mended: quotes, escapes, numbers, encoding."
            )
            yield Issue("malformed", message, offset=self.offset)
        self._skip(rescue.used)
        self._closed = rescue.closed

    def _take(self, end: int) -> Piece | None:
        """Decode the buffer up to `end` and drop it; None where that is no list of events."""
        text = self._buffer[:end].lstrip(_BETWEEN)
        try:
            events = columns.decode(text) if text else []
        except msgspec.DecodeError:
            return None
        if not events:
            return None
        self._skip(end)
        return Piece(text, events)

    def _is_long(self) -> bool:
        return self._more and len(self._buffer) < LIMIT and not salvage.BORDER.search(self._buffer)

    def _is_gap(self, start: int, end: int) -> bool:
        return not self._buffer[start:end].strip(_BETWEEN)

    def _close(self, end: int) -> None:
        self._closed = True
        self._skip(end)

    def _skip(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self.offset += count

    def _fill(self, wanted: int) -> None:
        parts, size = [self._buffer], len(self._buffer)
        while self._more and size < wanted:
            block = next(self._blocks, None)
            self._more = block is not None
            parts.append(block or b"")
            size += len(parts[-1])
        self._buffer = b"".join(parts)

    def _read_trailer(self) -> bool:
        """Read what follows the events; true where a second array of them begins there."""
        searched = 0
        while self._more or searched < len(self._buffer):
            self._fill(len(self._buffer) + PIECE)
            if found := _ARRAY.search(self._buffer, max(0, searched - _OVERLAP)):
                self.trailer += self._buffer[: found.start()] + b'"traceEvents":0'
                self._skip(found.end())
                self._closed = False
                return True
            searched = len(self._buffer)
            if searched >= LIMIT:
                break
        self.trailer += self._buffer
        while self._more:  # only to learn whether the rest of the file is sound
            self._buffer = b""
            self._fill(PIECE)
        return False
