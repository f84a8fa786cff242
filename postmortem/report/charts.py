"""What every chart of the page has in common: its parts, its rows and its marks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import altair as alt

from postmortem.report import marks, words
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values

Spans: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart of the page.

    Attributes:
        name: identifier, unique on the page.
        title: what is drawn.
        sentence: what it shows, in words and numbers.
        spec: Vega-Lite specification.
        head, rows: the table of its data.
        queries: names of the queries behind it.
    """

    name: str
    title: str
    sentence: str
    spec: dict[str, Any]
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    queries: Sequence[str]


@dataclass(frozen=True)
class Marks:
    """What the verdicts say about the charts.

    Attributes:
        onsets: {step, label} each.
        steady: first and last step of each side's steady part.
        levels: the typical step time of that part, as an interval in ms.
        slopes: growth of memory in B per step, by side, kind and rank.
        phases: what each timed phase adds to the change of a step: {phase, difference in s, n}.
    """

    onsets: Values = field(default_factory=list)
    steady: Spans = field(default_factory=dict)
    levels: Spans = field(default_factory=dict)
    slopes: Mapping[tuple[str, str, Any], float] = field(default_factory=dict)
    phases: Values = field(default_factory=list)


def queried(data: Data, *queries: str) -> tuple[str, dict[str, Sequence[Row]]]:
    """The first of the queries that answers on most sides, and its rows per side that has any."""
    answers = {
        q: {side: found[q].rows for side, found in data.sides.items() if q in found and found[q].rows} for q in queries
    }
    best = max(queries, key=lambda q: len(answers[q]))
    return best, answers[best]


def points(side: str, rows: Sequence[Row], scale: float = 1.0) -> Values:
    """The M4 points of binned rows: first, lowest, highest and last of each bin, in order of step."""
    found: dict[Any, float] = {}
    for row in rows:
        for step, value in (
            ("step", "first"),
            ("low_step", "low"),
            ("high_step", "high"),
            ("last_step", "last"),
        ):
            if words.finite(row[value]) is not None:
                found[row[step]] = row[value] * scale
    return [{"run": side, "step": step, "value": rounded(found[step])} for step in sorted(found)]


def rounded(value: float) -> float:
    """Five digits: what a picture can show."""
    return float(f"{value:.5g}")


def trends(side: str, rows: Sequence[Row], scale: float = 1.0) -> Values:
    """The median and the middle 80 % of binned rows."""
    return [
        {"run": side, "step": (row["step"] + row["last_step"]) / 2, "value": rounded(row["median"] * scale),
         "low": rounded(row["p10"] * scale), "high": rounded(row["p90"] * scale), "n": row["n"]}
        for row in rows if words.finite(row["median"]) is not None
    ]  # fmt: skip


def y_axis(title: str, values: Sequence[float], *, zero: bool) -> alt.Y:
    """The y axis of column `value`."""
    # A few very large values would press the rest flat: a logarithmic axis then.
    ordered = sorted(values) or [0.0]
    wide = ordered[0] > 0 and ordered[-1] > 10 * ordered[len(ordered) // 2]
    if not wide:
        return alt.Y("value:Q", title=title, scale=alt.Scale(zero=zero), axis=alt.Axis(tickCount=5))
    decades = range(math.floor(math.log10(ordered[0])), math.ceil(math.log10(ordered[-1])) + 1)
    ticks = [float(f"{m}e{d}") for d in decades for m in ((1,) if len(decades) > 3 else (1, 3))]
    return alt.Y("value:Q", title=title, scale=alt.Scale(type="log"), axis=alt.Axis(values=ticks, format="~g"))


def shading(extra: Marks, sides: Sequence[str]) -> list[alt.Chart]:
    """The steady part of each run."""
    spans = [{"run": s, "low": low, "high": high} for s, (low, high) in extra.steady.items() if s in sides]
    return marks.strips(spans, sides)


def onsets(extra: Marks, raw: Values) -> list[alt.Chart]:
    """Onsets inside the picture, with their words on the side that has room."""
    if not extra.onsets or not raw:
        return []
    low, high = min(p["step"] for p in raw), max(p["step"] for p in raw)
    return marks.rules([o | {"left": o["step"] > (low + high) / 2} for o in extra.onsets if low <= o["step"] <= high])


def thin(rows: Values, most: int = 24) -> Values:
    """At most `most` rows per run, evenly spread."""
    out: Values = []
    for side in dict.fromkeys(row["run"] for row in rows):
        mine = [row for row in rows if row["run"] == side]
        out += mine[:: max(1, -(-len(mine) // most))]
    return out


def typical_step(data: Data) -> float:
    """Median over the slices of all runs, in ms; 0 where no step time is known."""
    found = queried(data, "step_time")[1]
    medians = sorted(
        row["median"] for rows in found.values() for row in rows if words.finite(row["median"]) is not None
    )
    return float(medians[len(medians) // 2]) if medians else 0.0
