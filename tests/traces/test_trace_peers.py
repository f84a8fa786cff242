"""Our numbers beside those of HolisticTraceAnalysis and torch-tb-profiler, whose definitions are computed here anew.

The definitions are those of hta/analyzers/breakdown_analysis.py and communication_analysis.py, and of the overall view of
torch_tb_profiler/profiler/overall_parser.py; the packages themselves run in benchmarks/compare_peers.py and, where
installed, in the last test.
"""

import gzip
import json
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from postmortem.crosscheck import crosscheck
from postmortem.errors import PostmortemError
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

SETS = [
    "param-dlrm-8ranks",
    "hta/trace_diff/control",
    "hta/trace_diff/test",
    "hta/trace_filter",
    "hta/nccl_parser_config",
    "hta/ns_resolution_trace",
    "hta/amd_trace",
    "kineto-resnet50/resnet50_num_workers_0",
    "kineto-resnet50/resnet50_num_workers_4",
    "tracelens/h100",
    "tracelens/mi300",
]
WITHOUT_GPU = [
    "gloo-straggler-leak/before",
    "gloo-straggler-leak/after",
    "hta/cpu_only",
    "hta/distributed_info_unavailable",
    "hta/rank_non_gpu",
    "hta/rank_unavailable",
]
LONGER_STEPS = {name for name in SETS if name.startswith("kineto-resnet50")}  # of 2021, see the test of its steps


def load(file):
    text = gzip.decompress(file.read_bytes())
    return json.loads(text, strict=False, parse_float=Decimal)["traceEvents"]


def spans(events, chosen):
    """Intervals in ns of the chosen events, an array of shape (n, 2)."""
    found = [(int(e["ts"] * 1000), int((e["ts"] + e["dur"]) * 1000)) for e in events if chosen(e)]
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def union(intervals):
    """Total length of a union of intervals, by marking the end of each merged stretch."""
    total, reached = 0, None
    for start, end in intervals:
        if reached is None or start >= reached:
            total, reached = total + end - start, end
        elif end > reached:
            total, reached = total + end - reached, end
    return int(total)


def both(first, second):
    """Length of the intersection of two unions, by sweeping over all edges with a counter for each."""
    edges = [(t, i, k) for k, s in enumerate((first, second)) for a, b in s for t, i in ((a, 1), (b, -1))]
    edges.sort(key=lambda e: e[0])
    running, total, last = [0, 0], 0, 0
    for time, change, kind in edges:
        if running[0] and running[1]:
            total += time - last
        running[kind] += change
        last = time
    return int(total)


def is_gpu(e):
    return e.get("ph") == "X" and e.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}


def is_communication(e):
    return is_gpu(e) and ("nccl" in e["name"][:4].lower() or "ncclKernel" in e["name"] or "ncclDevKernel" in e["name"])


def is_copy(e):
    name = e["name"]
    return is_gpu(e) and not is_communication(e) and (
        e["cat"].lower() != "kernel" or name.startswith(("Memcpy", "Memset", "hipMemcpy", "__amd_rocclr_"))
    )  # fmt: skip


@pytest.fixture(scope="module")
def peers(shared, tmp_path_factory):
    store = tmp_path_factory.mktemp("peers")
    ingest({name.replace("/", "_"): shared / "data/traces" / name for name in [*SETS, *WITHOUT_GPU]}, store, jobs=1)
    return lambda name: Session(Store(store), [name.replace("/", "_")])


@pytest.mark.parametrize("name", SETS)
def test_temporal_breakdown_and_overlap(peers, shared, name):
    rows = {r["source"]: r for r in peers(name).sql("FROM trace_breakdown").to_pylist()}
    for file in sorted((shared / "data/traces" / name).glob("*.json.gz")):
        events = load(file)
        every = spans(events, is_gpu)
        communication = spans(events, is_communication)
        compute = spans(events, lambda e: is_gpu(e) and not is_communication(e) and not is_copy(e))
        row = rows[file.name]
        span = int(every[:, 1].max() - every[:, 0].min())
        busy, computing = union(every), union(compute)
        assert (row["span"], row["idle"], row["compute"]) == (span, span - busy, computing)
        assert row["exposed_communication"] + row["exposed_memcpy"] == busy - computing  # HTA's non_compute_time
        if len(communication):
            share = 100 * both(communication, compute) / union(communication)
            assert row["overlap"] == pytest.approx(share)
        else:
            assert row["overlap"] is None  # HTA: NaN with a RuntimeWarning


@pytest.mark.parametrize("name", WITHOUT_GPU)
def test_a_trace_without_gpu_events_has_no_breakdown_of_gpu_time(peers, shared, name):
    """HTA breaks off on such a trace, in min() of an empty column or for want of a stream; no row is our answer."""
    assert not any(is_gpu(e) for f in (shared / "data/traces" / name).glob("*.json.gz") for e in load(f))
    assert peers(name).sql("FROM trace_breakdown").to_pylist() == []
    assert peers(name).sql("FROM trace_idle").to_pylist() == []
    assert peers(name).sql("SELECT count(*) AS n FROM trace_step WHERE origin = 'ProfilerStep'").to_pylist()[0]["n"]


# What HolisticTraceAnalysis 0.5.0 prints (benchmarks/compare_peers.py) where it differs from the definition: idle and compute, us.
THEIR_TEST, THEIR_NCCL = (51692, 514576), (506512, 113012)


def breakdown(events, chosen, change=lambda s: s):
    every = change(spans(events, lambda e: is_gpu(e) and chosen(e)))
    compute = change(spans(events, lambda e: is_gpu(e) and chosen(e) and not is_communication(e) and not is_copy(e)))
    return int(every[:, 1].max() - every[:, 0].min()) - union(every), union(compute)


def test_hta_leaves_out_gpu_events_whose_launch_is_not_in_the_trace(shared):
    events = load(shared / "data/traces/hta/trace_diff/test/test.json.gz")
    launched = {e["args"].get("correlation") for e in events if e.get("cat") in {"cuda_runtime", "cuda_driver"}}
    found = breakdown(events, lambda e: e["args"].get("correlation") in launched)
    assert tuple(ns / 1000 for ns in found) == THEIR_TEST
    assert sum(is_gpu(e) and e["args"].get("correlation") not in launched for e in events) == 614


def test_hta_cuts_nanoseconds_off_both_ends_of_every_event(shared):
    """Each start is rounded up and each end down to whole us, so idle time grows by almost 1 us per event."""
    events = load(shared / "data/traces/hta/nccl_parser_config/nccl_data.json.gz")

    def whole(found):
        # A double of ts (us) is what HTA rounds; it is exact to the nanosecond here.
        start, end = -(-found[:, 0] // 1000) * 1000, found[:, 1] // 1000 * 1000
        return np.stack([start, end], axis=1)[end > start]

    assert tuple(ns / 1000 for ns in breakdown(events, lambda _: True, whole)) == pytest.approx(THEIR_NCCL, rel=1e-3)


def test_idle_time_has_a_cause(peers):
    for name in set(SETS) - LONGER_STEPS:
        rows = peers(name).sql(
            "SELECT b.source, b.idle, coalesce(i.duration, 0) AS caused FROM trace_breakdown AS b LEFT JOIN "
            "(SELECT source, sum(duration) AS duration FROM trace_idle GROUP BY source) AS i USING (source)"
        )
        assert all(r["idle"] == r["caused"] for r in rows.to_pylist())


# What torch-tb-profiler 0.4.3 prints for kineto-resnet50, num_workers_0, first span (us).
THEIR_STEPS = {5: 187948, 6: 175153, 7: 179733, 8: 174564, 9: 182172, 10: 165983}


def test_step_times_differ_from_torch_tb_profiler_by_kernels_that_run_on(ask, shared):
    """Its step begins where the one before ended and ends with the last kernel launched within; ours is the annotation."""
    [file] = (shared / "data/traces/kineto-resnet50/resnet50_num_workers_0").glob("*3089861*")
    events = load(file)
    kernels = {e["args"]["correlation"]: int(e["ts"] + e["dur"]) for e in events if is_gpu(e)}
    calls = [(int(e["ts"]), kernels.get(e["args"].get("correlation"))) for e in events if e.get("cat") == "Runtime"]
    rows = ask(
        "SELECT step, start_time // 1000 AS a, end_time // 1000 AS b FROM trace_step "
        f"WHERE source = '{file.name}' ORDER BY step",
        "resnet_before",
    )
    before, theirs = 0, {}
    for row in rows:
        ends = [end for at, end in calls if row["a"] <= at <= row["b"] and end is not None]
        last = max([row["b"], *ends])
        theirs[row["step"]] = last - max(row["a"], before)
        before = last
    assert theirs == THEIR_STEPS


def test_the_shadow_of_a_step_on_the_gpu_is_no_step(peers):
    """torch-tb-profiler lists ProfilerStep#6 twice here: it takes gpu_user_annotation for user_annotation."""
    rows = peers("tracelens/h100").sql("SELECT source, step FROM trace_step").to_pylist()
    shadows = peers("tracelens/h100").sql(
        "SELECT count(*) AS n FROM trace_event WHERE cat = 'gpu_user_annotation' AND name LIKE 'ProfilerStep%'"
    )
    assert shadows.to_pylist() == [{"n": 2}]
    assert sorted(r["step"] for r in rows) == [6, 6]
    assert len({r["source"] for r in rows}) == 2


def test_the_straggler_is_not_the_rank_with_the_last_long_kernel(ask, truth):
    """HTA drops kernels under 1 % of a step first, and so the short one of the rank that came last: it says 2 and 7."""
    expected = truth["traces/param-dlrm-8ranks"]["last_rank"]
    rows = ask(
        "SELECT collective, rank, end_time - start_time AS dur, step_duration, is_last FROM aligned_collective "
        "JOIN (SELECT step, median(duration) AS step_duration FROM trace_step GROUP BY step) USING (step)",
        "dlrm",
    )
    dropped = [r for r in rows if r["is_last"] and r["dur"] < 0.01 * r["step_duration"]]
    assert len(dropped) == len(expected)  # each last arrival is among what HTA leaves out
    assert 2 not in expected


def test_crosscheck_with_the_package_itself(traced):
    pytest.importorskip("torch_tb_profiler", reason="the extra [tensorboard] is not installed")
    rows = crosscheck(traced("gloo_before"))
    assert rows
    assert all(row.agrees for row in rows)


@pytest.mark.parametrize("name", [*SETS, *WITHOUT_GPU])
def test_step_times_of_every_trace_beside_the_package_itself(peers, name):
    pytest.importorskip("torch_tb_profiler", reason="the extra [tensorboard] is not installed")
    rows = crosscheck(peers(name))
    steps = [row for row in rows if row.value.startswith("step time")]
    assert steps
    assert {row.value for row in rows if not (row.agrees or row.why)} == set()
    if name not in LONGER_STEPS:
        assert all(row.agrees for row in steps)


def test_crosscheck_takes_the_name_of_a_run_and_says_where_its_files_went(shared, tmp_path):
    """From the command line, as a user: by name, and after the folder was moved away."""
    pytest.importorskip("torch_tb_profiler", reason="the extra [tensorboard] is not installed")
    folder = tmp_path / "traced"
    folder.mkdir()
    shutil.copy(shared / "data/traces/gloo-straggler-leak/before/rank2.pt.trace.json.gz", folder)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).resolve().parents[2])}

    def run(*words):
        command = [sys.executable, "-m", "postmortem", *words, "--store", "store"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("ingest", "mine=traced")[0] == 0
    code, said, complaint = run("crosscheck", "mine")
    assert (code, complaint) == (0, "")
    assert "step time (us)" in said
    folder.rename(tmp_path / "moved")
    code, _, complaint = run("crosscheck", "mine")
    assert code == 2
    assert f"is not where it was ingested ({folder})" in complaint


def test_crosscheck_says_what_is_missing(traced, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_tb_profiler", None)
    monkeypatch.setitem(sys.modules, "torch_tb_profiler.profiler.data", None)
    with pytest.raises(PostmortemError, match="tensorboard"):
        crosscheck(traced("dlrm"))
