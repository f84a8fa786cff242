"""Bytes of a trace, inflated on the way, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from postmortem.records import Issue

BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's wbits for a gzip header and trailer


class Stream:
    """Iterates over the inflated bytes of a file; what went wrong on the way stands in `issues` afterwards."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.issues: list[Issue] = []
        self.offset = 0

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            for block in self._inflate(file) if packed else iter(lambda: file.read(BLOCK), b""):
                self.offset += len(block)
                yield block

    def _inflate(self, file: BinaryIO) -> Iterator[bytes]:
        """Inflate every member; a damaged one ends the stream, padding after the last one is ignored."""
        data = file.read(BLOCK)
        while data:
            member = isal_zlib.decompressobj(_GZIP_WINDOW)
            try:
                while not member.eof and data:
                    yield member.decompress(data, 4 * BLOCK)
                    data = member.unconsumed_tail or (b"" if member.eof else file.read(BLOCK))
            except isal_zlib.error as error:  # type: ignore[misc]  # its stub says Any
                self._report("malformed", f"The compressed data are damaged ({error}); the rest is left out.")
                return
            if not member.eof:
                self._report("truncated", "The compressed data end too early; the rest is missing.")
                return
            data = (member.unused_data + file.read(BLOCK)).lstrip(b"\0")
            if data and not data.startswith(_GZIP):
                self._report("malformed", "Bytes after the compressed data are no gzip member; they are left out.")
                return

    def _report(self, kind: str, message: str) -> None:
        self.issues.append(Issue(kind, message, offset=self.offset))


def tail(path: Path, size: int) -> bytes:
    """The last `size` inflated bytes of a file."""
    with path.open("rb") as file:
        if file.read(2) != _GZIP:
            file.seek(max(0, path.stat().st_size - size))
            return file.read()
    last = b""
    for block in Stream(path):
        last = (last + block)[-size:]
    return last
