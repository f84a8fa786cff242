"""What differs between the two runs, and which of it can hide which fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from postmortem import faults
from postmortem.query import Session

# Settings that say how much work a step is (DeepSpeed runtime/config.py, Megatron and HF Trainer arguments).
WORKLOAD = frozenset({
    "train_micro_batch_size_per_gpu", "train_batch_size", "gradient_accumulation_steps", "micro_batch_size",
    "global_batch_size", "per_device_train_batch_size", "batch_size", "seq_length", "seq_len", "max_seq_length",
    "max_seq_len", "max_length", "block_size", "hidden", "hidden_size", "num_layers", "layers", "n_layer",
    "num_hidden_layers", "num_attention_heads", "vocab_size",
})  # fmt: skip
_CODE = frozenset({"git_hash", "git_commit", "commit", "git_branch", "code_version", "revision"})


def changes(session: Session) -> list[dict[str, Any]]:
    """Every difference of settings, environment and topology, those that can hide a fault first."""
    before, after = session.runs
    rows = session.rows("setting_changes", before=before, after=after)
    found = [
        {
            "kind": _kind(row["kind"], row["what"]),
            "what": row["what"],
            "before": row["before_value"],
            "after": row["after_value"],
            "can_mask": [name for name, fault in faults.faults().items() if _masks(fault, row)],
            "why": next((mask.why for f in faults.faults().values() for mask in f.masks if _fits(mask, row)), ""),
        }
        for row in rows
    ]
    return sorted(found, key=lambda change: (not change["can_mask"], change["kind"], change["what"]))


def _kind(kind: str, what: str) -> str:
    last = what.rsplit(".", 1)[-1]
    if kind in {"environment", "topology"}:
        return kind
    if last in WORKLOAD:
        return "workload"
    return "code" if last in _CODE else "config"


def _masks(fault: faults.Fault, change: Mapping[str, Any]) -> bool:
    return any(_fits(mask, change) for mask in fault.masks)


def _fits(mask: faults.Mask, change: Mapping[str, Any]) -> bool:
    """Whether a change touches the mask's setting (matched on whole parts of the dotted path) in its direction."""
    path, key = str(change["what"]).split("."), mask.key.split(".")
    touched = any(path[i : i + len(key)] == key for i in range(len(path)))
    return touched and _moved(mask.direction, change["before_value"], change["after_value"])


def _moved(direction: str, before: str | None, after: str | None) -> bool:
    if direction == "any":
        return True
    old, new = _number(before), _number(after)
    if direction in {"on", "off"}:
        return (bool(new) and not old) if direction == "on" else (bool(old) and not new)
    if old is None or new is None:
        return True  # a setting that appeared or vanished may have moved either way
    return new > old if direction == "up" else new < old


def _number(text: str | None) -> float | None:
    try:
        value = json.loads(text) if text is not None else None
        return float(value) if value is not None else None
    except (ValueError, TypeError):
        return None
