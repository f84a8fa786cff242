"""Charts over ranks: who was late, and what happened where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, queried
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values


def lateness(data: Data, extra: Marks) -> Figure | None:
    """How far each rank was behind the first one; many ranks become a distribution with its outliers named."""
    del extra
    found = queried(data, "lateness")
    if not found:
        return None
    sides = list(data)
    rows = [
        {"run": s, **r} for s, some in found.items() for r in some if words.finite(r["median"]) is not None
    ]
    many = len({row["rank"] for row in rows}) > 32
    out = _outliers(rows)
    layers, height = (_histogram(rows, out, sides), marks.HEIGHT) if many else _per_rank(rows, sides)
    ordered = sorted(rows, key=lambda row: -row["median"])[:3]
    worst = "; ".join(f"{r['run']}: rank {r['rank']} {words.number(r['median'])} ms" for r in ordered)
    apart = ", ".join(f"rank {r['rank']} ({r['run']})" for r in out)
    named = f" Apart from the others: {apart}." if out else " No rank stands apart."
    shown = sorted(rows, key=lambda row: -row["median"])[:40] if many else rows
    table = [
        (
            r["run"],
            str(r["rank"]),
            words.number(r["median"]),
            f"{words.number(r['low'])} to {words.number(r['high'])}",
            words.number(r["n"]),
        )
        for r in shown
    ]
    head = ("run", "rank", "median, ms", "middle 80 %", "n")
    sentence = f"Latest ranks by median: {worst}.{named}"
    return Figure(
        "skew", "Lateness per rank", sentence, marks.finish(layers, height=height), head, table, ("lateness",)
    )


def _outliers(rows: Values) -> Values:
    """Ranks far beyond the quartiles of their run (three interquartile ranges, and at least 1 ms)."""
    out: Values = []
    for side in dict.fromkeys(row["run"] for row in rows):
        mine = sorted((row for row in rows if row["run"] == side), key=lambda row: row["median"])
        low, high = (
            (mine[int(len(mine) * q)]["median"] for q in (0.25, 0.75)) if len(mine) > 3 else (0.0, 0.0)
        )
        fence = high + max(3 * (high - low), 1.0)
        out += [row for row in mine if len(mine) > 3 and row["median"] > fence][-8:]
    return out


def _per_rank(rows: Values, sides: Sequence[str]) -> tuple[list[alt.Chart], int]:
    order = [f"rank {r}" for r in sorted({row["rank"] for row in rows})]
    values = [row | {"who": f"rank {row['rank']}"} for row in rows]
    y = alt.Y("who:N", sort=order, title=None, axis=alt.Axis(grid=False))
    base = marks.chart(values).encode(y=y, color=marks.colour(sides, ""))
    if len(sides) > 1:
        base = base.encode(yOffset=alt.YOffset("run:N", sort=list(sides)))
    x = "ms behind the earliest rank"
    tips = [
        "run:N",
        "rank:Q",
        alt.Tooltip("median:Q", format=".4~g"),
        alt.Tooltip("low:Q", format=".4~g"),
        alt.Tooltip("high:Q", format=".4~g"),
        "n:Q",
    ]
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
    found = {s: [r for r in rows if r["role"] in ROLES] for s, rows in queried(data, "timeline").items()}
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
    firsts = [
        next(v for v in values if v["role"] == role)
        for role in names
        if any(v["role"] == role for v in values)
    ]
    said = "; then ".join(
        f"{v['what']} {v['name']} on {v['who']} ({v['role']}) at {words.number(v['seconds'])} s"
        for v in firsts
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
