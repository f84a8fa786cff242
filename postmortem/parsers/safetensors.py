"""Files of the safetensors format, and the indexes that list which file holds which tensor."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, BinaryIO, TypeGuard

from postmortem.parsers._checkpoint_file import batch, is_deep, values, verdict
from postmortem.parsers._tensors import ITEMSIZE
from postmortem.parsers._torch_zip import Defect
from postmortem.records import Parsed, Source

FORMAT = "safetensors"
DOC = "safetensors weights and *.index.json of sharded weights."

_MAX_HEADER = 32 << 20  # B; the format allows 100,000,000 (safetensors/src/tensor.rs of huggingface/safetensors)
_MAX_PARTS = 400_000
_DTYPES: Mapping[str, str] = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "I64": "int64", "I32": "int32", "I16": "int16",
    "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_INDEX = re.compile(r"(^|/)[^/]*\.(safetensors|bin)\.index\.json$")


def sniff(path: str, head: bytes) -> bool:
    """Whether the name says so, or the header does."""
    if _INDEX.search(path) or path.endswith(".safetensors"):
        return True
    return (
        len(head) > 9
        and head[8:9] == b"{"
        and 8 < int.from_bytes(head[:8], "little") <= _MAX_HEADER
        and (b'"data_offsets"' in head)
    )


def parse(source: Source) -> Iterator[Parsed]:
    """Read the header and check it against the file; read the values where asked."""
    with source.file.open("rb") as file:
        if _INDEX.search(source.path):
            yield from _index(source, file)
        else:
            yield from _weights(source, file)


def _json(text: bytes) -> Any:
    # Counted first, because the objects of a hostile text take a hundred times its size.
    if max(text.count(b":"), text.count(b"["), text.count(b"{"), text.count(b",") // 4) > _MAX_PARTS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _index(source: Source, file: BinaryIO) -> Iterator[Parsed]:
    found = _json(file.read(_MAX_HEADER)) if source.bytes <= _MAX_HEADER else None
    weights = found.get("weight_map") if isinstance(found, Mapping) else None
    defects = []
    if not isinstance(weights, Mapping):
        defects.append(Defect("damaged", "it is no index of weights", 0, source.bytes))
    pairs = [(name, part) for name, part in (weights or {}).items() if isinstance(part, str)]
    rows = [
        {"kind": "file", "position": position, "name": name, "file": part}
        for position, (name, part) in enumerate(pairs)
    ]
    yield from batch("checkpoint_parameter", rows)
    yield from verdict(source, "index", defects, deep=True, content="other", tensors=len(pairs))


def _weights(source: Source, file: BinaryIO) -> Iterator[Parsed]:
    length = int.from_bytes(file.read(8), "little")
    deep = is_deep(source)
    if source.bytes < 10 or length > _MAX_HEADER:
        kind = "truncated" if source.bytes < 10 else "refused"
        defects = [Defect(kind, "its header is missing or larger than the format allows", 0, 8)]
        yield from verdict(source, "safetensors", defects, deep=False)
        return
    raw = file.read(length)
    header = _json(raw)
    if len(raw) < length or not isinstance(header, Mapping):
        kind = "truncated" if len(raw) < length else "damaged"
        yield from verdict(
            source, "safetensors", [Defect(kind, "its header cannot be read", 8, 8 + length)], deep=False
        )
        return
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    tensors = [row for name, entry in entries.items() if (row := _tensor(name, entry, 8 + length))]
    defects = _fit(source, tensors, len(entries), 8 + length)
    for row in tensors:
        if deep and not defects:
            row.update(values(file, row["offset"], row["bytes"], row["dtype"]))
            row["crc32"] = int(str(row["content"])[:8], 16)
    yield from batch("checkpoint_tensor", tensors)
    held = sum(row["bytes"] for row in tensors)
    facts = {"storages": len(tensors), "storage_bytes": held, "tensors": len(tensors), "content": "weights"}
    yield from verdict(source, "safetensors", defects, deep=deep, recovered_bytes=min(held, source.bytes), **facts)


def _tensor(name: str, entry: Any, base: int) -> dict[str, Any] | None:
    if not isinstance(entry, Mapping):
        return None
    dtype, shape, place = _DTYPES.get(str(entry.get("dtype"))), entry.get("shape"), entry.get("data_offsets")
    if dtype is None or not _counts(shape) or not _counts(place) or len(place) != 2:
        return None
    numel = math.prod(shape)
    if place[1] - place[0] != numel * ITEMSIZE[dtype]:
        return None
    return {
        "path": name, "kind": "parameter", "name": name, "dtype": dtype, "shape": shape, "numel": numel,
        "offset": base + place[0], "bytes": place[1] - place[0],
    }  # fmt: skip


def _counts(numbers: Any) -> TypeGuard[list[int]]:
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 1 << 48 for n in numbers)


def _fit(source: Source, tensors: list[dict[str, Any]], entries: int, base: int) -> list[Defect]:
    """The tensors have to cover the bytes behind the header without gap or overlap."""
    if len(tensors) < entries:
        return [Defect("damaged", f"{entries - len(tensors)} entries of its header make no sense", 8, base)]
    ranges = sorted((row["offset"], row["offset"] + row["bytes"]) for row in tensors)
    end = max([base, *(stop for _, stop in ranges)])
    if end > source.bytes:
        return [Defect("truncated", f"it ends {end - source.bytes} bytes too early", source.bytes, source.bytes)]
    chain = pairwise([(base, base), *ranges, (source.bytes, source.bytes)])
    return [
        Defect(
            "refused" if start < stop else "damaged",
            "its tensors overlap or leave a gap",
            min(start, stop),
            max(start, stop),
        )
        for (_, stop), (start, _) in chain
        if start != stop
    ][:1]
