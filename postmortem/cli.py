"""The command line: arguments and exit codes, nothing else. Heavy imports stand inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from postmortem import console
from postmortem.errors import FoundError, PostmortemError

if TYPE_CHECKING:
    from postmortem.query import Session


def _default_store() -> Path:
    """The store that postmortem.toml in the working directory names, else .postmortem."""
    import tomllib

    settings = Path("postmortem.toml")
    try:
        return Path(tomllib.loads(settings.read_text()).get("store", ".postmortem"))
    except FileNotFoundError:
        return Path(".postmortem")
    except (OSError, ValueError, TypeError) as error:
        raise PostmortemError(f"{settings} cannot be read: {error}.") from error


_store = click.option(
    "--store", type=click.Path(path_type=Path), default=_default_store, envvar="POSTMORTEM_STORE",
    show_default=".postmortem", help="Folder of the ingested runs.",
)  # fmt: skip
_jobs = click.option("-j", "--jobs", type=click.IntRange(1), help="Worker processes; default one per core.")
_engine = click.option("--engine", "url", default="local://", help="local://, dask://host:port or dask+file:///path.")
_checkpoints = click.option(
    "--checkpoints", type=click.Choice(["structure", "deep"]), default="structure",
    help="deep also reads every tensor of the checkpoints.",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="train-postmortem", message="postmortem %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
def cli(debug: bool) -> None:
    """Post-mortem analysis of DeepSpeed and PyTorch distributed training runs, offline."""
    del debug  # read from the context by main()


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN_DIR...")
@_store
@_jobs
@_engine
@_checkpoints
@click.option("--strict", is_flag=True, help="Exit with 1 if anything could not be read.")
@click.option("--rank-map", type=click.Path(path_type=Path), help='TOML file of "pattern of paths" = rank.')
def ingest(
    runs: tuple[str, ...], store: Path, jobs: int | None, url: str, checkpoints: str, strict: bool,
    rank_map: Path | None,
) -> None:  # fmt: skip
    """Read the folders of runs into the store. label=path names a run."""
    from postmortem.runs import ingest_folders, read_rank_map, summary

    options = {"checkpoints": checkpoints} | ({"rank_map": read_rank_map(rank_map)} if rank_map else {})
    outcomes = ingest_folders(runs, store, url=url, jobs=jobs, options=options)
    console.result(summary(outcomes))
    if strict and any(outcome.issues for found in outcomes.values() for outcome in found):
        raise FoundError("Something could not be read.", "See `postmortem query issues`.")


@cli.command()
@click.argument("run", required=False)
@click.option("--html", type=click.Path(path_type=Path), help="Write the report of this run.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the report as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the diagnosis as JSON.")
@click.option("--static", is_flag=True, help="Leave every script out of the report.")
@click.option("--redact", is_flag=True, help="Replace hosts, users, addresses and paths in the report.")
@_store
def diagnose(
    run: str | None,
    html: Path | None,
    markdown: Path | None,
    as_json: bool,
    static: bool,
    redact: bool,
    store: Path,
) -> None:
    """One run: fault, culprit, causes, next experiments. RUN is a name in the store or a folder."""
    from postmortem import diagnosis, runs
    from postmortem.compare import measures
    from postmortem.report import write

    session = runs.open_runs(store, [run] if run else [], wanted=1)
    document = diagnosis.diagnose(session) | measures(session)
    write(document, session, html=html, markdown=markdown, as_json=as_json, static=static, redact=redact)


_VERDICTS = ("fixed", "not fixed", "masked", "regressed", "no change", "undecided")


def _verdicts(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    """The verdicts of `--fail-on`; a misspelt one would make a gate that never closes."""
    named = [" ".join(word.split()) for word in value.lower().replace("_", " ").split(",") if word.strip()]
    for word in named:
        if word not in _VERDICTS:
            raise click.BadParameter(f"{word} is no verdict; there are: {', '.join(_VERDICTS)}.", context, parameter)
    return named


@cli.command()
@click.argument("runs", nargs=-1, metavar="[BEFORE AFTER]")
@click.option("-o", "--output", "html", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True)
@click.option("--static", is_flag=True, help="Leave every script out of the report.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the report as Markdown.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON; no HTML unless -o is given.")
@click.option("--redact", is_flag=True, help="Replace hosts, users, addresses and paths in the report.")
@click.option(
    "--fail-on", default="", callback=_verdicts, help="Exit with 1 on one of these verdicts, separated by commas."
)
@click.option(
    "--bound", type=click.FloatRange(0, 1, min_open=True), default=0.03, show_default=True,
    help="Relative difference of step times within which two runs are equivalent.",
)  # fmt: skip
@click.option(
    "--run-noise", type=click.FloatRange(0, 1), default=0.01, show_default=True,
    help="Standard deviation of step times between runs of one job; `postmortem noise` measures it.",
)  # fmt: skip
@_store
@click.pass_context
def compare(
    context: click.Context, runs: tuple[str, ...], html: Path | None, static: bool, markdown: Path | None,
    as_json: bool, redact: bool, fail_on: list[str], bound: float, run_noise: float, store: Path,
) -> None:  # fmt: skip
    """Two runs, before and after a fix. Without arguments: the two runs of the last ingest.

    A side may be several runs of the same job: before=a,b,c after=d,e.
    """
    from postmortem import compare as comparison
    from postmortem import runs as inputs
    from postmortem.report import write

    session, further = inputs.open_sides(store, list(runs))
    document = comparison.compare(session, bound=bound, run_noise=run_noise, further=further)
    given = context.get_parameter_source("html") is not click.core.ParameterSource.DEFAULT
    html = html if given or not as_json else None
    write(document, session, html=html, markdown=markdown, as_json=as_json, static=static, redact=redact)
    if document["verdict"] in fail_on:
        raise FoundError(f"The verdict is {document['verdict']}: {document['why']}")


@cli.command()
@click.argument("name", required=False)
@click.option("--sql", help="SQL of your own over all tables and views.")
@click.option("--param", "params", multiple=True, metavar="K=V", help="Value of a query's parameter.")
@click.option("--run", "names", multiple=True, help="Runs to ask; default: those of the last ingest.")
@click.option("--format", "style", type=click.Choice(["table", "csv", "json", "parquet"]), default="table")
@_store
def query(
    name: str | None,
    sql: str | None,
    params: tuple[str, ...],
    names: tuple[str, ...],
    style: str,
    store: Path,
) -> None:
    """Ask a named query, or SQL of your own."""
    from postmortem import output, runs

    if (name is None) == (sql is None):
        raise PostmortemError("Give either the name of a query or --sql.", "`postmortem queries` lists the names.")
    session = runs.open_runs(store, list(names), wanted=None)
    rows = session.sql(sql) if sql else _ask(session, name or "", params)
    output.print_rows(rows, style)


def _ask(session: Session, name: str, params: tuple[str, ...]) -> Any:
    from postmortem.query import find

    pairs = dict(pair.split("=", 1) for pair in params if "=" in pair)
    if len(pairs) != len(params):
        raise PostmortemError("A parameter is given as --param name=value.")
    declared = find(name).params
    runs = {"before": session.runs[0], "after": session.runs[-1]}
    return session.run(name, **({k: v for k, v in runs.items() if k in declared} | pairs))


@cli.command()
def queries() -> None:
    """List what there is to ask."""
    from postmortem import output

    console.result(output.list_queries())


@cli.command()
def tables() -> None:
    """List the tables and their columns."""
    from postmortem import output

    console.result(output.list_tables())


@cli.command()
@click.argument("run")
@click.option("--unrecognised", is_flag=True, help="Shapes of the lines that no format knows, most frequent first.")
@click.option("--alarming", is_flag=True, help="Only shapes with words such as error, killed or NaN.")
@click.option("--format", "style", type=click.Choice(["table", "csv", "json", "parquet"]), default=None)
@_store
def lines(run: str, unrecognised: bool, alarming: bool, style: str | None, store: Path) -> None:
    """Show the log lines of a run, or the shapes of those that no format knows."""
    from postmortem import output, runs
    from postmortem.unrecognised import shapes

    session = runs.open_runs(store, [run], wanted=1)
    if unrecognised or alarming:
        output.print_rows(shapes(session, alarming=alarming), style or "table")
        return
    rows = session.sql("SELECT * EXCLUDE (run_id) FROM lines ORDER BY source, line, part")
    output.print_rows(rows, style) if style else output.print_lines(rows)


@cli.command()
def formats() -> None:
    """List what can be read."""
    from postmortem import output

    console.result(output.list_formats())


@cli.command()
@click.argument("run")
@click.option("--duckdb", "file", type=click.Path(path_type=Path), required=True, help="File to write.")
@_store
def export(run: str, file: Path, store: Path) -> None:
    """Write all tables and views of a run into one DuckDB file."""
    from postmortem import output, runs

    output.export(runs.open_runs(store, [run], wanted=1), file)
    console.result(str(file))


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@_store
def noise(runs: tuple[str, ...], as_json: bool, store: Path) -> None:
    """Run-to-run noise of healthy runs of one job, for the verdicts of compare."""
    import json

    from postmortem import runs as inputs
    from postmortem.compare import noise as measure

    found = measure(inputs.open_runs(store, list(runs), wanted=None))
    for entry in found["runs"] if not as_json else ():
        typical = entry["typical_seconds"]
        shown = "no step times" if typical is None else f"{typical:.4g} s per step over {entry['n']} steps"
        console.result(f"{entry['run']}: {shown}")
    console.result(json.dumps(found) if as_json else found["statement"])


@cli.command()
@click.argument("run", required=False)
@click.option(
    "-o", "--output", "file", type=click.Path(path_type=Path), default=Path("timeline.json.gz"), show_default=True
)
@_store
def timeline(run: str | None, file: Path, store: Path) -> None:
    """Put the traces of all ranks on one corrected clock, for ui.perfetto.dev."""
    from postmortem import runs
    from postmortem import timeline as writer

    writer.write(runs.open_runs(store, [run] if run else [], wanted=1), file)
    console.result(str(file))


@cli.command()
@click.argument("run")
@_store
def crosscheck(run: str, store: Path) -> None:
    """Compare torch-tb-profiler's numbers on a run's traces with ours (extra [tensorboard]).

    RUN is a name in the store or a folder. The trace files themselves are read again, where they lay at ingest.
    """
    import pyarrow as pa

    from postmortem import crosscheck as opinion
    from postmortem import output, runs

    found = opinion.crosscheck(runs.open_runs(store, [run], wanted=1))
    output.print_rows(pa.Table.from_pylist([row._asdict() for row in found]), "table")


@cli.command()
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), default=Path("demo"), show_default=True)
def demo(folder: Path) -> None:
    """Ingest and compare the sample pair, and write its report."""
    from postmortem import compare as comparison
    from postmortem import resources, runs
    from postmortem.report import write

    samples = resources.folder("sample_traces")
    before, after = sorted(samples.glob("straggler/*/"), reverse=True)
    session = runs.open_runs(folder / "store", [str(before), str(after)], wanted=2)
    document = comparison.compare(session)
    report = folder / "report.html"
    write(document, session, html=report)
    console.result(str(report.resolve()))


def main() -> None:
    """Run the command line; every error of ours is one sentence and an exit code."""
    run: Callable[..., Any] = cli.main
    try:
        sys.exit(run(standalone_mode=False) or 0)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        console.message("Stopped. What was finished is kept; run the same command again to go on.")
        sys.exit(130)
    except PostmortemError as error:
        _explain(error)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 (the outermost frame: a bug still gives one sentence)
        _explain(PostmortemError(f"Internal error: {type(error).__name__}: {error}.", "Run again with --debug."))
        sys.exit(2)


def _explain(error: PostmortemError) -> None:
    if "--debug" in sys.argv:
        import traceback

        traceback.print_exc()
    console.message(f"postmortem: {error}")
