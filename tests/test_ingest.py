"""Ingest: bad input becomes a sentence or an issue row, memory stays bounded, and a kill at any moment does no harm."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from evidence import ROOT

from postmortem.errors import InputError, StoreError
from postmortem.ingest import ingest, lock
from postmortem.store import Store

SAMPLES = ROOT / "sample_traces"
LOG = "[2026-12-02 07:56:10,424] [INFO] [logging.py:96:log_dist] [Rank 0] step=1, skipped=0, lr=[0.001], mom=[[0.9, 0.999]]\n"


def rows(store: Path, run: str, sql: str) -> list[tuple[Any, ...]]:
    return Store(store).connect([run]).execute(sql).fetchall()


def folder(parent: Path, files: dict[str, bytes]) -> Path:
    run = parent / "run"
    for name, data in files.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(data)
    run.mkdir(exist_ok=True)
    return run


def issues(tmp_path: Path, files: dict[str, bytes]) -> dict[str, list[str]]:
    """Ingest the files beside a good log, and return file -> kinds of its issues."""
    run = folder(tmp_path, {"train.log": LOG.encode(), **files})
    ingest({"run": run}, tmp_path / "store", jobs=1)
    found: dict[str, list[str]] = {}
    for source, kind, message in rows(tmp_path / "store", "run", "SELECT source, kind, message FROM issue"):
        assert message.endswith("."), message
        found.setdefault(source, []).append(kind)
    assert rows(tmp_path / "store", "run", "SELECT count(*) FROM line WHERE source = 'train.log'") == [(1,)]
    return found


def test_an_empty_folder_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        ingest({"run": folder(tmp_path, {})}, tmp_path / "store")


def test_a_folder_without_anything_known_is_refused(tmp_path: Path) -> None:
    run = folder(tmp_path, {"photo.jpg": b"\xff\xd8\xff\xe0" + bytes(range(256)) * 40})
    with pytest.raises(InputError, match=r"Nothing in .* is known"):
        ingest({"run": run}, tmp_path / "store")


def test_unknown_and_empty_files_are_listed(tmp_path: Path) -> None:
    found = issues(tmp_path, {"photo.jpg": b"\xff\xd8\xff\xe0" + bytes(range(256)) * 40, "empty.log": b""})
    assert found == {"photo.jpg": ["unknown"], "empty.log": ["empty"]}


def test_a_binary_named_log_becomes_an_issue_or_lines_but_no_crash(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(300_000)
    assert set(issues(tmp_path, {"core.log": noise})) <= {"core.log"}


def test_a_truncated_gzip_keeps_what_comes_before_the_cut(tmp_path: Path) -> None:
    whole = "".join(LOG.replace("step=1", f"step={step}") for step in range(1, 20_001)).encode()
    packed = gzip.compress(whole)
    found = issues(tmp_path, {"old.log.gz": packed[: len(packed) // 2]})
    assert "truncated" in found["old.log.gz"]
    (kept,) = rows(tmp_path / "store", "run", "SELECT count(*) FROM line WHERE source = 'old.log.gz'")[0]
    assert 5_000 < kept < 15_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_an_issue(tmp_path: Path) -> None:
    run = folder(tmp_path, {"secret.log": LOG.encode()})
    (run / "secret.log").chmod(0)
    assert issues(tmp_path, {}) == {"secret.log": ["unreadable"]}


def test_links_out_of_the_folder_and_pipes_are_not_opened(tmp_path: Path) -> None:
    run = folder(tmp_path, {})
    (run / "passwd.log").symlink_to("/etc/passwd")
    os.mkfifo(run / "pipe.log")
    assert issues(tmp_path, {}) == {"passwd.log": ["hostile"], "pipe.log": ["hostile"]}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak memory that Linux states")
def test_a_line_of_200_MB_is_read_in_bounded_memory(tmp_path: Path) -> None:  # noqa: N802
    run = folder(tmp_path, {"train.log": LOG.encode()})
    with (run / "huge.log").open("wb") as file:
        for _ in range(200):
            file.write(b"x" * (1 << 20))
    # VmHWM and not ru_maxrss: Linux carries the peak of the process that forks (pytest) over exec into the latter.
    script = (
        "import re, sys\nfrom pathlib import Path\nfrom postmortem.ingest import ingest\n"
        "ingest({'run': Path(sys.argv[1])}, Path(sys.argv[2]), jobs=1)\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(run), str(tmp_path / "store")],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert int(done.stdout) < 500  # MB
    assert rows(tmp_path / "store", "run", "SELECT count(*) FROM issue WHERE source = 'huge.log'") != [(0,)]


def test_a_second_ingest_reads_only_what_changed(tmp_path: Path) -> None:
    run, store = folder(tmp_path, {"a.log": LOG.encode(), "b.log": LOG.encode()}), tmp_path / "store"
    ingest({"run": run}, store, jobs=1)
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*.parquet")}
    (run / "b.log").write_text(LOG * 2)
    ingest({"run": run}, store, jobs=1)
    after = {path: path.stat().st_mtime_ns for path in store.rglob("*.parquet")}
    kept = before.items() & after.items()
    assert rows(store, "run", "SELECT source, count(*) FROM line GROUP BY ALL ORDER BY ALL") == [
        ("a.log", 1),
        ("b.log", 2),
    ]
    assert len(kept) == len(before) / 2


def test_two_ingests_of_one_run_do_not_mix(tmp_path: Path) -> None:
    run = folder(tmp_path, {"a.log": LOG.encode()})
    (tmp_path / "store/run").mkdir(parents=True)
    with lock(tmp_path / "store/run"), pytest.raises(StoreError, match=f"process {os.getpid()}"):
        ingest({"run": run}, tmp_path / "store", jobs=1)


def contents(store: Path) -> dict[str, str]:
    """Path -> digest of every file that means something; the lock file holds nothing but its last owner."""
    return {
        path.relative_to(store).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_at_any_moment_and_run_again_gives_the_same_store(tmp_path: Path, jobs: int) -> None:
    command = [
        sys.executable, "-m", "postmortem", "ingest", f"run={SAMPLES / 'dataloader' / 'before'}",
        "-j", str(jobs), "--store",
    ]  # fmt: skip
    quiet: dict[str, Any] = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = time.monotonic()
    subprocess.run([*command, str(tmp_path / "clean")], check=True, timeout=120, **quiet)
    whole = time.monotonic() - started
    moments = random.Random(jobs)
    for _ in range(4):
        process = subprocess.Popen([*command, str(tmp_path / "killed")], start_new_session=True, **quiet)
        time.sleep(moments.uniform(0.2, 0.95) * whole)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        finished = [json.loads(path.read_text()) for path in (tmp_path / "killed").glob("*/manifest.json")]
        assert all(manifest["sources"] for manifest in finished)  # a manifest is whole or absent
    subprocess.run([*command, str(tmp_path / "killed")], check=True, timeout=120, **quiet)
    assert contents(tmp_path / "killed") == contents(tmp_path / "clean")


def test_what_a_killed_ingest_left_half_written_is_gone_after_the_next(tmp_path: Path) -> None:
    run = folder(tmp_path, {"train.log": LOG.encode()})
    store = tmp_path / "store"
    ingest({"run": run}, store, jobs=1)
    clean = contents(store)
    for left in (store / ".last.json.tmp", store / "run" / ".manifest.json.tmp", store / "run" / "line" / ".x.1.tmp"):
        left.write_text("{")
    ingest({"run": run}, store, jobs=1)
    assert contents(store) == clean


def test_duckdb_draws_no_bar_over_the_output(tmp_path: Path) -> None:
    """It does by default under `python -c`, where __main__ has no file."""
    code = "import sys; from pathlib import Path; from postmortem.store import Store; c = Store(Path(sys.argv[1])).connect([]); "
    ask = "print(c.execute(\"SELECT current_setting('enable_progress_bar')\").fetchall())"
    said = subprocess.run(
        [sys.executable, "-c", code + ask, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout == "[(False,)]\n"
