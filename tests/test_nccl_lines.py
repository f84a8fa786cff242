"""NCCL's own literals of 24 releases, printed as each release prints them, are recognised as what they are."""

from __future__ import annotations

import csv
import re
from collections import defaultdict

import pytest
from evidence import MemorySession
from test_formats import tables

from postmortem.records import Batch

# What the literal says -> pattern that has to have it. Literals are those of nccl_log_formats.tsv.
WORTH = [
    (r"- Init START$", "init_start"), (r"- Init COMPLETE$", "init_complete"),
    (r"- Destroy COMPLETE$", "destroy"), (r"- Abort COMPLETE$", "abort"), (r"- Abort START$", "abort_start"),
    (r"- Revoke START$", "revoke_start"), (r"- Revoke COMPLETE", "revoke"), (r"^comm %p rank .* - %s COMPLETE$", "destroy|abort"),
    (r"nNodes %d localRanks", "topology"), (r"^Init timings", "init_timings"),
    (r"^Bootstrap timings|^timings: rank", "timings"), (r"^Channel .* via ", "channel"),
    (r"^%s: opCount %lx sendbuff", "call"), (r"^(NCCL_\w+|%s) set by environment to", "environment"),
    (r"^Using network %s|^NET/(IB|Socket) : Using%s|^(Initialized|Assigned) NET plugin|^Bootstrap ?: Using", "network"),
    (r"coll channels, |^threadThresholds", "resources"), (r"^Ring %02d|^Tree %d", "graph"),
    (r"^Connected (all|NVLS|binomial)", "connected"), (r"Bytes -> Algo", "tuning"),
    (r"^NET/IB ?: Got completion (from peer|with)", "ib_completion"), (r"async fatal event|Got async|GID table changed", "ib_async"),
    (r"^Call to ibv_modify_qp failed", "ib_qp"), (r"^Cuda failure", "cuda_failure"), (r"^Duplicate GPU", "duplicate_gpu"),
    (r"^Mismatched NCCL version detected", "version_mismatch"), (r"^Failed to bind NVLink SHARP", "multicast"),
    (r"^Error while %s shared memory segment", "shared_memory"), (r"[Mm]essage truncated", "peer_closed"),
    (r"Connection closed by (remote peer|localRank)", "peer_closed"), (r"^socketStartConnect: |: connect to %s", "connect"),
    (r"^%s:%d -> %d( \[\w+ [Tt]hread\]| \(%s\))?$", "climb"),
]  # fmt: skip
# Arguments that are no mere word or number, by what stands in front of them in the literal.
TEXTS = [
    (r"set by environment to %s", "eth0"), (r"^%s set by", "NCCL_IB_TIMEOUT"), (r"Using%s %s; OOB %s:", " [0]mlx5_0:1/RoCE"),
    (r"Using%s", " [0]eth0:10.0.0.1<0>"), (r"^%s:%d", "transport/net.cc"), (r"via SHM/%s", "direct"), (r"NET/%s", "IB"),
    (r"busId %lx - %s", "Abort"),
    (r"via P2P/%s", "CUMEM"), (r"[(]%d[)]%s|/%d%s", "/GDRDMA"), (r"shared memory", "creating"),
]  # fmt: skip
SPEC = re.compile(r"%(?:0?\d*(?:\.\d+)?)?(?:l|ll|z|h|t)?[diuxXpscf#]|%#x")


def printed(literal: str, number: int) -> str:
    """The message as printf writes it, with plausible arguments."""

    def argument(match):
        spec, before = match[0], literal[: match.end()]
        if spec.endswith("s"):
            if not before.replace("[Rank %d] ", "").removesuffix("%s") and " comm %p rank" in literal:
                return "ncclCommInitRankConfig"
            return next((text for pattern, text in TEXTS if re.search(pattern + "$", before)), "word")
        if spec.endswith("f"):
            return "0.25"
        if spec.endswith("p"):
            return "0x55d0a1b2"
        if spec.endswith(("x", "X")):
            return "9b000"
        return "12" if "status=" in before[-12:] or "error " in before[-9:] else str(number % 8)

    return SPEC.sub(argument, literal.replace("\\n", " ").replace("%%", "%")).rstrip()


def prefix(level: str, tag: tuple[int, ...], literal_file: str) -> str:
    """What the release puts in front (src/debug.cc)."""
    head = "n12:4711:4820 [2] "
    if level == "WARN":
        stamp = "[2026-01-02 03:04:05] " if tag >= (2, 26, 2) else ""
        return f"{stamp}{head}{literal_file}:77{' (work)' if tag >= (2, 30, 7) else ''} NCCL WARN "
    return head + "NCCL INFO "


def version(tag: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", tag)[:3]))


@pytest.fixture(scope="module")
def literals(shared):
    with (shared / "formats/nccl_log_formats.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if row["level"] in {"INFO", "WARN"}]


def test_every_literal_in_every_release(literals, tmp_path):
    releases = sorted({row[key] for row in literals for key in ("first_tag", "last_tag")}, key=version)
    lines, wanted = [], []
    for number, row in enumerate(literals):
        name = next((name for regex, name in WORTH if re.search(regex, row["format"])), None)
        if name in {"climb", "call"} and row["level"] == "WARN":
            name = None
        for tag in releases:
            if version(row["first_tag"]) <= version(tag) <= version(row["last_tag"]) and (
                name or tag == row["first_tag"]
            ):
                lines.append(prefix(row["level"], version(tag), row["last_file"]) + printed(row["format"], number))
                wanted.append((name, row["format"], tag))
    assert len(lines) > 3000
    found = tables(tmp_path, "\n".join(lines).encode())["line"]
    assert len(found) == len(lines)
    wrong, seen = [], defaultdict(set)
    for line, (name, literal, tag) in zip(found, wanted, strict=True):
        pattern = (line["format"] or "nothing").removeprefix("nccl.")
        if name and not re.fullmatch(name, pattern):
            wrong.append((tag, literal, name, pattern))
        if not line["format"]:
            wrong.append((tag, literal, "anything", "nothing"))
        seen[name].add(literal)
    assert not wrong, wrong[:10]
    assert {name for _, name in WORTH} <= set(seen)


def test_what_the_lines_say(tmp_path):
    text = """\
n12:10:10 [0] NCCL INFO comm 0xaa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x77 - Init START
[2026-01-02 03:04:05] n12:10:12 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=5 opcode=0 len=0 vendor err 249 (Recv)
[1,3]<stdout>:n13:11:11 [1] NCCL INFO AllReduce: opCount a sendbuff 0x1 recvbuff 0x1 count 8 datatype 7 op 0 root 0 comm 0xbb [nranks=2] stream 0x5
[default1]:n13:11:11 [1] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0:1,mlx5_1:1
n14:12:12 [1] 1558545003174220 NCCL INFO comm 0xcc rank 1 nranks 2 cudaDev 1 busId 1b000 - Destroy COMPLETE
"""
    found = tables(tmp_path, text.encode())
    start, destroy = found["nccl_comm"]
    assert (start["statement"], start["comm_id"], start["comm_rank"], start["host"]) == ("init_start", "0x77", 0, "n12")
    assert (destroy["statement"], destroy["host"], destroy["pid"], destroy["device"]) == ("destroy", "n14", 12, "1b000")
    (call,) = found["nccl_call"]
    assert (call["function"], call["op_count"], call["count"], call["nranks"]) == ("AllReduce", "a", 8, 2)
    (warn,) = found["event"]
    assert (warn["kind"], warn["name"], warn["code"], warn["role"]) == ("nccl_transport", "ib_flush", 5, "cascade")
    assert warn["clock"] == "local"
    (setting,) = found["config"]
    assert (setting["key"], setting["value"], setting["host"]) == ("NCCL_IB_HCA", '"mlx5_0:1,mlx5_1:1"', "n13")


def test_records_glued_to_others_are_split_and_make_no_hosts_up(tmp_path):
    text = """\
n12:10:10 [0] NCCL INFO Using network IBn13:11:11 [1] NCCL INFO comm 0xbb rank 1 nranks 2 cudaDev 1 busId 1b000 - Init COMPLETE
n12:10:10 [0] NCCL INFO comm 0xaa rank 0 nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE
loss is 2.5 n13:11:11 [1] NCCL INFO comm 0xbb rank 1 nranks 2 cudaDev 1 busId 1b000 - Init COMPLETE
n12:10:10 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC n13:11:11 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via P2P/IPC
n13:11:11 [1] NCCL INFO comm 0xcc rank 1 nranks 2 cudaDev 1 busId 1b000 - Init COMPLETE
"""
    found = tables(tmp_path, text.encode())
    assert len(found["line"]) == 8
    assert "".join(r["prefix"] + r["text"] for r in found["line"]).replace("\n", "") == text.replace("\n", "")
    session = MemorySession(
        ("log", Batch(table, {k: [r[k] for r in rows] for k in rows[0] if k not in {"run_id", "source"}}))
        for table, rows in found.items()
    )
    believed = {(r["host"], r["pid"]): r["believed"] for r in session.rows_of_view("nccl_process")}
    assert {key for key, yes in believed.items() if yes} == {("n12", 10), ("n13", 11)}
    assert {key for key, yes in believed.items() if not yes} == {("IBn13", 11)}
