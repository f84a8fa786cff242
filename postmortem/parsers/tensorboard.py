"""TensorBoard event files: scalars become metrics, text summaries (GPT-NeoX writes its settings so) become settings.

A file is a sequence of records (tensorflow/core/lib/io/record_writer.h: length, masked CRC of the length, data, masked
CRC of the data), each a protobuf `Event` (tensorflow/core/util/event.proto). Only a handful of fields matter, so they are
read here: the tensorboard package and protobuf would be 30 MB and two more formats of failure for 100 lines.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import msgspec

from postmortem.formats import names
from postmortem.records import Batch, Issue, Parsed, Source
from postmortem.redact import MASK, is_secret

FORMAT = "tensorboard"
DOC = "TensorBoard event files (events.out.tfevents.*): scalars, and settings written as text"

_NAME = re.compile(r"^events\.out\.tfevents\.\d+\.(?P<host>.+?)(?:\.\d+\.\d+)?(?:\.v2)?$")
_LIMIT = 64 << 20  # B; a longer record is an image or damage
_BATCH = 20_000  # values
_MASK = 0xA282EAD8  # tensorflow/core/lib/hash/crc32c.h
_SETTING = "/text_summary"
_GROUPS = ("train_samples_", "train_", "runtime_", "samples_")


class Value(NamedTuple):
    """One value of a summary: a number, or a text."""

    record: int
    part: int
    time: float
    step: int
    tag: str
    number: float | None
    text: str | None


def sniff(path: str, head: bytes) -> bool:
    """A file named like an event file, or one that begins with the record of the file's version."""
    return head[23:36] == b"brain.Event:2" or bool(_NAME.match(PurePosixPath(path).name) and len(head) >= 12)


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of metric and config. A damaged record ends the file: what follows cannot be found.

    Raises:
        OSError: the file cannot be read.

    """
    matched = _NAME.match(PurePosixPath(source.path).name)
    host = matched["host"] if matched else source.host
    held: list[Value] = []
    with source.file.open("rb") as file:
        for record, data in enumerate(_records(file), 1):
            if isinstance(data, Issue):
                yield data
                break
            try:
                held += _event(record, data)
            except (ValueError, IndexError, struct.error, RecursionError):
                yield Issue("malformed", "A record is no summary; it was left out.", record, dropped=1)
            if len(held) >= _BATCH:
                yield from _batches(held, source, host)
                held = []
    yield from _batches(held, source, host)


def _records(file: BinaryIO) -> Iterator[bytes | Issue]:
    while head := file.read(12):
        at = file.tell() - len(head)
        if len(head) < 12:
            yield Issue("truncated", "The file ends inside a record.", offset=at, dropped=1)
            return
        length, check = struct.unpack("<QI", head)
        if check != _masked(head[:8]) or length > _LIMIT:
            yield Issue("malformed", "A record's length is damaged; the rest is left out.", offset=at, dropped=1)
            return
        data, tail = file.read(length), file.read(4)
        if len(tail) < 4:
            yield Issue("truncated", "The file ends inside a record.", offset=at, dropped=1)
            return
        if struct.unpack("<I", tail)[0] != _masked(data):
            yield Issue("malformed", "A record is damaged; the rest is left out.", offset=at, dropped=1)
            return
        yield data


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)  # CRC-32C, reflected
        table.append(value)
    return table


_CRC = _table()


def _masked(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK) & 0xFFFFFFFF


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a protobuf message: an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        size, at = {1: (8, at), 5: (4, at)}.get(kind) or _varint(data, at)
        if kind not in {1, 2, 5} or at + size > len(data):
            raise ValueError(f"field of kind {kind}")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("varint")


def _event(record: int, data: bytes) -> list[Value]:
    """Values of one Event (1 wall_time, 2 step, 5 summary; Summary: 1 value)."""
    time, step, parts = 0.0, 0, []
    for number, value in _fields(data):
        if number == 1:
            time = struct.unpack("<d", value)[0]
        elif number == 2:
            step = value if value < 2**63 else value - 2**64
        elif number == 5:
            parts = [part for inner, part in _fields(value) if inner == 1]
    values = [_value(part) for part in parts]
    return [
        Value(record, i, time, step, tag, scalar, text)
        for i, (tag, scalar, text) in enumerate(values)
        if scalar is not None or text is not None
    ]


def _value(data: bytes) -> tuple[str, float | None, str | None]:
    """Tag, number and text of a Summary.Value (1 tag, 2 simple_value, 8 tensor)."""
    tag, scalar, text = "", None, None
    for number, value in _fields(data):
        if number == 1:
            tag = value.decode("utf-8", "replace")
        elif number == 2:
            scalar = struct.unpack("<f", value)[0]
        elif number == 8:
            scalar, text = _tensor(value)
    return tag, scalar, text


def _tensor(data: bytes) -> tuple[float | None, str | None]:
    """A scalar or a text out of a TensorProto (1 dtype, 4 tensor_content, 5 float_val, 6 double_val, 8 string_val)."""
    scalar, text, kind = None, None, 0
    for number, value in _fields(data):
        if number == 1:
            kind = value
        elif number == 8:
            text = value.decode("utf-8", "replace")
        elif number in {4, 5, 6} and isinstance(value, bytes):
            form = {(4, 1): "<f", (4, 2): "<d", (5, 1): "<f", (6, 2): "<d"}.get((number, kind))
            if form and len(value) == struct.calcsize(form):
                scalar = struct.unpack(form, value)[0]
    return scalar, text


def _batches(held: list[Value], source: Source, host: str | None) -> Iterator[Batch]:
    scalars = [value for value in held if value.number is not None]
    if scalars:
        samples = [value.tag.lower().startswith("train/samples/") for value in scalars]  # deepspeed/monitor
        yield Batch(
            "metric",
            {
                "line": [value.record for value in scalars],
                "part": [value.part for value in scalars],
                "time": [round(value.time * 1e9) if 0 < value.time < 4e9 else None for value in scalars],
                "rank": [source.rank] * len(scalars),
                "host": [host] * len(scalars),
                "step": [None if s else value.step for s, value in zip(samples, scalars, strict=True)],
                "samples": [value.step if s else None for s, value in zip(samples, scalars, strict=True)],
                "name": [_metric(value.tag) for value in scalars],
                "value": [value.number for value in scalars],
            },
        )
    settings = [value for value in held if value.text is not None and value.tag.endswith(_SETTING)]
    if settings:
        keys = [value.tag.removesuffix(_SETTING) for value in settings]
        yield Batch(
            "config",
            {
                "kind": ["trainer"] * len(settings),
                "key": keys,
                "value": [
                    msgspec.json.encode(MASK if is_secret(key) else value.text).decode()
                    for key, value in zip(keys, settings, strict=True)
                ],
                "line": [value.record for value in settings],
                "rank": [source.rank] * len(settings),
                "host": [host] * len(settings),
            },
        )


def _metric(tag: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", tag.lower()).strip("_")
    for group in _GROUPS:
        name = name.removeprefix(group) or name
    return names()["metric"].get(name, name) or "unnamed"
