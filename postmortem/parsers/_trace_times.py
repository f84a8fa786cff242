"""Times of trace events: microseconds as written -> int64 nanoseconds since the epoch, bad ones flagged.

Four eras of libkineto/src/output_json.cpp (pytorch/kineto): whole microseconds since the epoch; the same with
three decimals (commit dfd563dd, more digits than a double holds); decimals relative to a base that is not
recorded (327ac505); the same with baseTimeNanoseconds (84d95b82).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

_EXACT = float(2**43)  # below it a double's step is at most 2**-10 us, so three decimals survive
_ABSOLUTE = 1e14  # us; 1973 as a time since the epoch, three years as a distance to a base
_DAY = 86_400_000_000_000  # ns; no profiler window is that long, see "Timestamps" in docs
_WORST = 4e18  # ns; leaves room for sums in int64


class Clock:
    """Reads the times of one trace file.

    Args:
        base: baseTimeNanoseconds, ns since the epoch, or None.
    """

    def __init__(self, base: int | None) -> None:
        self.base = base
        self.middle: int | None = None  # a typical time of the file, ns as written
        self.flags: dict[str, int] = {}
        self.start: int | None = None
        self.end: int | None = None

    @property
    def kind(self) -> str | None:
        """How times of this file are stated: absolute, base, relative; None before the first one."""
        if self.middle is None:
            return None
        if self.middle >= _ABSOLUTE * 1000:
            return "absolute"
        return "base" if self.base else "relative"

    def read(self, ts: Sequence[Any], dur: Sequence[Any], *, judged: np.ndarray) -> dict[str, pa.Array]:
        """Columns ts (ns since the epoch), dur (ns) and flag; events that are not `judged` may carry any time."""
        start, has_start = nanoseconds(ts)
        length, has_length = nanoseconds(dur)
        judged = has_start & judged
        if self.middle is None and (judged & (start > 0)).any():
            self.middle = int(np.median(start[judged & (start > 0)]))
        bad = {
            "zero": judged & (start == 0),
            "negative": (judged & (start < 0)) | (has_length & (length < 0)),
            "absurd": (judged & (np.abs(start - (self.middle or 0)) > _DAY)) | (has_length & (length > _DAY)),
        }
        flag = self._flag(bad, len(start))
        good = flag < 0
        if self.kind == "base":
            start = start + (self.base or 0)
        self._window(start, length, good & judged, has_length)
        cells = {"ts": pa.array(start, mask=~(has_start & good)), "dur": pa.array(length, mask=~(has_length & good))}
        if not good.all():
            words = pa.array(list(bad), pa.string())
            cells["flag"] = pa.DictionaryArray.from_arrays(pa.array(flag, mask=good), words)
        return cells

    def _flag(self, bad: Mapping[str, np.ndarray], count: int) -> np.ndarray:
        """Place in `bad` of the first kind of badness of each event, -1 for a good one; they are counted."""
        flag = np.full(count, -1, np.int32)
        for place, (name, where) in enumerate(bad.items()):
            new = where & (flag < 0)
            flag[new] = place
            self.flags[name] = self.flags.get(name, 0) + int(new.sum())
        return flag

    def _window(self, start: np.ndarray, length: np.ndarray, used: np.ndarray, has_length: np.ndarray) -> None:
        if used.any():
            first = int(start[used].min())
            last = int((start + np.where(has_length, length, 0))[used].max())
            self.start = first if self.start is None else min(self.start, first)
            self.end = last if self.end is None else max(self.end, last)


def needs_text(values: Sequence[Any]) -> bool:
    """Whether a double may have lost digits of these times, or some are no numbers."""
    kinds = set(map(type, values))
    if kinds - {int, float, type(None)}:
        return True
    try:
        numbers = np.array(values, np.float64)
    except OverflowError:
        return True
    return float in kinds and bool(np.nanmax(np.abs(numbers)) >= _EXACT)


def nanoseconds(values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Times in us, as numbers (None = not stated) or as JSON text, in int64 ns; and which are stated."""
    if values and isinstance(values[0], bytes):
        texts = [_decimal(text) for text in values]
        return np.array([t or 0 for t in texts], np.int64), np.array([t is not None for t in texts], bool)
    numbers = np.array(values, np.float64)
    stated = ~np.isnan(numbers)
    numbers = np.clip(np.where(stated, numbers, 0), -_WORST / 1000, _WORST / 1000)
    whole = np.floor(numbers)
    # The fraction of a double is exact, its decimals are off by less than half a nanosecond.
    return whole.astype(np.int64) * 1000 + np.rint((numbers - whole) * 1000).astype(np.int64), stated


def _decimal(text: bytes) -> int | None:
    try:
        value = Decimal(text.decode().strip('"').strip()).scaleb(3)
        return int(max(min(value.to_integral_value(), Decimal(_WORST)), -Decimal(_WORST)))
    except (InvalidOperation, ValueError, OverflowError):
        return None
