"""Synthetic jobs with a fault put in: no healthy rank is named. `make simulate` runs thousands of them."""

from __future__ import annotations

import random
from collections import Counter

import jobs
import pytest
from evidence import MemorySession, dumps, logs


def named(session):
    return {row["rank"] for row in session.rows("comm_hang_culprit") if row["culprit"]}


@pytest.mark.parametrize("fault", jobs.FAULTS)
def test_only_ranks_with_a_fault_are_named(tmp_path, fault):
    answers = Counter()
    for seed in (1,):
        rng = random.Random(f"{fault} {seed}")
        job = jobs.make(rng, rng.choice([4, 6, 8, 16]), fault)
        folder = tmp_path / str(seed)
        folder.mkdir()
        files = jobs.write(job, folder)
        for kept in (set(files), set(rng.sample(sorted(files), max(1, len(files) // 2)))):
            session = MemorySession(dumps(file for rank, file in files.items() if rank in kept))
            found = named(session)
            assert found <= (job.culprits if jobs.stuck(job) else set()), (seed, job.culprits)
            answers[bool(found)] += 1
            if not jobs.stuck(job):
                assert not session.rows("comm_hang_unknown")
    if fault == "device":
        assert answers[True]


def test_watchdog_lines_alone_name_nobody_healthy(tmp_path):
    for seed in range(3):
        rng = random.Random(seed)
        job = jobs.make(rng, 8, ("late", "device", "transport")[seed])
        job.gloo = False
        session = MemorySession(logs(jobs.write_logs(job, tmp_path).values()))
        assert named(session) <= job.culprits


def test_the_watchdog_of_the_only_group_names_the_rank_that_did_not_come(tmp_path):
    """A job of one tensor group whose ranks state their counters of the default group."""
    head = "[rank{0}]:[E810 03:14:11.061727749 ProcessGroupNCCL.cpp:683] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
    late = " failure detected by watchdog at work sequence id: 78 PG status: last enqueued work: 79, last completed work: 77"
    lines = [head.format(rank) + late for rank in (0, 1, 3)]
    lines.append(
        head.format(2)
        + "Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: 77, last completed NCCL work: 77.This is most likely"
    )
    file = tmp_path / "train.log"
    file.write_text("\n".join(lines))
    assert named(MemorySession(logs([file]))) == {2}
    file.write_text("\n".join(lines[:3]))  # rank 2 said nothing
    assert named(MemorySession(logs([file]))) == set()
    other = lines[0].replace("PG ID 0 PG GUID 0(default_pg) Rank 0", "PG ID 3 PG GUID 7(TENSOR) Rank 1")
    file.write_text("\n".join([*lines, other]))  # rank 2 may wait in another group
    assert named(MemorySession(logs([file]))) == set()
