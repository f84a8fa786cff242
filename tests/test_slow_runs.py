"""Runs made by hand that become slow, and runs that only look so: who, since when, and the cause an expert names first."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import pytest
from evidence import stored

from postmortem.diagnosis import Finding, rank_faults
from postmortem.query import Session, queries

STEPS, ONSET = 66, 30
USUAL = {"fwd": 0.3, "bwd": 0.6, "bwd_inner": 0.5, "bwd_allreduce": 0.1, "step": 0.1}
OLD = {
    "fwd": "forward",
    "bwd": "backward",
    "bwd_inner": "backward_inner",
    "bwd_allreduce": "backward_allreduce",
    "step": "step",
}
FLUSH = "2 pytorch allocator cache flushes since last step. this happens when there is high memory pressure"


class Expected(NamedTuple):
    """The diagnosis: whether it is slow, since which step, the likeliest causes in order, who."""

    causes: tuple[str, ...] = ()
    step: int | None = ONSET
    ranks: tuple[int, ...] = ()
    within: int = 0


def noisy(seconds: float, number: int) -> float:
    """The time of step `number`: half a percent up or down, no two alike in a row."""
    return seconds * (1 + 0.005 * ((number * 7919) % 11 - 5) / 5)


def stamped(time: datetime, text: str) -> str:
    return f"[{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}] [INFO] [logging.py:107:log_dist] {text}\n"


def engine(timers, rest=lambda _step: 0.02, head="[Rank 0] time (ms) | ", names=None, extra=None, own="[Rank 0] "):
    """A log of DeepSpeed's engine as rank 0 writes it: step, then timers (deepspeed/runtime/engine.py, step)."""
    time, lines = datetime(2026, 3, 28, 10), []  # noqa: DTZ001 - logs state no zone
    for step in range(1, STEPS + 1):
        took = {phase: noisy(seconds, step) for phase, seconds in timers(step).items()}
        time += timedelta(seconds=took["fwd"] + took["bwd"] + took["step"] + rest(step))
        shown = " | ".join(f"{(names or {}).get(phase, phase)}: {1000 * s:.2f}" for phase, s in took.items())
        lines += [
            stamped(time, f"{own}step={step}, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]"),
            stamped(time, head + shown),
        ]
        lines += [stamped(time, text) for text in (extra(step) if extra else [])]
    return {"train.log": "".join(lines)}


def grown(onset=ONSET, **factors):
    """Timers of which some grow at the onset."""
    return lambda step: {p: s * (factors.get(p, 1) if step >= onset else 1) for p, s in USUAL.items()}


def reduced(step):
    return {**USUAL, "bwd": 1.2, "bwd_allreduce": 0.7} if step >= ONSET else USUAL


def megatron(seconds, timers, neox=False):
    """Iterations of Megatron or GPT-NeoX with their timers, one in ten."""
    lines = []
    for step in range(10, 10 * STEPS + 1, 10):
        late = step > 10 * ONSET
        ms = noisy(seconds[late], step) * 1000
        lead = f" samples/sec: {256000 / ms:.3f} |" if neox else ""
        lines.append(
            f"{lead} iteration {step:8d}/{1000:8d} | elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.0E-04 |"
            " lm loss: 2.5E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
        lines.append("".join(f"{line}\n" for line in timers(late)))
    return {"train.log": "".join(lines)}


def core(forward, sync):
    """Timers of Megatron-Core, shortest and longest rank (megatron/core/timers.py)."""
    rows = {"forward-compute": forward, "backward-compute": (500, 505), "all-grads-sync": sync, "optimizer": (50, 50)}
    return [
        "(min, max) time across ranks (ms):",
        *(f"    {n} {'.' * (46 - len(n))}: ({a:.2f}, {b:.2f})" for n, (a, b) in rows.items()),
    ]


def all_ranks(forward, sync):
    """The same of every rank (--timing-log-option all)."""
    rows = {"forward-compute": forward, "backward-compute": [500] * 4, "all-grads-sync": sync, "optimizer": [50] * 4}
    lines = ["times across ranks (ms):"]
    for name, times in rows.items():
        lines += [f"  {name}:", *(f"     rank {rank:2d}: {ms:.2f}" for rank, ms in enumerate(times))]
    return lines


def neox(**ms):
    usual = {"forward": 300, "backward": 500, "backward-allreduce": 0.01, "optimizer": 150, "batch generator": 3}
    return ["time (ms) | " + " | ".join(f"{n}: {ms.get(n.replace(' ', '_'), t):.2f}" for n, t in usual.items())]


def ranks(own, size=4, silent=(), shape="metrics"):
    """One log per rank; `own(rank, step)` gives the seconds in data and forward, and all end a step together."""
    logs = dict.fromkeys(range(size), "")
    time = datetime(2026, 3, 28, 10)  # noqa: DTZ001 - logs state no zone
    for step in range(1, STEPS + 1):
        work = {rank: {k: noisy(v, step + rank) for k, v in own(rank, step).items()} for rank in logs}
        whole = max(sum(parts.values()) for parts in work.values()) + 0.7
        time += timedelta(seconds=whole)
        for rank, parts in work.items():
            wait = whole - 0.6 - sum(parts.values())
            text = f"[rank {rank}] step {step}: loss=2.5, step_time={noisy(whole, step + rank):.4f}"
            if rank in silent or shape == "timers":
                logs[rank] += stamped(time, text)
            else:
                logs[rank] += stamped(time, f"{text}, data_time={parts['data']:.4f}")
            if shape == "timers" and rank not in silent:
                logs[rank] += stamped(
                    time, f"[Rank {rank}] time (ms) | fwd: {1000 * parts['fwd']:.2f} | bwd: {1000 * (0.5 + wait):.2f}"
                    f" | bwd_inner: 500.00 | bwd_allreduce: {1000 * wait:.2f} | step: 100.00"
                )  # fmt: skip
    return {f"rank_{rank}.log": text for rank, text in logs.items()}


def late(rank, **seconds):
    """Work that takes longer on one rank from the onset on (on every rank: rank -1)."""
    usual = {"data": 0.02, "fwd": 0.3}
    return lambda r, step: {**usual, **(seconds if step >= ONSET and rank in (r, -1) else {})}


def bars(seconds, steps=300):
    """tqdm's bar of transformers' Trainer, with a bar of an evaluation of 25 batches every 100 steps."""
    text, elapsed = "", 0.0
    for step in range(1, steps + 1):
        elapsed += noisy(seconds(step), step)
        text += f"\r{100 * step // steps:3d}%|##        | {step}/{steps} [{int(elapsed) // 60:02d}:{int(elapsed) % 60:02d}<10:00,  1.00s/it]"
        if step % 100 == 0:
            text += "\n{'loss': 2.5, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
            text += (
                "".join(f"\r{4 * n:3d}%|#         | {n}/25 [00:{n // 5:02d}<00:05,  5.00it/s]" for n in range(1, 26))
                + "\n"
            )
            elapsed += 5
    return {"train.log": text}


def entries(seconds, steps=600):
    """LLaMA-Factory's trainer_log.jsonl."""
    elapsed, lines = 0, []
    for step in range(5, steps + 1, 5):
        elapsed += 5 * seconds(step)
        lines.append(
            f'{{"current_steps": {step}, "total_steps": {steps}, "loss": 2.5, "elapsed_time": "{timedelta(seconds=elapsed)}"}}\n'
        )
    return {"trainer_log.jsonl": "".join(lines)}


def monitor(timers, batch=32):
    """DeepSpeed's csv_monitor, which counts samples (deepspeed/runtime/engine.py, _write_monitor)."""
    return {
        f"Train_Samples_elapsed_time_ms_{OLD[phase]}.csv": f"step,elapsed_time_ms_{OLD[phase]}\n"
        + "".join(f"{step * batch},{1000 * noisy(timers(step)[phase], step)}\n" for step in range(1, STEPS + 1))
        for phase in USUAL
    }


QUIET = Expected(step=None)
RUNS = {
    "the all-reduce grows": (engine(reduced), Expected(("straggler", "slow_collectives"))),
    "the same in old names": (
        engine(reduced, head="[Rank 0] rank=0 time (ms) | ", names=OLD), Expected(("straggler", "slow_collectives")),
    ),
    "forward grows": (engine(grown(fwd=3)), Expected(("more_work", "slow_kernels"))),
    "steps are printed without a rank, timers with one": (
        engine(grown(fwd=3), own=""), Expected(("more_work", "slow_kernels")),
    ),
    "the optimizer's step grows": (engine(grown(step=7)), Expected(("slow_update",))),
    "all phases grow alike": (engine(grown(**dict.fromkeys(USUAL, 1.6))), Expected(("throttling",))),
    "what no timer saw grows": (
        engine(grown(), rest=lambda step: 0.7 if step >= ONSET else 0.02), Expected(("data_loading",)),
    ),
    "flushes since the onset": (
        engine(grown(fwd=2.5), extra=lambda step: [FLUSH] if step >= ONSET else []), Expected(("allocator_pressure",)),
    ),
    "flushes all the time, and then slow for another reason": (
        engine(grown(), rest=lambda step: 0.7 if step >= ONSET else 0.02, extra=lambda _: [FLUSH]),
        Expected(("data_loading",)),
    ),
    "GPT-NeoX: the optimizer grows": (
        megatron((1, 1.6), lambda after: neox(optimizer=750 if after else 150), neox=True), Expected(("slow_update",), 310),
    ),
    "GPT-NeoX: forward holds the loading of data": (
        megatron((1, 1.6), lambda after: neox(forward=900, batch_generator=603) if after else neox(), neox=True),
        Expected(("data_loading",), 310),
    ),
    "Megatron: one rank computes, the others wait": (
        megatron((1, 1.6), lambda after: core((300, 900), (60, 660)) if after else core((300, 305), (60, 70))),
        Expected(("straggler", "slow_collectives"), 310),
    ),
    "Megatron: all ranks wait": (
        megatron((1, 1.6), lambda after: core((300, 305), (650, 660)) if after else core((300, 305), (60, 70))),
        Expected(("straggler", "slow_collectives"), 310),
    ),
    "Megatron: the timers of all ranks name the one that computes": (
        megatron(
            (1, 1.6),
            lambda after: all_ranks([300, 300, 900, 302], [665, 667, 60, 662]) if after else all_ranks([300] * 4, [60] * 4),
        ),
        Expected(("straggler",), 310, (2,)),
    ),
    "one rank waits for its data": (ranks(late(2, data=0.7)), Expected(("data_loading", "straggler"), ranks=(2,))),
    "every rank waits for its data": (ranks(late(-1, data=0.7)), Expected(("data_loading",))),
    "one of eight ranks, of which two print": (
        ranks(late(1, data=0.7), size=8, silent=range(2, 8)), Expected(("data_loading",)),
    ),
    "one rank computes longer": (ranks(late(3, fwd=0.9), shape="timers"), Expected(("straggler",), ranks=(3,))),
    "one rank waits for all others": (
        ranks(lambda r, step: {"data": 0.02, "fwd": 0.9 if step >= ONSET and r != 2 else 0.3}, shape="timers"),
        Expected(("straggler",)),
    ),
    "one rank is slower from the beginning": (
        ranks(lambda r, _: {"data": 0.02, "fwd": 0.9 if r == 1 else 0.3}, shape="timers"), Expected(("straggler",), None, (1,)),
    ),
    "a progress bar alone": (bars(lambda step: 1.0 if step < 150 else 1.6), Expected(step=150, within=10)),
    "a steady progress bar": (bars(lambda _: 1.3), QUIET),
    "a log of the seconds that passed": (entries(lambda step: 2 if step <= 300 else 4), Expected(step=305)),
    "timers over samples": (monitor(reduced), Expected(("straggler", "slow_collectives"))),
    "steady timers over samples": (monitor(grown()), QUIET),
    "longer with every step": (
        engine(lambda step: {phase: s * (1 + step / STEPS) for phase, s in USUAL.items()}), Expected(("accumulation",), 7),
    ),
    "steady": (engine(grown()), QUIET),
    "flushes all the time": (engine(grown(), extra=lambda _: [FLUSH]), QUIET),
    "a warm-up": (engine(lambda step: {p: s * (6 if step < 4 else 1) for p, s in USUAL.items()}), QUIET),
    "pauses that come again": (engine(grown(), rest=lambda step: 8 if step % 20 == 1 and step > 1 else 0.02), QUIET),
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("slow"), [files for files, _ in RUNS.values()])


@pytest.mark.parametrize("name", RUNS)
def test_a_slow_run(store, name):
    expected = RUNS[name][1]
    session = Session(store, [f"run{list(RUNS).index(name)}"])
    asked = [query for query in queries().values() if query.header.get("fault") == "throughput"]
    fired = [finding for query in asked if (finding := Finding(query, session.rows(query.name))).rows]
    faults = rank_faults(fired)
    if expected is QUIET:
        assert faults == []
        return
    assert tuple(faults[0]["culprit_ranks"]) == expected.ranks
    onset = faults[0]["onset_step"]
    assert onset == expected.step or 0 <= onset - expected.step <= expected.within
    supported = [cause["id"] for cause in faults[0]["causes"] if cause["for"]]
    assert tuple(supported[: len(expected.causes)]) == expected.causes
    assert ("allocator_pressure" in supported) == ("allocator_pressure" in expected.causes)
