"""error.json of torchrun's @record: the exception of one worker, with its time (errors/error_handler.py of torch.elastic)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from postmortem.parsers._names import attempt_from_name
from postmortem.parsers._stacks import classify
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "error_json"
DOC = "error.json that torchrun's workers write when they raise (torch/distributed/elastic/multiprocessing/errors)."

_LIMIT = 16 << 20


def sniff(path: str, head: bytes) -> bool:
    """A JSON object whose message holds a message and extraInfo, whatever the file's name."""
    del path
    return head.lstrip().startswith(b"{") and b'"message"' in head and b'"extraInfo"' in head


def parse(source: Source) -> Iterator[Parsed]:
    """One row of event: the exception. A worker that was killed leaves no such file."""
    try:
        record: Any = json.loads(source.file.read_bytes()[:_LIMIT].decode("utf-8", "replace"))
        inner = record["message"]
        text, extra = str(inner["message"]), dict(inner.get("extraInfo") or {})
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        yield Issue("malformed", f"The error record cannot be read ({str(error)[:200]}); it was left out.")
        return
    name, _, message = text.partition(": ")
    if not re.fullmatch(r"[\w.]+", name):
        name, message = "", text
    kind, role, _ = classify(name, message)
    stamp, code = str(extra.get("timestamp", "")), inner.get("errorCode")
    row = {
        "line": 1, "part": 0, "kind": kind, "role": role, "name": name, "message": message,
        "time": int(stamp) * 1_000_000_000 if re.fullmatch(r"\d{9,11}", stamp) else None, "clock": "utc",
        "code": code if isinstance(code, int) and abs(code) < 1 << 31 else None,
        "rank": source.rank, "local_rank": source.local_rank, "host": source.host,
        "attempt": attempt_from_name(source.path) or 0,
        "detail": json.dumps({"callstack": str(extra.get("py_callstack", ""))[:20000]}),
    }  # fmt: skip
    yield Batch("event", {column: [value] for column, value in row.items()})
