"""Real runs with one thing changed whose effect on the truth is known: the answer changes with it, or stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postmortem.diagnosis import diagnose
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

Edit = Callable[[str], str]
_PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:8617"
_STORE = "torch.distributed.DistNetworkError: Connection was likely closed. Did the remote server shutdown or crash?"

_DIFFER = (
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
    "CollectiveFingerPrint(SequenceNumber=9, OpType=BARRIER), but Rank 1 is running collective: "
    "CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, TensorShape=[8]).Collectives differ in the following aspects: Op type"
)


def _ranks(new: dict[str, str]) -> Edit:
    """Give every rank another number, in lead-ins and in the launcher's commands."""
    return lambda text: re.sub(r"(\[[Rr]ank ?|--local_rank=)(\d)\b", lambda m: m[1] + new.get(m[2], m[2]), text)


def _without(rank: int) -> Edit:
    return lambda text: re.sub(rf"(?m)^\[rank ?{rank}\].*\n", "", text)


def _value(rank: str, step: int, name: str, value: str) -> Edit:
    """Another value of a metric, on ranks that match `rank`, from `step` on."""
    line = re.compile(rf"(?m)^(\[rank {rank}\] step (\d+): .*\b{name}=)([^,\s]+)")
    return lambda text: line.sub(lambda m: m[1] + (value if int(m[2]) >= step else m[3]), text)


def _until(step: int, lines: str) -> Edit:
    """Cut the run after `step`, and let it end with `lines`."""

    def edit(text: str) -> str:
        later = re.compile(r"\] step (\d+):|global_step=(\d+)|\] step=(\d+)|exits (successfully)")
        kept = [
            row for row in text.splitlines()
            if not (m := later.search(row)) or (not m[4] and int(m[1] or m[2] or m[3]) <= step)
        ]  # fmt: skip
        return "\n".join([*kept, lines, ""])

    return edit


def _raised(sentences: dict[int, str]) -> str:
    """Tracebacks of some ranks as torch's exception hook prints them."""
    head, frame = "Traceback (most recent call last):", '  File "train.py", line 9, in <module>'
    return "\n".join(f"[rank{r}]: {row}" for r, said in sentences.items() for row in (head, frame, said))


def _caught(text: str) -> str:
    """An import that is tried and given up in the middle of the run."""
    said = "Traceback (most recent call last):\n  File \"data.py\", line 3, in load\nModuleNotFoundError: No module named 'apex'"
    return text.replace("[rank 2] step 21:", f"{said}\n[rank 2] step 21:")


_EXIT = "\n[2026-12-02 07:46:12,770] [ERROR] [launch.py:322:sigkill_handler] ['train.py'] exits with return code = 1"

_CANCELLED = "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-12-02T07:46:12 ***\n"

VARIANTS: dict[str, tuple[str, Edit, str, list[int]]] = {
    "ranks renumbered: NaN": ("nan_before", _ranks({"0": "2", "2": "1", "1": "0"}), "nan_inf", [1]),
    "ranks renumbered: crash": ("crash_before", _ranks({"1": "3", "3": "1"}), "crash", [3]),
    "the culprit's lines are missing: NaN": ("nan_before", _without(2), "nan_inf", []),
    "the culprit's lines are missing: crash": ("crash_before", _without(1), "crash", []),
    "NaN on another rank": ("crash_after_short", _value("3", 30, "loss", "nan"), "nan_inf", [3]),
    "NaN on every rank at once": ("crash_after_short", _value(r"\d", 30, "loss", "nan"), "nan_inf", []),
    "the same log twice, the fault in the first attempt": ("nan_before", lambda text: text + text.replace("=nan", "=5.9"), "nan_inf", [2]),
    "an exception and peers": ("crash_after_short", _until(20, _raised({0: _PEER, 1: _PEER, 3: _PEER, 2: "KeyError: 'x'"}) + _EXIT), "crash", [2]),
    "peers of a store that is gone": ("crash_after_short", _until(20, _raised(dict.fromkeys((1, 2, 3), _STORE)) + _EXIT), "crash", [0]),
    "three of four raise what nobody knows": ("crash_after_short", _until(20, _raised(dict.fromkeys((0, 1, 3), "LinkError: gone")) + _EXIT), "crash", []),
    "two of four ranks log that their calls differ": ("crash_after_short", _until(20, _raised(dict.fromkeys((0, 1), _DIFFER))), "comm_hang", []),
    "a handler raises when the scheduler stops the job": ("crash_after_short", _until(20, _CANCELLED + _raised({1: "RuntimeError: SIGTERM"}) + _EXIT), "crash", []),
    "a rank raises, and the scheduler stops the others": ("crash_after_short", _until(20, _raised({1: "RuntimeError: bad"}) + "\n" + _CANCELLED), "crash", [1]),
    "an exception that was caught": ("crash_after_short", _caught, "none", []),
    "a loss scale is searched": ("crash_after_short", lambda text: _value(r"\d", 13, "grad_norm", "0.4")(_value(r"\d", 1, "grad_norm", "inf")(text)), "none", []),
    "a metric of no consequence is NaN": ("crash_after_short", _value(r"\d", 1, "rss_gb", "0.38, val_acc=nan"), "none", []),
    "evidence ends early": ("crash_after_short", lambda text: text[: len(text) // 2], "none", []),
}  # fmt: skip


@pytest.fixture(scope="module")
def store(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    home = tmp_path_factory.mktemp("variants")
    folders = {}
    for place, (run, edit, _, _) in enumerate(VARIANTS.values()):
        folder = home / f"run{place}"
        folder.mkdir()
        text = (shared / "data" / "runs" / run / "train.log").read_text()
        (folder / "train.log").write_text(edit(text))
        folders[folder.name] = folder
    ingest(folders, home / "store", jobs=1)
    return Store(home / "store")


@pytest.mark.parametrize("name", VARIANTS)
def test_variant(store: Store, name: str) -> None:
    _, _, fault, culprits = VARIANTS[name]
    found: dict[str, Any] = diagnose(Session(store, [f"run{list(VARIANTS).index(name)}"]))
    primary = found["primary"]
    assert (primary["fault"] if primary else "none") == fault, found["faults"]
    named = {rank for entry in found["faults"] if entry["severity"] == "fault" for rank in entry["culprit_ranks"]}
    assert named <= set(culprits)
    if primary:
        assert primary["culprit_ranks"] == culprits
