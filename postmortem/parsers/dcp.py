"""Checkpoints of torch.distributed.checkpoint: the .metadata file, and the .distcp files it speaks of.

Classes: torch/distributed/checkpoint/metadata.py and filesystem.py of pytorch/pytorch. Each item of a .distcp
file is a file of torch.save of its own, at the offset and with the length that .metadata states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from postmortem.parsers._checkpoint_file import batch, verdict
from postmortem.parsers._torch_zip import Defect
from postmortem.parsers._unpickle import Inert, Refused, load
from postmortem.records import Parsed, Source

FORMAT = "dcp"
DOC = "torch.distributed.checkpoint: .metadata and __*_*.distcp."

_DATA = re.compile(r"(^|/)__\d+_\d+\.distcp$")
_MAX_METADATA = 64 << 20
_ZIP = (b"PK\x03\x04", b"\x80\x02")


def sniff(path: str, head: bytes) -> bool:
    """Whether it is named like one."""
    return bool(_DATA.search(path)) or (path.rsplit("/", 1)[-1] == ".metadata" and head[:1] == b"\x80")


def parse(source: Source) -> Iterator[Parsed]:
    """Read what .metadata says; of a data file only how it begins."""
    with source.file.open("rb") as file:
        if _DATA.search(source.path):
            good = file.read(4).startswith(_ZIP)
            defects = [] if good else [Defect("foreign", "its first bytes are not those of torch.save", 0, 4)]
            yield from verdict(source, "dcp", defects, deep=False, content="weights")
            return
        data = file.read(_MAX_METADATA + 1)
    defects, value = [], None
    try:
        value, _ = load(data, classes="inert")
    except Refused as refused:
        kind = {"truncated": "truncated", "malformed": "damaged"}.get(refused.kind, "refused")
        defects.append(
            Defect(kind, f"its pickle is not read: {refused.message}", refused.offset, refused.offset + 1)
        )
    rows = _chunks(value)
    yield from batch("checkpoint_parameter", rows)
    names = len({row["name"] for row in rows})
    yield from verdict(source, "dcp_metadata", defects, deep=True, content="other", tensors=names)


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
