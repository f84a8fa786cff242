"""CSV files of metrics with a step column: PyTorch Lightning's metrics.csv and loss tables of other trainers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from postmortem.formats import names
from postmortem.parsers._read import Block, blocks
from postmortem.parsers._text import plain
from postmortem.parsers.csv_monitor import named
from postmortem.parsers.trainer_state import batch, rows
from postmortem.records import Issue, Parsed, Source

FORMAT = "metrics_csv"
DOC = "CSV with a column step and metrics beside it (Lightning's metrics.csv, pytorch_lightning/loggers/csv_logs.py)."

_STEPS = ("step", "global_step", "iteration", "iter", "steps")


def sniff(path: str, head: bytes) -> bool:
    """A CSV whose header has a column of steps and at least two columns; csv_monitor's two columns are its own."""
    header = _header(head.split(b"\n", 1)[0])
    if named(path):
        return False
    return re.search(r"\.csv(\.gz)?$", path.lower()) is not None and len(header) > 1 and _place(header) is not None


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of metric; an empty cell is no value."""
    header: list[str] = []
    for block in blocks(source):
        if isinstance(block, Issue):
            yield block
            continue
        if not header:
            header = _header(block.data.split(b"\n", 1)[0])
        yield from _block(block, header)


def _block(block: Block, header: list[str]) -> Iterator[Parsed]:
    place, found, lines, bad = _place(header), [], [], 0
    named_so = _with_loss(header)
    for number, line in enumerate(block.data.decode("utf-8", "replace").split("\n"), block.line):
        cells = _cells(line)
        if not cells or _header_again(cells, header):
            continue
        if len(cells) != len(header) or place is None or not re.fullmatch(r" *[0-9]{1,15}(\.0*)? *", cells[place]):
            bad += 1
            continue
        entry = {n: c.strip() for n, c in zip(named_so, cells, strict=True) if c.strip()}
        new = list(rows({**entry, header[place]: int(float(cells[place]))}, header[place]))
        found += new
        lines += [number] * len(new)
    if bad:
        yield Issue("malformed", f"{bad} lines do not fit the header; they were left out.", block.line, None, bad)
    yield batch(found, lines)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line.strip()]), [])
    except csv.Error:  # a carriage return inside a cell, or a cell of over 128 KiB
        return [line]


def _header(line: bytes) -> list[str]:
    return [name.strip().strip('"') for name in line.decode("utf-8", "replace").strip().split(",")]


def _with_loss(header: list[str]) -> list[str]:
    """The header, where the column of the training loss is called loss: the first of its spellings that there is."""
    columns = [plain(name) for name in header]
    spellings = ("loss", *(said for said, name in names()["training"].items() if name == "loss"), "train_loss_epoch")
    own = next((said for said in spellings if said in columns), None)
    return ["loss" if own is not None and name == own else title for name, title in zip(columns, header, strict=True)]


def _header_again(cells: list[str], header: list[str]) -> bool:
    return [c.strip() for c in cells] == header


def _place(header: list[str]) -> int | None:
    names = [name.lower() for name in header]
    return next((names.index(step) for step in _STEPS if step in names), None)
