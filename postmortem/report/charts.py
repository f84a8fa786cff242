"""Rows of queries/report -> charts. Every chart states in one sentence what it shows, for those who cannot see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
    """What the verdicts say about the charts: {step, label} onsets, and the steady part of each side."""

    onsets: Values = field(default_factory=list)
    steady: Spans = field(default_factory=dict)
    slopes: Mapping[tuple[str, str, Any], float] = field(default_factory=dict)


def build(data: Data, extra: Marks) -> list[Figure]:
    """Every chart that the data carry."""
    makers: Sequence[Callable[[Data, Marks], Figure | None]] = (step_time, lateness, memory, loss, grad_norm, timeline)
    return [figure for make in makers if (figure := make(data, extra)) is not None]


def _rows(data: Data, query: str) -> dict[str, Sequence[Row]]:
    return {side: found[query].rows for side, found in data.items() if query in found and found[query].rows}


def _sides(data: Data) -> list[str]:
    return list(data)


def _points(side: str, rows: Sequence[Row], scale: float = 1.0) -> Values:
    """The M4 points of binned rows: first, lowest, highest and last of each bin, in order of step."""
    found: dict[Any, float] = {}
    for row in rows:
        for step, value in (("step", "first"), ("low_step", "low"), ("high_step", "high"), ("last_step", "last")):
            if words.finite(row[value]) is not None:
                found[row[step]] = row[value] * scale
    return [{"run": side, "step": step, "value": _round(found[step])} for step in sorted(found)]


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def _trend(side: str, rows: Sequence[Row], scale: float = 1.0) -> Values:
    return [
        {"run": side, "step": (row["step"] + row["last_step"]) / 2, "value": _round(row["median"] * scale),
         "low": _round(row["p10"] * scale), "high": _round(row["p90"] * scale), "n": row["n"]}
        for row in rows if words.finite(row["median"]) is not None
    ]  # fmt: skip


def step_time(data: Data, extra: Marks) -> Figure | None:
    """Step time of the job over steps: every slice's extremes, its median, and the range of its middle 80 %."""
    found = _rows(data, "step_time")
    if not found:
        return None
    sides = _sides(data)
    scale, unit = (1e-3, "s") if _typical(found) >= 2000 else (1.0, "ms")
    raw = [p for side, rows in found.items() for p in _points(side, rows, scale)]
    trend = [p for side, rows in found.items() for p in _trend(side, rows, scale)]
    title = f"step time, {unit}"
    y = _y(title, [p["value"] for p in raw], zero=True)
    tips = [alt.Tooltip("run:N"), alt.Tooltip("step:Q"), alt.Tooltip("value:Q", title=title)]
    layers = [
        *_shading(extra, sides),
        marks.chart(raw).mark_line(opacity=0.45, strokeWidth=1).encode(
            x=marks.step(), y=y, color=marks.colour(sides), detail="run:N", tooltip=tips
        ),
        *_bands(trend, sides, y, tips),
        *_onsets(extra, raw),
    ]  # fmt: skip
    said = "; ".join(f"{side}: {_summary(rows, scale, unit)}" for side, rows in found.items())
    table = [
        (p["run"], words.number(p["step"]), words.number(p["value"]), f"{words.number(p['low'])} to {words.number(p['high'])}", words.number(p["n"]))
        for p in _thin(trend)
    ]
    head = ("run", "step", f"median, {unit}", "middle 80 %", "n")
    return Figure("step-time", "Step time", f"Median step time {said}.", marks.finish(layers), head, table, ("step_time",))


def _typical(found: Mapping[str, Sequence[Row]]) -> float:
    medians = sorted(row["median"] for rows in found.values() for row in rows if words.finite(row["median"]) is not None)
    return float(medians[len(medians) // 2]) if medians else 0.0


def _summary(rows: Sequence[Row], scale: float, unit: str) -> str:
    medians = sorted(row["median"] for row in rows)
    n = sum(row["n"] for row in rows)
    worst = max(rows, key=lambda row: row["high"])
    return (
        f"{words.number(medians[len(medians) // 2] * scale)} {unit} over {words.number(n)} steps, "
        f"longest {words.number(worst['high'] * scale)} {unit} at step {words.number(worst['high_step'])}"
    )


def _y(title: str, values: Sequence[float], *, zero: bool) -> alt.Y:
    # A few very large values would press the rest flat: a logarithmic axis then.
    ordered = sorted(values) or [0.0]
    wide = ordered[0] > 0 and ordered[-1] > 10 * ordered[len(ordered) // 2]
    if not wide:
        return alt.Y("value:Q", title=title, scale=alt.Scale(zero=zero), axis=alt.Axis(tickCount=5))
    decades = range(math.floor(math.log10(ordered[0])), math.ceil(math.log10(ordered[-1])) + 1)
    ticks = [float(f"{m}e{d}") for d in decades for m in ((1,) if len(decades) > 3 else (1, 3))]
    return alt.Y("value:Q", title=title, scale=alt.Scale(type="log"), axis=alt.Axis(values=ticks, format="~s"))


def _bands(trend: Values, sides: Sequence[str], y: alt.Y, tips: Sequence[alt.Tooltip]) -> list[alt.Chart]:
    if len(trend) == sum(p["n"] for p in trend):  # one step per slice: the line itself is all there is
        return []
    base = marks.chart(trend)
    band = base.mark_area(opacity=0.18).encode(x=marks.step(), y=alt.Y("low:Q"), y2="high:Q", color=marks.colour(sides))
    line = base.mark_line(strokeWidth=2.5).encode(
        x=marks.step(), y=y, color=marks.colour(sides), strokeDash=marks.dash(sides), tooltip=list(tips)
    )
    return [band, line]


def _shading(extra: Marks, sides: Sequence[str]) -> list[alt.Chart]:
    spans = [{"run": s, "low": low, "high": high} for s, (low, high) in extra.steady.items() if s in sides]
    return [marks.shade(spans, sides)] if spans else []


def _onsets(extra: Marks, raw: Values) -> list[alt.Chart]:
    """Onsets inside the picture, with their words on the side that has room."""
    if not extra.onsets or not raw:
        return []
    low, high = min(p["step"] for p in raw), max(p["step"] for p in raw)
    return marks.rules([o | {"left": o["step"] > (low + high) / 2} for o in extra.onsets if low <= o["step"] <= high])


def _thin(rows: Values, most: int = 24) -> Values:
    """At most `most` rows per run, evenly spread."""
    out: Values = []
    for side in dict.fromkeys(row["run"] for row in rows):
        mine = [row for row in rows if row["run"] == side]
        out += mine[:: max(1, -(-len(mine) // most))]
    return out


def loss(data: Data, extra: Marks) -> Figure | None:
    """Loss over steps."""
    return _curve(data, extra, "loss", "Loss")


def grad_norm(data: Data, extra: Marks) -> Figure | None:
    """Gradient norm over steps."""
    return _curve(data, extra, "grad_norm", "Gradient norm")


def _curve(data: Data, extra: Marks, name: str, title: str) -> Figure | None:
    found = {s: [r for r in rows if r["name"] == name] for s, rows in _rows(data, "curve").items()}
    bad = [{"run": s, **r} for s, rows in _rows(data, "nonfinite").items() for r in rows if r["name"] == name]
    raw = [p for side, rows in found.items() for p in _points(side, rows)]
    if not raw and not bad:
        return None
    sides = _sides(data)
    y = _y(title.lower(), [p["value"] for p in raw], zero=False)
    tips = [alt.Tooltip("run:N"), alt.Tooltip("step:Q"), alt.Tooltip("value:Q", title=title.lower())]
    layers: list[alt.Chart] = [
        marks.chart(raw).mark_line(strokeWidth=1.8).encode(
            x=marks.step(), y=y, color=marks.colour(sides), strokeDash=marks.dash(sides), tooltip=tips
        )
    ]  # fmt: skip
    grouped = _nonfinite(bad)
    layers += _crosses(grouped, sides, raw) if grouped else _onsets(extra, raw)
    ends = "; ".join(
        f"{side}: from {words.number(rows[0]['first'])} at step {words.number(rows[0]['step'])} to "
        f"{words.number(rows[-1]['last'])} at step {words.number(rows[-1]['last_step'])}"
        for side, rows in found.items() if rows
    )  # fmt: skip
    broke = "".join(f" {g['run']}: {g['label']} from step {words.number(g['step'])}." for g in grouped)
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
        {"run": run, "step": step, "n": sum(r["n"] for r in rows), "label": f"{value} {words.ranks([r['rank'] for r in rows], 4)}".strip()}
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
    cross = base.mark_point(shape="cross", angle=45, size=90, filled=True, opacity=1).encode(x=marks.step(), y=y, color=marks.colour(sides))
    return [line, cross, *marks.names([g | {"label": f" {g['label']} "} for g in placed])]


def lateness(data: Data, extra: Marks) -> Figure | None:
    """How far each rank was behind the first one; many ranks become a distribution with its outliers named."""
    del extra
    found = _rows(data, "lateness")
    if not found:
        return None
    sides = _sides(data)
    rows = [{"run": s, **r} for s, some in found.items() for r in some if words.finite(r["median"]) is not None]
    many = len({row["rank"] for row in rows}) > 32
    out = _outliers(rows)
    layers, height = (_histogram(rows, out, sides), marks.HEIGHT) if many else _per_rank(rows, sides)
    ordered = sorted(rows, key=lambda row: -row["median"])[:3]
    worst = "; ".join(f"{r['run']}: rank {r['rank']} {words.number(r['median'])} ms" for r in ordered)
    apart = ", ".join(f"rank {r['rank']} ({r['run']})" for r in out)
    named = f" Apart from the others: {apart}." if out else " No rank stands apart."
    shown = sorted(rows, key=lambda row: -row["median"])[:40] if many else rows
    table = [
        (r["run"], str(r["rank"]), words.number(r["median"]), f"{words.number(r['low'])} to {words.number(r['high'])}", words.number(r["n"]))
        for r in shown
    ]
    head = ("run", "rank", "median, ms", "middle 80 %", "n")
    sentence = f"Latest ranks by median: {worst}.{named}"
    return Figure("skew", "Lateness per rank", sentence, marks.finish(layers, height=height), head, table, ("lateness",))


def _outliers(rows: Values) -> Values:
    """Ranks far beyond the quartiles of their run (three interquartile ranges, and at least 1 ms)."""
    out: Values = []
    for side in dict.fromkeys(row["run"] for row in rows):
        mine = sorted((row for row in rows if row["run"] == side), key=lambda row: row["median"])
        low, high = (mine[int(len(mine) * q)]["median"] for q in (0.25, 0.75)) if len(mine) > 3 else (0.0, 0.0)
        fence = high + max(3 * (high - low), 1.0)
        out += [row for row in mine if len(mine) > 3 and row["median"] > fence][-8:]
    return out


def _per_rank(rows: Values, sides: Sequence[str]) -> tuple[list[alt.Chart], int]:
    order = [f"rank {r}" for r in sorted({row["rank"] for row in rows})]
    values = [row | {"who": f"rank {row['rank']}"} for row in rows]
    y = alt.Y("who:N", sort=order, title=None, axis=alt.Axis(grid=False))
    offset = alt.YOffset("run:N", sort=list(sides))
    base = marks.chart(values).encode(y=y, color=marks.colour(sides, ""), **({"yOffset": offset} if len(sides) > 1 else {}))
    x = "ms behind the earliest rank"
    tips = ["run:N", "rank:Q", alt.Tooltip("median:Q", format=".4~g"), alt.Tooltip("low:Q", format=".4~g"), alt.Tooltip("high:Q", format=".4~g"), "n:Q"]
    bar = base.mark_rule(strokeWidth=3, opacity=0.45).encode(x=alt.X("low:Q", title=x), x2="high:Q")
    point = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("median:Q"), tooltip=tips, shape=marks.shape(sides)
    )
    return [bar, point], max(90, len(order) * len(sides) * 15 + 30)


def _histogram(rows: Values, out: Values, sides: Sequence[str]) -> list[alt.Chart]:
    top = max(row["median"] for row in rows) or 1.0
    width = top / 40
    counts: dict[tuple[str, int], int] = {}
    for row in rows:
        key = (row["run"], min(39, int(row["median"] / width)))
        counts[key] = counts.get(key, 0) + 1
    values = [{"run": s, "x": b * width, "x2": (b + 1) * width, "ranks": c} for (s, b), c in counts.items()]
    bars = marks.chart(values).mark_bar(opacity=0.6).encode(
        x=alt.X("x:Q", title="median lateness, ms"), x2="x2:Q", color=marks.colour(sides, "square"), tooltip=["run:N", "x:Q", "ranks:Q"],
        y=alt.Y("ranks:Q", title="ranks", scale=alt.Scale(type="symlog")),
    )  # fmt: skip
    named = [{"run": r["run"], "x": r["median"], "label": f"rank {r['rank']}", "row": 10 + 14 * (i % 8)} for i, r in enumerate(out)]
    word = marks.chart(named).mark_text(align="right", dx=-4, fontWeight="bold").encode(
        x="x:Q", y=alt.Y("row:Q", scale=None, axis=None), text="label:N"
    )  # fmt: skip
    return [bars, word] if named else [bars]


def memory(data: Data, extra: Marks) -> Figure | None:
    """Memory of the kind that grows most, per rank or as the range over ranks, with the fitted slopes."""
    found = _rows(data, "memory_curve")
    if not found:
        return None
    sides = _sides(data)
    kind = _kind(found, extra)
    rows = [{"run": s, **r} for s, some in found.items() for r in some if r["kind"] == kind]
    top = max(row["bytes"] for row in rows)
    unit, scale = next(((u, s) for u, s in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if top >= s), ("B", 1.0))
    values = [{"run": r["run"], "series": r["series"], "step": r["step"], "value": float(f"{r['bytes'] / scale:.7g}")} for r in rows]
    title = f"{kind.replace('_', ' ')}, {unit}"
    lines = marks.chart(values).mark_line(strokeWidth=1.8, opacity=0.9).encode(
        x=marks.step(), y=_y(title, [], zero=False), detail="series:N",
        color=marks.colour(sides), strokeDash=marks.dash(sides), tooltip=["run:N", "series:N", "step:Q", alt.Tooltip("value:Q", title=title)],
    )  # fmt: skip
    ends = [v for i, v in enumerate(values) if i + 1 == len(values) or (values[i + 1]["run"], values[i + 1]["series"]) != (v["run"], v["series"])]
    word = marks.chart(_apart(ends)).mark_text(align="right", dy=-7).encode(x=marks.step(), y="value:Q", text="series:N", color=marks.colour(sides))
    gains = "; ".join(_gain(side, some, kind) for side, some in found.items())
    table = [(v["run"], v["series"], words.number(v["step"]), words.number(v["value"], 5)) for v in _ends(values)]
    return Figure(
        "memory", f"Memory: {kind.replace('_', ' ')}", f"Highest value over time. {gains}.",
        marks.finish([lines, word]), ("run", "ranks", "step", title), table, ("memory_curve",),
    )  # fmt: skip


def _kind(found: Mapping[str, Sequence[Row]], extra: Marks) -> str:
    steep = sorted(extra.slopes.items(), key=lambda item: -item[1])
    kinds = {row["kind"] for rows in found.values() for row in rows}
    return next((kind for (_, kind, _), _ in steep if kind in kinds), min(kinds))


def _gain(side: str, rows: Sequence[Row], kind: str) -> str:
    mine = [row for row in rows if row["kind"] == kind]
    if not mine:
        return f"{side}: none stated"
    first, last = min(mine, key=lambda r: r["step"]), max(mine, key=lambda r: r["step"])
    return f"{side}: {words.size(first['bytes'])} at step {words.number(first['step'])}, {words.size(last['bytes'])} at step {words.number(last['step'])}"


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


ROLES = {"root": ("#D55E00", "diamond"), "symptom": ("#0072B2", "circle"), "cascade": ("#8a8a8a", "triangle-down")}


def timeline(data: Data, extra: Marks) -> Figure | None:
    """What happened on which rank, in seconds from the first cause; one run, the one that failed."""
    del extra
    found = {s: [r for r in rows if r["role"] in ROLES] for s, rows in _rows(data, "timeline").items()}
    side = next((s for s, rows in found.items() if rows), None)
    if side is None:
        return None
    rows = found[side][:300]
    zero = min((r["time"] for r in rows if r["role"] == "root"), default=rows[0]["time"])
    lanes = _lanes(rows)
    values = [
        {"seconds": (r["time"] - zero) / 1e9, "who": _lane(r["rank"], lanes), "role": r["role"], "what": r["kind"],
         "name": words.cut(r["name"] or "", 60), "text": words.cut(r["message"] or "", 120)}
        for r in rows
    ]  # fmt: skip
    names = list(ROLES)
    base = marks.chart(values).mark_point(filled=True, size=90, opacity=0.85)
    points = base.encode(
        x=alt.X("seconds:Q", title="seconds from the first cause"),
        y=alt.Y("who:N", sort=[*(f"rank {r}" for r in lanes), "other ranks", "job"], title=None, axis=alt.Axis(grid=True)),
        color=alt.Color("role:N", scale=alt.Scale(domain=names, range=[ROLES[n][0] for n in names]), legend=alt.Legend(title=None, orient="top")),
        shape=alt.Shape("role:N", scale=alt.Scale(domain=names, range=[ROLES[n][1] for n in names]), legend=alt.Legend(title=None, orient="top")),
        tooltip=["who:N", "seconds:Q", "role:N", "what:N", "name:N", "text:N"],
    )
    firsts = [next(v for v in values if v["role"] == role) for role in names if any(v["role"] == role for v in values)]
    said = "; then ".join(f"{v['what']} {v['name']} on {v['who']} ({v['role']}) at {words.number(v['seconds'])} s" for v in firsts)
    table = [(words.number(v["seconds"]), v["who"], v["role"], f"{v['what']} {v['name']}".strip(), v["text"]) for v in values[:60]]
    head = ("seconds", "who", "role", "what", "text")
    height = max(90, 26 * len({v["who"] for v in values}))
    return Figure("timeline", f"Events across ranks ({side})", f"First of each kind: {said}.", marks.finish([points], height=height), head, table, ("timeline",))


def _lanes(rows: Sequence[Row], most: int = 24) -> list[int]:
    """Ranks with a lane of their own: those with causes first, then by time."""
    order = {"root": 0, "symptom": 1, "cascade": 2}
    ranked = sorted((r for r in rows if r["rank"] is not None), key=lambda r: (order[r["role"]], r["time"]))
    return sorted(dict.fromkeys(int(r["rank"]) for r in ranked[: 10 * most]))[:most] if ranked else []


def _lane(rank: Any, lanes: Sequence[int]) -> str:
    return "job" if rank is None else f"rank {rank}" if rank in lanes else "other ranks"
