"""What the user typed -> runs in the store: labels, folders that were not ingested yet, the last pair."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from postmortem import ingest as ingesting
from postmortem.errors import InputError, PostmortemError
from postmortem.ingest import Outcome
from postmortem.query import Session, keep
from postmortem.store import Store, run_name


def ingest_folders(
    texts: Sequence[str],
    store: Path,
    *,
    url: str = "local://",
    jobs: int | None = None,
    options: Mapping[str, str] | None = None,
) -> dict[str, list[Outcome]]:
    """Ingest folders given as `path` or `label=path`.

    Raises:
        InputError: a folder is missing, empty or unknown, or two folders want the same name.

    """
    pairs = [_label(text) for text in texts]
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InputError("Two folders have the same name.", "Give each a label: before=a/run after=b/run.")
    outcomes = ingesting.ingest(dict(pairs), store, url=url, jobs=jobs, options=options)
    for name in outcomes:
        keep(Store(store), name)
    return outcomes


def read_rank_map(file: Path | None) -> str:
    """Read a rank map, a TOML file of `"pattern of paths" = rank`, and return it as JSON.

    Raises:
        InputError: it cannot be read, or a rank is no number.
    """
    if file is None:
        return ""
    try:
        ranks = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"The rank map {file} cannot be read: {error}.") from error
    if not all(isinstance(rank, int) and rank >= 0 for rank in ranks.values()):
        raise InputError(f'The rank map {file} must hold lines like "worker3/*.json.gz" = 3.')
    return json.dumps(ranks)


def _label(text: str) -> tuple[str, Path]:
    label, equals, path = text.partition("=")
    if equals and not Path(text).exists():
        return run_name(label), Path(path)
    return run_name(Path(text).resolve().name), Path(text)


def open_runs(store: Path, texts: Sequence[str], *, wanted: int | None) -> Session:
    """Open a session on the runs that were named; without names, on those of the last ingest.

    Args:
        store: the store's folder.
        texts: names of runs in the store, or folders, which are ingested first.
        wanted: how many runs the command needs, or None for any number.

    Raises:
        PostmortemError: another number of runs was given than the command needs.

    """
    home = Store(store)
    names = [_ensure(home, text) for text in texts] if texts else home.last()
    if wanted is not None and len(names) != wanted:
        said = ", ".join(names) or "none"
        need = "one run" if wanted == 1 else "two runs, before and after"
        raise PostmortemError(f"This command needs {need}; given: {said}.", "Name them, or their folders.")
    if len(set(names)) < len(names):
        raise PostmortemError(f"The run {names[0]} was given twice.", "Name two different runs.")
    return Session(home, names)


def open_sides(store: Path, texts: Sequence[str]) -> tuple[Session, tuple[list[str], list[str]]]:
    """Open a session on the runs before and after; a side may hold several: `before=a,b,c after=d,e`.

    Returns:
        The session on the first run of each side, and the further runs of each.

    Raises:
        PostmortemError: there are not two sides, or a run stands on both.

    """
    if not any(_several(text) for text in texts):
        return open_runs(store, texts, wanted=2), ([], [])
    if len(texts) != 2:
        raise PostmortemError("Give two sides: before=a,b,c after=d,e.", "A side is one run, or several with commas.")
    home = Store(store)
    before, after = ([_ensure(home, name) for name in _several(text) or [text]] for text in texts)
    names = [*before, *after]
    if len(set(names)) < len(names):
        raise PostmortemError("A run was given twice.", "Name different runs.")
    return Session(home, [before[0], after[0]]), (before[1:], after[1:])


def _several(text: str) -> list[str]:
    """The runs of `label=a,b,c`, or nothing where the text names one run or folder."""
    _, equals, rest = text.partition("=")
    if not equals or "," not in rest or Path(text).exists() or Path(rest).exists():
        return []
    return [name for name in rest.split(",") if name]


def _ensure(store: Store, text: str) -> str:
    if text in store.runs():
        return text
    name, path = _label(text)
    if not path.is_dir() and str(path) in store.runs():  # before=a,b,c after=d
        return str(path)
    if not path.is_dir():
        known = ", ".join(store.runs()) or "none"
        raise InputError(f"{text} is neither a run in {store.path} nor a folder.", f"Known runs: {known}.")
    ingesting.ingest({name: path}, store.path)
    keep(store, name)
    return name


def summary(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """One line per run: files read and not read, rows, issues."""
    lines = []
    for name, found in outcomes.items():
        states = [outcome.status for outcome in found]
        parts = [f"{states.count(state)} {state}" for state in ("read", "partial", "failed", "unknown", "empty")]
        rows, issues = sum(o.rows for o in found), sum(o.issues for o in found)
        shown = ", ".join(part for part in parts if not part.startswith("0 "))
        lines.append(f"{name}: {len(found)} files ({shown}), {rows} rows, {issues} issues")
    return "\n".join(lines)
