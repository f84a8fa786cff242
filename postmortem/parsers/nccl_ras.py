"""Answers of NCCL's RAS client in JSON (2.28.7 and later): communicators with per-rank counts of collectives.

Fields as in src/ras/client_support.cc of NVIDIA/nccl. `hash` is the commId of NCCL's debug output. A count says how
many collectives of a kind a rank has launched; one answer alone is a moment of a job that may well be running.
`line` numbers the answers of a file from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "nccl_ras"
DOC = "JSON answers of ncclras (NCCL 2.28.7 and later), one object or one per line."
MAX_BYTES = 1 << 28


def sniff(path: str, head: bytes) -> bool:
    """A JSON object that names a communicator list and NCCL's version."""
    del path
    return head.lstrip()[:1] == b"{" and b'"nccl_version"' in head and b'"communicators' in head


def parse(source: Source) -> Iterator[Parsed]:
    """Yield one row of `collective_evidence` per rank, communicator and kind, and the states of missing ranks."""
    if source.bytes > MAX_BYTES:
        yield Issue("limit", f"The file has {source.bytes} B, more than {MAX_BYTES} B; it was not read.")
        return
    data = source.file.read_bytes()
    answers, issue = _answers(data)
    rows: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    members: list[dict[str, Any]] = []
    for number, answer in enumerate(answers, 1):
        time = _time(answer.get("timestamp"))
        for comm in _dicts(answer.get("communicators")):
            rows += [row | {"record": len(rows) + n, "line": number} for n, row in enumerate(_counts(comm, time))]
            members += [row | {"line": number, "part": len(members) + n} for n, row in enumerate(_members(comm, time))]
            events += _missing(comm, time)
        version = answer.get("nccl_version")
        if version:
            yield Batch("environment", {"name": ["nccl"], "value": [str(version)]})
    if members:
        yield _batch("nccl_comm", members)
    if rows:
        yield _batch("collective_evidence", rows)
    if events:
        yield _batch("event", events)
    if issue:
        yield issue


def _answers(data: bytes) -> tuple[list[dict[str, Any]], Issue | None]:
    try:
        return _dicts([msgspec.json.decode(data)]), None
    except (msgspec.DecodeError, RecursionError):
        pass
    found, bad = [], 0
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            found += _dicts([msgspec.json.decode(line)])
        except (msgspec.DecodeError, RecursionError):
            bad += 1
    return found, Issue("malformed", f"{bad} lines are no JSON; they were left out.", dropped=bad) if bad else None


def _counts(comm: Mapping[str, Any], time: int | None) -> Iterator[dict[str, Any]]:
    name = str(comm.get("hash") or "")
    for rank in _dicts(comm.get("ranks")):
        counts = rank.get("collective_counts")
        for kind, count in counts.items() if isinstance(counts, dict) else ():
            if isinstance(count, int) and 0 <= count < 1 << 63:
                yield {
                    "statement": "count", "origin": FORMAT, "backend": "nccl", "group_name": name or None,
                    "group_rank": _small(rank.get("rank")), "host": _text(rank.get("host")),
                    "pid": _small(rank.get("pid")), "operation": str(kind), "seq": count, "time": time,
                    "partial": False,
                }  # fmt: skip


def _members(comm: Mapping[str, Any], time: int | None) -> Iterator[dict[str, Any]]:
    for rank in _dicts(comm.get("ranks")):
        yield {
            "statement": "listed", "comm_id": _text(comm.get("hash")), "comm_rank": _small(rank.get("rank")),
            "nranks": _small(comm.get("size")), "host": _text(rank.get("host")), "pid": _small(rank.get("pid")),
            "cuda_dev": _small(rank.get("cuda_dev")), "nvml_dev": _small(rank.get("nvml_dev")), "time": time,
        }  # fmt: skip


def _missing(comm: Mapping[str, Any], time: int | None) -> Iterator[dict[str, Any]]:
    for rank in _dicts(comm.get("missing_ranks")):
        status = rank.get("status")
        dead = isinstance(status, dict) and bool(status.get("considered_dead"))
        words = "is considered dead" if dead else "does not answer"
        yield {
            "kind": "nccl_ras", "role": "symptom", "name": "dead" if dead else "unresponsive", "time": time,
            "host": _text(rank.get("host")), "pid": _small(rank.get("pid")),
            "message": f"Rank {rank.get('rank')} of communicator {comm.get('hash')} {words}.",
        }  # fmt: skip


def _batch(table: str, rows: list[dict[str, Any]]) -> Batch:
    return Batch(table, {name: [row.get(name) for row in rows] for name in rows[0]})


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return str(value) if value not in {None, ""} else None


def _small(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1 << 31 else None


def _time(value: Any) -> int | None:
    """Seconds since the epoch as a number, or null: texts carry no zone."""
    return int(value * 10**9) if isinstance(value, int | float) and 1e9 < value < 4e9 else None
