"""The real runs of ../shared: fault, culprit, onset and verdict are those that TRUTH.toml states."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from evidence import ROOT

from postmortem.compare import compare
from postmortem.diagnosis import diagnose
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

_TRUTH = ROOT.parent / "shared" / "data" / "TRUTH.toml"
TRUTH: dict[str, Any] = tomllib.loads(_TRUTH.read_text()) if _TRUTH.exists() else {"run": {}, "pair": {}}


@pytest.fixture(scope="session")
def store(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    ingest({path.name: path for path in sorted((shared / "data" / "runs").iterdir())}, folder)
    return Store(folder)


@pytest.fixture(scope="session")
def compared(store: Store) -> Callable[[str, str], dict[str, Any]]:
    """Comparisons of two of the runs, each made once."""
    return cache(lambda before, after: compare(Session(store, [before, after])))


@pytest.fixture(scope="session")
def diagnosed(store: Store, compared: Callable[[str, str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    """The diagnosis of one of the runs: that of a comparison, where there is one with it."""

    def of(name: str) -> dict[str, Any]:
        for pair in TRUTH["pair"].values():
            for side in ("before", "after"):
                if pair[side] == name:
                    found: dict[str, Any] = compared(pair["before"], pair["after"])[f"{side}_diagnosis"]
                    return found
        return diagnose(Session(store, [name]))

    return of


def _any(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", sorted(TRUTH["run"]))
def test_run(diagnosed: Callable[[str], dict[str, Any]], name: str) -> None:
    truth = TRUTH["run"][name]
    found = diagnosed(name)
    primary = found["primary"]
    assert (primary["fault"] if primary else "none") in _any(truth["fault"]), found["faults"]
    if primary and "culprit" in truth:
        assert primary["culprit_ranks"] == truth["culprit"]
    if primary and "onset" in truth:
        assert abs(primary["onset_step"] - truth["onset"]) <= 1
    if not primary:
        assert not [fault for fault in found["faults"] if fault["severity"] == "fault"]


@pytest.mark.parametrize("name", sorted(TRUTH["pair"]))
def test_pair(compared: Callable[[str, str], dict[str, Any]], name: str) -> None:
    truth = TRUTH["pair"][name]
    found = compared(truth["before"], truth["after"])
    assert found["verdict"] in _any(truth["verdict"]), found["why"]


def _diagnose(path: Path, folder: Path) -> dict[str, Any]:
    """The diagnosis of one file or folder as a run of its own."""
    run = folder / "run"
    if path.is_dir():
        run = path
    else:
        run.mkdir()
        shutil.copy(path, run)
    ingest({"run": run}, folder / "store")
    return diagnose(Session(Store(folder / "store"), ["run"]))


@pytest.mark.parametrize("name", sorted(TRUTH.get("log", {})))
def test_log(shared: Path, tmp_path: Path, name: str) -> None:
    truth = TRUTH["log"][name]
    primary = _diagnose(shared / "data" / name, tmp_path)["primary"]
    assert (primary["fault"] if primary else "none") in _any(truth["fault"])
    if "culprit" in truth:
        assert primary["culprit_ranks"] == truth["culprit"]


@pytest.mark.parametrize("name", sorted(TRUTH.get("flight_recorder", {})))
def test_flight_recorder(shared: Path, tmp_path: Path, name: str) -> None:
    primary = _diagnose(shared / "data" / name, tmp_path)["primary"]
    assert (primary["fault"], primary["culprit_ranks"]) == ("comm_hang", TRUTH["flight_recorder"][name]["culprit"])


def test_straggler_of_traces(shared: Path, tmp_path: Path) -> None:
    name = "traces/gloo-straggler-leak"
    primary = _diagnose(shared / "data" / name / "before", tmp_path)["primary"]
    assert (primary["fault"], primary["culprit_ranks"]) == ("throughput", [TRUTH["trace"][name]["straggler"]])


def test_a_run_that_was_stopped_from_outside_does_not_repeat_a_crash(store: Store) -> None:
    found = compare(Session(store, ["exc_before", "hang_silent"]))
    crash = next(entry for entry in found["faults"] if entry["fault"] == "crash")
    assert crash["verdict"] == "undecided"  # 13 clean steps; 171 are needed after one incident in 9
    assert "171" in crash["why"]


def test_twins_that_part_have_causes_and_experiments(compared: Callable[[str, str], dict[str, Any]]) -> None:
    pair = TRUTH["pair"]["corrupt"]
    found = compared(pair["before"], pair["after"])
    silent = next(entry for entry in found["faults"] if entry["fault"] == "silent")["before"]
    causes = {cause["id"]: cause for cause in silent["causes"]}
    assert silent["causes"][0]["id"] == "damaged_shard"
    assert causes["damaged_shard"]["for"]
    assert causes["storage_corruption"]["against"]
    assert causes["precision_drift"]["against"]
    assert {experiment["cause"] for experiment in silent["experiments"]} == set(causes)
    assert str(pair["differing_shard"]) in {part for e in silent["evidence"] for part in (e["source"] or "").split("_")}
