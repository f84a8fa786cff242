"""Charts of what time and ranks were spent on: phases of a step, progress in process groups, who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, queried
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values


def phases(data: Data, extra: Marks) -> Figure | None:
    """Mean time per phase of a step, the runs beside each other."""
    del extra
    query, found = queried(data, "step_phases", "step_timers")
    if not found:
        return None
    sides = list(data.sides)
    rows = [{"run": s, **r, "ms": float(f"{r['ms']:.5g}")} for s, some in found.items() for r in some]
    order = list(dict.fromkeys(r["phase"] for r in sorted(rows, key=lambda r: -r["ms"])))
    base = marks.chart([dict(r) for r in rows]).encode(
        x=alt.X("ms:Q", title="ms per step"),
        y=alt.Y("phase:N", sort=order, title=None, axis=alt.Axis(grid=False)),
        color=marks.colour(sides, "square"),
        tooltip=["run:N", "phase:N", "ms:Q", "n:Q"],
    )
    if len(sides) > 1:
        base = base.encode(yOffset=alt.YOffset("run:N", sort=sides))
    bars = [base.mark_bar(opacity=0.85)]
    said = "; ".join(f"{words.of(s)}{', '.join(f'{_phase(r)}' for r in some[:3])}" for s, some in found.items())
    table = [(r["run"], r["phase"], words.number(r["ms"]), words.number(r["n"])) for r in rows]
    title = "Where the time of a step goes" if query == "step_phases" else "The framework's own timers"
    spec = marks.finish(bars, height=max(80, 15 * len(order) * len(sides) + 20))
    return Figure(
        "phases",
        title,
        f"Longest phases, {said}.",
        spec,
        ("run", "phase", "ms per step", "n"),
        table,
        (query,),
    )


def _phase(row: Row) -> str:
    return f"{row['phase']} {words.number(row['ms'])} ms"


def progress(data: Data, extra: Marks) -> Figure | None:
    """Last collective that every rank enqueued and completed, in the group where they stand apart most."""
    del extra
    found = queried(data, "collective_progress")[1]
    side, rows = _hung(found)
    if side is None:
        return None
    shown, note = _most_apart(rows)
    values = [
        {"who": f"rank {r['rank']}", "what": what, "sequence": r[what], "rank": r["rank"]}
        for r in shown for what in ("completed", "enqueued") if r[what] is not None
    ]  # fmt: skip
    names = ["completed", "enqueued"]
    legend = alt.Legend(title=None, orient="top")
    scale = alt.Scale(domain=names, range=[marks.COLOURS["after"], marks.COLOURS["before"]])
    ticks = _whole([int(v["sequence"]) for v in values])
    points = (
        marks.chart(values)
        .mark_point(filled=True, size=80, opacity=0.85)
        .encode(
            x=alt.X(
                "sequence:Q",
                title="number of the collective",
                scale=alt.Scale(zero=False),
                axis=ticks,
            ),
            y=alt.Y("who:N", sort=[f"rank {r['rank']}" for r in shown], title=None, axis=alt.Axis(grid=True)),
            color=alt.Color("what:N", scale=scale, legend=legend),
            shape=alt.Shape("what:N", scale=alt.Scale(domain=names, range=["circle", "triangle-right"]), legend=legend),
            tooltip=["who:N", "what:N", "sequence:Q"],
        )
    )
    others = [r for r in found[side] if r["group_name"] != rows[0]["group_name"]]
    table = [
        (words.cut(r["group_name"], 60), str(r["rank"]), words.number(r["enqueued"]), words.number(r["completed"]))
        for r in [*rows, *others][:128]
    ]
    title = f"How far the ranks got in group {words.cut(rows[0]['group_name'], 60)}" + (
        f" ({side})" if side != "run" else ""
    )
    spec = marks.finish([points], height=max(80, 18 * len(shown) + 20))
    head = ("group", "rank", "last enqueued", "last completed")
    return Figure("progress", title, f"{_behind(rows)}{note}", spec, head, table, ("collective_progress",))


def _whole(numbers: Sequence[int]) -> alt.Axis:
    low, high = min(numbers), max(numbers)
    return alt.Axis(format="d", values=list(range(low, high + 1))) if high - low <= 12 else alt.Axis(format="d")


def _hung(found: dict[str, Sequence[Row]]) -> tuple[str | None, Sequence[Row]]:
    """The first side whose ranks stand apart, and its widest group."""
    for side, rows in found.items():
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row["group_name"], []).append(row)
        widest = max(groups.values(), key=_spread)
        if _spread(widest) > 0:
            return side, widest
    return None, ()


def _spread(rows: Sequence[Row]) -> int:
    known = [r["enqueued"] for r in rows if r["enqueued"] is not None]
    return max(known) - min(known) if known else 0


def _most_apart(rows: Sequence[Row], most: int = 24) -> tuple[list[Row], str]:
    """At most `most` ranks: those that stand furthest behind, and a few of the others."""
    if len(rows) <= most:
        return list(rows), ""
    top = max(r["enqueued"] for r in rows if r["enqueued"] is not None)
    late = [r for r in rows if r["enqueued"] is not None and r["enqueued"] < top][: most - 4]
    level = [r for r in rows if r["enqueued"] == top][:4]
    kept = sorted([*late, *level], key=lambda r: r["rank"])
    return kept, f" {words.number(len(rows) - len(kept))} of the ranks are left out of the picture."


def _behind(rows: Sequence[Row]) -> str:
    known = [r for r in rows if r["enqueued"] is not None]
    top = max(r["enqueued"] for r in known)
    late = [r["rank"] for r in known if r["enqueued"] < top]
    unknown = [r["rank"] for r in rows if r["enqueued"] is None]
    said = (
        f"{words.number(len(known) - len(late))} of {words.number(len(rows))} ranks enqueued number {words.number(top)}"
    )
    said += f"; {words.ranks(late)} did not." if late else "."
    return said + (f" Nothing is known of {words.ranks(unknown)}." if unknown else "")


def waits(data: Data, extra: Marks) -> Figure | None:
    """Who waits for whom: waiting ranks on the left, the rank that they wait for on the right."""
    del extra
    found = queried(data, "waits")[1]
    side = next(iter(found), None)
    if side is None:
        return None
    rows = list(found[side])[:14]
    edges = [_edge(i, row) for i, row in enumerate(rows)]
    layers = _arrows(edges)
    said = "; ".join(f"{e['left']} for {e['right']} in {e['word']}" for e in edges[:4])
    table = [
        (words.ranks(r["waiters"]), f"rank {r['blocker']}", _operation(r), str(r["reason"]), "known" if r["known"] else "possible")
        for r in found[side][:60]
    ]  # fmt: skip
    title = "Who waits for whom" + (f" ({side})" if side != "run" else "")
    spec = marks.finish(layers, height=max(70, 34 * len(edges) + 10))
    return Figure(
        "waits",
        title,
        f"Waiting: {said}.",
        spec,
        ("who waits", "for", "in", "because", "certainty"),
        table,
        ("waits",),
    )


def _edge(place: int, row: Row) -> dict[str, object]:
    return {
        "y": place, "left": words.ranks(row["waiters"], 6), "right": f"rank {row['blocker']}", "a": 0.4, "b": 0.85,
        "word": f"{_operation(row)}: {row['reason']}", "known": "known" if row["known"] else "possible",
    }  # fmt: skip


def _operation(row: Row) -> str:
    number = f" {row['seq']}" if row["seq"] is not None else ""
    return f"{words.cut(row['operation'] or 'an operation', 60)}{number}"


def _arrows(edges: Values) -> list[alt.Chart]:
    x = alt.X("a:Q", scale=alt.Scale(domain=[0, 1]), axis=None)
    end = alt.X("b:Q", scale=alt.Scale(domain=[0, 1]), axis=None)
    y = alt.Y("y:O", axis=None)
    names = ["known", "possible"]
    dashes = alt.StrokeDash(
        "known:N",
        scale=alt.Scale(domain=names, range=[[1, 0], [4, 4]]),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = marks.chart(edges)
    line = base.mark_rule(color=marks.COLOURS["before"], strokeWidth=2).encode(x=x, x2="b:Q", y=y, strokeDash=dashes)
    head = base.mark_point(
        shape="triangle-right", filled=True, size=110, color=marks.COLOURS["before"], opacity=1
    ).encode(x=end, y=y)
    left = base.mark_text(align="right", dx=-6, fontSize=12).encode(x=x, y=y, text="left:N")
    right = base.mark_text(align="left", dx=10, fontSize=12, fontWeight="bold").encode(x=end, y=y, text="right:N")
    word = base.mark_text(align="left", dy=-9, dx=4).encode(x=x, y=y, text="word:N")
    return [line, head, left, right, word]
