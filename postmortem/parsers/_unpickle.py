"""Reads pickles without resolving, importing or calling anything that they name.

A machine of our own instead of `pickle.Unpickler`, because that one can be made to allocate without bound
by 6 bytes (LONG_BINPUT with a large index, Modules/_pickle.c of python/cpython) and to overflow the C stack
by hashing nested tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from postmortem.parsers._inert import Global, Inert, Refused
from postmortem.parsers._pickle_machine import Buffer, Machine
from postmortem.parsers._pickle_opcodes import DISPATCH

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_ITEMS", "MAX_MEMORY", "Global", "Inert", "Refused", "check_depth", "load"]

MAX_ITEMS = 1_500_000  # opcodes; about 50,000 tensors, read in well under a second
MAX_BYTES = 1 << 26  # of one pickle
MAX_MEMORY = 64 << 20  # bytes of Python objects, estimated
MAX_DEPTH = 200  # nested containers, for readers that walk the result


def load(
    data: Buffer,
    *,
    start: int = 0,
    classes: Literal["refuse", "inert"] = "refuse",
    persistent: Callable[[Any], Any] | None = None,
    max_items: int = MAX_ITEMS,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    max_memory: int = MAX_MEMORY,
    expected: frozenset[str] = frozenset(),
) -> tuple[Any, int]:
    """Read the pickle that begins at `start`.

    Sets come back as lists, frozensets as tuples, OrderedDict and defaultdict as dict, torch.Size as tuple.

    Args:
        data: the bytes; the pickle may be followed by others.
        start: offset of the pickle's first opcode.
        classes: "refuse" any global, or turn it into `Global` and calls of it into `Inert`.
        persistent: turns a persistent id into a value; None refuses persistent ids.
        max_items: limit of opcodes.
        max_bytes: limit of bytes of the pickle.
        max_depth: limit of containers inside containers in the result.
        max_memory: limit of the estimated size of the Python objects, B.
        expected: full names of classes whose objects may be many: each raises the limits by what it needs itself.

    Returns:
        The value, and the offset after the pickle.

    Raises:
        Refused: it is hostile, larger than a limit, malformed or ends too early.
    """
    machine = Machine(DISPATCH, data, start, classes == "inert", persistent, max_memory, expected)
    value = machine.run(max_items, max_bytes)
    check_depth(value, max_depth, 4 * max(machine.items, MAX_ITEMS))
    return value, machine.pos


def check_depth(value: Any, limit: int, work: int = 4 * MAX_ITEMS) -> None:
    """Refuse a value with more than `limit` nested containers, more than `work` parts, or one that contains itself."""
    level = [value]
    for _ in range(limit):
        work -= sum(map(_size, level))
        if work < 0:
            raise Refused("hostile", "containers refer to each other too often")
        level = list({id(child): child for parent in level for child in _children(parent)}.values())
        if not level:
            return
    raise Refused("hostile", f"containers are nested more than {limit} deep")


def _size(value: Any) -> int:
    if isinstance(value, Inert):
        return 4 + len(value.args) + len(value.items or ()) + len(value.pairs or ())
    return 1 + len(value) if isinstance(value, list | tuple | dict) else 1


def _children(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [v for v in value if isinstance(v, _CONTAINERS)]
    if isinstance(value, dict):
        return [v for v in value.values() if isinstance(v, _CONTAINERS)] + [k for k in value if isinstance(k, _KEYS)]
    pairs = [v for pair in value.pairs or () for v in pair] if isinstance(value, Inert) else []
    parts = [*value.args, value.state, *(value.items or ()), *pairs] if isinstance(value, Inert) else []
    return [v for v in parts if isinstance(v, _CONTAINERS)]


_CONTAINERS = (list, tuple, dict, Inert)
_KEYS = (tuple, Inert)
