"""Charts over steps: step time, loss, gradient norm and memory of one run or of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import (
    Figure,
    Marks,
    onsets,
    points,
    queried,
    rounded,
    shading,
    thin,
    trends,
    typical_step,
    y_axis,
)
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values


def step_time(data: Data, extra: Marks) -> Figure | None:
    """Step time of the job over steps: every slice's extremes, its median, and the range of its middle 80 %."""
    query, found = queried(data, "step_time")
    if not found:
        return None
    sides = list(data.sides)
    scale, unit = (1e-3, "s") if typical_step(data) >= 2000 else (1.0, "ms")
    raw = [p for side, rows in found.items() for p in points(side, rows, scale)]
    trend = [p for side, rows in found.items() for p in trends(side, rows, scale)]
    title = f"step time, {unit}"
    y = y_axis(title, [p["value"] for p in raw], zero=True)
    tips = [alt.Tooltip("run:N"), alt.Tooltip("step:Q"), alt.Tooltip("value:Q", title=title)]
    layers = [
        *shading(extra, sides), *_raw(raw, trend, sides, y, tips), *_levels(extra, sides, scale), *onsets(extra, raw),
    ]  # fmt: skip
    said = "; ".join(f"{words.of(side)}{_summary(rows, scale, unit)}" for side, rows in found.items())
    table = [
        (
            p["run"],
            words.number(p["step"]),
            words.number(p["value"]),
            f"{words.number(p['low'])} to {words.number(p['high'])}",
            words.number(p["n"]),
        )
        for p in thin(trend)
    ]
    head = ("run", "step", f"median, {unit}", "middle 80 %", "n")
    foot = " The strips at the foot mark the steady parts, the bars over them the typical step with its interval."
    return Figure(
        "step-time",
        "Step time",
        f"Median step time {said}.{foot if extra.steady else ''}",
        marks.finish(layers),
        head,
        table,
        (query,),
    )


def _summary(rows: Sequence[Row], scale: float, unit: str) -> str:
    medians = sorted(row["median"] for row in rows)
    n = sum(row["n"] for row in rows)
    worst = max(rows, key=lambda row: row["high"])
    return (
        f"{words.number(medians[len(medians) // 2] * scale)} {unit} over {words.number(n)} steps, "
        f"longest {words.number(worst['high'] * scale)} {unit} at step {words.number(worst['high_step'])}"
    )


def _raw(raw: Values, trend: Values, sides: Sequence[str], y: alt.Y, tips: Sequence[alt.Tooltip]) -> list[alt.Chart]:
    """The extremes of every slice, under its median and the range of its middle 80 %."""
    x, colour, dash = marks.step(), marks.colour(sides), marks.dash(sides)
    points = marks.chart(raw)
    if len(trend) == sum(p["n"] for p in trend):  # one step per slice: the line itself is all there is
        return [points.mark_line(strokeWidth=1.8).encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=list(tips))]
    base = marks.chart(trend)
    return [
        points.mark_line(opacity=0.45, strokeWidth=1).encode(
            x=x, y=y, color=colour, detail="run:N", tooltip=list(tips)
        ),
        base.mark_area(opacity=0.18).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=list(tips)),
    ]


def _levels(extra: Marks, sides: Sequence[str], scale: float) -> list[alt.Chart]:
    """The typical step time of each steady part, with its interval."""
    values = [
        {"run": s, "x": extra.steady[s][0], "x2": extra.steady[s][1], "low": rounded(low * scale), "high": rounded(high * scale)}
        for s, (low, high) in extra.levels.items() if s in extra.steady
    ]  # fmt: skip
    if not values:
        return []
    bars = marks.chart(values).mark_rect(opacity=0.35).encode(
        x=alt.X("x:Q"), x2="x2:Q", y=alt.Y("low:Q"), y2="high:Q", color=marks.colour(sides)
    )  # fmt: skip
    return [bars]


def loss(data: Data, extra: Marks) -> Figure | None:
    """Loss over steps."""
    return _curve(data, extra, "loss", "Loss")


def grad_norm(data: Data, extra: Marks) -> Figure | None:
    """Gradient norm over steps."""
    return _curve(data, extra, "grad_norm", "Gradient norm")


def _curve(data: Data, extra: Marks, name: str, title: str) -> Figure | None:
    found = {s: [r for r in rows if r["name"] == name] for s, rows in queried(data, "curve")[1].items()}
    bad = [{"run": s, **r} for s, rows in queried(data, "nonfinite")[1].items() for r in rows if r["name"] == name]
    raw = [p for side, rows in found.items() for p in points(side, rows)]
    if not raw and not bad:
        return None
    sides = list(data.sides)
    y = y_axis(title.lower(), [p["value"] for p in raw], zero=False)
    tips = [alt.Tooltip("run:N"), alt.Tooltip("step:Q"), alt.Tooltip("value:Q", title=title.lower())]
    layers: list[alt.Chart] = [
        marks.chart(raw).mark_line(strokeWidth=1.8).encode(
            x=marks.step(), y=y, color=marks.colour(sides), strokeDash=marks.dash(sides), tooltip=tips
        )
    ]  # fmt: skip
    grouped = _nonfinite(bad)
    layers += _crosses(grouped, sides, raw) if grouped else onsets(extra, raw)
    ends = "; ".join(
        f"{words.of(side)}from {words.number(rows[0]['first'])} at step {words.number(rows[0]['step'])} to "
        f"{words.number(rows[-1]['last'])} at step {words.number(rows[-1]['last_step'])}"
        for side, rows in found.items() if rows
    )  # fmt: skip
    broke = "".join(f" {words.of(g['run'])}{g['label']} from step {words.number(g['step'])}." for g in grouped)
    table = [
        (s, words.number(r["step"]), words.number(r["median"]), words.number(r["low"]), words.number(r["high"]), words.number(r["n"]))
        for s, rows in found.items() for r in rows[:: max(1, -(-len(rows) // 24))]
    ]  # fmt: skip
    table += [(g["run"], words.number(g["step"]), g["label"], "", "", words.number(g["n"])) for g in grouped]
    head = ("run", "step", "median", "lowest", "highest", "n")
    sentence = f"{title}, {ends or 'no finite value'}.{broke}"
    return Figure(name.replace("_", "-"), title, sentence, marks.finish(layers), head, table, ("curve", "nonfinite"))


def _nonfinite(bad: Values) -> Values:
    """First steps at which values stopped being finite, ranks of one step together."""
    groups: dict[tuple[str, int, str], Values] = {}
    for row in bad:
        groups.setdefault((row["run"], row["first_step"], row["value"]), []).append(row)
    out = [
        {
            "run": run,
            "step": step,
            "n": sum(r["n"] for r in rows),
            "label": f"{value} {words.ranks([r['rank'] for r in rows], 4)}".strip(),
        }
        for (run, step, value), rows in sorted(groups.items(), key=lambda item: item[0][1])
    ]
    return out[:12]


def _crosses(groups: Values, sides: Sequence[str], raw: Values) -> list[alt.Chart]:
    steps = [p["step"] for p in [*raw, *groups]]
    middle = (min(steps) + max(steps)) / 2
    placed = [g | {"row": 12 + 15 * i, "left": g["step"] > middle} for i, g in enumerate(groups)]
    base = marks.chart(placed)
    line = base.mark_rule(strokeWidth=1.2, strokeDash=[2, 3]).encode(x=marks.step(), color=marks.colour(sides))
    y = alt.Y("row:Q", scale=None, axis=None)
    cross = base.mark_point(shape="cross", angle=45, size=90, filled=True, opacity=1).encode(
        x=marks.step(), y=y, color=marks.colour(sides)
    )
    return [line, cross, *marks.names([g | {"label": f" {g['label']} "} for g in placed])]


def memory(data: Data, extra: Marks) -> Figure | None:
    """Memory of the kind that grows most, per rank or as the range over ranks, with the fitted slopes."""
    _, found = queried(data, "memory_curve")
    if not found:
        return None
    sides = list(data.sides)
    kind = _kind(found, extra)
    rows = [{"run": s, **r} for s, some in found.items() for r in some if r["kind"] == kind]
    top = max(row["bytes"] for row in rows)
    unit, scale = next(((u, s) for u, s in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if top >= s), ("B", 1.0))
    values = [
        {
            "run": r["run"],
            "series": r["series"],
            "step": r["step"],
            "value": float(f"{r['bytes'] / scale:.7g}"),
        }
        for r in rows
    ]
    title = f"{kind.replace('_', ' ')}, {unit}"
    lines = marks.chart(values).mark_line(strokeWidth=1.8, opacity=0.9).encode(
        x=marks.step(), y=y_axis(title, [], zero=False), detail="series:N",
        color=marks.colour(sides), strokeDash=marks.dash(sides), tooltip=["run:N", "series:N", "step:Q", alt.Tooltip("value:Q", title=title)],
    )  # fmt: skip
    ends = [
        v
        for i, v in enumerate(values)
        if i + 1 == len(values) or (values[i + 1]["run"], values[i + 1]["series"]) != (v["run"], v["series"])
    ]
    word = (
        marks.chart(_apart(ends))
        .mark_text(align="right", dy=-7)
        .encode(x=marks.step(), y="value:Q", text="series:N", color=marks.colour(sides))
    )
    gains = "; ".join(_gain(side, some, kind) for side, some in found.items())
    table = [(v["run"], v["series"], words.number(v["step"]), words.number(v["value"], 5)) for v in _ends(values)]
    return Figure(
        "memory", f"Memory: {kind.replace('_', ' ')}", f"Highest value over time. {gains}.{_fitted(kind, extra)}",
        marks.finish([lines, word, *_fits(rows, kind, scale, extra, sides)]), ("run", "ranks", "step", title), table, ("memory_curve",),
    )  # fmt: skip


def _steepest(kind: str, extra: Marks) -> dict[str, tuple[Any, float]]:
    """Side -> (rank, slope) of the rank whose memory of this kind grows most."""
    found: dict[str, tuple[Any, float]] = {}
    for (side, what, rank), slope in extra.slopes.items():
        if what == kind and slope > found.get(side, (None, -float("inf")))[1]:
            found[side] = rank, slope
    return found


def _fitted(kind: str, extra: Marks) -> str:
    said = [
        f"{words.of(side, ', ')}rank {rank}: {words.size(slope)}/step"
        for side, (rank, slope) in _steepest(kind, extra).items()
    ]
    return f" Steepest fitted slopes of the last half, drawn broad: {'; '.join(said)}." if said else ""


def _fits(rows: Values, kind: str, scale: float, extra: Marks, sides: Sequence[str]) -> list[alt.Chart]:
    """The fitted slope of the steepest rank of each run, through the middle of the last half of its line."""
    lines = []
    for side, (rank, slope) in _steepest(kind, extra).items():
        mine = sorted(
            (r for r in rows if r["run"] == side and r["series"] in {f"rank {rank}", "job"}), key=lambda r: r["step"]
        )
        tail = mine[len(mine) // 2 :]
        if len(tail) < 2:
            continue
        steps, values = ([row[name] for row in tail] for name in ("step", "bytes"))
        level = sorted(value - slope * step for step, value in zip(steps, values, strict=True))[len(tail) // 2]
        lines += [
            {"run": side, "step": step, "value": (level + slope * step) / scale} for step in (steps[0], steps[-1])
        ]
    if not lines:
        return []
    wide = (
        marks.chart(lines)
        .mark_line(strokeWidth=7, opacity=0.3)
        .encode(x=marks.step(), y="value:Q", color=marks.colour(sides))
    )
    return [wide]


def _kind(found: Mapping[str, Sequence[Row]], extra: Marks) -> str:
    steep = sorted(extra.slopes.items(), key=lambda item: -item[1])
    kinds = {row["kind"] for rows in found.values() for row in rows}
    return next((kind for (_, kind, _), _ in steep if kind in kinds), min(kinds))


def _gain(side: str, rows: Sequence[Row], kind: str) -> str:
    mine = [row for row in rows if row["kind"] == kind]
    if not mine:
        return f"{words.of(side)}none stated"
    first, last = min(mine, key=lambda r: r["step"]), max(mine, key=lambda r: r["step"])
    return f"{words.of(side)}{words.size(first['bytes'])} at step {words.number(first['step'])}, {words.size(last['bytes'])} at step {words.number(last['step'])}"


def _ends(values: Values) -> Values:
    """First and last point of each series."""
    out: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for value in values:
        out.setdefault((value["run"], value["series"]), []).append(value)
    return [point for points in list(out.values())[:40] for point in (points[0], points[-1])]


def _apart(ends: Values) -> Values:
    """Labels that would sit on one another are left to the table."""
    span = max(v["value"] for v in ends) - min(v["value"] for v in ends) or 1.0
    kept: Values = []
    for value in sorted(ends, key=lambda v: v["value"]):
        if not kept or value["value"] - kept[-1]["value"] > span / 14:
            kept.append(value)
    return kept
