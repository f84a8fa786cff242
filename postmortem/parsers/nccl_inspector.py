"""Records of the NCCL Inspector plugin (2.28 and later), one JSON object per completed collective.

Fields as in ext-profiler/inspector of NVIDIA/nccl, output format 4.0. Only completed operations are written, small
ones are skipped by default and a full ring drops some: what is missing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "nccl_inspector"
DOC = "JSON lines of the NCCL Inspector (nccl-inspector-<job>/<host>-pid<pid>.log)."
_ROWS = 20_000
_MEMBERS = 10_000
_LONGEST = 1 << 20


def sniff(path: str, head: bytes) -> bool:
    """Lines of JSON that name the inspector's format and a performance record."""
    del path
    return b'"inspector_output_format_version"' in head and (b'"coll_perf"' in head or b'"p2p_perf"' in head)


def parse(source: Source) -> Iterator[Parsed]:
    """Yield rows of `collective_evidence` with statement done, line by line in bounded memory."""
    rows: list[dict[str, Any]] = []
    bad = 0
    members: dict[tuple[Any, ...], dict[str, Any]] = {}
    with source.file.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), 1):
            row = _row(line, number)
            if row:
                rows.append(row)
                key = row["group_name"], row["host"], row["pid"]
                if key not in members and len(members) < _MEMBERS:
                    members[key] = _member(row, line)
            elif line.strip():
                bad += 1
            if len(rows) >= _ROWS:
                yield _batch(rows)
                rows = []
    if rows:
        yield _batch(rows)
    if members:
        listed = list(members.values())
        yield Batch("nccl_comm", {name: [row[name] for row in listed] for name in listed[0]})
    if bad:
        yield Issue("malformed", f"{bad} lines are no records of the inspector; they were left out.", dropped=bad)


def _row(line: bytes, number: int) -> dict[str, Any] | None:
    try:
        record = msgspec.json.decode(line)
        header, meta = record["header"], record["metadata"]
        collective = record.get("coll_perf")
        perf, kind = (collective, "coll") if collective else (record["p2p_perf"], "p2p")
        seconds = perf.get(f"{kind}_exec_time_us")
        return {
            "statement": "done", "origin": FORMAT, "record": number - 1, "line": number, "backend": "nccl",
            "group_name": _text(header.get("id")), "group_desc": _text(header.get("comm_name")),
            "group_rank": header.get("rank"), "host": _text(meta.get("hostname")), "pid": meta.get("pid"),
            "seq": perf.get(f"{kind}_sn"), "operation": _text(perf.get(kind)), "peer": perf.get("p2p_peer"),
            "bytes": perf.get(f"{kind}_msg_size_bytes"), "pending": False, "partial": False, "clock": "utc",
            "time": int(meta["dump_timestamp_us"]) * 1000,
            "duration": int(float(seconds) * 1000) if seconds is not None else None,
        }  # fmt: skip
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        return None


_INTEGERS = {"group_rank": 31, "pid": 63, "seq": 63, "peer": 31, "bytes": 63, "time": 63, "duration": 63}


def _member(row: dict[str, Any], line: bytes) -> dict[str, Any]:
    return {
        "statement": "listed", "line": row["line"], "part": 0, "comm_id": row["group_name"], "host": row["host"],
        "pid": _bounded(row["pid"], 63), "comm_rank": _bounded(row["group_rank"], 31),
        "nranks": _bounded(msgspec.json.decode(line)["header"].get("n_ranks"), 31),
    }  # fmt: skip


def _bounded(value: Any, bits: int) -> int | None:
    return value if isinstance(value, int) and abs(value) < 1 << bits else None


def _batch(rows: list[dict[str, Any]]) -> Batch:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name, bits in _INTEGERS.items():
        columns[name] = [_bounded(v, bits) for v in columns[name]]
    return Batch("collective_evidence", columns)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
