"""Crashes and refused memory from the folder to the diagnosis: who began it, at which step, and the likeliest cause."""

import pytest
from evidence import stored

from postmortem.diagnosis import diagnose
from postmortem.query import Session

HOSTS = ("node1", "node2")
RANKS = 2  # per host
CLOSED = (
    "NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2006, remote process exited or there was a "
    "network error, NCCL version 2.21.5"
)


def stamped(second, text):
    return f"[2026-03-28 10:00:{second:02d},000] [INFO] {text}"


def launched():
    """What DeepSpeed's launchers print under pdsh (deepspeed/launcher/launch.py)."""
    mapping = {host: [i * RANKS + n for n in range(RANKS)] for i, host in enumerate(HOSTS)}
    for i, host in enumerate(HOSTS):
        lines = [f"global_rank_mapping=defaultdict(<class 'list'>, {mapping})", f"dist_world_size={len(HOSTS) * RANKS}"]
        lines += [
            f"process {pid(i * RANKS + n)} spawned with command: ['python', '--local_rank={n}']" for n in range(RANKS)
        ]
        yield from (f"{host}: {stamped(0, f'[launch.py:163:main] {line}')}" for line in lines)


def pid(rank):
    return 4000 + rank


def steps(ranks, last=20):
    for step in range(1, last + 1):
        yield from (f"node1: {stamped(step, f'[train.py:80:main] [Rank {r}] step {step}: loss=2.5')}" for r in ranks)


def raised(rank, said, frame="in main\n    engine(batch)"):
    host = HOSTS[rank // RANKS]
    text = f'Traceback (most recent call last):\n  File "train.py", line 9, {frame}\n{said}'
    return [f"{host}: [rank{rank}]: {line}" for line in text.split("\n")]


def ended(host, code):
    what = f"['python', '--local_rank={RANKS - 1}'] exits with return code = {code}"
    return [f"{host}: [2026-03-28 10:00:25,000] [ERROR] [launch.py:325:sigkill_handler] {what}"]


def kernel(time, process, host="node2"):
    said = f"Out of memory: Killed process {process} (python3) total-vm:317635320kB, anon-rss:139280440kB"
    return {f"dmesg_{host}.txt": [f"[Sat Mar 28 {time} 2026] {said}"]}


STARTED, TRAINED = list(launched()), [*launched(), *steps([0])]
LOADER = "RuntimeError: DataLoader worker (pid 4242) is killed by signal: "
WAITED = "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/4 clients joined."
EACH = {f"node{1 + r // RANKS}/rank_{r}.log": [line.removeprefix("node1: ") for line in steps([r])] for r in range(4)}
PEERS = {name: [*lines, *raised(0, f"DistBackendError: {CLOSED}")] for name, lines in list(EACH.items())[:RANKS]}
CASES = {
    "a worker of a loader is killed": (
        {"train.log": [*TRAINED, *raised(1, LOADER + "Killed. "), *ended("node1", 1)]},
        ("crash", [1], 21, "killed"),
    ),
    "a worker of a loader finds shared memory full": (
        {
            "train.log": [
                *TRAINED,
                *raised(1, LOADER + "Bus error. It is possible that dataloader's workers are out of"),
            ]
        },
        ("oom", [1], 21, "shared_memory"),
    ),
    "SIGBUS, and nothing else": (
        {"train.log": [*TRAINED, *ended("node2", -7)]},
        ("crash", [], 21, "shared_memory"),
    ),
    "pinned memory": (
        {
            "train.log": [
                *TRAINED,
                *raised(2, "RuntimeError: CUDA error: out of memory", "in f\n    x = x.pin_memory()"),
            ]
        },
        ("oom", [2], 21, "pinned_memory"),
    ),
    "the kernel killed a rank that prints no steps": (
        {"train.log": [*TRAINED, *ended("node2", -9)], **kernel("10:00:21", pid(3))},
        ("oom", [3], 21, "host_memory"),
    ),
    "the kernel killed another job's process hours before": (
        {"train.log": [*TRAINED, *raised(3, "ValueError: bad token"), *ended("node2", 1)], **kernel("07:00:00", 99)},
        ("crash", [3], 21, "exception"),
    ),
    "the kernel of another host killed another process": (
        {"train.log": [*TRAINED, *ended("node2", -9)], **kernel("10:00:19", 99, "node1")},
        ("crash", [], 21, "killed"),
    ),
    "a host falls silent": (
        EACH | PEERS | {"launcher.log": [*STARTED, *ended("node1", 1)]},
        ("crash", [], 21, "node_loss"),
    ),
    "processes that did not come": (
        {"train.log": [*STARTED, *raised(0, WAITED), *ended("node1", 1)]},
        ("crash", [], None, "setup"),
    ),
    "a full disk": (
        {
            "train.log": [
                *TRAINED,
                *raised(0, "OSError: [Errno 28] No space left on device: 'x.pt'"),
                *ended("node1", 1),
            ]
        },
        ("crash", [0], 21, "storage"),
    ),
}

IMPORTED = raised(0, "ModuleNotFoundError: No module named 'apex'")
CHAIN = "The above exception was the direct cause of the following exception:"
AFTER_PEER = [*raised(3, f"torch.distributed.DistBackendError: {CLOSED}"), "", f"node2: [rank3]: {CHAIN}", ""]
IGNORED = "node1: [rank0]: Exception ignored in: <function Run.__del__ at 0x7f>"
# What ended no process, or came after the end of another one: (lines, what is the fault, ended how).
HARMLESS = {
    "an import that was tried before the first step": ([*STARTED, *IMPORTED, *steps([0])], None, "unknown"),
    "a destructor at exit": ([*TRAINED, IGNORED, *raised(0, "AttributeError: no attribute 'close'")], None, "unknown"),
    "a record that could not be written": (
        [*TRAINED, "node1: [rank0]: --- Logging error ---", *raised(0, "TypeError: not all arguments converted")],
        None,
        "unknown",
    ),
    "an exception of a trainer about a lost peer": (
        [*TRAINED, *AFTER_PEER, *raised(3, "TrainingError: the step failed"), *ended("node2", 1)],
        "crash",
        "failed",
    ),
}


@pytest.mark.parametrize("name", list(HARMLESS))
def test_an_exception_that_began_nothing_accuses_nobody(tmp_path, name):
    lines, fault, end = HARMLESS[name]
    found = diagnose(Session(stored(tmp_path, [{"train.log": "\n".join(lines) + "\n"}]), ["run0"]))
    first = found["primary"]
    assert (first and first["fault"], found["run"]["end"]) == (fault, end)
    assert not first or first["culprit_ranks"] == []


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return stored(
        tmp_path_factory.mktemp("crashes"),
        [{name: "\n".join(lines) + "\n" for name, lines in files.items()} for files, _ in CASES.values()],
    )


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_who_when_and_why(store, number):
    found = diagnose(Session(store, [f"run{number}"]))
    first, cause = found["primary"], found["faults"][0]["causes"][0]
    assert (first["fault"], first["culprit_ranks"], first["onset_step"], cause["id"]) == list(CASES.values())[number][1]
    assert cause["for"]
