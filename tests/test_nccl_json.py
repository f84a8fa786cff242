"""NCCL RAS answers and Inspector records, written after NVIDIA/nccl's own field names."""

from __future__ import annotations

import json
import random

import pytest

from postmortem import schema
from postmortem.parsers import nccl_inspector, nccl_ras
from postmortem.records import Batch, Issue, Source


def read(parser, file):
    tables, issues = {}, []
    for item in parser.parse(Source("run", file.name, file, parser.FORMAT, file.stat().st_size, "0")):
        if isinstance(item, Issue):
            issues.append(item)
        else:
            assert isinstance(item, Batch)
            tables.setdefault(item.table, []).extend(
                schema.tables()[item.table].conform(item, "run", file.name).to_pylist()
            )
    return tables, issues


def rank(number, count):
    return {
        "rank": number, "host": "n1", "pid": 100 + number, "cuda_dev": number, "nvml_dev": number,
        "status": {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False},
        "collective_counts": {"Broadcast": 1, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": count},
    }  # fmt: skip


ANSWER = {
    "nccl_version": "2.28.7", "cuda_runtime_version": 12090, "cuda_driver_version": 13000, "timestamp": 1796194199,
    "communicators_count": 1,
    "communicators": [{
        "hash": "0x27a079b828ff1a75", "secondary_hash": "0x1", "size": 4, "ranks_count": 3, "missing_ranks_count": 1,
        "ranks": [rank(0, 6650), rank(1, 6650), rank(3, 6649)],
        "missing_ranks": [{"rank": 2, "host": "n2", "pid": 7, "cuda_dev": 0, "nvml_dev": 0,
                           "status": {"unresponsive": True, "considered_dead": True}}],
    }],
    "ras": {"collection_time_sec": 0.1, "timeouts_count": 0},
}  # fmt: skip


@pytest.mark.parametrize("text", [json.dumps(ANSWER, indent=1), json.dumps(ANSWER) + "\n" + json.dumps(ANSWER)])
def test_ras(tmp_path, text):
    file = tmp_path / "ras.json"
    file.write_text(text)
    assert nccl_ras.sniff("ras.json", text.encode())
    tables, issues = read(nccl_ras, file)
    reduced = {(r["group_rank"], r["seq"]) for r in tables["collective_evidence"] if r["operation"] == "AllReduce"}
    assert reduced == {(0, 6650), (1, 6650), (3, 6649)}
    assert {r["group_name"] for r in tables["collective_evidence"]} == {"0x27a079b828ff1a75"}
    assert [r["record"] for r in tables["collective_evidence"]] == list(range(len(tables["collective_evidence"])))
    assert {(e["name"], e["host"], e["pid"]) for e in tables["event"]} == {("dead", "n2", 7)}
    listed = {(r["comm_id"], r["comm_rank"], r["nranks"], r["host"], r["pid"]) for r in tables["nccl_comm"]}
    assert listed == {("0x27a079b828ff1a75", n, 4, "n1", 100 + n) for n in (0, 1, 3)}
    assert not issues


RECORD = {
    "header": {"id": "0x7f2a", "rank": 3, "n_ranks": 8, "nnodes": 1},
    "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "nccl_profiler_interface",
                 "dump_timestamp_us": 1748030377748202, "hostname": "n1", "pid": 1639453},
    "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
                  "coll_exec_time_us": 61974, "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1},
}  # fmt: skip


def test_inspector(tmp_path):
    transfer = {k: RECORD[k] for k in ("header", "metadata")} | {
        "p2p_perf": {"p2p": "Send", "p2p_sn": 4, "p2p_peer": 5}
    }
    text = "\n".join(map(json.dumps, (RECORD, transfer))) + '\n{"header": {\n'
    file = tmp_path / "n1-pid1639453.log"
    file.write_text(text)
    assert nccl_inspector.sniff(file.name, text.encode())
    tables, (issue,) = read(nccl_inspector, file)
    one, two = tables["collective_evidence"]
    assert (one["operation"], one["seq"], one["bytes"], one["duration"]) == ("AllReduce", 1407, 17179869184, 61974000)
    assert (one["group_rank"], one["pid"], one["time"]) == (3, 1639453, 1748030377748202000)
    assert (two["operation"], two["peer"], two["seq"]) == ("Send", 5, 4)
    assert issue.dropped == 1
    (listed,) = tables["nccl_comm"]
    assert (listed["comm_id"], listed["comm_rank"], listed["nranks"]) == ("0x7f2a", 3, 8)


@pytest.mark.parametrize(("parser", "value"), [(nccl_ras, ANSWER), (nccl_inspector, RECORD)])
def test_damage_never_crashes(tmp_path, parser, value):
    rng = random.Random(2)
    data = json.dumps(value).encode()
    file = tmp_path / "x"
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 2, 9))):
            changed[rng.randrange(len(changed))] = rng.choice(b'\x00{}[]",:9-etn')
        file.write_bytes(bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.2 else changed))
        read(parser, file)
