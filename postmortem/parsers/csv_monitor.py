"""CSV files of DeepSpeed's monitor: one metric per file, over global samples (deepspeed/monitor/csv_monitor.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import polars as pl

from postmortem.formats import names
from postmortem.parsers._emit import number
from postmortem.parsers._read import Block, blocks
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "csv_monitor"
DOC = "DeepSpeed csv_monitor files (Train_Samples_lr.csv): header step,<name>; x is global samples; rank 0 only."

_HEAD = re.compile(rb"^step,\s*[^,\r\n]+\r?\n")
_TIMER = "elapsed_time_ms_"
_GROUPS = ("train_samples_", "train_", "samples_")


def sniff(path: str, head: bytes) -> bool:
    """A CSV whose header is `step,` and one name, in a file named like a tag (Train/Samples/lr -> Train_Samples_lr.csv)."""
    return named(path) and _HEAD.match(head) is not None


def named(path: str) -> bool:
    """Whether the file's name is one of the monitor's tags: on its axis are samples, on any other CSV's steps."""
    return re.match(r"train_(?:samples|eigenvalues)_.*\.csv(?:\.gz)?$", PurePosixPath(path).name.lower()) is not None


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of metric, or of phase_time for elapsed_time_ms_*. Each further header starts the next attempt."""
    name = _metric(source.path)
    attempt = -1
    for block in blocks(source):
        if isinstance(block, Issue):
            yield block
            continue
        rows = _rows(block, attempt)
        attempt = int(rows["attempt"][-1]) if rows.height else attempt
        good = rows.filter(pl.col("value").is_not_null() & pl.col("samples").is_not_null())
        bad = rows.filter(
            ~pl.col("head") & (pl.col("value").is_null() | pl.col("samples").is_null()) & (pl.col("raw") != "")
        )
        if bad.height:
            yield Issue(
                "malformed",
                f"{bad.height} lines are no samples and value; they were left out.",
                int(bad["line"][0]),
                None,
                bad.height,
            )
        yield _batch(name, good)


def _metric(path: str) -> str:
    stem = PurePosixPath(path).name.lower().removesuffix(".gz").removesuffix(".csv")
    stem = re.sub(r"[^a-z0-9]+", "_", stem)
    for group in _GROUPS:
        stem = stem.removeprefix(group) or stem
    return stem


def _rows(block: Block, attempt: int) -> pl.DataFrame:
    text = block.data.decode("utf-8", "replace").replace("\r", "")
    raw = pl.Series("raw", [text]).str.split("\n").explode()
    frame = raw.to_frame().with_row_index("line", block.line).with_columns(head=pl.col("raw").str.starts_with("step,"))
    cells = pl.col("raw").str.splitn(",", 2)
    return frame.with_columns(
        attempt=(pl.col("head").cast(pl.Int32).cum_sum() + attempt).clip(0),
        samples=cells.struct.field("field_0")
        .str.strip_chars()
        .cast(pl.Float64, strict=False)
        .cast(pl.Int64, strict=False),
        text=cells.struct.field("field_1").str.strip_chars(),
        value=number(cells.struct.field("field_1")),
    )


def _batch(name: str, good: pl.DataFrame) -> Batch:
    rank = [0] * good.height  # only rank 0 writes (deepspeed/monitor/csv_monitor.py)
    shared = {"line": good["line"].to_arrow(), "samples": good["samples"].to_arrow(), "rank": rank}
    if name.startswith(_TIMER):
        phase = name.removeprefix(_TIMER)
        ns = (good["value"] * 1e6).round().cast(pl.Int64, strict=False)
        phases = [names()["phase"].get(phase, phase)] * good.height
        return Batch("phase_time", {**shared, "phase": phases, "duration": ns.fill_null(0).to_arrow()})
    metric = names()["metric"].get(name, name)
    values = {"attempt": good["attempt"].to_arrow(), "value": good["value"].to_arrow(), "text": good["text"].to_arrow()}
    return Batch("metric", {**shared, **values, "name": [metric] * good.height})
