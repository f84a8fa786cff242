"""schemas/tables/*.toml -> Arrow schemas, empty DuckDB tables, validation and the reference page."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from postmortem import resources
from postmortem.errors import DeclarationError
from postmortem.records import Batch

TYPES: Mapping[str, tuple[pa.DataType, str]] = {
    "bool": (pa.bool_(), "BOOLEAN"),
    "int32": (pa.int32(), "INTEGER"),
    "int64": (pa.int64(), "BIGINT"),
    "uint64": (pa.uint64(), "UBIGINT"),
    "float64": (pa.float64(), "DOUBLE"),
    "string": (pa.string(), "VARCHAR"),
    "category": (pa.dictionary(pa.int32(), pa.string()), "VARCHAR"),  # few distinct texts, dictionary-encoded
    "json": (pa.string(), "VARCHAR"),  # a text that holds one JSON value
    "int32[]": (pa.list_(pa.int32()), "INTEGER[]"),
    "int64[]": (pa.list_(pa.int64()), "BIGINT[]"),
    "string[]": (pa.list_(pa.string()), "VARCHAR[]"),
}
NUMBERS = {"int32", "int64", "uint64", "float64", "int32[]", "int64[]"}
UNITS = {"1", "ns", "B", "samples", "tokens", "samples/s", "%", "W", "degC", "MHz", "id"}
"""The closed set of units. "1" is a dimensionless number or a count, "id" a number that only names something."""

_COMMON = {
    "run_id": {"type": "category", "doc": "Name of the run in the store."},
    "source": {"type": "category", "doc": "Path of the file inside the run folder."},
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: Arrow type by name, unit, whether it may be null, and what it means."""

    name: str
    type: str
    unit: str
    null: bool
    doc: str

    @property
    def field(self) -> pa.Field:
        """The Arrow field, with doc and unit as metadata."""
        return pa.field(self.name, TYPES[self.type][0], self.null, {"doc": self.doc, "unit": self.unit})


@dataclass(frozen=True, slots=True)
class Table:
    """One declared table."""

    name: str
    version: str
    grain: str
    doc: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, with the table's version as metadata."""
        return pa.schema([column.field for column in self.columns], {"table": self.name, "version": self.version})

    @property
    def ddl(self) -> str:
        """`CREATE TABLE` for an empty DuckDB table of this shape."""
        columns = ", ".join(f'"{c.name}" {TYPES[c.type][1]}' for c in self.columns)
        return f'CREATE TABLE "{self.name}" ({columns})'

    def conform(self, batch: Batch, run_id: str, source: str) -> pa.Table:
        """Turn a parser's batch into an Arrow table of exactly this schema.

        Raises:
            DeclarationError: the batch has a column that is not declared, or a value that does not fit.

        """
        given = dict(batch.columns)
        rows = len(next(iter(given.values()))) if given else 0
        given |= {"run_id": _constant(run_id, rows), "source": _constant(source, rows)}
        unknown = given.keys() - {c.name for c in self.columns}
        if unknown:
            raise DeclarationError(f"Table {self.name} declares no column {', '.join(sorted(unknown))}.")
        arrays = [_fit(given[c.name], c) if c.name in given else _nulls(c, rows) for c in self.columns]
        missing = [c.name for c, a in zip(self.columns, arrays, strict=True) if not c.null and a.null_count]
        if missing:
            raise DeclarationError(f"Table {self.name} needs a value in every row of {', '.join(missing)}.")
        return pa.Table.from_arrays(arrays, schema=self.arrow)


def _constant(text: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text], pa.string()))


def _nulls(column: Column, rows: int) -> pa.Array:
    return pa.nulls(rows, TYPES[column.type][0])


def _array(values: Any, wanted: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, wanted)
    except UnicodeEncodeError:  # JSON can hold half of a surrogate pair, which is no character
        clean = [v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in values]
        return pa.array(clean, wanted)


def _fit(values: Any, column: Column) -> pa.Array | pa.ChunkedArray:
    wanted = TYPES[column.type][0]
    try:
        if not isinstance(values, pa.Array | pa.ChunkedArray):
            values = _array(values, pa.string() if column.type == "category" else wanted)
        if values.type == wanted:
            return values
        if column.type == "category":
            return pc.dictionary_encode(values.cast(pa.string()))
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DeclarationError(f"Column {column.name} ({column.type}) cannot hold a value: {error}") from error


@cache
def tables() -> Mapping[str, Table]:
    """Every declared table by name."""
    return {table.name: table for table in map(load, resources.declarations("schemas", "tables/*.toml"))}


def load(path: Path) -> Table:
    """Read and check one table declaration.

    Raises:
        DeclarationError: it breaks a rule; the message names the file.

    """
    try:
        raw = tomllib.loads(path.read_text())
        columns = tuple(_column(name, spec) for name, spec in (_COMMON | raw["columns"]).items())
        table = Table(raw["name"], raw["version"], raw["grain"], raw["doc"], tuple(raw["key"]), columns)
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DeclarationError(f"{path.name}: not a table declaration ({error!r}).") from error
    _check(table, path)
    return table


def _column(name: str, spec: Mapping[str, Any]) -> Column:
    return Column(name, spec["type"], spec.get("unit", ""), spec.get("null", name not in _COMMON), spec["doc"])


def _check(table: Table, path: Path) -> None:
    def rule(holds: bool, text: str) -> None:
        if not holds:
            raise DeclarationError(f"{path.name}: {text}")

    rule(table.name == path.stem, f"is named {table.name}; a table is named like its file.")
    rule(bool(re.fullmatch(r"\d+\.\d+", table.version)), "the version must look like 1.0.")
    names = [c.name for c in table.columns]
    rule(set(table.key) <= set(names), "the key names a column that is not declared.")
    for column in table.columns:
        rule(column.type in TYPES, f"column {column.name} has unknown type {column.type}.")
        rule(bool(column.doc.strip()), f"column {column.name} has no doc.")
        needs_unit = column.type in NUMBERS
        rule((column.unit in UNITS) == needs_unit, f"column {column.name} needs a unit out of {sorted(UNITS)}.")


def reference() -> str:
    """The text of schemas/README.md: every table with its columns."""
    parts = ["# Tables\n\nGenerated by `make docs` from schemas/tables/*.toml; do not edit.\n"]
    for table in tables().values():
        parts.append(f"\n## {table.name} ({table.version})\n\n{table.doc}\n\n")
        parts.append(f"Grain: {table.grain}. Key: {', '.join(table.key)}.\n\n")
        parts.append("| column | type | unit | doc |\n|---|---|---|---|\n")
        parts += [f"| {c.name} | {c.type} | {c.unit} | {c.doc} |\n" for c in table.columns]
    return "".join(parts)
