"""All ranks of a run on one corrected clock, as one trace that ui.perfetto.dev opens.

The file is in the Trace Event Format, gzip-compressed JSON. Each trace becomes a process named after its rank; one more
track per rank shows how long it waited in each collective, and for whom. Ranks whose clock is unknown keep the times
of their own files and say so in their label; where those are more than a day away from the others, they are moved to
begin with them.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from postmortem.errors import PostmortemError
from postmortem.query import Session

_ROWS = 50_000  # events held at a time
_WAITS = 1 << 30  # thread id of the track of waits; threads of a trace are numbered from 1
_PASSED = ("X", "i", "s", "f", "C", "B", "E")  # phases of the Trace Event Format that are passed on

# One row per trace: its process in the timeline, how its clock is corrected, what its label says.
_TRACES = """
    WITH clocked AS (
        SELECT
            t.source, t.rank, t.host, t."start", coalesce(any_value(k.status), 'unknown') AS status,
            arg_min(k.offset_ns, coalesce(k.from_time, 0)) AS offset_ns,
            arg_min(k.drift, coalesce(k.from_time, 0)) AS drift,
            arg_min(k.reference_time, coalesce(k.from_time, 0)) AS reference_time,
            max(k.uncertainty) AS uncertainty,
            CAST(sum(k.collectives) AS BIGINT) AS collectives,
            count(k.source) AS windows,
            row_number() OVER (ORDER BY t.rank NULLS LAST, t.source) AS process
        FROM trace_file AS t
        LEFT JOIN trace_clock AS k ON k.run_id = t.run_id AND k.source = t.source
        GROUP BY t.source, t.rank, t.host, t."start"
    ),

    corrected AS (
        SELECT
            *, "start" - coalesce(offset_ns + CAST(drift * ("start" - reference_time) AS BIGINT), 0) AS begins
        FROM clocked
    ),

    based AS (
        SELECT
            *,
            coalesce(min(begins) FILTER (WHERE status != 'unknown') OVER (), max(begins) OVER ()) AS base
        FROM corrected
    )

    SELECT
        source, rank, host, status, offset_ns, drift, uncertainty, collectives, windows, process, begins,
        CASE WHEN status = 'unknown' AND abs(begins - base) > 86400000000000 THEN begins - base ELSE 0 END AS moved
    FROM based
"""
_THREADS = f"""
    SELECT
        e.source, e.pid, e.tid,
        row_number() OVER (PARTITION BY e.source ORDER BY min(e.ts), e.pid, e.tid) AS thread,
        any_value(n.name) AS name
    FROM trace_event AS e
    LEFT JOIN (
        SELECT source, pid, tid, json_extract_string(args, '$.name') AS name
        FROM trace_event
        WHERE ph = 'M' AND name = 'thread_name'
    ) AS n ON n.source = e.source AND n.pid = e.pid AND n.tid = e.tid
    WHERE e.ts IS NOT NULL AND e.ph IN {_PASSED}
    GROUP BY e.source, e.pid, e.tid
"""
_EVENTS = f"""
    SELECT
        t.process, h.thread, e.ph, coalesce(e.cat, '') AS cat, coalesce(e.name, '') AS name,
        e.ts - t.moved - coalesce(k.offset_ns + CAST(k.drift * (e.ts - k.reference_time) AS BIGINT), 0) AS time,
        e.dur, e.correlation, e.args
    FROM trace_event AS e
    INNER JOIN timeline_trace AS t ON t.source = e.source
    INNER JOIN timeline_thread AS h
        ON h.source = e.source AND h.pid IS NOT DISTINCT FROM e.pid AND h.tid IS NOT DISTINCT FROM e.tid
    LEFT JOIN trace_clock AS k
        ON
            k.source = e.source
            AND coalesce(e.ts >= k.from_time, TRUE) AND coalesce(e.ts < k.until_time, TRUE)
    WHERE e.ts IS NOT NULL AND e.ph IN {_PASSED} AND (e.ph != 'X' OR e.dur IS NOT NULL)
"""
_WAITED = """
    SELECT t.process, a.kind, a.start_time, a.wait, a.last_rank, a.collective, a.uncertainty
    FROM aligned_collective AS a
    INNER JOIN timeline_trace AS t ON t.source = a.source
    WHERE a.trusted AND a.wait > 0
    ORDER BY t.process, a.start_time, a.wait DESC
"""


def write(session: Session, file: Path) -> int:
    """Write the timeline of the one run of `session`; the result is the number of events.

    Raises:
        PostmortemError: the run has no traces.

    """
    session.need(["trace_file", "trace_clock", "aligned_collective"])
    connection = session.connection
    connection.execute(f"CREATE OR REPLACE TEMP TABLE timeline_trace AS {_TRACES}")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE timeline_thread AS {_THREADS}")
    traces = session.connection.sql("FROM timeline_trace ORDER BY process").to_arrow_table().to_pylist()
    if all(trace["begins"] is None for trace in traces):
        raise PostmortemError(f"The run {session.runs[0]} has no profiler traces.", "Record some with torch.profiler.")
    base = min(trace["begins"] - trace["moved"] for trace in traces if trace["begins"] is not None)
    count = 0
    with gzip.open(file, "wb", compresslevel=5) as out:
        out.write(b'{"displayTimeUnit": "ns", "baseTimeNanoseconds": %d, "postmortem": ' % base)
        out.write(msgspec.json.encode(_method(session, traces)))
        out.write(b', "traceEvents": [\n')
        for event in _all_events(session, traces, base):
            out.write((b",\n" if count else b"") + event)
            count += 1
        out.write(b"\n]}\n")
    return count


def _method(session: Session, traces: list[dict[str, Any]]) -> dict[str, Any]:
    """How the clocks were put together, for the metadata of the file."""
    keys = ("rank", "source", "host", "status", "offset_ns", "drift", "uncertainty", "collectives", "windows")
    return {
        "run": session.runs[0],
        "method": "ends of common collectives, in windows of each clock; offset and drift are the first window's; "
        "see the view trace_clock of postmortem",
        "unit": "ns",
        "clocks": [{key: trace[key] for key in keys} for trace in traces],
    }


def _all_events(session: Session, traces: list[dict[str, Any]], base: int) -> Iterator[bytes]:
    for trace in traces:
        yield from _names(trace)
    for process, thread, name in _rows(session, "SELECT process, thread, name FROM timeline_thread "
                                       "INNER JOIN timeline_trace USING (source)"):  # fmt: skip
        if name is not None:
            yield _named("thread_name", process, thread, name)
    for process, thread, ph, cat, name, time, dur, flow, args in _rows(session, _EVENTS):
        head = _head(ph, process, thread, name, time - base) + b',"cat":' + msgspec.json.encode(cat)
        if ph == "X":
            yield head + b',"dur":%d.%03d' % divmod(dur, 1000) + (b',"args":' + args.encode() if args else b"") + b"}"
        elif ph not in "sf":
            scope = b',"s":"t"' if ph == "i" else b""
            yield head + scope + (b',"args":' + args.encode() if args else b"") + b"}"
        elif flow is not None:  # ids of flows are unique within a trace only
            yield head + b',"bp":"e","id":"%d.%d"}' % (process, flow)
    yield from _waits(session, base)


def _waits(session: Session, base: int) -> Iterator[bytes]:
    """The waits of each process; such as overlap stand in tracks of their own, since viewers drop slices that cross."""
    ends: dict[int, list[int]] = {}  # process -> when each of its tracks is free
    for process, kind, start, wait, last, collective, uncertainty in _rows(session, _WAITED):
        tracks = ends.setdefault(process, [])
        place = next((i for i, end in enumerate(tracks) if end <= start), len(tracks))
        tracks[place : place + 1] = [start + wait]
        if place and place == len(tracks) - 1:
            yield _named("thread_name", process, _WAITS + place, f"waits in collectives ({place + 1})")
        args = {"last_rank": last, "collective": collective, "clock_uncertainty_ns": uncertainty}
        head = _head("X", process, _WAITS + place, f"waits for rank {last} ({kind})", start - base)
        yield head + b',"cat":"wait","dur":%d.%03d,"args":' % divmod(wait, 1000) + msgspec.json.encode(args) + b"}"


def _names(trace: dict[str, Any]) -> Iterator[bytes]:
    rank = "rank unknown" if trace["rank"] is None else f"rank {trace['rank']}"
    process = int(trace["process"])
    yield _named("process_name", process, 0, f"{rank} {trace['host'] or ''} {trace['source']}")
    clock = (
        {
            "unknown": "clock unknown: not aligned" + (", moved to the beginning" if trace["moved"] else ""),
            "estimated": f"clock corrected by {trace['offset_ns']} ns, known to {trace['uncertainty']} ns",
        }.get(trace["status"], "clock as stated")
        if trace["begins"] is not None
        else "no time that can be used"
    )
    yield _named("process_labels", process, 0, clock, key=b"labels")
    yield _named("thread_name", process, _WAITS, "waits in collectives")


def _named(what: str, process: int, thread: int, name: str, key: bytes = b"name") -> bytes:
    return b'{"ph":"M","pid":%d,"tid":%d,"name":"%s","args":{"%s":%s}}' % (
        process, thread, what.encode(), key, msgspec.json.encode(name),
    )  # fmt: skip


def _head(ph: str, process: int, thread: int, name: str, time: int) -> bytes:
    """Begin an event; times are in us with three decimals, written without going through a double."""
    sign, (whole, rest) = (b"-" if time < 0 else b""), divmod(abs(time), 1000)
    return b'{"ph":"%s","pid":%d,"tid":%d,"ts":%s%d.%03d,"name":%s' % (
        ph.encode(), process, thread, sign, whole, rest, msgspec.json.encode(name),
    )  # fmt: skip


def _rows(session: Session, sql: str) -> Iterator[tuple[Any, ...]]:
    result = session.connection.execute(sql)  # a cursor of its own would not see the temporary tables
    while rows := result.fetchmany(_ROWS):
        yield from rows
