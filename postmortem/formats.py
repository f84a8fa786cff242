"""schemas/formats/*.toml -> line patterns: which lines to recognise, what they mean, and into which rows they turn."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from postmortem import resources, schema
from postmortem.errors import DeclarationError

ROLES = ("root", "symptom", "cascade", "advice", "progress", "context")
"""Place of a record in a chain of causes: what can start a fault, how a fault shows, what follows from another
process's fault, what only repeats an advice, how far training got, and everything else worth keeping."""

UNITS: Mapping[str, float] = {
    "": 1.0, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9,
    # DeepSpeed and PyTorch divide by powers of 1024 whatever they print (deepspeed/runtime/utils.py, see_memory_usage).
    "B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40, "kB": 2.0**10,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "EiB": 2.0**60, "PiB": 2.0**50, "bytes": 1.0,
}  # fmt: skip
"""Factor from a printed unit to the stored one (ns or B). In table metric, times are stored in seconds instead."""
SIZE = "size"
"""Pseudo unit of a capture whose text holds number and unit, for example "1.16 GiB"."""

# A long table has one row per printed value: (column of the name, column of the value).
LONG: Mapping[str, tuple[str, str]] = {
    "metric": ("name", "value"),
    "phase_time": ("phase", "duration"),
    "memory": ("kind", "bytes"),
    "environment": ("name", "value"),
    "config": ("key", "value"),
}
REST = "rest"
"""Capture that `pairs` is applied to; the whole text where a pattern has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Emit:
    """How a matched record turns into rows of one table.

    Attributes:
        table: name of the table.
        set: columns that are the same in every row.
        values: capture -> name of the value (long tables only); captures that took no part give no row.
        units: capture -> unit as printed.
        pairs: regular expression with groups `name` and `value` (and maybe `unit`), applied again and again to
            the capture `rest`: one row per match (long tables only). Empty for none.
        unit: unit of all `pairs`, as printed.
        carry: records without a step of their own take the last one printed before them by the same rank.
    """

    table: str
    set: Mapping[str, Any]
    values: Mapping[str, str]
    units: Mapping[str, str]
    pairs: str
    unit: str
    carry: bool


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A line, and the rows that it has to give (each a subset of the columns of `table`)."""

    line: str
    version: str
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One kind of record.

    Attributes:
        id: file.pattern, as stored in column `format` of table line.
        role: one of ROLES.
        contains: literals of which at least one is in every matching line.
        starts: instead, literals with which every matching text starts (for runs such as "-----", which contain
            themselves many times over).
        regex: linear-time regular expression, searched in the text after the lead-ins.
        captures: names of its groups.
        emit: what it turns into; empty where keeping the line is enough.
        attempt: a match starts the next attempt of the job.
        states_attempt: the first group of the regex is the number of the attempt that starts, as the launcher counts.
        process_start: a process writes it once, when it starts: after steps in the same file the job was started again.
        exact: the regex, or `pairs` of what is emitted, asks for certain digits.
    """

    id: str
    role: str
    contains: tuple[str, ...]
    starts: tuple[str, ...]
    regex: str
    captures: tuple[str, ...]
    emit: tuple[Emit, ...]
    samples: tuple[Sample, ...]
    attempt: bool
    states_attempt: bool
    process_start: bool
    exact: bool


@cache
def patterns() -> tuple[Pattern, ...]:
    """Every declared pattern, by file name and order in the file; the first that matches a record has it."""
    return tuple(p for path in resources.declarations("schemas", "formats/*.toml") for p in load(path))


@cache
def names() -> Mapping[str, Mapping[str, str]]:
    """schemas/names.toml: spelling -> name, for metrics, phases and kinds of memory."""
    with (resources.folder("schemas") / "names.toml").open("rb") as file:
        return tomllib.load(file)


def load(path: Path) -> tuple[Pattern, ...]:
    """Read and check one file of patterns.

    Raises:
        DeclarationError: it breaks a rule; the message names file and pattern.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        if raw["name"] != path.stem:
            raise DeclarationError(f"{path.name}: is named {raw['name']}; a format is named like its file.")
        found = tuple(_pattern(raw["name"], _whole(p, raw.get("parts", {}))) for p in raw["pattern"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, re.error) as error:
        raise DeclarationError(f"{path.name}: not a format declaration ({error!r}).") from error
    for pattern in found:
        for broken in _broken_rules(pattern):
            raise DeclarationError(f"{path.name}: pattern {pattern.id} {broken}")
    return found


def _whole(raw: Mapping[str, Any], parts: Mapping[str, str]) -> Mapping[str, Any]:
    """The same declaration, with every {name} in its expressions replaced by that part of the file."""
    whole = dict(raw)
    for key in raw.keys() & {"regex", "pairs"}:
        for name, part in parts.items():
            whole[key] = whole[key].replace(f"{{{name}}}", part)
    return whole


def _pattern(file: str, raw: Mapping[str, Any]) -> Pattern:
    contains = raw.get("contains", ())
    regex = ascii_classes(raw["regex"])
    emit = tuple(_emit(e) for e in ([raw] if "table" in raw else []) + raw.get("also", []))
    return Pattern(
        id=f"{file}.{raw['name']}",
        role=raw.get("role", "context"),
        contains=(contains,) if isinstance(contains, str) else tuple(contains),
        starts=tuple(raw.get("starts", ())),
        regex=regex,
        captures=tuple(re.compile(raw["regex"]).groupindex),
        emit=emit,
        samples=tuple(_sample(s) for s in raw.get("sample", [])),
        attempt=raw.get("attempt", False),
        states_attempt=raw.get("states_attempt", False),
        process_start=raw.get("process_start", False),
        exact=any(map(names_digits, [regex, *(e.pairs for e in emit)])),
    )


def ascii_classes(regex: str) -> str:
    r"""The same expression with \d, \w and \s for ASCII only: Unicode's classes make automata large and slow."""
    classes = {"d": "0-9", "w": "0-9A-Za-z_", "s": " \\t\\n\\r\\f\\v", "S": "", "D": "", "W": ""}
    out, inside, at = [], False, 0
    while at < len(regex):
        step = regex[at : at + 2] if regex[at] == "\\" else regex[at]
        if len(step) == 2 and classes.get(step[1]):
            step = classes[step[1]] if inside else f"[{classes[step[1]]}]"
            at += 2
        else:
            inside = step == "[" or (inside and step != "]")
            at += len(step)
        out.append(step)
    return "".join(out)


def names_digits(regex: str) -> bool:
    """Whether an expression asks for certain digits (`status=5`, `[1-9]`), not only for any."""
    return bool(re.search(r"[0-9]", re.sub(r"\\.|0-9|\(\?P<\w+>|\{[0-9]*,?[0-9]*\}", "", regex)))


def _emit(raw: Mapping[str, Any]) -> Emit:
    return Emit(
        table=raw["table"],
        set=raw.get("set", {}),
        values=raw.get("values", {}),
        units=raw.get("units", {}),
        pairs=ascii_classes(raw.get("pairs", "")),
        unit=raw.get("unit", ""),
        carry=raw.get("carry", False),
    )


def _sample(raw: Mapping[str, Any]) -> Sample:
    rows = raw.get("rows", [raw["row"]] if "row" in raw else [])
    return Sample(raw["line"], raw.get("version", ""), tuple(rows))


def _broken_rules(pattern: Pattern) -> Iterator[str]:
    if pattern.role not in ROLES:
        yield f"has role {pattern.role}, which is none of {', '.join(ROLES)}."
    if not pattern.samples:
        yield "has no sample."
    for text in (pattern.regex, *(e.pairs for e in pattern.emit)):
        if re.search(r"\(\?[=!<](?![A-Za-z_])|\(\?P=|\\[1-9]", text):
            yield "uses look-around or a back-reference; matching has to stay linear."
    for sample in pattern.samples:
        if not any(literal in sample.line for literal in pattern.contains + pattern.starts):
            yield f"has a sample without its literal: {sample.line[:60]}"
    for emit in pattern.emit:
        yield from _broken_emit(pattern, emit)


def _broken_emit(pattern: Pattern, emit: Emit) -> Iterator[str]:
    if emit.table not in schema.tables():
        yield f"writes to table {emit.table}, which is not declared."
        return
    columns = {c.name for c in schema.tables()[emit.table].columns}
    used = {*emit.values, *emit.units}
    if unknown := used - set(pattern.captures):
        yield f"uses captures that its regex lacks: {', '.join(sorted(unknown))}."
    if unknown := set(emit.set) - columns:
        yield f"sets columns that {emit.table} lacks: {', '.join(sorted(unknown))}."
    if unknown := {u for u in (*emit.units.values(), emit.unit) if u not in UNITS and u != SIZE}:
        yield f"uses unknown units: {', '.join(sorted(unknown))}."
    if (emit.values or emit.pairs) and emit.table not in LONG:
        yield f"has values or pairs, but {emit.table} has no one row per value."
