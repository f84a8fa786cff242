"""Traces that do not state their rank: found by process groups or by the logs of the run, never guessed."""

import json

import pytest

from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

LAUNCH = """\
[2026-12-02 07:38:41,405] [INFO] [launch.py:170:main] dist_world_size=2
[2026-12-02 07:38:41,411] [INFO] [launch.py:245:main] process 70 spawned with command: ['python3', 't.py', '--local_rank=0']
[2026-12-02 07:38:41,412] [INFO] [launch.py:245:main] process 71 spawned with command: ['python3', 't.py', '--local_rank=1']
"""


def trace(pid, *groups, **stated):
    """A trace of a process in three steps that lists its process groups."""
    step = [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": pid, "tid": 1, "ts": 1e3 * i, "dur": 900}
        for i in range(3)
    ]  # fmt: skip
    info = {"backend": "nccl", "pg_config": [{"pg_name": str(i), "ranks": r} for i, r in enumerate(groups)], **stated}
    return json.dumps({"baseTimeNanoseconds": 1_790_000_000_000_000_000, "distributedInfo": info, "traceEvents": step})


@pytest.fixture
def ranks(tmp_path):
    """ranks({file: text}): source -> (rank, origin), and the sentences about what is missing."""

    def run(files):
        folder = tmp_path / "files"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        ingest({"run": folder}, tmp_path / "store", jobs=1)
        session = Session(Store(tmp_path / "store"), ["run"])
        found = session.sql("SELECT source, rank, rank_origin FROM trace_file").to_pylist()
        steps = session.sql("SELECT DISTINCT source, rank FROM trace_step").to_pylist()
        assert {r["source"]: r["rank"] for r in steps} == {r["source"]: r["rank"] for r in found}
        missing = [r["sentence"] for r in session.rows("coverage_gaps")]
        doubles = session.rows("trace_duplicate_rank")
        return {r["source"]: (r["rank"], r["rank_origin"]) for r in found}, missing, doubles

    return run


def test_process_groups_of_a_two_dimensional_layout(ranks):
    world = [0, 1, 2, 3]
    found, missing, doubles = ranks({
        "a.json": trace(10, world, [0, 2], [2, 3]),
        "b.json": trace(11, world, [1, 3], [2, 3]),
        "c.json": trace(12, world),
        "rank1.json": trace(13, world, [0, 2], [0, 1]),
    })  # fmt: skip
    groups = "process groups"
    assert found == {"a.json": (2, groups), "b.json": (3, groups), "c.json": (None, None), "rank1.json": (0, groups)}
    assert any("Traces whose rank is not known: 1 (c.json)" in sentence for sentence in missing)
    assert not doubles


def test_process_ids_that_the_launcher_states(ranks):
    found, _, doubles = ranks({
        "train.log": LAUNCH,
        "libkineto_activities_71.json": trace(71),
        "libkineto_activities_70.json": trace(70),
        "libkineto_activities_99.json": trace(99),
        "other.json": trace(500, rank=1),
    })  # fmt: skip
    assert found == {
        "libkineto_activities_71.json": (None, None),  # another process states this rank at the same time
        "libkineto_activities_70.json": (0, "logs"),
        "libkineto_activities_99.json": (None, None),
        "other.json": (1, "distributedInfo"),
    }
    assert [row["rank"] for row in doubles] == [1]
