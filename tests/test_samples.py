"""The sample pairs: verdict and fault as their README states, and JSON as schemas/json promises."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from evidence import ROOT

from postmortem.compare import compare, measures
from postmortem.diagnosis import diagnose
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.report import _finite, markdown
from postmortem.store import Store

jsonschema = pytest.importorskip("jsonschema")
SAMPLES = ROOT / "sample_traces"
STATED = re.findall(r"^\| (?!pair)(\w+) \| [^|]* \| ([a-z ]+) \|", (SAMPLES / "README.md").read_text(), re.MULTILINE)
# The faults that were injected (see sample_traces/README.md): class, rank that began it, step of the onset.
INJECTED: dict[str, tuple[str, list[int], int | None]] = {
    "straggler": ("throughput", [3], 8),
    "nan": ("nan_inf", [2], 15),
    "crash": ("crash", [1], 17),
    "exc": ("crash", [3], 9),
    "leak": ("oom", [], None),
    "dataloader": ("throughput", [], 25),
    "oom_masked": ("oom", [1], 12),
}


@pytest.fixture(scope="module", params=[name for name, _ in STATED])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Session, dict[str, Any]]:
    store = tmp_path_factory.mktemp("store")
    ingest({side: SAMPLES / request.param / side for side in ("before", "after")}, store, jobs=1)
    session = Session(Store(store), ["before", "after"])
    return request.param, session, compare(session)


def conforms(document: dict[str, Any], name: str) -> None:
    declared = json.loads((ROOT / f"schemas/json/{name}.schema.json").read_text())
    text = json.dumps(_finite(document), allow_nan=False)  # what --json prints
    jsonschema.Draft202012Validator(declared).validate(json.loads(text))


def test_every_pair_is_documented() -> None:
    assert {name for name, _ in STATED} == {path.name for path in SAMPLES.iterdir() if path.is_dir()}


def test_a_pair_is_small_enough_to_keep() -> None:
    for folder in (path for path in SAMPLES.iterdir() if path.is_dir()):
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 1_500_000, folder


def test_verdict_diagnosis_and_json(pair: tuple[str, Session, dict[str, Any]]) -> None:
    name, session, document = pair
    assert document["verdict"] == dict(STATED)[name], document["why"]
    conforms(document, "comparison")
    before, after = document["before_diagnosis"], document["after_diagnosis"]
    conforms(before, "diagnosis")
    conforms(after, "diagnosis")
    assert after["primary"] is None
    if name not in INJECTED:
        assert before["primary"] is None
        assert before == diagnose(session.only("before"))
        return
    fault, culprits, onset = INJECTED[name]
    primary = before["primary"]
    assert (primary["fault"], primary["culprit_ranks"]) == (fault, culprits)
    assert onset is None or abs(primary["onset_step"] - onset) <= 1


def test_one_run_has_its_numbers(pair: tuple[str, Session, dict[str, Any]]) -> None:
    """The README of the samples states what was injected: 1.6 MB kept a step, and slow loading from step 25 on."""
    name, session, compared = pair
    document = compared["before_diagnosis"] | measures(session.only("before"))
    conforms(document, "diagnosis")
    told = markdown(document)
    if name == "leak":
        slopes = [row["run"]["slope"] for row in document["memory"] if row["run"]["kind"] == "growing"]
        assert len(slopes) == 4  # one per rank
        assert all(1.5e6 < slope < 1.9e6 for slope in slopes)
        assert told.count("growing: it rises in every quarter") == 4
    if name == "dataloader":
        (change,) = document["throughput"]["sides"]["run"]["changes"]
        assert abs(change["step"] - 25) <= 1
        assert "step 25" in told
    assert document["loss"]["run"]["steps"] > 0
