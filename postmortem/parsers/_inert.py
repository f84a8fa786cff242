"""What an unpickler that resolves nothing makes of classes, and how it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Refused(Exception):  # noqa: N818 - it is a verdict on the input, not a defect
    """A pickle that is not read.

    Attributes:
        kind: "hostile", "limit", "malformed" or "truncated" (kinds of table issue).
        message: what is wrong, a clause without a full stop.
        offset: byte in the given buffer.
        left: values that had been read but not yet put into a container, outermost first.
    """

    def __init__(self, kind: str, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.offset = offset
        self.left: list[Any] = []


@dataclass(frozen=True, slots=True)
class Global:
    """A class or function that the pickle names; it is never looked up."""

    name: str


@dataclass(slots=True, eq=False)
class Inert:
    """What a call or instance would have been: the name, its arguments and its state, nothing behind them."""

    name: str
    args: tuple[Any, ...]
    state: Any = None
    items: list[Any] | None = None
    pairs: list[tuple[Any, Any]] | None = None

    def attributes(self) -> Mapping[str, Any]:
        """Give the instance's attributes as far as its state is a dict, or a (dict, slots dict) pair."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)
        return {k: v for part in parts if isinstance(part, dict) for k, v in part.items() if isinstance(k, str)}
