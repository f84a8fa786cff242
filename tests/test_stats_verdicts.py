"""Promises of the verdicts on simulated and resampled runs: the small edition of benchmarks/simulate_verdicts.py."""

import importlib.util
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem import stats

SOURCE = Path(__file__).resolve().parents[1] / "benchmarks" / "simulate_verdicts.py"


@pytest.fixture(scope="module")
def simulate():
    spec = importlib.util.spec_from_file_location("simulate_verdicts", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def real(simulate, shared):
    found = simulate.real_series(shared / "data/runs")
    assert len(found) >= 4
    return found


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("n", [100, 300, 1000])
def test_equal_runs_raise_no_alarm(simulate, n, rho):
    rng = np.random.default_rng([n, int(10 * rho)])
    words = Counter(
        stats.compare_step_times(simulate.simulated(rng, n, rho), simulate.simulated(rng, n, rho)).judgement.word
        for _ in range(60)
    )
    assert words["faster"] + words["slower"] <= 0.08 * 60


@pytest.mark.parametrize(("n", "rho"), [(300, 0.0), (300, 0.5), (1000, 0.8)])
def test_five_percent_are_found(simulate, n, rho):
    rng = np.random.default_rng([n, int(10 * rho), 1])
    for word, factor in (("slower", 1.05), ("faster", 1 / 1.05)):
        found = sum(
            stats.compare_step_times(
                simulate.simulated(rng, n, rho), simulate.simulated(rng, n, rho) * factor
            ).judgement.word
            == word
            for _ in range(40)
        )
        assert found >= 38


def test_long_quiet_runs_are_shown_to_be_equal(simulate):
    rng = np.random.default_rng(5)
    pairs = [(simulate.simulated(rng, 1000, 0.5), simulate.simulated(rng, 1000, 0.5)) for _ in range(20)]
    words = Counter(stats.compare_step_times(*pair).judgement.word for pair in pairs)
    assert words["equivalent"] >= 17
    assert words["equivalent"] + words["undecided"] == 20


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_ninety_five_percent_intervals_cover_the_ratio(simulate, rho):
    rng = np.random.default_rng([7, int(10 * rho)])
    found = [
        stats.ratio_of_medians(simulate.simulated(rng, 600, rho), simulate.simulated(rng, 600, rho) * 1.05, level=0.95)
        for _ in range(200)
    ]
    inside = np.mean([ratio.inner_low <= 1.05 <= ratio.inner_high for ratio in found])
    assert 0.90 <= inside <= 0.995


def test_stretches_of_healthy_runs_are_told_apart_in_two_of_a_hundred_at_most(simulate, real):
    wrong, changed = simulate.healthy_windows(real, 500)
    assert wrong <= 0.02
    assert changed <= 0.02


@pytest.mark.parametrize(("scatter", "found"), [(0.1, 0.95), (1.0, 0.0)])
def test_resampled_real_runs(simulate, real, scatter, found):
    """Steps that scatter by 2 % show a change of 5 %; steps that scatter by 20 % must leave it open."""
    pool = real["crash_after"]
    words = {}
    for effect in (0.0, 0.05):
        rng = np.random.default_rng(11)
        words[effect] = Counter(
            stats.compare_step_times(
                simulate.disturbed(rng, simulate.resampled(rng, 400, pool, scatter)),
                simulate.disturbed(rng, simulate.resampled(rng, 400, pool, scatter)) * (1 + effect),
            ).judgement.word
            for _ in range(40)
        )
    assert words[0.0]["slower"] + words[0.0]["faster"] <= 2
    assert words[0.05]["faster"] == 0
    assert words[0.05]["slower"] >= found * 40


@pytest.mark.parametrize("kind", ["flat", "plateau", "sawtooth", "step", "leak", "sawtooth leak", "late leak"])
def test_memory_shapes(simulate, kind):
    words, inside = Counter(), 0
    for rho in (0.0, 0.5, 0.8):
        rng = np.random.default_rng([13, int(10 * rho)])
        for _ in range(20):
            found = stats.growth(simulate.memory(kind, rng, 600, rho))
            words[found.kind] += 1
            inside += found.low <= (simulate.MB if "leak" in kind else 0.0) <= found.high
    if "leak" in kind:
        assert words["growing"] >= 0.9 * 60
        assert not words["flat"]
    else:
        assert words["growing"] <= 0.05 * 60
    assert inside >= 0.88 * 60


@pytest.mark.parametrize("kind", ["logarithm", "root", "stopped"])
def test_what_fills_up_slowly_is_no_leak(simulate, kind):
    rng = np.random.default_rng(17)
    found = [
        stats.growth(simulate.memory(kind, rng, n, rho))
        for n in (60, 150, 600)
        for rho in (0.0, 0.8)
        for _ in range(10)
    ]
    assert sum(one.kind == "growing" for one in found) <= 0.05 * len(found)
    assert kind == "stopped" or all(one.first_half_slope > one.second_half_slope for one in found if one.n == 600)


def series(seed, n=300):
    rng = np.random.default_rng(seed)
    return np.exp(0.05 * rng.standard_normal(n) - 3.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 1e3, 1e9]))
def test_seconds_and_nanoseconds_give_the_same_verdict(seed, unit):
    a, b = series(seed), series(seed + 1) * 1.03
    one, other = stats.compare_step_times(a, b), stats.compare_step_times(a * unit, b * unit)
    assert one.judgement.word == other.judgement.word
    assert other.ratio.low == pytest.approx(one.ratio.low)
    assert other.ratio.high == pytest.approx(one.ratio.high)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(8, 300))
def test_swapping_the_runs_gives_the_reciprocal(seed, n):
    a, b = series(seed, n), series(seed + 1) * 1.1
    there, back = stats.compare_step_times(a, b), stats.compare_step_times(b, a)
    assert back.ratio.ratio == pytest.approx(1 / there.ratio.ratio)
    assert back.ratio.low == pytest.approx(1 / there.ratio.high)
    assert {there.judgement.word, back.judgement.word} in (
        {"faster", "slower"}, {"undecided"}, {"equivalent"},
    )  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_scheduled_spikes_leave_the_verdict(seed):
    a, b = series(seed, 600), series(seed + 1, 600) * 1.08
    spiked = [x.copy() for x in (a, b)]
    for x in spiked:
        x[::100] *= 5
    assert stats.compare_step_times(*spiked).judgement.word == stats.compare_step_times(a, b).judgement.word


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60))
def test_any_numbers_are_survived(values):
    x = np.array(values, dtype=float)
    with np.errstate(all="ignore"):
        stats.median_interval(x)
        stats.growth(x)
        stats.spikes(x)
        stats.change_points(x)
        word = stats.compare_step_times(x, np.full(40, 0.1)).judgement.word
    assert word in {"faster", "slower", "equivalent", "undecided"}


def test_a_run_of_zero_steps_is_undecided():
    judged = stats.compare_step_times([], [0.1] * 50).judgement
    assert judged.word == "undecided"
    assert "no step times" in judged.why


def test_undecided_says_what_would_decide(simulate):
    rng = np.random.default_rng(3)
    few = stats.compare_step_times(simulate.simulated(rng, 25, 0.0), simulate.simulated(rng, 25, 0.0)).judgement
    assert few.word == "undecided"
    assert few.more_steps
    close = stats.compare_step_times(
        simulate.simulated(rng, 3000, 0.0), simulate.simulated(rng, 3000, 0.0) * 1.02
    ).judgement
    assert close.word == "undecided"
    assert close.more_runs
    assert "more runs, not more steps" in close.why


def test_run_noise_comes_from_healthy_runs():
    assert stats.run_noise([1.0, 1.02, 0.98]).estimate == pytest.approx(np.std(np.log([1, 1.02, 0.98]), ddof=1))
    assert math.isnan(stats.run_noise([1.0]).estimate)
    several = stats.ratio_of_run_medians([1.0, 1.01, 0.99], [1.10, 1.11, 1.09])
    assert several.low > 1.05
    assert several.estimate == pytest.approx(1.1, rel=1e-3)
