"""Every declaration under schemas/ and queries/ keeps its own rules."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from postmortem import faults, query, schema
from postmortem.errors import DeclarationError
from postmortem.records import Batch


@pytest.mark.parametrize("name", sorted(schema.tables()))
def test_table_declaration_agrees_in_arrow_and_duckdb(name: str) -> None:
    table = schema.tables()[name]
    connection = duckdb.connect()
    connection.execute(table.ddl)
    described = connection.execute(f'SELECT column_name FROM (DESCRIBE "{name}")').fetchall()
    assert [row[0] for row in described] == table.arrow.names


@pytest.mark.parametrize("name", sorted(query.queries()))
def test_query_keeps_its_rules_and_passes_its_cases(name: str) -> None:
    assert query.check(query.queries()[name]) == []


def test_every_fault_is_known() -> None:
    assert set(faults.faults()) == set(faults.NAMES)


def test_causes_name_findings_that_exist() -> None:
    known = {q.name for q in query.queries().values() if q.folder in {"findings", "compare", "report"}}
    named = {name for f in faults.faults().values() for c in f.causes for name in (*c.supports, *c.opposes)}
    assert named <= known


def _declare(folder: Path, body: str) -> Path:
    path = folder / "thing.toml"
    path.write_text(f'name="thing"\nversion="1.0"\ngrain="one row per thing"\ndoc="Things."\nkey=["run_id"]\n{body}')
    return path


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('[columns.x]\ntype="int64"\ndoc="X."', "unit"),
        ('[columns.x]\ntype="int64"\nunit="furlong"\ndoc="X."', "unit"),
        ('[columns.x]\ntype="int63"\ndoc="X."', "unknown type"),
        ('[columns.x]\ntype="string"\ndoc=" "', "no doc"),
    ],
)
def test_bad_table_declarations_are_refused(tmp_path: Path, body: str, complaint: str) -> None:
    with pytest.raises(DeclarationError, match=complaint):
        schema.load(_declare(tmp_path, body))


def test_conform_fills_what_is_left_out_and_refuses_what_is_not_declared() -> None:
    table = schema.tables()["issue"]
    rows = table.conform(Batch("issue", {"kind": ["empty"], "dropped": [0], "message": ["m"]}), "r", "a.log")
    assert rows.to_pylist() == [
        {
            "run_id": "r",
            "source": "a.log",
            "kind": "empty",
            "line": None,
            "offset": None,
            "dropped": 0,
            "message": "m",
        }
    ]
    with pytest.raises(DeclarationError, match="colour"):
        table.conform(Batch("issue", {"colour": ["red"]}), "r", "a.log")
    with pytest.raises(DeclarationError, match="message"):
        table.conform(Batch("issue", {"kind": ["empty"], "dropped": [0], "message": [None]}), "r", "a.log")


def _query(folder: Path, sql: str) -> query.Query:
    (folder / "findings").mkdir(exist_ok=True)
    path = folder / "findings" / "q.sql"
    path.write_text(
        '/*---\ntitle="T"\nseverity="note"\nsummary="s"\nreads=["issue"]\n'
        '[returns]\nkind="VARCHAR"\n[[case]]\nname="fires"\ngiven.issue="""\nkind\nempty\n"""\n'
        'expect="""\nkind\nempty\n"""\n[[case]]\nname="silent"\ngiven.issue="kind"\nexpect="kind"\n---*/\n' + sql
    )
    return query.load(path)


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        ("SELECT kind FROM issue", None),
        ("SELECT * FROM issue", "banned"),
        ("SELECT kind FROM issue WHERE now() IS NOT NULL", "banned"),
        ("SELECT kind FROM issue WHERE line > $least", "parameters"),
        ("SELECT kind AS sort FROM issue", "columns"),
        ("SELECT upper(kind) AS kind FROM issue", "expected"),
        ("SELECT kind FROM line", "line"),
    ],
)
def test_query_check_finds_each_broken_rule(tmp_path: Path, sql: str, complaint: str | None) -> None:
    found = query.check(_query(tmp_path, sql))
    assert (found == []) if complaint is None else any(complaint in text for text in found)


def test_half_a_surrogate_pair_is_replaced() -> None:
    batch = Batch("issue", {"kind": ["malformed"], "dropped": [0], "message": ["\ud83c is no character"]})
    assert schema.tables()["issue"].conform(batch, "r", "a.json")["message"].to_pylist() == ["? is no character"]
