"""Synthetic jobs that hang: a small model of hosts, devices and process groups, and the dumps such a job leaves.

The model knows nothing of the analysis: ranks enqueue operations, devices run them in order, an operation ends
when the devices of all its members have reached it. A fault is put in, the job runs until nothing moves, and every
rank writes what PyTorch's Flight Recorder would (torch/csrc/distributed/c10d/FlightRecorderDetail.hpp,
pytorch/pytorch).
"""

from __future__ import annotations

import io
import json
import pickle
import random
from dataclasses import dataclass, field
from pathlib import Path

FAULTS = (
    "none", "late", "dead", "device", "mismatch", "skip", "order", "transport", "partial",
)  # fmt: skip


@dataclass
class Op:
    """One call on one rank."""

    group: int
    kind: str
    size: int = 16
    peer: int = -1  # rank inside the group, for send and recv
    overlap: bool = False  # later operations do not wait for it
    blocking: bool = False  # the host waits for it
    seq: int = 0
    p2p_seq: int = 0
    record: int = 0
    done: bool = False  # on the device
    seen: bool = False  # by the host
    failed: bool = False
    called: bool = True  # the call into the library has returned

    @property
    def p2p(self):
        return self.peer >= 0


SYNC = "sync"


@dataclass
class Job:
    """A job: its groups, programs and what became of them."""

    rng: random.Random
    world: int
    gloo: bool
    groups: list[tuple[str, list[int]]] = field(default_factory=list)  # description, members
    of: list[list[int]] = field(default_factory=list)  # rank -> its groups, in order of creation
    program: list[list[Op | str]] = field(default_factory=list)
    queue: list[list[Op]] = field(default_factory=list)
    stop: dict[int, int] = field(default_factory=dict)  # rank -> place in its program that its host never passes
    frozen: dict[int, int] = field(default_factory=dict)  # rank -> operations whose end its host sees
    lost: set[tuple] = field(default_factory=set)  # operations that never end
    partly: dict[tuple, set[int]] = field(default_factory=dict)  # ... but do on these ranks
    culprits: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)
    fault: str = "none"


def make(rng: random.Random, world: int, fault: str) -> Job:
    """Lay out a job of `world` ranks, put `fault` in, and run it until nothing moves."""
    job = Job(rng, world, gloo=world <= 16 and rng.random() < 0.2, fault=fault)
    _lay_out(job)
    steps, micro = rng.randint(2, 3), rng.randint(1, 3)
    if world > 128:
        steps = 2
    job.program = [_program(job, rank, steps, micro) for rank in range(world)]
    _break(job)
    _run(job)
    return job


def _divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def _lay_out(job):  # noqa: C901
    rng, world = job.rng, job.world
    tp = rng.choice([d for d in _divisors(world) if d <= 8])
    pp = rng.choice([d for d in _divisors(world // tp) if d <= 8])
    dp = world // tp // pp
    ep = rng.choice([d for d in _divisors(dp) if d <= 8])
    grid = [[[t + tp * (d + dp * p) for t in range(tp)] for d in range(dp)] for p in range(pp)]
    job.tp, job.pp, job.dp, job.ep = tp, pp, dp, ep
    add = job.groups.append
    add(("default_pg", list(range(world))))
    if tp > 1:
        for p in range(pp):
            for d in range(dp):
                add(("TENSOR", grid[p][d]))
    if pp > 1:
        for d in range(dp):
            for t in range(tp):
                add(("PIPELINE", [grid[p][d][t] for p in range(pp)]))
    if dp > 1:
        for p in range(pp):
            for t in range(tp):
                add(("DATA", [grid[p][d][t] for d in range(dp)]))
    if ep > 1:
        for p in range(pp):
            for t in range(tp):
                for e in range(dp // ep):
                    add(("EXPERT", [grid[p][d][t] for d in range(e * ep, (e + 1) * ep)]))
    job.of = [[] for _ in range(world)]
    for number, (_, members) in enumerate(job.groups):
        for rank in members:
            job.of[rank].append(number)


def _program(job, rank, steps, micro):  # noqa: C901
    of = {job.groups[g][0]: g for g in job.of[rank]}
    stage = rank // (job.tp * job.dp)
    tensor, pipe, data, expert = (of.get(k) for k in ("TENSOR", "PIPELINE", "DATA", "EXPERT"))
    block = job.gloo  # gloo's operations hold the host
    out = []

    def add(group, kind, size=16, **more):
        if group is not None:
            out.append(Op(group, kind, size, blocking=block, **more))

    add(0, "broadcast", 64)
    for step in range(steps):
        for direction in (1, -1):
            for m in range(micro):
                before, after = stage - direction, stage + direction
                if pipe is not None and 0 <= before < job.pp:
                    add(pipe, "recv", 32, peer=before)
                for layer in range(2):
                    add(tensor, ("all_reduce", "_all_gather_base")[layer], 16 + layer)
                    add(expert, "all_to_all", 100 + rank % 7 + m)
                if pipe is not None and 0 <= after < job.pp:
                    add(pipe, "send", 32, peer=after)
        for bucket in range(2):
            add(data, "_reduce_scatter_base", 128 + bucket, overlap=not block)
        add(0, "all_reduce", 1)
        out.append(SYNC)
        if step % 2:
            add(data, "broadcast", 8)
    add(0, "barrier", 1)
    out.append(SYNC)
    return out


def _break(job):  # noqa: C901
    """Put the job's fault into one or two ranks."""
    rng, fault = job.rng, job.fault
    rank = rng.randrange(job.world)
    places = [i for i, op in enumerate(job.program[rank]) if op != SYNC]
    place = rng.choice(places[len(places) // 4 :])
    op = job.program[rank][place]
    if fault in {"late", "dead"}:
        ranks = {rank} | ({rng.randrange(job.world)} if rng.random() < 0.2 else set())
        for r in ranks:
            job.stop[r] = place if r == rank else rng.choice([i for i, o in enumerate(job.program[r]) if o != SYNC])
        job.culprits = ranks
        job.dead = ranks if fault == "dead" else set()
    elif fault == "device":
        if job.gloo:
            job.gloo = False
            for program in job.program:
                for o in program:
                    if o != SYNC:
                        o.blocking, o.overlap = False, o.kind == "_reduce_scatter_base"
        job.frozen[rank] = sum(o != SYNC for o in job.program[rank][:place])
        job.culprits = {rank}
    elif fault in {"mismatch", "skip"}:
        places = [i for i in places if job.program[rank][i].kind not in {"send", "recv", "all_to_all", "barrier"}]
        place = rng.choice(places)
        op = job.program[rank][place]
        if fault == "skip":
            del job.program[rank][place]
        elif rng.random() < 0.5:
            op.size += 1
        else:
            op.kind = rng.choice([k for k in ("all_reduce", "broadcast", "all_gather") if k != op.kind])
        job.culprits = {rank}
    elif fault == "order":
        pairs = [
            i for i in places[:-1]
            if job.program[rank][i + 1] != SYNC and job.program[rank][i].group != job.program[rank][i + 1].group
            and not job.program[rank][i].p2p and not job.program[rank][i + 1].p2p
        ]  # fmt: skip
        for program in job.program:
            for o in program:
                if o != SYNC and not o.p2p and rng.random() < 0.5:
                    o.overlap = False
        if pairs:
            i = rng.choice(pairs)
            for j in (i, i + 1):
                job.program[rank][j].blocking = True
            job.program[rank][i : i + 2] = job.program[rank][i + 1 : i - 1 : -1] if i else job.program[rank][1::-1]
        job.culprits = {rank}
    elif fault in {"transport", "partial"}:
        op.broken = True


def _number(job):
    """Count operations as PyTorch does: collectives and point-to-point operations apart, per group and rank."""
    broken = None
    for rank, program in enumerate(job.program):
        collectives, transfers, pairs = {}, {}, {}
        for record, op in enumerate(o for o in program if o != SYNC):
            op.record = record
            if op.p2p:
                transfers[op.group] = transfers.get(op.group, 0) + 1
                key = (op.group, op.kind, op.peer)
                pairs[key] = pairs.get(key, 0) + 1
                op.pair = pairs[key]
            else:
                collectives[op.group] = collectives.get(op.group, 0) + 1
            op.seq, op.p2p_seq = collectives.get(op.group, 0), transfers.get(op.group, 0)
            if getattr(op, "broken", False):
                broken = _key(job, rank, op)
    if broken:
        job.lost.add(broken)


def _key(job, rank, op):
    """What makes the same operation of several ranks one."""
    if not op.p2p:
        return (op.group, op.seq)
    own = job.groups[op.group][1].index(rank)
    ends = (own, op.peer) if op.kind == "send" else (op.peer, own)
    return (op.group, *ends, op.pair)


def _run(job):
    """Run hosts and devices until nothing moves."""
    _number(job)
    world = job.world
    place = [0] * world
    job.queue = [[] for _ in range(world)]
    first = [0] * world  # operations before this one are done
    need, there = {}, {}
    active = set(range(world))
    while active:
        rank = active.pop()
        moved = True
        while moved:
            moved = _host(job, rank, place)
            for op in _ready(job.queue[rank], first, rank):
                if getattr(op, "arrived", False):
                    continue
                op.arrived = moved = True
                key = _key(job, rank, op)
                there.setdefault(key, []).append((rank, op))
                need[key] = 2 if op.p2p else len(job.groups[op.group][1])
                if len(there[key]) == need[key]:
                    active |= _end(job, key, there[key])
    _mark_seen(job)


def _host(job, rank, place):
    program, queue = job.program[rank], job.queue[rank]
    moved = False
    while place[rank] < len(program) and place[rank] != job.stop.get(rank):
        item = program[place[rank]]
        visible = job.frozen.get(rank, len(queue))
        finished = visible >= len(queue) and all(o.done for o in queue[-40:])
        if item == SYNC:
            if not finished:
                break
        else:
            if queue and queue[-1].blocking and not queue[-1].done:
                break
            queue.append(item)
        place[rank] += 1
        moved = True
    return moved


def _ready(queue, first, rank):
    """Operations that the device has reached."""
    while first[rank] < len(queue) and queue[first[rank]].done:
        first[rank] += 1
    blocked, groups = False, set()
    for op in queue[first[rank] :]:
        if op.done:
            continue
        if not blocked and op.group not in groups:
            yield op
        groups.add(op.group)
        blocked = blocked or not op.overlap


def _end(job, key, members):
    """End an operation on its members unless it is broken; the ranks that can move again."""
    signs = {(op.kind, op.size) for _, op in members}
    if not members[0][1].p2p and members[0][1].kind not in {"all_to_all", "barrier"} and len(signs) > 1:
        return set()
    if not members[0][1].p2p and len({op.kind for _, op in members}) > 1:
        return set()
    chosen = {rank for rank, _ in members}
    if key in job.lost:
        if job.fault != "partial" or members[0][1].p2p or len(members) < 3:
            return set()
        kinds = members[0][1].kind
        chosen = set(job.rng.sample(sorted(chosen), job.rng.randint(1, len(members) - 1)))
        left = {rank for rank, _ in members} - chosen
        if len(left) == 1 and kinds != "broadcast":
            job.culprits = left  # everybody else came through: its device or its link
    for rank, op in members:
        op.done = op.done or rank in chosen
    return chosen


def _mark_seen(job):
    for rank, queue in enumerate(job.queue):
        limit = job.frozen.get(rank, len(queue))
        for number, op in enumerate(queue):
            op.seen = op.done and number < limit
    if job.gloo:  # some of the waiting operations have failed by the time the dump is written
        for queue in job.queue:
            if queue and not queue[-1].seen and job.rng.random() < 0.3:
                queue[-1].failed = True


def stuck(job):
    """Whether anything is left open: some faults do no harm where they fall."""
    return any(not op.seen for queue in job.queue for op in queue) or any(
        len(q) < sum(o != SYNC for o in p) for q, p in zip(job.queue, job.program, strict=True)
    )


def write(job: Job, folder: Path) -> dict[int, Path]:
    """Write the dump of every rank; a dead one leaves none."""
    rng = job.rng
    keep = rng.choice([2000, 2000, 64, 0])  # ring size; 0: only active operations
    timing, text = rng.random() < 0.3, rng.random() < 0.2
    version = rng.choice(["2.3", "2.7", "2.9", "2.10"])
    files = {}
    for rank in range(job.world):
        if rank in job.dead:
            continue
        dump = _dump(job, rank, keep, timing, version)
        name = rng.choice(["nccl_trace_rank_{}", "_dump_{}"]).format(rank) if rank == 0 else f"nccl_trace_rank_{rank}"
        files[rank] = folder / name
        files[rank].write_bytes(json.dumps(dump).encode() if text else _pickled(dump))
    return files


def _pickled(dump):
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=2)
    pickler.fast = True
    pickler.dump(dump)
    return buffer.getvalue()


def _dump(job, rank, keep, timing, version):
    queue = job.queue[rank]
    ids = {g: 2 * n + (n > 1) for n, g in enumerate(job.of[rank])}
    chosen = [o for o in queue if not o.seen] if keep == 0 else queue[-keep:]
    config = {str(g): {"name": str(g), "desc": job.groups[g][0], "ranks": str(job.groups[g][1])} for g in job.of[rank]}
    status = {}
    for g in job.of[rank]:
        own = [o for o in queue if o.group == g]
        number = [o.p2p_seq if o.p2p else o.seq for o in own]
        ended = [n for n, o in zip(number, own, strict=True) if o.seen or o.failed]
        status[str(ids[g])] = {
            "last_enqueued_collective": number[-1] if own else -1,
            "last_started_collective": -1,
            "last_completed_collective": ended[-1] if ended else -1,
        }
    if job.gloo:
        config = {"": {"name": "", "desc": "", "ranks": "[]"}}
    return {
        "version": version, "pg_config": config, "nccl_version": "2.21.5", "pg_status": status,
        "entries": [_entry(job, op, ids, timing) for op in chosen],
    }  # fmt: skip


def _entry(job, op, ids, timing):
    backend = "gloo" if job.gloo else "nccl"
    arrow = {"send": f" 0->{op.peer}", "recv": f" 0<-{op.peer}"}.get(op.kind, "")
    state = (
        "completed" if op.seen and not job.gloo else "started" if timing and getattr(op, "arrived", 0) else "scheduled"
    )
    return {
        "frames": [{"name": "step", "filename": "/job/train.py", "line": 10 + op.group}], "record_id": op.record,
        "pg_id": ids[op.group], "process_group": (str(op.group), job.groups[op.group][0]),
        "collective_seq_id": op.seq, "p2p_seq_id": op.p2p_seq, "op_id": op.record,
        "profiling_name": f"{backend}:{op.kind}{arrow}", "time_created_ns": 1_758_610_505_000_000_000 + op.record * 10**6,
        "input_sizes": [[op.size]], "input_dtypes": ["BFloat16"], "output_sizes": [[op.size]],
        "output_dtypes": ["BFloat16"], "state": state, "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None, "retired": op.seen or op.failed, "timeout_ms": 600000,
        "is_p2p": op.p2p,
    }  # fmt: skip


NAMES = {
    "all_reduce": "ALLREDUCE", "_all_gather_base": "_ALLGATHER_BASE", "all_gather": "ALLGATHER", "all_to_all": "ALLTOALL",
    "_reduce_scatter_base": "_REDUCE_SCATTER_BASE", "broadcast": "BROADCAST", "barrier": "BARRIER", "send": "SEND", "recv": "RECV",
}  # fmt: skip


def write_logs(job: Job, folder: Path) -> dict[int, Path]:
    """Write each rank's log: its steps, then what its watchdogs say (ProcessGroupNCCL.cpp of torch 2.6 and later)."""
    files = {}
    for rank in range(job.world):
        lines = [f"[rank {rank}] step {step}: loss={5 - step:.4f}" for step in _steps(job, rank)]
        if rank not in job.dead:
            lines += _watchdog(job, rank)
        files[rank] = folder / f"rank_{rank}.log"
        files[rank].write_text("\n".join(lines) + "\n")
    return files


def _steps(job, rank):
    """Steps whose operations the rank's host has seen the end of."""
    done, step = len([o for o in job.queue[rank] if o.seen]), 0
    for item in job.program[rank]:
        if item == SYNC:
            if done < 0 or any(not o.seen for o in job.queue[rank][:1]):
                return
            step += 1
            yield step
        else:
            done -= 1
            if done < 0:
                return


def _watchdog(job, rank):
    head = f"[rank{rank}]:[E810 03:14:11.{rank:09d} ProcessGroupNCCL.cpp:683] "
    alarm = False
    for number, group in enumerate(job.of[rank]):
        own = [o for o in job.queue[rank] if o.group == group]
        late = next((o for o in own if not o.seen), None)
        if late is None:
            continue
        alarm = True
        count = [o.p2p_seq if o.p2p else o.seq for o in own]
        ended = [n for n, o in zip(count, own, strict=True) if o.seen]
        seq = late.p2p_seq if late.p2p else late.seq
        desc, members = job.groups[group]
        who = f"[PG ID {number} PG GUID {group}({desc}) Rank {members.index(rank)}]"
        yield (
            f"{head}{who} Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={NAMES[late.kind]}, "
            f"NumelIn={late.size}, NumelOut={late.size}, Timeout(ms)=600000) ran for 600019 milliseconds before timing out."
        )
        yield (
            f"{head}{who}  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: "
            f"{count[-1]}, last completed work: {ended[-1] if ended else -1}"
        )
    own = [o.seq for o in job.queue[rank] if o.group == 0]
    ended = [o.seq for o in job.queue[rank] if o.group == 0 and o.seen]
    whose = "this local rank" if alarm else " rank 0"
    yield (
        f"{head}[PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a dump signal due to a collective timeout from {whose} "
        f"and we will try our best to dump the debug info. Last enqueued NCCL work: {own[-1] if own else -1}, last "
        f"completed NCCL work: {ended[-1] if ended else -1}.This is most likely caused by incorrect usages of collectives"
    )
