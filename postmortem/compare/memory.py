"""Whether memory grows, before and after, per rank and kind."""

from __future__ import annotations

from typing import Any

from postmortem.query import Session


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
            "verdict": _verdict(row["before_kind"], row["after_kind"]),
        }
        for row in rows
    ]


def _side(row: dict[str, Any], side: str) -> dict[str, Any] | None:
    if row[f"{side}_slope"] is None:
        return None
    return {
        "slope": row[f"{side}_slope"],
        "ci": [row[f"{side}_low"], row[f"{side}_high"]],
        "n": row[f"{side}_steps"],
    }


def _verdict(before: str | None, after: str | None) -> str:
    """fixed, growing (new or still), flat on both sides, or undecided."""
    if after is None or before is None:
        return "undecided"
    if after == "growing":
        return "not fixed" if before == "growing" else "growing"
    if before == "growing":
        return "fixed" if after == "flat" else "undecided"
    return "no change" if {before, after} == {"flat"} else "undecided"
