"""Hugging Face's trainer_state.json: what the Trainer logged, with every digit, step by step."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from postmortem.formats import names
from postmortem.parsers._text import plain
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "trainer_state"
DOC = "trainer_state.json of the Hugging Face Trainer (transformers/trainer_callback.py): log_history by step."

_LIMIT = 256 << 20


def sniff(path: str, head: bytes) -> bool:
    """A JSON object with a log_history; the name alone decides nothing."""
    del path
    return head.lstrip().startswith(b"{") and (
        b'"log_history"' in head or (b'"best_metric"' in head and b'"epoch"' in head)
    )


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of metric. Values are means over all ranks since the last log, so they belong to no rank."""
    if source.bytes > _LIMIT:
        yield Issue("limit", f"A trainer state larger than {_LIMIT} bytes was left out.")
        return
    try:
        state: Any = json.loads(source.file.read_bytes().decode("utf-8", "replace"))
        history = state["log_history"]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        yield Issue("malformed", f"The trainer state cannot be read ({str(error)[:200]}); it was left out.")
        return
    entries = [entry for entry in history if isinstance(entry, dict)] if isinstance(history, list) else []
    found = [row for entry in entries for row in rows(entry)]
    total = _whole(state.get("max_steps"))
    reached = _whole(state.get("global_step"))
    if total is not None and total > 0:
        found.append((reached, "total_steps", float(total), str(total)))
    yield batch(found)
    if reached is not None:
        yield Batch("checkpoint_state", {"key": ["trainer_state.global_step"], "value": [str(reached)]})


def rows(entry: dict[str, Any], step: str = "step") -> Iterator[tuple[int | None, str, float, str]]:
    """(step, name, value, text) of one entry of numbers."""
    at = _whole(entry.get(step))
    for key, value in entry.items():
        number = _number(value)
        if key != step and number is not None:
            name = plain(key)
            yield at, names()["metric"].get(name, name), number, str(value)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and abs(value) < 1 << 63 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return (
        number
        if isinstance(value, (int, float)) or not math.isnan(number) or str(value).strip().lower() == "nan"
        else None
    )


def batch(found: list[tuple[int | None, str, float, str]], line: list[int] | None = None) -> Batch:
    """Rows of metric."""
    steps, keys, values, texts = (list(column) for column in zip(*found, strict=True)) if found else ([], [], [], [])
    columns = {"step": steps, "name": keys, "value": values, "text": texts}
    return Batch("metric", columns | ({"line": line} if line is not None else {}))
