"""What hosts state of their software and devices: runs made by hand, each with the differences that an expert sees."""

from __future__ import annotations

import pytest
from evidence import stored

from postmortem.query import Session

SMI = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI {0}             Driver Version: {0}   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:1B:00.0 Off |                    0 |
"""
COLLECTED = """\
Collecting environment information...
PyTorch version: {torch}
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A
OS: Ubuntu 22.04.4 LTS (x86_64)
Python version: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-{kernel}-x86_64-with-glibc2.35
GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: {driver}
cuDNN version: Could not collect
[pip3] torch==2.4.0
"""
REPORT = """\
torch install path ............... ['{path}/torch']
torch version .................... 2.4.0+cu124
deepspeed info ................... {deepspeed}, unknown, unknown
torch cuda version ............... 12.4
torch hip version ................ None
shared memory (/dev/shm) size .... {shm} GB
"""
ADAPTER = "CA 'mlx5_0'\n\tCA type: MT4123\n\tFirmware version: {}\n\tHardware version: 0\n"
KERNEL = "[    0.000000] Linux version {} (buildd@lcy02) (gcc (Ubuntu 11.4.0)) #115-Ubuntu SMP\n"
COMMON = {"torch": "2.4.0+cu124", "kernel": "5.15.0-105-generic", "driver": "535.104.05"}


def nccl(host: str, number: int, *said: str) -> str:
    """What one process prints when NCCL starts: addresses differ on every host."""
    own = (
        f"Bootstrap : Using eth0:10.0.0.{number}<0>",
        f"NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.{number}<0>",
    )
    return "".join(f"{host}:4711:4711 [0] NCCL INFO {line}\n" for line in (*own, *said))


# name: (files, names of what differs, places where the first of them was found)
RUNS = {
    "two drivers, as the table of nvidia-smi": (
        {"node1/smi.txt": SMI.format("535.104.05"), "node2/smi.txt": SMI.format("525.60.13")},
        ["driver"], ["node2", "node1"],
    ),
    "one driver in three wordings": (
        {"node1/smi.txt": SMI.format("535.104.05"), "node2/env.txt": COLLECTED.format(**COMMON),
         "node3/dmesg.txt": "[   12.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05  Tue Mar  5\n"},
        [], [],
    ),
    "kernel and torch": (
        {"node1/env.txt": COLLECTED.format(**COMMON), "node2/dmesg.txt": KERNEL.format("5.4.0-150-generic"),
         "node3/env.txt": COLLECTED.format(**{**COMMON, "torch": "2.3.1+cu121"})},
        ["kernel", "torch"], ["node1, node3", "node2"],
    ),
    "paths and sizes are no versions": (
        {"node1/a.txt": REPORT.format(path="/opt", deepspeed="0.16.2", shm="503.77"),
         "node2/a.txt": REPORT.format(path="/home/u", deepspeed="0.16.2", shm="503.78"),
         "node3/a.txt": "[2026-03-28 10:00:00,000] [INFO] [logging.py:107:log_dist] [Rank 0] DeepSpeed info: version=0.16.2, git-hash=unknown, git-branch=unknown\n"},
        [], [],
    ),
    "two versions of DeepSpeed": (
        {"node1/a.txt": REPORT.format(path="/opt", deepspeed="0.16.2", shm="503.77"),
         "node2/a.txt": REPORT.format(path="/opt", deepspeed="0.15.4", shm="503.77")},
        ["deepspeed"], ["node2", "node1"],
    ),
    "firmware of an adapter": (
        {"node1/ibstat.txt": ADAPTER.format("20.35.1012"), "node2/ibstat.txt": ADAPTER.format("20.31.1014")},
        ["nic_firmware"], ["node2", "node1"],
    ),
    "addresses differ by design, a host that states nothing is unknown": (
        {"train.log": nccl("node1", 1, "NCCL version 2.20.5+cuda12.4") + nccl("node2", 2)}, [], [],
    ),
    "two libraries": (
        {"train.log": nccl("n1", 1, "NCCL version 2.20.5+cuda12.4") + nccl("n2", 2, "NCCL version 2.18.3+cuda12.1")},
        ["nccl"], ["n2", "n1"],
    ),
    "a variable; the name of an interface is its host's own": (
        {"train.log": nccl("n1", 1, "NCCL_IB_DISABLE set by environment to 1.", "NCCL_SOCKET_IFNAME set by environment to eth0")
         + nccl("n2", 2, "NCCL_IB_DISABLE set by environment to 0.", "NCCL_SOCKET_IFNAME set by environment to ens3")},
        ["NCCL_IB_DISABLE"], ["n2", "n1"],
    ),
    "lines of the library beside those of pdsh": (
        {"train.log": "n1: [2026-03-28 10:00:00,000] [INFO] [launch.py:152:main] nnodes=2, num_local_procs=1, node_rank=0\n"
         "n2: [2026-03-28 10:00:00,000] [INFO] [launch.py:152:main] nnodes=2, num_local_procs=1, node_rank=1\n"
         + nccl("n1", 1, "Using network IB") + nccl("n2", 2, "Using network Socket")},
        ["nccl_network"], ["n1", "n2"],
    ),
    "folders named like the hosts of the launcher": (
        {"train.log": "[2026-03-28 10:00:00,000] [INFO] [launch.py:163:main] global_rank_mapping="
         "defaultdict(<class 'list'>, {'gpu-a17': [0], 'gpu-a18': [1]})\n",
         "gpu-a17/env.txt": COLLECTED.format(**COMMON), "gpu-a18/env.txt": COLLECTED.format(**{**COMMON, "driver": "525.60.13"})},
        ["driver"], ["gpu-a18", "gpu-a17"],
    ),
    "ranks that print a version each": (
        {f"rank_{rank}.log": f"torch version: {'2.3.1' if rank == 3 else '2.4.0'}\n" for rank in range(4)},
        ["torch"], ["rank 3", "rank 0, rank 1, rank 2"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("environment"), [files for files, *_ in RUNS.values()])


@pytest.mark.parametrize("name", RUNS)
def test_differences_of_hosts(store, name):
    _, differing, places = RUNS[name]
    session = Session(store, [f"run{list(RUNS).index(name)}"])
    rows = session.rows("environment_differences")
    assert [row["name"] for row in rows] == differing
    assert places == (rows[0]["where_found"] if rows else [])
    versions = [name for name in differing if not name.isupper()]
    assert [row["name"] for row in session.rows("environment_difference")] == versions
