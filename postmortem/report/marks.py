"""Altair building blocks that all charts share: two runs, told apart by colour and dash; steps on the x axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

Values: TypeAlias = list[dict[str, Any]]

# Okabe and Ito's colour-blind safe palette; these three keep a contrast of 3:1 on white and on the dark page.
COLOURS = {"before": "#D55E00", "after": "#0072B2", "run": "#0072B2"}
DASHES = {"before": [6, 3], "after": [1, 0], "run": [1, 0]}
EVENT = "#009E73"
TEXT = "currentColor"
WIDTH, HEIGHT = 640, 230


def chart(values: Values) -> alt.Chart:
    """A chart over rows given in place."""
    return alt.Chart(alt.Data(values=values))


def colour(sides: Sequence[str], *, legend: bool = True) -> alt.Color:
    """Which run, by colour."""
    scale = alt.Scale(domain=list(sides), range=[COLOURS[s] for s in sides])
    return alt.Color("run:N", scale=scale, legend=_legend(sides) if legend else None)


def dash(sides: Sequence[str]) -> alt.StrokeDash:
    """Which run, by dash pattern."""
    scale = alt.Scale(domain=list(sides), range=[DASHES[s] for s in sides])
    return alt.StrokeDash("run:N", scale=scale, legend=_legend(sides))


def _legend(sides: Sequence[str]) -> alt.Legend | None:
    return alt.Legend(title=None, orient="top", symbolSize=300, symbolStrokeWidth=2.5) if len(sides) > 1 else None


def step(title: str = "step", field: str = "step") -> alt.X:
    """The x axis of training steps."""
    return alt.X(f"{field}:Q", title=title, scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(format="~s", grid=False))


def shade(spans: Values, sides: Sequence[str]) -> alt.Chart:
    """Steady parts: {run, low, high} in steps, as a faint band of the run's colour."""
    return (
        chart(spans)
        .mark_rect(opacity=0.09)
        .encode(x=alt.X("low:Q"), x2="high:Q", color=colour(sides, legend=False))
    )


def rules(marks: Values) -> alt.LayerChart:
    """Vertical marks with a word: {step, label}."""
    base = chart(marks).encode(x=alt.X("step:Q"))
    line = base.mark_rule(color=TEXT, strokeDash=[2, 3], strokeWidth=1.2)
    word = base.mark_text(align="left", baseline="top", dx=4, fontWeight="bold", color=TEXT).encode(
        text="label:N", y=alt.value(2)
    )
    return alt.layer(line, word)


def finish(layers: Sequence[alt.Chart | alt.LayerChart], *, height: int = HEIGHT) -> dict[str, Any]:
    """Layers -> specification that fits light and dark pages."""
    whole = alt.layer(*layers).properties(width=WIDTH, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding"))
    spec: dict[str, Any] = whole.configure(**_LOOK).to_dict()
    return spec


_LOOK: Mapping[str, Any] = {
    "background": "transparent",
    "aria": False,
    "font": "system-ui, sans-serif",
    "view": alt.ViewConfig(stroke=None),
    "axis": alt.AxisConfig(
        labelColor=TEXT, titleColor=TEXT, domainColor=TEXT, tickColor=TEXT, gridColor=TEXT, gridOpacity=0.13,
        domainOpacity=0.5, tickOpacity=0.5, labelFontSize=12, titleFontSize=12, titleFontWeight="normal",
    ),
    "legend": alt.LegendConfig(labelColor=TEXT, titleColor=TEXT, labelFontSize=12, symbolStrokeWidth=2.5),
    "text": alt.MarkConfig(color=TEXT, fontSize=11),
}  # fmt: skip
