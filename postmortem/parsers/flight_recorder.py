"""Flight Recorder dumps of PyTorch process groups, pickle or JSON, versions 2.0 to 2.10.

Fields as written by torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (pytorch/pytorch). A dump holds no
rank, host or pid: the rank is the last integer of the file's name, believed only where the groups listed in
the dump contain it.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

from postmortem.parsers._dump import Damaged, load
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "flight_recorder"
DOC = "PyTorch Flight Recorder dumps (nccl_trace_rank_N, comm_lib_trace_rank_N, ...), pickle or JSON."
_KEYS = (b"pg_config", b"pg_status", b"collective_seq_id", b"profiling_name", b"last_enqueued_collective")
_SUFFIX = re.compile(r"(\.(json|pkl|pickle|bin|txt|gz))+$", re.IGNORECASE)
_PEER = re.compile(r"^(\d+)(->|<-)(\d+)$")
# Kinds whose inputs, or outputs, must hold the same number of elements on every rank; the others may differ.
_EQUAL_INPUT = re.compile(r"(all_?reduce|all_?gather|broadcast|^_?reduce(_oop)?$|^gather)", re.IGNORECASE)
_EQUAL_OUTPUT = re.compile(
    r"(all_?reduce|reduce_scatter|broadcast|all_?gather.*(base|single|tensor)|^scatter)", re.IGNORECASE
)
_UNEVEN = re.compile(r"(_v$|_v_|all_?to_?all|coalesced$)", re.IGNORECASE)

_MAX_SHAPES = 4096
_MAX_ENTRIES = 1_000_000
"""The recorder's buffer holds 2,000 operations by default; what goes beyond this is no dump of PyTorch's."""

Entry: TypeAlias = Mapping[str, Any]
Group: TypeAlias = tuple[str, str | None, str | None]
"""Name, description and digest of the members of a process group."""


def sniff(path: str, head: bytes) -> bool:
    """A pickle of protocol 2 to 5 or a JSON object that names fields of a Flight Recorder dump."""
    del path
    if b'"traceEvents"' in head or b'"deviceProperties"' in head:
        return False  # a profiler trace; it lists process groups too
    text = head.lstrip()[:1] == b"{"
    return (text or (head[:1] == b"\x80" and head[1:2] in b"\2\3\4\5")) and any(key in head for key in _KEYS)


def parse(source: Source) -> Iterator[Parsed]:
    """Yield rows of `collective_evidence`; a damaged dump gives what could be read and an Issue."""
    gc.disable()  # a dump is a tree of a million small objects without cycles: collecting takes half of the time
    try:
        yield from _parse(source)
    finally:
        gc.enable()


def _parse(source: Source) -> Iterator[Parsed]:
    try:
        dump, damage = load(source.file)
    except Damaged as error:
        yield Issue(error.kind, f"{error}; nothing was read.")
        return
    if damage:
        yield Issue("truncated", f"{damage}; the entries before it were read, newer ones are unknown.")
    yield from _Dump(dump, source, partial=bool(damage)).batches()


class _Dump:
    """One dump being turned into rows."""

    def __init__(self, dump: Mapping[str, Any], source: Source, partial: bool) -> None:
        self.partial = partial
        self.config = _mapping(dump.get("pg_config"))
        self.status = _mapping(dump.get("pg_status"))
        entries = dump.get("entries")
        listed = entries if isinstance(entries, list) else []
        self.entries = [e for e in listed[-_MAX_ENTRIES:] if isinstance(e, dict)]
        self.dropped = len(listed) - len(self.entries)
        self.groups: dict[Any, Group] = {}
        self.known: dict[int | None, Group] = {}
        self.rank, self.doubt = self._rank(source)
        self.stacks: dict[Any, str] = {}
        self.library = _word(dump.get("comm_lib_version")) or _word(dump.get("nccl_version"))

    def batches(self) -> Iterator[Parsed]:
        """All rows of the dump, then its issues."""
        rows = [row for row in map(self._entry, self.entries) if row]
        backend = rows[-1][2] if rows else None
        status = list(self._statuses())
        same = {"rank": self.rank, "partial": self.partial}
        yield Batch("process_group", self._groups())
        yield _batch(_ENTRY, rows, {"statement": "entry", **same})
        yield _batch(_STATUS, status, {"statement": "status", "backend": backend, **same})
        if self.library:
            yield Batch("environment", {"name": ["nccl"], "value": [self.library], "rank": [self.rank]})
        if self.doubt:
            yield Issue("value", self.doubt)
        if not rows and not status:
            yield Issue("malformed", "The dump holds no operations and no counters; nothing was read.")
        lost = self.dropped + len(self.entries) - len(rows)
        if lost:
            yield Issue("malformed", f"{lost} entries are no operations; they were left out.", dropped=lost)

    def _rank(self, source: Source) -> tuple[int | None, str]:
        name = source.path.rsplit("/", 1)[-1]
        stem = _SUFFIX.sub("", name)
        found = re.search(r"(\d+)$", stem)
        stated = (_ranks(_mapping(config).get("ranks")) for config in self.config.values())
        sets = [set(ranks) for ranks in stated if ranks]
        common = set.intersection(*sets) if sets else set()
        rank = int(found[1]) if found and len(found[1]) < 8 else None
        if rank is None:
            return None, f"The name {name} states no rank, so nobody's evidence is in it."
        if sets and rank not in common:
            return None, f"The name {name} states rank {rank}, but the groups in the dump do not contain it."
        return rank, ""

    def _group(self, key: Any) -> Group:
        if key not in self.groups:
            name, desc = key if isinstance(key, tuple) else (str(key), "")
            config = _mapping(self.config.get(name))
            desc = config.get("desc") if desc in {"", "undefined"} else desc
            members = _ranks(config.get("ranks"))
            self.groups[key] = (name, str(desc) if desc else None, digest(members) if members else None)
        return self.groups[key]

    def _groups(self) -> dict[str, Any]:
        """Columns of table process_group."""
        rows = []
        for name, config in self.config.items():
            members = _ranks(_mapping(config).get("ranks"))
            if members:
                rows.append((*self._group(str(name)), members))
        columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
        return dict(zip(("group_name", "group_desc", "members_hash", "members"), columns, strict=True))

    def _entry(self, entry: Entry) -> tuple[Any, ...] | None:
        try:
            return self._operation(entry)
        except (RecursionError, TypeError, ValueError):  # a field holds what no dump holds
            return None

    def _operation(self, entry: Entry) -> tuple[Any, ...] | None:
        label = entry.get("profiling_name")
        group: Any = entry.get("process_group")
        record = _int(entry.get("record_id"))
        if not isinstance(label, str) or not _is_pair(group) or record is None:
            return None
        number = _int(entry.get("pg_id"))
        belongs = self._group((str(group[0]), str(group[1])))
        self.known[number] = belongs
        backend, _, what = label.rpartition(":")
        operation, _, ends = what.partition(" ")
        peer = _PEER.match(ends)
        p2p = bool(entry.get("is_p2p")) or peer is not None
        state = entry.get("state")
        ins, outs = _sizes(entry.get("input_sizes")), _sizes(entry.get("output_sizes"))
        types = _types(entry.get("input_dtypes")), _types(entry.get("output_dtypes"))
        done = bool(entry.get("retired")) or state == "completed"
        if backend != "gloo" and state != "completed" and entry.get("retired"):
            done = False  # NCCL retires an operation that timed out without ever completing it
        return (
            record,
            FORMAT,
            backend or None,
            *belongs,
            number,
            _int(entry.get("p2p_seq_id" if p2p else "collective_seq_id")),
            _int(entry.get("collective_seq_id")) if p2p else None,
            operation,
            int(peer[3]) if peer else None,
            None if ins is None else str(ins),
            None if outs is None else str(outs),
            " -> ".join(types),
            signature(operation, ins, outs, types),
            state if isinstance(state, str) else None,
            not done,
            _int(entry.get("time_created_ns")) or None,
            _int(entry.get("time_discovered_started_ns")) or None,
            _int(entry.get("time_discovered_completed_ns")) or None,
            "utc",
            _scaled(entry.get("duration_ms"), 1e6),
            _scaled(entry.get("timeout_ms"), 1e6),
            _word(entry.get("thread_name")),
            self._stack(entry.get("frames")),
        )

    def _stack(self, frames: Any) -> str | None:
        if not isinstance(frames, list) or not frames:
            return None
        try:
            key = tuple(map(_FRAME, frames))
            known = self.stacks.get(key)
            if known is None:
                known = self.stacks[key] = json.dumps(key)
        except (KeyError, RecursionError, TypeError, ValueError):
            return None
        return known

    def _statuses(self) -> Iterator[tuple[Any, ...]]:
        """Counters by group; their keys are the process's own group numbers."""
        names = self._names()
        for number, (key, values) in enumerate(self.status.items()):
            status = _mapping(values)
            enqueued = _int(status.get("last_enqueued_collective"))
            number_of_group = _int(key)
            if number_of_group not in names or enqueued is None:
                continue
            yield (
                number,
                FORMAT,
                *names[number_of_group],
                number_of_group,
                enqueued,
                _int(status.get("last_started_collective")),
                _int(status.get("last_completed_collective")),
            )

    def _names(self) -> dict[int | None, Group]:
        """Group number -> group: from the entries, and by order of creation where that agrees with them all.

        A dump of active operations has no entry for idle groups. Numbers and names both count up as groups are
        made, so where there are equally many they pair up in order.
        """
        known = self.known
        ids = sorted(i for i in map(_int, self.status) if i is not None)
        names = sorted((n for n in self.config if str(n).isdigit()), key=int)
        if len(ids) == len(names) == len(self.config):
            paired: dict[int | None, Group] = {i: self._group(n) for i, n in zip(ids, names, strict=True)}
            if all(paired.get(i, g)[0] == g[0] for i, g in known.items()):
                return {**paired, **known}
        return known


_FRAME: Callable[[Any], tuple[Any, ...]] = itemgetter("name", "filename", "line")
_ENTRY = (
    "record",
    "origin",
    "backend",
    "group_name",
    "group_desc",
    "members_hash",
    "group_id",
    "seq",
    "after_seq",
    "operation",
    "peer",
    "input_sizes",
    "output_sizes",
    "dtypes",
    "signature",
    "state",
    "pending",
    "time",
    "time_started",
    "time_completed",
    "clock",
    "duration",
    "timeout",
    "thread",
    "frames",
)
_STATUS = (
    "record",
    "origin",
    "group_name",
    "group_desc",
    "members_hash",
    "group_id",
    "last_enqueued",
    "last_started",
    "last_completed",
)


def _batch(names: Sequence[str], rows: Sequence[tuple[Any, ...]], constants: Mapping[str, Any]) -> Batch:
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {n: [] for n in names}
    columns |= {name: [value] * len(rows) for name, value in constants.items()}
    return Batch("collective_evidence", columns)


def signature(operation: str, ins: Any, outs: Any, types: tuple[str, str]) -> str:
    """What all ranks of one collective must agree on, as text: kind, element type, elements where equal."""
    if operation in {"send", "recv", "coalesced", "barrier"} or _UNEVEN.search(operation):
        return operation
    parts = [operation, types[1] if operation == "scatter" else types[0]]
    if _EQUAL_INPUT.search(operation):
        parts.append(f"in {_elements(ins)}")
    if _EQUAL_OUTPUT.search(operation):
        parts.append(f"out {_elements(outs)}")
    return " ".join(parts)


def digest(members: Sequence[int]) -> str:
    """Short name of a list of ranks, as in column members_hash."""
    return hashlib.blake2b(repr(tuple(members)).encode(), digest_size=6).hexdigest()


def _elements(sizes: Any) -> int:
    try:
        return sum(math.prod(map(int, shape)) for shape in sizes)
    except (TypeError, ValueError):
        return -1


def _types(value: Any) -> str:
    names = value if isinstance(value, list) else [value]
    return ",".join(dict.fromkeys(name for name in names if isinstance(name, str)))


def _sizes(value: Any) -> list[list[Any]] | None:
    """Shapes, if that is what they are: lists of numbers, not too many."""
    if not isinstance(value, list) or len(value) > _MAX_SHAPES:
        return None
    for shape in value:
        if not isinstance(shape, list) or len(shape) > _MAX_SHAPES or any(type(n) is not int for n in shape):
            return None
    return value


def _is_pair(value: Any) -> bool:
    """Whether it is the name and the description of a group."""
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and isinstance(value[0], str | int)
        and isinstance(value[1], str | int)
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _ranks(value: Any) -> tuple[int, ...] | None:
    """Members as a tuple, from "[0, 1]" or a list; None where empty (gloo) or not stated."""
    if isinstance(value, str):
        value = re.findall(r"\d{1,9}", value)
    if not isinstance(value, list | tuple | set):
        return None
    numbers = [_int(v) for v in value]
    return tuple(n for n in numbers if n is not None and n < 1 << 31) or None


def _int(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if -(1 << 63) <= number < 1 << 63 else None


def _scaled(value: Any, factor: float) -> int | None:
    return int(value * factor) if isinstance(value, int | float) and 0 <= value < 1e12 else None
