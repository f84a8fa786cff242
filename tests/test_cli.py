"""The command line: what it promises about exit codes, output, imports, the network and the README."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from evidence import ROOT

from postmortem import cli

HEAVY = {"polars", "pyarrow", "duckdb", "altair", "numpy", "scipy", "vl_convert", "drain3", "jinja2"}
SAMPLES = ROOT / "sample_traces"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own, as a user starts it."""
    return subprocess.run(
        [sys.executable, "-m", "postmortem", *map(str, arguments)],
        cwd=cwd or ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_help_imports_no_heavy_library() -> None:
    script = (
        "import sys\nfrom postmortem.cli import cli\n"
        "try:\n    cli(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('loaded:', *sorted(name for name in sys.modules if '.' not in name))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.rsplit("loaded:", 1)[1].split())
    assert "click" in loaded
    assert loaded & HEAVY == set()


def test_the_readme_documents_every_command_and_no_other() -> None:
    documented = set(re.findall(r"^\| `postmortem (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert documented == set(cli.cli.commands)


def test_every_long_option_in_the_readme_exists() -> None:
    lines = re.findall(r"`?postmortem (\w+)([^\n]*)", (ROOT / "README.md").read_text())
    for command, rest in lines:
        if command in cli.cli.commands:
            known = {name for option in cli.cli.commands[command].params for name in option.opts}
            assert set(re.findall(r"(?<![\w-])--[a-z-]+", rest)) - {"--debug"} <= known, command


@pytest.mark.parametrize("name", sorted(cli.cli.commands))
def test_every_command_and_option_explains_itself(name: str) -> None:
    command = cli.cli.commands[name]
    assert command.help
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help or option.opts in (["-o", "--output"], ["--format"]), option.opts


@pytest.mark.parametrize("name", ["queries", "tables", "formats"])
def test_listings_need_no_store(name: str, tmp_path: Path) -> None:
    done = run(name, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["diagnose", "nowhere"], "neither a run in"),
        (["compare"], "Nothing was ingested"),
        (["query", "no_such_query", "--store", "S"], "Nothing was ingested"),
        (["query"], "Give either"),
        (["ingest", "nowhere"], "There is no folder nowhere"),
        (["ingest"], "Missing argument"),
        (["no-such-command"], "No such command"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def invoke(*arguments: str | Path) -> Result:
    """The command in this process, so that a test can watch what it does."""
    result = CliRunner().invoke(cli.cli, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_ingest_and_compare_open_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Blocked(socket.socket):
        def __init__(self, *arguments: object, **_: object) -> None:
            raise AssertionError(f"a socket was asked for: {arguments}")

    monkeypatch.setattr(socket, "socket", Blocked)
    monkeypatch.setattr(socket, "getaddrinfo", Blocked)
    store, report = tmp_path / "store", tmp_path / "report.html"
    invoke("ingest", f"a={SAMPLES / 'exc/before'}", f"b={SAMPLES / 'exc/after'}", "--store", store, "-j", "1")
    invoke("compare", "a", "b", "--store", store, "-o", report)
    assert report.stat().st_size > 1000


def test_demo_ends_with_the_path_of_a_report(tmp_path: Path) -> None:
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = Path(done.stdout.splitlines()[-1])
    assert report.is_absolute()
    assert report.read_text().lstrip().lower().startswith("<!doctype html>")


def test_a_gate_fails_on_its_verdict_only_and_python_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run("ingest", SAMPLES / "oom_masked/before", SAMPLES / "oom_masked/after", cwd=tmp_path)
    for verdicts, code in (("masked,regressed", 1), ("not fixed", 0)):
        done = run("compare", "before", "after", "--json", "--fail-on", verdicts, cwd=tmp_path)
        document = json.loads(done.stdout)
        assert document["verdict"] == "masked"
        assert done.returncode == code, done.stderr
    misspelt = run("compare", "before", "after", "--fail-on", "regresed", cwd=tmp_path)
    assert misspelt.returncode == 2
    assert "regresed is no verdict" in misspelt.stderr
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == f"{document['verdict']} {document['why']}\n"
