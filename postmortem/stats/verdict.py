"""Faster, slower, equivalent or undecided: the word for two runs' step times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from postmortem.stats.medians import BATCHES, ENOUGH

if TYPE_CHECKING:
    from postmortem.stats.medians import Interval, Ratio

Word = Literal["faster", "slower", "equivalent", "undecided"]
REGRESSION = 0.01  # smaller differences are worth no alarm (the default noise threshold of criterion.rs)
EQUIVALENCE = 0.03  # larger ones must be excluded before two runs are called equal
FAR = 5.0  # a claim from a few steps must clear this many equivalence bounds ...
WANDERING = 4 * BATCHES  # steps under which batches cannot show how much the level of a run wanders
WANDER = 1.0  # ... or this many standard deviations of single steps, whichever is more


@dataclass(frozen=True)
class Judgement:
    """The word, the reason, and what more data could do.

    `more_steps`: steps a side that would decide, None where they would not. `more_runs`: more runs would.
    `break_even_noise`: the word holds while the noise between runs stays below it (NaN without a claim).
    """

    word: Word
    why: str
    more_steps: int | None = None
    more_runs: bool = False
    break_even_noise: float = math.nan


def judge_ratio(
    ratio: Ratio,
    *,
    equivalence: float = EQUIVALENCE,
    regression: float = REGRESSION,
    change_inside: bool = False,
) -> Judgement:
    """Turn the interval of after / before into a word; bounds are relative, for example 0.03.

    `change_inside`: a change point lies within one of the two parts that were compared as steady.
    """
    if not math.isfinite(ratio.ratio):
        return Judgement("undecided", "one side has no step times")
    few = min(ratio.n_before, ratio.n_after) < WANDERING or min(ratio.n_eff_before, ratio.n_eff_after) < ENOUGH
    if few or change_inside:
        return _judge_short(ratio, equivalence, regression, change_inside=change_inside)
    low = math.log(ratio.low) if ratio.low > 0.0 else -math.inf
    high = math.log(ratio.high)
    loss, bound = math.log1p(regression), math.log1p(equivalence)
    if low > loss:
        return _claim(ratio, "slower", loss)
    if high < -loss:
        return _claim(ratio, "faster", loss)
    if -bound < low and high < bound:
        why = f"{_percent(ratio)} lies within {equivalence:.1%}"
        return Judgement("equivalent", why, break_even_noise=_break_even(ratio, bound, inside=True))
    return _open(ratio, bound)


def judge_runs(found: Interval, *, equivalence: float = EQUIVALENCE, regression: float = REGRESSION) -> Judgement:
    """Turn the interval of several runs a side (after / before) into a word; runs are the unit, so no noise is assumed."""
    low, middle, high = (100.0 * (value - 1.0) for value in (found.low, found.estimate, found.high))
    said = f"step time changed by {middle:+.1f} % [{low:+.1f}, {high:+.1f}] over {found.n} runs"
    if found.low > 1.0 + regression:
        return Judgement("slower", said)
    if found.high < 1.0 / (1.0 + regression):
        return Judgement("faster", said)
    if found.low > 1.0 / (1.0 + equivalence) and found.high < 1.0 + equivalence:
        return Judgement("equivalent", f"{said}, which lies within {equivalence:.1%}")
    return Judgement("undecided", f"{said}: more runs, not more steps, would decide", more_runs=True)


def _claim(ratio: Ratio, word: Word, loss: float) -> Judgement:
    batch = ratio.batch_low if word == "slower" else ratio.batch_high
    sign = 1.0 if word == "slower" else -1.0
    if math.isfinite(batch) and sign * math.log(batch) <= 0.0:
        why = f"{_percent(ratio)}, but batches of steps within the runs differ as much as the runs do"
        return Judgement("undecided", why, more_steps=_double(ratio))
    noise = _break_even(ratio, loss)
    why = f"{_percent(ratio)}; holds while runs of the same job differ by less than {noise:.1%} by chance"
    return Judgement(word, why, break_even_noise=noise)


def _percent(ratio: Ratio) -> str:
    low, middle, high = (100.0 * (value - 1.0) for value in (ratio.low, ratio.ratio, ratio.high))
    return f"step time changed by {middle:+.1f} % [{low:+.1f}, {high:+.1f}]"


def _half(ratio: Ratio) -> float:
    """Return half the width of the interval of these two runs alone, in logs."""
    if ratio.inner_low <= 0.0 or not math.isfinite(ratio.inner_high):
        return math.inf
    return (math.log(ratio.inner_high) - math.log(ratio.inner_low)) / 2.0


def _z(ratio: Ratio) -> float:
    return NormalDist().inv_cdf(0.5 + ratio.level / 2.0)


def _break_even(ratio: Ratio, margin: float, *, inside: bool = False) -> float:
    distance = margin - abs(math.log(ratio.ratio)) if inside else abs(math.log(ratio.ratio)) - margin
    room = distance**2 - _half(ratio) ** 2
    return math.sqrt(room) / (math.sqrt(2.0) * _z(ratio)) if distance > 0.0 and room > 0.0 else 0.0


def _double(ratio: Ratio) -> int:
    return max(ratio.n_before, ratio.n_after)


def _open(ratio: Ratio, bound: float) -> Judgement:
    """Say what would decide: more steps where the noise of these runs is in the way, else more runs."""
    d, half = abs(math.log(ratio.ratio)), _half(ratio)
    room = (bound - d) ** 2 - 2.0 * (_z(ratio) * max(ratio.run_noise, ratio.wander)) ** 2
    if d >= bound or room <= 0.0 or not math.isfinite(half):
        why = f"{_percent(ratio)} is neither excluded nor shown: more runs, not more steps, would decide"
        return Judgement("undecided", why, more_runs=True)
    n = max(ratio.n_before, ratio.n_after)
    wanted = math.ceil(n * half**2 / room)
    more = max(wanted - min(ratio.n_before, ratio.n_after), 1)
    why = f"{_percent(ratio)}: about {more} more steps a side would decide"
    return Judgement("undecided", why, more_steps=more)


def _judge_short(ratio: Ratio, equivalence: float, regression: float, *, change_inside: bool) -> Judgement:
    """Claim from few effective steps, or from parts that wander, only what lies far beyond the margin."""
    far = max(FAR * math.log1p(equivalence), WANDER * ratio.spread)
    loss = math.log1p(regression)
    if ratio.low > 0.0 and math.log(ratio.low) > far:
        return _claim(ratio, "slower", loss)
    if math.isfinite(ratio.high) and math.log(ratio.high) < -far:
        return _claim(ratio, "faster", loss)
    if change_inside:
        why = f"{_percent(ratio)}, but the step time changes within a run, so no typical step stands for it"
        return Judgement("undecided", why, more_runs=True)
    have, steps = min(ratio.n_eff_before, ratio.n_eff_after), min(ratio.n_before, ratio.n_after)
    if have >= ENOUGH:
        why = f"{_percent(ratio)}: too few steps ({steps} of {WANDERING}) to see whether a run wanders"
        return Judgement("undecided", why, more_steps=WANDERING - steps)
    share = max(ratio.n_before / max(ratio.n_eff_before, 1.0), ratio.n_after / max(ratio.n_eff_after, 1.0))
    more = math.ceil((ENOUGH - have) * share) if have < ENOUGH else 0
    why = f"{_percent(ratio)}: too few independent steps ({math.floor(have)} of {ENOUGH:.0f}), about {more} more needed"
    return Judgement("undecided", why, more_steps=more)
