"""PyTorch profiler (Kineto) traces, and other files in the Trace Event Format.

Source: libkineto/src/output_json.cpp of pytorch/kineto; the format itself is Chromium's "Trace Event Format".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postmortem.parsers import _trace_columns as columns
from postmortem.parsers import _trace_head as head
from postmortem.parsers import _trace_stream as stream
from postmortem.parsers._trace_events import Piece, Reader
from postmortem.parsers._trace_times import Clock
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "torch_trace"
DOC = "PyTorch profiler (Kineto) traces, .json or .json.gz, of every version since 2021"

_OBJECT = re.compile(
    rb'\A(?:\xef\xbb\xbf)?\s*\{.*"(?:traceEvents|deviceProperties|baseTimeNanoseconds)"\s*:', re.DOTALL
)
_LIST = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\[\s*\{(?=.{0,2000}?"ph"\s*:\s*")(?=.{0,2000}?"(?:ts|pid)"\s*:)', re.DOTALL)
_TAIL = 4 << 20  # B at the end of the file that may hold metadata
_FLAGS = {
    "zero": "have time 0, which is how Kineto writes a time it does not know",
    "negative": "have a negative time or duration",
    "absurd": "lie or last more than a day away from the rest of the trace",
}


def sniff(path: str, head: bytes) -> bool:  # noqa: ARG001 - the name of a trace says nothing
    """Whether a file looks like a trace, by its first bytes."""
    return bool(_OBJECT.match(head) or _LIST.match(head))


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of trace_event in the file's order, then one of trace and one of process.

    Raises:
        OSError: the file cannot be read.
    """
    blocks = stream.Stream(source.file)
    reader = Reader(blocks)
    if not reader.open():
        yield from blocks.issues
        yield Issue("malformed", "There is no list of trace events in this file.")
        return
    known = head.metadata(reader.head, b"}")
    early = _look_ahead(source, known)
    clock = Clock(head.base_time(early))
    who = _who(source, early, None)
    counts = _Counts()
    for piece in reader.pieces():
        if isinstance(piece, Issue):
            yield piece
        else:
            yield _events(piece, clock, who.rank, counts)
    stated = head.metadata(reader.head, reader.trailer) or known
    yield from blocks.issues
    yield from _warnings(clock, early, stated)
    yield from _summary(source, stated, clock, counts, reader.dropped)


class _Counts:
    """Running totals of one file."""

    def __init__(self) -> None:
        self.events = 0
        self.pids: Counter[str] = Counter()

    def add(self, cells: columns.Columns) -> None:
        """Count a batch; the traced process is the one that most CPU operators belong to."""
        self.events += len(cells["ph"])
        chosen = pc.is_in(cells["cat"].cast(pa.string()), pa.array(["cpu_op", "user_annotation", "cuda_runtime"]))
        for entry in cells["pid"].filter(chosen).value_counts().to_pylist():
            self.pids[entry["values"]] += entry["counts"]

    @property
    def pid(self) -> int | None:
        """Process id that most events on the CPU carry."""
        pids = [pid for pid, _ in self.pids.most_common() if pid and pid.isdecimal()]
        return int(pids[0]) if pids and int(pids[0]) < 2**63 else None


def _look_ahead(source: Source, known: dict[str, Any]) -> dict[str, Any]:
    """Metadata that the events need but that may stand behind them (baseTimeNanoseconds until 2025-03, dynolog's ranks)."""
    missing = [key for key in ("baseTimeNanoseconds", "distributedInfo") if key not in known]
    if not missing:
        return known
    end = stream.tail(source.file, _TAIL)
    return known | {key: value for key in missing if (value := head.find(end, key)) is not None}


def _who(source: Source, stated: Mapping[str, Any], pid: int | None) -> head.Identity:
    """Whose trace it is: what the user says outranks what the file says."""
    who = head.identify(source.path, stated, pid, source.rank)
    return who._replace(rank=source.rank, rank_origin="rank_map") if source.rank_given else who


def _events(piece: Piece, clock: Clock, rank: int | None, counts: _Counts) -> Batch:
    cells = columns.columns(piece.text, piece.events, clock)
    first = counts.events
    counts.add(cells)
    cells["ordinal"] = pa.array(np.arange(first, counts.events, dtype=np.int64))
    if rank is not None:
        cells["rank"] = pa.array(np.full(counts.events - first, rank, np.int32))
    return Batch("trace_event", cells)


def _warnings(clock: Clock, early: dict[str, Any], stated: dict[str, Any]) -> Iterator[Issue]:
    for flag, count in clock.flags.items():
        if count:
            yield Issue("value", f"{count} events {_FLAGS[flag]}; their times are left out.")
    if clock.kind == "relative":
        yield Issue(
            "value",
            "Times are relative to a moment that the file does not state; they cannot be put beside others.",
        )
    if head.base_time(early) != head.base_time(stated):
        yield Issue(
            "value",
            "The clock base could not be read ahead of the events; times are relative to an unknown moment.",
        )


def _summary(source: Source, stated: dict[str, Any], clock: Clock, counts: _Counts, dropped: int) -> Iterator[Batch]:
    who = _who(source, stated, counts.pid)
    yield Batch(
        "trace",
        {
            "rank": [who.rank],
            "rank_origin": [who.rank_origin],
            "world_size": [who.world_size],
            "backend": [who.backend],
            "host": [who.host],
            "pid": [counts.pid],
            "clock": [clock.kind],
            "base_time": [clock.base if clock.kind == "base" else 0],
            "start": [clock.start],
            "end": [clock.end],
            "events": [counts.events],
            "dropped": [dropped],
            "metadata": [msgspec.json.encode(stated).decode()],
        },
    )
    if who.rank is not None:
        yield Batch(
            "process",
            {
                "statement": ["trace"],
                "rank": [who.rank],
                "host": [who.host],
                "pid": [counts.pid],
                "world_size": [who.world_size],
                "time": [clock.start if clock.kind != "relative" else None],
            },
        )
