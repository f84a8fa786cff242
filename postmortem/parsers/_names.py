"""What a file's name says about whose it is."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

# Suffixes that compression and rotation add: train.log.1, train.log.2.gz, train.log-20260102, train.log.part3
_TAIL = re.compile(r"(?:\.(?:gz|gzip|xz|bz2|zst|old|bak|part\d+|\d{1,4})|[-.]\d{8}(?:-\d+)?)$")
# torchrun: <log dir>/<run id>/attempt_<n>/<local rank>/stdout.log (torch/distributed/elastic/multiprocessing/api.py)
_ATTEMPT = re.compile(r"(?:^|/)attempt_(?P<attempt>\d+)/(?P<local>\d+)/[^/]+$")
_LOCAL = re.compile(r"(?i)(?:^|[^a-z])local[-_.]?rank[-_.=]?(?P<local>\d+)(?![\d])")
# rank3, rank_3, rank-3, rank.3, rank=3, r3 are seen; "r3" alone is too weak to be believed.
_RANK = re.compile(r"(?i)(?:^|[^a-z])(?:global[-_.]?)?rank[-_.=]?(?P<rank>\d+)(?![\d])")
# A container or trace named <host>_<pid>.… or <host>_<rank> says a host at most when the word carries "node" or "host".
_HOST = re.compile(r"(?i)(?:^|[_/.-])(?P<host>(?:node|host)[-_]?\d+)(?=[_./-]|$)")
_HOST_TWICE = re.compile(
    r"^(?P<host>[A-Za-z0-9][\w.-]*)_(?P=host)_(?:stdout|stderr)"
)  # gpt-neox writes host_host_stdout.txt
_NOT_RANKS = re.compile(
    r"(?i)(?:node|machine|group|[a-z]p|zero_pp|expert|stage)[-_.]?rank[-_.=]?\d+|\d+[-_]?ranks(?![a-z])"
)


def rank_from_name(path: str) -> tuple[int | None, int | None, str | None]:
    """Return (global rank, local rank, host) that a path states, each None where it states none.

    The file's own name is asked first, then its folders from the innermost outwards. A name that states two
    different ranks states none.
    """
    parts = list(PurePosixPath(path).parts)
    if parts:
        parts[-1] = _without_tail(parts[-1])
    rank = local = host = None
    if found := _ATTEMPT.search("/".join(parts)):
        local = int(found["local"])
    for part in reversed(parts):
        name = _NOT_RANKS.sub("", part)
        if local is None:
            local = _one(_LOCAL, "local", name)
        if rank is None:
            rank = _one(_RANK, "rank", _LOCAL.sub("", name))
        if host is None:
            host = _host(name)
    return rank, local, host


def attempt_from_name(path: str) -> int | None:
    """Return the restart that torchrun's folder names, from 0."""
    found = re.search(r"(?:^|/)attempt_(\d+)/", path)
    return int(found[1]) if found else None


def _without_tail(name: str) -> str:
    while (shorter := _TAIL.sub("", name)) != name and shorter:
        name = shorter
    return name


def _one(pattern: re.Pattern[str], group: str, name: str) -> int | None:
    found = {int(m[group]) for m in pattern.finditer(name)}
    return found.pop() if len(found) == 1 and max(found) < 2**31 else None


def _host(name: str) -> str | None:
    if found := _HOST_TWICE.match(name) or _HOST.search(name):
        return str(found["host"])
    return None
