"""How often it failed, and how many clean steps the after-run needs before anybody may say "fixed"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.compare.faults import clean_steps
from postmortem.stats import clean_exposure_needed, rate_upper_bound

Sides = tuple[Mapping[str, Any], ...]


def stability(sides: Sides, judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Failures per step before, an upper bound after, and the clean steps that are needed and there."""
    incidents = [e["before"] for e in judged if e["before"] and e["before"]["kind"] == "incident"]
    incidents = [i for i in incidents if not i["explained_by"] and i["fault"] != "silent"]
    clean, exposure = clean_steps(sides[1]), _exposure(sides[0], incidents)
    again = any(e["after"] for e in judged if e["after"] and e["after"]["kind"] == "incident")
    needed = math.ceil(clean_exposure_needed(1, exposure)) if incidents and exposure else None
    if again:
        verdict = "not fixed" if incidents else "regressed"
    elif not incidents:
        verdict = "no change"
    else:
        verdict = "fixed" if needed is not None and clean >= needed else "undecided"
    return {
        "clean_steps_after": clean,
        "needed": needed,
        "failure_rate_before": 1 / exposure if incidents and exposure else 0.0,
        "upper_bound_after": rate_upper_bound(0, clean) if clean else None,
        "unit": "failures per step",
        "verdict": verdict,
    }


def _exposure(side: Mapping[str, Any], incidents: Sequence[Mapping[str, Any]]) -> int:
    first, last = side["run"]["first_step"], side["run"]["last_step"]
    if first is None or last is None:
        return 0
    onsets = [i["onset_step"] for i in incidents if i["onset_step"] is not None]
    return max(int(min([*onsets, last + 1] if onsets else [last]) - first + 1), 1)
