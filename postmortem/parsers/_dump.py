"""Bytes of a dump -> its top-level dictionary, without resolving any class a pickle names."""

from __future__ import annotations

import gzip
import io
import pickle
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Never

import msgspec

MAX_BYTES = 1 << 29
"""Larger dumps are refused: 2,000 operations with stacks take 1 to 3 MB, 20,000 ten times that."""

_TRIES = 200
"""How many places from the end of a cut dump are tried before it is given up."""


class Damaged(Exception):  # noqa: N818 - says what the dump is
    """A dump of which nothing can be used."""

    def __init__(self, message: str, hostile: bool = False) -> None:
        super().__init__(message)
        self.hostile = hostile


class _Inert(pickle.Unpickler):
    """Loads dictionaries, lists, texts and numbers only."""

    def find_class(self, module: str, name: str) -> Never:
        raise Damaged(f"The pickle was refused because it names {module}.{name}", hostile=True)

    def persistent_load(self, pid: Any) -> Never:
        raise Damaged(
            f"The pickle was refused because it refers to an outside object {pid!r}"[:200], hostile=True
        )


def load(file: Path) -> tuple[dict[str, Any], str]:
    """Return the dump and a description of its damage, empty where it is whole.

    Raises:
        Damaged: nothing of it can be used.
        OSError: the file cannot be read.
    """
    data = _read(file)
    if data.lstrip()[:1] == b"{":
        dump, damage = _repaired(data, msgspec.json.decode, b"},", (b"}]}",))
    else:
        dump, damage = _repaired(data, _unpickle, b"u}", (b"ueu.", b"ueueu."))
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
        raise Damaged(f"The dump holds more than {MAX_BYTES} B")
    return bytes(data)


def _unpickle(data: bytes) -> Any:
    return _Inert(io.BytesIO(data)).load()


def _repaired(
    data: bytes, decode: Callable[[bytes], Any], border: bytes, closings: Sequence[bytes]
) -> tuple[Any, str]:
    """Decode; where the end is missing, cut at the last whole entry and close what is open.

    `border` is the end of one entry and the begin of the next. In a pickle an entry is a dictionary filled by
    SETITEMS (`u`) inside a list filled by one APPENDS (`e`); stacks are such lists inside an entry.
    """
    try:
        return decode(data), ""
    except Damaged:
        raise
    except Exception as error:  # noqa: BLE001 - unpickling raises anything; all of it means damage
        first = f"{type(error).__name__}: {error}"[:200]
    end = len(data)
    for _ in range(_TRIES):
        end = data.rfind(border, 0, end)
        if end < 0:
            break
        for closing in closings:
            try:
                dump = decode(data[:end] + closing)
            except Exception:  # noqa: BLE001, S112 - the next place is tried
                continue
            if isinstance(dump, dict) and isinstance(dump.get("entries"), list):
                return dump, f"The dump is cut off or damaged ({first})"
    raise Damaged(f"The dump is damaged ({first})")
