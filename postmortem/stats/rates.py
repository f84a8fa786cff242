"""How often it fails, and how long it must stay clean before the failure is gone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import bdtr, betaincinv, chdtri

# chdtri(v, p) is the chi-square quantile of the upper tail p; betaincinv(a, b, p) the beta quantile.


@dataclass(frozen=True)
class RateTest:
    """Exact test of two event rates: one-sided p of "fewer after", two-sided p, rate ratio after / before."""

    p_fewer: float
    p_two_sided: float
    ratio: float
    low: float
    high: float


def clean_exposure_needed(events: int, exposure: float, alpha: float = 0.05) -> float:
    """Return the event-free exposure after `events` in `exposure` (steps or hours) that shows a lower rate.

    T (alpha^(-1/k) - 1): from the exact conditional test of Przyborowski and Wilenski, Biometrika 31, 1940.
    Infinite where nothing happened before.
    """
    return exposure * (alpha ** (-1.0 / events) - 1.0) if events > 0 else math.inf


def rate_interval(events: int, exposure: float, level: float = 0.95) -> tuple[float, float]:
    """Return the exact Poisson interval of events per unit of exposure (Garwood, Biometrika 28, 1936)."""
    tail = (1.0 - level) / 2.0
    low = float(chdtri(2 * events, 1.0 - tail)) / 2.0 if events else 0.0
    return low / exposure, float(chdtri(2 * events + 2, tail)) / 2.0 / exposure


def rate_upper_bound(events: int, exposure: float, level: float = 0.95) -> float:
    """Return the one-sided upper limit of events per unit of exposure; with none, the rule of three."""
    return float(chdtri(2 * events + 2, 1.0 - level)) / 2.0 / exposure if exposure > 0.0 else math.inf


def exact_rate_test(
    events_before: int, exposure_before: float, events_after: int, exposure_after: float, level: float = 0.95
) -> RateTest:
    """Compare two rates by the exact conditional test; the interval of the ratio is Clopper and Pearson's."""
    total = events_before + events_after
    if not total:
        return RateTest(1.0, 1.0, math.nan, 0.0, math.inf)
    share = exposure_after / (exposure_before + exposure_after)
    fewer = float(bdtr(events_after, total, share))
    odds = exposure_before / exposure_after
    tail = (1.0 - level) / 2.0
    low = float(betaincinv(events_after, events_before + 1, tail)) if events_after else 0.0
    high = float(betaincinv(events_after + 1, events_before, 1.0 - tail)) if events_before else 1.0
    ratio = events_after / events_before * odds if events_before else math.inf if events_after else math.nan
    return RateTest(
        p_fewer=fewer,
        p_two_sided=_two_sided(events_after, total, share),
        ratio=ratio,
        low=low / (1.0 - low) * odds,
        high=high / (1.0 - high) * odds if high < 1.0 else math.inf,
    )


def _two_sided(k: int, n: int, p: float) -> float:
    """Sum the probabilities of all outcomes that are no likelier than `k`, as R's binom.test does."""
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * math.log(p) + (n - i) * math.log1p(-p)
        for i in range(n + 1)
    ]
    return min(1.0, sum(math.exp(value) for value in logs if value <= logs[k] + 1e-7))
