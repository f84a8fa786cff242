"""Charts of checkpoints: which shards are whole, and where twin runs part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, queried, rounded
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values

# state -> colour and sign; the sign says the same without colour.
STATES = {
    "complete": ("#009E73", "✓"),
    "damaged": ("#D55E00", "✗"),
    "missing": ("#8a8a8a", "○"),
    "disagrees": ("#CC79A7", "≠"),
    "not finite": ("#E69F00", "!"),
    "differs from its twin": ("#0072B2", "≠"),
}
LINES = 28


def grid(data: Data, extra: Marks) -> Figure | None:
    """Shards by checkpoint; of many shards only those that are not whole in every checkpoint have a line."""
    del extra
    found = queried(data, "checkpoint_grid")[1]
    if not found:
        return None
    cells = [
        _cell(side, row, _differing(data), several=len({r["root"] for r in rows}) > 1)
        for side, rows in found.items()
        for row in rows
    ]
    lines = _lines(cells)
    shown = [cell for cell in cells if cell["line"] in lines]
    order = list(data.sides)
    ordered = sorted(cells, key=lambda c: (order.index(c["run"]), c["step"] or 0, c["column"]))
    columns = list(dict.fromkeys(c["column"] for c in ordered))
    names = [name for name in STATES if any(c["state"] == name for c in shown)]
    scale = alt.Scale(domain=names, range=[STATES[n][0] for n in names])
    base = marks.chart(shown).encode(
        x=alt.X("column:N", sort=columns, title=None, axis=alt.Axis(labelAngle=-30, labelLimit=160)),
        y=alt.Y("line:N", sort=lines, title=None),
    )
    tiles = base.mark_rect(stroke=marks.TEXT, strokeOpacity=0.3, opacity=0.8).encode(
        color=alt.Color("state:N", scale=scale, legend=alt.Legend(title=None, orient="top", symbolType="square")),
        tooltip=["run:N", "column:N", "line:N", "state:N", "source:N", "what:N"],
    )
    signs = base.mark_text(fontSize=12, fontWeight="bold", color="#000").encode(text="sign:N")
    spec = marks.finish([tiles, signs], height=max(60, 20 * len(lines)))
    bad = [c for c in cells if c["state"] != "complete"]
    table = [(c["run"], c["tag"], c["line"], c["state"], c["source"], c["what"]) for c in (bad or cells)[:60]]
    head = ("run", "checkpoint", "shard", "state", "file", "what")
    return Figure(
        "checkpoints",
        "Checkpoints",
        f"{_resume(found)} {_said(cells, bad, lines)}",
        spec,
        head,
        table,
        ("checkpoint_grid", "twin_shards"),
    )


def _differing(data: Data) -> set[tuple[Any, ...]]:
    """Shards that differ in the first checkpoint in which twins do; nothing where the runs are no twins."""
    parted = [row for row in data.paired("twin_divergence") if row["twins"] and row["tag"] is not None]
    if not parted:
        return set()
    return {
        _key(row)
        for row in data.paired("twin_shards")
        if row["differing"] and row["tag"] == parted[0]["tag"] and row["role"] == "optimizer"
    }


def _key(row: Row) -> tuple[Any, ...]:
    return row["tag"], row["role"], row["dp"], row["mp"]


def _cell(side: str, row: Row, differing: set[tuple[Any, ...]], *, several: bool) -> dict[str, Any]:
    state = str(row["state"])
    if state == "complete" and _key(row) in differing:
        state = "differs from its twin"
    spot = ""
    if state not in {"complete", "missing"} and row["end"] is not None:
        at, end = row["offset"], row["end"]
        spot = f"bytes {at} to {end}" if end - at > 1 else f"byte {at}"
    what = "; ".join(filter(None, [words.cut(row["text"] or "", 200), spot]))
    tag = f"{row['root']}/{row['tag']}" if several else row["tag"] or "no tag"
    where = f" ({side})" if side != "run" else ""
    column = ("▶ " if row["resume"] else "") + tag + where
    kind = (row["text"] or "").partition(":")[0] if state == "damaged" else state
    return {
        "run": side, "step": row["step"], "column": words.cut(column, 80), "line": _line(row), "state": state,
        "sign": STATES.get(state, ("", "?"))[1], "source": words.cut(row["source"] or "", 200), "what": what,
        "brief": f"{words.cut(kind or state, 40)}{f' ({spot})' if spot else ''}", "tag": words.cut(tag, 80), "where": where,
    }  # fmt: skip


def _resume(found: Mapping[str, Sequence[Row]]) -> str:
    """Per run and folder: which checkpoint a run can go on from, and whether its tag file leads there."""
    said = []
    for side, rows in found.items():
        where = "" if side == "run" else f" ({side})"
        for root in dict.fromkeys(row["root"] for row in rows):
            here = [row for row in rows if row["root"] == root]
            best = next((row["tag"] for row in here if row["resume"]), None)
            named = next((row for row in here if row["named"]), None)
            text = f"Resume from {words.cut(best, 80)}{where}, the newest complete one (▶)" if best else ""
            text = text or f"No checkpoint in {words.cut(root, 80)}{where} is complete enough to resume from"
            if named and named["tag"] != best:
                state = (
                    "is complete, too"
                    if named["whole"] and best
                    else "is not fit"
                    if named["whole"]
                    else "is not complete"
                )
                text += f"; the tag file names {words.cut(named['tag'], 80)}, which {state}"
            said.append(f"{text}.")
    return " ".join(said[:4])


def _unfit(named: Row, here: Sequence[Row]) -> str:
    if not named["whole"]:
        return "is not complete"
    best = next((row["step"] for row in here if row["resume"]), None)
    older = best is not None and named["step"] is not None and named["step"] < best
    return "is older" if older else "is whole but holds what no run should resume from"


def _line(row: Row) -> str:
    if row["role"] not in {"optimizer", "model", "model_shard"} and row["source"]:
        return words.cut(str(row["source"]).rsplit("/", 1)[-1], 60)
    who = (
        f"rank {row['rank']}"
        if row["rank"] is not None
        else " ".join(f"{k} {row[k]}" for k in ("dp", "mp") if row[k] is not None)
    )
    return f"{row['role']} {who}".strip()


def _lines(cells: Values) -> list[str]:
    """Shards with a line of their own, in their own order."""
    every = list(dict.fromkeys(c["line"] for c in cells))
    if len(every) <= LINES:
        return every
    bad = {c["line"] for c in cells if c["state"] != "complete"}
    return ([line for line in every if line in bad] + [line for line in every if line not in bad][:4])[:LINES]


def _said(cells: Values, bad: Values, lines: Sequence[str]) -> str:
    whole = f"{words.number(len(cells) - len(bad))} of {words.number(len(cells))} shards are whole"
    worst = "; ".join(f"{c['line']} in {c['tag']}{c['where']}: {c['brief']}" for c in bad[:3])
    worst += f"; and {words.number(len(bad) - 3)} more" if len(bad) > 3 else ""
    left = len({c["line"] for c in cells}) - len(lines)
    more = f" {words.number(left)} shards are left out of the picture." if left > 0 else ""
    return f"{whole}{f'; {worst}' if worst else ''}.{more}"


def divergence(data: Data, extra: Marks) -> Figure | None:
    """How far two twin runs are apart, step by step; nothing where they are no twins or never part."""
    del extra
    parted = [row for row in data.paired("twin_divergence") if row["twins"] and row["step"] is not None]
    rows = data.paired("twin_metrics")
    if not parted or not rows:
        return None
    values = [{"metric": r["name"], "step": r["step"], "difference": rounded(r["difference"])} for r in rows]
    names = sorted({r["name"] for r in rows})[:3]
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolSize=400)
    lines = marks.chart([v for v in values if v["metric"] in names]).mark_line(strokeWidth=1.8).encode(
        x=marks.step(), y=alt.Y("difference:Q", title="largest difference over ranks", scale=alt.Scale(type="symlog", constant=0.001), axis=alt.Axis(tickCount=5)),
        color=alt.Color("metric:N", scale=alt.Scale(domain=names, range=["#0072B2", "#D55E00", "#009E73"][: len(names)]), legend=legend),
        strokeDash=alt.StrokeDash("metric:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 3], [2, 2]][: len(names)]), legend=legend),
        tooltip=["metric:N", "step:Q", "difference:Q"],
    )  # fmt: skip
    mark = marks.rules(
        [
            {
                "step": parted[0]["step"],
                "label": "the twins part",
                "left": parted[0]["step"] > rows[len(rows) // 2]["step"],
            }
        ]
    )
    table = [(v["metric"], words.number(v["step"]), words.number(v["difference"])) for v in values if v["difference"]][
        :48
    ]
    said = words.sentence(words.cut(parted[0]["text"] or "", 400))
    head = ("metric", "step", "difference")
    return Figure(
        "twins",
        "Where the twins part",
        f"{said}.",
        marks.finish([lines, *mark]),
        head,
        table,
        ("twin_divergence", "twin_metrics"),
    )
