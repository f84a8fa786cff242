"""Damaged traces: what can be read is kept, what cannot is counted."""

import gzip
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_torch_trace import BASE, document, event, read

from postmortem.parsers import _trace_events, _trace_mend


def damaged(defect, place=3, count=7):
    """A trace in which the text DEFECT of one event's args is replaced."""
    events = [event(name=f"e{i}", ts=10.0 + i, args={"x": "DEFECT" if i == place else i}) for i in range(count)]
    return document(events, baseTimeNanoseconds=BASE).replace('"DEFECT"', defect)


@pytest.mark.parametrize(
    ("defect", "value"),
    [
        pytest.param('"a "quoted" word"', 'a "quoted" word', id="unescaped quotes"),
        pytest.param('"f("a", "b")"', 'f("a", "b")', id="quotes and commas"),
        pytest.param('"C:\\dir\\x.py"', "C:\\dir\\x.py", id="backslash"),
        pytest.param('"C:\\dir\\"', "C:\\dir\\", id="backslash at the end"),
        pytest.param('"a\x01b\nc"', "a b c", id="control characters"),
        pytest.param('"a\\ud800b"', "a\ufffdb", id="half a surrogate pair"),
        pytest.param("N/A", "N/A", id="bare N/A"),
        pytest.param("NaN", "NaN", id="NaN"),
        pytest.param("-inf", "-inf", id="inf"),
        pytest.param("", None, id="empty value"),
        pytest.param("[1, 2,]", [1, 2], id="trailing comma in a list"),
        pytest.param('1, }, "z": {"y": 2,', 1, id="trailing comma in an object"),
    ],
)
def test_each_known_defect_is_mended(tmp_path, defect, value):
    rows, trace, issues = read(tmp_path, damaged(defect))
    assert [r["name"] for r in rows] == [f"e{i}" for i in range(7)]
    assert json.loads(rows[3]["args"])["x"] == value
    assert trace[0]["dropped"] == 0
    assert [(i.kind, i.dropped) for i in issues] == [("malformed", 0)]
    assert json.loads(trace[0]["metadata"])["traceName"] == "t.json"


@pytest.mark.parametrize("odd", ["garbage", '5, null, "x"', "[1, 2]", '"ph"', "}"])
@pytest.mark.parametrize("root", ["object", "list"])
def test_what_stands_between_events_and_is_none_takes_no_event_with_it(tmp_path, odd, root):
    events = [json.dumps(event(name=f"e{i}", ts=10.0 + i)) for i in range(5)]
    text = "[" + ", ".join([*events[:2], odd, *events[2:]]) + "]"
    if root == "object":
        text = f'{{"baseTimeNanoseconds": {BASE}, "traceEvents": {text}, "traceName": "t"}}'
    rows, trace, issues = read(tmp_path, text)
    assert [r["name"] for r in rows] == [f"e{i}" for i in range(5)]
    assert trace[0]["dropped"] == 1
    assert sum(i.dropped for i in issues) == 1
    assert [i.kind for i in issues] == ["malformed"] + (["value"] if root == "list" else [])


def test_values_nested_without_end(tmp_path):
    rows, trace, _ = read(tmp_path, damaged("[" * 100_000 + "]" * 100_000))
    assert [r["name"] for r in rows] == ["e0", "e1", "e2", "e4", "e5", "e6"]
    assert trace[0]["dropped"] == 1
    deep = "[" * 100_000 + "]" * 100_000
    rows, trace, _ = read(tmp_path, document([event()], x="DEEP", baseTimeNanoseconds=BASE).replace('"DEEP"', deep))
    assert (len(rows), trace[0]["base_time"]) == (1, BASE)


def test_bad_utf8(tmp_path):
    rows, _, issues = read(tmp_path, damaged('"\u00e9"').encode("latin-1"))
    assert json.loads(rows[3]["args"])["x"] == "\ufffd"
    assert len(rows) == 7
    assert len(issues) == 1


@pytest.mark.parametrize("defect", ['{"a": [', '"open', "}}}}", "@@@ @@", '{"a": {"b": '])
def test_what_cannot_be_mended_is_counted(tmp_path, defect):
    rows, trace, issues = read(tmp_path, damaged(defect))
    assert [r["name"] for r in rows if r["name"] != "e3"] == ["e0", "e1", "e2", "e4", "e5", "e6"]
    assert len(rows) + trace[0]["dropped"] == 7
    assert sum(i.dropped for i in issues) == trace[0]["dropped"]
    assert all(r["ts"] >= BASE for r in rows)


def test_an_event_cut_short_does_not_take_the_next_one_with_it(tmp_path):
    text = document([event(name=f"e{i}") for i in range(5)], baseTimeNanoseconds=BASE)
    start = text.index('"e2"')
    end = text.index("{", start)
    rows, _, _ = read(tmp_path, text[: start + 3] + text[end:])
    assert [r["name"] for r in rows] == ["e0", "e1", "e3", "e4"]


def test_a_defect_in_the_last_event_does_not_hide_the_end(tmp_path):
    rows, trace, _ = read(tmp_path, damaged('"a "b"', place=6))
    assert len(rows) == 7
    assert json.loads(trace[0]["metadata"])["baseTimeNanoseconds"] == BASE
    rows, trace, issues = read(tmp_path, damaged('{"a": [', place=6))
    assert len(rows) == 6
    assert [i.kind for i in issues] == ["malformed"]


def test_defects_in_every_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(_trace_events, "PIECE", 700)
    monkeypatch.setattr("postmortem.parsers._trace_stream.BLOCK", 300)
    text = document([event(name=f"e{i}", args={"x": "DEFECT"}) for i in range(60)], baseTimeNanoseconds=BASE)
    rows, _, _ = read(tmp_path, text.replace('"DEFECT"', '"a "quoted" word"'))
    assert [r["name"] for r in rows] == [f"e{i}" for i in range(60)]


def test_truncation_at_any_byte(tmp_path):
    text = document([event(name=f"e{i}") for i in range(4)], baseTimeNanoseconds=BASE)
    begin = text.index("[") + 1
    for cut in range(len(text)):
        rows, _, issues = read(tmp_path, text[:cut])
        whole = text[begin:cut].count("}")
        assert len(rows) == min(whole, 4)
        assert issues or cut > text.rindex("]")


def test_gzip_truncated_or_flipped_anywhere(tmp_path):
    packed = gzip.compress(document([event(name=f"e{i}") for i in range(400)], baseTimeNanoseconds=BASE).encode())
    chance = random.Random(1)
    for _ in range(60):
        cut = chance.randrange(1, len(packed))
        flipped = bytearray(packed)
        flipped[cut] ^= 1 << chance.randrange(8)
        for data in (packed[:cut], bytes(flipped)):
            rows, _, issues = read(tmp_path, data, "a.json.gz")
            assert len(rows) == 400 or issues


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.sampled_from(["set", "cut", "insert"]), st.binary(max_size=4)),
        min_size=1,
        max_size=8,
    )
)
def test_any_bytes_give_rows_or_issues(tmp_path, changes):
    text = bytearray(document([event(name=f"e{i}", args={"a": [i]}) for i in range(12)]).encode())
    for place, how, data in changes:
        at = place % len(text)
        if how == "cut":
            del text[at : at + 1 + len(data) * 9]
        else:
            text[at : at + (len(data) if how == "set" else 0)] = data
    rows, trace, issues = read(tmp_path, bytes(text))
    assert issues or len(rows) <= 12
    assert not trace or trace[0]["events"] == len(rows)


@given(st.text(max_size=30), st.text(max_size=30))
def test_mending_leaves_sound_json_alone(key, value):
    text = json.dumps({"ph": "X", key: {"a": [value, 1, None]}, "b": value}).encode()
    assert json.loads(_trace_mend.quoted(text)) == json.loads(text)


@pytest.mark.parametrize("odd", ['[{"ph": "X"}]', '[{"ph": "X"}, {"ph": "X"}]'])
def test_the_end_of_a_stray_list_is_not_the_end_of_the_events(tmp_path, odd):
    events = [json.dumps(event(name=f"e{i}", ts=10.0 + i)) for i in range(5)]
    text = ", ".join([*events[:2], odd, *events[2:]])
    rows, trace, _ = read(tmp_path, f'{{"baseTimeNanoseconds": {BASE}, "traceEvents": [{text}], "traceName": "t"}}')
    assert [r["name"] for r in rows if r["name"]] == [f"e{i}" for i in range(5)]
    assert trace[0]["dropped"] >= 1
