"""Comparisons of made-up runs whose difference is known: written as logs, ingested, compared."""

import json
import math
import re
from collections import Counter

import jsonschema
import numpy as np
import pytest
from evidence import ROOT

from postmortem.compare import compare, noise
from postmortem.errors import PostmortemError
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.runs import open_sides
from postmortem.store import Store

RANKS = 2
MB = 1e6


def write_run(folder, seconds, *, config=None, rss=None, loss=None, grad=None, ranks=RANKS):
    """Write one log per rank with a line per step, and a configuration."""
    folder.mkdir(parents=True)
    settings = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4} | (config or {})
    (folder / "ds_config.json").write_text(json.dumps(settings))
    for rank in range(ranks):
        lines = []
        for i, value in enumerate(seconds):
            fields = [f"loss={loss[i] if loss is not None else 3.0 - 0.001 * i:.4f}", f"step_time={value:.5f}"]
            if rss is not None:
                fields.append(f"rss_gb={rss[i]:.5f}")
            if grad is not None:
                fields.append(f"grad_norm={grad[i]:.5f}")
            lines.append(f"[rank {rank}] step {i + 1}: {', '.join(fields)}")
        (folder / f"train_rank{rank}.log").write_text("\n".join(lines) + "\n")


def quiet(seed, n=500, level=0.2, scatter=0.02):
    rng = np.random.default_rng(seed)
    x = level * np.exp(scatter * rng.standard_normal(n))
    x[0] *= 8
    x[99::100] *= 4
    return x


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    t = np.arange(500)
    spiky = 3.0 - 0.001 * t
    spiky[200:206] += 4.0
    norm = np.exp(0.3 * np.random.default_rng(13).standard_normal(500))
    twice = 2.0 * np.exp(0.01 * np.random.default_rng(14).standard_normal(500)) * norm
    twice[[120, 121]] = [77.0, np.inf]
    runs = {
        "plain": {"seconds": quiet(1), "rss": 0.5 + 1e-5 * np.sin(t), "grad": norm},
        "plain_again": {"seconds": quiet(2), "rss": 0.5 + 1e-5 * np.cos(t), "grad": norm},
        "plain_third": {"seconds": quiet(3)},
        "slow": {"seconds": 1.1 * quiet(4), "rss": 0.5 + 1e-3 * t, "grad": twice},
        "slow_again": {"seconds": 1.1 * quiet(5)},
        "double_batch": {
            "seconds": 1.8 * quiet(6),
            "config": {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 8},
        },
        "longer_sequences": {"seconds": 1.8 * quiet(7), "config": {"seq_length": 4096, "hidden_size": 64}},
        "short_sequences": {"seconds": quiet(8), "config": {"seq_length": 2048, "hidden_size": 64}},
        "wider": {"seconds": 1.8 * quiet(12), "config": {"seq_length": 2048, "hidden_size": 128}},
        "spiked": {"seconds": quiet(9), "loss": spiky},
        "short": {"seconds": quiet(10, n=12)},
        "changed_midway": {"seconds": np.where(t < 300, 1.0, 1.4) * quiet(11)},
    }
    for name, run in runs.items():
        write_run(home / name, **run)
    ingest({name: home / name for name in runs}, home / "store")
    return Store(home / "store")


@pytest.fixture(scope="module")
def compared(store):
    found = {}

    def of(before, after, **options):
        key = (before, after, *sorted(options))
        if key not in found:
            found[key] = compare(Session(store, [before, after]), **options)
        return found[key]

    return of


def test_ten_percent_slower_is_a_regression(compared):
    found = compared("plain", "slow")
    assert found["throughput"]["verdict"] == "slower"
    assert found["verdict"] == "regressed"
    low, high = found["throughput"]["ci"]
    assert low < 1.1 < high
    assert found["throughput"]["unit"] == "step time after / before"
    assert found["throughput"]["break_even_noise"] > 0.01


def test_the_other_way_round_it_is_faster(compared):
    found = compared("slow", "plain")
    assert found["throughput"]["verdict"] == "faster"
    there, back = compared("plain", "slow")["throughput"], found["throughput"]
    assert back["ratio"] == pytest.approx(1 / there["ratio"])


def test_equal_runs_are_equivalent_and_nothing_changed(compared):
    found = compared("plain", "plain_again")
    assert found["throughput"]["verdict"] == "equivalent"
    assert found["verdict"] == "no change"


def test_what_was_set_aside_is_stated(compared):
    side = compared("plain", "plain_again")["throughput"]["sides"]["before"]
    assert side["set_aside"].get("warm-up", 0) >= 1
    assert side["p99"]["ci"][1] > 3 * side["typical_seconds"]  # every hundredth step takes four times as long
    assert side["p95"]["ci"][1] < 1.2 * side["typical_seconds"]
    assert side["seconds_per_1000_steps"] > 1025 * side["typical_seconds"]


def test_another_batch_is_compared_per_sample(compared):
    found = compared("plain", "double_batch")["throughput"]
    assert found["unit"] == "time per sample after / before"
    assert found["ratio"] == pytest.approx(0.9, rel=0.02)
    assert found["verdict"] == "faster"
    assert not found["comparable"]
    assert "train_batch_size" in found["different_work"]


def test_other_work_is_never_judged_by_step_times(compared):
    found = compared("short_sequences", "wider")
    assert found["throughput"]["verdict"] == "undecided"
    assert "hidden_size" in found["throughput"]["why"]
    assert found["verdict"] != "regressed"


def test_longer_sequences_are_compared_per_token(compared):
    found = compared("short_sequences", "longer_sequences")["throughput"]
    assert found["unit"] == "time per token after / before"
    assert found["ratio"] == pytest.approx(0.9, rel=0.02)
    assert not found["comparable"]


def test_few_steps_say_how_many_more(compared):
    found = compared("plain", "short")["throughput"]
    assert found["verdict"] == "undecided"
    assert found["more_steps"] > 0


def test_a_change_inside_a_run_is_dated(compared):
    found = compared("changed_midway", "plain")
    (change,) = found["throughput"]["sides"]["before"]["changes"]
    assert abs(change["step"] - 301) <= 1
    assert change["ratio"] == pytest.approx(1.4, rel=0.02)
    assert found["throughput"]["steady"]["before"][0] == change["step"]


def test_a_new_leak_is_a_regression_and_an_old_one_gone_is_fixed(compared):
    rows = [row for row in compared("plain", "slow")["memory"] if row["kind"] == "host_rss"]
    assert {row["verdict"] for row in rows} == {"growing"}
    assert rows[0]["after"]["ci"][0] <= 1e-3 * 2**30 <= rows[0]["after"]["ci"][1] or rows[0]["after"][
        "slope"
    ] == pytest.approx(1e-3 * 2**30, rel=0.01)
    rows = [row for row in compared("slow", "plain")["memory"] if row["kind"] == "host_rss"]
    assert {row["verdict"] for row in rows} == {"fixed"}


def test_a_spike_of_the_loss_is_reported_with_its_recovery(compared):
    found = compared("plain", "spiked")["loss"]
    (spike,) = found["after"]["spikes"]
    assert (spike["step"], spike["recovered_step"], spike["kind"]) == (201, 207, "recovered")
    assert found["equal_in_print_until"] == 200
    assert found["before"]["spikes"] == []


def test_gradient_norms_are_compared_at_equal_steps(compared):
    found = compared("plain", "slow")["gradient"]
    assert found["verdict"] == "different"
    assert found["ratio"] == pytest.approx(2.0, abs=0.01)
    low, high = found["ci"]
    assert low < 2.0 < high
    assert high - low < 0.01  # the scatter from step to step is common to both and cancels out
    assert found["n"] == 499
    after = found["after"]
    assert (after["highest"], after["highest_step"], after["first_not_finite"]) == (77.0, 121, 122)
    assert compared("plain", "plain_again")["gradient"]["verdict"] == "identical"
    assert compared("plain", "spiked")["gradient"]["verdict"] == "undecided"
    assert compared("spiked", "short")["gradient"] is None


def test_the_document_is_strict_json(compared):
    schema = json.loads((ROOT / "schemas/json/comparison.schema.json").read_text())
    jsonschema.validate(compared("plain", "slow"), schema)
    for pair in (("plain", "slow"), ("plain", "short"), ("short", "spiked"), ("plain", "double_batch")):
        json.dumps(compared(*pair)["throughput"], allow_nan=False)
        json.dumps([compared(*pair)[part] for part in ("memory", "stability", "loss")], allow_nan=False)


def test_several_runs_a_side_are_the_unit(store):
    session, further = open_sides(store.path, ["before=plain,plain_again,plain_third", "after=slow,slow_again"])
    assert session.runs == ["plain", "slow"]
    found = compare(session, further=further)["throughput"]
    assert found["verdict"] == "slower"
    assert found["assumptions"]["run_noise_measured"]
    assert "5 runs" in found["why"]
    assert [len(found["repeats"][side]) for side in ("before", "after")] == [3, 2]


def test_a_run_stands_on_one_side_only(store):
    with pytest.raises(PostmortemError, match="twice"):
        open_sides(store.path, ["before=plain,slow", "after=slow,slow_again"])


def test_noise_is_the_scatter_of_typical_step_times(store):
    found = noise(Session(store, ["plain", "plain_again", "plain_third"]))
    medians = [entry["typical_seconds"] for entry in found["runs"]]
    assert found["run_noise"] == pytest.approx(np.std(np.log(medians), ddof=1))
    assert found["enough"]
    alone = noise(Session(store, ["plain"]))
    assert alone["run_noise"] is None
    assert "Two runs or more" in alone["statement"]


def test_pairs_of_one_job_in_any_order(store):
    """Whole comparisons, not only the statistics: healthy runs of one job never look different."""
    healthy = ["plain", "plain_third", "short"]
    words = Counter(compare(Session(store, [a, b]))["verdict"] for a in healthy for b in healthy if a != b)
    assert words == Counter({"no change": len(healthy) * (len(healthy) - 1)})


def test_phases_add_up_to_the_change(shared, tmp_path):
    runs = {name: shared / "data/runs" / name for name in ("straggler_before", "straggler_after")}
    ingest(runs, tmp_path)
    found = compare(Session(Store(tmp_path), list(runs)))["throughput"]
    phases = {row["phase"]: row["difference"] for row in found["phases"]}
    assert min(phases, key=phases.get) == "bwd_allreduce"  # the others wait there for rank 3
    whole = sum(phases.values())
    assert phases["bwd_allreduce"] / whole == pytest.approx(1.0, abs=0.1)
    assert math.isclose(sum(row["share"] for row in found["phases"]), 1.0, abs_tol=1e-9)


def test_slower_per_sample_is_no_all_clear(tmp_path):
    """Twice the batch in 2.3 times the time: 15 % more per sample, by the batch or by a fault."""
    runs = {
        "one": {"seconds": quiet(21)},
        "two": {"seconds": 2.3 * quiet(22), "config": {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 8}},
    }
    for name, run in runs.items():
        write_run(tmp_path / name, **run)
    ingest({name: tmp_path / name for name in runs}, tmp_path / "store", jobs=1)
    found = compare(Session(Store(tmp_path / "store"), ["one", "two"]))
    assert (found["verdict"], found["throughput"]["unit"]) == ("undecided", "time per sample after / before")
    assert "other work" in found["why"]


def test_a_label_may_stand_before_a_run_of_the_store(store):
    session, further = open_sides(store.path, ["before=plain,plain_again", "after=plain_third"])
    assert (session.runs, further) == (["plain", "plain_third"], (["plain_again"], []))


def test_noise_of_few_runs_is_widened(store):
    """Student's t with two degrees of freedom over the normal quantile: 2.920 / 1.645."""
    found = noise(Session(store, ["plain", "plain_again", "plain_third"]))
    assert found["careful"] == pytest.approx(1.7751 * found["run_noise"], rel=1e-3)


def test_twins_part_late_and_on_one_rank(tmp_path):
    """Thousands of equal steps before: the place is found all the same, and every equal step is counted."""
    rng = np.random.default_rng(15)
    steps = {"seconds": quiet(16, n=4000), "loss": 3 + rng.random(4000)}
    for name in ("one", "other"):
        write_run(tmp_path / name, **steps)
    log = tmp_path / "other" / "train_rank1.log"
    lines = log.read_text().splitlines()
    changed = [re.sub(r"loss=\d", "loss=7", line) if i >= 2500 else line for i, line in enumerate(lines)]
    log.write_text("\n".join(changed) + "\n")
    ingest({name: tmp_path / name for name in ("one", "other")}, tmp_path / "store")
    session = Session(Store(tmp_path / "store"), ["one", "other"])
    (row,) = session.rows("twin_divergence", before="one", after="other")
    assert (row["twins"], row["step"], row["rank"], row["agreed_steps"]) == (True, 2501, 1, 2500)
    apart = {r["step"]: r["difference"] for r in session.rows("twin_metrics", before="one", after="other", slices=4000)}
    assert len(apart) == 4000
    assert {apart[step] for step in range(1, 2501)} == {0.0}
    assert apart[2501] == pytest.approx(7 - 3, abs=0.01)  # the first digit is 3 before, and a 7 stands in its place
    assert apart[4000] == pytest.approx((7 - 3) / 2, abs=0.01)  # so late, the mean of both ranks is compared
