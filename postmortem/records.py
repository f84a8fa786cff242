"""What flows from a file to the store: a Source goes into a parser, Batches and Issues come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a run.

    Attributes:
        run_id: name of the run in the store.
        path: path inside the run folder, with forward slashes; this is what reports show.
        file: where the bytes are. Only parsers open it.
        format: name of the parser that claims it, or "unknown".
        bytes: size on disk, B.
        digest: hexadecimal name of its Parquet parts; changes when the file or postmortem changes.
        rank: global rank that the file's name states, or None.
        local_rank: local rank that the file's name states, or None.
        host: host that the file's name states, or None.
        rank_given: whether the user gave `rank` (--rank-map), so that it outranks what the file says.
        options: what the user asked of parsers (for example {"checkpoints": "deep"}).

    """

    run_id: str
    path: str
    file: Path
    format: str
    bytes: int
    digest: str
    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    rank_given: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows for one table.

    `columns` maps column names to equally long arrays; a column that is left out is null. Columns `run_id`
    and `source` are filled in by ingest. A plain sequence is converted to the declared type; give a
    pyarrow array where speed matters.
    """

    table: str
    columns: Mapping[str, pa.Array | pa.ChunkedArray | Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Issue:
    """Something that could not be read, or only in part. It becomes a row of table `issue`.

    Attributes:
        kind: one of the values listed in schemas/tables/issue.toml.
        message: one sentence: what is wrong and what was left out.
        line: 1-based line, where there is one.
        offset: byte offset in the (uncompressed) file, where known.
        dropped: number of records that were left out.

    """

    kind: str
    message: str
    line: int | None = None
    offset: int | None = None
    dropped: int = 0


Parsed: TypeAlias = Batch | Issue


class Parser(Protocol):
    """What a module in postmortem/parsers/ has to offer."""

    FORMAT: str
    DOC: str

    def sniff(self, path: str, head: bytes) -> bool:
        """Whether this parser reads a file, from its path inside the run and its first 64 KiB (inflated)."""
        ...

    def parse(self, source: Source) -> Iterator[Parsed]:
        """Read the file in bounded memory. Bad bytes become Issues; only an unreadable file may raise OSError."""
        ...
