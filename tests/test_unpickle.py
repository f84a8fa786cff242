"""The inert unpickler: equal to pickle on plain data, deaf to everything else."""

import collections
import os
import pickle
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.parsers._unpickle import Global, Inert, Refused, load

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(-(2**60), 2**60), inner)
    ),
)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.integers(0, 5))
def test_plain_data_comes_back_as_pickle_gives_it(value, protocol):
    data = pickle.dumps(value, protocol)
    assert load(data + b"tail", classes="inert") == (pickle.loads(data), len(data))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 60))
def test_any_bytes_are_read_or_refused(noise, cut):
    data = pickle.dumps({"a": [1, 2.5, ("x", b"y")], "b": {1, 2}}, 4)
    for bad in (noise, data[:cut] + noise + data[cut:]):
        try:
            load(bad, classes="inert", persistent=lambda key: key)
        except Refused as refused:
            kind = refused.kind
        else:
            kind = "malformed"
        assert kind in {"hostile", "limit", "malformed", "truncated"}


def test_classes_stay_names():
    value = collections.OrderedDict(path=os.PathLike, error=ValueError("no"))
    with pytest.raises(Refused, match=r"reach os\.PathLike"):
        load(pickle.dumps(value), classes="inert")
    data = b"\x80\x02cmy.module\nThing\n)\x81}X\x01\x00\x00\x00aK\x07sb."
    made, _ = load(data, classes="inert")
    assert (made.name, made.attributes()) == ("my.module.Thing", {"a": 7})
    assert load(b"cmy\nName\n.", classes="inert")[0] == Global("my.Name")
    with pytest.raises(Refused, match="no class"):
        load(data)


def test_constructors_of_plain_containers_are_known():
    value = {"o": collections.OrderedDict(a=1), "d": collections.defaultdict(list, b=[2]), "s": {3}}
    for protocol in range(6):
        assert load(pickle.dumps(value, protocol), classes="inert")[0] == {
            "o": {"a": 1},
            "d": {"b": [2]},
            "s": [3],
        }
    made, _ = load(pickle.dumps(complex(1, 2), 2), classes="inert")
    assert isinstance(made, Inert)


HOSTILE = {
    "system": (b"cos\nsystem\n(S'id'\ntR.", "hostile"),
    "posix": (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.", "hostile"),
    "eval": (b"c__builtin__\neval\n(S'1'\ntR.", "hostile"),
    "getattr": (b"cbuiltins\ngetattr\n.", "hostile"),
    "dotted name": (b"\x80\x04\x8c\x05torch\x8c\x0bos.system.x\x93.", "hostile"),
    "inst": (b"(S'id'\nios\nsystem\n.", "hostile"),
    "memo index": (b"\x80\x02Nr\xff\xff\xff\xff" + b"N" * 2_000_000 + b".", "limit"),
    "long list": (b"\x80\x02](" + b"N" * 2_000_000 + b"e.", "limit"),
    "declared size": (b"\x80\x02\x8e" + struct.pack("<Q", 1 << 40) + b".", "limit"),
    "empty containers": (b"\x80\x02(" + b"]" * 1_400_000 + b"t.", "limit"),
    "instances": (b"\x80\x02(ca\nb\nq\x00" + b"h\x00)R" * 450_000 + b"t.", "limit"),
    "nested lists": (b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "hostile"),
    "nested key": (b"\x80\x02}K\x01" + b"\x85" * 100_000 + b"Ns.", "hostile"),
    "shared tuples": (b"\x80\x02K\x01" + b"2\x86" * 100_000 + b".", "hostile"),
    "list in itself": (b"\x80\x02]" + b"2a" * 100_000 + b".", "hostile"),
    "huge integer": (b"\x80\x02\x8b" + struct.pack("<i", 100_000) + b"\x01" * 100_000 + b".", "hostile"),
    "colliding keys": (b"\x80\x02}\x8a\x09" + (2**61 - 1 << 9).to_bytes(9, "little") + b"Ns.", "hostile"),
    "external": (b"\x80\x02X\x01\x00\x00\x00aQ.", "malformed"),
    "extension": (b"\x80\x02\x82\x01.", "malformed"),
    "cut": (b"\x80\x02](K\x01", "truncated"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused_quickly(name):
    data, kind = HOSTILE[name]
    start = time.process_time()
    with pytest.raises(Refused) as refused:
        load(data, classes="inert")
    assert refused.value.kind == kind
    assert time.process_time() - start < 5  # a guard; benchmarks/bench_hostile.py measures


def test_memory_of_refused_pickles_is_bounded():
    code = """
import re, sys
from test_unpickle import HOSTILE, Refused, load
for data, _ in HOSTILE.values():
    try:
        load(data, classes="inert")
    except Refused:
        pass
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""
    here = Path(__file__).parent
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=here,
        env={**os.environ, "PYTHONPATH": f"{here.parent}:{here}"},
    ).stdout  # fmt: skip
    assert int(out) < 200 << 10  # KiB


def test_limit_of_bytes():
    with pytest.raises(Refused, match="larger than 100 bytes"):
        load(pickle.dumps(b"x" * 500), max_bytes=100)
