"""Text logs of any launcher: every line kept, those that schemas/formats/*.toml know turned into rows as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl
import pyarrow as pa

from postmortem import schema
from postmortem.formats import Pattern
from postmortem.parsers import (
    _blocks,
    _emit,
    _forms,
    _leadins,
    _marks,
    _match,
    _names,
    _physical,
    _shapes,
    _steps,
    _times,
)
from postmortem.parsers._read import Block, blocks
from postmortem.parsers._text import Ints, cut
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "lines"
DOC = "Text logs: .log, .out, .err, .txt, no extension, rotated or gzip; the fallback for every file that is text."
FALLBACK = True

_NO_LOGS = frozenset(
    [
        "py",
        "ipynb",
        "c",
        "cc",
        "cpp",
        "cu",
        "cuh",
        "h",
        "hpp",
        "rs",
        "go",
        "js",
        "ts",
        "css",
        "html",
        "htm",
        "xml",
        "svg",
        "md",
        "rst",
        "tex",
        "sql",
        "sh",
        "bash",
        "patch",
        "diff",
        "toml",
        "yaml",
        "yml",
        "ini",
        "cfg",
        "json",
        "csv",
        "tsv",
        "lock",
        "jinja",
        "j2",
        "ply",
    ]
)
_LEVELS = {
    "i": "info", "w": "warning", "e": "error", "f": "fatal", "critical": "fatal", "crit": "fatal", "emerg": "fatal", "alert": "fatal",
    "err": "error", "warn": "warning", "notice": "info",
}  # fmt: skip


def sniff(path: str, head: bytes) -> bool:
    """Whether a file is text: no NUL bytes (but UTF-16 with its mark), and hardly any other control bytes.

    Source code and documents are left out: they quote messages that never happened.
    """
    if path.lower().removesuffix(".gz").rsplit(".", 1)[-1] in _NO_LOGS:
        return False
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return True
    if not head or b"\0" in head:
        return False
    data = np.frombuffer(head, np.uint8)
    control = (data < 32) & ~np.isin(data, (8, 9, 10, 11, 12, 13, 27))
    return bool(control.sum() <= 0.01 * len(data)) and _mostly_utf8(head)


def _mostly_utf8(head: bytes) -> bool:
    """Cut bar glyphs and Latin-1 names are rare in a log; a binary file is full of undecodable bytes."""
    return head.decode("utf-8", "replace").count("\ufffd") <= 0.05 * len(head) + 1


def parse(source: Source) -> Iterator[Parsed]:
    """Read a text file block by block. Rows: line, event, metric, phase_time, memory, config, process, environment."""
    reader = _Reader(source)
    for block in blocks(source):
        if isinstance(block, Issue):
            yield block
        else:
            yield from reader.read(block)
    yield from reader.close()


class _Reader:
    """What has to be remembered from block to block of one file."""

    def __init__(self, source: Source) -> None:
        self.rank, self.local_rank, self.host = source.rank, source.local_rank, source.host
        self.attempt = _names.attempt_from_name(source.path) or 0
        self.started = False
        self.worked = False
        self.forms = _forms.Forms()
        self.clock = _times.Clock()
        self.machines = _blocks.Machines()
        self.steps: pl.DataFrame | None = None
        self.epochs = _steps.Epochs()
        self.total = 0.0
        self.writers: set[tuple[int | None, ...]] = set()

    def read(self, block: Block) -> Iterator[Parsed]:
        """Rows of one block."""
        lines, texts = self._records(block)
        if lines.is_empty():
            return
        found, openers = _match.match(lines["text"], texts, self.forms.owners)
        lines = self._attempts(lines, found)
        rows, marks = [], _marks.Marks(lines.height)
        for match in found:
            marks.set(match.at, match.pattern.id, match.pattern.role)
            rows += list(_emit.rows(match, lines))
        for table, frame, places, marked in self.machines.feed(lines, openers):
            rows.append((table, frame))
            for row, (name, role) in zip(places, marked, strict=True):
                marks.set_one(row, name, role)
        rows.append(("process", self._new_writers(lines)))
        yield Batch("line", {**_columns(lines, "line"), **marks.columns()})
        yield from self._batches([(t, _steps.bounded(f, lines) if t == "event" else f) for t, f in rows])

    def close(self) -> Iterator[Parsed]:
        """Rows of records that were open when the file ended."""
        yield from self._batches([(table, frame) for table, frame, _, _ in self.machines.close()])

    def _records(self, block: Block) -> tuple[pl.DataFrame, _shapes.Texts]:
        """Each record of the block with what its lead-ins say."""
        physical = _physical.split(block)
        at, of = self.forms.read(physical)
        forms = self.forms.table
        begins = physical.starts[at] + forms["start"].to_numpy()[of]
        stamps, stamped = _stamps(physical.data, begins, forms, of)
        time, clock = (series.gather(stamped) for series in self.clock.read(stamps))
        led, size = (forms[c].str.len_bytes().to_numpy().astype(np.int64)[of] for c in ("prefix", "text"))
        lines = pl.DataFrame(
            {
                "line": physical.lines[at],
                "part": pl.Series(physical.numbered(at), dtype=pl.Int32),
                "offset": physical.offsets[at],
                "prefix": cut(physical.data, begins, led),
                "text": cut(physical.data, begins + led, size),
                "time": time,
                "clock": clock,
                **{kind: _said(kind, physical.data, begins, forms, of) for kind in _leadins.KINDS},
            }
        )
        texts = _shapes.Texts(physical.data, begins + led, forms["text"], of)
        return self._resolved(lines), texts

    def _resolved(self, lines: pl.DataFrame) -> pl.DataFrame:
        """What lead-ins say in words as numbers; what they leave open is taken from the file's name."""
        stated = pl.coalesce(pl.col("rank").cast(pl.Int32, strict=False), pl.lit(self.rank, pl.Int32))
        local = pl.col("local_rank").cast(pl.Int32, strict=False)
        level = pl.col("level").str.to_lowercase() if lines["level"].null_count() < lines.height else pl.col("level")
        return lines.with_columns(
            rank=pl.when(stated >= 0).then(stated),
            local_rank=pl.coalesce(local, pl.lit(self.local_rank, pl.Int32)),
            task=pl.col("task").cast(pl.Int32, strict=False),
            pid=pl.col("pid").cast(pl.Int64, strict=False),
            host=pl.coalesce("host", pl.lit(self.host, pl.String)),
            level=level.replace(_LEVELS),
            attempt=pl.lit(self.attempt, pl.Int32),
            after_step=pl.lit(None, pl.Int64),
        )

    def _attempts(self, lines: pl.DataFrame, found: list[_match.Match]) -> pl.DataFrame:
        """Count the starts of the job in this file; the first belongs to the attempt that is running.

        Where launchers of several nodes write into one file, each states the number of the start: it counts once.
        """
        starts = _places(found, lambda pattern: pattern.attempt)
        stated = [_stated(match, lines) for match in found if match.pattern.states_attempt]
        again = self._after_work(found, np.concatenate([starts, *(at for at, _ in stated)]))
        if not len(starts) and not stated and not again:
            return lines
        marks = np.zeros(lines.height, np.int64)
        marks[starts] = marks[again] = 1
        count = self.attempt + np.cumsum(marks) - (0 if self.started or not len(starts) else 1)
        for at, number in stated:
            np.maximum.at(count, at, number)
        count = np.maximum.accumulate(np.maximum(count, self.attempt))
        self.started, self.attempt = self.started or bool(len(starts)), int(count[-1])
        return lines.with_columns(attempt=pl.Series(count, dtype=pl.Int32))

    def _after_work(self, found: list[_match.Match], starts: Ints) -> list[int]:
        """Rows in which a process starts although steps were made since the start before."""
        works = _places(found, lambda pattern: "step" in pattern.captures)
        begins = _places(found, lambda pattern: pattern.process_start)
        resets = np.union1d(starts, begins)
        again = []
        for at in np.sort(begins):
            since = max(resets[resets < at], default=-1)
            if np.any((works > since) & (works < at)) or (since < 0 and self.worked):
                again.append(int(at))
        last = max(resets, default=-1)
        self.worked = bool(np.any(works > last)) or (self.worked and last < 0)
        return again

    def _new_writers(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Who wrote lines of this file, as far as lead-ins and its name tie ranks, tasks and hosts together."""
        keys = ["rank", "local_rank", "task", "host"]
        seen = lines.select(
            *keys, "line", "part", "time", "attempt", mpi=pl.col("stream").is_not_null() & pl.col("task").is_not_null()
        )
        seen = seen.unique(keys, keep="first", maintain_order=True)
        told = pl.sum_horizontal(pl.col(k).is_not_null() for k in keys) >= 2
        seen = seen.filter(told | pl.col("task").is_not_null() | pl.col("local_rank").is_not_null())
        fresh = [row not in self.writers for row in seen.select(keys).iter_rows()]
        self.writers.update(seen.select(keys).iter_rows())
        statement = pl.when("mpi").then(pl.lit("mpi")).otherwise(pl.lit("prefix"))
        return seen.filter(fresh).with_columns(statement=statement).drop("mpi")

    def _own_bar(self, metrics: pl.DataFrame) -> pl.DataFrame:
        """Progress bars count many things; the trainer's is the one with the largest total."""
        totals = metrics.filter(pl.col("name") == "total_steps")["value"].to_list()
        if not totals:
            return metrics
        self.total = max(self.total, *totals)
        metrics = metrics.filter((pl.col("name") != "total_steps") | (pl.col("value") == self.total))
        own = metrics.filter(pl.col("name") == "total_steps").select("line", "part").unique()
        timed = metrics.filter(pl.col("name") == "elapsed").join(own, on=["line", "part"], how="semi")
        return pl.concat([metrics.filter(pl.col("name") != "elapsed"), timed])

    def _batches(self, rows: list[tuple[str, pl.DataFrame]]) -> Iterator[Batch]:
        by_table: dict[str, list[pl.DataFrame]] = {}
        for table, frame in rows:
            if not frame.is_empty():
                by_table.setdefault(table, []).append(frame)
        carried = self.steps
        metrics = None
        if "metric" in by_table:
            metrics = self.epochs.counted(self._own_bar(pl.concat(by_table["metric"], how="diagonal_relaxed")))
            carried = _steps.steps(metrics, carried)
            if "carry_" in metrics.columns:
                metrics = _steps.with_carried_step(metrics, carried)
        for table, frames in by_table.items():
            frame = metrics if table == "metric" and metrics is not None else pl.concat(frames, how="diagonal_relaxed")
            if carried is not None and table in ("event", "memory", "phase_time"):
                frame = _steps.after_step(frame, carried, of_anyone=table == "phase_time")
            yield Batch(table, _columns(frame, table))
        if carried is not None:
            self.steps = carried.group_by("rank").last().select(carried.columns)


def _places(found: list[_match.Match], chosen: Callable[[Pattern], bool]) -> Ints:
    """Rows of the records that the chosen patterns recognised."""
    return np.concatenate([np.empty(0, np.int64), *(match.at for match in found if chosen(match.pattern))])


def _stated(match: _match.Match, lines: pl.DataFrame) -> tuple[Ints, Ints]:
    """Rows of the records that number an attempt, and the numbers."""
    numbers = lines["text"][match.at].str.extract(match.pattern.regex, 1).cast(pl.Int64)
    return match.at, numbers.to_numpy()


def _stamps(data: bytes, begins: Ints, forms: pl.DataFrame, of: Ints) -> tuple[_shapes.Texts, pl.Series]:
    """The stamps of the records that have one, and for each record the number of its stamp or null."""
    has = forms["time"].is_not_null().to_numpy()[of]
    different, number = _shapes.distinct(forms["time"].drop_nulls())
    form = np.zeros(forms.height, np.int64)
    form[forms["time"].is_not_null().to_numpy()] = number
    starts = begins + forms["time.at"].fill_null(0).to_numpy()[of]
    stamped = pl.DataFrame({"has": has, "number": np.cumsum(has) - 1})
    return (
        _shapes.Texts(data, starts[has], different, form[of[has]]),
        stamped.select(pl.when("has").then("number")).to_series(),
    )


def _said(kind: str, data: bytes, begins: Ints, forms: pl.DataFrame, of: Ints) -> pl.Series:
    """What stands in the lead-ins of each record for one kind of thing."""
    if forms[f"{kind}.at"].null_count() == forms.height:
        return pl.Series([None], dtype=pl.String).new_from_index(0, len(of))
    at, size = forms[f"{kind}.at"].fill_null(0).to_numpy(), forms[f"{kind}.size"].fill_null(-1).to_numpy()
    return cut(data, begins + at[of], size[of])


def _columns(frame: pl.DataFrame, table: str) -> Mapping[str, pl.Series]:
    names = [c.name for c in schema.tables()[table].columns if c.name in frame.columns]
    return {name: _arrow(frame[name]) for name in names}


def _arrow(column: pl.Series) -> pa.Array:
    """The column without the block that its texts are cut out of.

    The writer makes strings of views, which copies them, but keeps the bitmap of nulls: that comes from polars together
    with all other buffers of its column, and would keep the block in memory.
    """
    views = not column.null_count()
    return column.to_arrow(compat_level=pl.CompatLevel.newest() if views else pl.CompatLevel.oldest())
