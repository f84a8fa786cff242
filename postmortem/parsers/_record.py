"""What the machines for records of several lines have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol


class Line(NamedTuple):
    """One record of a block: its row number, and the columns that machines need."""

    at: int
    line: int
    part: int
    prefix: str
    text: str
    time: int | None
    clock: str | None
    rank: int | None
    local_rank: int | None
    task: int | None
    host: str | None
    pid: int | None
    attempt: int
    logger: str | None

    @property
    def writer(self) -> tuple[Any, ...]:
        """Lines with the same lead-ins come from one process, as far as a file can tell."""
        return (self.host, self.task, self.local_rank, self.rank)

    def carried(self) -> dict[str, Any]:
        """Columns that a row of an event takes over."""
        names = ("line", "part", "time", "clock", "rank", "local_rank", "task", "host", "pid", "attempt")
        return {name: getattr(self, name) for name in names}


COLUMNS = Line._fields[1:]
"""Columns of a block that a Line is made of, in its order."""


class Machine(Protocol):
    """A record of several lines under construction.

    Attributes:
        OPENS: literals of which one stands in the first line.
        FORMAT: name that its lines get in column `format`.
        role: role that its lines get.
    """

    OPENS: ClassVar[tuple[str, ...]]
    FORMAT: ClassVar[str]
    role: str

    @classmethod
    def open(cls, line: Line) -> Machine | None:
        """Start a record, or None where the line only looks like a start."""
        ...

    def take(self, line: Line) -> bool | None:
        """Use the writer's next line; False where the record has ended, None where it may go on behind this line."""
        ...

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of the finished record, as (table, columns)."""
        ...
