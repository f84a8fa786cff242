"""Hostile texts in every text column of every table of a store: the report shows them as text, or not at all."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidence import ROOT
from test_report import PAYLOADS, Elements

from postmortem import report, schema
from postmortem.compare import compare
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.report.data import gather
from postmortem.store import Store

TEXTS = {"category", "string", "json"}
USABLE = [text.encode("utf-8", "replace").decode() for text in PAYLOADS]  # a column holds no half of a surrogate pair
# What queries look for stays beside the hostile rows: kinds and names decide whether a row is shown at all.
DECISIVE = {"run_id", "kind", "name", "role", "format", "status", "clock", "statement", "operation", "state", "phase"}


def _hostile(table: pa.Table, declared: schema.Table, everything: bool) -> pa.Table:
    """Return the rows with payloads as their texts: in every column, or behind the texts that decide nothing."""
    out = table
    payloads = itertools.cycle(USABLE)
    for place, column in enumerate(declared.columns):
        if column.type not in TEXTS or column.name == "run_id" or (not everything and column.name in DECISIVE):
            continue
        old = table.column(column.name).to_pylist()
        new = [_poisoned(text, next(payloads), json_only=column.type == "json", replace=everything) for text in old]
        out = out.set_column(
            place, column.field, pa.chunked_array([pa.array(new, pa.string())]).cast(column.field.type)
        )
    return out


def _poisoned(text: str | None, payload: str, *, json_only: bool, replace: bool) -> str:
    """Return the payload behind or instead of a text; JSON stays JSON, with the payload in its texts."""
    try:
        value = json.loads(text or "")
    except ValueError:
        value = None
    if json_only or isinstance(value, dict | list):
        return json.dumps(_within(value, payload, replace))
    return payload if replace or text is None else text + payload


def _within(value: Any, payload: str, replace: bool) -> Any:
    if isinstance(value, list):
        return [_within(item, payload, replace) for item in value]
    if isinstance(value, dict):
        return {key + payload: _within(item, payload, replace) for key, item in value.items()}
    return payload if replace else f"{value}{payload}"


def _one_row(declared: schema.Table, run: str) -> pa.Table:
    """Return a row for a table of which the run has none."""
    empty = {"bool": False, "float64": 1.0}
    row = {
        c.name: empty.get(c.type, [1] if c.type.endswith("[]") else "x" if c.type in TEXTS else 1)
        for c in declared.columns
    }
    return (
        pa.table(
            {
                c.name: pa.array([row[c.name]], c.field.type if c.type not in TEXTS else pa.string())
                for c in declared.columns
            }
        )
        .set_column(0, declared.columns[0].field, pa.array([run], pa.string()).cast(declared.columns[0].field.type))
        .cast(declared.arrow)
    )


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    store = tmp_path_factory.mktemp("store")
    ingest({side: ROOT / "sample_traces" / "oom_masked" / side for side in ("before", "after")}, store, jobs=1)
    for run, (name, declared) in itertools.product(("before", "after"), schema.tables().items()):
        folder = store / run / name
        folder.mkdir(exist_ok=True)
        parts = [pq.read_table(part, schema=declared.arrow) for part in sorted(folder.glob("*.parquet"))]
        rows = pa.concat_tables(parts or [_one_row(declared, run)])
        for everything in (True, False):
            pq.write_table(_hostile(rows.slice(0, 100), declared, everything), folder / f"hostile-{everything}.parquet")
    session = Session(Store(store), ["before", "after"])
    sides = {side: session.only(side) for side in ("before", "after")}
    return report.html(compare(session), gather(sides, session), static=True)


def test_hostile_texts_of_every_table_stay_text(page: str) -> None:
    found = Elements(page)
    assert not {tag for tag, _ in found.found} & {
        "script",
        "img",
        "iframe",
        "textarea",
        "object",
        "embed",
        "form",
        "base",
    }
    assert not [name for _, names in found.found for name in names if name.startswith("on")]
    assert all(re.match(r"#[\w\-]+$", link) for link in found.links)
    shown = [text for text in USABLE if text.split()[0] in found.text]
    assert len(shown) >= 8  # or nothing was tried


def test_every_table_and_text_column_was_poisoned() -> None:
    for name, declared in schema.tables().items():
        row = _one_row(declared, "run")
        texts = [c.name for c in declared.columns if c.type in TEXTS and c.name != "run_id"]
        poisoned = _hostile(row, declared, everything=True)
        assert all(poisoned.column(text).to_pylist() != ["x"] for text in texts), name
