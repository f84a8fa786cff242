"""Checkpoints of torch.distributed.checkpoint: the .metadata file, and the .distcp files it speaks of.

Classes: torch/distributed/checkpoint/metadata.py and filesystem.py of pytorch/pytorch. Each item of a .distcp
file is a file of torch.save of its own, at the offset and with the length that .metadata states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

from postmortem.parsers import _dcp_metadata, _torch_file
from postmortem.parsers._checkpoint_file import batch, checksums, is_deep, values, verdict
from postmortem.parsers._checkpoint_rows import as_json, leaf_tensors, walk
from postmortem.parsers._tensors import ITEMSIZE, Tensor
from postmortem.parsers._torch_file import TorchFile, size_of_first
from postmortem.parsers._torch_zip import Defect
from postmortem.parsers._unpickle import Refused, load
from postmortem.parsers._window import Window
from postmortem.records import Issue, Parsed, Source

FORMAT = "dcp"
DOC = "torch.distributed.checkpoint: .metadata and __*_*.distcp."

_DATA = re.compile(r"(^|/)__\d+_\d+\.distcp$")
_MAX_METADATA = 64 << 20
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878; torch/distributed/checkpoint/_extension.py of pytorch/pytorch


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
    defects, rows = [], []
    try:
        rows = _dcp_metadata.pieces(load(data, classes="inert", expected=_dcp_metadata.PIECES)[0])
    except Refused as refused:
        message = f"its pickle is not read: {refused.message}"
        if refused.kind == "limit":  # that of a thousand ranks is no sign of damage
            yield Issue("limit", f"Which tensors the data files hold is not known, because {message}.")
        else:
            kind = {"truncated": "truncated", "malformed": "damaged"}.get(refused.kind, "refused")
            defects.append(Defect(kind, message, refused.offset, refused.offset + 1))
    yield from batch("checkpoint_parameter", rows)
    names = len({row["name"] for row in rows})
    yield from verdict(source, "dcp_metadata", defects, deep=True, content="other", tensors=names)


def _items(source: Source, file: BinaryIO) -> Iterator[Parsed]:
    """The items of a data file; the values of their tensors where asked."""
    deep = is_deep(source)
    defects: list[Defect] = []
    tensors, held, position = 0, 0, 0
    while position < source.bytes:
        rest = source.bytes - position
        size = size_of_first(Window(file, position, rest), rest)  # type: ignore[arg-type]
        if size is None:
            file.seek(position)
            if file.read(4) == _ZSTD:
                yield Issue("limit", "Its items are compressed by an extension, which is not read.", offset=position)
            else:
                kind = "foreign" if position == 0 else "truncated"
                defects.append(Defect(kind, "no whole file of torch.save begins here", position, source.bytes))
            break
        window: BinaryIO = Window(file, position, size)  # type: ignore[assignment]
        found = _torch_file.read(window, size, b"PK\x03\x04")
        found.defects += checksums(window, found) if deep else []
        defects += [replace(d, offset=d.offset + position, end=d.end + position) for d in found.defects]
        rows = list(_tensors(window, found, position, deep))
        yield from batch("checkpoint_tensor", rows)
        yield from batch("checkpoint_state", list(_states(found, position)))
        tensors += len(rows)
        held += sum(record.size for record in found.records.values())
        position += size
    facts = {"content": "weights", "tensors": tensors, "storages": tensors, "recovered_bytes": held}
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


def _states(found: TorchFile, base: int) -> Iterator[dict[str, Any]]:
    """Settings in an item; like its tensors they have their name in .metadata only."""
    for path, leaf in walk(found.value) if found.value is not None else []:
        if not isinstance(leaf, Tensor):
            yield {"key": f"{base}.{path}" if path else str(base), "value": as_json(path, leaf)}
