"""Rows and listings as text, CSV, JSON, Parquet or one DuckDB file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from postmortem import console, schema
from postmortem.errors import PostmortemError
from postmortem.formats import patterns
from postmortem.parsers import parsers
from postmortem.query import Session, queries

_WIDEST = 60


def print_rows(rows: pa.Table, style: str) -> None:
    """Write rows to standard output as a text table, CSV, JSON lines or Parquet."""
    if style == "table":
        console.result(text_table(rows))
    elif style == "json":
        console.result("\n".join(json.dumps(_strict(row), default=str) for row in rows.to_pylist()))
    elif style == "csv":
        sink = pa.BufferOutputStream()
        pacsv.write_csv(_flat(rows), sink)
        console.result(sink.getvalue().to_pybytes().decode())
    else:
        pq.write_table(rows, sys.stdout.buffer)


def _flat(rows: pa.Table) -> pa.Table:
    """Nested columns as JSON text, which CSV can hold."""
    columns = {
        name: pa.array([None if v is None else json.dumps(v, default=str) for v in column.to_pylist()], pa.string())
        if pa.types.is_nested(column.type)
        else column
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    return pa.table(columns)


def _strict(value: Any) -> Any:
    """NaN and infinities as words, since JSON has none."""
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return str(value)
    return value


def print_lines(rows: pa.Table) -> None:
    """Write log lines as `source:line [rank] text`, one per line, whatever control characters they hold."""
    for batch in rows.select(["source", "line", "rank", "prefix", "text"]).to_batches(10_000):
        columns = [column.to_pylist() for column in batch.columns]
        shown = [
            f"{source}:{line} [{'?' if rank is None else rank}] "
            + "".join(c if c.isprintable() else " " for c in f"{prefix}{text}")
            for source, line, rank, prefix, text in zip(*columns, strict=True)
        ]
        console.result("\n".join(shown))


def text_table(rows: pa.Table) -> str:
    """Rows as an aligned text table."""
    cells = [[_cell(value) for value in column.to_pylist()] for column in rows.columns]
    names = rows.column_names
    widths = [max([len(name), *map(len, column)]) for name, column in zip(names, cells, strict=True)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*cells, strict=True)
    ]
    return "\n".join([*lines, f"({rows.num_rows} rows)"])


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split(" "))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def list_queries() -> str:
    """Every query with its title and parameters."""
    lines = []
    for query in queries().values():
        params = ", ".join(f"{name}={spec.get('default')}" for name, spec in query.params.items())
        lines.append(f"{query.folder}/{query.name}: {query.title}" + (f" ({params})" if params else ""))
    return "\n".join(lines)


def list_tables() -> str:
    """Every table and view with its columns."""
    lines = []
    for table in schema.tables().values():
        lines.append(f"{table.name}: {table.doc}")
        lines += [f"  {c.name} {c.type}{f' [{c.unit}]' if c.unit else ''}: {c.doc}" for c in table.columns]
    lines += [f"{q.name} (view): {q.title}" for q in queries().values() if q.folder == "views"]
    return "\n".join(lines)


def list_formats() -> str:
    """Every parser, and every line format with its patterns."""
    lines = [f"{name}: {parser.DOC}" for name, parser in sorted(parsers().items())]
    by_file: dict[str, list[str]] = {}
    for pattern in patterns():
        file, _, name = pattern.id.partition(".")
        by_file.setdefault(file, []).append(name)
    lines += [f"lines/{file}: {', '.join(names)}" for file, names in by_file.items()]
    return "\n".join(lines)


def export(session: Session, file: Path) -> None:
    """Write all tables and views of the session into a new DuckDB file.

    Raises:
        PostmortemError: the file exists, or cannot be written.

    """
    if file.exists():
        raise PostmortemError(f"{file} exists.", "Give a new file name.")
    session.need_all()
    connection = session.connection
    target = str(file).replace("'", "''")
    connection.execute(f"ATTACH '{target}' AS exported")
    names = [*schema.tables(), *(q.name for q in queries().values() if q.folder == "views")]
    for name in names:
        connection.execute(f'CREATE TABLE exported."{name}" AS SELECT * FROM "{name}"')
    connection.execute("DETACH exported")
