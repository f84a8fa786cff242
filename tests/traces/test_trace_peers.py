"""Our numbers beside those of HolisticTraceAnalysis and torch-tb-profiler, trace by trace.

peers.json holds what HolisticTraceAnalysis 0.5.0 (with the last profiled step kept, each file in a folder of its own: idle,
compute and other GPU time in us, overlap in %; or the error it stops with) and torch-tb-profiler 0.4.3 (step, us) print for
each trace of ../shared. Where they differ from ours, a test computes their figure from the trace by the reason for it: their
definitions are those of hta/analyzers/breakdown_analysis.py, hta/common/trace_parser.py and
torch_tb_profiler/profiler/event_parser.py.
"""

import gzip
import json
import shutil
import subprocess
import sys
from decimal import Decimal
from functools import cache
from math import ceil, floor
from pathlib import Path

import numpy as np
import pytest

from postmortem.crosscheck import crosscheck
from postmortem.errors import PostmortemError
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

PEERS = json.loads(Path(__file__).with_name("peers.json").read_text())
SETS = sorted({str(Path(name).parent) for name in PEERS})

# Why HolisticTraceAnalysis differs or stops, and on which traces.
CPU_ONLY = [
    *sorted(name for name in PEERS if name.startswith("gloo")),
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    "hta/distributed_info_unavailable/distributed_info_not_found.json.gz",
    "hta/rank_non_gpu/rank_non_gpu.json.gz",
    "hta/rank_unavailable/rank_not_found.json.gz",
]
ROUNDED = [
    "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "hta/nccl_parser_config/nccl_data.json.gz",
    "hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
]
NEGATIVE = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
NO_LAUNCH = "hta/trace_diff/test/test.json.gz"

# Why torch-tb-profiler's steps differ, and on which traces.
RUN_ON = sorted(name for name in PEERS if name.startswith("kineto-resnet50"))
SHADOWS = [*sorted(name for name in PEERS if name.startswith("tracelens")), ROUNDED[0]]


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


def is_compute(e):
    return is_gpu(e) and not is_communication(e) and not is_copy(e)


@pytest.fixture(scope="module")
def peers(shared, traced, trace_folders, tmp_path_factory):
    """peers(folder): a session over the traces of a folder."""
    known = {path.removeprefix("traces/"): name for name, path in trace_folders.items()}
    store = tmp_path_factory.mktemp("peers")
    others = {name.replace("/", "_"): shared / "data/traces" / name for name in SETS if name not in known}
    ingest(others, store, jobs=1)

    @cache  # a session keeps the views that it computed
    def session(name):
        return traced(known[name]) if name in known else Session(Store(store), [name.replace("/", "_")])

    return session


@pytest.fixture(scope="module")
def ours(peers):
    """ours(trace): its row of the breakdown of GPU time (None without a GPU), and its steps (number, us)."""
    rows, steps = {}, {name: [] for name in PEERS}
    for folder in SETS:
        session = peers(folder)
        rows |= {f"{folder}/{r['source']}": r for r in session.sql("FROM trace_breakdown").to_pylist()}
        for r in session.sql("SELECT source, step, duration / 1e3 AS us FROM trace_step ORDER BY step").to_pylist():
            steps[f"{folder}/{r['source']}"].append([r["step"], r["us"]])
    return lambda name: (rows.get(name), steps[name])


def figures(row):
    """Idle, compute and other GPU time in us, as HolisticTraceAnalysis divides it."""
    return [row["idle"] / 1000, row["compute"] / 1000, (row["exposed_communication"] + row["exposed_memcpy"]) / 1000]


def test_every_trace_is_compared(shared):
    folder = shared / "data/traces"
    assert sorted(str(file.relative_to(folder)) for file in folder.glob("**/*.json.gz")) == sorted(PEERS)


@pytest.mark.parametrize("name", sorted({*PEERS} - {*CPU_ONLY, *ROUNDED, NEGATIVE, NO_LAUNCH}))
def test_breakdown_and_overlap_are_those_of_hta(ours, name):
    row = ours(name)[0]
    assert figures(row) == PEERS[name]["hta"][:3]
    overlap = PEERS[name]["hta"][3]  # NaN without communication; else rounded to two places
    assert row["overlap"] is None if overlap is None else row["overlap"] == pytest.approx(overlap, abs=0.0051)


@pytest.mark.parametrize("name", [*ROUNDED, NEGATIVE, NO_LAUNCH])
def test_breakdown_and_overlap_by_the_definition(ours, shared, name):
    """Where the package differs, ours still is what its definition gives, in whole nanoseconds."""
    events = load(shared / "data/traces" / name)
    every, compute = spans(events, is_gpu), spans(events, is_compute)
    communication = spans(events, is_communication)
    span = int(every[:, 1].max() - every[:, 0].min())
    busy, computing = union(every), union(compute)
    row = ours(name)[0]
    assert figures(row) == [(span - busy) / 1000, computing / 1000, (busy - computing) / 1000]
    if len(communication):
        assert row["overlap"] == pytest.approx(100 * both(communication, compute) / union(communication))
    else:
        assert row["overlap"] is None


@pytest.mark.parametrize("name", CPU_ONLY)
def test_hta_stops_where_no_gpu_ran(ours, shared, name):
    assert PEERS[name]["hta"] == "IndexError"
    assert not any(is_gpu(e) for e in load(shared / "data/traces" / name))
    row, steps = ours(name)
    assert row is None
    assert steps


def rounded(events, chosen):
    """Spans of events in whole us as hta/common/trace_parser.py rounds doubles: starts up, ends down."""
    found = [e for e in events if chosen(e)]
    return sorted((ceil(float(e["ts"])), floor(float(e["ts"]) + float(e["dur"]))) for e in found)


def merged(intervals):
    """Length of a union as hta/utils/utils.py merges: an interval that ends before it starts counts as negative."""
    groups, reached = [], -1
    for start, end in intervals:
        if start > reached:
            groups.append([start, end])
        else:
            groups[-1][1] = max(groups[-1][1], end)
        reached = max(reached, end)
    return sum(end - start for start, end in groups)


@pytest.mark.parametrize("name", [*ROUNDED, NEGATIVE])
def test_hta_cuts_nanoseconds_off_both_ends_of_every_event(shared, name):
    """So idle time grows by almost 1 us per event; events shorter than that become negative, and an assertion fails."""
    events = load(shared / "data/traces" / name)
    every, compute = rounded(events, is_gpu), merged(rounded(events, is_compute))
    span = max(end for _, end in every) - every[0][0]
    other = merged(every) - compute
    if name == NEGATIVE:
        assert PEERS[name]["hta"] == "AssertionError"
        assert other < 0
    else:
        assert PEERS[name]["hta"][:3] == [span - merged(every), compute, other]


def test_hta_leaves_out_gpu_events_whose_launch_is_not_in_the_trace(shared):
    events = load(shared / "data/traces" / NO_LAUNCH)
    launched = {e["args"].get("correlation") for e in events if e.get("cat") in {"cuda_runtime", "cuda_driver"}}
    every = spans(events, lambda e: is_gpu(e) and e["args"].get("correlation") in launched)
    compute = union(spans(events, lambda e: is_compute(e) and e["args"].get("correlation") in launched))
    idle = int(every[:, 1].max() - every[:, 0].min()) - union(every)
    assert PEERS[NO_LAUNCH]["hta"][:3] == [idle / 1000, compute / 1000, (union(every) - compute) / 1000]
    assert sum(is_gpu(e) and e["args"].get("correlation") not in launched for e in events) == 614


@pytest.mark.parametrize("name", sorted({*PEERS} - {*RUN_ON, *SHADOWS}))
def test_step_times_are_those_of_torch_tb_profiler(ours, name):
    """Its times are doubles: those of 2024 (19 digits) are exact to a quarter of a microsecond only."""
    theirs, own = PEERS[name]["steps"], ours(name)[1]
    assert [step for step, _ in own] == [step for step, _ in theirs]
    close = 0.5 if "ns_resolution" in name else 0.002
    assert [us for _, us in own] == pytest.approx([us for _, us in theirs], abs=close)


def test_idle_time_has_a_cause(peers):
    for name in SETS:
        rows = peers(name).sql(
            "SELECT b.source, b.idle, coalesce(i.duration, 0) AS caused FROM trace_breakdown AS b LEFT JOIN "
            "(SELECT source, sum(duration) AS duration FROM trace_idle GROUP BY source) AS i USING (source)"
        )
        assert all(r["idle"] == r["caused"] for r in rows.to_pylist())


@pytest.mark.parametrize("name", RUN_ON)
def test_steps_of_torch_tb_profiler_hold_the_kernels_that_run_on(ours, shared, name):
    """Its step begins where the one before ended and ends with the last kernel launched within; ours is the annotation."""
    events = load(shared / "data/traces" / name)
    kernels = {e["args"]["correlation"]: int(e["ts"] + e["dur"]) for e in events if is_gpu(e)}
    calls = [(int(e["ts"]), kernels.get(e["args"].get("correlation"))) for e in events if e.get("cat") == "Runtime"]
    steps = [e for e in events if e["name"].startswith("ProfilerStep#")]
    before, theirs = 0, []
    for e in sorted(steps, key=lambda e: e["ts"]):
        start, end = int(e["ts"]), int(e["ts"] + e["dur"])
        ends = [done for at, done in calls if start <= at <= end and done is not None]
        theirs.append([int(e["name"].split("#")[1]), max([end, *ends]) - max(start, before)])
        before = max([end, *ends])
    assert theirs == PEERS[name]["steps"]
    assert ours(name)[1] == [[int(e["name"].split("#")[1]), e["dur"]] for e in sorted(steps, key=lambda e: e["ts"])]


@pytest.mark.parametrize("name", SHADOWS)
def test_torch_tb_profiler_takes_the_shadow_of_a_step_on_the_gpu_for_a_step(ours, shared, name):
    """It takes gpu_user_annotation for user_annotation, and so lists a ProfilerStep twice."""
    steps = [e for e in load(shared / "data/traces" / name) if str(e.get("name")).startswith("ProfilerStep#")]
    both_kinds = [[int(e["name"].split("#")[1]), pytest.approx(float(e["dur"]), abs=0.002)] for e in steps]
    theirs, own = PEERS[name]["steps"], ours(name)[1]
    assert len(theirs) > len(own)
    assert [step for step in theirs if step in both_kinds] == theirs
    assert own == [step for step, e in zip(both_kinds, steps, strict=True) if e["cat"] == "user_annotation"]


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


LARGE = ("kineto-resnet50", "hta/trace_diff", "hta/ns_", "hta/nccl_")  # half a minute; their steps are compared above


@pytest.mark.parametrize("name", [name for name in SETS if not name.startswith(LARGE)])
def test_crosscheck_knows_why_the_package_itself_differs(peers, name):
    pytest.importorskip("torch_tb_profiler", reason="the extra [tensorboard] is not installed")
    rows = crosscheck(peers(name))
    steps = [row for row in rows if row.value.startswith("step time")]
    assert steps
    assert all(row.agrees for row in steps)
    assert {row.value for row in rows if not (row.agrees or row.why)} == set()


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
