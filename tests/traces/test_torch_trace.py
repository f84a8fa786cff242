"""The trace parser against hand-made documents and, event by event, against the standard library's json."""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from postmortem import schema
from postmortem.parsers import _trace_events, parsers, torch_trace
from postmortem.records import Batch, Issue, Source

BASE = 1_790_857_026_000_000_000


def event(**fields):
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::mm",
        "pid": 7,
        "tid": 8,
        "ts": 10.5,
        "dur": 2.25,
    } | fields


def read(tmp_path, text, name="trace.json", rank=None):
    """Parse a document; returns (events, traces, issues), rows as dicts."""
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return parse(file, name, rank)


def tables_of(file, name, rank=None):
    """Table -> its rows, and the issues, of one trace."""
    out = list(torch_trace.parse(Source("run", name, file, "torch_trace", file.stat().st_size, "d", rank)))
    tables = {}
    for batch in out:
        if isinstance(batch, Batch):
            table = schema.tables()[batch.table].conform(batch, "run", name)
            tables.setdefault(batch.table, []).append(table)
    return {name: pa.concat_tables(parts) for name, parts in tables.items()}, [o for o in out if isinstance(o, Issue)]


def parse(file, name, rank=None):
    tables, issues = tables_of(file, name, rank)
    rows = {name: table.to_pylist() for name, table in tables.items()}
    return rows.get("trace_event", []), rows.get("trace", []), issues


def document(events, **metadata):
    return json.dumps({"schemaVersion": 1, **metadata, "traceEvents": events, "traceName": "t.json"})


def test_columns_of_a_kernel_and_its_args(tmp_path):
    args = {"device": 3, "stream": 7, "correlation": 91, "External id": 5, "grid": [1, 2, 3], "bytes": 4096}
    rows, _, issues = read(tmp_path, document([event(cat="kernel", args=args)], baseTimeNanoseconds=BASE))
    assert not issues
    row = rows[0]
    assert (row["ts"], row["dur"], row["flag"]) == (BASE + 10_500, 2_250, None)
    assert (row["device"], row["stream"], row["correlation"], row["external_id"], row["bytes"]) == (
        3,
        7,
        91,
        5,
        4096,
    )
    assert json.loads(row["args"]) == args
    assert (row["pid"], row["tid"], row["ph"], row["cat"], row["ordinal"]) == ("7", "8", "X", "kernel", 0)


def test_collective_args(tmp_path):
    args = {
        "Collective name": "allreduce", "Process Group Name": "1", "Seq": 12, "In msg nelems": 1000,
        "Comms Id": 18446744073709551615,
    }  # fmt: skip
    row = read(tmp_path, document([event(args=args)]))[0][0]
    assert (row["collective"], row["group"], row["sequence"], row["elements"]) == ("allreduce", "1", 12, 1000)
    row = read(tmp_path, document([event(args={"Process Group ID": "2"})]))[0][0]
    assert row["group"] == "2"


def test_memory_events_of_any_device_type(tmp_path):
    args = {"Device Type": 6, "Device Id": 1, "Bytes": -512, "Total Allocated": 10, "Total Reserved": 20}
    row = read(tmp_path, document([event(ph="i", name="[memory]", cat="cpu_instant_event", args=args)]))[0][0]
    assert (row["device_type"], row["device"], row["bytes"], row["allocated"], row["reserved"]) == (
        6,
        1,
        -512,
        10,
        20,
    )


@pytest.mark.parametrize(
    ("ts", "dur", "metadata", "expected"),
    [
        pytest.param("1623142623460111", "25", {}, (1623142623460111000, 25_000), id="whole microseconds"),
        pytest.param("1712192298123456.789", "0.001", {}, (1712192298123456789, 1), id="absolute decimals"),
        pytest.param("1712192298123456.001", "7", {}, (1712192298123456001, 7_000), id="absolute decimals, 1 ns"),
        pytest.param("5340363885454.181", "1.5", {"baseTimeNanoseconds": BASE}, (BASE + 5340363885454181, 1500), id="base"),
        pytest.param("4500000000000.999", "1", {"baseTimeNanoseconds": BASE}, (BASE + 4500000000000999, 1000), id="2**42"),
        pytest.param("5340363885454.181", "1", {}, (5340363885454181, 1000), id="relative"),
        pytest.param('"1712192298123456.789"', '"2.5"', {}, (1712192298123456789, 2500), id="text"),
    ],
)  # fmt: skip
def test_four_eras_of_times_are_exact(tmp_path, ts, dur, metadata, expected):
    text = document([event(ts="TS", dur="DUR")], **metadata).replace('"TS"', ts).replace('"DUR"', dur)
    rows, _, issues = read(tmp_path, text)
    assert (rows[0]["ts"], rows[0]["dur"]) == expected
    assert [i.kind for i in issues] == (["value"] if "relative to a moment" in str(issues) else [])


def test_clock_kind(tmp_path):
    assert read(tmp_path, document([event(ts=1.6e15)]))[1][0]["clock"] == "absolute"
    assert read(tmp_path, document([event()], baseTimeNanoseconds=BASE))[1][0]["clock"] == "base"
    _, trace, issues = read(tmp_path, document([event()]))
    assert trace[0]["clock"] == "relative"
    assert "relative" in issues[0].message


def test_metadata_after_the_events(tmp_path):
    info = '{"backend": "nccl", "rank": 5, "world_size": 16, "ranks": "[0, 1]"}'
    text = f'{{"traceEvents": [{json.dumps(event())}], "distributedInfo": {info}, "baseTimeNanoseconds": {BASE}}}'
    for name, data in (("a.json", text.encode()), ("a.json.gz", gzip.compress(text.encode()))):
        rows, trace, issues = read(tmp_path, data, name)
        assert (rows[0]["ts"], rows[0]["rank"]) == (BASE + 10_500, 5)
        assert (trace[0]["rank"], trace[0]["world_size"], trace[0]["backend"]) == (5, 16, "nccl")
        assert not issues


def test_a_second_list_of_events_is_read_too(tmp_path):
    first, second = (json.dumps([event(name=name)]) for name in ("a", "b"))
    between, after = '"host_name": "n1"', f'"baseTimeNanoseconds": {BASE}'
    text = f'{{"traceEvents": {first}, {between}, "traceEvents": {second}, {after}}}'
    rows, trace, issues = read(tmp_path, text)
    assert [r["name"] for r in rows] == ["a", "b"]
    assert (trace[0]["events"], trace[0]["host"], trace[0]["clock"]) == (2, "n1", "base")
    assert issues == []


def test_list_root_and_byte_order_mark(tmp_path):
    rows, trace, _ = read(tmp_path, "\ufeff" + json.dumps([event(), event(name="b")]))
    assert [r["name"] for r in rows] == ["aten::mm", "b"]
    assert trace[0]["metadata"] == "{}"


def test_names_of_2021(tmp_path):
    old = ["Operator", "Kernel", "Runtime", "Memcpy", "Memset", "gpu_user_Annotation", "kernel"]
    rows, _, _ = read(tmp_path, document([event(cat=c) for c in old]))
    new = ["cpu_op", "kernel", "cuda_runtime", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "kernel"]
    assert [r["cat"] for r in rows] == new


def test_odd_types_cost_nothing(tmp_path):
    events = [
        event(pid="Spans", tid="stream 7", args=None),
        event(id="0x1f", ph="s", args=[1]),
        event(id=2**64 - 1, name=5, args={"bytes": "N/A", "stream": 2.0, "device": 1e30}),
        {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "python"}},
        {"name": "no phase"},
    ]
    rows, _, issues = read(tmp_path, document(events, baseTimeNanoseconds=BASE))
    assert len(rows) == 5
    assert not issues
    assert (rows[0]["pid"], rows[0]["tid"], rows[0]["args"]) == ("Spans", "stream 7", "null")
    assert rows[1]["correlation"] == 31
    assert (rows[2]["correlation"], rows[2]["bytes"], rows[2]["stream"], rows[2]["device"]) == (
        -1,
        None,
        2,
        None,
    )
    assert (rows[2]["name"], rows[3]["ts"], rows[4]["ph"]) == ("5", None, "")


def test_impossible_times_are_flagged(tmp_path):
    good = [event(ts=1e12 + i) for i in range(5)]
    bad = [
        event(ts=0),
        event(ts=-5),
        event(ts=1e12, dur=-1),
        event(ts=1e12, dur=7e15),
        event(ts=3e12),
        event(ts=1e30),
    ]
    rows, trace, issues = read(tmp_path, document(good + bad, baseTimeNanoseconds=BASE))
    assert [r["flag"] for r in rows[5:]] == ["zero", "negative", "negative", "absurd", "absurd", "absurd"]
    assert {r["ts"] for r in rows[5:]} == {None}
    assert trace[0]["end"] == BASE + 1_000_000_000_004_000 + 2_250
    assert [i.kind for i in issues] == ["value"] * 3


@pytest.mark.parametrize(
    ("name", "metadata", "expected"),
    [
        ("rank3_trace.json", {}, (3, "file_name")),
        ("rank-12.Apr_03.json", {}, (12, "file_name")),
        ("dp0_pp0_tp1_rank9.123.pt.trace.json", {}, (9, "file_name")),
        ("worker4_step_12.1694.pt.trace.json", {}, (4, "file_name")),
        ("x_rank7.json", {"distributedInfo": {"rank": 2}}, (2, "distributedInfo")),
        ("frank7.json", {}, (None, None)),
        ("node1_local_rank3.json", {}, (None, None)),
        ("trace.json", {"distributedInfo": {"backend": "nccl"}}, (None, None)),
    ],
)
def test_rank(tmp_path, name, metadata, expected):
    trace = read(tmp_path, document([event()], **metadata), name)[1][0]
    assert (trace["rank"], trace["rank_origin"]) == expected


def test_host_from_the_handlers_file_name_only_with_the_same_pid(tmp_path):
    assert read(tmp_path, document([event(pid=12)]), "node_a_12.99.pt.trace.json")[1][0]["host"] == "node_a"
    assert read(tmp_path, document([event(pid=13)]), "worker0_step_12.99.pt.trace.json")[1][0]["host"] is None
    assert read(tmp_path, document([event()], host_name="gpu7"))[1][0]["host"] == "gpu7"


def test_pieces_are_cut_anywhere(tmp_path, monkeypatch):
    events = [event(name=f'odd "}}, {{ {i}\\', args={"x": [{"a": 1}, {"b": "]},"}]}) for i in range(200)]
    for indent in (None, 2):
        text = json.dumps({"traceEvents": events, "tail": [{"a": 1}, {"b": 2}]}, indent=indent)
        for size in (1, 100, 1000, 1 << 20):
            monkeypatch.setattr(_trace_events, "PIECE", size)
            monkeypatch.setattr("postmortem.parsers._trace_stream.BLOCK", max(size, 50))
            rows, trace, issues = read(tmp_path, text)
            assert [r["name"] for r in rows] == [e["name"] for e in events]
            assert json.loads(trace[0]["metadata"]) == {"tail": [{"a": 1}, {"b": 2}]}
            assert [i.kind for i in issues] == ["value"]


def test_gzip_of_several_members(tmp_path):
    text = document([event(name=str(i)) for i in range(50)], baseTimeNanoseconds=BASE).encode()
    data = gzip.compress(text[:700]) + gzip.compress(text[700:]) + b"\0" * 100
    rows, _, issues = read(tmp_path, data, "a.json.gz")
    assert len(rows) == 50
    assert not issues


def test_truncated_files_keep_the_events_before(tmp_path):
    text = document([event(name=str(i)) for i in range(50)], baseTimeNanoseconds=BASE)
    cut = text.index('"name": "40"')
    rows, trace, issues = read(tmp_path, text[:cut])
    assert [r["name"] for r in rows] == [str(i) for i in range(40)]
    assert (trace[0]["events"], trace[0]["dropped"]) == (40, 1)
    assert {i.kind for i in issues} == {"truncated", "malformed"}
    packed = gzip.compress(text.encode())
    rows, _, issues = read(tmp_path, packed[: len(packed) * 3 // 4], "a.json.gz")
    assert rows
    assert {i.kind for i in issues} >= {"truncated"}


def test_empty_and_foreign_documents(tmp_path):
    assert read(tmp_path, document([], baseTimeNanoseconds=BASE))[0] == []
    rows, trace, issues = read(tmp_path, '{"a": 1}')
    assert (rows, trace, [i.kind for i in issues]) == ([], [], ["malformed"])
    assert read(tmp_path, b"")[2][0].kind == "malformed"


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{"schemaVersion": 1, "traceEvents": [', True),
        (b'\n {\n "deviceProperties": [], ', True),
        (b'[{"ph": "X", "ts": 1, "pid": 2}]', True),
        (b'[{"a": 1}]', False),
        (b'{"train_batch_size": 4}', False),
        (b'log says "traceEvents": [', False),
        (b"", False),
    ],
)
def test_sniff(head, expected):
    assert torch_trace.sniff("any", head) is expected


def _expected(e, base):
    ts = Decimal(e["ts"])
    dur = e.get("dur")
    start = int(ts * 1000) + (0 if ts > 10**14 else base)
    return e["name"], start, None if dur is None else int(Decimal(dur) * 1000), e.get("args")


def _samples(shared):
    files = [
        *sorted(shared.glob("data/traces/**/*.json.gz")),
        *sorted(shared.glob("data/runs/z*/*.pt.trace.json.gz")),
    ]
    large = [file for file in files if file.stat().st_size > 1 << 20]
    return sorted({*files} - {*large[1::2]})  # every second large one, to keep the test short


def test_every_event_of_every_real_trace(shared: Path):
    files = _samples(shared)
    assert files
    for file in files:
        text = gzip.decompress(file.read_bytes())
        assert torch_trace.sniff(file.name, text[: 1 << 16])
        truth = json.loads(text, strict=False, parse_float=Decimal)
        base = int(truth.get("baseTimeNanoseconds", 0))
        tables, issues = tables_of(file, file.name)
        events = tables["trace_event"]
        assert len(events) + tables["trace"]["dropped"][0].as_py() == len(truth["traceEvents"]), file
        assert not issues, file
        step = max(1, len(events) // 500)  # 500 events in detail, to keep the test short
        rows = events.take(pa.array(range(0, len(events), step))).to_pylist()
        for e, row in zip(truth["traceEvents"][::step], rows, strict=True):
            args = None if row["args"] is None else json.loads(row["args"], parse_float=Decimal)
            assert (row["name"], row["ts"], row["dur"], args) == _expected(e, base), file


def test_no_other_parser_claims_a_trace(shared: Path):
    for file in sorted(shared.glob("data/runs/*_before/*rank0*.pt.trace.json.gz")):
        head = gzip.decompress(file.read_bytes())[: 1 << 16]
        claims = [
            name for name, p in parsers().items() if not getattr(p, "FALLBACK", False) and p.sniff(file.name, head)
        ]
        assert claims == ["torch_trace"]
