"""How much runs of one job differ by chance, measured on runs that are known to be healthy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from scipy.special import stdtrit

from postmortem.compare.steps import known, shown, steps_of
from postmortem.query import Session
from postmortem.stats import Interval, Judgement, judge_runs, ratio_of_run_medians, run_noise, split_run

SCHEMA = "postmortem.noise/1"
ENOUGH_RUNS = 3
"""Runs from which a standard deviation is worth using: with two, its 90 % interval spans a factor of thirty."""


def noise(session: Session) -> dict[str, Any]:
    """Typical step time of every run of `session`, and the standard deviation between runs with its interval.

    The result is a dict for JSON: `run_noise` is a relative standard deviation (0.01 is one percent), None with
    fewer than two runs that have step times; `enough` says whether verdicts should rest on it, and on `careful`, which
    is larger by what so few runs leave open.
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
        "careful": known(careful(found)),
        "statement": _statement(found),
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


def careful(found: Interval) -> float:
    """Return the standard deviation between runs, larger by Student's t over the normal quantile for few runs."""
    if found.n < 2:
        return found.estimate
    return found.estimate * float(stdtrit(found.n - 1, 0.95)) / NormalDist().inv_cdf(0.95)


def _statement(found: Interval) -> str:
    if found.n < 2:
        return "Two runs or more with step times are needed to see how much runs differ."
    said = (
        f"Healthy runs of this job differ by {found.estimate:.2%} (standard deviation, at most {found.high:.2%}) "
        f"over {found.n} runs."
    )
    if found.n < ENOUGH_RUNS:
        return f"{said} {ENOUGH_RUNS} runs or more make it worth using."
    return f"{said} Give verdicts --run-noise {careful(found):.4f}, which allows for so few runs."


@dataclass(frozen=True)
class Repeats:
    """Further runs of each side, and what they say.

    `judgement` and `interval`: the comparison of the runs' typical step times, None unless both sides have two runs
    or more. `run_noise`: standard deviation between the runs of one side, larger by what few runs leave open; None unless a side has
    three or more.
    """

    levels: tuple[list[dict[str, Any]], list[dict[str, Any]]]
    judgement: Judgement | None
    interval: Interval | None
    run_noise: float | None


def repeats(session: Session, sides: tuple[Sequence[str], Sequence[str]], bound: float) -> Repeats:
    """Compare several runs a side by their typical step times: the run is the unit."""
    levels = ([level(session, run) for run in sides[0]], [level(session, run) for run in sides[1]])
    medians = [[entry["typical_seconds"] for entry in side if entry["typical_seconds"]] for side in levels]
    noises = [careful(run_noise(side)) for side in medians if len(side) >= ENOUGH_RUNS]
    found = ratio_of_run_medians(*medians) if min(map(len, medians)) >= 2 else None
    return Repeats(
        levels, judge_runs(found, equivalence=bound) if found else None, found, max(noises) if noises else None
    )
