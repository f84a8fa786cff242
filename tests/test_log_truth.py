"""The real logs of ../shared: fault and culprit of TRUTH.toml, and how much of each log is recognised."""

import re
import tomllib

import pytest
from evidence import ROOT

from postmortem.diagnosis import diagnose
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store
from postmortem.unrecognised import shapes

DATA = ROOT.parent / "shared" / "data"
TRUTH = tomllib.loads((DATA / "TRUTH.toml").read_text())["log"] if (DATA / "TRUTH.toml").exists() else {}

# Share of lines with text that a format knows, as last measured; a change of a format may raise it, never lower it.
RECOGNISED = {
    "megatron-deepspeed/filenotfound_then_watchdog_8ranks.log": 0.98,
    "megatron-deepspeed/watchdog_allreduce_16ranks.log": 0.90,
    "megatron-deepspeed/oom_ranks_11_12_13_of_16.log": 0.90,
    "megatron-deepspeed/elastic_table_15_sigterm.log": 0.99,
    "megatron-deepspeed/config_attributeerror_16ranks.log": 0.90,
    "deepspeed-chat/step1_opt-1.3b.log": 0.99,
    "deepspeed-chat/step2_opt-350m.log": 0.99,
    "deepspeed-chat/step3_rlhf.log": 0.99,
    "bigscience/meg_ds_zero_gpt2_perf_n16.out": 0.75,
    "bigscience/meg_gpt2_base_n4.out": 0.20,  # the environment of a shell fills most of it
    "bigscience/hf_ds_gpt2_base_n4.out": 0.18,  # the same
    "bigscience/hf_ds_gpt2_perf_n16_bs4-mbs8.out": 0.90,
    "bigscience/ds-on/train.out": 0.75,
    "bigscience/ds-off/train.out": 0.62,
    "gpt-neox/logs/node001_node001_stdout.txt": 0.90,
    "gpt-neox/logs/node001_node001_stderr.txt": 0.85,
}


@pytest.fixture(scope="module")
def store(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    runs = {}
    for name in {*RECOGNISED, *(key.removeprefix("logs/") for key in TRUTH)}:
        run = folder / "in" / re.sub(r"\W+", "_", name)
        run.mkdir(parents=True)
        (run / name.rsplit("/", 1)[-1]).write_bytes((shared / "data" / "logs" / name).read_bytes())
        runs[run.name] = run
    ingest(runs, folder / "store")
    return Store(folder / "store")


def session(store, name):
    return Session(store, [re.sub(r"\W+", "_", name)])


@pytest.mark.parametrize("name", sorted(RECOGNISED))
def test_recognised_share_and_no_alarming_line_unread(store, name):
    run = session(store, name)
    share = run.sql("SELECT avg((format IS NOT NULL)::INT) AS share FROM line WHERE trim(text) <> ''").to_pylist()[0][
        "share"
    ]
    assert share >= RECOGNISED[name], share
    listed = shapes(run, alarming=True)
    words = r"(?i)error|fatal|exception|\bnan\b|\binf\b|overflow|killed|timeout|\boom\b"
    unread = run.sql(
        f"SELECT count(*) AS n FROM line WHERE format IS NULL AND regexp_matches(text, '{words}')"
    ).to_pylist()[0]["n"]
    assert sum(listed["lines"].to_pylist() if listed.num_rows else []) >= unread


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_fault_and_culprit(store, name):
    truth = TRUTH[name]
    primary = diagnose(session(store, name.removeprefix("logs/")))["primary"]
    assert (primary["fault"] if primary else "none") == truth["fault"]
    if "culprit" in truth:
        assert primary["culprit_ranks"] == truth["culprit"]
