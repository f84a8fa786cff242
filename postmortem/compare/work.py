"""How much work a step is before and after, so that different work is never compared step by step."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postmortem.query import Session

# Samples per step: DeepSpeed runtime/config.py, Megatron-LM training/arguments.py, HF TrainingArguments.
GLOBAL_BATCH = ("train_batch_size", "global_batch_size")
MICRO_BATCH = (
    "train_micro_batch_size_per_gpu", "micro_batch_size", "per_device_train_batch_size", "batch_size",
    "gradient_accumulation_steps",
)  # fmt: skip


@dataclass(frozen=True)
class Work:
    """Samples per step after / before, or None where the two runs' steps cannot be compared at all.

    `changed` names the settings that make the work differ; `comparable` says whether steps do the same work.
    """

    scale: float | None
    changed: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        """Whether a step is the same work in both runs."""
        return not self.changed


def work(session: Session, changed: Sequence[Mapping[str, Any]]) -> Work:
    """Compare the work per step; only the size of the batch can be divided out."""
    touched = [change for change in changed if change["kind"] in {"workload", "topology"}]
    names = tuple(str(change["what"]) for change in touched)
    if not touched:
        return Work(1.0, ())
    if any(change["what"].rsplit(".", 1)[-1] not in (*GLOBAL_BATCH, *MICRO_BATCH) for change in touched):
        return Work(None, names)
    sizes = [_samples(session, run) for run in session.runs]
    if None not in sizes:
        return Work(sizes[1] / sizes[0], names)  # type: ignore[operator]
    ratios = [_ratio(change) for change in touched if change["what"].rsplit(".", 1)[-1] in MICRO_BATCH]
    return Work(math.prod(ratios) if ratios and math.isfinite(math.prod(ratios)) else None, names)


def _samples(session: Session, run: str) -> float | None:
    """The global batch that the configuration of `run` states."""
    rows = session.connection.execute(
        "SELECT regexp_extract(key, '[^.]*$') AS name, max(value) FROM config WHERE run_id = $run GROUP BY ALL",
        {"run": run},
    ).fetchall()
    values = {name: _number(value) for name, value in rows}
    return next((values[name] for name in GLOBAL_BATCH if values.get(name)), None)


def _ratio(change: Mapping[str, Any]) -> float:
    old, new = _number(change["before"]), _number(change["after"])
    return new / old if old and new else math.nan


def _number(text: str | None) -> float | None:
    try:
        value = json.loads(text) if text is not None else None
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None
