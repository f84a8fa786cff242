"""What is kept of a large run equals what is computed from its tables, and never outlives them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from postmortem import kept
from postmortem.ingest import ingest, lock
from postmortem.query import Session, keep, queries
from postmortem.store import Store

ROOT = Path(__file__).resolve().parent.parent
KEPT = [query.name for query in queries().values() if query.header.get("keep")]
LOG = "".join(
    f"[Rank {rank}] step={step} step_time={0.1 * (rank + 1)} loss={rank + step}\n"
    for step in (1, 2, 3)
    for rank in (0, 1)
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every run worth it."""
    monkeypatch.setattr(kept, "WORTH_ROWS", 0)


def found(store: Store) -> dict[str, Path]:
    """The file of one view, where the run keeps it in its present state."""
    return kept.files(store, kept.states(store, ["run"]), "step_times")


def rows(table: pa.Table) -> list[str]:
    """Rows in one order; the last digits of a mean depend on the order in which threads add."""
    return sorted(
        " ".join(f"{value:.12g}" if isinstance(value, float) else repr(value) for value in row.values())
        for row in table.to_pylist()
    )


def test_kept_views_equal_computed_ones(tmp_path: Path) -> None:
    runs = {name: ROOT / "sample_traces" / name / "before" for name in ("leak", "nan", "straggler")}
    ingest(runs, tmp_path, jobs=1)
    computed = {name: Session(Store(tmp_path), list(runs)).view(name) for name in KEPT}
    for run in ("leak", "nan"):  # the third is computed beside them
        keep(Store(tmp_path), run)
    assert sorted(kept.files(Store(tmp_path), kept.states(Store(tmp_path), runs), "step_times")) == ["leak", "nan"]
    session = Session(Store(tmp_path), list(runs))
    for name in KEPT:
        assert rows(session.view(name)) == rows(computed[name]), name
    assert len(computed["step_times"]) > 0
    assert len(computed["metric_steps"]) > 0


def test_other_content_is_another_state(tmp_path: Path) -> None:
    run, store = tmp_path / "run", Store(tmp_path / "store")
    run.mkdir()
    (run / "train.log").write_text(LOG)
    ingest({"run": run}, store.path, jobs=1)
    keep(store, "run")
    first = found(store)
    assert first
    ingest({"run": run}, store.path, jobs=1)
    assert found(store) == first
    (run / "train.log").write_text(LOG.replace("0.2", "0.3"))
    ingest({"run": run}, store.path, jobs=1)
    assert found(store) == {}
    keep(store, "run")
    assert len(list((store.path / "run" / "kept").iterdir())) == 1
    assert Session(store, ["run"]).view("step_times")["seconds"].to_pylist() == [0.3, 0.3, 0.3]


def test_a_part_that_comes_or_goes_is_another_state(tmp_path: Path) -> None:
    run, store = tmp_path / "run", Store(tmp_path / "store")
    run.mkdir()
    (run / "train.log").write_text(LOG)
    ingest({"run": run}, store.path, jobs=1)
    keep(store, "run")
    assert found(store)
    (part,) = (store.path / "run/metric").glob("*.parquet")
    part.with_name("0.parquet").write_bytes(part.read_bytes())  # as a killed ingest of more files leaves it
    assert found(store) == {}


def test_what_a_killed_ingest_left_goes_and_a_busy_run_is_left_alone(tmp_path: Path) -> None:
    run, store = tmp_path / "run", Store(tmp_path / "store")
    run.mkdir()
    (run / "train.log").write_text(LOG)
    ingest({"run": run}, store.path, jobs=1)
    with lock(store.path / "run"):
        keep(store, "run")
    assert not (store.path / "run/kept").exists()
    half = store.path / "run/kept" / kept.state(store, "run") / "step_times.tmp"
    half.parent.mkdir(parents=True)
    half.write_text("half")
    keep(store, "run")
    assert not half.exists()
    assert found(store)


def test_small_runs_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "WORTH_ROWS", 1_000_000)
    ingest({"nan": ROOT / "sample_traces" / "nan"}, tmp_path, jobs=1)
    keep(Store(tmp_path), "nan")
    assert not (tmp_path / "nan" / "kept").exists()
