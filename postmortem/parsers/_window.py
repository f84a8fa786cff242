"""A part of a file that reads like a file of its own."""

from __future__ import annotations

import io
from typing import BinaryIO


class Window(io.RawIOBase):
    """Bytes `start` to `start + size` of a file; offsets count from `start`."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size
        self._place = 0

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def readable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Offset in the window."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset in the window."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill `buffer` as far as the window goes."""
        wanted = max(0, min(len(buffer), self._size - self._place))
        self._file.seek(self._start + self._place)
        got: int = self._file.readinto(memoryview(buffer)[:wanted])  # type: ignore[attr-defined]
        self._place += got
        return got
