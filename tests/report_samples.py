"""A made-up comparison with every part that a report can show, and rows like those of queries/report."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from postmortem.report.data import Data, Result

START = 1_796_197_270_000_000_000
Rows = list[dict[str, Any]]


def evidence(source: str, line: int | None, rank: int, step: int, text: str) -> dict[str, Any]:
    return {
        "source": source,
        "line": line,
        "rank": rank,
        "step": step,
        "time": START,
        "text": text,
        "finding": "x",
    }


def fault(**changes: Any) -> dict[str, Any]:
    return {
        "fault": "throughput", "culprit_ranks": [3], "onset_step": 600, "onset_time": START, "confidence": "high",
        "severity": "fault", "statement": "Every step takes 2.1 times as long from step 600 on.",
        "mechanisms": ["One rank arrives late and the others wait for it."],
        "causes": [
            {"id": "slow_host", "title": "Something slows the host of rank 3", "rank_of_likelihood": 1,
             "for": ["its host-side time grew by 118 ms", "its kernels take as long as before"],
             "against": ["no throttling line in dmesg"]},
            {"id": "data", "title": "The data loader of rank 3 is slow", "rank_of_likelihood": 2, "for": [], "against": []},
        ],
        "experiments": [
            {"title": "Move rank 3 to another host", "change": "--exclude=node-a17",
             "expect_if_true": "the slowdown stays with the host", "expect_if_false": "it follows rank 3"},
        ],
        "evidence": [
            evidence("logs/rank3.log", 812, 3, 600, "[rank 3] step 600: loss=5.23, step_time=0.2934"),
            evidence("traces/rank3.json.gz", None, 3, 612, "rank 3 enters all_reduce 121.4 ms after rank 0"),
        ],
    } | changes  # fmt: skip


def diagnosis(name: str, faults: list[dict[str, Any]]) -> dict[str, Any]:
    keys = ("fault", "culprit_ranks", "onset_step", "onset_time", "confidence", "statement")
    return {
        "schema": "postmortem.diagnosis/1",
        "run": {"name": name, "world_size": 8, "hosts": ["node-a17", "node-b02"], "first_step": 1, "last_step": 2000,
                "started": START, "ended": START + 700 * 10**9, "end": "completed"},
        "primary": {key: faults[0][key] for key in keys} if faults else None,
        "faults": faults,
        "notes": [{"statement": "The loss spiked at step 312 and recovered.", "finding": "spike", "evidence": []}],
        "coverage": {"ranks_expected": 8, "ranks_with_log": 7, "ranks_with_trace": 8, "ranks_with_dump": 0,
                     "files": {"seen": 61, "read": 55, "unknown": 5, "failed": 1}, "issues": 3,
                     "missing": ["Rank 6 has no log."]},
        "environment": [{"name": "NCCL_SOCKET_IFNAME", "hosts": "node-a17", "value": "eth0"}],
    }  # fmt: skip


def comparison() -> dict[str, Any]:
    nan = fault(fault="nan_inf", culprit_ranks=[2], onset_step=1500, statement="Rank 2's loss is NaN from step 1500.")
    before, after = diagnosis("straggler_before", [fault(), nan]), diagnosis("straggler_after", [])
    slope = {"kind": "growing", "why": "it rises to the end", "slope": 1.6e6, "ci": [1.5e6, 1.7e6], "n": 1900}
    return {
        "schema": "postmortem.comparison/1", "before": "straggler_before", "after": "straggler_after",
        "verdict": "undecided", "why": "One fault is gone; the other needs more steps.",
        "faults": [
            {"fault": "throughput", "before": before["faults"][0], "after": None, "verdict": "fixed",
             "why": "1400 clean steps after the onset."},
            {"fault": "nan_inf", "before": nan, "after": None, "verdict": "undecided", "why": "Too few steps."},
        ],
        "throughput": {"verdict": "faster", "ratio": 0.472, "ci": [0.455, 0.489], "n": [1400, 2000],
                       "steady": {"before": [610, 1919], "after": [50, 1919]},
                       "why": "Steps became shorter.", "query": "step_times_compared", "n_effective": [700.0, 900.0],
                       "sides": {s: {"typical_seconds": t, "typical_ci": [t * 0.98, t * 1.02], "jitter": 0.05,
                                     "p95": {"estimate": 1.3 * t, "ci": [1.2 * t, None], "n": 1400},
                                     "set_aside": {"warm-up": 9}, "changes": []}
                                 for s, t in (("before", 0.293), ("after", 0.141))},
                       "phases": [{"phase": "bwd_allreduce", "before_seconds": 0.2, "after_seconds": 0.05, "difference": -0.15,
                                   "share": 1.0, "before_steps": 1400, "after_steps": 2000}], "unit": "step time after / before"},
        "stability": {"incidents_before": 1, "steps_before": 1500, "clean_steps_after": 2000, "needed": 28500, "failure_rate_before": 1 / 1500,
                      "upper_bound_after": 0.0015, "verdict": "undecided"},
        "memory": [{"kind": "host_rss", "rank": 3, "before": slope, "after": {"slope": 0.0, "ci": [-200.0, 310.0]},
                    "unit": "B/step", "verdict": "fixed"}],
        "loss": {"verdict": "equivalent", "ratio": 1.001, "ci": [0.998, 1.004], "why": "no difference", "n": 1500, "equal_in_print_until": 4,
                 "before": {"steps": 1500, "last_loss": 2.0, "spikes": [], "overflows": 0, "loss_scale": None}, "after": {}},
        "changes": [
            {"kind": "config", "what": "train_micro_batch_size_per_gpu", "before": 8, "after": 4, "can_mask": ["oom"]},
            {"kind": "environment", "what": "NCCL_DEBUG", "before": "INFO", "after": None, "can_mask": []},
        ],
        "before_diagnosis": before, "after_diagnosis": after,
    }  # fmt: skip


def _slices(value: Callable[[int], float], steps: int = 1920, count: int = 120) -> Rows:
    out, size = [], steps // count
    for start in range(0, steps, size):
        values = [(value(s), s) for s in range(start, start + size)]
        ordered = sorted(values)
        out.append({
            "step": start, "last_step": start + size - 1, "n": size, "first": values[0][0], "last": values[-1][0],
            "low_step": ordered[0][1], "low": ordered[0][0], "high_step": ordered[-1][1], "high": ordered[-1][0],
            "p10": ordered[size // 10][0], "median": ordered[size // 2][0], "p90": ordered[9 * size // 10][0],
        })  # fmt: skip
    return out


def _rows(side: str, ranks: int) -> dict[str, Rows]:
    dice, bad = random.Random(7), side != "after"
    slow = _slices(
        lambda s: (294 if bad and s >= 600 else 140) * math.exp(dice.gauss(0, 0.05)) * (3 if s == 999 else 1)
    )
    loss = _slices(lambda s: 2 + 8 * math.exp(-s / 400) + dice.gauss(0, 0.1))
    grad = _slices(lambda s: 90.0 if 312 <= s <= 317 else abs(0.4 + dice.gauss(0, 0.05)))
    curve = [
        r | {"name": n}
        for n, rows in (("loss", loss), ("grad_norm", grad))
        for r in rows
        if not bad or r["step"] < 1500
    ]
    nan: Rows = [{"name": "loss", "rank": 2, "value": "NaN", "first_step": 1500, "last_step": 1919, "n": 420}]
    nan += [
        {"name": "grad_norm", "rank": r, "value": "Inf", "first_step": 1500, "last_step": 1919, "n": 420}
        for r in range(ranks)
    ]
    memory = [
        {"kind": "host_rss", "series": f"rank {r}", "step": s, "bytes": 4e9 + r * 2e7 + (1.6e6 * s if r == 3 and bad else 0)}
        for r in range(min(ranks, 8)) for s in range(0, 2000, 40)
    ]  # fmt: skip
    late = [121.0 if r == 3 and bad else 1.5 + 0.3 * dice.random() for r in range(ranks)]
    lateness = [
        {"rank": r, "n": 2000, "low": m * 0.8, "median": m, "high": m * 1.3, "times_last": 5}
        for r, m in enumerate(late)
    ]
    return {
        "step_time": slow, "curve": curve, "nonfinite": nan if bad else [], "memory_curve": memory, "lateness": lateness,
        "timeline": _events() if bad else [],
        "step_phases": [{"phase": p, "ms": ms, "n": 40} for p, ms in (("computing", 90.0), ("communication", 50.0 + 154 * bad))],
        "checkpoint_grid": _shards(ranks),
        "waits": [{"blocker": 3, "operation": "all_reduce", "seq": 68, "reason": "not joined", "known": True,
                   "waiters": [r for r in range(ranks) if r != 3]}] if bad else [],
        "transport_map": [
            {"host": host, "kind": kind, "ranks": [0, 1, 2, 3] if host == "node-a17" else [4, 5, 6, 7], "processes": 4, "connections": 8}
            for host in ("node-a17", "node-b02")
            for kind in ("P2P", "NET/Socket" if bad and host == "node-b02" else "NET/IB/GDRDMA")
        ],
        "transport_pairs": [
            {"one": f"rank {a}", "other": f"rank {b}", "one_rank": a, "other_rank": b, "connections": 4,
             "kinds": ["P2P"] if a // 4 == b // 4 else ["NET/Socket" if bad and b == 7 else "NET/IB/GDRDMA"]}
            for a in range(8) for b in range(a + 1, 8)
        ],
        "collective_progress": [
            {"group_name": "default", "rank": r, "enqueued": 68 - (r == 3), "completed": 67} for r in range(ranks)
        ] if bad else [],
    }  # fmt: skip


def _events() -> Rows:
    first = {"time": START, "rank": 3, "role": "root", "kind": "signal", "name": "SIGKILL", "message": "killed",
             "source": "launcher.log", "line": 10}  # fmt: skip
    closed = [
        first | {"time": START + 4 * 10**8 + r, "rank": r, "role": "symptom", "kind": "exception", "name": "DistError",
                 "message": "Connection closed by peer"} for r in (0, 1, 2)
    ]  # fmt: skip
    ended = [
        first | {"time": START + 2 * 10**9, "rank": r, "role": "cascade", "kind": "kill", "name": "SIGTERM"}
        for r in (0, 1)
    ]
    return [first, *closed, *ended]


def data(sides: Sequence[str] = ("before", "after"), ranks: int = 8) -> Data:
    found = {
        side: {
            name: Result(name, name, f"SELECT 1 AS {name} WHERE 1 < 2", rows)
            for name, rows in _rows(side, ranks).items()
        }
        for side in sides
    }
    return Data(
        found,
        {name: Result(name, name, "SELECT 2", rows) for name, rows in _pair(ranks).items()} if len(sides) > 1 else {},
    )


def _shards(ranks: int) -> Rows:
    return [
        {"root": "checkpoints", "tag": f"global_step{s}", "step": s, "role": "optimizer", "dp": r, "mp": 0, "rank": r,
         "state": "damaged" if (r, s) == (1, 40) else "complete", "checked": "values", "source": f"checkpoints/{s}/{r}.pt",
         "bytes": 154565, "offset": 7, "end": 8, "text": "CRC differs" if (r, s) == (1, 40) else None,
         "whole": s == 20, "resume": s == 20, "named": s == 40}
        for s in (20, 40) for r in range(ranks)
    ]  # fmt: skip


def _pair(ranks: int) -> dict[str, Rows]:
    part = {"twins": True, "why": None, "step": 21, "metric": "loss", "rank": 0, "tag": "global_step20", "tag_step": 20,
            "shard_ranks": [2], "text": "twins that part at step 21"}  # fmt: skip
    return {
        "transport_changes": [
            {"kind": "NET/IB/GDRDMA", "before_processes": 4, "after_processes": 8, "before_connections": 8, "after_connections": 16},
            {"kind": "NET/Socket", "before_processes": 4, "after_processes": 0, "before_connections": 8, "after_connections": 0},
        ],
        "trace_operators_compared": [
            {"phase": "host", "name": name, "before_ms": before, "after_ms": after, "change_ms": after - before,
             "before_count": 40.0, "after_count": 40.0} for name, before, after in (("sleep", 120.0, 0.0), ("aten::mm", 20.0, 21.0))
        ],
        "twin_divergence": [part],
        "twin_metrics": [{"name": n, "step": s, "difference": 0.0 if s < 21 else 0.01 * s, "rank": 0} for n in ("loss", "grad_norm") for s in range(1, 41)],
        "twin_shards": [{"tag": "global_step20", "step": 20, "role": "optimizer", "dp": r, "mp": 0, "rank": r, "tensors": 4,
                         "differing": int(r == 2)} for r in range(ranks)],
    }  # fmt: skip
