"""Chart of the transports over which NCCL connects the ranks of each host, and what of it differs between two runs."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from postmortem.report import marks, words
from postmortem.report.charts import Figure, Marks, queried
from postmortem.report.data import Data, Row
from postmortem.report.marks import Values

HOSTS = 24
"""Hosts drawn at most; the rest is in the table and, whole, in the query."""


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


def _column(side: str, kind: str, order: Sequence[str]) -> str:
    return f"{kind} ({side})" if len(order) > 1 else kind


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
