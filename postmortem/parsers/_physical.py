"""Bytes -> records: lines, their parts between carriage returns, and records that were printed onto one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from postmortem.formats import ascii_classes
from postmortem.parsers import _leadins
from postmortem.parsers._read import Block

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
_NCCL_FIRST = ascii_classes(r"^[A-Za-z0-9][\w.-]*:\d+:\d+ \[-?\d+\] ")
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)")


def split(block: Block) -> pl.DataFrame:
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


def apart(lines: pl.DataFrame, leadins: _leadins.LeadIns) -> pl.DataFrame:
    """Records that were printed onto one line, each in a row of its own."""
    lines = _split_at(lines, leadins, _GLUE_SIGNS, _GLUED, _GLUED)
    return _split_at(lines, leadins, ("NCCL INFO ", "NCCL WARN "), _AFTER_ANOTHER + _NCCL, _NCCL, _NCCL_FIRST)


def _split_at(
    lines: pl.DataFrame, leadins: _leadins.LeadIns, signs: Sequence[str], test: str, border: str, alone: str = ""
) -> pl.DataFrame:
    """Split the lines that contain one of `signs` and match `test`, at every match of `border`."""
    text = lines["text"]
    suspects = text.str.contains("|".join(map(re.escape, signs))).arg_true()
    said = text[suspects]
    if alone and len(suspects):  # a record that starts with the lead-in, and holds it once, is whole
        single = said.str.contains(alone) & (said.str.count_matches(signs[0][:5], literal=True) < 2)
        suspects, said = suspects.filter(~single), said.filter(~single)
    glued = suspects.filter(said.str.contains(test)) if len(suspects) else suspects
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
