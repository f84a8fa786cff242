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
# Tokens per sample, by the same sources.
SEQUENCE = ("seq_length", "seq_len", "max_seq_length", "max_seq_len", "max_length", "block_size")


@dataclass(frozen=True)
class Work:
    """Samples (or tokens) per step after / before, or None where the two runs' steps cannot be compared at all.

    `changed` names the settings that make the work differ; `unit` is what a time is then per: step, sample, token.
    """

    scale: float | None
    changed: tuple[str, ...]
    unit: str = "step"

    @property
    def comparable(self) -> bool:
        """Whether a step is the same work in both runs."""
        return not self.changed


def work(session: Session, changed: Sequence[Mapping[str, Any]]) -> Work:
    """Compare the work per step; only the size of the batch and the length of sequences can be divided out."""
    touched = [change for change in changed if change["kind"] in {"workload", "topology"}]
    names = tuple(str(change["what"]) for change in touched)
    if not touched:
        return Work(1.0, ())
    last = [change["what"].rsplit(".", 1)[-1] for change in touched]
    if any(name not in (*GLOBAL_BATCH, *MICRO_BATCH, *SEQUENCE) for name in last):
        return Work(None, names)
    longer = [_ratio(change) for name, change in zip(last, touched, strict=True) if name in SEQUENCE]
    scale = _batch(session, touched, last) * (longer[0] if longer else 1.0)
    return Work(scale if math.isfinite(scale) else None, names, "token" if longer else "sample")


def _batch(session: Session, touched: Sequence[Mapping[str, Any]], last: Sequence[str]) -> float:
    """Samples per step after / before; NaN where a size is not known."""
    sizes = [_samples(session, run) for run in session.runs]
    if sizes[0] and sizes[1]:
        return sizes[1] / sizes[0]
    return math.prod(_ratio(change) for name, change in zip(last, touched, strict=True) if name in MICRO_BATCH)


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
