"""Charts of NCCL's transports: by host, pair by pair, and what of it differs between two runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, queried
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values

HOSTS = 24
"""Hosts, or ends of pairs, drawn at most; the rest is in the table and, whole, in the query."""
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442", "#0072B2", "#8a8a8a")
"""Okabe and Ito's palette; a letter in each tile says the same without colour."""


def transports(data: Data, extra: Marks) -> Figure | None:
    """Connections by host and kind of transport, the runs beside each other."""
    del extra
    found = queried(data, "transport_map")[1]
    if not found:
        return None
    changes = data.paired("transport_changes")
    cells = [_cell(side, row) for side, rows in found.items() for row in rows]
    order = list(found)
    hosts = _hosts(cells, {row["kind"] for row in changes})
    shown = [cell for cell in cells if cell["host"] in hosts[:HOSTS]]
    kinds = sorted({str(cell["kind"]) for cell in shown})
    columns = [_column(side, kind, order) for kind in kinds for side in order]
    for cell in shown:
        cell["column"] = _column(str(cell["run"]), str(cell["kind"]), order)
    base = marks.chart(shown).encode(
        x=alt.X("column:N", sort=columns, title=None, axis=alt.Axis(labelAngle=-30, labelLimit=180)),
        y=alt.Y("host:N", sort=hosts[:HOSTS], title=None),
    )
    tiles = base.mark_rect(stroke=marks.TEXT, strokeOpacity=0.3, opacity=0.55).encode(
        color=marks.colour(order, "square"),
        tooltip=["run:N", "host:N", "kind:N", "who:N", "connections:Q"],
    )
    counts = base.mark_text(fontSize=12).encode(text="connections:Q")
    spec = marks.finish([tiles, counts], height=max(60, 24 * min(len(hosts), HOSTS)))
    return Figure(
        "transports", "Over what the hosts talk to each other", _said(cells, hosts, changes), spec,
        ("run", "host", "transport", "ranks", "processes", "connections"), _table(cells),
        ("transport_map", "transport_changes") if changes else ("transport_map",),
    )  # fmt: skip


def _cell(side: str, row: Row) -> dict[str, object]:
    return {
        "run": side, "host": str(row["host"]), "kind": str(row["kind"]), "connections": row["connections"],
        "processes": row["processes"], "who": words.ranks(row["ranks"] or [], 6) if row["ranks"] else "not known",
    }  # fmt: skip


def _column(side: str, name: str, order: Sequence[str]) -> str:
    """The name of a column or line, with its run where there are two."""
    return f"{name} ({side})" if len(order) > 1 else name


def _hosts(cells: Values, differing: set[object]) -> list[str]:
    """Hosts with a transport that differs first, then by name."""
    touched = {str(cell["host"]) for cell in cells if cell["kind"] in differing}
    return sorted({str(cell["host"]) for cell in cells}, key=lambda host: (host not in touched, host))


def _table(cells: Values) -> list[tuple[str, ...]]:
    return [
        (str(c["run"]), str(c["host"]), str(c["kind"]), str(c["who"]), words.number(c["processes"]), words.number(c["connections"]))
        for c in cells[:120]
    ]  # fmt: skip


def _said(cells: Values, hosts: Sequence[str], changes: Sequence[Row]) -> str:
    """What is seen, in words; for two runs what differs between them."""
    kinds = ", ".join(sorted({str(cell["kind"]) for cell in cells}))
    left = f" {words.number(len(hosts) - HOSTS)} hosts are left out of the picture." if len(hosts) > HOSTS else ""
    said = (
        f"NCCL's connections of {words.number(len(hosts))} host{'s' if len(hosts) != 1 else ''} go over {kinds}.{left}"
    )
    if len({cell["run"] for cell in cells}) < 2:  # one side left no such lines: nothing to compare with
        return said
    if not changes:
        return f"{said} Both runs use the same transports in the same numbers."
    moved = "; ".join(
        f"{row['kind']} {words.number(row['before_connections'])} connections of {words.number(row['before_processes'])} "
        f"processes before, {words.number(row['after_connections'])} of {words.number(row['after_processes'])} after"
        for row in changes[:6]
    )
    more = f"; and {len(changes) - 6} more" if len(changes) > 6 else ""
    return f"{said} Different between the runs: {moved}{more}."


def pairs(data: Data, extra: Marks) -> Figure | None:
    """Who talks to whom over what: ranks, or hosts where there are many ranks; the runs below each other."""
    del extra
    found = queried(data, "transport_pairs")[1]
    if not found:
        return None
    told = {side: {(str(row["one"]), str(row["other"])): row for row in rows} for side, rows in found.items()}
    moved, order = _moved(told), list(told)
    ends = _ends(told, moved)
    drawn, differing = set(ends), set(moved)
    used = Counter(_over(row) for rows in told.values() for row in rows.values())
    kinds = [kind for kind, _ in used.most_common()]
    names = {kind: f"{_letter(place)}: {kind}" for place, kind in enumerate(kinds)}
    tiles = [
        {"run": side, "line": _column(side, one, order), "peer": other, "over": names[_over(row)],
         "sign": names[_over(row)].partition(":")[0], "connections": row["connections"]}
        for side, rows in told.items() for ((a, b), row) in rows.items() if drawn.issuperset((a, b))
        for one, other in dict.fromkeys(((a, b), (b, a)))
    ]  # fmt: skip
    lines = [_column(side, end, order) for side in told for end in ends]
    base = marks.chart(tiles).encode(
        x=alt.X("peer:N", sort=ends, title=None, axis=alt.Axis(labelAngle=-45, labelLimit=120, orient="top")),
        y=alt.Y("line:N", sort=lines, title=None, axis=alt.Axis(labelLimit=180)),
    )
    scale = alt.Scale(
        domain=[names[kind] for kind in kinds], range=[COLOURS[place % len(COLOURS)] for place in range(len(kinds))]
    )
    colour = alt.Color(
        "over:N", scale=scale, legend=alt.Legend(title=None, orient="top", symbolType="square", columns=3)
    )
    rects = base.mark_rect(stroke=marks.TEXT, strokeOpacity=0.3, opacity=0.8).encode(
        color=colour, tooltip=["run:N", "line:N", "peer:N", "over:N", "connections:Q"]
    )
    signs = base.mark_text(fontSize=11, color="#000").encode(text="sign:N")
    spec = marks.finish([rects, signs], height=max(60, 18 * len({tile["line"] for tile in tiles})))
    table = [
        (side, a, b, _over(row), words.number(row["connections"]))
        for side, rows in told.items() for (a, b), row in sorted(rows.items(), key=lambda item: item[0] not in differing)
    ]  # fmt: skip
    return Figure(
        "transport-pairs", "Who talks to whom over what", _pairs_said(told, moved, ends), spec,
        ("run", "one end", "other end", "transport", "connections"), table[:120], ("transport_pairs",),
    )  # fmt: skip


Told: TypeAlias = Mapping[str, Mapping[tuple[str, str], Row]]


def _moved(told: Told) -> list[tuple[str, str]]:
    """Pairs that both runs connect, over other transports."""
    if len(told) < 2:
        return []
    before, after = told.values()
    return [pair for pair in before if pair in after and _over(before[pair]) != _over(after[pair])]


def _ends(told: Told, moved: Sequence[tuple[str, str]]) -> list[str]:
    """Ends that are drawn: those of a pair that differs first, then in the order of the query, up to HOSTS of them."""
    places = {
        str(row[end]): row[f"{end}_rank"] for rows in told.values() for row in rows.values() for end in ("one", "other")
    }
    touched = {end for pair in moved for end in pair}
    order = sorted(places, key=lambda end: (places[end] is None, places[end] or 0, end))
    kept = set(sorted(order, key=lambda end: end not in touched)[:HOSTS])
    return [end for end in order if end in kept]


def _over(row: Row) -> str:
    return " + ".join(row["kinds"])


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else str(place)


def _pairs_said(told: Told, moved: Sequence[tuple[str, str]], ends: Sequence[str]) -> str:
    every = {end for rows in told.values() for pair in rows for end in pair}
    counted = " and ".join(
        f"{words.number(len(rows))} pairs{f' ({side})' if len(told) > 1 else ''}" for side, rows in told.items()
    )
    left = (
        f" {words.number(len(every) - len(ends))} ends are left out of the picture." if len(every) > len(ends) else ""
    )
    said = f"NCCL connects {counted}.{left}"
    if len(told) < 2:
        return said
    if not moved:
        return f"{said} No pair that both runs connect uses another transport after."
    before, after = told.values()
    ways: dict[str, list[str]] = {}
    for one, other in moved:
        way = f"{_over(before[one, other])} before, {_over(after[one, other])} after"
        ways.setdefault(way, []).append(f"{one} and {other}")
    named = "; ".join(
        f"{way}: {', '.join(which[:3])}{f' and {len(which) - 3} more pairs' if len(which) > 3 else ''}"
        for way, which in sorted(ways.items(), key=lambda item: -len(item[1]))[:4]
    )
    return f"{said} Over another transport, of those in both: {words.number(len(moved))}. {named}."
