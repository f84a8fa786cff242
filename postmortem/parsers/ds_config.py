"""DeepSpeed's ds_config.json, whatever its name: the settings that a user asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from postmortem.parsers._tables import flat
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "ds_config"
DOC = "DeepSpeed configuration (ds_config.json and the like): JSON with keys of deepspeed/runtime/constants.py."

# Keys that only DeepSpeed's configuration has at its top level (deepspeed/runtime/constants.py).
_KEYS = (
    "train_micro_batch_size_per_gpu", "train_batch_size", "zero_optimization", "wall_clock_breakdown", "steps_per_print",
    "csv_monitor", "comms_logger", "zero_allow_untested_optimizer", "gradient_accumulation_steps",
)  # fmt: skip
_TOP = re.compile(rb"^\s*\{")
_LIMIT = 16 << 20


def sniff(path: str, head: bytes) -> bool:
    """A JSON object with at least one of DeepSpeed's keys, and a name that says so or two of them."""
    if not _TOP.match(head) or b'"traceEvents"' in head or b'"log_history"' in head:
        return False
    hits = sum(f'"{key}"'.encode() in head for key in _KEYS)
    named = re.search(r"(?i)(?:ds|deepspeed)[-_.]?\w*config|zero[-_]?\d?\w*\.json", path.rsplit("/", 1)[-1])
    return hits >= 2 or (hits == 1 and named is not None)


def parse(source: Source) -> Iterator[Parsed]:
    """One row of table config for every setting."""
    data = source.file.read_bytes()[: _LIMIT + 1]
    if len(data) > _LIMIT:
        yield Issue("limit", f"A configuration larger than {_LIMIT} bytes was left out.")
        return
    try:
        config: Any = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        yield Issue("malformed", f"The configuration is not JSON ({str(error)[:200]}); it was left out.")
        return
    found = list(flat(config))
    if found:
        keys, values = zip(*found, strict=True)
        yield Batch("config", {"kind": ["deepspeed"] * len(keys), "key": list(keys), "value": list(values)})
