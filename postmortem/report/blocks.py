"""The verdicts in numbers: step time, its phases, failures, memory and loss of one run or two, each with its n and query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.report import words
from postmortem.report.model import Block, Document, Table, text

PAIR = ("before", "after")
SIDES = (*PAIR, "run")
MEMORY_ROWS = 12


def blocks(document: Document) -> list[Block]:
    """Every block that the document has numbers for."""
    makers = (_step_time, _phases, _stragglers, _stability, _loss, _gradient, _memory)
    return [block for make in makers if (block := make(document)) is not None]


def _part(document: Document, name: str) -> Document:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _sides(document: Document) -> Sequence[str]:
    return ("run",) if "run" in document else PAIR


def _head(names: Sequence[str]) -> Sequence[str]:
    return ("measure", *names) if len(names) > 1 else ("measure", "value")


def _query(part: Document) -> list[str]:
    return [str(part["query"])] if part.get("query") else []


def _verdict(part: Document) -> str:
    return text(part.get("verdict"))


def _ms(value: Any) -> str:
    seconds = words.finite(value)
    return "—" if seconds is None else f"{words.number(seconds * 1e3)} ms"


def _ms_between(pair: Any) -> str:
    scaled = [None if words.finite(v) is None else v * 1e3 for v in pair or []]
    spread = words.interval(scaled)
    return f" ({spread})" if spread else ""


def _step_time(document: Document) -> Block | None:
    part, names = _part(document, "throughput"), _sides(document)
    sides = [part.get("sides", {}).get(side) or {} for side in names]
    if not any(side.get("typical_seconds") is not None for side in sides):
        return None
    n = list(part.get("n") or ()) or [None] * len(names)
    effective = list(part.get("n_effective") or ()) or [None] * len(names)
    rows = [
        ("typical step", *(_ms(s.get("typical_seconds")) + _ms_between(s.get("typical_ci")) for s in sides)),
        *((f"{p[1:]}th percentile", *(_tail(s.get(p)) for s in sides)) for p in ("p95", "p99")),
        ("jitter (median change from step to step)", *(_percent(s.get("jitter")) for s in sides)),
        ("time per 1,000 steps, all included", *(_seconds(s.get("seconds_per_1000_steps")) for s in sides)),
        ("steps counted", *(words.number(v) for v in n)),
        ("of them independent", *(words.number(v, 2) for v in effective)),
        ("steps set aside", *(_set_aside(s.get("set_aside")) for s in sides)),
        ("change points", *(_points(s.get("changes")) for s in sides)),
    ]
    return Block("Step time", _verdict(part), text(part.get("why")), Table(_head(names), rows), _query(part))


def _tail(part: Any) -> str:
    if not isinstance(part, Mapping):
        return "—"
    return _ms(part.get("estimate")) + _ms_between(part.get("ci"))


def _percent(value: Any) -> str:
    share = words.finite(value)
    return "—" if share is None else f"{words.number(share * 100)} %"


def _seconds(value: Any) -> str:
    return "—" if words.finite(value) is None else f"{words.number(value)} s"


def _set_aside(parts: Any) -> str:
    return ", ".join(f"{k} {words.number(v)}" for k, v in (parts or {}).items()) or "none"


def _points(parts: Any) -> str:
    said = [
        f"step {words.number(c.get('step'))}: {words.number(c.get('ratio'))} times as long"
        + (" (passes)" if c.get("transient") else "")
        for c in parts or []
    ]
    return "; ".join(said[:6]) or "none"


def _phases(document: Document) -> Block | None:
    phases = _part(document, "throughput").get("phases") or []
    if not phases:
        return None
    rows = [
        (text(p.get("phase")), _ms(p.get("before_seconds")), _ms(p.get("after_seconds")), _ms(p.get("difference")),
         f"{words.number(p.get('before_steps'))} and {words.number(p.get('after_steps'))}")
        for p in phases
    ]  # fmt: skip
    head = ("phase", "before", "after", "adds to the step", "n")
    said = "What each phase adds to or takes from the time of a step; the changes add up to that of the step."
    return Block(
        "Phases that carry the change", "", said, Table(head, rows[:24], max(0, len(rows) - 24)), ["phases_compared"]
    )


def _stragglers(document: Document) -> Block | None:
    part = _part(document, "stragglers")
    if not part:
        return None
    rows = [(f"rank {row['rank']}", *(_held(row, side) for side in PAIR)) for row in part.get("ranks") or []]
    table = Table(("who", "before", "after"), rows)
    return Block("Who makes the others wait", _verdict(part), text(part.get("why")), table, _query(part))


def _held(row: Document, side: str) -> str:
    if row.get(f"{side}_ms") is None:
        return "—"
    host = f" on {row[f'{side}_host']}" if row.get(f"{side}_host") else ""
    steps = f"last in {row[f'{side}_led']} of {row[f'{side}_steps']} steps"
    return f"{words.number(row[f'{side}_ms'])} ms of a step, {steps}{host}"


def _stability(document: Document) -> Block | None:
    part = _part(document, "stability")
    if part.get("clean_steps_after") is None:
        return None
    incidents, steps = part.get("incidents_before"), part.get("steps_before")
    rate = words.finite(part.get("failure_rate_before"))
    bound = words.finite(part.get("upper_bound_after"))
    spread = words.interval(part.get("failure_rate_before_ci"))
    rows = [
        ("incidents before", f"{words.number(incidents)} in {words.number(steps)} steps" if incidents is not None else "—"),
        ("failures per step before", (words.number(rate) + (f" ({spread})" if spread else "")) if rate is not None else "—"),
        ("clean steps after", words.number(part.get("clean_steps_after"))),
        ("clean steps needed", words.number(part["needed"]) if part.get("needed") is not None else "none: no incident before"),
        ("failures per step after, at most", words.number(bound) if bound is not None else "—"),
    ]  # fmt: skip
    return Block("Failures", _verdict(part), text(part.get("why")), Table(("measure", "value"), rows), _query(part))


def _memory(document: Document) -> Block | None:
    found = [row for row in document.get("memory") or [] if isinstance(row, Mapping)]
    if not found:
        return None
    ordered = sorted(found, key=lambda row: (_calm(row), not _measured(row), -_steepest(row)))
    telling = sum(not _calm(row) for row in ordered)
    shown = ordered[: max(telling, 4)][:MEMORY_ROWS]
    names = _sides(document)
    if len(names) > 1:
        head: Sequence[str] = ("memory", "slope before", "slope after", "before is", "after is", "verdict")
        rows = [(*_memory_row(row, names), _verdict(row)) for row in shown]
        queries = ["memory_slopes_compared"]
    else:
        head, rows, queries = (
            ("memory", "slope", "it is"),
            [_memory_row(row, names) for row in shown],
            ["memory_slopes"],
        )
    return Block("Memory growth", "", "", Table(head, rows, len(found) - len(shown)), queries)


def _measured(row: Document) -> bool:
    """Whether a side has enough steps to be called anything."""
    return any((row.get(side) or {}).get("kind") not in {None, "undecided"} for side in SIDES)


def _calm(row: Document) -> bool:
    if "run" in row:
        return (row["run"] or {}).get("kind") != "growing"
    return row.get("verdict") in {"no change", "flat", "undecided"}


def _steepest(row: Document) -> float:
    return max(words.finite((row.get(side) or {}).get("slope")) or 0.0 for side in SIDES)


def _memory_row(row: Document, names: Sequence[str]) -> tuple[str, ...]:
    unit = text(row.get("unit"), "B/step")
    said = (_kind(row.get(side) or {}) for side in names)
    where = f"{text(row.get('kind')).replace('_', ' ')}, {words.ranks([row.get('rank')]) or 'job'}"
    return where, *(_slope(row.get(side), unit) for side in names), *said


def _kind(part: Document) -> str:
    kind, why = text(part.get("kind")), text(part.get("why"))
    if not kind:
        return "—"
    return (f"{kind}: {why}" if why and kind != "flat" else kind) + _full(part.get("full_in"))


def _full(value: Any) -> str:
    """Steps and hours until the memory is full, each with its interval."""
    if not isinstance(value, Mapping):
        return ""
    said = [
        f"{words.number(value[unit], 2)} {unit} ({words.interval(value.get(f'{unit}_ci'))})"
        for unit in ("steps", "hours") if words.finite(value.get(unit)) is not None
    ]  # fmt: skip
    return f"; full in {', '.join(said)}" if said else ""


def _slope(part: Any, unit: str) -> str:
    if not isinstance(part, Mapping) or part.get("slope") is None:
        return "—"
    spread, n = words.interval(part.get("ci"), unit), part.get("n")
    notes = [spread, f"n = {words.number(n)}" if n is not None else ""]
    shown = ", ".join(filter(None, notes))
    return words.amount(part["slope"], unit) + (f" ({shown})" if shown else "")


def _loss(document: Document) -> Block | None:
    part, names = _part(document, "loss"), _sides(document)
    sides: list[Document] = [part.get(side) or {} for side in names]
    if not any(side.get("steps") or side.get("overflows") for side in sides):
        return None
    rows = [
        ("last loss", *(_plain(s, "last_loss") for s in sides)),
        ("steps with a loss", *(_plain(s, "steps") for s in sides)),
        ("not finite from step", *(_plain(s, "first_not_finite", "never") for s in sides)),
        ("spikes", *(_spikes(s.get("spikes") or []) for s in sides)),
        ("overflows", *(_overflows(s) for s in sides)),
        ("loss scale, first to last", *(_scale(s.get("loss_scale")) for s in sides)),
    ]
    equal = part.get("equal_in_print_until")
    said = text(part.get("why")) + (
        f"; equal to the last printed digit until step {words.number(equal)}" if equal is not None else ""
    )
    return Block("Loss", _verdict(part), said, Table(_head(names), rows), _query(part))


def _spikes(found: Sequence[Any]) -> str:
    said = [
        f"step {words.number(spike.get('peak_step'))}: {words.number(spike.get('baseline'))} to {words.number(spike.get('highest'))},"
        f" {text(spike.get('kind'))}"
        + (f" at {words.number(spike['recovered_step'])}" if spike.get("recovered_step") is not None else "")
        for spike in found[:4]
    ]
    return "none" if not found else "; ".join(said) + (f"; {len(found) - 4} more" if len(found) > 4 else "")


def _overflows(side: Document) -> str:
    count, steps = words.finite(side.get("overflows")), words.finite(side.get("steps"))
    if not count or not steps:
        return _plain(side, "overflows")
    return f"{words.number(count)} ({words.number(100 * count / steps)} per 100 steps)"


def _gradient(document: Document) -> Block | None:
    part, names = _part(document, "gradient"), _sides(document)
    sides: list[Document] = [part.get(side) or {} for side in names]
    if not any(side.get("steps") for side in sides):
        return None
    rows = [
        ("typical norm", *(_plain(s, "typical") for s in sides)),
        ("highest norm", *(_highest(s) for s in sides)),
        ("not finite from step", *(_plain(s, "first_not_finite", "never") for s in sides)),
        ("steps with a norm", *(_plain(s, "steps") for s in sides)),
    ]
    return Block("Gradient norm", _verdict(part), text(part.get("why")), Table(_head(names), rows), _query(part))


def _highest(side: Document) -> str:
    if side.get("highest") is None:
        return "—"
    return f"{words.number(side['highest'])} at step {words.number(side.get('highest_step'))}"


def _plain(side: Any, key: str, otherwise: str = "—") -> str:
    value = (side or {}).get(key)
    return otherwise if value is None else words.number(value)


def _scale(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("first") is None:
        return "—"
    return f"{words.number(part['first'])} to {words.number(part.get('last'))}, least {words.number(part.get('least'))}"
