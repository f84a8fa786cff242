"""Files of torch.save, zip or legacy: the structure that was pickled, and where each storage's bytes are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from postmortem.parsers import _torch_zip, _values
from postmortem.parsers._checkpoint_rows import walk
from postmortem.parsers._tensors import Storage, storage
from postmortem.parsers._torch_zip import SERIALIZATION_ID, Archive, Defect, Record
from postmortem.parsers._unpickle import MAX_BYTES, Refused, load

# pickle of the magic number 0x1950a86a20f9469cfc6c (torch/serialization.py of pytorch/pytorch), protocol 2
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_WINDOW = 1 << 20


@dataclass
class TorchFile:
    """One file: container is "zip" or "legacy"; records holds the storages by key; value is None where refused."""

    container: str
    value: Any = None
    storages: dict[str, Storage] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    others: tuple[Record, ...] = ()
    defects: list[Defect] = field(default_factory=list)
    stem: str | None = None
    identity: str | None = None
    pickle: Record | None = None
    little_endian: bool = True


def read(file: BinaryIO, size: int, head: bytes) -> TorchFile:
    """Read the structure of a file whose first bytes are `head`; every fault of it becomes a defect."""
    found = _zip(file, size) if head[:4] == b"PK\x03\x04" else _legacy(file, size)
    found.defects += _storages_fit(found)
    try:
        for _ in walk(found.value):
            pass
    except Refused as refused:
        found.defects.append(Defect("refused", refused.message, 0, size))
        found.value = None
    return found


def _zip(file: BinaryIO, size: int) -> TorchFile:
    archive = _torch_zip.read(file, size)
    found = TorchFile("zip", defects=archive.defects)
    if any(defect.kind in ("refused", "foreign") for defect in archive.defects):
        found.stem = archive.stem or None
        return found
    if archive.directory and "data.pkl" in archive.records:
        record = archive.records["data.pkl"]
        _unpickle(file, found, record.offset, record.size)
    else:
        _salvage(file, size, found, archive)
    found.stem = archive.stem or None
    _sort_out(file, found, archive)
    return found


def _unpickle(file: BinaryIO, found: TorchFile, offset: int, size: int | None) -> int:
    """Read the pickle at `offset`, `size` bytes long or as long as it says; give the offset behind it."""

    def persistent(identity: Any) -> Storage:
        held = storage(identity)
        found.storages[held.key] = held
        return held

    window = min(size, MAX_BYTES) if size is not None else _WINDOW
    while True:
        file.seek(offset)
        data = file.read(window)
        try:
            found.value, end = load(data, classes="inert", persistent=persistent)
        except Refused as refused:
            if refused.kind == "truncated" and size is None and len(data) == window and window < MAX_BYTES:
                window *= 8
                continue
            kind = {"malformed": "damaged", "truncated": "damaged"}.get(refused.kind, "refused")
            if size is None and refused.kind == "truncated":
                kind = "truncated"
            where = offset + refused.offset
            found.defects.append(Defect(kind, f"its pickle is not read: {refused.message}", where, where + 1))
            return offset + len(data)
        return offset + end


def _salvage(file: BinaryIO, size: int, found: TorchFile, archive: Archive) -> None:
    first = _torch_zip.first_record(file)
    if first is None or not first[0].endswith("/data.pkl"):
        return
    end = _unpickle(file, found, first[1], None)
    sizes = {f"data/{held.key}": held.bytes for held in found.storages.values()} | {"data.pkl": end - first[1]}
    _torch_zip.salvage(file, size, sizes, archive)


def size_of_first(file: BinaryIO, size: int) -> int | None:
    """Size of the zip file of torch.save at the start of `file`, where others may follow it; None if unclear."""
    found, archive = TorchFile("zip"), Archive()
    _salvage(file, size, found, archive)
    if not archive.records:
        return None
    last = max(archive.records.values(), key=lambda record: record.offset)
    end = last.offset + last.size
    return next((s for tail in (0, 16, 24) if (s := _torch_zip.item_size(file, end + tail)) is not None), None)


def _sort_out(file: BinaryIO, found: TorchFile, archive: Archive) -> None:
    records = archive.records
    found.pickle = records.get("data.pkl")
    found.records = {name[5:]: record for name, record in records.items() if name.startswith("data/")}
    found.others = tuple(r for name, r in records.items() if not name.startswith("data/"))
    found.identity = _text(file, records.get(SERIALIZATION_ID))
    found.little_endian = _text(file, records.get("byteorder")) != "big"
    found.defects += [
        Defect("damaged", f"{record.name} does not have the checksum that was written", record.offset, record.offset + record.size)
        for record in found.others
        if record.crc is not None and record.size <= MAX_BYTES
        and _values.crc32(file, record.offset, record.size) != record.crc
    ]  # fmt: skip


def _text(file: BinaryIO, record: Record | None) -> str | None:
    if record is None or record.size > 64:
        return None
    file.seek(record.offset)
    return file.read(record.size).decode("ascii", "replace")


def _legacy(file: BinaryIO, size: int) -> TorchFile:
    """Four pickles, then per storage its number of elements (int64) and its bytes."""
    found = TorchFile("legacy")
    position = 0
    values: list[Any] = []
    for _ in range(5):  # magic, protocol version, system info, the object, the keys
        position = _unpickle(file, found, position, None)
        if found.defects:
            return found
        values.append(found.value)
    found.value, keys = values[3], values[4]
    info = values[2] if isinstance(values[2], Mapping) else {}
    found.little_endian = info.get("little_endian") is not False
    if not isinstance(keys, list) or not all(str(key) in found.storages for key in keys):
        found.defects.append(Defect("damaged", "its list of storages does not fit its structure", position, size))
        return found
    for key in map(str, keys):
        position = _legacy_storage(file, size, found, key, position)
        if found.defects:
            return found
    if position != size:
        found.defects.append(Defect("damaged", "it has bytes behind the last storage", position, size))
    return found


def _legacy_storage(file: BinaryIO, size: int, found: TorchFile, key: str, position: int) -> int:
    held = found.storages[key]
    file.seek(position)
    count = file.read(8)
    if len(count) < 8 or position + 8 + held.bytes > size:
        found.defects.append(Defect("truncated", f"it ends inside storage {key[:40]}", size, size))
    elif int.from_bytes(count, "little") != held.numel:
        message = f"the size of storage {key[:40]} is not the one its structure states"
        found.defects.append(Defect("damaged", message, position, position + 8))
    else:
        found.records[key] = Record(f"data/{key}", position + 8, held.bytes, None)
    return position + 8 + held.bytes


def _storages_fit(found: TorchFile) -> list[Defect]:
    """Storages that the structure names and the file does not hold, or holds with another size."""
    if found.value is None or any(defect.kind in ("truncated", "refused") for defect in found.defects):
        return []
    defects = []
    for key, held in found.storages.items():
        record = found.records.get(key)
        if record is None:
            defects.append(Defect("damaged", f"storage {key[:40]} is missing", 0, 0))
        elif record.size != held.bytes:
            message = f"storage {key[:40]} has {record.size} bytes where its structure states {held.bytes}"
            defects.append(Defect("damaged", message, record.offset, record.offset + record.size))
    return defects
