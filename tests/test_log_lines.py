"""Lines apart, lead-ins off, records whole: whatever launcher wrote them and however the file is cut."""

import gzip
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postmortem import schema
from postmortem.parsers import _read, lines
from postmortem.records import Batch, Issue, Source


def read(tmp_path, data: bytes, name="train.log", **who):
    file = tmp_path / "file"
    file.write_bytes(data)
    rows, issues = {}, []
    for item in lines.parse(Source("run", name, file, "lines", len(data), "0", **who)):
        if isinstance(item, Issue):
            issues.append(item)
        else:
            assert isinstance(item, Batch)
            rows.setdefault(item.table, []).extend(schema.tables()[item.table].conform(item, "run", name).to_pylist())
    return rows, issues


LEADINS = [
    ("[rank3]: hello", {"rank": 3, "text": "hello"}),
    ("[default3]:hello", {"local_rank": 3, "rank": None, "text": "hello"}),
    ("[default3]:[rank11]: hello", {"local_rank": 3, "rank": 11, "text": "hello"}),
    ("[1,3]<stdout>:hello", {"task": 3, "rank": None, "stream": "stdout", "text": "hello"}),
    ("[1,3]<stderr>: hello", {"task": 3, "stream": "stderr", "text": "hello"}),
    ("node7: [rank4]: hello", {"host": "node7", "rank": 4, "text": "hello"}),
    (
        "10.0.0.7: [2026-03-28 16:19:36,609] [INFO] [launch.py:335:main] hello",
        {"host": "10.0.0.7", "level": "info", "text": "hello", "clock": "local"},
    ),
    ("(RayTrainWorker pid=4021, ip=10.0.0.9) hello", {"pid": 4021, "host": "10.0.0.9", "text": "hello"}),
    (
        "2026-03-28T16:19:36.5Z stdout F [rank2]: hello",
        {"rank": 2, "stream": "stdout", "clock": "utc", "time": 1774714776500000000, "text": "hello"},
    ),
    ("2026-03-28T18:19:36.5+02:00 hello", {"clock": "utc", "time": 1774714776500000000, "text": "hello"}),
    ("Mar 28 16:19:36 node7 python[4021]: hello", {"host": "node7", "pid": 4021, "clock": "day", "text": "hello"}),
    ("[Rank 5] hello", {"rank": 5, "text": "hello"}),
    ("[Rank -1] hello", {"rank": None, "text": "hello"}),
    ("[rank 37] step 3: loss=1.0", {"rank": 37, "text": "step 3: loss=1.0"}),
    (
        "W0324 14:42:48.317000 745484 site-packages/torch/distributed/run.py:793] hello",
        {"level": "warning", "pid": 745484, "text": "hello"},
    ),
    (
        "[INFO|trainer.py:1160] 2026-03-28 16:19:36,609 >> hello",
        {"level": "info", "logger": "trainer.py:1160", "text": "hello"},
    ),
    ("ERROR:torch.distributed.elastic.multiprocessing.api:hello", {"level": "error", "text": "hello"}),
    ("2026-03-28 16:19:36,609 - WARNING - hello", {"level": "warning", "text": "hello"}),
    (
        "03/28/2026 16:19:36 - INFO - __main__ - hello",
        {"level": "info", "logger": "__main__", "time": 1774714776000000000, "clock": "local", "text": "hello"},
    ),
    (
        "2026-03-28 16:19:36.609 | WARNING  | app.main:train:33 - hello",
        {"level": "warning", "logger": "app.main:train:33", "time": 1774714776609000000, "text": "hello"},
    ),
    (
        "[2026-03-28 16:19:36,609][app.main][ERROR] - hello",
        {"level": "error", "logger": "app.main", "time": 1774714776609000000, "text": "hello"},
    ),
    ("[INFO] 2026-03-28 16:19:36: hello", {"level": "info", "time": 1774714776000000000, "text": "hello"}),
    ("INFO:2026-03-28 16:19:36,609:hello", {"level": "info", "time": 1774714776609000000, "text": "hello"}),
    ("2026-03-28 16:19:36 [info     ] hello", {"level": "info", "time": 1774714776000000000, "text": "hello"}),
    ("INFO 03-28 16:19:36 [core.py:33] hello", {"level": "info", "logger": "core.py:33", "text": "hello"}),
    ("28/03/2026 16:19:36 - INFO - hello", {"time": 1774714776000000000, "text": "hello"}),
    ("2026/03/28 16:19:36 hello", {"time": 1774714776000000000, "text": "hello"}),
    (
        "2026-03-28 16:19:36,609 - my.trainer - ERROR - hello",
        {"level": "error", "logger": "my.trainer", "time": 1774714776609000000, "text": "hello"},
    ),
    (
        "[2024-01-01 10:00:00,123] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending process 7 closing signal",
        {
            "level": "warning",
            "logger": "torch.distributed.elastic.multiprocessing.api",
            "text": "Sending process 7 closing signal",
        },
    ),
    (
        "[INFO 2020-06-08 06:02:19] 0/50, SamplesPerSec=12.5",
        {"level": "info", "time": 1591596139000000000, "text": "0/50, SamplesPerSec=12.5"},
    ),
    # the rank in the message is one of a process group, the one in front is global
    (
        "[rank4]:[E410 17:25:53.861 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog x",
        {"rank": 4, "level": "error", "text": "[Rank 1] Watchdog x"},
    ),
    (
        "[E ProcessGroupNCCL.cpp:475] [Rank 7] Watchdog x",
        {"rank": None, "level": "error", "text": "[Rank 7] Watchdog x"},
    ),
    ("ValueError: [rank3]: hello", {"host": None, "text": "ValueError: [rank3]: hello"}),
    ("no lead-in at all: 5", {"rank": None, "host": None, "prefix": "", "text": "no lead-in at all: 5"}),
]


@pytest.mark.parametrize(("line", "want"), LEADINS)
def test_leadin(tmp_path, line, want):
    (row,) = read(tmp_path, line.encode())[0]["line"]
    assert row["prefix"] + row["text"] == line
    assert {k: row[k] for k in want} == want


def test_json_of_docker_is_unwrapped(tmp_path):
    said = ["Traceback (most recent call last):", '  File "/w/train.py", line 3, in <module>', "ValueError: \u00fc"]
    data = [{"log": f"[rank3]: {x}\n", "stream": "stderr", "time": "2026-03-28T16:19:36.5Z"} for x in said]
    text = "\n".join(json.dumps(x, separators=(",", ":")) for x in data) + '\n{"log":"cut'
    rows, _ = read(tmp_path, text.encode(), "0f3-json.log")
    assert [(r["line"], r["text"]) for r in rows["line"]] == [*enumerate(said, 1), (4, '{"log":"cut')]
    assert {(r["rank"], r["time"], r["clock"], r["stream"]) for r in rows["line"][:3]} == {
        (3, 1774714776500000000, "utc", "stderr")
    }
    assert [(r["name"], r["message"], r["rank"]) for r in rows["event"]] == [("ValueError", "\u00fc", 3)]


def test_srun_labels_fill_a_log_and_numbered_items_do_not(tmp_path):
    rows, _ = read(tmp_path, b" 0: [rank0]: a\n 1: b\n10: c\n")
    assert [(r["task"], r["text"]) for r in rows["line"]] == [(0, "a"), (1, "b"), (10, "c")]
    rows, _ = read(tmp_path, b"steps to take\n1: b\nmore\nand more\n")
    assert [r["task"] for r in rows["line"]] == [None] * 4
    rows, _ = read(tmp_path, b"0: [2026-12-02 07:46:22,897] [INFO] [comm.py:9:f] a\n1: b\npip says\nmore\n")
    assert [(r["task"], r["host"]) for r in rows["line"]] == [(0, None), (1, None), (None, None), (None, None)]


def test_two_records_on_one_line_are_two_rows(tmp_path):
    data = b"[rank 0] step 3: loss=1.0[rank 1] step 3: loss=2.0\n[rank 0] step 4: loss=3.0\n"
    rows, _ = read(tmp_path, data)
    assert [(r["line"], r["part"], r["rank"]) for r in rows["line"]] == [(1, 0, 0), (1, 1, 1), (2, 0, 0)]
    assert [(r["rank"], r["step"], r["value"]) for r in rows["metric"]] == [(0, 3, 1.0), (1, 3, 2.0), (0, 4, 3.0)]


def test_progress_bars_colours_and_windows_line_ends(tmp_path):
    data = b"\x1b[32mgreen\x1b[0m\r\n 10%|#| 1/10 [00:01<00:09]\r 20%|##| 2/10 [00:02<00:08]\r\n{'loss': 2.5, 'epoch': 0.1}\n"
    rows, _ = read(tmp_path, data)
    assert [(r["line"], r["part"], r["text"]) for r in rows["line"]] == [
        (1, 0, "green"),
        (2, 0, " 10%|#| 1/10 [00:01<00:09]"),
        (2, 1, " 20%|##| 2/10 [00:02<00:08]"),
        (3, 0, "{'loss': 2.5, 'epoch': 0.1}"),
    ]
    assert [(r["step"], r["value"]) for r in rows["metric"] if r["name"] == "loss"] == [(2, 2.5)]


def test_offsets_point_into_the_file(tmp_path):
    data = b"a\r\n\xff\xfe caf\xc3\xa9\n\x1b[1mbold\x1b[0m\nlast"
    rows, _ = read(tmp_path, data)
    assert [r["offset"] for r in rows["line"]] == [0, 3, 12, 25]
    assert [r["text"] for r in rows["line"]] == ["a", "\ufffd\ufffd caf\u00e9", "bold", "last"]


TRACEBACK = """[rank3]: Traceback (most recent call last):
[rank0]: Traceback (most recent call last):
[rank3]:   File "/opt/train/train.py", line 142, in <module>
[rank0]:   File "/opt/train/train.py", line 9, in step
[rank3]:     engine.step()
[rank3]:   File "/usr/lib/python3.11/site-packages/deepspeed/runtime/engine.py", line 10, in step
[rank3]:     raise ValueError("bad token")
[rank3]: ValueError: bad token
[rank0]:     work.wait()
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:8617. This is typically caused by a remote worker crashing.
"""


def test_interleaved_tracebacks(tmp_path):
    rows, _ = read(tmp_path, TRACEBACK.encode())
    found = {r["rank"]: r for r in rows["event"] if r["kind"] == "exception"}
    assert (found[3]["name"], found[3]["message"], found[3]["role"]) == ("ValueError", "bad token", "root")
    assert '"file": "/opt/train/train.py", "file_line": 142' in found[3]["detail"]
    assert (found[0]["name"], found[0]["role"]) == ("RuntimeError", "cascade")


def test_an_unstamped_event_is_bounded_by_the_next_stamp_of_its_rank(tmp_path):
    data = (
        TRACEBACK
        + "[rank0]:[W1202 07:40:40.5 a.cpp:1] x\n[rank3]:[W1202 07:40:43.5 a.cpp:1] y\n[2026-12-02 07:41:00,000] [INFO] [a.py:1:f] z\n"
    )
    rows, _ = read(tmp_path, data.encode())
    event = next(r for r in rows["event"] if r["rank"] == 3 and r["kind"] == "exception")
    assert event["clock"] == "bound"
    assert event["time"] == 1796197243500000000  # 2026-12-02 07:40:43.5, the year from the last line


MIXED = (TRACEBACK + "".join(f"[rank {r}] step {s}: loss={s}.5, rss_gb=0.{s}\n" for s in range(1, 40) for r in range(3)) + (
    "Failures:\n[1]:\n  time      : 2026-12-02_07:41:40\n  host      : n1\n  rank      : 0 (local_rank: 0)\n"
    "  exitcode  : -15 (pid: 28624)  (SIGTERM)\n  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 28624\n"
    "------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-12-02_07:41:39\n  host      : n1\n"
    "  rank      : 1 (local_rank: 1)\n  exitcode  : -11 (pid: 28625)  (SIGSEGV)\n  error_file: <N/A>\n  traceback : x\n======\n"
)).encode()  # fmt: skip


# Tables of two agents as pdsh mixes them (torch/distributed/elastic/multiprocessing/errors/__init__.py); only the
# agents' own lines show that n1 and n2 are hosts.
AGENTS = """
n1: E0324 14:43:30.149000 28622 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -11) local_rank: 0 (pid: 6175) of binary: python3
n2: E0324 14:43:31.149000 9622 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) local_rank: 1 (pid: 7177) of binary: python3
n1: Failures:
n2: Failures:
n1: [1]:
n2:   <NO_OTHER_FAILURES>
n1:   time      : 2026-03-24_14:43:28
n2: ------------------------------------------------------------
n2: Root Cause (first observed failure):
n1:   rank      : 1 (local_rank: 1)
n2: [0]:
n1:   exitcode  : -15 (pid: 6176)
n2:   time      : 2026-03-24_14:43:29
n1:   traceback : Signal 15 (SIGTERM) received by PID 6176
n2:   rank      : 5 (local_rank: 1)
n1: ------------------------------------------------------------
n1: Root Cause (first observed failure):
n2:   exitcode  : 1 (pid: 7177)
n1: [0]:
n1:   time      : 2026-03-24_14:43:26
n2:   traceback : Traceback (most recent call last):
n1:   rank      : 0 (local_rank: 0)
n2:     File "train.py", line 44, in main
n1:   exitcode  : -11 (pid: 6175)
n2:       raise ValueError("bad token")
n1:   traceback : Signal 11 (SIGSEGV) received by PID 6175
n2:   ValueError: bad token
n1: ============================================================
n2: ============================================================
"""


def test_mixed_failure_tables_of_two_nodes(tmp_path):
    rows, _ = read(tmp_path, AGENTS.encode())
    ends = [r for r in rows["event"] if r["kind"] == "exit"]
    assert {(r["host"], r["local_rank"], r["pid"], r["code"]) for r in ends if r["rank"] is None} == {
        ("n1", 0, 6175, -11), ("n2", 1, 7177, 1)
    }  # fmt: skip
    assert {(r["host"], r["rank"], r["pid"], r["code"], r["message"]) for r in ends if r["rank"] is not None} == {
        ("n1", 0, 6175, -11, "Signal 11 (SIGSEGV) received by PID 6175"),
        ("n1", 1, 6176, -15, "Signal 15 (SIGTERM) received by PID 6176"),
        ("n2", 5, 7177, 1, "ValueError: bad token"),
    }


def order(rows):
    return {table: sorted(map(repr, found)) for table, found in rows.items()}


@pytest.mark.parametrize("size", [200, 333, 1000])
def test_blocks_of_any_size_give_the_same_rows(tmp_path, monkeypatch, size):
    whole, _ = read(tmp_path, MIXED)
    monkeypatch.setattr(_read, "BLOCK", size)
    assert order(read(tmp_path, MIXED)[0]) == order(whole)


def test_gzip_gives_the_same_rows_and_tells_of_a_cut(tmp_path):
    whole, _ = read(tmp_path, MIXED)
    packed = gzip.compress(MIXED[:500]) + gzip.compress(MIXED[500:])
    got, issues = read(tmp_path, packed)
    assert order(got) == order(whole)
    assert issues == []
    cut, issues = read(tmp_path, packed[:-20])
    assert [i.kind for i in issues] == ["truncated"]
    assert len(cut["line"]) > 0


def test_the_table_of_torchrun(tmp_path):
    rows, _ = read(tmp_path, MIXED)
    table = [(r["rank"], r["code"], r["role"], r["name"]) for r in rows["event"] if r["kind"] == "exit"]
    assert table == [(0, -15, "cascade", "SIGTERM"), (1, -11, "symptom", "SIGSEGV")]


def test_a_line_without_end_is_kept_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(_read, "BLOCK", 1000)
    data = b"x" * 5500 + b"\nnext\n"
    rows, issues = read(tmp_path, data)
    assert "".join(r["text"] for r in rows["line"] if r["line"] == 1) == "x" * 5500
    assert [r["part"] for r in rows["line"] if r["line"] == 1] == list(range(len(rows["line"]) - 1))
    assert rows["line"][-1]["line"] == 2
    assert [i.kind for i in issues] == ["limit"]


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_steps_of_epochs_are_counted_on(tmp_path, monkeypatch, size):
    monkeypatch.setattr(_read, "BLOCK", size)

    def losses(log):
        rows, _ = read(tmp_path, log.encode())
        return [(r["step"], r["value"]) for r in rows["metric"] if r["name"] == "loss"]

    within = "".join(f"Epoch [{e}/3], Step [{s}/30], Loss: {e}.{s}\n" for e in (1, 2, 3) for s in (10, 20, 30))
    assert [step for step, _ in losses(within)] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert losses(within)[4] == (50, 2.2)
    of_the_run = "".join(f"Epoch {1 + s // 40} step {s}/90 loss: {s}\n" for s in range(10, 91, 10))
    assert [step for step, _ in losses(of_the_run)] == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    once_each = "".join(f"Epoch: [{e}][30/30]\tTime 0.3 (0.3)\tLoss {e}.5 (2.5)\n" for e in (0, 1, 2))
    assert losses(once_each) == [(30, 0.5), (60, 1.5), (90, 2.5)]
    continued = "".join(within.splitlines(keepends=True)[4:])  # the second part of a log that was rotated
    assert losses(continued)[-3:] == losses(within)[-3:]


def test_a_launcher_that_starts_after_steps_is_the_next_attempt(tmp_path):
    start = "[2026-03-28 10:00:00,000] [INFO] [launch.py:146:main] WORLD INFO DICT: {'n1': [0, 1]}\n"
    nodes = "n1: " + start + "n2: " + start  # one start, told by two nodes
    rows, _ = read(tmp_path, (nodes + "[rank 0] step 1: loss=3.0\n" + nodes + "[rank 0] step 1: loss=2.0\n").encode())
    assert [(r["attempt"], r["value"]) for r in rows["metric"]] == [(0, 3.0), (1, 2.0)]


def test_restarts_in_one_file_are_attempts(tmp_path):
    start = "[2026-12-02 07:38:40,274] [INFO] [runner.py:618:main] cmd = python3 train.py\n"
    data = start + "[rank 0] step 1: loss=1.0\n" + start + "[rank 0] step 1: loss=2.0\n"
    rows, _ = read(tmp_path, data.encode())
    assert [(r["attempt"], r["value"]) for r in rows["metric"]] == [(0, 1.0), (1, 2.0)]


def test_restarts_by_the_agents_of_two_nodes_count_once(tmp_path):
    def said(count: int) -> str:
        stamp = "I1202 07:41:41.149000 28622 torch/distributed/elastic/agent/server/api.py:525] "
        return f"{stamp}[default] Rendezvous complete for workers. Result:\n  restart_count={count}\n  group_rank=0\n"

    step = "[rank 0] step 1: loss={}\n"
    data = said(0) * 2 + step.format(1.0) + said(1) * 2 + step.format(2.0) + said(2) + said(1) + step.format(3.0)
    rows, _ = read(tmp_path, data.encode())
    assert [(r["attempt"], r["value"]) for r in rows["metric"]] == [(0, 1.0), (1, 2.0), (2, 3.0)]


def test_a_process_that_starts_after_steps_is_the_next_attempt(tmp_path):
    """No launcher speaks here. Engines of one process, and ranks that start side by side, are no restart."""
    start = "[2026-12-02 07:38:43,745] [INFO] [comm.py:690:init_distributed] Initializing TorchBackend in DeepSpeed with backend nccl\n"
    step = "[rank 0] step {}: loss={}\n"
    data = start * 3 + step.format(1, 1.0) + step.format(2, 2.0) + start * 3 + step.format(2, 3.0) + "other\n" + start
    rows, _ = read(tmp_path, data.encode())
    assert [(r["attempt"], r["value"]) for r in rows["metric"]] == [(0, 1.0), (0, 2.0), (1, 3.0)]
    assert rows["line"][-1]["attempt"] == 2


def test_an_agent_and_the_processes_it_starts_speak_of_one_restart(tmp_path):
    agent = (
        "I1202 07:41:41.149000 28622 torch/distributed/elastic/agent/server/api.py:525] [default] Rendezvous complete "
        "for workers. Result:\n  restart_count={}\n"
    )
    start = "[2026-12-02 07:38:43,745] [INFO] [comm.py:690:init_distributed] Initializing TorchBackend in DeepSpeed with backend nccl\n"
    run = agent + start + "[rank 0] step 1: loss=1.0\n"
    rows, _ = read(tmp_path, "".join(run.format(count) for count in range(3)).encode())
    assert [r["attempt"] for r in rows["metric"]] == [0, 1, 2]


FORMS = {
    "plain": lambda _rank, line: line,
    "pdsh": lambda rank, line: f"node{rank // 2}: {line}",
    "mpirun": lambda rank, line: f"[1,{rank}]<stdout>:{line}",
    "torchrun": lambda rank, line: f"[default{rank}]:{line}",
    "k8s": lambda _rank, line: f"2026-12-02T07:40:43.5Z stdout F {line}",
    "ray": lambda rank, line: f"(RayTrainWorker pid={4000 + rank}, ip=10.0.0.1) {line}",
    "srun": lambda rank, line: f"{rank}: {line}",
    "pdsh, torchrun": lambda rank, line: f"node{rank // 2}: [default{rank}]:{line}",
    "k8s, mpirun": lambda rank, line: f"2026-12-02T07:40:43.5Z stderr F [1,{rank}]<stderr>:{line}",
    "srun, torchrun": lambda rank, line: f"{rank // 2}: [default{rank % 2}]:{line}",
    "k8s, ray": lambda rank, line: f"2026-12-02T07:40:43.5Z stdout F (RayTrainWorker pid={4000 + rank}) {line}",
    "windows": lambda _rank, line: f"{line}\r",
    "colours": lambda _rank, line: f"\x1b[36m{line[:8]}\x1b[0m{line[8:]}",
    "redrawn bar": lambda _rank, line: f"Map:  10%|#   | 1/10 [00:01<00:09,  1.00it/s]\r{line}",
    "glued to a bar": lambda _rank, line: f"Map:  10%|#   | 1/10 [00:01<00:09,  1.00it/s]{line}",
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 99), st.floats(-5, 5).map(lambda v: round(v, 3))),
        min_size=3,
        max_size=30,
    )
)
def test_rewriting_lead_ins_changes_no_record(tmp_path, form, data):
    records = [(r, f"[rank{r}]: step {s}: loss={v}, grad_norm=nan") for r, s, v in data]
    records += [(int(m[1]), line) for line in TRACEBACK.splitlines() if (m := re.match(r"\[rank(\d)\]", line))]
    plain, _ = read(tmp_path, "\n".join(line for _, line in records).encode())
    dressed, _ = read(tmp_path, "\n".join(FORMS[form](r, line) for r, line in records).encode())
    keep = ("line", "rank", "step", "name", "text", "kind", "role", "message", "code")
    for table in ("metric", "event"):
        have = [{k: r.get(k) for k in keep} for r in dressed[table]]
        want = [{k: r.get(k) for k in keep} for r in plain[table]]
        assert have == want


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=80),
            st.sampled_from(
                [
                    b"Traceback (most recent call last):",
                    b"Failures:",
                    b"[0]:",
                    b"  rank      : x (local_rank: 9)",
                    b"\r",
                    b"\x1b[",
                    b"  json = {",
                    b"[rank99999999999999]: step 99999999999999999999: loss=1",
                    b"global_rank_mapping={'a': [1, 99999999999]}",
                    b"CUDA out of memory. Tried to allocate 99999999999999999 EiB",
                    b"step 5: loss=1e999",
                    b"[9999-99-99 99:99:99,999] [INFO] [a:1:b] x",
                ]
            ),
        ),
        max_size=12,
    )
)
def test_any_bytes_are_rows_or_issues(tmp_path, pieces):
    data = b"\n".join(pieces)
    rows, issues = read(tmp_path, data)
    if data[:2] in (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff"):
        assert rows or issues
        return
    assert len({r["line"] for r in rows.get("line", [])}) == (
        data.count(b"\n") + (0 if data.endswith(b"\n") else 1) if data else 0
    )


@pytest.mark.parametrize("data", [b"\xfe\xff", b"\xff\xfe", gzip.compress(b"")])
def test_a_file_that_holds_no_text_says_so(tmp_path, data):
    rows, issues = read(tmp_path, data)
    assert (rows, [issue.kind for issue in issues]) == ({}, ["empty"])


def test_half_a_character_at_the_end_of_utf_16_is_kept(tmp_path):
    rows, issues = read(tmp_path, b"\xff\xfea\0b\0c")
    assert ([r["text"] for r in rows["line"]], issues) == (["ab\ufffd"], [])


def test_binary_files_are_no_text():
    assert not lines.sniff("a.log", b"\x7fELF\x02\x01\x01\0\0\0")
    assert not lines.sniff("a.log", bytes(range(128, 256)) * 100)
    assert lines.sniff("a.log", "café ██ 10%".encode() * 100)
    assert not lines.sniff("a.log", b"")


def test_source_code_quotes_messages_and_is_no_log():
    text = b'raise RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB")\n'
    assert not lines.sniff("code/train.py", text)
    assert not lines.sniff("notes.md", text)
    assert all(
        lines.sniff(name, text)
        for name in ("train.log", "train.log.1", "nohup.out", "slurm-12.err", "stdout", "log.txt.gz")
    )


def test_stacks_of_live_processes(tmp_path):
    data = (
        b"Current thread 0x00007f94 (most recent call first):\n"
        b'  File "/opt/train.py", line 110 in watch\n  File "/usr/lib/python3.11/threading.py", line 982 in run\n\n'
        b'Thread 0x00007f95 (most recent call first):\n  File "/opt/train.py", line 144 in <module>\n'
        b"plain line\n"
        b"Process 4021: python3 train.py\nPython v3.11.7 (/usr/bin/python3.11)\n\n"
        b'Thread 4021 (idle): "MainThread"\n    all_reduce (torch/distributed/distributed_c10d.py:2501)\n    <module> (train.py:9)\n'
    )
    rows, _ = read(tmp_path, data)
    assert [r["name"] for r in rows["event"] if r["kind"] == "stack"] == [
        "watch (/opt/train.py:110)",
        "<module> (/opt/train.py:144)",
        "all_reduce (torch/distributed/distributed_c10d.py:2501)",
    ]


def test_the_exception_of_a_rank_that_waited_is_no_cause(tmp_path):
    said = "[Rank 3] Caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800500 milliseconds before timing out."
    text = f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nRuntimeError: {said}\n'
    rows, _ = read(tmp_path, text.encode())
    assert [(r["kind"], r["role"]) for r in rows["event"] if r["kind"] == "exception"] == [("exception", "cascade")]


@pytest.mark.parametrize(
    ("frames", "pinning"),
    [
        ('  File "pin_memory.py", line 57, in pin_memory\n    return data.pin_memory(device)\n', True),
        ('  File "train.py", line 9, in load\n    x = torch.empty(n, pin_memory=True)\n        ^^^^^\n', True),
        # the thread makes a context on the device: that is memory of the device
        ('  File "pin_memory.py", line 30, in _pin_memory_loop\n    torch.cuda.set_device(device_id)\n', False),
        ('  File "a.py", line 1, in pin_memory\n    f()\n  File "b.py", line 2, in f\n    x.cuda()\n', False),
        ('  File "train.py", line 9, in f\n    DataLoader(data, pin_memory=False)\n', False),
    ],
)
def test_an_exception_knows_whether_memory_was_being_pinned(tmp_path, frames, pinning):
    text = f"Traceback (most recent call last):\n{frames}RuntimeError: CUDA error: out of memory\n"
    rows, _ = read(tmp_path, text.encode())
    (raised,) = [r for r in rows["event"] if r["kind"] == "exception"]
    assert json.loads(raised["detail"]).get("pinning", False) is pinning


def test_what_nccl_warned_of_is_part_of_the_exception(tmp_path):
    said = "NCCL error in: x.cpp:1\nncclSystemError: System call failed.\nLast error:\nError while creating a segment\nan other line"
    text = f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nDistBackendError: {said}\n'
    rows, _ = read(tmp_path, text.encode())
    (raised,) = [r for r in rows["event"] if r["kind"] == "exception"]
    assert raised["message"].splitlines()[-1] == "Error while creating a segment"


def test_a_host_in_front_of_nccl_is_no_lead_in(tmp_path):
    nccl = "n1:40000:40122 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-a to 4096 bytes"
    rows, _ = read(
        tmp_path, f"n1: [2026-03-28 16:19:36,609] [INFO] [launch.py:335:main] x\n{nccl}\nn1: {nccl}\nn1:\n".encode()
    )
    assert [r["text"] for r in rows["line"]] == ["x", nccl, nccl, ""]
    assert [r["host"] for r in rows["event"]] == ["n1", "n1"]
    assert {r["kind"] for r in rows["event"]} == {"oom"}


@pytest.mark.parametrize(
    "said",
    [
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 4/8 clients joined.",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (n1, 29500).",
        "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
    ],
)
def test_who_waits_for_others_at_the_start_is_a_symptom(tmp_path, said):
    text = f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n{said}\n'
    rows, _ = read(tmp_path, text.encode())
    assert [r["role"] for r in rows["event"] if r["kind"] == "exception"] == ["symptom"]
