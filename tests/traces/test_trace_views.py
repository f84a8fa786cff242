"""Views and findings on traces, against what is known of the sample sets (TRUTH.toml)."""

import pytest

from postmortem.compare import compare
from postmortem.compare.traces import _same, stragglers
from postmortem.diagnosis import diagnose

DLRM = "traces/param-dlrm-8ranks"
GLOO = "traces/gloo-straggler-leak"


def test_last_ranks_and_spreads_of_eight_ranks_on_nccl(ask, truth):
    rows = ask(
        "SELECT collective, any_value(last_rank) AS last, any_value(start_spread) // 1000 AS starts, "
        "any_value(end_spread) // 1000 AS ends, bool_and(trusted) AS trusted, count(*) AS ranks "
        "FROM aligned_collective GROUP BY collective ORDER BY collective",
        "dlrm",
    )
    assert [r["last"] for r in rows] == truth[DLRM]["last_rank"]
    assert [r["starts"] for r in rows] == truth[DLRM]["start_spread_us"]
    assert [r["ends"] for r in rows] == truth[DLRM]["end_spread_us"]
    assert all(r["trusted"] and r["ranks"] == 8 for r in rows)


def test_clocks_that_agree_are_left_alone(ask):
    rows = ask("SELECT status, offset_ns, uncertainty FROM trace_clock ORDER BY rank", "dlrm")
    assert [r["status"] for r in rows] == ["reference"] + ["agrees"] * 7
    assert {r["offset_ns"] for r in rows} == {0}


def test_overlap_and_idle(ask, truth):
    rows = ask("SELECT * FROM trace_breakdown ORDER BY rank", "dlrm")
    assert [r["idle"] // 1000 for r in rows] == truth[DLRM]["idle_us"]
    assert [round(r["overlap"], 2) for r in rows] == pytest.approx(truth[DLRM]["overlap_percent"], abs=0.0051)
    for r in rows:
        assert r["compute"] + r["exposed_communication"] + r["exposed_memcpy"] + r["idle"] == r["span"]


def test_whether_the_same_rank_makes_the_others_wait_in_the_other_run(traced, truth):
    late = truth[GLOO]["straggler"]
    known = {run: diagnose(traced(run)) for run in ("gloo_before", "gloo_after", "dlrm", "resnet_after")}

    def between(*pair):
        return stragglers(traced(*pair), [known[run] for run in pair])

    gone = between("gloo_before", "gloo_after")
    assert (gone["verdict"], gone["ranks"][0]["rank"]) == ("gone", late)
    assert f"Before, rank {late} makes the others wait. After, no rank stands out." in gone["why"]
    assert between("gloo_after", "gloo_before")["verdict"] == "new"
    assert between("gloo_before", "dlrm")["verdict"] == "undecided"  # one profiled step is not enough
    assert between("dlrm", "gloo_after")["verdict"] == "none"
    assert between("gloo_before", "resnet_after") is None  # one rank


@pytest.mark.parametrize(
    ("first", "then", "verdict"),
    [
        ([3], [3], "same"),
        ([3], [2], "same host"),
        ([3], [0], "another"),
        ([3], [], "gone"),
        ([], [1], "new"),
        ([], [], "none"),
    ],
)
def test_same_rank_same_host_or_another(first, then, verdict):
    """Ranks 0 and 1 on one host, 2 and 3 on another."""
    rows = [{"rank": r, "before_host": "ab"[r // 2], "after_host": "ab"[r // 2]} for r in range(4)]
    assert _same(rows, first, then) == verdict
    one_host = [{"rank": r, "before_host": "a", "after_host": "a"} for r in range(4)]
    assert _same(one_host, [3], [2]) == "another"


def test_one_step_is_not_enough_to_name_a_straggler(traced):
    assert diagnose(traced("dlrm"))["primary"] is None


def test_straggler_on_gloo(traced, truth):
    rows = traced("gloo_before").rows("trace_straggler")
    assert [r["rank"] for r in rows] == [truth[GLOO]["straggler"]]
    assert traced("gloo_after").rows("trace_straggler") == []


def test_memory_slopes_are_exact_on_every_rank(ask, traced, truth):
    for run, key in (
        ("gloo_before", "slope_before_bytes_per_step"),
        ("gloo_after", "slope_after_bytes_per_step"),
    ):
        rows = ask("SELECT rank, slope, least, most FROM trace_memory_slope ORDER BY rank", run)
        assert [(r["rank"], r["slope"], r["least"], r["most"]) for r in rows] == [
            (rank, truth[GLOO][key], truth[GLOO][key], truth[GLOO][key]) for rank in range(4)
        ]
    assert len(traced("gloo_before").rows("trace_memory_growth")) == 4
    assert traced("gloo_after").rows("trace_memory_growth") == []


@pytest.mark.parametrize("run", ["dlrm", "gloo_before", "resnet_before", "resnet_after"])
def test_phases_and_contributions_add_up_to_every_step(ask, run):
    rows = ask(
        "SELECT s.duration, p.duration AS phases, c.duration AS contributions FROM trace_step AS s "
        "JOIN (SELECT source, step, sum(duration) AS duration FROM trace_phase GROUP BY ALL) AS p USING (source, step) "
        "JOIN (SELECT source, step, sum(duration) AS duration FROM trace_contribution GROUP BY ALL) AS c "
        "USING (source, step)",
        run,
    )
    assert rows
    assert all(r["duration"] == r["phases"] == r["contributions"] for r in rows)


def test_phases_and_contributions_agree(ask):
    rows = ask(
        "SELECT p.phase, p.duration, c.duration AS other FROM "
        "(SELECT source, step, phase, sum(duration) AS duration FROM trace_phase GROUP BY ALL) AS p FULL JOIN "
        "(SELECT source, step, phase, sum(duration) AS duration FROM trace_contribution GROUP BY ALL) AS c "
        "USING (source, step, phase)",
        "resnet_before",
    )
    assert rows
    assert all(r["duration"] == r["other"] for r in rows)


def test_resnet_is_fixed_and_the_data_loader_is_the_largest_part(traced, truth):
    session = traced("resnet_before", "resnet_after")
    found = compare(session)
    expected = truth["traces/kineto-resnet50"]
    assert found["verdict"] == expected["verdict"]
    assert [f["fault"] for f in found["faults"]] == [expected["fault"]]
    assert "data loader" in found["why"]
    rows = session.rows("trace_phases_compared", before="resnet_before", after="resnet_after")
    assert [r["phase"] for r in rows][:2] == ["step", "data loader"]
    assert sum(r["change_ms"] for r in rows[1:]) == pytest.approx(rows[0]["change_ms"])
    operators = session.rows("trace_operators_compared", before="resnet_before", after="resnet_after")
    assert sum(r["change_ms"] for r in operators) == pytest.approx(rows[0]["change_ms"])
    assert operators[0]["name"] == "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert operators[0]["state"] == "vanished"


def test_reversed_pair_regresses(traced):
    found = compare(traced("resnet_after", "resnet_before"))
    assert found["verdict"] == "regressed"
