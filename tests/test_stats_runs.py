"""The statistics on real runs: what is known of them, and nothing more, must be found."""

import json
import re
import tomllib
from itertools import permutations

import numpy as np
import pytest

from postmortem import stats

STEP = re.compile(r"\[rank (\d+)\] step (\d+): (.*)")
LONG = ["crash_after", "exc_after", "hang_after", "nan_after"]


def series(run, name):
    """Return {rank: {step: value}} of a metric in the logs of a run."""
    found = {}
    for path in sorted(run.rglob("*.log")):
        for rank, step, rest in STEP.findall(path.read_text(errors="replace")):
            value = re.search(rf"\b{name}=(nan|inf|[\d.]+)", rest)
            if value:
                found.setdefault(int(rank), {})[int(step)] = float(value[1])
    return found


def step_times(run):
    """Return the steps and, for each, the longest time of any rank."""
    ranks = series(run, "step_time").values()
    steps = sorted({step for rank in ranks for step in rank})
    return np.array(steps), np.array([max(rank[step] for rank in ranks if step in rank) for step in steps])


@pytest.fixture(scope="session")
def runs(shared):
    return {path.name: path for path in sorted((shared / "data/runs").iterdir())}


@pytest.fixture(scope="session")
def truth(shared):
    return tomllib.loads((shared / "data/TRUTH.toml").read_text())["run"]


def test_only_the_slowed_runs_change_and_at_their_onset(runs, truth):
    for name, run in runs.items():
        steps, x = step_times(run)
        found = [(int(steps[p.index]), p.transient) for p in stats.change_points(x)]
        slowed = truth[name]["fault"] == "throughput"
        assert found == ([(truth[name]["onset"], False)] if slowed else []), name


@pytest.mark.parametrize("cut", [12, 16, 20, 25, 30, 35])
def test_truncated_runs_change_only_where_they_did(runs, truth, cut):
    for name, run in runs.items():
        steps, x = step_times(run)
        onset = truth[name].get("onset") if truth[name]["fault"] == "throughput" else None
        for start in range(0, len(x) - cut + 1, cut):
            part = steps[start : start + cut]
            found = [int(part[p.index]) for p in stats.change_points(x[start : start + cut])]
            assert all(onset is not None and abs(step - onset) <= 1 for step in found), (name, start)


def test_only_the_leaking_run_grows(runs):
    for name, run in runs.items():
        for rank, values in series(run, "rss_gb").items():
            found = stats.growth([values[step] * 1e9 for step in sorted(values)])
            assert (found.kind == "growing") == (name == "leak_before"), (name, rank, found)
            if name == "leak_before":
                assert found.low < found.slope < found.high
                assert found.slope == pytest.approx(1.6e6, rel=0.1)
            elif name in LONG or name == "leak_after":
                assert found.high < 0.2e6  # an eighth of the leak at most


def test_truncated_healthy_memory_never_grows(runs):
    for name, run in runs.items():
        if name == "leak_before":
            continue
        for rank, values in series(run, "rss_gb").items():
            y = [values[step] * 1e9 for step in sorted(values)]
            for end in range(5, len(y), 3):
                assert stats.growth(y[:end]).kind != "growing", (name, rank, end)


def test_a_fault_of_many_times_the_step_time_needs_few_steps(runs):
    for name, onset in (("straggler", 8), ("dataloader", 25)):
        steps, before = step_times(runs[f"{name}_before"])
        _, after = step_times(runs[f"{name}_after"])
        slow, calm = before[steps >= onset], after[stats.steady(after)]
        assert stats.judge_ratio(stats.ratio_of_medians(slow, calm)).word == "faster"
        assert stats.judge_ratio(stats.ratio_of_medians(calm, slow)).word == "slower"


def test_healthy_runs_are_not_told_apart(runs):
    words = []
    for a, b in permutations(LONG, 2):
        x, y = step_times(runs[a])[1], step_times(runs[b])[1]
        words.append(stats.judge_ratio(stats.ratio_of_medians(x[stats.steady(x)], y[stats.steady(y)])).word)
    assert not {"faster", "slower"} & set(words)


def test_loss_spike_of_a_run_recovers(runs):
    for name, run in runs.items():
        for rank, values in series(run, "loss").items():
            steps = sorted(values)
            found = [(steps[s.start], steps[s.recovered], s.kind) for s in stats.spikes([values[i] for i in steps])]
            assert found == ([(12, 18, "recovered")] if name == "spike_before" else []), (name, rank)


BLOOM = re.compile(r"iteration\s+(\d+)/.*?time per iteration \(s\): ([\d.]+).*?lm loss: (\S+).*?grad norm: ([\d.]+)")


def test_bloom_spikes_at_31219_and_recovers(shared, reference_bloom):
    text = (shared / "data/stats/tr11-176B-ml.iterlines.log").read_text()
    rows = [tuple(map(float, row)) for row in BLOOM.findall(text)]
    rows = [row for row in rows if 31000 < row[0] < 32000]
    steps, loss = [int(row[0]) for row in rows], [row[2] for row in rows]
    (spike,) = [s for s in stats.spikes(loss) if s.highest > 5]
    assert steps[spike.peak] == reference_bloom["spike_peak_iter"]
    assert spike.highest == pytest.approx(reference_bloom["peak_loss"])
    assert spike.recovered is not None
    assert steps[spike.recovered] <= reference_bloom["recovered_by"]
    assert rows[spike.peak][3] == pytest.approx(reference_bloom["grad_norm"])


@pytest.fixture(scope="session")
def reference_bloom(shared):
    return json.loads((shared / "data/stats/reference_values.json").read_text())["bloom"]


def test_bloom_slows_down_by_five_percent(shared, reference_bloom):
    """One slow device among 384, seen in five lines: too few for a claim by itself, enough to date and size it."""
    text = (shared / "data/stats/tr11-176B-ml.iterlines.log").read_text()
    found = re.findall(r"iteration\s+(4278\d)/.*?time per iteration \(s\): ([\d.]+)", text)
    steps, seconds = [int(step) for step, _ in found], np.array([float(value) for _, value in found])
    first, last = (steps.index(step) for step in reference_bloom["drop_between"])
    slow, calm = seconds[last:], seconds[: first + 1]
    assert np.median(slow) / np.median(calm) == pytest.approx(reference_bloom["throughput_drop_ratio"])
    (cut,) = stats.optimal_partition(np.log(seconds), 1e-4)
    assert first < cut <= last
    assert stats.judge_ratio(stats.ratio_of_medians(calm, slow)).word == "undecided"


def test_bloom_slowdown_is_a_change_point_once_it_lasts_for_five_steps(shared):
    """The calm lines around 31219 and the two slow ones, repeated: four of them are too few, five are dated."""
    text = (shared / "data/stats/tr11-176B-ml.iterlines.log").read_text()
    seconds = {
        int(step): float(s) for step, s in re.findall(r"iteration\s+(\d+)/.*?time per iteration \(s\): ([\d.]+)", text)
    }
    calm = np.array([seconds[step] for step in sorted(seconds) if 31000 < step < 32000])
    slow = np.array([seconds[42783], seconds[42784]])
    assert stats.change_points(calm) == []  # the spike of the loss is none of the step time
    assert stats.change_points(np.r_[calm, np.resize(slow, 4)]) == []
    (found,) = stats.change_points(np.r_[calm, np.resize(slow, 5)])
    assert found.index == len(calm)


def test_bloom_slowdown_of_a_hundred_steps_is_sized(shared, reference_bloom):
    """Levels of the lines around 42782, with the scatter of the lines around 31219."""
    text = (shared / "data/stats/tr11-176B-ml.iterlines.log").read_text()
    seconds = {
        int(step): float(s) for step, s in re.findall(r"iteration\s+(\d+)/.*?time per iteration \(s\): ([\d.]+)", text)
    }
    around = np.array([value for step, value in seconds.items() if 31000 < step < 32000])
    drawn = np.random.default_rng(1).choice(around / np.median(around), (2, 100))
    levels = np.median([[seconds[42780], seconds[42781]], [seconds[42783], seconds[42784]]], axis=1)
    calm, slow = levels[:, None] * drawn
    (found,) = stats.change_points(np.r_[calm, slow])
    assert (found.index, found.lasts, found.transient) == (100, True, False)
    assert found.ratio == pytest.approx(reference_bloom["throughput_drop_ratio"], abs=0.002)
    judged = stats.compare_step_times(calm, slow)
    assert judged.judgement.word == "slower"
    assert judged.ratio.low <= reference_bloom["throughput_drop_ratio"] <= judged.ratio.high
