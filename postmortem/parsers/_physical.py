"""Bytes -> records: lines, their parts between carriage returns, and records that were printed onto one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from postmortem.formats import ascii_classes
from postmortem.parsers import _leadins
from postmortem.parsers._read import Block
from postmortem.parsers._text import PADDING, Ints

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
# A bar is drawn without an end of line, so that the next record stands right behind it.
_BAR = ascii_classes(r"%\|[^|]*\|.*\] *\[(?:rank|default)\d+\]:")
_BEHIND_BAR = ascii_classes(r"(\[(?:rank|default)\d+\]:)")
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\))")
_LF, _CR = 10, 13


@dataclass(frozen=True, slots=True)
class Physical:
    """The lines of a block, and their parts between carriage returns.

    Attributes:
        data: UTF-8 without colours, then PADDING.
        starts, lengths: where in `data` each part stands, in bytes.
        lines: number of the line in the file, from 1.
        offsets: byte offset of the line in the file.
        first: number of pieces of the block's first line that earlier blocks held.
    """

    data: bytes
    starts: Ints
    lengths: Ints
    lines: Ints
    offsets: Ints
    first: int

    def numbered(self, at: Ints) -> Ints:
        """Which record of its line each record is, from 0; `at` are their parts."""
        numbers = self.lines[at]
        place = np.arange(len(numbers))
        begins = np.concatenate(([True], numbers[1:] != numbers[:-1]))
        count = place - np.maximum.accumulate(np.where(begins, place, 0))
        count[numbers == self.lines[0]] += self.first
        return count


def split(block: Block) -> Physical:
    """Find the lines of a block."""
    data = block.data
    offsets = np.concatenate(([0], np.flatnonzero(np.frombuffer(data, np.uint8) == _LF) + 1)) + block.offset
    if b"\x1b" in data:
        data = _ANSI.sub(b"", data)
    if returns := b"\r" in data:
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if not data.isascii():
        data = data.decode("utf-8", "replace").encode()
    array = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero((array == _LF) | (array == _CR) if returns else array == _LF)
    starts, ends = np.concatenate(([0], ends + 1)), np.concatenate((ends, [len(data)]))
    line = np.concatenate(([0], np.cumsum(array[ends[:-1]] == _LF)))
    if returns:  # a bar is drawn over an empty part
        kept = (ends > starts) | np.concatenate(([True], line[1:] != line[:-1]))
        starts, ends, line = starts[kept], ends[kept], line[kept]
    return Physical(data + PADDING, starts, ends - starts, line + block.line, offsets[line], block.part)


def apart(forms: pl.DataFrame, leadins: _leadins.LeadIns) -> pl.DataFrame:
    """Records that were printed onto one line, each in a row of its own (columns as `_leadins.split` gives them)."""
    forms = _split_at(forms, leadins, _GLUE_SIGNS, _GLUED, _GLUED)
    forms = _split_at(forms, leadins, ("%|",), _BAR, _BEHIND_BAR)
    return _split_at(forms, leadins, ("NCCL INFO ", "NCCL WARN "), _AFTER_ANOTHER + _NCCL, _NCCL, _NCCL_FIRST)


def _split_at(
    forms: pl.DataFrame, leadins: _leadins.LeadIns, signs: Sequence[str], test: str, border: str, alone: str = ""
) -> pl.DataFrame:
    """Split the texts that contain one of `signs` and match `test`, at every match of `border`."""
    text = forms["text"]
    suspects = text.str.contains("|".join(map(re.escape, signs))).arg_true()
    said = text[suspects]
    if alone and len(suspects):  # a record that starts with the lead-in, and holds it once, is whole
        single = said.str.contains(alone) & (said.str.count_matches(signs[0][:5], literal=True) < 2)
        suspects, said = suspects.filter(~single), said.filter(~single)
    glued = suspects.filter(said.str.contains(test)) if len(suspects) else suspects
    if not len(glued):
        return forms
    marked = pl.col("text").str.replace_all(border, "\n$1").str.strip_prefix("\n")
    held = forms[glued].select("shape", "start", raw=(pl.col("prefix") + marked).str.split("\n")).explode("raw")
    size = pl.col("raw").str.len_bytes().cast(pl.Int64)
    held = held.with_columns(start=pl.col("start") + (size.cum_sum() - size).over("shape", "start"))
    pieces = _leadins.split(held.filter(pl.col("raw") != ""), leadins)
    keep = np.ones(forms.height, np.bool_)
    keep[glued.to_numpy()] = False
    return pl.concat([forms.filter(pl.Series(keep)), pieces]).sort("shape", "start", maintain_order=True)
