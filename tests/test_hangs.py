"""Who is to be blamed for a hang: real faults, lost dumps, and the cases of PyTorch's own analyzer."""

from __future__ import annotations

import json
import random
import tomllib

import pytest
from evidence import MemorySession, dumps, logs

from postmortem.records import Batch
from postmortem.waits import cycle_ranks

FINDINGS = (
    "comm_hang_culprit", "comm_hang_mismatch", "comm_hang_order", "comm_hang_transport", "comm_hang_unknown",
)  # fmt: skip
SETS = {"nvrx_gpu_error": {12, 14}, "nvrx_lock_gil": {9, 14}}


def named(session):
    return {row["rank"] for row in session.rows("comm_hang_culprit") if row["culprit"]}


@pytest.fixture(scope="module")
def parts(shared):
    """Batches of the 16 dumps of each real fault."""
    truth = tomllib.loads((shared / "data/TRUTH.toml").read_text())["flight_recorder"]
    assert {k.rsplit("/", 1)[1]: set(v["culprit"]) for k, v in truth.items()} == SETS
    return {
        name: [dumps([shared / f"data/flight_recorder/{name}/_dump_{rank}"]) for rank in range(16)] for name in SETS
    }


@pytest.mark.parametrize("name", SETS)
def test_real_faults_are_named_exactly(parts, name):
    session = MemorySession(batch for part in parts[name] for batch in part)
    assert named(session) == SETS[name]
    assert not session.rows("comm_hang_unknown")


@pytest.mark.parametrize("name", SETS)
def test_lost_dumps_never_put_the_blame_on_a_healthy_rank(parts, name):
    rng = random.Random(name)
    for kept in [{r for r in range(16) if r not in SETS[name]}] + [
        set(rng.sample(range(16), rng.randint(1, 15))) for _ in range(5)
    ]:
        session = MemorySession(batch for rank in kept for batch in parts[name][rank])
        found = named(session)
        assert found <= SETS[name]
        if not found:
            (row,) = session.rows_of_view("hang_state")
            assert set(row["absent"]) <= set(range(16)) - kept
            assert set(row["absent"])


@pytest.mark.parametrize(
    ("folder", "culprit"),
    [
        ("flight_recorder/gloo_torch2.13/frp_ok", set()),
        ("flight_recorder/gloo_torch2.13/frp_missing", {2}),
        ("flight_recorder/gloo_torch2.13/frp_type", {2}),
        ("flight_recorder/gloo_torch2.13/raw_missing", {2}),
        ("runs/hang_before", {1}),
        ("runs/hang_after", set()),
        ("runs/crash_before", set()),
        ("runs/exc_after", set()),  # one rank was still in its last barrier when it wrote its dump
        ("runs/leak_before", set()),
        ("runs/straggler_before", set()),
        ("runs/zero3", set()),
    ],
)
def test_gloo_runs(shared, folder, culprit):
    files = [f for f in (shared / "data" / folder).iterdir() if "trace_" in f.name and "pt.trace" not in f.name]
    session = MemorySession(dumps(files))
    assert named(session) == culprit
    if not culprit:
        assert not any(session.rows(finding) for finding in FINDINGS)


def statement(kind, rank, group="0", members=(0, 1, 2, 3), **columns):
    return {"statement": kind, "rank": rank, "group": group, "members": members, **columns}


def entry(rank, seq, operation="all_reduce", state="scheduled", *, record=None, more="Float in 4 out 4", **columns):
    signature = f"{operation} {more}" if more else operation
    columns = {"record": record if record is not None else seq, "signature": signature, **columns}
    return statement("entry", rank, seq=seq, operation=operation, state=state, pending=state != "completed", **columns)


def status(rank, enqueued, completed, **columns):
    return statement("status", rank, record=0, last_enqueued=enqueued, last_completed=completed, **columns)


def session_of(*statements, backend="nccl", mute=()):
    """A session over statements; `mute` ranks left no evidence."""
    rows = [s for s in statements if s["rank"] not in mute]
    groups = {(s["group"], s["members"]) for s in rows if s["members"]}
    columns = {}
    for name in sorted({key for s in rows for key in s} - {"group", "members"}):
        columns[name] = [s.get(name) for s in rows]
    columns |= {
        "origin": ["flight_recorder"] * len(rows), "backend": [backend] * len(rows), "partial": [False] * len(rows),
        "group_name": [s["group"] for s in rows],
        "members_hash": [str(s["members"]) if s["members"] else None for s in rows],
    }  # fmt: skip
    listed = {
        "group_name": [g for g, _ in groups], "members": [list(m) for _, m in groups],
        "members_hash": [str(m) for _, m in groups],
    }  # fmt: skip
    batches = [("dump", Batch("collective_evidence", columns))]
    return MemorySession([*batches, ("dump", Batch("process_group", listed))] if groups else batches)


def kinds(session):
    """What is found, without names: reasons of suspects, or kinds of states."""
    return {r["reason"] for r in session.rows_of_view("hang_suspect")} or {
        r["kind"] for r in session.rows_of_view("hang_state")
    }


PAIR = (0, 1)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [  # pytorch/pytorch test/distributed/flight_recorder/test_fr_analysis.py, test_match_one_event, as pairs of ranks
        (("all_reduce", "Float in 16 out 16", "scheduled"), ("all_reduce", "Float in 16 out 16", "scheduled"), {"transport"}),
        (("all_reduce", "Float in 16 out 16", "scheduled"), ("all_gather", "Float in 16", "scheduled"), {"mismatch"}),
        (("all_to_all", "", "scheduled"), ("all_to_all", "", "scheduled"), {"transport"}),
        (("all_reduce", "Float in 16 out 16", "scheduled"), ("all_reduce", "Float in 20 out 16", "scheduled"), {"mismatch"}),
        (("all_reduce", "Float in 16 out 16", "scheduled"), ("all_reduce", "Float in 16 out 20", "scheduled"), {"mismatch"}),
        (("all_reduce", "Half in 16 out 16", "completed"), ("all_reduce", "Float in 16 out 16", "scheduled"), {"mismatch"}),
        (("all_reduce", "Half in 16 out 16", "completed"), ("all_reduce", "Float in 16 out 16", "completed"), set()),
        (("all_reduce", "Float in 16 out 16", "scheduled"), ("all_reduce", "Float in 16 out 16", "completed"), {"transport"}),  # of two, one that is done may just have written its dump later
        (("all_reduce", "Float in 16 out 20", "scheduled"), ("all_reduce", "Float in 16 out 20", "scheduled"), {"transport"}),
        (("gather", "Float in 16", "completed"), ("gather", "Float in 16", "completed"), set()),
    ],
)  # fmt: skip
def test_pairs_of_pytorchs_analyzer(one, other, found):
    session = session_of(
        *(
            entry(rank, 1, operation, state, more=more, members=PAIR)
            for rank, (operation, more, state) in enumerate((one, other))
        )
    )
    assert kinds(session) == found
    assert named(session) == set()  # of two that disagree neither is the majority


def fr_dump(rank, calls, backend="nccl", state="scheduled"):
    """A dump of one of two ranks; a call is (kind, sizes in, sizes out, group, number)."""
    entries = [
        {
            "record_id": n, "pg_id": group, "process_group": [str(group), ("default", "sub_pg")[group]], "frames": [],
            "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": n, "profiling_name": f"{backend}:{kind}", "time_created_ns": n,
            "input_sizes": inputs, "output_sizes": outputs, "input_dtypes": ["Float"], "output_dtypes": ["Float"],
            "state": state, "retired": state == "completed", "is_p2p": False,
        }
        for n, (kind, inputs, outputs, group, seq) in enumerate(calls)
    ]  # fmt: skip
    groups = {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"},
        "1": {"name": "1", "desc": "sub_pg", "ranks": f"[{rank}]"},
    }
    return {"version": "2.8", "pg_config": groups, "pg_status": {}, "entries": entries}


def fr_session(folder, ranks, **more):
    """A session over the dumps of two ranks."""
    files = [folder / f"nccl_trace_rank_{rank}" for rank in range(len(ranks))]
    for rank, (file, calls) in enumerate(zip(files, ranks, strict=True)):
        file.write_text(json.dumps(fr_dump(rank, calls, **more)))
    return MemorySession(dumps(files))


def call(kind, size=4, group=0, seq=1):
    return (kind, [[size, size]], [[size, size]], group, seq)


CLOSE = {"coalesced", "ALLGATHER_coalesced", "REDUCE_SCATTER_coalesced"}
BUILT = {  # the cases of test_fr_analysis.py's testBuildDB: what each of the two ranks called -> whether they agree
    "all_reduce, and each rank alone in a group": ([[call("all_reduce"), call("all_reduce", 5, group=1)]] * 2, True),
    "allreduce_coalesced": ([[call("allreduce_coalesced")]] * 2, True),
    "two broadcasts of one batch": ([[call("broadcast"), call("broadcast"), ("coalesced", [[]], [[]], 0, 1)]] * 2, True),
    "uneven all-gather that disagrees": (
        [
            [call("_broadcast_oop"), call("_broadcast_oop", size), ("ALLGATHER_coalesced", [[]], [[]], 0, 1)]
            for size in (5, 4)
        ],
        False,
    ),
    "uneven reduce-scatter": (
        [[call("_reduce_oop"), call("_reduce_oop"), ("REDUCE_SCATTER_coalesced", [[]], [[]], 0, 1)]] * 2, True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BUILT)
def test_dumps_of_pytorchs_analyzer(tmp_path, case):
    ranks, agree = BUILT[case]
    session = fr_session(tmp_path, ranks)
    assert named(session) == set()  # of two ranks neither is the majority
    assert bool(session.rows_of_view("signature_mismatch")) != agree
    done = fr_session(tmp_path, ranks, state="completed")
    assert named(done) == set()
    assert kinds(done) == set()


@pytest.mark.parametrize("empty", [0, 1])
def test_an_empty_batch_on_one_rank(tmp_path, empty):
    more = [call("_reduce_oop", seq=2), call("_reduce_oop", seq=2), ("REDUCE_SCATTER_coalesced", [[]], [[]], 0, 2)]
    folders = [[call("all_reduce")] + ([] if rank == empty else more) for rank in range(2)]
    session = fr_session(tmp_path, folders)
    assert named(session) <= {empty}  # both may still be in the first
    assert not session.rows_of_view("signature_mismatch")


@pytest.mark.parametrize("backend", ["nccl", "ncclx", "xccl"])
def test_every_collective_agrees_with_itself(tmp_path, backend):
    """test_all_events, and the backends' names of FlightRecorderOpBackendTest."""
    kinds_ = [
        "broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "all_gather", "_all_gather_base", "all_reduce",
        "all_gather_into_tensor_coalesced", "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced",
        "gather", "scatter", "all_to_all", "all_reduce_barrier", "allreduce_coalesced", *sorted(CLOSE),
    ]  # fmt: skip
    shape = {"reduce_scatter": 8, "_reduce_scatter_base": 8, "all_gather": 32, "_all_gather_base": 32}
    calls = [(kind, [[4, 4]], [[shape.get(kind, 4)]], 0, n) for n, kind in enumerate(kinds_, 1)]
    session = fr_session(tmp_path, [calls, calls], backend=backend)
    assert not session.rows_of_view("signature_mismatch")
    found = session.connection.sql(
        "SELECT DISTINCT operation FROM collective_statement WHERE statement = 'entry'"
    ).fetchall()
    assert {operation for (operation,) in found} == set(kinds_)
    assert named(session) == set()


def test_completed_against_started_blames_the_one_that_did_not_finish():
    """torchfrtrace blames the rank that finished."""
    session = session_of(*(entry(r, 1, state="started" if r == 2 else "completed") for r in range(4)))
    assert named(session) == {2}


@pytest.mark.parametrize("culprit", range(4))
@pytest.mark.parametrize("operation", ["broadcast", "all_gather", "all_reduce"])
def test_type_or_size_mismatch_names_the_odd_one_also_if_it_is_rank_0(culprit, operation):
    """torchfrtrace compares with the first rank, so it blames the others where that one is wrong."""
    odd = {"operation": operation, "more": "Float in 8 out 8"}
    session = session_of(*(entry(r, 1, **(odd if r == culprit else {})) for r in range(4)))
    assert named(session) == {culprit}
    assert kinds(session) == {"mismatch"}


def test_offset_record_numbers_do_not_matter():
    """torchfrtrace aligns dumps by their record numbers and then finds everybody missing."""
    rows = [entry(r, s, record=s + 100 * r, state="completed") for r in range(4) for s in range(1, 10)]
    rows += [entry(r, 10, record=10 + 100 * r) for r in (0, 1, 3)]
    assert named(session_of(*rows)) == {2}


def test_everybody_started_is_transport():
    """torchfrtrace prints nothing."""
    session = session_of(*(entry(r, 3, state="started") for r in range(4)))
    assert named(session) == set()
    assert kinds(session) == {"transport"}


def test_unknown_operations_are_compared_like_any_other():
    rows = [entry(r, 1, "new_window_v9", more="") for r in range(4)]
    assert kinds(session_of(*rows)) == {"transport"}
    assert named(session_of(*rows[:3], entry(3, 1, "fence", more=""))) == {3}


def test_missing_ranks_are_named_if_their_dumps_say_so_and_unknown_if_there_is_none():
    rows = [entry(r, 5) for r in (0, 1)] + [status(2, 4, 4), status(3, 4, 4)]
    assert named(session_of(*rows)) == {2, 3}
    assert named(session_of(*rows, mute={3})) == {2}
    session = session_of(*rows, mute={2, 3})
    assert named(session) == set()
    assert [row["absent"] for row in session.rows_of_view("hang_state")] == [[2, 3]]


def test_coalesced_operations_share_a_number():
    """Each position is compared; numbers of entries may differ only by fault."""
    batch = [
        ("_broadcast_oop", "Float in 16 out 16"),
        ("_broadcast_oop", "Float in 25 out 25"),
        ("ALLGATHER_coalesced", ""),
    ]
    uneven = [batch[0], batch[0], batch[2]]
    for culprit in (None, 0, 2):
        rows = [
            entry(r, 1, op, record=n, more=more)
            for r in range(3)
            for n, (op, more) in enumerate(uneven if r == culprit else batch)
        ]
        assert named(session_of(*({**row, "members": (0, 1, 2)} for row in rows))) == ({culprit} - {None})


def test_empty_coalesced_call_on_one_rank():
    """Rank 0 entered nothing of the batch that the others wait in."""
    rows = [entry(r, 1, record=0, state="completed", members=(0, 1, 2)) for r in range(3)]
    rows += [
        entry(r, 2, op, record=1 + n, more="Float in 16 out 16", members=(0, 1, 2))
        for r in (1, 2)
        for n, op in enumerate(("_reduce_oop", "_reduce_oop", "REDUCE_SCATTER_coalesced"))
    ]
    assert named(session_of(*rows)) == {0}


def test_order_deadlock_across_groups_names_nobody():
    a, b = {"group": "a", "members": PAIR}, {"group": "b", "members": PAIR}
    blocked = session_of(
        entry(0, 1, record=1, **a), status(0, 1, 0, **a), status(0, 0, 0, **b),
        entry(1, 1, record=1, **b), status(1, 1, 0, **b), status(1, 0, 0, **a),
    )  # fmt: skip
    queued = session_of(*(entry(r, 1, record=n, **g) for r, gs in ((0, (a, b)), (1, (b, a))) for n, g in enumerate(gs)))
    for session in (blocked, queued):
        assert named(session) == set()
        assert kinds(session) == {"order"}


def test_a_chain_of_waits_ends_at_the_rank_that_waits_for_nobody():
    ab, bc = {"group": "ab", "members": (0, 1)}, {"group": "bc", "members": (1, 2)}
    rows = [entry(0, 5, **ab), status(1, 4, 4, **ab), entry(1, 7, **bc), status(2, 6, 6, **bc)]
    assert named(session_of(*rows)) == {2}
    assert named(session_of(*rows, mute={2})) == set()  # rank 1 waits itself
    assert named(session_of(*rows, mute={1})) == set()  # nothing left points at rank 2


def test_a_mismatch_without_majority_is_not_turned_into_blame():
    rows = [entry(r, 1, "broadcast" if r > 1 else "all_reduce") for r in range(4)]
    assert named(session_of(*rows)) == set()
    assert kinds(session_of(*rows)) == {"mismatch"}
    rows = [entry(r, 1, "broadcast" if r == 3 else "all_reduce") for r in range(4)]
    assert named(session_of(*rows)) == {3}
    assert named(session_of(*rows, mute={0, 1})) == set()  # one against one of four
    assert named(session_of(*rows, mute={0})) == set()  # two of four are no majority


def test_gloo_counters_of_failed_operations_do_not_count_as_completed():
    rows = [entry(r, 5, state="completed", members=None) for r in range(4)]
    rows += [entry(r, 6, members=None) for r in (0, 3)]
    rows += [entry(1, 6, state="completed", members=None), status(1, 6, 6, members=None)]
    rows += [status(2, 5, 5, members=None)]
    assert named(session_of(*rows, backend="gloo")) == {2}
    assert named(session_of(*rows, backend="gloo", mute={2})) == set()


def test_gloo_rank_whose_last_operation_may_have_failed_is_not_idle():
    """Rank 1 failed in the group that it shares with rank 2, and so never came to the one of all."""
    rows = [entry(0, 6, group="0", members=None), status(1, 5, 5, group="0", members=None)]
    rows += [
        entry(1, 9, state="completed", group="b", members=None),
        status(2, 8, 8, group="b", members=None),
    ]
    assert named(session_of(*rows, backend="gloo")) == set()


def test_garbage_counters_of_pytorch_2_2_are_ignored():
    rows = [status(r, 1, 3904955349522264369 + r) for r in range(4)]
    assert named(session_of(*rows)) == set()
    assert kinds(session_of(*rows)) == set()


@pytest.mark.parametrize(
    ("edges", "ranks"),
    [
        ([], []),
        ([(0, 1), (1, 2)], []),
        ([(0, 1), (1, 0), (2, 0)], [0, 1]),
        ([(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (2, 3)], [0, 1, 2, 3, 4]),
        ([(n, n + 1) for n in range(5000)] + [(5000, 4998)], [4998, 4999, 5000]),
    ],
)
def test_cycle_ranks(edges, ranks):
    random.Random(3).shuffle(edges)
    assert cycle_ranks([a for a, _ in edges], [b for _, b in edges]) == ranks


def nccl_log(rank, calls, ends, world=4, comm_id=" commId 0xc7"):
    """A rank's log as NCCL 2.21 with COLL output and torch 2.6 print it; `ends`: its watchdog's last words."""
    head = f"n1:{100 + rank}:{100 + rank} [{rank}] NCCL INFO "
    made = f"comm 0x5{rank} rank {rank} nranks {world} cudaDev {rank} nvmlDev {rank} busId {rank}000{comm_id} - Init COMPLETE"
    lines = [head + "ncclCommInitRank " + made]
    lines += [
        f"{head}AllReduce: opCount {n:x} sendbuff 0x7f recvbuff 0x7f count {size} datatype 7 op 0 root 0 comm 0x5{rank} "
        f"[nranks={world}] stream 0x9"
        for n, size in enumerate(calls)
    ]
    said = (
        f"[rank{rank}]:[E810 03:14:11.000000001 ProcessGroupNCCL.cpp:683] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    )
    if ends == "late":
        lines.append(
            f"{said} Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, "
            "Timeout(ms)=600000) ran for 600019 milliseconds before timing out."
        )
    if ends == "quiet":
        lines.append(
            f"{said} Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug "
            "info. Last enqueued NCCL work: 8, last completed NCCL work: 8.This is most likely caused by incorrect usages"
        )
    return "\n".join(lines) + "\n"


def nccl_session(folder, ranks, **said):
    """A session over logs (calls, ends) per rank; None: no log."""
    files = []
    for rank, told in enumerate(ranks):
        if told:
            files.append(folder / f"rank_{rank}.log")
            files[-1].write_text(nccl_log(rank, *told, **said))
    return MemorySession(logs(files))


ALL = [4, 4, 8, 4, 8]
LATE, SHORT, OTHER = (ALL, "late"), ALL[:3], [*ALL[:4], 9]


@pytest.mark.parametrize(
    ("ranks", "culprits"),
    [
        ([LATE, LATE, (SHORT, "quiet"), LATE], {2}),
        ([LATE, LATE, (SHORT, ""), LATE], set()),  # its log may be cut
        ([LATE, LATE, (SHORT, "late"), LATE], set()),  # it waits itself
        ([LATE, LATE, (SHORT, "quiet"), None], set()),  # rank 3 is unknown
        ([LATE, LATE, None, LATE], set()),
        ([LATE, (OTHER, "late"), LATE, LATE], {1}),
        ([LATE, (OTHER, "late"), (OTHER, "late"), LATE], set()),
        ([(OTHER, "late"), LATE, LATE, None], set()),  # two of four agree
        ([(OTHER, "late"), LATE, LATE, LATE], {0}),
        ([LATE, LATE, LATE, LATE], set()),
        ([(ALL, "")] * 3 + [(SHORT, "")], set()),  # a job that runs
    ],
)
def test_calls_in_nccls_log(tmp_path, ranks, culprits):
    session = nccl_session(tmp_path, ranks)
    found = {row["rank"] for row in session.rows_of_view("nccl_suspect") if row["proven"]}
    assert found == culprits
    own_word = {
        rank for rank, told in enumerate(ranks) if told and told[1] == "quiet"
    }  # the watchdog alone may name it
    assert named(session) <= culprits | own_word


@pytest.mark.parametrize(
    ("ranks", "culprits"),
    [
        ([LATE, LATE, (SHORT, "quiet"), LATE], {2}),
        (
            [LATE, LATE, (SHORT, "quiet"), None],
            set(),
        ),  # one process of four says nothing: no communicator is told apart
        ([LATE, (OTHER, "late"), LATE, LATE], {1}),
    ],
)
def test_calls_in_the_log_of_an_nccl_that_prints_no_hash(tmp_path, ranks, culprits):
    """Before 2.16 the only communicator of all ranks is the same on every rank."""
    session = nccl_session(tmp_path, ranks, comm_id="")
    assert {row["rank"] for row in session.rows_of_view("nccl_suspect") if row["proven"]} == culprits
