"""Real traces, ingested once for all tests of the views."""

from __future__ import annotations

import tomllib

import pytest

from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

RUNS = {
    "dlrm": "traces/param-dlrm-8ranks",
    "gloo_before": "traces/gloo-straggler-leak/before",
    "gloo_after": "traces/gloo-straggler-leak/after",
    "resnet_before": "traces/kineto-resnet50/resnet50_num_workers_0",
    "resnet_after": "traces/kineto-resnet50/resnet50_num_workers_4",
}


@pytest.fixture(scope="session")
def trace_folders():
    """Name of each run in the store below -> its folder in ../shared/data."""
    return RUNS


@pytest.fixture(scope="session")
def truth(shared):
    return tomllib.loads((shared / "data" / "TRUTH.toml").read_text())["trace"]


@pytest.fixture(scope="session")
def traced(shared, tmp_path_factory):
    """session(run, ...) over the store of the sets above."""
    store = tmp_path_factory.mktemp("traced")
    ingest({name: shared / "data" / path for name, path in RUNS.items()}, store, jobs=1)
    return lambda *runs: Session(Store(store), runs)


@pytest.fixture
def ask(traced):
    """ask(sql, run, ...): rows as dicts, over tables and views."""

    def run(sql, *runs):
        return traced(*runs).sql(sql).to_pylist()

    run.tables = lambda sql, *runs: traced(*runs).sql(sql)
    return run
