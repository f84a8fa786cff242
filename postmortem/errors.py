"""The few errors postmortem raises on purpose: one sentence, and what to do next."""

from __future__ import annotations


class PostmortemError(Exception):
    """Something the user can act on.

    Args:
        message: what is wrong and where, one sentence.
        hint: what to do next, one sentence, or empty.

    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class InputError(PostmortemError):
    """An input that cannot be used at all: no such folder, nothing known in it."""


class DeclarationError(PostmortemError):
    """A file under schemas/ or queries/ that breaks its own rules."""


class StoreError(PostmortemError):
    """The store is missing, locked by another ingest, or written by another version."""


class BusyError(StoreError):
    """Another process holds the run."""


class FoundError(PostmortemError):
    """The thing asked for with --fail-on or --strict was found."""

    exit_code = 1
