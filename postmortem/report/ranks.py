"""Charts over ranks: who was late, and what happened where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, queried, typical_step
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values

MANY = 32
"""Ranks that still have a line each; more become a distribution."""
_MEASURES = {  # query -> title, what the axis counts
    "lateness": ("Who made the job wait", "ms per step that the job waited for this rank alone"),
    "lateness_printed": ("Step time beyond the fastest rank's", "ms longer than the fastest rank"),
}


def lateness(data: Data, extra: Marks) -> Figure | None:
    """How much later or slower each rank was; many ranks become a distribution with its outliers named."""
    del extra
    query, found = queried(data, "lateness", "lateness_printed")
    if not found:
        return None
    title, axis = _MEASURES[query]
    sides = list(data.sides)
    rows = [{"run": s, **r} for s, some in found.items() for r in some if words.finite(r["median"]) is not None]
    many = len({row["rank"] for row in rows}) > MANY
    out = _outliers(rows, 0.15 * typical_step(data))
    layers, height = (_histogram(rows, out, sides, axis), marks.HEIGHT) if many else _per_rank(rows, sides, axis)
    ordered = sorted(rows, key=lambda row: -row["median"])
    table = [
        (r["run"], _name(r["rank"]), words.number(r["median"]), f"{words.number(r['low'])} to {words.number(r['high'])}",
         words.number(r["times_last"]), words.number(r["n"]))
        for r in ordered[:40]
    ]  # fmt: skip
    head = ("run", "rank", "median, ms", "middle 80 %", "steps as the last", "n")
    spec = marks.finish(layers, height=height)
    return Figure("ranks", title, _latest(ordered, out), spec, head, table, (query,))


def _latest(ordered: Values, out: Values) -> str:
    most = "; ".join(f"{_who(r)} {words.number(r['median'])} ms (n = {words.number(r['n'])})" for r in ordered[:3])
    apart = ", ".join(map(_who, out))
    return f"Highest medians: {most}. " + (f"Apart from the others: {apart}." if out else "No rank stands apart.")


def _who(row: Row) -> str:
    return _name(row["rank"]) + (f" ({row['run']})" if row["run"] != "run" else "")


def _name(rank: Any) -> str:
    return "rank not known" if rank is None else f"rank {rank}"


def _outliers(rows: Values, least: float) -> Values:
    """Ranks beyond the quartiles of their run by three interquartile ranges, and by `least` ms."""
    out: Values = []
    for side in dict.fromkeys(row["run"] for row in rows):
        mine = sorted((row for row in rows if row["run"] == side), key=lambda row: row["median"])
        if len(mine) > 3:
            low, high = mine[len(mine) // 4]["median"], mine[-(len(mine) // 4) - 1]["median"]
            fence = high + max(3 * (high - low), least, 1.0)
            out += [row for row in mine if row["median"] > fence][-8:]
    return out


def _per_rank(rows: Values, sides: Sequence[str], axis: str) -> tuple[list[alt.Chart], int]:
    order = [_name(r) for r in sorted({row["rank"] for row in rows}, key=lambda r: -1 if r is None else r)]
    values = [row | {"who": _name(row["rank"])} for row in rows]
    y = alt.Y("who:N", sort=order, title=None, axis=alt.Axis(grid=False))
    base = marks.chart(values).encode(y=y, color=marks.colour(sides, ""))
    if len(sides) > 1:
        base = base.encode(yOffset=alt.YOffset("run:N", sort=list(sides)))
    tips = [
        "run:N",
        "rank:Q",
        alt.Tooltip("median:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
        "n:Q",
    ]
    bar = base.mark_rule(strokeWidth=3, opacity=0.45).encode(x=alt.X("low:Q", title=axis), x2="high:Q")
    point = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X("median:Q"), tooltip=tips, shape=marks.shape(sides)
    )
    return [bar, point], max(90, len(order) * len(sides) * 15 + 30)


def _histogram(rows: Values, out: Values, sides: Sequence[str], axis: str) -> list[alt.Chart]:
    top = max(row["median"] for row in rows) or 1.0
    width = top / 40
    counts: dict[tuple[str, int], int] = {}
    for row in rows:
        key = (row["run"], min(39, int(row["median"] / width)))
        counts[key] = counts.get(key, 0) + 1
    values = [{"run": s, "x": b * width, "x2": (b + 1) * width, "ranks": c, "none": 0} for (s, b), c in counts.items()]
    bars = marks.chart(values).mark_bar(opacity=0.6).encode(
        x=alt.X("x:Q", title=f"{axis}, median"), x2="x2:Q", color=marks.colour(sides, "square"), tooltip=["run:N", "x:Q", "ranks:Q"],
        y=alt.Y("ranks:Q", title="ranks", scale=alt.Scale(type="symlog")), y2="none:Q",
    )  # fmt: skip
    named = [
        {"run": r["run"], "x": r["median"], "label": f"rank {r['rank']}", "row": 10 + 14 * (i % 8)}
        for i, r in enumerate(out)
    ]
    word = marks.chart(named).mark_text(align="right", dx=-4, fontWeight="bold").encode(
        x="x:Q", y=alt.Y("row:Q", scale=None, axis=None), text="label:N"
    )  # fmt: skip
    return [bars, word] if named else [bars]


ROLES = {
    "root": ("#D55E00", "diamond"),
    "symptom": ("#0072B2", "circle"),
    "cascade": ("#8a8a8a", "triangle-down"),
}


def timeline(data: Data, extra: Marks) -> Figure | None:
    """What happened on which rank, in seconds from the first cause; one run, the one that failed."""
    del extra
    found = {s: [r for r in rows if r["role"] in ROLES] for s, rows in queried(data, "timeline")[1].items()}
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
        y=alt.Y(
            "who:N",
            sort=[*(f"rank {r}" for r in lanes), "other ranks", "job"],
            title=None,
            axis=alt.Axis(grid=True),
        ),
        color=alt.Color(
            "role:N",
            scale=alt.Scale(domain=names, range=[ROLES[n][0] for n in names]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        shape=alt.Shape(
            "role:N",
            scale=alt.Scale(domain=names, range=[ROLES[n][1] for n in names]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=["who:N", "seconds:Q", "role:N", "what:N", "name:N", "text:N"],
    )
    firsts = [next(v for v in values if v["role"] == role) for role in names if any(v["role"] == role for v in values)]
    said = "; then ".join(
        f"{v['what']} {v['name']} on {v['who']} ({v['role']}) at {words.number(v['seconds'])} s" for v in firsts
    )
    table = [
        (words.number(v["seconds"]), v["who"], v["role"], f"{v['what']} {v['name']}".strip(), v["text"])
        for v in values[:60]
    ]
    head = ("seconds", "who", "role", "what", "text")
    height = max(90, 26 * len({v["who"] for v in values}))
    return Figure(
        "timeline",
        f"Events across ranks ({side})",
        f"First of each kind: {said}.",
        marks.finish([points], height=height),
        head,
        table,
        ("timeline",),
    )


def _lanes(rows: Sequence[Row], most: int = 24) -> list[int]:
    """Ranks with a lane of their own: those with causes first, then by time."""
    order = {"root": 0, "symptom": 1, "cascade": 2}
    ranked = sorted((r for r in rows if r["rank"] is not None), key=lambda r: (order[r["role"]], r["time"]))
    return sorted(dict.fromkeys(int(r["rank"]) for r in ranked[: 10 * most]))[:most] if ranked else []


def _lane(rank: Any, lanes: Sequence[int]) -> str:
    return "job" if rank is None else f"rank {rank}" if rank in lanes else "other ranks"
