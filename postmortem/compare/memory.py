"""Whether memory grows, before and after, per rank and kind, and when it runs out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postmortem.compare.steps import known
from postmortem.query import Session

REST = 0.25
"""Part of a leak's slope that the after-run may still have, with its interval, for the leak to count as gone."""

# Totals that say nothing of one job, and reserved memory, which a caching allocator keeps once it was needed.
NOT_EVIDENCE = frozenset({
    "device_total", "device_used", "host_used", "device_reserved", "device_max_reserved",
})  # fmt: skip


def memory(session: Session) -> list[dict[str, Any]]:
    """Slopes of every rank and kind of memory in both runs; the verdict is on the pair."""
    before, after = session.runs
    rows = session.rows("memory_slopes_compared", before=before, after=after)
    return [
        {
            "kind": row["kind"],
            "rank": row["rank"],
            "before": _side(row, "before"),
            "after": _side(row, "after"),
            "unit": "B/step",
            "verdict": _verdict(row),
        }
        for row in rows
        if row["kind"] not in NOT_EVIDENCE
    ]


def growth(session: Session) -> list[dict[str, Any]]:
    """Slopes of every rank and kind of memory of the one run of `session`."""
    (run,) = session.runs
    rows = session.rows("memory_slopes_compared", before=run, after=run)
    return [
        {"kind": row["kind"], "rank": row["rank"], "run": _side(row, "before"), "unit": "B/step"}
        for row in rows
        if row["kind"] not in NOT_EVIDENCE
    ]


def _side(row: Mapping[str, Any], side: str) -> dict[str, Any] | None:
    if row[f"{side}_slope"] is None:
        return None
    slope, low, high = (row[f"{side}_{name}"] for name in ("slope", "low", "high"))
    growing = row[f"{side}_kind"] == "growing"
    return {
        "kind": row[f"{side}_kind"],
        "why": row[f"{side}_why"],
        "slope": known(slope),
        "ci": [known(low), known(high)],
        "n": row[f"{side}_steps"],
        "rise": known(row[f"{side}_rise"]),
        "slope_first_half": known(row[f"{side}_first_half"]),
        "slope_second_half": known(row[f"{side}_second_half"]),
        "full_in": _full(row[f"{side}_room"], row[f"{side}_seconds"], slope, low, high) if growing else None,
    }


def _full(room: float | None, seconds: float | None, slope: float, low: float, high: float) -> dict[str, Any] | None:
    """Steps and hours until the device's memory is full, with the interval that the slope's gives."""
    if room is None or slope <= 0.0:
        return None
    steps = [room / value if value > 0.0 else None for value in (slope, high, low)]
    hours = [None if count is None or seconds is None else count * seconds / 3600.0 for count in steps]
    return {"steps": steps[0], "steps_ci": steps[1:], "hours": hours[0], "hours_ci": hours[1:]}


def _verdict(row: Mapping[str, Any]) -> str:
    """fixed, not fixed, growing (new), no change, or undecided."""
    before, after = row["before_kind"], row["after_kind"]
    if after is None or before is None:
        return "undecided"
    if after == "growing":
        return "not fixed" if before == "growing" else "growing"
    if before == "growing":
        gone = after == "flat" or row["after_high"] <= REST * row["before_low"]
        return "fixed" if gone and row["after_high"] <= REST * row["before_slope"] else "undecided"
    return "no change" if {before, after} == {"flat"} else "undecided"
