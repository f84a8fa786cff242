"""The timeline of all ranks is a sound trace in itself, on one clock."""

import gzip
import json

import pytest

from postmortem import timeline
from postmortem.errors import PostmortemError


def written(session, tmp_path):
    file = tmp_path / "t.json.gz"
    count = timeline.write(session, file)
    document = json.loads(gzip.decompress(file.read_bytes()))
    assert count == len(document["traceEvents"])
    return document


def test_every_event_of_every_rank_is_there(traced, ask, tmp_path):
    document = written(traced("dlrm"), tmp_path)
    events = document["traceEvents"]
    expected = ask(
        "SELECT count(*) AS n FROM trace_event WHERE ph = 'X' AND dur IS NOT NULL AND ts IS NOT NULL", "dlrm"
    )
    assert sum(e["ph"] == "X" and e["cat"] != "wait" for e in events) == expected[0]["n"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert [n.split()[:2] for n in names.values()] == [["rank", str(r)] for r in range(8)]
    assert [c["status"] for c in document["postmortem"]["clocks"]] == ["reference"] + ["agrees"] * 7
    assert min(e["ts"] for e in events if "ts" in e) >= 0
    assert len({(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}) > 16


def test_waits_are_shown_with_whom_they_wait_for(traced, tmp_path):
    waits = [e for e in written(traced("dlrm"), tmp_path)["traceEvents"] if e.get("cat") == "wait"]
    first = [e for e in waits if e["args"]["collective"] == 1]
    assert len(first) == 7
    assert {e["name"] for e in first} == {"waits for rank 7 (sendrecv)"}
    assert max(e["dur"] for e in first) == 7624
    assert len({e["ts"] + e["dur"] for e in first}) == 1


def test_a_run_without_traces_is_refused(traced, tmp_path):
    session = traced("dlrm")
    session.connection.execute("ALTER VIEW trace RENAME TO all_traces")
    session.connection.execute("CREATE VIEW trace AS FROM all_traces LIMIT 0")
    with pytest.raises(PostmortemError, match="no profiler traces"):
        timeline.write(session, tmp_path / "t.json.gz")
