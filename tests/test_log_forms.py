"""The same job through another launcher, in another file, in pieces: the diagnosis stays."""

import gzip
import re
from functools import cache

import pytest

from postmortem.diagnosis import diagnose
from postmortem.ingest import ingest
from postmortem.query import Session
from postmortem.store import Store

CASES = {
    "crash_before": ["pdsh", "srun", "gzip", "windows", "renamed", "pieces"],
    "nan_before": ["pdsh", "pieces"],
    "oom_before": ["k8s", "pieces"],
}


def rank_of(line):
    found = re.search(r"\[[Rr]ank ?(\d+)\]", line)
    return int(found[1]) if found else 0


def rewritten(wrap):
    def write(folder, text):
        (folder / "train.log").write_text("".join(wrap(rank_of(line), line) for line in text.splitlines(keepends=True)))

    return write


def pieces(folder, text):
    lines = text.splitlines(keepends=True)
    size = len(lines) // 3 + 1
    for number in range(3):  # logrotate: the oldest has the highest number
        part = "".join(lines[number * size : (number + 1) * size])
        (folder / ("train.log" if number == 2 else f"train.log.{2 - number}")).write_text(part)


FORMS = {
    "plain": rewritten(lambda _rank, line: line),
    "pdsh": rewritten(lambda _rank, line: f"node0: {line}"),
    "srun": rewritten(lambda _rank, line: f"0: {line}"),
    "k8s": rewritten(lambda _rank, line: f"2026-12-02T07:40:43.5Z stdout F {line}"),
    "gzip": lambda folder, text: (folder / "train.log.gz").write_bytes(gzip.compress(text.encode())),
    "windows": lambda folder, text: (folder / "train.log").write_bytes(text.replace("\n", "\r\n").encode()),
    "renamed": lambda folder, text: (folder / "nohup.out").write_text(text),
    "pieces": pieces,
}


@pytest.fixture(scope="module")
def verdict(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    runs = {}
    for run, forms in CASES.items():
        text = (shared / "data" / "runs" / run / "train.log").read_text()
        for form in ["plain", *forms]:
            home = folder / "in" / f"{run}_{form}"
            home.mkdir(parents=True)
            FORMS[form](home, text)
            runs[home.name] = home
    ingest(runs, folder / "store")

    @cache
    def judged(name):
        primary = diagnose(Session(Store(folder / "store"), [name]))["primary"]
        return primary and (primary["fault"], primary["culprit_ranks"], primary["onset_step"])

    return judged


@pytest.mark.parametrize(("run", "form"), [(run, form) for run, forms in CASES.items() for form in forms])
def test_diagnosis_does_not_depend_on_the_form(verdict, run, form):
    assert verdict(f"{run}_{form}") == verdict(f"{run}_plain")
