"""Whether values that two runs state at equal steps differ: one word, with the interval of the difference behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from postmortem.stats import Interval, paired_difference

LEAST_STEPS = 10


def judge_pairs(
    before: NDArray[np.float64], after: NDArray[np.float64], what: str, facts: Callable[[Interval], Mapping[str, Any]]
) -> dict[str, Any]:
    """The verdict is different, identical, no difference shown, or undecided where there are too few steps.

    Args:
        before: finite values, one per step.
        after: those of the other run at the same steps.
        what: what every step has, for the reason of an undecided verdict.
        facts: the reason and the numbers of any other verdict, from the interval of the median difference.
    """
    n = len(before)
    if n < LEAST_STEPS:
        return {"verdict": "undecided", "why": f"The runs share too few steps with {what}.", "n": n}
    found = paired_difference(before, after)
    if not np.isfinite([found.low, found.high]).all():
        return {"verdict": "undecided", "why": f"Too few independent steps with {what} on both sides.", "n": n}
    apart = found.low > 0 or found.high < 0
    word = "different" if apart else "identical" if (before == after).all() else "no difference shown"
    return {"verdict": word, **facts(found), "n": found.n}
