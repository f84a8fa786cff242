"""Which format recognised each record of a block."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from postmortem.parsers._text import Ints


class Marks:
    """Which format recognised each record, and its role there; the first mark stays."""

    def __init__(self, rows: int) -> None:
        self.codes = np.full(rows, -1, np.int32)
        self.names: dict[tuple[str, str], int] = {}

    def set(self, at: Ints, name: str, role: str) -> None:
        """Mark records by row number."""
        self.codes[at] = np.where(self.codes[at] < 0, self._code(name, role), self.codes[at])

    def set_one(self, at: int, name: str, role: str) -> None:
        """Mark one record."""
        if self.codes[at] < 0:
            self.codes[at] = self._code(name, role)

    def _code(self, name: str, role: str) -> int:
        return self.names.setdefault((name, role), len(self.names))

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
