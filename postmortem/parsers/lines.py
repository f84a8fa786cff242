"""Text logs of any launcher: every line kept, those that schemas/formats/*.toml know turned into rows as well."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from postmortem import schema
from postmortem.formats import ascii_classes, patterns
from postmortem.parsers import _blocks, _emit, _leadins, _match, _names, _times
from postmortem.parsers._read import Block, blocks
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "lines"
DOC = "Text logs: .log, .out, .err, .txt, no extension, rotated or gzip; the fallback for every file that is text."
FALLBACK = True

LONGEST_LINE = 1 << 24
"""Parts that a physical line can have: far more than carriage returns or glued records give one block."""
_GLUED = ascii_classes(  # lead-ins that no message contains, in the middle of a text
    r"(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] \[(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\] \["
    r"|\[rank\d+\]:\[[IWEF]\d{3,4} |\[rank\d+\]: Traceback \(most|\[[Rr]ank \d+\] (?:step|Step|epoch|Epoch) \d)"
)
_GLUE_SIGNS = ["] [DEBUG] [", "] [INFO] [", "] [WARNING] [", "] [ERROR] [", "] [CRITICAL] [", "[rank", "[Rank "]
# A record of NCCL behind something else on its line (src/debug.cc of NVIDIA/nccl writes HOST:PID:TID [DEVICE]).
_AFTER_ANOTHER = r"(?s)^.*\S.*?[\s>\])]"
_NCCL = ascii_classes(
    r"([A-Za-z0-9][\w.-]*:\d+:\d+ \[-?\d+\] (?:\d+ )?(?:\S+:\d+ )?(?:\([^)]*\) )?NCCL (?:INFO|WARN) )"
)
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_LEVELS = {
    "i": "info", "w": "warning", "e": "error", "f": "fatal", "critical": "fatal", "crit": "fatal", "emerg": "fatal", "alert": "fatal",
    "err": "error", "warn": "warning", "notice": "info",
}  # fmt: skip


def sniff(path: str, head: bytes) -> bool:
    """Whether a file is text: no NUL bytes (but UTF-16 with its mark), and hardly any other control bytes."""
    del path
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
        self.leadins = _leadins.LeadIns()
        self.clock = _times.Clock()
        self.machines = _blocks.Machines()
        self.steps: pl.DataFrame | None = None
        self.total = 0.0
        self.writers: set[tuple[int | None, ...]] = set()

    def read(self, block: Block) -> Iterator[Parsed]:
        """Rows of one block."""
        lines = self._records(block)
        if lines.is_empty():
            return
        found, openers = _match.match(lines["text"], patterns(), _blocks.OPENERS)
        lines = self._attempts(lines, found)
        rows, marks = [], _Marks(lines.height)
        for pattern, at, captures in found:
            marks.set(at, pattern.id, pattern.role)
            if pattern.emit:
                rows += list(_emit.rows(pattern, lines[at].hstack(captures)))
        for table, frame, at, marked in self.machines.feed(lines, openers):
            rows.append((table, frame))
            for row, (name, role) in zip(at, marked, strict=True):
                marks.set(row, name, role)
        rows.append(("process", self._new_writers(lines)))
        yield Batch("line", {**_columns(lines, "line"), **marks.columns()})
        yield from self._batches([(t, _bounded(f, lines) if t == "event" else f) for t, f in rows])

    def close(self) -> Iterator[Parsed]:
        """Rows of records that were open when the file ended."""
        yield from self._batches([(table, frame) for table, frame, _, _ in self.machines.close()])

    def _records(self, block: Block) -> pl.DataFrame:
        raw = _split(block)
        self.leadins.learn(raw["raw"])
        lines = _leadins.split(raw, self.leadins)
        lines = self.clock.stamp(_apart(lines, self.leadins))
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
        """Count the starts of the job in this file; the first belongs to the attempt that is running."""
        starts = pl.concat([at for pattern, at, _ in found if pattern.attempt] or [pl.Series([], dtype=pl.UInt32)])
        if starts.is_empty():
            return lines
        marks = np.zeros(lines.height, np.int32)
        marks[starts.to_numpy()] = 1
        count = self.attempt + np.cumsum(marks) - (0 if self.started else 1)
        count = np.maximum(count, self.attempt)
        self.started, self.attempt = True, int(count[-1])
        return lines.with_columns(attempt=pl.Series(count, dtype=pl.Int32))

    def _new_writers(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Who wrote lines of this file, as far as lead-ins and its name tie ranks, tasks and hosts together."""
        keys = ["rank", "local_rank", "task", "host"]
        seen = lines.select(*keys, "line", "part", "time", "attempt", mpi=pl.col("stream").is_not_null() & pl.col("task").is_not_null())
        seen = seen.unique(keys, keep="first", maintain_order=True)
        told = pl.sum_horizontal(pl.col(k).is_not_null() for k in keys) >= 2
        seen = seen.filter(told | pl.col("task").is_not_null() | pl.col("local_rank").is_not_null())
        fresh = [row not in self.writers for row in seen.select(keys).iter_rows()]
        self.writers.update(seen.select(keys).iter_rows())
        statement = pl.when("mpi").then(pl.lit("mpi")).otherwise(pl.lit("prefix"))
        return seen.filter(fresh).with_columns(statement=statement).drop("mpi")

    def _own_bar(self, metrics: pl.DataFrame) -> pl.DataFrame:
        """Progress bars count many things; the trainer's is the one with the largest total."""
        totals = metrics.filter(pl.col("name") == "total_steps")["value"] if "name" in metrics.columns else []
        if not len(totals):
            return metrics
        self.total = max(self.total, float(totals.max() or 0.0))  # type: ignore[arg-type]
        return metrics.filter((pl.col("name") != "total_steps") | (pl.col("value") == self.total))

    def _batches(self, rows: list[tuple[str, pl.DataFrame]]) -> Iterator[Batch]:
        by_table: dict[str, list[pl.DataFrame]] = {}
        for table, frame in rows:
            if not frame.is_empty():
                by_table.setdefault(table, []).append(frame)
        carried = self.steps
        metrics = pl.concat(by_table["metric"], how="diagonal_relaxed") if "metric" in by_table else None
        if metrics is not None:
            metrics = self._own_bar(metrics)
            carried = _steps(metrics, carried)
            if "carry_" in metrics.columns:
                metrics = _with_carried_step(metrics, carried)
        for table, frames in by_table.items():
            frame = metrics if table == "metric" and metrics is not None else pl.concat(frames, how="diagonal_relaxed")
            if carried is not None and table in ("event", "memory", "phase_time"):
                frame = _after_step(frame, carried)
            yield Batch(table, _columns(frame, table))
        if carried is not None:
            self.steps = carried.group_by("rank").last().select(carried.columns)


def _split(block: Block) -> pl.DataFrame:
    """Physical lines and their parts between carriage returns: columns line, part, offset, raw."""
    data = block.data
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    offsets = np.concatenate(([0], ends + 1)) + block.offset
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    text = data.decode("utf-8", "replace")
    raw = pl.Series("raw", [text]).str.split("\n").explode()
    lines = pl.DataFrame({"line": np.arange(block.line, block.line + len(raw)), "offset": offsets, "raw": raw})
    if "\r" in text:
        lines = lines.with_columns(pl.col("raw").str.split("\r")).explode("raw")
        lines = lines.filter((pl.col("raw") != "") | pl.col("line").is_first_distinct())
    return _numbered(lines, block.line, block.part)


def _numbered(lines: pl.DataFrame, first: int, part: int) -> pl.DataFrame:
    """Add column part; the first line goes on where an earlier block left it."""
    numbers = lines["line"].to_numpy()
    place = np.arange(len(numbers))
    starts = np.concatenate(([True], numbers[1:] != numbers[:-1]))
    count = place - np.maximum.accumulate(np.where(starts, place, 0))
    count[numbers == first] += part
    return lines.with_columns(part=pl.Series(count, dtype=pl.Int32))


def _apart(lines: pl.DataFrame, leadins: _leadins.LeadIns) -> pl.DataFrame:
    """Records that were printed onto one line, each in a row of its own."""
    lines = _split_at(lines, leadins, _GLUE_SIGNS, _GLUED, _GLUED)
    return _split_at(lines, leadins, ("NCCL INFO ", "NCCL WARN "), _AFTER_ANOTHER + _NCCL, _NCCL)


def _split_at(
    lines: pl.DataFrame, leadins: _leadins.LeadIns, signs: Sequence[str], test: str, border: str
) -> pl.DataFrame:
    """Split the lines that match `test`, at every match of `border`."""
    suspects = lines["text"].str.contains_any(signs).arg_true()
    glued = suspects.filter(lines["text"][suspects].str.contains(test)) if len(suspects) else suspects
    if not len(glued):
        return lines
    marked = pl.col("text").str.replace_all(border, "\0$1").str.strip_prefix("\0")
    held = lines[glued].select("line", "offset", "part", raw=(pl.col("prefix") + marked).str.split("\0"))
    held = held.explode("raw").filter(pl.col("raw") != "")
    split = _leadins.split(held, leadins).select(lines.columns)
    keep = np.ones(lines.height, np.bool_)
    keep[glued.to_numpy()] = False
    both = pl.concat([lines.filter(pl.Series(keep)), split])
    place = both["line"].to_numpy() * LONGEST_LINE + both["part"].to_numpy()
    both = both[np.argsort(place, kind="stable")]
    first, part = int(lines["line"][0]), int(lines["part"][0])
    return _numbered(both.drop("part"), first, part).select(lines.columns)


class _Marks:
    """Which format recognised each record, and its role there; the first mark stays."""

    def __init__(self, rows: int) -> None:
        self.codes = np.full(rows, -1, np.int32)
        self.names: dict[tuple[str, str], int] = {}

    def set(self, at: pl.Series | int, name: str, role: str) -> None:
        """Mark records by row number."""
        code = self.names.setdefault((name, role), len(self.names))
        if isinstance(at, int):
            self.codes[at] = code if self.codes[at] < 0 else self.codes[at]
            return
        rows = at.to_numpy()
        self.codes[rows] = np.where(self.codes[rows] < 0, code, self.codes[rows])

    def columns(self) -> Mapping[str, pa.Array]:
        """Columns format and role."""
        indices = pa.array(self.codes, mask=self.codes < 0)
        names = [pa.array([pair[place] for pair in self.names], pa.string()) for place in (0, 1)]
        return {
            "format": pa.DictionaryArray.from_arrays(indices, names[0]),
            "role": _plain_dictionary(indices, names[1]),
        }


def _plain_dictionary(indices: pa.Array, values: pa.Array) -> pa.Array:
    """A dictionary without repeated values."""
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(indices), encoded.dictionary)


def _steps(metrics: pl.DataFrame, before: pl.DataFrame | None) -> pl.DataFrame:
    """The last step of each rank by line: rank -1 stands for "any rank"."""
    own = metrics.filter(pl.col("step").is_not_null()) if "step" in metrics.columns else metrics.clear()
    own = own.select("line", pl.col("rank").fill_null(-1), pl.col("step").alias("last_step")) if not own.is_empty() else None
    frames = [f for f in (before, own, own.with_columns(rank=pl.lit(-1, pl.Int32)) if own is not None else None) if f is not None]
    if not frames:
        return pl.DataFrame(schema={"line": pl.Int64, "rank": pl.Int32, "last_step": pl.Int64})
    return pl.concat(frames).unique(maintain_order=True).sort("line", maintain_order=True)


def _bounded(events: pl.DataFrame, lines: pl.DataFrame) -> pl.DataFrame:
    """An event without a stamp happened before the next stamped line of its rank, or else of its file, was written.

    That upper bound becomes its time, marked by the clock "bound".
    """
    if events.is_empty() or "time" not in events.columns or events["time"].null_count() == 0:
        return events
    stamped = lines.select("line", "rank", "time", "clock").filter(pl.col("time").is_not_null() & (pl.col("clock") != "day"))
    if stamped.is_empty():
        return events
    events = events.with_columns(pl.col("time").cast(pl.Int64), pl.col("line").cast(pl.Int64), pl.col("rank").cast(pl.Int32), pl.col("clock").cast(pl.String))
    later = {"on": "line", "strategy": "forward", "check_sortedness": False}
    events = events.sort("line", maintain_order=True)
    events = events.join_asof(stamped.select("line", "rank", own_="time"), by="rank", **later)
    events = events.join_asof(stamped.select("line", any_="time"), **later)
    bound = pl.coalesce("own_", "any_")
    unstamped = pl.col("time").is_null()
    return events.with_columns(
        clock=pl.when(unstamped & bound.is_not_null()).then(pl.lit("bound")).otherwise("clock"),
        time=pl.coalesce("time", bound),
    ).drop("own_", "any_")


def _with_carried_step(metrics: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    own = metrics.filter(pl.col("carry_").is_null())
    carried = _after_step(metrics.filter(pl.col("carry_").is_not_null()), steps)
    if "after_step" in carried.columns:
        carried = carried.with_columns(step=pl.coalesce(*[c for c in ("step", "after_step") if c in carried.columns]))
    return pl.concat([own, carried], how="diagonal_relaxed")


def _after_step(frame: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    if steps.is_empty():
        return frame
    keyed = frame.with_columns(rank_key=pl.col("rank").cast(pl.Int32).fill_null(-1)).sort("line", maintain_order=True)
    keyed = keyed.drop("after_step", strict=False)
    joined = keyed.join_asof(steps, on="line", by_left="rank_key", by_right="rank", check_sortedness=False)
    return joined.rename({"last_step": "after_step"}).drop("rank_key")


def _columns(frame: pl.DataFrame, table: str) -> Mapping[str, pl.Series]:
    names = [c.name for c in schema.tables()[table].columns if c.name in frame.columns]
    arrow = frame.select(names).to_arrow()
    return {name: arrow.column(name) for name in names}
