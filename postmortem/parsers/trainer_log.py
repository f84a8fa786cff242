"""JSON lines with a step in each: LLaMA-Factory's trainer_log.jsonl and other loggers of that form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from postmortem.parsers._read import Block, blocks
from postmortem.parsers.trainer_state import batch, rows
from postmortem.records import Issue, Parsed, Source

FORMAT = "trainer_log"
DOC = "JSON lines with a step and metrics (LLaMA-Factory trainer_log.jsonl, src/llamafactory/train/callbacks.py)."

_STEPS = ("current_steps", "global_step", "step", "_step", "iteration")


def sniff(path: str, head: bytes) -> bool:
    """The first line is a JSON object of which one key is a step and another one a number."""
    first = _entry(head.split(b"\n", 1)[0])
    return (
        ".json" in path.lower()
        and first is not None
        and _step(first) is not None
        and len(first) > 1
        and "log_history" not in first
    )


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of metric, one per number and line."""
    for block in blocks(source):
        if isinstance(block, Issue):
            yield block
            continue
        yield from _block(block)


def _block(block: Block) -> Iterator[Parsed]:
    found, lines, bad = [], [], 0
    for number, text in enumerate(block.data.split(b"\n"), block.line):
        entry = _entry(text)
        step = _step(entry) if entry else None
        if entry is None or step is None:
            bad += bool(text.strip())
            continue
        new = list(rows(entry, step))
        printed = str(entry.get("elapsed_time"))
        if (elapsed := _seconds(printed)) is not None and entry[step] >= 0:
            new.append((entry[step], "elapsed", elapsed, printed))
        found += new
        lines += [number] * len(new)
    if bad:
        yield Issue(
            "malformed", f"{bad} lines are no JSON object with a step; they were left out.", block.line, None, bad
        )
    yield batch(found, lines)


def _seconds(printed: str) -> float | None:
    """A timedelta as Python prints it, in whole seconds: [D days, ]H:MM:SS."""
    clock = re.fullmatch(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d)", printed)
    if clock is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _entry(text: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _step(entry: dict[str, Any]) -> str | None:
    return next((key for key in _STEPS if isinstance(entry.get(key), int)), None)
