"""Numbers, verdicts and terms as a reader sees them: the same words in HTML and Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

# verdict word -> (symbol, tone). The tone picks a colour; the symbol carries the same fact without colour.
VERDICTS: Mapping[str, tuple[str, str]] = {
    "fixed": ("✓", "good"),
    "no change": ("=", "good"),
    "not fixed": ("✗", "bad"),
    "regressed": ("▲", "bad"),
    "masked": ("◐", "warn"),
    "undecided": ("?", "unknown"),
    "faster": ("▼", "good"),
    "slower": ("▲", "bad"),
    "equivalent": ("=", "good"),
    "identical": ("=", "good"),
    "different": ("≠", "warn"),
    "no difference shown": ("=", "good"),
    "growing": ("▲", "bad"),
    "flat": ("=", "good"),
    "fault": ("✗", "bad"),
    "no fault found": ("✓", "good"),
}
FAULTS: Mapping[str, str] = {
    "oom": "out of memory",
    "nan_inf": "NaN or infinity",
    "comm_hang": "communication hang",
    "throughput": "lost throughput",
    "crash": "crash",
    "silent": "silent corruption",
}
GLOSSARY: Mapping[str, str] = {
    "rank": "One process of the job; ranks are numbered from 0 over all hosts.",
    "step": "One optimizer step of the whole job.",
    "onset": "The first step at which the fault shows in the evidence.",
    "interval": "Range that holds the true value with 95 % confidence (90 % where stated); steps that depend on each other are counted as fewer.",
    "jitter": "Half of the steps change by more than this from one step to the next.",
    "n": "Number of observations behind a figure.",
    "steady state": "The part of a run after its warm-up, without restarts and scheduled steps such as checkpoints.",
    "masked": "The fault is absent, but another change between the runs hides it whether or not its cause was removed.",
    "undecided": "The runs do not hold enough evidence for either answer.",
    "regressed": "A fault or a slowdown that the run before did not have.",
    "culprit": "Rank that started a fault. Ranks that only waited for it, or died because of it, are not named.",
    "cascade": "What followed from the fault: peers that lost their connection, processes that the launcher ended.",
    "lateness": "How long after the earliest rank a rank reached the same point of the same step.",
    "skew": "Spread between the ranks at the same point of the same step.",
    "slope": "Growth per step, fitted so that single outliers do not move it.",
    "leak": "Memory that grows with every step and does not level off.",
    "Flight Recorder": "PyTorch's record of the last collectives of each rank, written when a watchdog fires.",
    "collective": "Operation that all ranks of a group enter together, for example an all-reduce.",
    "watchdog": "Thread of PyTorch that ends the process when a collective takes longer than its timeout.",
    "M4": "Down-sampling that keeps the first, last, lowest and highest value of every slice, so no spike is lost.",
    "clean steps": "Steps without the fault in the run after the change.",
    "twin": "Run of the same job with the same seed, data and configuration.",
}


def symbol(word: str) -> str:
    """The sign beside a verdict."""
    return VERDICTS.get(word, ("·", "unknown"))[0]


def tone(word: str) -> str:
    """good, bad, warn or unknown."""
    return VERDICTS.get(word, ("·", "unknown"))[1]


def fault(name: Any) -> str:
    """A fault class in words."""
    return FAULTS.get(str(name), str(name or "fault"))


def finite(value: Any) -> float | None:
    """The value as a finite float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def number(value: Any, digits: int = 3) -> str:
    """A number with `digits` significant digits, no exponent between 0.001 and a million."""
    x = finite(value)
    if x is None:
        return "unknown" if value is None else str(value)
    if x == int(x) and abs(x) < 1e15:
        return f"{int(x):,}"
    size = math.floor(math.log10(abs(x)))
    if -4 < size < 6:
        return f"{x:,.{max(0, digits - 1 - size)}f}"
    return f"{x:.{digits - 1}e}"


_SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def size(value: Any) -> str:
    """Bytes with a unit."""
    x = finite(value)
    if x is None:
        return number(value)
    for unit, scale in _SIZES:
        if abs(x) >= scale:
            return f"{number(x / scale)} {unit}"
    return f"{number(x)} B"


def amount(value: Any, unit: str = "") -> str:
    """A number with its unit; bytes are scaled."""
    if unit.split("/", maxsplit=1)[0] == "B":
        rest = unit[1:]
        return size(value) + rest
    return f"{number(value)} {unit}".strip()


def interval(pair: Any, unit: str = "") -> str:
    """`low to high`, or nothing where there is no interval."""
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        return ""
    low, high = (amount(v, unit) if v is not None else "unbounded" for v in pair)
    return f"{low} to {high}"


def ranks(values: Any, most: int = 12) -> str:
    """`rank 3`, `ranks 0, 1, 2`, or `ranks 0 to 15`, shortened after `most` ranks."""
    numbers = sorted({int(v) for v in values or [] if finite(v) is not None})
    if not numbers:
        return ""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"ranks {numbers[0]} to {numbers[-1]}"
    shown = ", ".join(map(str, numbers[:most]))
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"rank{'s' if len(numbers) > 1 else ''} {shown}{more}"


def when(value: Any) -> str:
    """A time, given as ns since the epoch or as text, in UTC."""
    x = finite(value)
    if x is None:
        return str(value) if value else ""
    try:
        return datetime.fromtimestamp(x / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def plain(value: Any, most: int = 160) -> str:
    """Any JSON value as short text."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "true" if value else "false"
    if finite(value) is not None:
        return number(value, 6)
    if isinstance(value, list | tuple):
        return cut(", ".join(plain(v) for v in value), most)
    if isinstance(value, Mapping):
        return cut(", ".join(f"{k}: {plain(v)}" for k, v in value.items()), most)
    return cut(str(value), most)


def sentence(text: str) -> str:
    """The text with a capital letter, unless it begins with a name such as `host_rss`."""
    first = text.partition(" ")[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def of(side: str, mark: str = ": ") -> str:
    """The name of a side before what is said of it; the only run of a diagnosis needs none."""
    return "" if side == "run" else f"{side}{mark}"


def cut(text: Any, most: int = 400) -> str:
    """The text, shortened to `most` characters, with what hides or reorders text made visible."""
    shown = _HIDDEN.sub("\ufffd", str(text)[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


# What XML 1.0 does not allow (vl-convert aborts the whole process on it), and bidirectional overrides, which make a
# line read as something else (Unicode Technical Report 36).
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(value: Any, most: int = 2000) -> Any:
    """A JSON value with every text in it cut to `most` characters and free of hidden ones, keys included."""
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, Mapping):
        return {cut(key, most): printable(item, most) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item, most) for item in value]
    return value
