"""Flight Recorder dumps: what is read is what plain unpickling shows, and nothing is ever executed."""

import gzip
import io
import json
import pickle
import random
import tomllib

import pytest

from postmortem import schema
from postmortem.parsers import _dump, flight_recorder
from postmortem.records import Batch, Issue, Source


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(module, name)


def plain(file):
    data = file.read_bytes()
    return json.loads(data) if data[:1] == b"{" else Plain(io.BytesIO(data)).load()


def read(file, name=None):
    """(entry rows, status rows, issues) of a file, validated against the table's declaration."""
    name = name or file.name
    source = Source("run", name, file, "flight_recorder", file.stat().st_size, "0")
    entries, statuses, issues = [], [], []
    for item in flight_recorder.parse(source):
        if isinstance(item, Issue):
            issues.append(item)
        elif isinstance(item, Batch):
            rows = schema.tables()[item.table].conform(item, "run", name).to_pylist()
            if item.table == "collective_evidence":
                for row in rows:
                    (entries if row["statement"] == "entry" else statuses).append(row)
    return entries, statuses, issues


def write(tmp_path, dump, name="nccl_trace_rank_3", text=False):
    file = tmp_path / name
    if text:
        file.write_bytes(json.dumps(dump).encode())
        return file
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=2)
    pickler.fast = True  # like c10's pickler: containers are not memoized
    pickler.dump(dump)
    file.write_bytes(buffer.getvalue())
    return file


def entry(record=0, label="nccl:all_reduce", seq=1, group=("0", "default_pg"), **more):
    ends = " " in label
    return {
        "record_id": record, "pg_id": 0, "process_group": group, "profiling_name": label,
        "collective_seq_id": 0 if ends else seq, "p2p_seq_id": seq if ends else 0, "op_id": seq,
        "time_created_ns": 1_758_610_505_923_388_055, "input_sizes": [[4, 4]], "input_dtypes": ["Float"],
        "output_sizes": [[4, 4]], "output_dtypes": ["Float"], "state": "scheduled",
        "time_discovered_started_ns": None, "time_discovered_completed_ns": None, "retired": False,
        "timeout_ms": 600_000, "is_p2p": ends,
    } | more  # fmt: skip


def dump(*entries, ranks="[0, 1, 2, 3]", status=(1, -1, 0), version="2.10"):
    names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
    return {
        "version": version,
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
        "comm_lib_version": "2.27.3",
        "pg_status": {"0": dict(zip(names, status, strict=True))},
        "entries": list(entries),
    }


def test_every_real_dump_is_read_whole(shared):
    truth = tomllib.loads((shared / "data/TRUTH.toml").read_text())
    files = [
        f
        for folder in (*truth["flight_recorder"], "flight_recorder/gloo_torch2.13", "runs")
        for f in sorted((shared / "data" / folder).rglob("*"))
        if f.is_file() and (f.name.startswith(("_dump_", "dump_fr_trace", "nccl_trace_rank")))
    ]
    assert len(files) >= 100
    for file in files:
        whole = plain(file)
        assert flight_recorder.sniff(file.name, file.read_bytes()[:65536])
        entries, statuses, issues = read(file)
        assert not issues
        assert len(entries) == len(whole["entries"])
        assert {r["rank"] for r in entries + statuses} == {int(file.name.rsplit("_", 1)[1])}
        known = {int(e["pg_id"]) for e in whole["entries"]}
        assert {s["group_id"] for s in statuses} >= known
        for row, raw in zip(entries, whole["entries"], strict=True):
            assert row["time"] == raw["time_created_ns"]
            assert (row["group_name"], row["record"]) == (raw["process_group"][0], raw["record_id"])
            assert row["seq"] == raw["p2p_seq_id" if raw["is_p2p"] else "collective_seq_id"]
            assert row["pending"] == (not raw["retired"])


def test_idle_groups_get_their_counters_by_order_of_creation(shared):
    """Rank 4 has nothing pending in its expert-parallel group, so no entry ties number 10 to a name."""
    _, statuses, _ = read(shared / "data/flight_recorder/nvrx_gpu_error/_dump_4")
    idle = next(s for s in statuses if s["group_id"] == 10)
    assert (idle["group_desc"], idle["members_hash"]) == (
        "EXPERT_MODEL_PARALLEL_GROUP",
        flight_recorder.digest([4, 5, 6, 7]),
    )
    assert (idle["last_enqueued"], idle["last_completed"]) == (20544, 20544)
    peer = next(s for s in read(shared / "data/flight_recorder/nvrx_gpu_error/_dump_0")[1] if s["group_id"] == 12)
    assert (peer["group_desc"], peer["last_enqueued"]) == ("EXPERT_MODEL_PARALLEL_GROUP", 20544)


def test_pickle_and_json_of_one_process_say_the_same(shared):
    """The JSON was written later: by then the pending operation had failed, which gloo calls retired."""
    later = {"source", "frames", "pending", "last_completed"}
    folder = shared / "data/flight_recorder/gloo_torch2.13/raw_missing"
    for rank in range(4):
        rows = [read(folder / f"dump_fr_trace_{kind}{rank}") for kind in ("", "json_")]
        for part in (0, 1):
            first, second = (
                sorted(
                    ({k: v for k, v in row.items() if k not in later} for row in one[part]),
                    key=lambda row: (row["group_id"], row["record"]),
                )
                for one in rows
            )
            assert first == second


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3), ("comm_lib_trace_rank_2", 2), ("_dump_1", 1), ("torchcomm_fr_trace_0", 0),
        ("nccl_trace_rank_container-node02_3", 3), ("nccl_trace_rank_3.json", 3), ("dump.pickle", None),
        ("nccl_trace_rank_7", None),
    ],
)  # fmt: skip
def test_rank_is_the_last_integer_of_the_name_if_the_groups_agree(tmp_path, name, rank):
    entries, statuses, issues = read(write(tmp_path, dump(entry()), name))
    assert {row["rank"] for row in entries + statuses} == {rank}
    assert [i.kind for i in issues] == ([] if rank is not None else ["value"])


@pytest.mark.parametrize("version", ["2.0", "2.3", "2.5", "2.7", "2.8", "2.9", "2.10"])
def test_versions(tmp_path, version):
    """Old versions lack retired, is_p2p, thread_id, pg_status; numbers may be texts (JSON)."""
    old = entry(record="5", seq="9", version=version)
    for key in ("retired", "is_p2p", "timeout_ms", "input_dtypes", "output_dtypes"):
        del old[key]
    whole = dump(old, version=version)
    del whole["pg_status"], whole["comm_lib_version"]
    for text in (False, True):
        (row,), statuses, issues = read(write(tmp_path, whole, text=text))
        assert (row["record"], row["seq"], row["pending"], row["state"]) == (5, 9, True, "scheduled")
        assert not statuses
        assert not issues


def test_members_are_listed_once_per_group(tmp_path):
    source = write(tmp_path, dump(entry(), ranks="[3, 1]"))
    batches = list(flight_recorder.parse(Source("run", "x", source, "", 1, "0")))
    (groups,) = [b.columns for b in batches if isinstance(b, Batch) and b.table == "process_group"]
    assert groups == {
        "group_name": ["0"], "group_desc": ["default_pg"],
        "members": [(3, 1)], "members_hash": [flight_recorder.digest([3, 1])],
    }  # fmt: skip


def test_point_to_point(tmp_path):
    (send, recv), _, _ = read(write(tmp_path, dump(entry(1, "nccl:send 3->0", 7), entry(2, "nccl:recv 3<-2", 8))))
    assert (send["operation"], send["peer"], send["seq"]) == ("send", 0, 7)
    assert (recv["operation"], recv["peer"], recv["seq"]) == ("recv", 2, 8)


def test_retired_means_done_on_gloo_only(tmp_path):
    for backend, pending in (("nccl", True), ("gloo", False)):
        (row,), _, _ = read(write(tmp_path, dump(entry(label=f"{backend}:all_reduce", retired=True))))
        assert row["pending"] is pending


@pytest.mark.parametrize(
    ("label", "one", "other", "same"),
    [  # shapes (in, out) of two ranks of one collective: may they differ?
        ("all_reduce", ([[4, 4]], [[4, 4]]), ([[16]], [[16]]), True),
        ("all_reduce", ([[4, 4]], [[4, 4]]), ([[5, 4]], [[5, 4]]), False),
        ("all_to_all", ([[4, 4]], [[4, 4]]), ([[9]], [[7]]), True),
        ("_all_gather_base", ([[4]], [[16]]), ([[5]], [[20]]), False),
        ("_all_gather_base", ([[4]], [[16]]), ([[4]], [[20]]), False),
        ("_reduce_scatter_base", ([[16]], [[4]]), ([[16]], [[5]]), False),
        ("gather", ([[4, 4]], [[4, 4], [4, 4]]), ([[4, 4]], [[]]), True),
        ("scatter", ([[4], [4]], [[4]]), ([[]], [[4]]), True),
        ("broadcast", ([[8]], [[8]]), ([[9]], [[9]]), False),
        ("_broadcast_oop", ([[4, 4]], [[4, 4]]), ([[5, 5]], [[5, 5]]), False),
        ("all_gather_v", ([[4]], [[9]]), ([[5]], [[9]]), True),
        ("barrier", ([], []), ([[1]], [[1]]), True),
        ("new_window", ([[4]], [[4]]), ([[9]], [[9]]), True),
    ],
)
def test_signature(label, one, other, same):
    signs = [flight_recorder.signature(label, *sizes, ("Float", "Float")) for sizes in (one, other)]
    assert (signs[0] == signs[1]) is same
    assert flight_recorder.signature(label, *one, ("Half", "Half")).split()[0] == label


class Evil:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


def test_classes_are_refused(tmp_path):
    for dump_ in ({"pg_config": {}, "entries": [Evil()]}, {"pg_config": {1: Evil()}}):
        entries, statuses, (issue,) = read(write(tmp_path, dump_))
        assert (entries, statuses, issue.kind) == ([], [], "hostile")
        assert "exec" in issue.message


def _nested(depth):
    """A pair in a pair in a pair ... as a key: hashing it overflows the stack of pickle.Unpickler."""
    return b"\x80\x02}(X\x01\x00\x00\x00aq\x00h\x00\x86" + b"h\x00\x86" * depth + b"K\x01u."


@pytest.mark.parametrize(
    "attack",
    [
        b"\x80\x02}(X\x07\x00\x00\x00versionr\xff\xff\xff\xffX\x03\x00\x00\x002.9u.",  # 64 GB of memo
        _nested(200_000),
        _nested(1).replace(b"h\x00\x86h\x00\x86", b"h\x00\x86" + b"X\x01\x00\x00\x00b\x86" * 200_000),
        b"\x80\x02]" + b"q\x00" + b"(h\x00h\x00e]q\x00" * 1000 + b".",
        b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.",
    ],
)
def test_attacks_are_cheap(tmp_path, attack):
    file = tmp_path / "nccl_trace_rank_0"
    file.write_bytes(attack)
    entries, statuses, issues = read(file)
    assert (entries, statuses) == ([], [])
    assert issues


def test_lists_that_double_in_each_level_are_no_shapes(tmp_path):
    bomb = []
    for _ in range(60):
        bomb = [bomb, bomb]
    entries, _, _ = read(write(tmp_path, dump(entry(input_sizes=[[1]], output_sizes=None)), "a_3"))
    assert entries[0]["input_sizes"] == "[[1]]"
    file = tmp_path / "b_3"
    file.write_bytes(pickle.dumps(dump(entry(input_sizes=bomb, frames=bomb, input_dtypes=bomb)), protocol=2))
    entries, _, issues = read(file)
    assert issues or entries[0]["input_sizes"] is None


def test_both_ways_of_reading_agree(shared, monkeypatch):
    files = sorted((shared / "data/flight_recorder/nvrx_gpu_error").glob("_dump_1*"))
    files.append(shared / "data/runs/hang_before/nccl_trace_rank_1")
    for file in files:
        assert _dump._is_plain(file.read_bytes())
        fast = read(file)
        with monkeypatch.context() as patch:
            patch.setattr(_dump, "_is_plain", lambda _: False)
            assert read(file) == fast


@pytest.mark.parametrize("text", [False, True])
def test_cut_dumps_keep_their_whole_entries(tmp_path, text):
    frames = [{"name": "forward", "filename": "train.py", "line": n} for n in range(3)]
    whole = dump(*(entry(n, seq=n, frames=frames) for n in range(10)))
    file = write(tmp_path, whole, text=text)
    data = file.read_bytes()
    most = 0
    for end in range(0, len(data) - 1, 37):
        file.write_bytes(data[:end])
        entries, _, issues = read(file)
        assert issues
        assert [row["record"] for row in entries] == list(range(len(entries)))
        assert all(row["partial"] for row in entries)
        most = max(most, len(entries))
    assert most >= 8


def test_damage_never_crashes(tmp_path):
    rng = random.Random(5)
    frames = [{"name": "forward", "filename": "train.py", "line": 7}]
    for text in (False, True):
        file = write(tmp_path, dump(entry(0, frames=frames), entry(1, "nccl:send 3->0", 2)), text=text)
        data = file.read_bytes()
        for _ in range(300):
            changed = bytearray(data)
            for _ in range(rng.choice((1, 1, 3, 20))):
                changed[rng.randrange(len(changed))] = rng.choice(b"\x00\xff}u(e{[]\"'019-.qX")
            file.write_bytes(bytes(changed))
            read(file)


@pytest.mark.parametrize(
    "value",
    [None, 3, "x", [], [1, "x", None], {"entries": 3}, {"entries": [{}, 1], "pg_config": 4, "pg_status": []}],
)
def test_foreign_values_are_issues(tmp_path, value):
    for text in (False, True):
        entries, _, issues = read(write(tmp_path, value, text=text))
        assert not entries
        assert issues


def test_compressed_dump(tmp_path):
    file = write(tmp_path, dump(entry()))
    packed = tmp_path / "nccl_trace_rank_3.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    entries, _, issues = read(packed)
    assert (len(entries), issues) == (1, [])
    packed.write_bytes(packed.read_bytes()[:-30])
    assert read(packed)[2][0].kind in {"malformed", "truncated"}
