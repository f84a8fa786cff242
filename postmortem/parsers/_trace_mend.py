"""One damaged JSON event -> readings that may be what its writer meant.

Every defect here was seen in traces: control characters and bad UTF-8 (pytorch/pytorch#136180, #130622), bare N/A
and non-finite numbers (pytorch/kineto#110), empty values and commas too many (pytorch/kineto#173, #205), backslashes of
Windows paths (pytorch/kineto#336), quotes in names (pytorch/pytorch#113001, #146900).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LIMIT = 1 << 18  # B; a longer event is not mended
_CONTROL = re.compile(rb"[\x00-\x1f]")
_WORD = re.compile(
    rb"(?<=[:\[,])(\s*)([-+]?(?:nan(?:\([\w]*\))?|inf(?:inity)?|N/A|none|undefined))(?=\s*[,}\]])",
    re.IGNORECASE,
)
_NOTHING = re.compile(rb":(\s*)(?=[,}])")
_COMMA = re.compile(rb",(?=\s*[,}\]])")
_SURROGATE = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
# What follows the quote that ends a key, a value of an object, an element of an array.
_AFTER_KEY = re.compile(rb"\s*:")
_AFTER_VALUE = re.compile(rb'\s*(?:\}|,\s*"(?:[^"\\]|\\.)*"\s*:|,\s*\}|\Z)')
_AFTER_ELEMENT = re.compile(rb'\s*(?:\]|,\s*["\[{\d\-tfn])')


def attempts(piece: bytes) -> Iterator[bytes]:
    """Readings of a damaged event, each mending more than the one before."""
    if len(piece) > _LIMIT:
        return
    text = _CONTROL.sub(b" ", piece.decode("utf-8", "replace").encode())
    text = _SURROGATE.sub(lambda m: m[1] or rb"\ufffd", text)
    yield text
    text = _NOTHING.sub(rb":\1null", _COMMA.sub(b"", _WORD.sub(rb'\1"\2"', text)))
    yield text
    escaped = _ESCAPE.sub(lambda m: m[0] if len(m[0]) > 1 else rb"\\", text)
    yield escaped
    yield quoted(escaped)
    # A path that ends in a backslash eats the quote after it: no backslash is an escape then.
    yield quoted(text.replace(b"\\", b"\\\\"))


def quoted(text: bytes) -> bytes:
    """Escape the quotes that do not end a string, judged by what follows them."""
    out = bytearray()
    nest = bytearray()  # open brackets
    key = False  # whether the next string is a key
    at = 0
    while at < len(text):
        char = text[at : at + 1]
        if char == b'"':
            after = _AFTER_KEY if key else _AFTER_ELEMENT if nest[-1:] == b"[" else _AFTER_VALUE
            end = _string_end(text, at + 1, after)
            out += b'"' + _escape(text[at + 1 : end]) + b'"'
            at = end + 1
            key = False
            continue
        if char in b"{[":
            nest += char
        elif char in b"}]":
            del nest[-1:]
        if char in b"{,":
            key = nest[-1:] == b"{"
        out += char
        at += 1
    return bytes(out)


def _string_end(text: bytes, start: int, after: re.Pattern[bytes]) -> int:
    """Place of the quote that ends a string whose content begins at `start`."""
    at = start
    while True:
        at = text.find(b'"', at)
        if at < 0:
            return len(text)
        if not _is_escaped(text, at) and after.match(text, at + 1):
            return at
        at += 1


def _is_escaped(text: bytes, at: int) -> bool:
    slashes = 0
    while at > slashes and text[at - slashes - 1] == ord("\\"):
        slashes += 1
    return slashes % 2 == 1


def _escape(content: bytes) -> bytes:
    return re.sub(rb'(\\.)|"', lambda m: m[1] or rb"\"", content)
