"""Matched records -> rows of tables, column by column: casts, units, one row per printed value."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import polars as pl

from postmortem import schema
from postmortem.formats import LONG, REST, SIZE, UNITS, Emit, Pattern, names

CARRIED = ("line", "part", "time", "clock", "rank", "local_rank", "task", "host", "pid", "attempt", "after_step")
"""Columns of a record that its rows take over, where their table has them."""
_NANOSECONDS = {"ns", "us", "ms", "s", "min", "h"}
_SIZES = {"B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}
_UNIT_TAIL = re.compile(r"_(gb|gib|mb|mib|kb|kib|bytes)$")
_TAIL_UNITS = {"gb": "GB", "gib": "GiB", "mb": "MB", "mib": "MiB", "kb": "KB", "kib": "KiB", "bytes": "bytes"}


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
        further = [c for c in pattern.captures if _stem(c, known) not in known and c != REST]
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
        name = _stem(capture, types)
        if name in types and capture not in emit.values and not (emit.table in LONG and name in LONG[emit.table]):
            stated = _cast(pl.col(f"capture.{capture}"), types[name], emit.units.get(capture, ""))
            columns[name] = pl.coalesce(stated, columns[name]) if name in columns else stated
    columns |= {c: pl.lit(v) for c, v in emit.set.items()}
    return columns


def _stem(capture: str, columns: Collection[str]) -> str:
    """The column that a capture fills: host_2 is a second place where a regex may find the host."""
    stem = capture.rstrip("0123456789").removesuffix("_")
    return stem if stem in columns else capture


def _cast(text: pl.Expr, kind: str, unit: str) -> pl.Expr:
    if kind in ("int32", "int64"):
        whole = pl.Int32 if kind == "int32" else pl.Int64
        if unit:
            return amount(text, unit).round().cast(pl.Int64, strict=False)
        return text.str.strip_chars().cast(whole, strict=False)
    return number(text) if kind == "float64" else text


def number(text: pl.Expr) -> pl.Expr:
    """Text -> Float64, with nan and inf in any case; null for what is no number."""
    return text.str.strip_chars().cast(pl.Float64, strict=False)


def amount(text: pl.Expr, unit: str) -> pl.Expr:
    """Text -> Float64 in ns or B. A size states its own unit; what cannot be (2 EiB and more) is null."""
    if unit != SIZE:
        return number(text) * UNITS[unit]
    value = number(text.str.extract(r"([\d.]+)", 1))
    factor = text.str.extract(r"[\d.]+ ?([KMGTPE]i?B|kB|B|bytes)\b", 1).replace_strict(
        UNITS, default=1.0, return_dtype=pl.Float64
    )
    # A process that "has 17179869184.00 GiB in use" is an underflow upstream.
    return pl.when(value * factor < 2.0**61).then(value * factor)


def _long(emit: Emit, matched: pl.DataFrame, pattern: Pattern) -> Iterator[tuple[str, pl.DataFrame]]:
    """One row per value: first (row number, spelling, value, unit), then the record's columns beside them."""
    parts = []
    for capture, name in emit.values.items():
        at = matched[f"capture.{capture}"].is_not_null().arg_true()
        values = matched[f"capture.{capture}"].drop_nulls()
        parts.append(
            pl.DataFrame({"at": at, "value_": values}).with_columns(
                name_=pl.lit(name), unit_=pl.lit(emit.units.get(capture, ""))
            )
        )
    if emit.pairs:
        rest = f"capture.{REST}" if REST in pattern.captures else "text"
        parts.append(_pairs(emit, matched[rest]))
    if not parts:  # name and value are the same for every record
        yield emit.table, matched.select(**_shared(emit, pattern))
        return
    found_ = pl.concat([part.select("at", "name_", "value_", "unit_") for part in parts])
    if found_.is_empty():
        return
    shared = matched.select(**_shared(emit, pattern))
    for table, found in _finished(emit.table, found_):
        rows_ = shared[found["at"]].hstack(found.drop("at"))
        yield table, rows_.with_columns(carry_=True) if emit.carry else rows_


def _pairs(emit: Emit, rest: pl.Series) -> pl.DataFrame:
    """(row number, spelling, value, unit) of every pair in every text.

    Lines that one statement prints differ in their values only, so most texts are read by the shape of another one.
    """
    parts = []
    at = pl.Series("at", np.arange(len(rest), dtype=np.uint32))
    for _ in range(_SHAPES if emit.table in _NUMERIC and len(rest) > _FEW else 0):
        shape = _shape(emit, str(rest[0]))
        if shape is None:
            break
        regex, found = shape
        groups = rest.to_frame("t").select(pl.col("t").str.extract_groups(regex)).unnest("t")
        fits = groups.to_series(0).is_not_null()
        if fits.any():
            parts += _by_shape(found, groups.filter(fits), at.filter(fits))
        at, rest = at.filter(~fits), rest.filter(~fits)
        if not len(rest):
            break
    if len(rest):
        parts.append(_one_by_one(emit, rest, at))
    return pl.concat(parts).sort("at", maintain_order=True) if len(parts) > 1 else parts[0]


_SHAPES, _FEW = 3, 50
_NUMERIC = ("metric", "phase_time", "memory")
_VALUE = r"([-+]?(?:[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+|nan|NaN|NAN|inf(?:inity)?|Inf(?:inity)?|INF))"


def _shape(emit: Emit, text: str) -> tuple[str, list[tuple[str, str]]] | None:
    """A regex with a group for each value of `text` and everything else literal, and (spelling, unit) of each group."""
    regex, end, found = "^", 0, []
    for match in re.finditer(emit.pairs, text):
        groups = match.groupdict()
        if not groups["value"] or not re.fullmatch(_VALUE, groups["value"]):
            return None
        regex += re.escape(text[end : match.start("value")]) + _VALUE
        end = match.end("value")
        found.append((groups["name"], groups.get("unit") or emit.unit))
    if not found or re.search(r"[0-9]", text[end:]):
        return None
    return regex.replace(r"\-", "-") + re.escape(text[end:]).replace(r"\-", "-") + "$", found


def _by_shape(found: list[tuple[str, str]], groups: pl.DataFrame, at: pl.Series) -> list[pl.DataFrame]:
    return [
        pl.DataFrame({"at": at, "value_": groups.to_series(place)}).select(
            "at", name_=pl.lit(name), value_="value_", unit_=pl.lit(unit)
        )
        for place, (name, unit) in enumerate(found)
    ]


def _one_by_one(emit: Emit, rest: pl.Series, rows: pl.Series) -> pl.DataFrame:
    hits = rest.str.extract_all(emit.pairs)
    at = np.repeat(rows.to_numpy(), hits.list.len().fill_null(0).to_numpy())
    texts = hits.explode(empty_as_null=False, keep_nulls=False)
    groups = texts.to_frame("t").select(pl.col("t").str.extract_groups(emit.pairs)).unnest("t")
    unit = pl.coalesce("unit", pl.lit(emit.unit)) if "unit" in groups.columns else pl.lit(emit.unit)
    return (
        groups.select(name_="name", value_="value", unit_=unit)
        .with_columns(at=at)
        .select("at", "name_", "value_", "unit_")
    )


def plain(name: str) -> str:
    """A spelling in lower case, with one underscore for every run of other characters."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _renamed(spelling: pl.Series, known: Mapping[str, str]) -> pl.Series:
    """Spellings are few: each is looked up once."""
    names = {s: known.get(plain(s), plain(s)) for s in spelling.unique().to_list() if s is not None}
    return spelling.replace_strict(names, default=None, return_dtype=pl.String)


def _finished(table: str, found: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Name and convert the values of a long table; memory that was printed among metrics moves to its table."""
    if table == "metric":
        yield from _metrics(found)
        return
    name_column, value_column = LONG[table]
    if table in ("phase_time", "memory"):
        factor = pl.col("unit_").replace_strict(UNITS, default=1.0, return_dtype=pl.Float64)
        value = (number(pl.col("value_")) * factor).round().cast(pl.Int64, strict=False)
        name = _renamed(found["name_"], names()["phase" if table == "phase_time" else "memory"])
    else:
        value = pl.col("value_").str.strip_chars()
        if table == "config":
            value = value.map_elements(json.dumps, return_dtype=pl.String)
        name = found["name_"]
    found = found.select("at", name.alias(name_column), value.alias(value_column))
    yield table, found.filter(pl.col(value_column).is_not_null())


def _metrics(found: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    spellings = {s: _memory_kind(s, u) for s, u in found.select("name_", "unit_").unique().iter_rows()}
    if any(spellings.values()):
        factors = {s: kind[1] for s, kind in spellings.items() if kind}
        kinds = {s: kind[0] for s, kind in spellings.items() if kind}
        is_memory = pl.col("name_").is_in(list(kinds))
        size = number(pl.col("value_")) * pl.col("name_").replace_strict(factors, default=None, return_dtype=pl.Float64)
        kind = pl.col("name_").replace_strict(kinds, default=None, return_dtype=pl.String)
        memory = found.filter(is_memory).select("at", kind=kind, bytes=size.round().cast(pl.Int64, strict=False))
        yield "memory", memory.filter(pl.col("bytes").is_not_null())
        found = found.filter(~is_memory)
    seconds = {u: UNITS[u] / 1e9 for u in _NANOSECONDS}
    value = number(pl.col("value_"))
    if (found["unit_"] != "").any():
        value = value * pl.col("unit_").replace_strict(seconds, default=1.0, return_dtype=pl.Float64)
    found = found.select("at", _renamed(found["name_"], names()["metric"]).alias("name"), value=value, text="value_")
    found = found.filter(pl.col("value").is_not_null())
    repeated = found.select(pl.struct("at", "name").is_duplicated()).to_series()
    yield "metric", found.unique(["at", "name"], keep="last", maintain_order=True) if repeated.any() else found


def _memory_kind(spelling: str, unit: str) -> tuple[str, float] | None:
    """(kind, bytes per unit) where a metric such as rss_gb or mem (GiB) is a size, else None."""
    name = plain(spelling)
    tail = _UNIT_TAIL.search(name)
    stem = name[: tail.start()] if tail else name
    kind = names()["memory"].get(stem)
    unit = unit if unit in _SIZES else _TAIL_UNITS.get(tail[1], "") if tail else ""
    return (kind, UNITS[unit]) if kind and unit else None
