"""Matched records -> rows of tables, column by column: casts, units, one row per printed value."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from postmortem import schema
from postmortem.formats import LONG, REST, SIZE, UNITS, Emit, Pattern, names

CARRIED = ("line", "part", "time", "clock", "rank", "local_rank", "task", "host", "pid", "attempt", "after_step")
"""Columns of a record that its rows take over, where their table has them."""
_NANOSECONDS = {"ns", "us", "ms", "s", "min", "h"}
_UNIT_TAIL = r"[_ ]\(?(ns|us|ms|s|sec|gb|gib|mb|mib|kb|bytes)\)?$"
_TAIL_UNITS = {"sec": "s", "gb": "GB", "gib": "GiB", "mb": "MB", "mib": "MiB", "kb": "KB"}


def rows(pattern: Pattern, matched: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (table, rows) for records that a pattern matched.

    Args:
        pattern: the pattern.
        matched: columns of CARRIED, `text`, and `capture.<name>` (text) for every capture.
    """
    for emit in pattern.emit:
        if emit.table in LONG:
            yield from _long(emit, matched, pattern)
        else:
            yield emit.table, _wide(emit, matched, pattern)


def _wide(emit: Emit, matched: pl.DataFrame, pattern: Pattern) -> pl.DataFrame:
    columns = _shared(emit, pattern)
    if emit.table == "event":
        columns.setdefault("message", pl.col("text"))
        columns["role"] = pl.lit(emit.set.get("role", pattern.role))
        known = {c.name for c in schema.tables()[emit.table].columns}
        further = [c for c in pattern.captures if c not in known and c != REST]
        if further:
            columns["detail"] = pl.struct(_detail(emit, c) for c in further).struct.json_encode()
    return matched.select(**columns)


def _detail(emit: Emit, capture: str) -> pl.Expr:
    value = pl.col(f"capture.{capture}")
    if unit := emit.units.get(capture):
        value = amount(value, unit).round().cast(pl.Int64, strict=False)
    return value.alias(capture)


def _shared(emit: Emit, pattern: Pattern) -> dict[str, pl.Expr]:
    """Carried columns, captures named like a column, constants; the later overrule the earlier."""
    types = {c.name: c.type for c in schema.tables()[emit.table].columns}
    columns = {c: pl.col(c) for c in CARRIED if c in types}
    if "clock" not in types:  # nothing would say that the year is missing
        columns["time"] = pl.when(pl.col("clock") != "day").then("time")
    for capture in pattern.captures:
        if capture in types and capture not in emit.values and not (emit.table in LONG and capture in LONG[emit.table]):
            stated = _cast(pl.col(f"capture.{capture}"), types[capture], emit.units.get(capture, ""))
            columns[capture] = pl.coalesce(stated, columns[capture]) if capture in columns else stated
    columns |= {c: pl.lit(v) for c, v in emit.set.items()}
    return columns


def _cast(text: pl.Expr, kind: str, unit: str) -> pl.Expr:
    if kind in ("int32", "int64"):
        whole = pl.Int32 if kind == "int32" else pl.Int64
        if unit:
            return amount(text, unit).round().cast(pl.Int64, strict=False)
        return text.str.strip_chars().cast(whole, strict=False)
    return number(text) if kind == "float64" else text


def number(text: pl.Expr) -> pl.Expr:
    """Text -> Float64, with nan and inf in any case; null for what is no number."""
    return text.str.strip_chars().str.to_lowercase().cast(pl.Float64, strict=False)


def amount(text: pl.Expr, unit: str) -> pl.Expr:
    """Text -> Float64 in ns or B. A size states its own unit; what cannot be (2 EiB and more) is null."""
    if unit != SIZE:
        return number(text) * UNITS[unit]
    value = number(text.str.extract(r"([\d.]+)", 1))
    factor = text.str.extract(r"[\d.]+ ?([KMGTPE]i?B|kB|B|bytes)\b", 1).replace_strict(UNITS, default=1.0, return_dtype=pl.Float64)
    # A process that "has 17179869184.00 GiB in use" is an underflow upstream.
    return pl.when(value * factor < 2.0**61).then(value * factor)


def _long(emit: Emit, matched: pl.DataFrame, pattern: Pattern) -> Iterator[tuple[str, pl.DataFrame]]:
    shared = _shared(emit, pattern)
    parts = []
    for capture, name in emit.values.items():
        value = pl.col(f"capture.{capture}")
        part = matched.filter(value.is_not_null())
        parts.append(part.select(**shared, name_=pl.lit(name), value_=value, unit_=pl.lit(emit.units.get(capture, ""))))
    if emit.pairs:
        rest = f"capture.{REST}" if REST in pattern.captures else "text"
        parts.append(_pairs(emit, matched.select(**shared, rest_=pl.col(rest))))
    table = pl.concat(parts) if parts else matched.clear().select(**shared)
    if not table.is_empty():
        yield from _finished(emit.table, table)


def _pairs(emit: Emit, matched: pl.DataFrame) -> pl.DataFrame:
    found = matched.with_columns(pl.col("rest_").str.extract_all(emit.pairs)).explode("rest_", keep_nulls=True, empty_as_null=True)
    found = found.filter(pl.col("rest_").is_not_null())
    groups = found.select(pl.col("rest_").str.extract_groups(emit.pairs)).unnest("rest_")
    unit = pl.lit(emit.unit)
    if "unit" in groups.columns:
        unit = pl.coalesce(groups["unit"], unit)
    return found.drop("rest_").with_columns(name_=groups["name"], value_=groups["value"], unit_=unit)


def plain(name: pl.Expr) -> pl.Expr:
    """A spelling in lower case, with one underscore for every run of other characters."""
    return name.str.to_lowercase().str.replace_all(r"[^a-z0-9]+", "_").str.strip_chars("_")


def _finished(table: str, found: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Name and convert the values of a long table; memory that was printed among metrics moves to its table."""
    if table == "metric":
        memory, found = _memory_among(found)
        if not memory.is_empty():
            yield "memory", memory
        name = plain(pl.col("name_"))
        seconds = {u: UNITS[u] / 1e9 for u in _NANOSECONDS}
        factor = pl.col("unit_").replace_strict(seconds, default=1.0, return_dtype=pl.Float64)
        columns = {"name": name.replace(names()["metric"]), "value": number(pl.col("value_")) * factor, "text": pl.col("value_")}
        found = found.with_columns(**columns).filter(pl.col("value").is_not_null())
        yield table, found.drop("name_", "value_", "unit_").unique(["line", "part", "name"], keep="last", maintain_order=True)
        return
    name_column, value_column = LONG[table]
    if table in ("phase_time", "memory"):
        factor = pl.col("unit_").replace_strict(UNITS, default=1.0, return_dtype=pl.Float64)
        value = (number(pl.col("value_")) * factor).round().cast(pl.Int64, strict=False)
        known = names()["phase" if table == "phase_time" else "memory"]
        name = plain(pl.col("name_")).replace(known)
    else:
        value = pl.col("value_").str.strip_chars()
        if table == "config":
            value = value.map_elements(json.dumps, return_dtype=pl.String)
        name = pl.col("name_").str.strip_chars()
    found = found.with_columns(name.alias(name_column), value.alias(value_column)).filter(pl.col(value_column).is_not_null())
    yield table, found.drop("name_", "value_", "unit_")


def _memory_among(found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split metrics such as rss_gb=0.41 off: (rows of memory, the other rows)."""
    known = {s: k for s, k in names()["memory"].items()}
    spelling = plain(pl.col("name_"))
    stem = spelling.str.replace(_UNIT_TAIL, "")
    tail = spelling.str.extract(_UNIT_TAIL, 1)
    unit = pl.when(pl.col("unit_").is_in(["B", "KB", "MB", "GB", "KiB", "MiB", "GiB", "TB"])).then(pl.col("unit_")).otherwise(tail.replace(_TAIL_UNITS))
    factor = unit.replace_strict({u: f for u, f in UNITS.items() if u not in _NANOSECONDS and u}, default=None, return_dtype=pl.Float64)
    marked = found.with_columns(
        kind=stem.replace_strict(known, default=None, return_dtype=pl.String),
        bytes=(number(pl.col("value_")) * factor).round().cast(pl.Int64, strict=False),
    )
    is_memory = pl.col("kind").is_not_null() & pl.col("bytes").is_not_null()
    keep = [c.name for c in schema.tables()["memory"].columns if c.name in marked.columns]
    return marked.filter(is_memory).select(keep), marked.filter(~is_memory).drop("kind", "bytes")
