"""The timeline of all ranks is a sound trace in itself, on one clock."""

import gzip
import json

import pytest
from test_accusations import document, meet, moved, parallel, run, slow

from postmortem import timeline
from postmortem.errors import PostmortemError
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store


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


@pytest.fixture
def made(tmp_path):
    """made(documents): their timeline."""

    def write(documents):
        (tmp_path / "run").mkdir()
        for i, found in enumerate(documents):
            (tmp_path / "run" / f"trace_{i}.json").write_text(json.dumps(found))
        ingest({"run": tmp_path / "run"}, tmp_path / "store", jobs=1)
        return written(Session(Store(tmp_path / "store"), ["run"]), tmp_path)

    return write


def of(found, **wanted):
    return [e for e in found["traceEvents"] if wanted.items() <= e.items()]


def test_a_host_that_is_ahead_is_moved_back_and_the_file_says_by_how_much(made):
    jobs = run(parallel(2, 8, slow(1)))
    found = made([document(0, 2, *jobs[0], host_name="a"), document(1, 2, *moved(jobs[1], 5e6), host_name="b")])
    first, second = found["postmortem"]["clocks"]
    assert (first["status"], first["uncertainty"]) == ("reference", 0)
    assert (second["status"], second["offset_ns"], second["collectives"]) == ("estimated", 5_000_000_000, 32)
    assert second["uncertainty"] == 2000
    assert "ends of common collectives" in found["postmortem"]["method"]
    labels = [e["args"]["labels"] for e in of(found, name="process_labels")]
    assert labels == ["clock as stated", "clock corrected by 5000000000 ns, known to 2000 ns"]
    ends = [{e["ts"] + e["dur"] for e in of(found, cat="kernel", pid=rank)} for rank in (1, 2)]
    assert ends[0] == ends[1]
    waits = of(found, cat="wait")
    assert {(e["pid"], e["name"], e["dur"]) for e in waits} == {(1, "waits for rank 1 (allreduce)", 1500.0)}
    assert len(waits) == 32


def test_waits_that_overlap_stand_in_tracks_of_their_own(made):
    """Two groups at once on two streams: slices of one track that cross are dropped by viewers."""
    starts = [[(0, 500, 1), (100, 600, 2), (700, 800, 1)], [(400, 500, 1), (550, 600, 2), (790, 800, 1)]]
    documents = []
    for rank, kernels in enumerate(starts):
        events = [("ncclDevKernel_AllReduce_Sum_f32", 1e6 + a, 1e6 + b, 0, ()) for a, b, _ in kernels]
        documents.append(document(rank, 2, events, [(0, 1e6), (1, 1e6 + 900)]))
    found = made(documents)
    waits = [(e["ts"], e["dur"], e["tid"] - (1 << 30)) for e in of(found, cat="wait")]
    assert waits == [(0, 400, 0), (100, 450, 1), (700, 90, 0)]
    assert [e["args"]["name"] for e in of(found, name="thread_name", tid=(1 << 30) + 1)] == ["waits in collectives (2)"]


def test_every_rank_has_a_track_whatever_its_clock(made):
    jobs = run([[[meet([r], 500)] for _ in range(3)] for r in range(3)])
    lost, relative, sound = (document(r, 3, *job, host_name=f"h{r}") for r, job in enumerate(jobs))
    for e in lost["traceEvents"]:
        e["ts"] = 0
    del relative["baseTimeNanoseconds"]
    odd = [{"ph": ph, "name": ph, "ts": 1_000_100, "args": {"u": 3}} for ph in "CBE"]  # neither pid nor tid
    sound["traceEvents"] += [*odd, {"ph": "X", "name": "X", "ts": 1_000_100, "dur": 2}]
    found = made([lost, relative, sound])
    assert [e["args"]["labels"] for e in of(found, name="process_labels")] == [
        "no time that can be used", "clock unknown: not aligned, moved to the beginning", "clock as stated",
    ]  # fmt: skip
    assert [min(e["ts"] for e in of(found, cat="kernel", pid=rank)) for rank in (2, 3)] == [0, 0]
    assert {e["ph"] for e in found["traceEvents"] if e.get("ts") == 100} == {*"CBEX"}


def test_a_run_without_traces_is_refused(traced, tmp_path):
    session = traced("dlrm")
    session.connection.execute("ALTER VIEW trace RENAME TO all_traces")
    session.connection.execute("CREATE VIEW trace AS FROM all_traces LIMIT 0")
    with pytest.raises(PostmortemError, match="no profiler traces"):
        timeline.write(session, tmp_path / "t.json.gz")
