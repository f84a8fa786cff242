"""From which step on a run does its ordinary work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BATCH = 5  # MSER-5: White, Simulation 69(6), 1997
FEW = 100  # steps under which batches of five are too few to find a minimum
SLOW_START = 1.5  # leading steps of a short run that take this many typical steps are warm-up


def mser(z: ArrayLike) -> int:
    """Return how many leading values of `z` to leave out (marginal standard error rule), at most half.

    d* minimises sum over i > d of (z_i - mean)^2 / (n - d)^2.
    """
    values = np.asarray(z, dtype=np.float64)
    n = len(values)
    if n < 4:
        return 0
    left = n - np.arange(n // 2 + 1)
    sums, squares = values[::-1].cumsum()[::-1], (values**2)[::-1].cumsum()[::-1]
    score = (squares[: len(left)] - sums[: len(left)] ** 2 / left) / left**2
    return int(np.argmin(score))


def warm_up(x: ArrayLike) -> int:
    """Return the index of the first steady step of one start of a run (positive step times).

    Medians of the logs of five steps each stand for the batches: means are cut at a spike, not at the end of
    the warm-up. `len(x)` means that no steady state is reached by half of the run.
    """
    values = np.asarray(x, dtype=np.float64)
    n = len(values)
    logs = np.log(np.where(values > 0.0, values, np.nan))
    if n < FEW:
        return slow_start(values)
    batches = np.nanmedian(logs[: n // BATCH * BATCH].reshape(-1, BATCH), axis=1)
    cut = mser(batches)
    if not cut or np.nanmedian(batches[:cut]) <= np.nanmedian(batches[cut:]):
        return slow_start(values)  # a run that begins faster than it goes on does not warm up: it slowed down
    return n if cut >= len(batches) // 2 else max(cut * BATCH, slow_start(values))


def slow_start(values: NDArray[np.float64]) -> int:
    """Count the leading steps that take far longer than the ten after them."""
    for place in range(len(values) // 2):
        following = values[place + 1 : place + 11]
        if not values[place] > SLOW_START * np.nanmedian(following):
            return place
    return 0


def steady(x: ArrayLike, scheduled: ArrayLike | None = None) -> NDArray[np.bool_]:
    """Return which steps are ordinary: past the warm-up, not scheduled (checkpoint, evaluation, profiler).

    `scheduled`: mask of the same length. Without a steady state, only the first step is left out.
    """
    values = np.asarray(x, dtype=np.float64)
    extra = np.zeros(len(values), dtype=bool) if scheduled is None else np.asarray(scheduled, dtype=bool)
    ordinary: NDArray[np.bool_] = np.isfinite(values) & ~extra
    places = np.flatnonzero(ordinary)
    cut = warm_up(values[places])
    ordinary[places[: 1 if cut >= len(places) else cut]] = False
    return ordinary
