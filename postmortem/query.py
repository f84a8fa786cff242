"""queries/**/*.sql -> Query(header, sql): load, check against its own cases, run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from postmortem import kept, resources, schema
from postmortem.errors import BusyError, DeclarationError, PostmortemError
from postmortem.ingest import lock
from postmortem.sqlfunctions import register
from postmortem.store import Store, quoted

_HEADER = re.compile(r"\A/\*---\n(.*?)\n---\*/\n(.*)\Z", re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT = re.compile(r"'(?:[^']|'')*'")
# What would make a question depend on more than its tables, or change something.
_BANNED = re.compile(
    r"SELECT\s+\*|\b(?:now|random|uuid|current_date|current_timestamp|read_\w+|glob)\s*\(|"
    r"\b(?:INSTALL|LOAD|ATTACH|COPY|PRAGMA|EXPORT|IMPORT|INSERT|UPDATE|DELETE|DROP)\b",
    re.IGNORECASE,
)
FOLDERS = ("views", "findings", "compare", "report", "questions")
SEVERITIES = {"fault", "warning", "note", "evidence"}


@dataclass(frozen=True)
class Query:
    """One SQL file: what it asks, what it reads and returns, and the cases that prove it."""

    name: str
    folder: str
    path: Path
    title: str
    sql: str
    reads: tuple[str, ...]
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    returns: Mapping[str, str] = field(default_factory=dict)
    cases: Sequence[Mapping[str, Any]] = ()
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def doc(self) -> str:
        """What a user reads before running it."""
        return str(self.header.get("doc", self.title))


@cache
def queries() -> Mapping[str, Query]:
    """Every query by name."""
    found = [load(path) for path in resources.declarations("queries", "*.sql")]
    names = [query.name for query in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise DeclarationError(f"Two queries are named {', '.join(sorted(twice))}.")
    return {query.name: query for query in found}


def load(path: Path) -> Query:
    """Read one query file.

    Raises:
        DeclarationError: no header, or a key is missing.

    """
    match = _HEADER.match(path.read_text())
    if not match:
        raise DeclarationError(f"{path.name}: a query begins with a /*--- header in TOML ---*/.")
    try:
        header = tomllib.loads(match[1])
        return Query(
            path.stem, path.parent.name, path, header["title"], match[2].strip(), tuple(header["reads"]),
            header.get("params", {}), header["returns"], header.get("case", []), header,
        )  # fmt: skip
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise DeclarationError(f"{path.name}: the header is not complete ({error!r}).") from error


class Session:
    """One connection over some runs; the views of queries/views are made when a query needs them."""

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self.store = store
        self.runs = list(runs)
        self.connection = store.connect(runs)
        register(self.connection)
        self._made = set(schema.tables())
        self._states = kept.states(store, runs)

    def only(self, run: str) -> Session:
        """A session of its own on one of the runs."""
        return Session(self.store, [run])

    def need(self, names: Sequence[str]) -> None:
        """Make the views `names` and what they read, unless they exist."""
        for name in names:
            if name in self._made:
                continue
            view = queries()[name]
            found = kept.files(self.store, self._states, name) if self._states and view.header.get("keep") else {}
            if found:
                self._take(view, found)
            else:
                self.need(view.reads)
                self.connection.execute(_definition(view))
            self._made.add(name)

    def _take(self, view: Query, found: Mapping[str, Path]) -> None:
        """Make a view from what is kept of it; for the runs that keep nothing it is computed."""
        columns = ", ".join(f'CAST("{name}" AS {kind}) AS "{name}"' for name, kind in view.returns.items())
        parts = [f"SELECT {columns} FROM read_parquet([{quoted(found.values())}])"]
        others = [run for run in self.runs if run not in found]
        if others:
            self.connection.register("computed", Session(self.store, others).view(view.name))
            parts.append(f"SELECT {columns} FROM computed")
        self.connection.execute(f'CREATE TEMP TABLE "{view.name}" AS {" UNION ALL ".join(parts)}')
        if others:
            self.connection.unregister("computed")

    def view(self, name: str) -> pa.Table:
        """All rows of a view."""
        self.need([name])
        return self.connection.table(name).to_arrow_table()

    def need_all(self) -> None:
        """Make every view, for SQL that the user wrote."""
        self.need([query.name for query in queries().values() if query.folder == "views"])

    def run(self, name: str, **params: Any) -> pa.Table:
        """Run the query `name` and return its rows.

        Raises:
            PostmortemError: no such query, an unknown parameter, or a value that does not fit it.

        """
        query = find(name)
        unknown = params.keys() - query.params.keys()
        if unknown:
            raise PostmortemError(f"The query {query.name} has no parameter {', '.join(sorted(unknown))}.")
        if query.folder == "views":
            return self.view(query.name)
        self.need(query.reads)
        values = {key: params.get(key, spec.get("default")) for key, spec in query.params.items()}
        return self.connection.sql(query.sql, params=values or None).to_arrow_table()

    def rows(self, name: str, **params: Any) -> list[dict[str, Any]]:
        """Run the query `name` and return one dict per row."""
        rows: list[dict[str, Any]] = self.run(name, **params).to_pylist()
        return rows

    def sql(self, text: str) -> pa.Table:
        """Run SQL of the user's own over all tables and views.

        Raises:
            PostmortemError: DuckDB does not accept it.

        """
        self.need_all()
        try:
            relation = self.connection.sql(text)
            return relation.to_arrow_table() if relation is not None else pa.table({})
        except duckdb.Error as error:
            raise PostmortemError(f"DuckDB does not accept this SQL: {error}") from error


def keep(store: Store, run: str) -> None:
    """Write the views with `keep = true` beside the tables of a large run, so that no later command computes them.

    Each row of such a view comes from one run alone and carries its run_id. What is kept is lost when the run is
    ingested with other content or a view changes; without it everything works, only later. Another ingest that holds
    the run keeps its views itself.
    """
    with suppress(BusyError), lock(store.path / run):
        now = kept.state(store, run)
        kept.clear(store, run, now)
        if not kept.worth(store, run):
            return
        session = Session(store, [run])
        for query in queries().values():
            if query.header.get("keep") and not kept.files(store, {run: now}, query.name):
                kept.write(store, run, now, query.name, session.view(query.name))


def find(name: str) -> Query:
    """The query `name`, with or without its folder.

    Raises:
        PostmortemError: there is none.

    """
    query = queries().get(name.rsplit("/", 1)[-1])
    if query is None:
        raise PostmortemError(f"There is no query {name}.", "`postmortem queries` lists them.")
    return query


def _definition(view: Query) -> str:
    # A view that many findings read may ask to be computed once: materialize = true, or keep = true (see `keep`).
    kind = "TEMP TABLE" if view.header.get("materialize") or view.header.get("keep") else "VIEW"
    return f'CREATE {kind} "{view.name}" AS {view.sql}'


def check(query: Query) -> list[str]:
    """Every rule that `query` breaks, as sentences; an empty list means it is sound."""
    found = list(_check_text(query))
    connection = duckdb.connect()
    register(connection)
    try:
        for name in query.reads:
            connection.execute(_empty(name))
        found += _check_statement(query, connection)
        for case in query.cases:
            found += _check_case(query, case)
    except (duckdb.Error, DeclarationError) as error:
        found.append(f"{query.name}: {error}")
    return found


def _check_text(query: Query) -> list[str]:
    bare = _TEXT.sub("''", _COMMENT.sub("", query.sql))
    found = [f"{query.name}: {match[0]!r} is banned in queries." for match in _BANNED.finditer(bare)]
    if query.folder not in FOLDERS:
        found.append(f"{query.name}: unknown folder {query.folder}.")
    if query.folder == "findings":
        if query.header.get("severity") not in SEVERITIES:
            found.append(f"{query.name}: severity must be one of {sorted(SEVERITIES)}.")
        fires = [bool(_rows(case["expect"])[1]) for case in query.cases]
        if set(fires) != {True, False}:
            found.append(f"{query.name}: a finding needs a case that fires and one that stays silent.")
    return found


def _check_statement(query: Query, connection: duckdb.DuckDBPyConnection) -> list[str]:
    statements = connection.extract_statements(query.sql)
    if len(statements) != 1:
        return [f"{query.name}: one file holds one statement."]
    named = set(statements[0].named_parameters)
    if named != query.params.keys():
        return [f"{query.name}: declares the parameters {sorted(query.params)} but uses {sorted(named)}."]
    cursor = connection.execute(query.sql, _defaults(query) or None)
    described = {column[0]: str(column[1]) for column in cursor.description}
    declared = {name: _sql_type(text) for name, text in query.returns.items()}
    if list(described) != list(declared):
        return [f"{query.name}: declares the columns {list(declared)} but returns {list(described)}."]
    actual = dict(connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {_inlined(query)})").fetchall())
    return [
        f"{query.name}: {name} is declared {declared[name]} but is {actual[name]}."
        for name in declared
        if actual[name] != declared[name]
    ]


def _inlined(query: Query) -> str:
    """The SQL with its parameters' defaults in place, for statements that take no parameters."""
    sql = query.sql
    for name, value in _defaults(query).items():
        literal = "NULL" if value is None else repr(value) if not isinstance(value, bool) else str(value).upper()
        typed = f"CAST({literal} AS {query.params[name]['type']})"
        sql = re.sub(rf"\${name}\b", typed.replace("\\", "\\\\"), sql)
    return sql


def _defaults(query: Query) -> dict[str, Any]:
    return {name: spec.get("default") for name, spec in query.params.items()}


def _sql_type(text: str) -> str:
    return duckdb.sqltype(text).__str__()


def _columns(name: str) -> dict[str, str]:
    """Column -> SQL type of a table or view."""
    table = schema.tables().get(name)
    if table:
        return {column.name: schema.TYPES[column.type][1] for column in table.columns}
    view = queries().get(name)
    if view is None or view.folder not in ("views", "findings") or view.params:
        raise DeclarationError(f"There is no table or view {name}.")
    return dict(view.returns)


def _empty(name: str) -> str:
    columns = ", ".join(f'"{column}" {kind}' for column, kind in _columns(name).items())
    return f'CREATE TABLE "{name}" ({columns})'


def _check_case(query: Query, case: Mapping[str, Any]) -> list[str]:
    given = case.get("given", {})
    stray = given.keys() - set(query.reads)
    if stray:
        return [f"{query.name}, case {case['name']!r}: gives rows of {sorted(stray)}, which it does not read."]
    connection = duckdb.connect()
    register(connection)
    for name in query.reads:
        connection.execute(_empty(name))
        if name in given:
            _fill(connection, name, given[name])
    values = _defaults(query) | case.get("params", {})
    names, expected = _rows(case["expect"])
    result = connection.execute(query.sql, values or None)
    order = [column[0] for column in result.description]
    got = [dict(zip(order, row, strict=True)) for row in result.fetchall()]
    shown = [tuple(_cell(row.get(name)) for name in names) for row in got]
    wanted = [tuple(cell.strip() for cell in row) for row in expected]
    if len(shown) != len(wanted) or not all(map(_same_row, shown, wanted)):
        return [f"{query.name}, case {case['name']!r}: expected {wanted}, got {shown}."]
    return []


def _rows(text: str) -> tuple[list[str], list[list[str]]]:
    """A small text table: a first line of names, `|` between cells, an empty cell is NULL."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    cells = [[cell.strip() for cell in line.strip().split("|")] for line in lines]
    return (cells[0], cells[1:]) if cells else ([], [])


def _fill(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> None:
    names, rows = _rows(text)
    kinds = _columns(name)
    stray = set(names) - kinds.keys()
    if stray:
        raise DeclarationError(f"{name} has no column {', '.join(sorted(stray))}.")
    defaults = {"run_id": "run", "source": "log"}
    for row in rows:
        values: dict[str, str | None] = {key: text for key, text in defaults.items() if key in kinds}
        values |= {key: cell or None for key, cell in zip(names, row, strict=True)}
        columns = ", ".join(f'"{key}"' for key in values)
        marks = ", ".join(f"CAST(? AS {kinds[key]})" for key in values)
        connection.execute(f'INSERT INTO "{name}" ({columns}) VALUES ({marks})', list(values.values()))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _same_row(shown: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(shown) == len(wanted) and all(map(_same, shown, wanted))


def _same(shown: str, wanted: str) -> bool:
    if shown == wanted:
        return True
    try:
        return abs(float(shown) - float(wanted)) <= 1e-9 * max(1.0, abs(float(wanted)))
    except ValueError:
        return False
