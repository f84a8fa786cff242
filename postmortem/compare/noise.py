"""How much runs of one job differ by chance, measured on runs that are known to be healthy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postmortem.compare.steps import known, shown, steps_of
from postmortem.query import Session
from postmortem.stats import ratio_of_run_medians, run_noise, split_run

SCHEMA = "postmortem.noise/1"
ENOUGH_RUNS = 3
"""Runs from which a standard deviation is worth using: with two, its 90 % interval spans a factor of thirty."""


def noise(session: Session) -> dict[str, Any]:
    """Typical step time of every run of `session`, and the standard deviation between runs with its interval.

    The result is a dict for JSON: `run_noise` is a relative standard deviation (0.01 is one percent), None with
    fewer than two runs that have step times; `enough` says whether verdicts should rest on it.
    """
    levels = [level(session, run) for run in session.runs]
    medians = [entry["typical_seconds"] for entry in levels if entry["typical_seconds"]]
    found = run_noise(medians)
    return {
        "schema": SCHEMA,
        "runs": levels,
        "run_noise": known(found.estimate),
        "ci": [known(found.low), known(found.high)],
        "n": found.n,
        "enough": found.n >= ENOUGH_RUNS,
        "statement": _statement(found.n, found.estimate, found.high),
    }


def level(session: Session, run: str) -> dict[str, Any]:
    """Typical step time of one run over its ordinary steps, with its interval and what it rests on."""
    steps = steps_of(session, run)
    side = split_run(steps.seconds, steps.scheduled)
    typical = shown(side.typical)
    return {
        "run": run,
        "typical_seconds": typical["estimate"],
        "ci": typical["ci"],
        "n": typical["n"],
        "n_effective": known(side.typical.n_eff),
        "jitter": known(side.jitter),
        "set_aside": steps.set_aside(side.ordinary),
        "changes": [int(steps.steps[point.index]) for point in side.changes],
    }


def _statement(n: int, estimate: float, high: float) -> str:
    if n < 2:
        return "Two runs or more with step times are needed to see how much runs differ."
    said = f"Healthy runs of this job differ by {estimate:.2%} (standard deviation, at most {high:.2%}) over {n} runs."
    if n < ENOUGH_RUNS:
        return f"{said} {ENOUGH_RUNS} runs or more make it worth using."
    return f"{said} Give it to verdicts as --run-noise {estimate:.4f}."


def repeated(session: Session, before: Sequence[str], after: Sequence[str]) -> dict[str, Any] | None:
    """Compare several runs a side by their typical step times: the run is the unit, nothing is assumed of noise.

    Returns None unless both sides have two runs or more with step times.
    """
    sides = [[level(session, run) for run in runs] for runs in (before, after)]
    medians = [[entry["typical_seconds"] for entry in side if entry["typical_seconds"]] for side in sides]
    if min(map(len, medians)) < 2:
        return None
    found = ratio_of_run_medians(*medians)
    return {
        "ratio": known(found.estimate),
        "ci": [known(found.low), known(found.high)],
        "runs": [len(side) for side in medians],
        "levels": {"before": sides[0], "after": sides[1]},
        "unit": "step time after / before",
    }
