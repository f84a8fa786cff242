"""The functions of stats.py that queries may call, by their SQL names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def register(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the statistics callable from SQL on `connection`."""
