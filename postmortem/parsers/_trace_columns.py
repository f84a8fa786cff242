"""A list of decoded trace events -> columns of table trace_event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from postmortem.parsers import _trace_times as times

Columns: TypeAlias = dict[str, pa.Array]
_NO_ARGS = msgspec.Raw(b"{}")


class Event(msgspec.Struct, gc=False):
    """One event with its args undecoded. Any: a writer's odd type must not cost the event."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    id: Any = None
    args: msgspec.Raw = _NO_ARGS


class ExactEvent(Event, gc=False):
    """The same with times as written, for those that a double cannot hold."""

    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """The args that have a column of their own; several names of one thing stand side by side."""

    device: Any = None
    device_id: Any = msgspec.field(default=None, name="Device Id")
    stream: Any = None
    correlation: Any = None
    external_id: Any = msgspec.field(default=None, name="External id")
    external_id_2021: Any = msgspec.field(default=None, name="external id")
    bytes: Any = msgspec.field(default=None, name="Bytes")
    copied: Any = msgspec.field(default=None, name="bytes")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    device_type: Any = msgspec.field(default=None, name="Device Type")
    collective: Any = msgspec.field(default=None, name="Collective name")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_2024: Any = msgspec.field(default=None, name="Process Group ID")
    sequence: Any = msgspec.field(default=None, name="Seq")
    elements: Any = msgspec.field(default=None, name="In msg nelems")


# Categories before the renamings in libkineto/include/ActivityType.h and torch/csrc/autograd/profiler_kineto.cpp.
_CATEGORIES = {
    "Operator": "cpu_op",
    "Kernel": "kernel",
    "Runtime": "cuda_runtime",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "gpu_user_Annotation": "gpu_user_annotation",
    "async": "ac2g",
    "async_cpu_to_gpu": "ac2g",
    "async_gpu": "ac2g",
}
_decode_events = msgspec.json.Decoder(list[Event]).decode
_decode_exact = msgspec.json.Decoder(list[ExactEvent]).decode
_decode_args = msgspec.json.Decoder(list[Args]).decode
_decode_one = msgspec.json.Decoder(Args).decode


def decode(piece: bytes) -> list[Event]:
    """Decode events separated by commas, without the array's brackets.

    Raises:
        msgspec.DecodeError: the piece is not that.

    """
    try:
        piece.decode()  # msgspec does not look at the encoding of what it leaves raw
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    return _decode_events(b"[" + piece + b"]")


def columns(piece: bytes, events: list[Event], clock: times.Clock) -> Columns:
    """Columns of the events that stand in `piece`; times become nanoseconds since the epoch."""
    ts: Sequence[Any]
    dur: Sequence[Any]
    ph, cat, name, pid, tid, ts, dur, flow, raw = zip(*map(msgspec.structs.astuple, events), strict=True)
    if times.needs_text(ts) or times.needs_text(dur):
        exact = _decode_exact(b"[" + piece + b"]")
        ts, dur = [bytes(e.ts) for e in exact], [bytes(e.dur) for e in exact]
    known = _args(raw)
    start, duration, flag = clock.read(ts, dur, ph)
    return {
        "ph": _texts(["" if p is None else p for p in ph]),
        "cat": _renamed(_texts(cat), _CATEGORIES),
        "name": _texts(name),
        "pid": _texts(pid),
        "tid": _texts(tid),
        "ts": start,
        "dur": duration,
        "flag": flag,
        "device": _ints(_first(known, "device", "device_id"), pa.int32()),
        "stream": _ints(_first(known, "stream")),
        "correlation": _ints(
            [f if c is None else c for f, c in zip(flow, _first(known, "correlation"), strict=True)]
        ),
        "external_id": _ints(_first(known, "external_id", "external_id_2021")),
        "bytes": _ints(_first(known, "bytes", "copied")),
        "allocated": _ints(_first(known, "allocated")),
        "reserved": _ints(_first(known, "reserved")),
        "device_type": _ints(_first(known, "device_type"), pa.int32()),
        "collective": _texts(_first(known, "collective")),
        "group": _texts(_first(known, "group", "group_2024")),
        "sequence": _ints(_first(known, "sequence")),
        "elements": _ints(_first(known, "elements")),
        "args": pa.array([None if r is _NO_ARGS else bytes(r) for r in raw], pa.binary()).cast(pa.string()),
    }


def _args(raw: Iterable[msgspec.Raw]) -> list[Args]:
    texts = [bytes(r) for r in raw]
    try:
        return _decode_args(b"[" + b",".join(texts) + b"]")
    except msgspec.DecodeError:
        return [_one(text) for text in texts]


def _one(text: bytes) -> Args:
    try:
        return _decode_one(text)
    except msgspec.DecodeError:  # null, or a list: kept as text, without columns
        return Args()


def _first(known: list[Args], *names: str) -> Sequence[Any]:
    """Values of the first of several fields that is stated."""
    values = [getattr(a, names[0]) for a in known]
    for name in names[1:]:
        values = [getattr(a, name) if v is None else v for a, v in zip(known, values, strict=True)]
    return values


def _ints(values: Sequence[Any], kind: pa.DataType = pa.int64()) -> pa.Array:  # noqa: B008 - immutable
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([_int(v, kind.bit_width) for v in values], kind)


def _int(value: Any, bits: int) -> int | None:
    """Take an integer out of what stands there; uint64 ids keep their bits, other numbers that do not fit are null."""
    if isinstance(value, str):
        try:
            value = int(value, 0)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if bits == 64 and 2**63 <= value < 2**64:
        return value - 2**64
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _texts(values: Sequence[Any]) -> pa.DictionaryArray:
    try:
        return pa.array(values, pa.string()).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_text(v) for v in values], pa.string()).dictionary_encode()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _renamed(column: pa.DictionaryArray, names: dict[str, str]) -> pa.DictionaryArray:
    values = [names.get(v, v) for v in column.dictionary.to_pylist()]
    if len(set(values)) == len(values):
        return pa.DictionaryArray.from_arrays(column.indices, pa.array(values, pa.string()))
    return pa.array(values, pa.string()).take(column.indices).dictionary_encode()
