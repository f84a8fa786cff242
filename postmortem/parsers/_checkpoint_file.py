"""What every parser of checkpoint files says at its end: the row of table checkpoint_file, and its issues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from postmortem.parsers import _values
from postmortem.parsers._checkpoint_rows import leaf_tensors
from postmortem.parsers._torch_file import TorchFile
from postmortem.parsers._torch_zip import Defect
from postmortem.records import Batch, Issue, Parsed, Source

SMALL = 16 << 20  # B; files up to this size are read whole without being asked
_WORST = {"refused": 0, "foreign": 1, "truncated": 2, "damaged": 3}
_ISSUES = {"refused": "hostile", "foreign": "malformed", "truncated": "truncated", "damaged": "malformed"}


def is_deep(source: Source) -> bool:
    """Whether the values are read: asked for, or the file is small."""
    return source.options.get("checkpoints") == "deep" or source.bytes <= SMALL


def batch(table: str, found: Sequence[Mapping[str, Any]]) -> Iterator[Batch]:
    """Rows as dicts -> one Batch, or nothing."""
    if found:
        names = list(dict.fromkeys(name for row in found for name in row))
        yield Batch(table, {name: [row.get(name) for row in found] for name in names})


def values(file: BinaryIO, offset: int, size: int, dtype: str) -> dict[str, Any]:
    """Read elements and give the columns of checkpoint_tensor that come from them."""
    if dtype not in _values.KNOWN:
        return {"content": _values.statistics(file, offset, size, "uint8").content}
    s = _values.statistics(file, offset, size, dtype)
    found = {"content": s.content, "nan": s.nan, "inf": s.inf, "zeros": s.zeros}
    if s.finite:
        found |= {"min": s.min, "max": s.max, "mean": s.mean, "l2": s.l2}
    return found


def checksums(file: BinaryIO, found: TorchFile) -> list[Defect]:
    """Compare every storage with the checksum that was written."""
    users: dict[str, str] = {}
    for path, leaf in leaf_tensors(found.value) if found.value is not None else []:
        users.setdefault(leaf.storage.key, path)
    defects = []
    for key, record in found.records.items():
        if record.crc is not None and _values.crc32(file, record.offset, record.size) != record.crc:
            where = f"storage {key[:40]} ({users[key]})" if key in users else f"storage {key[:40]}"
            message = f"{where} does not have the checksum that was written"
            defects.append(Defect("damaged", message, record.offset, record.offset + record.size))
    return defects


def verdict(source: Source, container: str, defects: Sequence[Defect], *, deep: bool, **facts: Any) -> Iterator[Parsed]:
    """One issue per defect, and the file's row; `facts` are further columns."""
    ranked = sorted(defects, key=lambda defect: _WORST[defect.kind])
    for defect in ranked:
        message = f"This checkpoint file is {defect.kind}: {defect.message}."
        yield Issue(_ISSUES[defect.kind], message, offset=defect.offset)
    worst = ranked[0] if ranked else None
    row = {
        "container": container, "status": worst.kind if worst else "complete",
        "checked": "values" if deep else "structure", "defect": worst.message if worst else None,
        "offset": worst.offset if worst else None, "end": worst.end if worst else None, "bytes": source.bytes,
        "modified": source.file.stat().st_mtime_ns, **facts,
    }  # fmt: skip
    yield from batch("checkpoint_file", [row])
