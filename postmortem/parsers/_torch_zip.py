"""The zip archives that torch.save writes, read by offset and checked byte for byte.

Layout: caffe2/serialize/inline_container.cc of pytorch/pytorch and miniz. Entries are stored, 64-byte aligned
by an extra field "FB" filled with "Z", dated 1980-00-00; local headers carry no size or CRC, a data descriptor
behind the data and the central directory do. Python's zipfile is not used: it refuses archives that were
written without CRCs, and it cannot read what is left of a truncated one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
END64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR = struct.Struct("<4sIQI")
MAX_ENTRIES = 120_000
_MAX_DIRECTORY = 64 << 20
_MAX_NAME = 1024
_TAIL = 66_000  # B; an end record and the longest comment
_UNSET = 0xFFFFFFFF
SERIALIZATION_ID = ".data/serialization_id"


@dataclass(frozen=True, slots=True)
class Record:
    """One entry: its name below the archive's root, and where its bytes are. crc is None where none was written."""

    name: str
    offset: int
    size: int
    crc: int | None


@dataclass(frozen=True, slots=True)
class Defect:
    """What is wrong with a file, and in which bytes.

    kind is "truncated", "damaged", "refused" (hostile or larger than a limit) or "foreign".
    """

    kind: str
    message: str
    offset: int
    end: int


@dataclass
class Archive:
    """The records of one archive in the order they were written, its root folder, and its defects."""

    stem: str = ""
    records: dict[str, Record] = field(default_factory=dict)
    defects: list[Defect] = field(default_factory=list)
    directory: bool = True


class _Bad(Exception):  # noqa: N818 - carries a Defect
    def __init__(self, kind: str, message: str, offset: int, end: int | None = None) -> None:
        super().__init__(message)
        self.defect = Defect(kind, message, offset, offset + 1 if end is None else end)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A central directory entry."""

    name: str
    raw_name: bytes
    made: int
    needed: int
    flags: int
    time: int
    date: int
    attributes: tuple[int, int, int]
    crc: int
    size: int
    header: int  # offset of the local header
    at: int  # offset of this entry in the file


def read(file: BinaryIO, size: int) -> Archive:
    """Read the directory of an archive and check every byte that is not data.

    An archive without a readable directory comes back with `directory` False and no records: `salvage` can
    find them once the sizes are known from the pickle.
    """
    archive = Archive()
    try:
        start, stop, count = _end(file, size)
        entries = sorted(_entries(file, start, stop, count), key=lambda entry: entry.header)
        archive.stem = _stem(entries, size)
    except _Bad as bad:
        archive.defects.append(bad.defect)
        archive.directory = False
        return archive
    zeroed = all(entry.crc == 0 for entry in entries if entry.size)
    position = 0
    for entry in entries:
        try:
            offset, after = _locate(file, entry, position, start)
        except _Bad as bad:
            archive.defects.append(bad.defect)
            if bad.defect.kind == "refused":
                archive.directory = False
                return archive
            position = -1
            continue
        position = after
        name = entry.name[len(archive.stem) + 1 :]
        archive.records[name] = Record(name, offset, entry.size, None if zeroed else entry.crc)
    if position not in (-1, start):
        archive.defects.append(Defect("damaged", "bytes before the directory belong to no entry", position, start))
    archive.defects += _odd_fields(entries)
    archive.defects += _combined(file, archive, start, stop)
    return archive


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _end(file: BinaryIO, size: int) -> tuple[int, int, int]:
    """(start of the central directory, its end, number of entries)."""
    tail_start = max(0, size - _TAIL)
    tail = _at(file, tail_start, _TAIL)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or place + END.size > len(tail):
        raise _Bad("truncated", "the zip directory at its end is missing", size, size)
    _, disk, first, here, count, length, start, comment = END.unpack_from(tail, place)
    position = tail_start + place
    if tail[place + END.size :].strip(b"\0") or comment or disk or first or here != count:
        raise _Bad("damaged", "the end record of the zip directory is damaged", position, size)
    stop = position
    if position >= LOCATOR.size + END64.size and tail[place - LOCATOR.size : place - LOCATOR.size + 4] == b"PK\x06\x07":
        count, length, start, stop = _end64(file, position - LOCATOR.size, (count, length, start))
    if start + length == stop and (length > _MAX_DIRECTORY or count > MAX_ENTRIES):
        raise _Bad("refused", f"the zip directory lists more than {MAX_ENTRIES} entries", position, size)
    if start + length != stop:
        raise _Bad("damaged", "the zip directory is not where its end record says", position, size)
    return start, stop, count


def _end64(file: BinaryIO, locator: int, small: tuple[int, int, int]) -> tuple[int, int, int, int]:
    _, disk, place, disks = LOCATOR.unpack(_at(file, locator, LOCATOR.size))
    raw = _at(file, place, END64.size) if place + END64.size == locator else b""
    if len(raw) < END64.size or disk or disks != 1:
        raise _Bad("damaged", "the zip64 locator is damaged", locator, locator + LOCATOR.size)
    sign, length, _made, _needed, disk, first, here, count, size, start = END64.unpack(raw)
    agree = all(a in (b & _UNSET, b & 0xFFFF, _UNSET, 0xFFFF) for a, b in zip(small, (count, size, start), strict=True))
    versions = (_made, _needed) in ((0x031E, 0x2D), (0x032D, 0x2D))  # what miniz and Python write
    if sign != b"PK\x06\x06" or length != END64.size - 12 or disk or first or here != count or not (agree and versions):
        raise _Bad("damaged", "the zip64 end record is damaged", place, locator)
    return count, size, start, place


def _entries(file: BinaryIO, start: int, stop: int, count: int) -> Iterator[_Entry]:
    raw = _at(file, start, stop - start)
    position = 0
    for _ in range(count):
        if position + CENTRAL.size > len(raw):
            raise _Bad("damaged", "the zip directory ends too early", start + position)
        yield _entry(raw, position, start)
        position += CENTRAL.size + sum(CENTRAL.unpack_from(raw, position)[10:13])
    if position != len(raw):
        raise _Bad("damaged", "the zip directory has bytes that belong to no entry", start + position, stop)


def _entry(raw: bytes, position: int, start: int) -> _Entry:
    fields = CENTRAL.unpack_from(raw, position)
    sign, made, needed, flags, method, time, date, crc, packed, size, names, extras, comments = fields[:13]
    disk, internal, external, header = fields[13:]
    at, end = start + position, start + position + CENTRAL.size
    body = position + CENTRAL.size
    if sign != b"PK\x01\x02" or body + names + extras > len(raw) or names > _MAX_NAME or comments:
        raise _Bad("damaged", "an entry of the zip directory is damaged", at, end)
    name = raw[body : body + names]
    packed, size, header = _wide(raw[body + names : body + names + extras], packed, size, header)
    if method or flags & 1:
        raise _Bad("refused", "an entry is compressed or encrypted, which torch.save never does", at, end)
    if packed != size or (crc and not size):
        raise _Bad("refused", "an entry lies about its size", at, end)
    text = name.decode("utf-8", "replace")
    return _Entry(text, name, made, needed, flags, time, date, (disk, internal, external), crc, size, header, at)


def _wide(extra: bytes, packed: int, size: int, header: int) -> tuple[int, int, int]:
    """The 64-bit values of a zip64 extra field, in place of those that read 0xffffffff."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(length, len(extra) - position - 4) // 8}Q", extra, position + 4))
            values = [next(wide, value) if value == _UNSET else value for value in (size, packed, header)]
            return values[1], values[0], values[2]
        position += 4 + length
    return packed, size, header


def _stem(entries: list[_Entry], size: int) -> str:
    if not entries:
        raise _Bad("foreign", "it is a zip archive without entries", 0, size)
    stem = entries[0].name.partition("/")[0]
    seen: set[str] = set()
    for entry in entries:
        parts = entry.name.split("/")
        if ".." in parts or entry.name.startswith(("/", "\\")) or "\\" in entry.name or "\0" in entry.name:
            raise _Bad("refused", "the name of an entry leads out of its folder", entry.at)
        if parts[0] != stem or len(parts) < 2:
            raise _Bad("damaged", "an entry lies outside of the archive's root folder", entry.at)
        if entry.name in seen:
            raise _Bad("refused", "two entries have the same name", entry.at)
        seen.add(entry.name)
    if f"{stem}/data.pkl" not in seen:
        raise _Bad("foreign", "it is a zip archive without data.pkl, so torch.save did not write it", 0, size)
    return stem


def _locate(file: BinaryIO, entry: _Entry, position: int, directory: int) -> tuple[int, int]:
    """(offset of the data, offset behind the entry) after checking its local header and data descriptor."""
    raw = _at(file, entry.header, LOCAL.size + _MAX_NAME + 256)
    if len(raw) < LOCAL.size or entry.header + entry.size > directory:
        raise _Bad("refused", "an entry claims bytes outside of the file", entry.at)
    sign, needed, flags, method, time, date, crc, packed, size, names, extras = LOCAL.unpack_from(raw)
    offset = entry.header + LOCAL.size + names + extras
    after = offset + entry.size + _descriptor_size(entry)
    if position >= 0 and entry.header < position:
        raise _Bad("refused", "two entries claim the same bytes", entry.at)
    if after > directory:
        raise _Bad("refused", "an entry claims bytes outside of the file", entry.at)
    if position >= 0 and entry.header > position and _plain(entry):
        raise _Bad("damaged", "bytes between two entries belong to none", position, entry.header)
    name = raw[LOCAL.size : LOCAL.size + names]
    same = (flags, time, date, name, method) == (entry.flags, entry.time, entry.date, entry.raw_name, 0)
    sizes = size == packed and size in (0, entry.size, _UNSET) and crc in (0, entry.crc)
    extra = raw[LOCAL.size + names : LOCAL.size + names + extras]
    if (
        sign != b"PK\x03\x04"
        or not same
        or not sizes
        or not _filled(extra, _plain(entry))
        or needed not in (entry.needed, 20, 45)
    ):
        raise _Bad("damaged", "the header of an entry differs from the directory", entry.header, offset)
    _descriptor(file, entry, offset + entry.size)
    return offset, after


def _plain(entry: _Entry) -> bool:
    """Whether miniz wrote it for torch, so that entries follow each other without a gap."""
    return entry.date == 0


def _filled(extra: bytes, plain: bool) -> bool:
    """Whether an extra field is well-formed, and nothing but alignment (or zip64 sizes) where torch wrote it."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        body = extra[position + 4 : position + 4 + length]
        padding = kind == 0x4246 and not body.strip(b"Z")
        if len(body) < length or (plain and not padding and kind != 1):
            return False
        position += 4 + length
    return position == len(extra)


def _descriptor_size(entry: _Entry) -> int:
    return _width(entry.size, entry.header) if entry.flags & 8 else 0


def _width(size: int, header: int) -> int:
    """Bytes of a data descriptor: miniz writes 64-bit sizes for an entry that is large, or begins beyond 4 GiB."""
    return 24 if max(size, header) >= _UNSET else 16


def _descriptor(file: BinaryIO, entry: _Entry, offset: int) -> None:
    length = _descriptor_size(entry)
    if not length:
        return
    raw = _at(file, offset, length)
    wanted = struct.pack("<4sIQQ" if length == 24 else "<4sIII", b"PK\x07\x08", entry.crc, entry.size, entry.size)
    if raw != wanted:
        raise _Bad("damaged", "checksum or size behind an entry differ from the directory", offset, offset + length)


def _odd_fields(entries: list[_Entry]) -> list[Defect]:
    """Directory entries whose fixed fields differ from those of all others."""
    if not _plain(entries[0]) and not _plain(entries[-1]):
        return []
    shapes = [(e.made, e.needed not in (0, 20, 45), e.flags & ~8, e.time, e.date, e.attributes) for e in entries]
    usual = max(set(shapes), key=shapes.count)
    message = "a field of a directory entry differs from all others"
    return [
        Defect("damaged", message, e.at, e.at + CENTRAL.size)
        for e, shape in zip(entries, shapes, strict=True)
        if shape != usual or (not e.flags & 8 and e.size)
    ]


def _combined(file: BinaryIO, archive: Archive, start: int, stop: int) -> list[Defect]:
    """Check the directory's CRCs against the 64-bit hash of them that torch.save keeps in the archive.

    Since torch 2.2: 20 digits of a hash of the names, 20 digits of at::hash_combine over the CRCs in order.
    """
    own = archive.records.get(SERIALIZATION_ID)
    if own is None or own.crc is None or own.size != 40 or archive.defects:
        return []
    text = _at(file, own.offset, own.size)
    value, mask = 0, (1 << 64) - 1
    for record in archive.records.values():
        if record.name != SERIALIZATION_ID and record.size:
            mixed = (record.crc or 0) + 0x9E3779B9 + ((value << 6) & mask) + (value >> 2)
            value ^= mixed & mask
    if text[20:] == b"%020d" % value:
        return []
    message = "the checksums in the zip directory are not those that were written"
    return [Defect("damaged", message, start, stop)]


def salvage(file: BinaryIO, size: int, sizes: Mapping[str, int], archive: Archive) -> None:
    """Find the records of an archive whose directory is lost, walking its local headers.

    Args:
        file: the archive.
        size: its size, B.
        sizes: bytes of each record that the pickle names ("data/0"), and of data.pkl.
        archive: receives the records that are whole, its root folder, and the place where reading ended.

    """
    small = {
        ".format_version": 1,
        ".storage_alignment": 2,
        "byteorder": 6,
        "version": 2,
        SERIALIZATION_ID: 40,
    }
    known = {**small, **sizes}
    position = 0
    while position < size and len(archive.records) < MAX_ENTRIES:
        raw = _at(file, position, LOCAL.size + _MAX_NAME)
        if len(raw) < LOCAL.size or raw[:4] != b"PK\x03\x04":
            return
        fields = LOCAL.unpack_from(raw)
        name = raw[LOCAL.size : LOCAL.size + fields[9]].decode("utf-8", "replace")
        archive.stem, _, name = name.partition("/")
        offset, length = position + LOCAL.size + fields[9] + fields[10], known.get(name)
        if length is None or offset + length > size:
            return
        width = _width(length, position)
        tail = _at(file, offset + length, width) if fields[2] & 8 else b""
        good = tail[:4] == b"PK\x07\x08" and int.from_bytes(tail[8 : 4 + width // 2], "little") == length
        crc = int.from_bytes(tail[4:8], "little") if good else None
        archive.records[name] = Record(name, offset, length, crc)
        position = offset + length + len(tail)


def item_size(file: BinaryIO, start: int) -> int | None:
    """Give the size of an archive that other bytes may follow, from where its last record ends; None if unclear."""
    position = start
    for _ in range(MAX_ENTRIES):
        raw = _at(file, position, CENTRAL.size)
        if raw[:4] == b"PK\x01\x02" and len(raw) == CENTRAL.size:
            position += CENTRAL.size + sum(CENTRAL.unpack(raw)[10:13])
        elif raw[:4] == b"PK\x06\x06":
            position += END64.size
        elif raw[:4] == b"PK\x06\x07":
            position += LOCATOR.size
        else:
            return position + END.size if raw[:4] == b"PK\x05\x06" else None
    return None


def first_record(file: BinaryIO) -> tuple[str, int] | None:
    """(name, offset of the data) of the entry at the start of the file, which torch.save makes data.pkl."""
    raw = _at(file, 0, LOCAL.size + _MAX_NAME)
    if len(raw) < LOCAL.size or raw[:4] != b"PK\x03\x04":
        return None
    fields = LOCAL.unpack_from(raw)
    name = raw[LOCAL.size : LOCAL.size + fields[9]].decode("utf-8", "replace")
    return name, LOCAL.size + fields[9] + fields[10]
