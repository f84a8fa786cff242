"""A rank that the user states outranks what files and names say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postmortem.discover import discover
from postmortem.errors import InputError
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.runs import read_rank_map
from postmortem.store import Store


def test_patterns_give_ranks_and_the_first_one_that_fits_counts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "node1").mkdir(parents=True)
    for name in ("node1/worker.log", "x_rank3.log", "y.log"):
        (run / name).write_text("a line\n")
    (tmp_path / "map.toml").write_text('"node1/*" = 5\n"*rank3*" = 6\n"*" = 7\n')
    found = discover("run", run, {"rank_map": read_rank_map(tmp_path / "map.toml")})
    assert {s.path: (s.rank, s.rank_given) for s in found} == {
        "node1/worker.log": (5, True),
        "x_rank3.log": (6, True),
        "y.log": (7, True),
    }


@pytest.mark.parametrize("text", ['"*" = "three"', '"*" = -1', "not toml"])
def test_bad_maps_are_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(InputError, match="map"):
        read_rank_map(tmp_path / "map.toml")


def test_a_trace_of_a_given_rank(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    event = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 1.0, "dur": 1.0}
    trace = {"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": [event]}
    (run / "a.pt.trace.json").write_text(json.dumps(trace))
    (tmp_path / "map.toml").write_text('"a.*" = 9\n')
    ingest({"run": run}, tmp_path / "store", options={"rank_map": read_rank_map(tmp_path / "map.toml")})
    found = Session(Store(tmp_path / "store"), ["run"]).sql("SELECT rank, rank_origin FROM trace").to_pylist()
    assert found == [{"rank": 9, "rank_origin": "rank_map"}]
