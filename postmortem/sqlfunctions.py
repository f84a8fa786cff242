"""The functions of stats that queries may call, by their SQL names. Lists come in, structs go out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from postmortem.waits import cycle_ranks

if TYPE_CHECKING:
    import duckdb

_CHANGE = "STRUCT(place BIGINT, before DOUBLE, after DOUBLE, ratio DOUBLE, transient BOOLEAN, lasts BOOLEAN)[]"
_GROWTH = (
    "STRUCT(kind VARCHAR, slope DOUBLE, low DOUBLE, high DOUBLE, n BIGINT, rise DOUBLE, why VARCHAR, "
    "first_half_slope DOUBLE, second_half_slope DOUBLE)"
)
_GROWTH_FIELDS = ("kind", "slope", "low", "high", "n", "rise", "why", "first_half_slope", "second_half_slope")
_SPIKE = "STRUCT(place BIGINT, peak BIGINT, recovered BIGINT, baseline DOUBLE, highest DOUBLE, kind VARCHAR)[]"


# pdsh, syslog and NCCL cut a host's name at its first dot, hostfiles and torchrun's tables do not. No name for an address.
_HOST_NAME = r"""CREATE OR REPLACE TEMP MACRO host_name(host) AS
CASE WHEN NOT regexp_matches(host, '^[\d.]+$|:|^localhost$') THEN lower(split_part(host, '.', 1)) END"""


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the statistics callable from SQL on `connection`.

    change_points(DOUBLE[]) finds lasting changes of level; `place` counts from 1, as lists do in SQL.
    growth(DOUBLE[]) judges whether a series grows: growing, flat or undecided, with its slope per entry.
    spikes(DOUBLE[]) finds rises of a loss curve and whether it came back.
    warm_up(DOUBLE[]) is the number of leading entries before the series is steady.
    host_name(VARCHAR) is a host's name without its domain, null for an address.
    wait_cycles(INTEGER[], INTEGER[]) lists the ranks that wait for each other in a circle, given who waits for whom.
    """
    functions: list[tuple[str, Callable[..., Any], str]] = [
        ("change_points", _change_points, _CHANGE),
        ("growth", _growth, _GROWTH),
        ("spikes", _spikes, _SPIKE),
        ("warm_up", _warm_up, "BIGINT"),
    ]
    for name, function, returned in functions:
        connection.create_function(name, function, ["DOUBLE[]"], returned)
    connection.execute(_HOST_NAME)
    connection.create_function("wait_cycles", cycle_ranks, ["INTEGER[]", "INTEGER[]"], "INTEGER[]")


def _change_points(values: Sequence[float]) -> list[dict[str, Any]]:
    from postmortem.stats import change_points  # noqa: PLC0415 (scipy takes 0.7 s to import)

    return [
        {
            "place": p.index + 1,
            "before": p.before,
            "after": p.after,
            "ratio": p.ratio,
            "transient": p.transient,
            "lasts": p.lasts,
        }
        for p in change_points(values)
    ]


def _growth(values: Sequence[float]) -> dict[str, Any]:
    from postmortem.stats import growth  # noqa: PLC0415

    found = growth(values)
    return {name: getattr(found, name) for name in _GROWTH_FIELDS}


def _spikes(values: Sequence[float]) -> list[dict[str, Any]]:
    from postmortem.stats import spikes  # noqa: PLC0415

    return [
        {
            "place": s.start + 1, "peak": s.peak + 1, "recovered": None if s.recovered is None else s.recovered + 1,
            "baseline": s.baseline, "highest": s.highest, "kind": s.kind,
        }
        for s in spikes(values)
    ]  # fmt: skip


def _warm_up(values: Sequence[float]) -> int:
    from postmortem.stats import warm_up  # noqa: PLC0415

    return warm_up(values)
