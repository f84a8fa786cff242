"""Altair building blocks that all charts share: two runs, told apart by colour and dash; steps on the x axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt

Values: TypeAlias = list[dict[str, Any]]

# Okabe and Ito's colour-blind safe palette; these three keep a contrast of 3:1 on white and on the dark page.
COLOURS = {"before": "#D55E00", "after": "#0072B2", "run": "#0072B2"}
DASHES = {"before": [6, 3], "after": [1, 0], "run": [1, 0]}
SHAPES = {"before": "square", "after": "circle", "run": "circle"}
EVENT = "#009E73"
TEXT = "currentColor"
WIDTH, HEIGHT = 640, 230


def chart(values: Values) -> alt.Chart:
    """A chart over rows given in place."""
    return alt.Chart(alt.InlineData(values=values))


def colour(sides: Sequence[str], symbol: str = "stroke") -> alt.Color:
    """Which run, by colour."""
    return alt.Color(
        "run:N",
        scale=alt.Scale(domain=list(sides), range=[COLOURS[s] for s in sides]),
        legend=_legend(sides, symbol),
    )


def dash(sides: Sequence[str]) -> alt.StrokeDash:
    """Which run, by dash pattern."""
    return alt.StrokeDash(
        "run:N",
        scale=alt.Scale(domain=list(sides), range=[DASHES[s] for s in sides]),
        legend=_legend(sides, "stroke"),
    )


def shape(sides: Sequence[str]) -> alt.Shape:
    """Which run, by shape."""
    return alt.Shape(
        "run:N",
        scale=alt.Scale(domain=list(sides), range=[SHAPES[s] for s in sides]),
        legend=_legend(sides, ""),
    )


def _legend(sides: Sequence[str], symbol: str) -> alt.Legend | None:
    # The same in every layer: Vega-Lite merges legends only if they agree.
    if len(sides) < 2:
        return None
    return alt.Legend(
        title=None,
        orient="top",
        **({"symbolType": symbol, "symbolSize": 400} if symbol else {"symbolSize": 80}),
    )


def step(title: str = "step", field: str = "step") -> alt.X:
    """The x axis of training steps."""
    return alt.X(
        f"{field}:Q",
        title=title,
        scale=alt.Scale(zero=False, nice=False),
        axis=alt.Axis(format=",d", grid=False, tickMinStep=1, labelOverlap=True, labelFlush=True),
    )


def strips(spans: Values, sides: Sequence[str]) -> list[alt.Chart]:
    """Steady parts: {run, low, high} in steps, as a strip per run at the foot of the picture."""
    out = []
    for place, side in enumerate(sides):
        mine = [span for span in spans if span["run"] == side]
        top = HEIGHT - 5 * (len(sides) - place)
        if mine:
            strip = chart(mine).mark_rect(opacity=0.65).encode(
                x=alt.X("low:Q"), x2="high:Q", y=alt.value(top), y2=alt.value(top + 4), color=colour(sides)
            )  # fmt: skip
            out.append(strip)
    return out


def rules(marks: Values) -> list[alt.Chart]:
    """Vertical marks with a word each: {step, label}. The words stand under one another, inside the picture."""
    if not marks:  # Vega warns of a scale over nothing
        return []
    ordered = sorted(marks, key=lambda mark: mark["step"])
    placed = [mark | {"row": 8 + 14 * (place % 6)} for place, mark in enumerate(ordered)]
    line = chart(placed).mark_rule(color=TEXT, strokeDash=[2, 3], strokeWidth=1.2).encode(x=step())
    return [line, *names(placed)]


def names(placed: Values) -> list[alt.Chart]:
    """Words beside their step: {step, label, row in pixels, left: whether they stand left of it}."""
    y = alt.Y("row:Q", scale=None, axis=None)
    out = []
    for left in (False, True):
        mine = [mark for mark in placed if bool(mark.get("left")) == left]
        if mine:
            text = chart(mine).mark_text(align="right" if left else "left", dx=-5 if left else 5, fontWeight="bold")
            out.append(text.encode(x=step(), y=y, text="label:N"))
    return out


def finish(layers: Sequence[alt.Chart], *, height: int = HEIGHT) -> dict[str, Any]:
    """Layers -> specification that fits light and dark pages."""
    whole = alt.layer(*layers).properties(
        width=WIDTH, height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    )
    spec: dict[str, Any] = whole.configure(**_LOOK).to_dict()
    return spec


_LOOK: Mapping[str, Any] = {
    "background": "transparent",
    "aria": False,
    "font": "Segoe UI, Roboto, Noto Sans, Liberation Sans, DejaVu Sans, Arial, sans-serif",
    "view": alt.ViewConfig(stroke=None),
    "axis": alt.AxisConfig(
        labelColor=TEXT, titleColor=TEXT, domainColor=TEXT, tickColor=TEXT, gridColor=TEXT, gridOpacity=0.13,
        domainOpacity=0.5, tickOpacity=0.5, labelFontSize=12, titleFontSize=12, titleFontWeight="normal",
    ),
    "legend": alt.LegendConfig(labelColor=TEXT, titleColor=TEXT, labelFontSize=12, symbolStrokeWidth=2.5, symbolOpacity=1),
    "text": alt.MarkConfig(color=TEXT, fontSize=11),
}  # fmt: skip
