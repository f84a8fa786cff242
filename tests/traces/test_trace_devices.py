"""The same job on another kind of device: only the names of categories differ, so every answer has to stay."""

import json

import pytest

from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

# Host calls of two kernels of compute, then of a collective; times in microseconds.
CALLS = [(10, 1, "gemm"), (60, 2, "gemm"), (70, 3, None)]
KERNELS = [(20, 20, 1), (65, 25, 2), (100, 50, 3)]
COLLECTIVE = {
    "cuda": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "xpu": "oneccl_allreduce_base<float, 2>",
    "privateuse1": "hcclAllReduce",
}


def trace(device):
    calls = [
        {"ph": "X", "cat": f"{device}_runtime", "name": "launch", "pid": 9, "tid": 9, "ts": ts, "dur": 4,
         "args": {"correlation": number}}
        for ts, number, _ in CALLS
    ]  # fmt: skip
    names = {number: name or COLLECTIVE[device] for _, number, name in CALLS}
    work = [
        {"ph": "X", "cat": "kernel", "name": names[number], "pid": 0, "tid": 7, "ts": ts, "dur": dur,
         "args": {"correlation": number, "stream": 7, "device": 0}}
        for ts, dur, number in KERNELS
    ]  # fmt: skip
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 9, "tid": 9, "ts": 5, "dur": 90}
    return {"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [step, *calls, *work]}


@pytest.mark.parametrize("device", list(COLLECTIVE))
def test_launches_idle_causes_and_collectives(tmp_path, device):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "worker.pt.trace.json").write_text(json.dumps(trace(device)))
    ingest({"run": tmp_path / "run"}, tmp_path / "store", jobs=1)
    session = Session(Store(tmp_path / "store"), ["run"])

    def ask(sql):
        return [tuple(row.values()) for row in session.sql(sql).to_pylist()]

    idle = ask("SELECT cause, gaps, duration FROM trace_idle ORDER BY cause")
    # 40 to 65 waits for the call at 60; 90 to 100 was launched at 70, and ten microseconds are no short gap.
    assert idle == [("host late", 1, 25_000), ("waiting", 1, 10_000)]
    kernels = ask("SELECT activity, count, median_delay FROM trace_kernel ORDER BY activity")
    # The calls end at 14, 64 and 74; their work begins at 20, 65 and 100.
    assert kernels == [("communication", 1, 26_000), ("gpu compute", 2, 3_500)]
    assert ask("SELECT kind, step, launch_time % 1000000 FROM trace_collective") == [("allreduce", 4, 70_000)]
    assert ask("SELECT count(*) FROM trace_activity WHERE activity = 'runtime call'") == [(3,)]
