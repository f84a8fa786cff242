"""The bytes of a text file, in bounded blocks that end where a line ends, plain or gzip."""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO

from isal import isal_zlib

from postmortem.records import Issue, Source

BLOCK = 12 << 20
"""Bytes read at a time; also the longest line that is kept in one piece. Larger ones are read faster and need more memory."""
PIECE = 2 << 20
"""Bytes of the pieces of a longer line: each is one text, of which several copies are in memory at a time."""
_GZIP = b"\x1f\x8b"
_DOCKER = b'{"log":"'  # daemon/logger/jsonfilelog/jsonlog/jsonlog.go of moby/moby
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines without the last newline; or, where a line is longer than BLOCK, a piece of it.

    Attributes:
        data: the bytes as they stood, docker's JSON unwrapped.
        line: number of the first line, from 1.
        part: number of pieces of that line which earlier blocks held.
        offset: byte offset of the block in the uncompressed file.
    """

    data: bytes
    line: int
    part: int
    offset: int


def blocks(source: Source) -> Iterator[Block | Issue]:
    """Read a file from its start to its end.

    Raises:
        OSError: the file cannot be opened or read.
    """
    wrapped: bool | None = None
    for block in _whole(source):
        if isinstance(block, Issue):
            yield block
            continue
        wrapped = block.data.startswith(_DOCKER) if wrapped is None else wrapped
        yield replace(block, data=b"\n".join(map(_unwrapped, block.data.split(b"\n")))) if wrapped else block


def _unwrapped(line: bytes) -> bytes:
    """A line of docker's json-file driver as a CRI file has it: time, stream, whether it is full or partial, text."""
    try:
        said = json.loads(line)
        text = said["log"]
        return f"{said['time']} {said['stream']} {'F' if text.endswith(chr(10)) else 'P'} {text.rstrip()}".encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return line


def _whole(source: Source) -> Iterator[Block | Issue]:
    rest, line, part, offset = b"", 1, 0, 0
    for data in _chunks(source):
        if isinstance(data, Issue):
            yield data
            continue
        rest += data
        end = rest.rfind(b"\n") + 1
        if end:
            yield Block(rest[: end - 1], line, part, offset)
            line, part, offset, rest = line + rest.count(b"\n", 0, end), 0, offset + end, rest[end:]
        elif len(rest) >= BLOCK:
            if not part:
                yield Issue("limit", f"A line is longer than {BLOCK} bytes; it is kept in pieces.", line, offset)
            for at in range(0, len(rest), PIECE):
                yield Block(rest[at : at + PIECE], line, part, offset + at)
                part += 1
            offset, rest = offset + len(rest), b""
    if rest:
        yield Block(rest, line, part, offset)
    elif not offset:
        yield Issue("empty", "The file holds no text.")


def _chunks(source: Source) -> Iterator[bytes | Issue]:
    with source.file.open("rb") as file:
        head = file.read(2)
        file.seek(0)
        if head == _GZIP:
            yield from _inflate(file)
        elif head in _UTF16:
            decoder = codecs.getincrementaldecoder(_UTF16[head])("replace")
            while data := file.read(BLOCK):
                yield decoder.decode(data).removeprefix("\ufeff").encode("utf-8", "replace")
            yield decoder.decode(b"", final=True).encode("utf-8", "replace")  # half a character at the end
        else:
            while data := file.read(BLOCK):
                yield data


def _inflate(file: IO[bytes]) -> Iterator[bytes | Issue]:
    """Members one after another; what can be inflated before a defect is kept."""
    inflater = isal_zlib.decompressobj(wbits=31)
    data = b""
    try:
        while data := data or file.read(BLOCK):
            while data and not inflater.eof:  # never more than a block at once, however well it was packed
                yield inflater.decompress(data, BLOCK)
                data = inflater.unconsumed_tail
            if inflater.eof:
                data = inflater.unused_data or file.read(BLOCK)
                if not data.strip(b"\0"):
                    return
                if not data.startswith(_GZIP):
                    yield Issue("malformed", "Bytes that are no gzip data follow the gzip data; they were left out.")
                    return
                inflater = isal_zlib.decompressobj(wbits=31)
    except (zlib.error, EOFError, isal_zlib.IsalError) as error:  # type: ignore[misc]  # isal is not typed
        yield Issue("malformed", f"The gzip data is damaged ({error}); the rest of the file was left out.")
        return
    if not inflater.eof:
        yield Issue("truncated", "The gzip data ends too early; the rest of the file is missing.")
