"""schemas/faults/*.toml -> what is known about each fault: mechanisms, causes, experiments, what can hide it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from postmortem import resources
from postmortem.errors import DeclarationError

NAMES = ("oom", "nan_inf", "comm_hang", "throughput", "crash", "silent")
MECHANISMS = ("sharding", "communication", "precision", "resources")
DIRECTIONS = ("any", "up", "down", "on", "off")


@dataclass(frozen=True)
class Experiment:
    """One thing to try that would tell a cause from the others."""

    title: str
    change: str
    expect_if_true: str
    expect_if_false: str


@dataclass(frozen=True)
class Cause:
    """A candidate cause: its mechanism, the findings that speak for and against it, and how to isolate it."""

    id: str
    title: str
    mechanism: str
    prior: float
    supports: Mapping[str, str]
    opposes: Mapping[str, str]
    experiments: tuple[Experiment, ...]


@dataclass(frozen=True)
class Mask:
    """A change between two runs that can make the fault go away without mending its cause.

    `key` is the setting's dotted path (the last parts suffice), `direction` how it must move to hide the fault.
    """

    key: str
    direction: str
    why: str


@dataclass(frozen=True)
class Fault:
    """What is known about one class of fault."""

    name: str
    title: str
    doc: str
    kind: str
    causes: tuple[Cause, ...]
    masks: tuple[Mask, ...]


@cache
def faults() -> Mapping[str, Fault]:
    """Every fault by name, in the order of `NAMES`."""
    found = {fault.name: fault for fault in map(load, resources.declarations("schemas", "faults/*.toml"))}
    return {name: found[name] for name in NAMES if name in found}


def load(path: Path) -> Fault:
    """Read and check one fault declaration.

    Raises:
        DeclarationError: it breaks a rule; the message names the file.

    """
    try:
        raw = tomllib.loads(path.read_text())
        causes = tuple(_cause(spec) for spec in raw.get("cause", []))
        masks = tuple(Mask(key, m["direction"], m["why"]) for m in raw.get("mask", []) for key in m["keys"])
        fault = Fault(raw["name"], raw["title"], raw["doc"], raw["kind"], causes, masks)
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DeclarationError(f"{path.name}: not a fault declaration ({error!r}).") from error
    _check(fault, path)
    return fault


def _cause(spec: Mapping[str, Any]) -> Cause:
    experiments = tuple(Experiment(**experiment) for experiment in spec.get("experiment", []))
    return Cause(
        spec["id"], spec["title"], spec["mechanism"], float(spec.get("prior", 0)),
        spec.get("for", {}), spec.get("against", {}), experiments,
    )  # fmt: skip


def _check(fault: Fault, path: Path) -> None:
    broken = []
    if fault.name != path.stem or fault.name not in NAMES:
        broken.append(f"must be named like its file and be one of {NAMES}")
    if fault.kind not in {"incident", "state"}:
        broken.append("kind must be incident (it happens) or state (it lasts)")
    broken += [
        f"cause {c.id}: mechanism must be one of {MECHANISMS}" for c in fault.causes if c.mechanism not in MECHANISMS
    ]
    broken += [f"cause {c.id}: has no experiment" for c in fault.causes if not c.experiments]
    broken += [
        f"mask {m.key}: direction must be one of {DIRECTIONS}" for m in fault.masks if m.direction not in DIRECTIONS
    ]
    if broken:
        raise DeclarationError(f"{path.name}: {'; '.join(broken)}.")
