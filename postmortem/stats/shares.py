"""Which phases, operators or events carry a change, adding up to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

REST = "other"


@dataclass(frozen=True)
class Contribution:
    """What one part adds to the change of the whole, in the whole's unit; `share` is of the whole's change."""

    name: str
    before: float
    after: float
    difference: float
    share: float


def contributions(
    before: Mapping[str, float], after: Mapping[str, float], whole_before: float, whole_after: float
) -> list[Contribution]:
    """Split whole_after - whole_before over the parts; what they leave unexplained is the part "other".

    Parts must not overlap. Returned by the size of their difference, the rest last; the differences add up.
    """
    names = sorted({*before, *after})
    rows = [(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    rest = (whole_before - sum(row[1] for row in rows), whole_after - sum(row[2] for row in rows))
    change = whole_after - whole_before
    rows.sort(key=lambda row: -abs(row[2] - row[1]))
    return [
        Contribution(name, old, new, new - old, (new - old) / change if change else math.nan)
        for name, old, new in [*rows, (REST, *rest)]
    ]


def false_discovery(p: ArrayLike) -> NDArray[np.float64]:
    """Return p values adjusted for many tests (Benjamini and Hochberg, JRSS B 57, 1995), in the given order."""
    values = np.asarray(p, dtype=np.float64).ravel()
    order = np.argsort(values)
    scaled = values[order] * len(values) / np.arange(1, len(values) + 1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
