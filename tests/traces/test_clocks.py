"""Clocks that disagree, put into real traces: the answers stay and the offsets are found."""

import importlib.util
from pathlib import Path

import pytest

_FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "simulate_clocks.py"


@pytest.fixture(scope="module")
def simulate():
    spec = importlib.util.spec_from_file_location("simulate_clocks", _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("steps", "count", "bends"), [(1, 6, False), (50, 3, False), (300, 1, True)])
def test_offsets_and_drifts_of_eight_hosts(simulate, ask, steps, count, bends):
    trace = ask.tables("FROM trace_file", "dlrm")
    collectives = simulate.repeated(ask.tables("FROM trace_collective", "dlrm"), steps)
    result = simulate.trials(trace, collectives, count, seed=7, bends=bends)
    assert result["unchanged"] >= 0.99
    assert result["largest_error_us"] <= 20
    assert result["covered"] >= 0.95


def test_too_few_common_collectives_leave_the_clocks_unknown(simulate, ask):
    trace = ask.tables("FROM trace_file", "dlrm")
    few = ask.tables("FROM trace_collective WHERE kind = 'allreduce'", "dlrm")
    last, clocks = simulate.answers(trace, few)
    assert last == []
    assert {status for rank, status, *_ in clocks if rank} == {"unknown"}
