"""Matched records -> rows of tables, column by column: casts, units, one row per printed value."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from postmortem import schema
from postmortem.formats import LONG, REST, SIZE, UNITS, Emit, Pattern, names
from postmortem.parsers import _shapes
from postmortem.parsers._match import Match
from postmortem.parsers._text import Ints, plain

CARRIED = ("line", "part", "time", "clock", "rank", "local_rank", "task", "host", "pid", "attempt", "after_step")
"""Columns of a record that its rows take over, where their table has them."""
_NANOSECONDS = {"ns", "us", "ms", "s", "min", "h"}
_SIZES = {"B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"}
_UNIT_TAIL = re.compile(r"_(gb|gib|mb|mib|kb|kib|bytes)$")
_TAIL_UNITS = {"gb": "GB", "gib": "GiB", "mb": "MB", "mib": "MiB", "kb": "KB", "kib": "KiB", "bytes": "bytes"}


def rows(found: Match, lines: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (table, rows) for the records that a pattern has.

    Args:
        found: the records.
        lines: columns of CARRIED and `text` of all records of the block.
    """
    if not found.pattern.emit:
        return
    captures = found.captures.rename(lambda name: f"capture.{name}")
    matched = lines.select(*CARRIED, "text")[found.at].hstack(captures)
    for emit in found.pattern.emit:
        if emit.table in LONG:
            yield from _long(emit, matched, found)
        else:
            yield emit.table, _wide(emit, matched, found.pattern)


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


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Printed values.

    Attributes:
        at: the record of each value, as its place among the matched ones.
        of: what is said of each value, as a row of `said`.
        text: each value as it was printed.
        said: columns name and unit, as printed.
    """

    at: Ints
    of: Ints
    text: pl.Series
    said: pl.DataFrame

    def filter(self, mask: npt.NDArray[np.bool_]) -> Values:
        """Some of them."""
        return Values(self.at[mask], self.of[mask], self.text.filter(pl.Series(mask)), self.said)


def _long(emit: Emit, matched: pl.DataFrame, found: Match) -> Iterator[tuple[str, pl.DataFrame]]:
    """One row per value: its name and amount, and the record's columns beside them."""
    parts = [_captured(matched[f"capture.{c}"], name, emit.units.get(c, "")) for c, name in emit.values.items()]
    if emit.pairs:
        parts.append(_pairs(emit, matched, found))
    if not parts:  # name and value are the same for every record
        yield emit.table, matched.select(**_shared(emit, found.pattern))
        return
    values = _together(parts)
    if not len(values.at):
        return
    shared = matched.select(**_shared(emit, found.pattern))
    for table, at, columns in _finished(emit.table, values, found):
        rows_ = shared[at].hstack(columns)
        yield table, rows_.with_columns(carry_=True) if emit.carry else rows_


def _together(parts: list[Values]) -> Values:
    if len(parts) == 1:
        return parts[0]
    before = np.cumsum([0, *(part.said.height for part in parts)])
    return Values(
        np.concatenate([part.at for part in parts]),
        np.concatenate([part.of + start for part, start in zip(parts, before, strict=False)]),
        pl.concat([part.text for part in parts]),
        pl.concat([part.said for part in parts]),
    )


def _captured(text: pl.Series, name: str, unit: str) -> Values:
    at = np.flatnonzero(text.is_not_null().to_numpy())
    return Values(at, np.zeros(len(at), np.int64), text.drop_nulls(), pl.DataFrame({"name": [name], "unit": [unit]}))


def _pairs(emit: Emit, matched: pl.DataFrame, found: Match) -> Values:
    """Every pair in every record; the forms of the records say where they stand."""
    if REST not in found.places:
        rest = f"capture.{REST}" if REST in found.pattern.captures else "text"
        return _one_by_one(emit, matched[rest])
    within = found.places[REST]
    counts, places = _shapes.repeated(within, emit.pairs)
    first, counts = (np.cumsum(counts) - counts)[found.of], counts[found.of]
    at = np.repeat(np.arange(len(counts)), counts)
    of = np.arange(len(at)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    starts = (found.starts + within.at[found.of])[at]
    text = places["value"].read(found.data, starts, of)
    if (places["name"].at < 0).all():
        return Values(at, of, text, _said(emit, {name: place.text for name, place in places.items()}))
    said = _said(emit, {name: place.read(found.data, starts, of) for name, place in places.items()})
    return Values(at, np.arange(len(at)), text, said)


def _one_by_one(emit: Emit, rest: pl.Series) -> Values:
    hits = rest.str.extract_all(emit.pairs)
    at = np.repeat(np.arange(len(rest)), hits.list.len().fill_null(0).to_numpy())
    texts = hits.explode(empty_as_null=False, keep_nulls=False)
    groups = texts.to_frame("t").select(pl.col("t").str.extract_groups(emit.pairs)).unnest("t")
    return Values(at, np.arange(len(at)), groups["value"], _said(emit, groups.to_dict()))


def _said(emit: Emit, groups: Mapping[str, pl.Series]) -> pl.DataFrame:
    unit = (
        groups["unit"].fill_null(emit.unit)
        if "unit" in groups
        else pl.Series([emit.unit]).new_from_index(0, len(groups["name"]))
    )
    return pl.DataFrame({"name": groups["name"], "unit": unit})


def _renamed(spelling: pl.Series, known: Mapping[str, str]) -> pl.Series:
    """Spellings are few: each is looked up once."""
    names = {s: known.get(plain(s), plain(s)) for s in spelling.unique().to_list() if s is not None}
    return spelling.replace_strict(names, default=None, return_dtype=pl.String)


def _finished(table: str, values: Values, found: Match) -> Iterator[tuple[str, Ints, pl.DataFrame]]:
    """(table, record of each row, name and value); memory that was printed among metrics moves to its table."""
    if table == "metric":
        yield from _metrics(values, found)
        return
    name_column, value_column = LONG[table]
    name = values.said["name"]
    if table in ("phase_time", "memory"):
        factors = np.array([UNITS.get(unit, 1.0) for unit in values.said["unit"]])
        value = _whole(values, factors)
        name = _renamed(name, names()["phase" if table == "phase_time" else "memory"])
    else:
        value = values.text.str.strip_chars()
        if table == "environment":
            name = _renamed(name, names()[table])
        if table == "config":
            value = value.map_elements(json.dumps, return_dtype=pl.String)
    yield _kept(table, values, {name_column: name[values.of], value_column: value}, value)


def _whole(values: Values, factors: npt.NDArray[np.float64]) -> pl.Series:
    """Numbers in the stored unit."""
    return (_numbers(values.text) * pl.Series(factors[values.of])).round().cast(pl.Int64, strict=False)


def _numbers(text: pl.Series) -> pl.Series:
    return text.to_frame("t").select(number(pl.col("t"))).to_series()


def _clocks(text: pl.Series) -> pl.Series:
    """[hours:]minutes:seconds as seconds; null for anything else."""
    fields = text.to_frame("t").select(pl.col("t").str.extract_groups(r"^(?:(\d+):)?(\d+):(\d\d)$")).unnest("t")
    hours, minutes, seconds = (fields[name].cast(pl.Float64) for name in fields.columns)
    return hours.fill_null(0.0) * 3600 + minutes * 60 + seconds


def _kept(
    table: str, values: Values, columns: Mapping[str, pl.Series], value: pl.Series
) -> tuple[str, Ints, pl.DataFrame]:
    """What is no number gives no row."""
    frame = pl.DataFrame(columns)
    if not value.null_count():
        return table, values.at, frame
    known = value.is_not_null()
    return table, values.at[known.to_numpy()], frame.filter(known)


def _metrics(values: Values, found: Match) -> Iterator[tuple[str, Ints, pl.DataFrame]]:
    kinds = [_memory_kind(name, unit) for name, unit in values.said.iter_rows()]
    if any(kinds):
        is_memory = np.array([kind is not None for kind in kinds])[values.of]
        memory = values.filter(is_memory)
        size = _whole(memory, np.array([kind[1] if kind else 0.0 for kind in kinds]))
        kind = pl.Series([kind and kind[0] for kind in kinds], dtype=pl.String)
        yield _kept("memory", memory, {"kind": kind[memory.of], "bytes": size}, size)
        values = values.filter(~is_memory)
    value = _numbers(values.text)
    if value.null_count():
        value = value.fill_null(_clocks(values.text))
    if (values.said["unit"] != "").any():
        seconds = np.array([UNITS[unit] / 1e9 if unit in _NANOSECONDS else 1.0 for unit in values.said["unit"]])
        value = value * pl.Series(seconds[values.of])
    said = _renamed(values.said["name"], names()["metric"])
    name = said[values.of]
    if "step" in found.pattern.captures and not names()["training"].keys().isdisjoint(said.unique()):
        name = _of_training(values.at, name)
    table, at, frame = _kept("metric", values, {"name": name, "value": value, "text": values.text}, value)
    last = _last(at, frame["name"], None if len(values.said) == len(values.at) else found.of)
    yield (table, at, frame) if last is None else (table, at[last], frame.filter(pl.Series(last)))


def _of_training(at: Ints, name: pl.Series) -> pl.Series:
    """train_loss is the loss of a step, unless its record has another one or speaks of validation (estimates of both)."""
    frame = pl.DataFrame({"at": at, "name": name}).with_columns(short=pl.col("name").replace(names()["training"]))
    apart = pl.col("name").str.contains("^(?:val|eval|test|dev)").any().over("at")
    return frame.select(
        pl.when(apart | pl.struct("at", "short").is_duplicated()).then("name").otherwise("short").alias("name")
    ).to_series()


def _last(at: Ints, name: pl.Series, of: Ints | None) -> npt.NDArray[np.bool_] | None:
    """Which values are the last of their name in their record, or None if all are.

    Records of one form (`of`) repeat the same names, so one record of each says whether any does.
    """
    if of is not None:
        one = np.isin(at, np.unique(of, return_index=True)[1])
        sample = pl.DataFrame({"at": at[one], "name": name.filter(pl.Series(one))})
        if not sample.is_duplicated().any():
            return None
    frame = pl.DataFrame({"at": at, "name": name})
    return frame.select(pl.struct("at", "name").is_last_distinct()).to_series().to_numpy()


def _memory_kind(spelling: str, unit: str) -> tuple[str, float] | None:
    """(kind, bytes per unit) where a metric such as rss_gb or mem (GiB) is a size, else None."""
    name = plain(spelling)
    tail = _UNIT_TAIL.search(name)
    stem = name[: tail.start()] if tail else name
    kind = names()["memory"].get(stem)
    unit = unit if unit in _SIZES else _TAIL_UNITS.get(tail[1], "") if tail else ""
    return (kind, UNITS[unit]) if kind and unit else None
