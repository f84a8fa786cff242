"""What a file's name says about whose it is."""

from __future__ import annotations

import re

_RANK = re.compile(r"(?:^|[^a-z])rank[-_]?(\d+)(?!\d)", re.IGNORECASE)
# torchrun --log-dir: <run id>/attempt_<n>/<local rank>/stdout.log (torch/distributed/elastic/multiprocessing/api.py)
_ATTEMPT = re.compile(r"attempt_\d+/(\d+)/[^/]+$")


def rank_from_name(path: str) -> tuple[int | None, int | None, str | None]:
    """(global rank, local rank, host) that the path of a file inside its run states, each or None."""
    local = _ATTEMPT.search(path)
    if local:
        return None, int(local[1]), None
    ranks = _RANK.findall(path.rsplit("/", 1)[-1])
    return (int(ranks[-1]) if ranks else None), None, None
