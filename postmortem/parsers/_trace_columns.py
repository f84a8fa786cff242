"""A list of decoded trace events -> columns of table trace_event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
import numpy as np
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
_KINDS = {"device": pa.int32(), "device_type": pa.int32()}
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
        if not piece.isascii():
            piece.decode()  # msgspec does not look at the encoding of what it leaves raw
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    try:
        return _decode_events(b"[" + piece + b"]")
    except RecursionError as error:  # nested deeper than Python's stack
        raise msgspec.DecodeError(str(error)) from error


def columns(piece: bytes, events: list[Event], clock: times.Clock) -> Columns:
    """Columns of the events that stand in `piece`; times become nanoseconds since the epoch."""
    ts, dur = [e.ts for e in events], [e.dur for e in events]
    if times.needs_text(ts) or times.needs_text(dur):
        exact = _decode_exact(b"[" + piece + b"]")
        ts, dur = [bytes(e.ts) for e in exact], [bytes(e.dur) for e in exact]
    phase = texts([e.ph for e in events], missing="")
    args = [None if e.args is _NO_ARGS else bytes(e.args) for e in events]
    return {
        "ph": phase,
        "cat": texts([e.cat for e in events], renamed=_CATEGORIES),
        "name": texts([e.name for e in events]),
        "pid": texts([e.pid for e in events]),
        "tid": texts([e.tid for e in events]),
        "args": pa.array(args, pa.binary()).cast(pa.string()),
        **clock.read(ts, dur, judged=phase.indices.to_numpy() != phase.dictionary.index("M").as_py()),
        **_known(args, _stated([e.id for e in events])),
    }


def _known(args: Sequence[bytes | None], flow: Sequence[Any] | None) -> Columns:
    """Columns of the args that have one; those that no event states are left out."""
    decoded = _args(args)
    stated = {name: _stated(list(map(attrgetter(name), decoded))) for name in Args.__struct_fields__}
    ints = {
        "device": _either(stated["device"], stated["device_id"]),
        "stream": stated["stream"],
        "correlation": _either(stated["correlation"], flow),
        "external_id": _either(stated["external_id"], stated["external_id_2021"]),
        "bytes": _either(stated["bytes"], stated["copied"]),
        "allocated": stated["allocated"],
        "reserved": stated["reserved"],
        "device_type": stated["device_type"],
        "sequence": stated["sequence"],
        "elements": stated["elements"],
    }
    words = {"collective": stated["collective"], "group": _either(stated["group"], stated["group_2024"])}
    cells: Columns = {n: _ints(v, _KINDS.get(n, pa.int64())) for n, v in ints.items() if v is not None}
    return cells | {n: texts(v) for n, v in words.items() if v is not None}


def _stated(values: Sequence[Any]) -> Sequence[Any] | None:
    return None if values.count(None) == len(values) else values


def _either(first: Sequence[Any] | None, second: Sequence[Any] | None) -> Sequence[Any] | None:
    """Values of two fields that mean one thing."""
    if first is None or second is None:
        return second if first is None else first
    return [b if a is None else a for a, b in zip(first, second, strict=True)]


def _args(args: Sequence[bytes | None]) -> list[Args]:
    try:
        return _decode_args(b"[" + b",".join([text or b"{}" for text in args]) + b"]")
    except msgspec.DecodeError:
        return [_one(text or b"{}") for text in args]


def _one(text: bytes) -> Args:
    try:
        return _decode_one(text)
    except msgspec.DecodeError:  # null, or a list: kept as text, without columns
        return Args()


def _ints(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
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


class _Codes(dict[Any, int]):
    """Numbers values in the order in which they come."""

    def __missing__(self, value: Any) -> int:
        self[value] = code = len(self)
        return code


def texts(
    values: Sequence[Any], *, missing: str | None = None, renamed: Mapping[str, str] = MappingProxyType({})
) -> pa.DictionaryArray:
    """Dictionary-encode values as text: `missing` stands for None, `renamed` replaces texts."""
    codes = _Codes()
    try:
        numbers = np.fromiter(map(codes.__getitem__, values), np.int32, len(values))
    except TypeError:  # a list or an object cannot be looked up
        return texts([_text(value) for value in values], missing=missing, renamed=renamed)
    words = [missing if value is None else _text(value) for value in codes]
    words = [None if word is None else renamed.get(word, word) for word in words]
    if len(set(words)) == len(words) and None not in codes:
        return pa.DictionaryArray.from_arrays(numbers, pa.array(words, pa.string()))
    return _merged(numbers, words)


def _merged(numbers: np.ndarray, words: Sequence[str | None]) -> pa.DictionaryArray:
    """The same where several codes mean one word, or one means null."""
    places = {word: place for place, word in enumerate(dict.fromkeys(w for w in words if w is not None))}
    table = np.array([places.get(word, -1) if word is not None else -1 for word in words], np.int32)
    indices = table[numbers]
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), pa.array(list(places), pa.string()))


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    return msgspec.json.encode(value).decode()
