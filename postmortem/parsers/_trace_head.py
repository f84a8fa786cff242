"""What a trace says about itself outside its events: rank, host, clock base."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from postmortem.parsers._names import rank_from_name

# worker0_step_12 (PARAM); names with "rank" in them are discovery's
_WORKER = re.compile(r"^worker[-_ ]?(\d+)(?!\d)")
# torch/profiler/profiler.py, tensorboard_trace_handler: {host}_{pid}.{time}.pt.trace.json[.gz]
_HANDLER = re.compile(r"^(?P<host>.+)_(?P<pid>\d+)\..*\.pt\.trace\.json")
_KEYS = (
    "baseTimeNanoseconds",
    "distributedInfo",
    "host_name",
    "displayTimeUnit",
    "traceName",
    "schemaVersion",
)


class Identity(NamedTuple):
    """Whose trace it is, and how that is known."""

    rank: int | None
    rank_origin: str | None
    world_size: int | None
    backend: str | None
    host: str | None


def metadata(head: bytes, trailer: bytes) -> dict[str, Any]:
    """Every top-level key but traceEvents; only the known ones, as far as they can be read, where the text is damaged."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return {}
    text = head.lstrip(b"\xef\xbb\xbf")[:-1] + b"0" + trailer
    for candidate in (text, text.rstrip(b" \t\r\n,") + b"}"):
        try:
            found = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, RecursionError):
            continue
        if isinstance(found, dict):
            found.pop("traceEvents", None)
            return found
    return {key: value for key in _KEYS if (value := find(text, key)) is not None}


def find(text: bytes, key: str) -> Any:
    """The value of the last `"key":` in a text that may be damaged, or None."""
    if b'"%s"' % key.encode() not in text:
        return None
    words = text.decode("utf-8", "replace")
    for match in reversed(list(re.finditer(rf'(?<!\\)"{key}"\s*:\s*', words))):
        try:
            return json.JSONDecoder(strict=False).raw_decode(words, match.end())[0]
        except (ValueError, RecursionError):
            continue
    return None


def identify(path: str, stated: Mapping[str, Any], pid: int | None, rank: int | None) -> Identity:
    """Rank and host from metadata, else from the file's name (`rank`: what discovery found there)."""
    info = stated.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    name = PurePosixPath(path).name
    handler = _HANDLER.match(name)
    host = stated.get("host_name")
    if not isinstance(host, str):
        host = handler["host"] if handler and pid is not None and int(handler["pid"]) == pid else None
    number, origin = _number(info.get("rank")), "distributedInfo"
    if number is None:
        number, origin = rank_from_name(path)[0] if rank is None else rank, "file_name"
        if number is None and (named := _WORKER.search(name)):
            number = int(named[1])
    backend = info.get("backend")
    return Identity(
        number,
        origin if number is not None else None,
        _number(info.get("world_size")),
        backend if isinstance(backend, str) else None,
        host,
    )


def base_time(stated: Mapping[str, Any]) -> int | None:
    """Return baseTimeNanoseconds as ns since the epoch, or None."""
    value = stated.get("baseTimeNanoseconds")
    return value if isinstance(value, int) and 0 < value < 4 * 10**18 else None


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None
