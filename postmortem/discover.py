"""A run folder -> Sources: which files there are, who reads each, and whose rank its name states."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from postmortem import resources
from postmortem.errors import InputError
from postmortem.parsers import parsers
from postmortem.parsers._names import rank_from_name
from postmortem.records import Source

HEAD = 64 * 1024
_SKIPPED_FOLDERS = {".postmortem", ".git", "__pycache__"}
_GZIP = b"\x1f\x8b"


def discover(run_id: str, folder: Path, options: Mapping[str, str] | None = None) -> list[Source]:
    """List every file below `folder`, in a stable order, each with the parser that claims it.

    A file that no parser claims has the format "unknown"; one that must not be opened (a link that leaves the
    folder, a socket, a device) has the format "refused"; an unreadable one "unreadable"; an empty one "empty".

    Raises:
        InputError: no such folder, or nothing in it.

    """
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", "Give the folder that holds a run's logs and traces.")
    found = [_source(run_id, folder, path, options or {}) for path in _walk(folder)]
    found = [source for source in found if source.format != "linked"]  # a folder is read where it lies
    if not found:
        raise InputError(f"The folder {folder} is empty.", "Give the folder that holds a run's logs and traces.")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder, onerror=None):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        yield from (Path(parent) / name for name in sorted([*files, *links]))


def _source(run_id: str, folder: Path, file: Path, options: Mapping[str, str]) -> Source:
    path = file.relative_to(folder).as_posix()
    rank, local_rank, host = rank_from_name(path)
    given = _given_rank(path, options.get("rank_map", ""))
    kind, head, size, mark = _look(folder, file)
    if kind == "file":
        kind = "empty" if not size else _claim(path, inflate(head))
    digest = hashlib.blake2b(
        f"{_fingerprint()}|{path}|{size}|{mark}|{sorted(options.items())}".encode() + head, digest_size=16
    ).hexdigest()
    if given is not None:
        rank, local_rank = given, None
    return Source(run_id, path, file, kind, size, digest, rank, local_rank, host, given is not None, options)


def _given_rank(path: str, rank_map: str) -> int | None:
    """The rank that the first fitting pattern of a rank map ({"pattern": rank} as JSON) gives a file."""
    patterns: dict[str, int] = json.loads(rank_map) if rank_map else {}
    return next((rank for pattern, rank in patterns.items() if fnmatch.fnmatchcase(path, pattern)), None)


def _look(folder: Path, file: Path) -> tuple[str, bytes, int, int]:
    """(kind, first bytes, size, modification time in ns); kind is file, refused or unreadable."""
    try:
        if file.is_symlink() and not file.resolve().is_relative_to(folder.resolve()):
            return "refused", b"", 0, 0
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            return ("linked" if stat.S_ISDIR(status.st_mode) else "refused"), b"", 0, 0
        with file.open("rb") as stream:
            return "file", stream.read(HEAD), status.st_size, status.st_mtime_ns
    except OSError:
        return "unreadable", b"", 0, 0


def inflate(head: bytes) -> bytes:
    """The first bytes of a file, decompressed as far as they go if they are gzip."""
    if not head.startswith(_GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""


def _claim(path: str, head: bytes) -> str:
    """The structured parser that knows the file, else the fallback for text, else "unknown"."""
    order = sorted(parsers().items(), key=lambda item: (getattr(item[1], "FALLBACK", False), item[0]))
    return next((name for name, parser in order if parser.sniff(path, head)), "unknown")


@cache
def _fingerprint() -> str:
    """Changes when anything changes that decides what a parser writes, so that old parts are not taken for new."""
    here = Path(__file__).parent
    files = [
        *resources.declarations("schemas", "*.toml"),
        *sorted((here / "parsers").glob("*.py")),
        here / "formats.py",
    ]
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        if file.exists():
            digest.update(file.read_bytes())
    return digest.hexdigest()
