"""A second opinion on traces: torch-tb-profiler's own parser beside our tables, value by value.

The package is deprecated (pytorch/kineto#1248) but installs; it comes with the extra `[tensorboard]`. Where the two
differ for a known reason, the row says which (what was found about it stands in docs/traces.md).
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from postmortem.errors import PostmortemError
from postmortem.query import Session

CLOSE = 0.005
"""Relative difference up to which two values agree; the other parser keeps microseconds in places."""

_SHADOWS = "it also takes the step's shadow on the GPU for a step"
_STEP = "its step ends with the last kernel launched within"
_COMMUNICATION = "it takes NCCL kernels whose External id is not their operator's for computation"
_DEVICE = "it knows CPU (0) and CUDA (1) only"


class Row(NamedTuple):
    """One value in both opinions; `why` is a known reason for a difference, or empty."""

    source: str
    value: str
    step: int | None
    ours: float | None
    theirs: float | None
    agrees: bool
    why: str


def crosscheck(session: Session) -> list[Row]:
    """Compare every trace of the one run of `session`; the files are read again where they lay at ingest.

    Raises:
        PostmortemError: torch-tb-profiler is not installed, the run has no traces, or its folder is gone.

    """
    parse = _parser()
    run = session.runs[0]
    rows = session.sql('SELECT source FROM trace WHERE "start" IS NOT NULL ORDER BY rank, source').to_pylist()
    if not rows:
        raise PostmortemError(f"The run {run} has no profiler traces.", "Record some with torch.profiler.")
    folder = session.store.folder(run)
    if folder is None or not folder.is_dir():
        raise PostmortemError(
            f"The folder of the run {run} is not where it was ingested ({folder or 'nowhere stated'}).",
            "Give the folder instead of the name.",
        )
    found: list[Row] = []
    for row in rows:
        found += _compare(session, row["source"], parse(folder / row["source"]))
    return found


def _parser() -> Any:
    """Their parser as a function of a file; it gives None for a file that it cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch_tb_profiler.profiler.data import RunProfileData  # noqa: PLC0415 (an extra, 3 s to import)
    except ImportError as error:
        raise PostmortemError(
            "torch-tb-profiler is not installed.", "Install it with `pip install 'train-postmortem[tensorboard]'`."
        ) from error
    logging.getLogger("pytorch_profiler").setLevel(logging.CRITICAL)  # PLUGIN_NAME of its consts.py

    def parse(file: Path) -> Any:
        with tempfile.TemporaryDirectory() as cache, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return RunProfileData.parse("worker", "span", str(file), cache)
            except Exception:  # noqa: BLE001 (whatever their parser trips over is their answer: none)
                return None

    return parse


def _compare(session: Session, source: str, theirs: Any) -> Iterator[Row]:
    """Rows of one trace."""
    if theirs is None:
        yield Row(source, "readable", None, 1.0, None, agrees=False, why="its parser fails on this file")
        return
    yield from _steps(session, source, theirs)
    yield from _utilization(session, source, theirs)
    yield from _overlap(session, source, theirs)
    yield from _memory(session, source, theirs)


def _row(source: str, value: str, step: int | None, ours: float | None, theirs: float | None, why: str = "") -> Row:
    agrees = ours is not None and theirs is not None and abs(ours - theirs) <= CLOSE * max(abs(ours), abs(theirs))
    return Row(source, value, step, ours, theirs, agrees, "" if agrees else why)


def _steps(session: Session, source: str, theirs: Any) -> Iterator[Row]:
    """Step times in us; a step that one side lacks is listed."""
    own = _ask(session, source, "SELECT step, duration / 1e3 AS us FROM trace_step WHERE source = $source")
    ours = {row["step"]: row["us"] for row in own}
    names = [str(name) for name in theirs.steps_names]
    total = [cost.costs[-1] for cost in theirs.steps_costs]  # ProfileRole.Total is the last one
    stated: dict[int, float] = {}
    for name, cost in zip(names, total, strict=False):
        if name.isdecimal():
            stated.setdefault(int(name), float(cost))
    why = _SHADOWS if len(set(names)) < len(names) else _STEP
    for step in sorted(ours.keys() | stated.keys()):
        yield _row(source, "step time (us)", step, ours.get(step), stated.get(step), why)


def _utilization(session: Session, source: str, theirs: Any) -> Iterator[Row]:
    """Share of the steps in which a kernel ran, %."""
    parser = theirs.gpu_metrics_parser
    stated = [100 * share for share in (parser.gpu_utilization if parser else []) if share is not None]
    if not stated:
        return
    ours = _ask(
        session, source,
        "WITH k AS (SELECT s.step, s.start_time AS begins, greatest(a.start_time, s.start_time) AS a, "
        "least(a.end_time, s.end_time) AS b FROM trace_step AS s JOIN trace_activity AS a ON a.source = s.source "
        "AND a.level <= 2 AND a.start_time < s.end_time AND a.end_time > s.start_time WHERE s.source = $source), "
        "r AS (SELECT a, b, max(b) OVER (PARTITION BY step, begins ORDER BY a, b "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM k) "
        "SELECT 100.0 * sum(greatest(b - greatest(a, coalesce(before, a)), 0)) "
        "/ (SELECT sum(duration) FROM trace_step WHERE source = $source) AS share FROM r",
    )  # fmt: skip
    yield _row(source, "GPU utilization (%)", None, ours[0]["share"], stated[0], _STEP)


def _overlap(session: Session, source: str, theirs: Any) -> Iterator[Row]:
    """Share of communication beside computation, %."""
    ours = _ask(session, source, "SELECT overlap FROM trace_breakdown WHERE source = $source AND overlap IS NOT NULL")
    costs = theirs.comm_overlap_costs or []
    beside = sum(cost.overlap for cost in costs)
    alone = sum(cost.communication for cost in costs)
    if ours:
        stated = 100 * beside / (beside + alone) if beside + alone else None
        yield _row(source, "overlap (%)", None, ours[0]["overlap"], stated, _COMMUNICATION)


def _memory(session: Session, source: str, theirs: Any) -> Iterator[Row]:
    """Highest total that the memory events state, B."""
    snapshot = theirs.memory_snapshot
    stated: Mapping[tuple[Any, int], int] = snapshot.get_peak_memory() if snapshot else {}
    peaks = {(int(kind.value), device): value for (kind, device), value in stated.items() if kind is not None}
    own = _ask(
        session, source,
        "SELECT device_type, device, max(allocated) AS peak FROM trace_event WHERE source = $source "
        "AND name = '[memory]' AND allocated IS NOT NULL GROUP BY ALL ORDER BY ALL",
    )  # fmt: skip
    for row in own:
        name = f"peak memory of device type {row['device_type']}, device {row['device']} (B)"
        theirs_peak = peaks.get((row["device_type"], row["device"]))
        yield _row(source, name, None, row["peak"], theirs_peak, _DEVICE if row["device_type"] not in {0, 1} else "")


def _ask(session: Session, source: str, sql: str) -> list[dict[str, Any]]:
    session.need(["trace_step", "trace_activity", "trace_breakdown"])
    rows: list[dict[str, Any]] = session.connection.sql(sql, params={"source": source}).to_arrow_table().to_pylist()
    return rows
