"""Bytes of a dump -> its top-level dictionary, without resolving any class a pickle names."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, Never

import msgspec

from postmortem.parsers import _unpickle

MAX_BYTES = 1 << 28
"""Larger dumps are refused: 2,000 operations with stacks take 1 to 3 MB, 20,000 ten times that."""

_MAX_MEMORY = 512 << 20
_TRIES = 50
"""How many places from the end of a cut JSON dump are tried before it is given up."""


# Opcodes of fixed length that c10's pickler uses for plain data (torch/csrc/jit/serialization/pickler.cpp), with the
# operands that pickle.Unpickler handles at bounded cost: memo numbers below 2^22, integers up to 8 bytes, pairs that
# are not nested and not memoized. Anything else takes the slow way, where it is read or refused.
_FIXED = re.compile(
    rb"(?:[}\](Neua\x88\x89]|[hqK].|M..|[Jj]....|G........|r..[\x00-\x3f]\x00|\x80[\x02-\x05]"
    rb"|\x86(?![qr\x94])(?!h.\x86)(?!j....\x86)"
    rb"|\x8a(?:\x00|\x01.|\x02..|\x03...|\x04....|\x05.....|\x06......|\x07.......|\x08........))*+",
    re.DOTALL,
)


class Damaged(Exception):  # noqa: N818 - says what the dump is
    """A dump of which nothing can be used; `kind` is one of table issue."""

    def __init__(self, message: str, kind: str = "malformed") -> None:
        super().__init__(message)
        self.kind = kind


def load(file: Path) -> tuple[dict[str, Any], str]:
    """Return the dump and a description of its damage, empty where it is whole.

    Raises:
        Damaged: nothing of it can be used.
        OSError: the file cannot be read.
    """
    data = _read(file)
    dump, damage = _json(data) if data.lstrip()[:1] == b"{" else _pickle(data)
    if isinstance(dump, list):  # the first dumps were the bare list of entries
        dump = {"entries": dump}
    if not isinstance(dump, dict):
        raise Damaged("The file holds no dictionary, so it is no Flight Recorder dump")
    return dump, damage


def _read(file: Path) -> bytes:
    with file.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(file) if packed else file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Damaged(f"The compressed dump is damaged ({error})") from error
    if len(data) > MAX_BYTES:
        raise Damaged(f"The dump holds more than {MAX_BYTES} B", "limit")
    return bytes(data)


def _is_plain(data: bytes) -> bool:
    """Whether a pickle is whole and made of `_FIXED` opcodes and texts only, so that it is cheap and safe to load."""
    place, pair = 0, -1
    while True:
        found = _FIXED.match(data, place)
        place = found.end() if found else place
        opcode = data[place : place + 1]
        if opcode == b"." and place + 1 == len(data):
            return True
        if opcode != b"X":  # BINUNICODE is the one opcode of variable length
            return False
        pair = place if data[place - 1 : place] == b"\x86" else -1
        place += 5 + int.from_bytes(data[place + 1 : place + 5], "little")
        after = place + {0x71: 2, 0x72: 5}.get(data[place] if place < len(data) else 0, 0)
        if pair >= 0 and data[after : after + 1] == b"\x86":
            return False


class _NoClasses(pickle.Unpickler):
    """The fast reader; `_is_plain` has let no class and no persistent id through, and this is the second lock."""

    def find_class(self, module: str, name: str) -> Never:
        raise Damaged(f"The dump names {module}.{name}", "hostile")

    def persistent_load(self, pid: Any) -> Never:
        raise Damaged(f"The dump refers to something outside, {type(pid).__name__}", "hostile")


def _pickle(data: bytes) -> tuple[Any, str]:
    if _is_plain(data):
        try:
            return _NoClasses(io.BytesIO(data)).load(), ""
        except (pickle.UnpicklingError, EOFError, TypeError, ValueError, KeyError, IndexError, AttributeError):
            pass  # the slow way says where it is damaged
    try:
        return _unpickle.load(data, max_items=MAX_BYTES, max_bytes=MAX_BYTES, max_memory=_MAX_MEMORY)[0], ""
    except _unpickle.Refused as error:
        rest = _rest(error.left) if error.kind in {"truncated", "malformed"} else {}
        if not rest:
            raise Damaged(f"The dump was not read: {error}", error.kind) from error
        return rest, f"The dump is cut off or damaged at byte {error.offset} ({error})"


def _rest(values: list[Any]) -> dict[str, Any]:
    """The dump as far as it was read: its keys and values lie on the pickle's stack in order, then its entries."""
    rest: dict[str, Any] = {}
    for key, value in pairwise(values):
        if isinstance(key, str) and isinstance(value, dict | list):
            rest.setdefault(key, value)
    listed = rest.get("entries")
    entries = [*listed] if isinstance(listed, list) else []
    entries += [value for value in values if isinstance(value, dict) and "record_id" in value]
    return {**rest, "entries": entries} if entries or "pg_status" in rest else {}


def _json(data: bytes) -> tuple[Any, str]:
    try:
        return msgspec.json.decode(data), ""
    except (msgspec.DecodeError, RecursionError) as error:
        first = str(error)[:200]
    end = len(data)
    for _ in range(_TRIES):
        end = data.rfind(b"},", 0, end)
        if end < 0:
            break
        try:
            dump = msgspec.json.decode(data[:end] + b"}]}")
        except (msgspec.DecodeError, RecursionError):
            continue
        if isinstance(dump, dict) and isinstance(dump.get("entries"), list):
            return dump, f"The dump is cut off or damaged ({first})"
    raise Damaged(f"The dump is damaged ({first})")
