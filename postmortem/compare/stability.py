"""How often it failed, and how many clean steps the after-run needs before anybody may say "fixed"."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postmortem.query import Session
from postmortem.stats import clean_exposure_needed, rate_interval, rate_upper_bound

Sides = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Exposure:
    """Incidents of the before-run in so many of its steps, and the clean steps of the after-run.

    `needed`: clean steps that show a lower rate of incidents at 95 %; None where the steps are not known.
    """

    incidents: int
    steps: int | None
    clean: int

    @property
    def needed(self) -> int | None:
        """Clean steps after `incidents` in `steps`: T (0.05^(-1/k) - 1)."""
        if not self.incidents or self.steps is None:
            return None
        return math.ceil(clean_exposure_needed(self.incidents, self.steps))

    @property
    def enough(self) -> bool:
        """Whether the after-run went on long enough to have shown it."""
        return self.needed is not None and self.clean >= self.needed

    @property
    def said(self) -> str:
        """The numbers as a clause."""
        what = "one incident" if self.incidents == 1 else f"{self.incidents} incidents"
        return f"{self.clean} clean steps after {what} in {self.steps}; {self.needed} are needed for 95 % confidence"


def exposure(session: Session, sides: Sides, onsets: Sequence[int | None]) -> Exposure:
    """Count incidents and steps; `onsets` are the first steps of the incidents that the diagnosis found before.

    A run that was restarted and failed again in the same way has as many incidents as attempts that failed.
    """
    attempts = _failed_attempts(session)
    known = [step for step in (*onsets, *(row["step"] for row in attempts)) if step is not None]
    first, last = (sides[0]["run"][key] for key in ("first_step", "last_step"))
    end = max(known) if known else last
    steps = None if first is None or end is None else max(int(end - first + 1), 1)
    return Exposure(max(len(attempts), 1) if onsets else 0, steps, clean_steps(sides[1]))


def _failed_attempts(session: Session) -> list[dict[str, Any]]:
    rows = [row for row in session.only(session.runs[0]).rows("failed_attempts") if row["kind"]]
    return rows if len({row["kind"] for row in rows}) == 1 else []


def clean_steps(side: Mapping[str, Any]) -> int:
    """Steps that a run made without a fault: up to its first onset, else all of them."""
    first, last = side["run"]["first_step"], side["run"]["last_step"]
    if first is None or last is None:
        return 0
    onsets = [f["onset_step"] for f in side["faults"] if f["severity"] == "fault" and f["onset_step"] is not None]
    return max(int(min([last + 1, *onsets]) - first), 0)


def stability(session: Session, sides: Sides, judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Failures per step and hour before, an upper bound after, and the clean steps that are needed and there."""
    before = [e["before"] for e in judged if e["before"] and e["before"]["kind"] == "incident"]
    before = [fault for fault in before if not fault["explained_by"] and fault["fault"] != "silent"]
    bad = {"not fixed", "regressed"}
    again = any(e["after"] and e["after"]["kind"] == "incident" and e["verdict"] in bad for e in judged)
    found = exposure(session, sides, [fault["onset_step"] for fault in before])
    return {
        "incidents_before": found.incidents,
        "steps_before": found.steps,
        "clean_steps_after": found.clean,
        "needed": found.needed,
        "failure_rate_before": found.incidents / found.steps if found.steps else 0.0,
        "failure_rate_before_ci": list(rate_interval(found.incidents, found.steps)) if found.steps else None,
        "failures_per_hour_before": _per_hour(sides[0], found.incidents),
        "upper_bound_after": rate_upper_bound(0, found.clean) if found.clean else None,
        "unit": "failures per step",
        "verdict": _verdict(found, again=again),
    }


def _verdict(found: Exposure, *, again: bool) -> str:
    if again:
        return "not fixed" if found.incidents else "regressed"
    if not found.incidents:
        return "no change"
    return "fixed" if found.enough else "undecided"


def _per_hour(side: Mapping[str, Any], incidents: int) -> float | None:
    started, ended = side["run"]["started"], side["run"]["ended"]
    hours = (ended - started) / 3.6e12 if started is not None and ended is not None else 0.0
    return incidents / hours if hours > 0.0 else None
