"""TensorBoard event files, made by hand record by record, and GPT-NeoX's."""

import struct
from collections import Counter

import pytest

from postmortem import schema
from postmortem.parsers import tensorboard
from postmortem.records import Batch, Issue, Source


def varint(value):
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def blob(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(data):
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", tensorboard._masked(head)) + data + struct.pack("<I", tensorboard._masked(data))


def scalar(tag, value, step, time=1.7e9):
    inner = blob(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    return record(b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + blob(5, blob(1, inner)))


VERSION = record(b"\x09" + struct.pack("<d", 1.7e9) + blob(3, b"brain.Event:2"))


def read(file):
    out = list(tensorboard.parse(Source("run", file.name, file, "tensorboard", file.stat().st_size, "d")))
    rows = {}
    for batch in out:
        if isinstance(batch, Batch):
            rows.setdefault(batch.table, []).extend(
                schema.tables()[batch.table].conform(batch, "run", file.name).to_pylist()
            )
    return rows, [o for o in out if isinstance(o, Issue)]


def test_crc_is_castagnolis():
    # RFC 3720, B.4: CRC-32C of 32 zero bytes and of 32 bytes of ones, then masked as TensorFlow does.
    for data, crc in ((b"\0" * 32, 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)):
        assert tensorboard._masked(data) == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_scalars(tmp_path):
    file = tmp_path / "events.out.tfevents.1741226795.node001.495049.0"
    nan = float("nan")
    file.write_bytes(
        VERSION + scalar("train/lm_loss", 0.5, 7) + scalar("Train/Samples/lr", 0.25, 64) + scalar("a/b", nan, 1)
    )
    rows, issues = read(file)
    assert not issues
    assert [(r["name"], r["step"], r["samples"], r["value"], r["time"], r["host"]) for r in rows["metric"][:2]] == [
        ("loss", 7, None, 0.5, 1_700_000_000_000_000_000, "node001"),
        ("lr", None, 64, 0.25, 1_700_000_000_000_000_000, "node001"),
    ]
    assert rows["metric"][2]["name"] == "a_b"
    assert rows["metric"][2]["value"] != rows["metric"][2]["value"]


@pytest.mark.parametrize(("change", "kind"), [(-3, "truncated"), (None, "malformed")])
def test_damage_ends_the_file_and_is_said(tmp_path, change, kind):
    data = VERSION + scalar("loss", 1, 1) + scalar("loss", 2, 2)
    data = data[:change] if change else data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
    file = tmp_path / "events.out.tfevents.1.h"
    file.write_bytes(data)
    rows, issues = read(file)
    assert [r["value"] for r in rows["metric"]] == [1]
    assert [(i.kind, i.dropped) for i in issues] == [(kind, 1)]


def test_every_byte_flipped_gives_rows_or_issues(tmp_path):
    data = bytearray(VERSION + scalar("loss", 1, 1) + scalar("loss", 2, 2))
    file = tmp_path / "events.out.tfevents.1.h"
    for place in range(len(data)):
        data[place] ^= 0x81
        file.write_bytes(data)
        rows, issues = read(file)
        assert issues
        assert len(rows.get("metric", [])) <= 1
        data[place] ^= 0x81


def test_sniff():
    assert tensorboard.sniff("x", VERSION)
    assert tensorboard.sniff("a/events.out.tfevents.1.host.1.0", b"\0" * 20)
    assert not tensorboard.sniff("a/events.log", b"brain.Event:2")


def test_gpt_neox(shared):
    files = sorted((shared / "data/logs/gpt-neox/tensorboard").iterdir())
    rows, issues = read(files[-1])
    assert not issues
    count = Counter(r["name"] for r in rows["metric"])
    assert count["loss"] == count["lr"] == 80
    assert count["step_time"] == 8
    settings = {r["key"]: r["value"] for r in rows["config"]}
    assert settings["distributed_backend"] == '"nccl"'
    assert [r["step"] for r in rows["metric"] if r["name"] == "loss"] == sorted(
        r["step"] for r in rows["metric"] if r["name"] == "loss"
    )
