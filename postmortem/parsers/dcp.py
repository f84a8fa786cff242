"""Checkpoints of torch.distributed.checkpoint: the .metadata file, and the .distcp files it speaks of.

Classes: torch/distributed/checkpoint/metadata.py and filesystem.py of pytorch/pytorch. Each item of a .distcp
file is a file of torch.save of its own, at the offset and with the length that .metadata states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from postmortem.parsers import _torch_file
from postmortem.parsers._checkpoint_file import batch, checksums, is_deep, values, verdict
from postmortem.parsers._checkpoint_rows import leaf_tensors
from postmortem.parsers._tensors import ITEMSIZE
from postmortem.parsers._torch_file import TorchFile, size_of_first
from postmortem.parsers._torch_zip import Defect
from postmortem.parsers._unpickle import Inert, Refused, load
from postmortem.parsers._window import Window
from postmortem.records import Parsed, Source

FORMAT = "dcp"
DOC = "torch.distributed.checkpoint: .metadata and __*_*.distcp."

_DATA = re.compile(r"(^|/)__\d+_\d+\.distcp$")
_MAX_METADATA = 64 << 20


def sniff(path: str, head: bytes) -> bool:
    """Whether it is named like one."""
    return bool(_DATA.search(path)) or (path.rsplit("/", 1)[-1] == ".metadata" and head[:1] == b"\x80")


def parse(source: Source) -> Iterator[Parsed]:
    """Read what .metadata says, or the items of a data file."""
    with source.file.open("rb") as file:
        if _DATA.search(source.path):
            yield from _items(source, file)
            return
        data = file.read(_MAX_METADATA + 1)
    defects, value = [], None
    try:
        value, _ = load(data, classes="inert")
    except Refused as refused:
        kind = {"truncated": "truncated", "malformed": "damaged"}.get(refused.kind, "refused")
        defects.append(Defect(kind, f"its pickle is not read: {refused.message}", refused.offset, refused.offset + 1))
    rows = _chunks(value)
    yield from batch("checkpoint_parameter", rows)
    names = len({row["name"] for row in rows})
    yield from verdict(source, "dcp_metadata", defects, deep=True, content="other", tensors=names)


def _items(source: Source, file: BinaryIO) -> Iterator[Parsed]:
    """The items of a data file; the values of their tensors where asked."""
    deep = is_deep(source)
    defects: list[Defect] = []
    rows: list[dict[str, Any]] = []
    position, held = 0, 0
    while position < source.bytes:
        rest = source.bytes - position
        size = size_of_first(Window(file, position, rest), rest)  # type: ignore[arg-type]
        if size is None:
            kind = "foreign" if position == 0 else "truncated"
            defects.append(Defect(kind, "no whole file of torch.save begins here", position, source.bytes))
            break
        window: BinaryIO = Window(file, position, size)  # type: ignore[assignment]
        found = _torch_file.read(window, size, b"PK\x03\x04")
        found.defects += checksums(window, found) if deep else []
        defects += [replace(d, offset=d.offset + position, end=d.end + position) for d in found.defects]
        rows += _tensors(window, found, position, deep)
        held += sum(record.size for record in found.records.values())
        position += size
    yield from batch("checkpoint_tensor", rows)
    facts = {"content": "weights", "tensors": len(rows), "storages": len(rows), "recovered_bytes": held}
    yield from verdict(source, "dcp", defects, deep=deep, **facts)


def _tensors(window: BinaryIO, found: TorchFile, base: int, deep: bool) -> Iterator[dict[str, Any]]:
    """Rows of an item's tensors; their names stand in .metadata, so the path is the item's offset."""
    for path, leaf in leaf_tensors(found.value) if found.value is not None else []:
        size = leaf.numel * ITEMSIZE[leaf.dtype]
        record = found.records.get(leaf.storage.key)
        row = {
            "path": f"{base}.{path}" if path else str(base), "kind": "other", "dtype": leaf.dtype,
            "shape": list(leaf.shape), "numel": leaf.numel, "storage": leaf.storage.key,
            "storage_numel": leaf.storage.numel, "bytes": size, "device": leaf.storage.device,
            "crc32": record.crc if record else None, "offset": None,
        }  # fmt: skip
        if record and leaf.inside and record.size == leaf.storage.bytes:
            offset = record.offset + leaf.start * ITEMSIZE[leaf.dtype]
            row["offset"] = base + offset
            if deep and leaf.dense and found.little_endian:
                row |= values(window, offset, size, leaf.dtype)
        yield row


def _chunks(value: Any) -> list[dict[str, Any]]:
    """One row per stored piece: its name, its file, where in it."""
    storage = value.attributes().get("storage_data") if isinstance(value, Inert) else None
    if not isinstance(storage, Mapping):
        return []
    rows = []
    for position, (index, info) in enumerate(storage.items()):
        where, what = _attributes(info), _attributes(index)
        file, offset, length = where.get("relative_path"), where.get("offset"), where.get("length")
        if isinstance(file, str) and type(offset) is int and type(length) is int:
            name = str(what.get("fqn", ""))
            place = {"file": file, "offset": offset, "bytes": length}
            rows.append({"kind": "chunk", "position": position, "name": name, **place})
    return rows


def _attributes(value: Any) -> Mapping[str, Any]:
    return value.attributes() if isinstance(value, Inert) else {}
