"""Every declared pattern recognises its samples, and gives the rows that they state."""

import math
from pathlib import Path

import pytest

from postmortem import formats, schema
from postmortem.parsers import lines
from postmortem.records import Batch, Source

SAMPLES = [(p, s) for p in formats.patterns() for s in p.samples]


def tables(path: Path, text: bytes, name: str = "train.log") -> dict[str, list[dict]]:
    file = path / "input"
    file.write_bytes(text)
    source = Source("run", name, file, "lines", len(text), "0")
    found: dict[str, list[dict]] = {}
    for item in lines.parse(source):
        assert isinstance(item, Batch), item
        rows = schema.tables()[item.table].conform(item, "run", name).to_pylist()
        found.setdefault(item.table, []).extend(rows)
    return found


def same(got, want) -> bool:
    if isinstance(want, float):
        return got is not None and ((math.isnan(got) and math.isnan(want)) or math.isclose(got, want, rel_tol=1e-12))
    return got == want


@pytest.mark.parametrize(("pattern", "sample"), SAMPLES, ids=[f"{p.id}-{i}" for i, (p, _) in enumerate(SAMPLES)])
def test_sample(pattern, sample, tmp_path):
    found = tables(tmp_path, sample.line.encode())
    assert [line["format"] for line in found["line"] if line["format"]] == [pattern.id]
    assert "".join(line["prefix"] + line["text"] for line in found["line"]) == sample.line
    rows = [row for table, all_rows in found.items() if table != "line" for row in all_rows]
    for want in sample.rows:
        assert any(all(k in row and same(row[k], v) for k, v in want.items()) for row in rows), (want, rows)
