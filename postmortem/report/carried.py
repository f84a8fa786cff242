"""What carries the change of the step time between two runs: bars that add up to it."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, rounded
from postmortem.report.data import Data
from postmortem.report.marks import Values

MOST = 12
"""Bars beside that of the rest and that of the whole."""
VISIBLE = 0.005  # part of the longest bar under which a bar cannot be seen and joins the rest
WHOLE, REST = "whole change", "all others"
SIGNS = {"slower": marks.COLOURS["before"], "faster": marks.COLOURS["after"]}


def phases(data: Data, extra: Marks) -> Figure | None:
    """What each phase that timers measured adds to the change of a step."""
    del data
    rows = [{"name": row["phase"], "ms": row["difference"] * 1e3, "n": row["n"]} for row in extra.phases]
    title = "Phases that carry the change"
    return _figure("carried-phases", title, rows, "phases_compared", "ordinary steps before and after")


def operators(data: Data, extra: Marks) -> Figure | None:
    """What each operator and kernel of the profiled steps adds to the change of a step."""
    del extra
    found = [row for row in data.paired("trace_operators_compared") if words.finite(row["change_ms"]) is not None]
    if not found or not sum(row["before_ms"] for row in found) or not sum(row["after_ms"] for row in found):
        return None  # profiled on one side only: there is no change to share out
    rows = [
        {"name": f"{row['name']} ({row['phase']})" if row["name"] else row["phase"], "ms": row["change_ms"],
         "n": f"{words.number(row['before_count'])} and {words.number(row['after_count'])}"}
        for row in found
    ]  # fmt: skip
    title = "Operators and kernels that carry the change"
    return _figure("carried-operators", title, rows, "trace_operators_compared", "calls per step before and after")


def _figure(name: str, title: str, rows: Values, query: str, counted: str) -> Figure | None:
    if not rows:
        return None
    whole = sum(row["ms"] for row in rows)
    ordered = sorted(rows, key=lambda row: -abs(row["ms"]))
    count = sum(abs(row["ms"]) >= VISIBLE * abs(ordered[0]["ms"]) for row in ordered[:MOST])
    shown = [_bar(_short(row["name"]), row["ms"]) for row in ordered[:count]]
    if ordered[count:]:
        shown.append(_bar(REST, sum(row["ms"] for row in ordered[count:])))
    shown.append(_bar(WHOLE, whole))
    table = [(row["name"], f"{words.number(row['ms'])} ms", str(row["n"])) for row in ordered[:40]]
    most = "; ".join(f"{row['name']} {words.number(row['ms'])} ms" for row in ordered[:3])
    said = f"A mean step changed by {words.number(whole)} ms, of which {most}. The bars add up to the last one."
    spec = marks.finish(_bars(shown), height=20 * len(shown) + 20)
    return Figure(name, title, said, spec, ("part", "adds to the step", counted), table, (query,))


def _short(name: str) -> str:
    """The name without the words that autograd puts before every backward function (torch/csrc/autograd/engine.cpp)."""
    return str(words.cut(name.removeprefix("autograd::engine::evaluate_function: "), 40))


def _bar(name: str, value: float) -> dict[str, object]:
    return {"part": name, "value": rounded(value), "sign": "slower" if value > 0 else "faster"}


def _bars(shown: Sequence[dict[str, object]]) -> list[alt.Chart]:
    unique = [{**bar, "part": f"{bar['part']}{'' if bar['part'] not in [b['part'] for b in shown[:place]] else f' #{place}'}"}
              for place, bar in enumerate(shown)]  # fmt: skip
    names = [str(bar["part"]) for bar in unique]
    y = alt.Y("part:N", sort=names, title=None, axis=alt.Axis(labelLimit=190))
    colour = alt.Color(
        "sign:N",
        scale=alt.Scale(domain=list(SIGNS), range=list(SIGNS.values())),
        legend=alt.Legend(title=None, orient="top"),
    )
    x = alt.X("value:Q", title="ms added to a step")
    bars = marks.chart(unique).mark_bar(height=11).encode(x=x, y=y, color=colour, tooltip=["part:N", "value:Q"])
    zero = marks.chart([{"value": 0}]).mark_rule(color=marks.TEXT, strokeWidth=1).encode(x=x)
    return [bars, zero]
