"""Python tracebacks, and the stacks that faulthandler and py-spy print of live processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from postmortem.parsers._record import Line

_FRAME = re.compile(r'^ *File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_CALL = re.compile(r'^ +File "[^"]+", line \d+, in ')
# How torch and deepspeed (accelerator/cuda_accelerator.py) ask for pinned memory, as the source line of a frame says it.
_PINS = re.compile(r"\.pin_memory\(|\bpin_memory ?= ?True\b|\bcudaHost(?:Alloc|Register)\(")
_HEAD = "Traceback (most recent call last)"
# The last line of a traceback: a dotted class name, then nothing or a colon and the message.
_EXCEPTION = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: ?(?P<message>.*))?$", re.DOTALL)
# What Python itself writes before the traceback of an exception that ends nothing: that of a destructor (PyErr_WriteUnraisable
# in Python/errors.c of CPython), and that of a record which could not be written (Handler.handleError in Lib/logging).
_IGNORED = ("Exception ignored in", "Exception ignored while", "--- Logging error ---")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_LIBRARY = (
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "lib\\python",
    "<frozen ",
    "<string>",
    "/bin/torchrun",
    "/bin/deepspeed",
    "/bin/accelerate",
)
_LIMIT = 5000  # lines of one record; a RecursionError prints about 1,000 frames of two lines


def _deepest(frames: list[tuple[str, int, str]]) -> tuple[str, int, str] | None:
    own = [f for f in frames if not any(part in f[0] for part in _LIBRARY)]
    return (own or frames)[-1] if frames else None


class Traceback:
    """A Python traceback with its exception; the last of a chain is the one that ended things, the first the cause."""

    OPENS: ClassVar[tuple[str, ...]] = (_HEAD, *_IGNORED, ", in ")
    FORMAT: ClassVar[str] = "python.traceback"
    role = "context"

    def __init__(self, line: Line) -> None:
        self.first = line
        self.frames: list[tuple[str, int, str]] = []
        self.chain: list[tuple[str, str, list[tuple[str, int, str]]]] = []
        self.name, self.message, self.last = "", "", line
        self.ignored = line.text.startswith(_IGNORED)
        self.state = "between" if self.ignored else "frames"
        self.count = 0
        self.pinning = False  # whether the deepest frame asks for pinned host memory

    @classmethod
    def open(cls, line: Line) -> Traceback | None:
        """A traceback starts at its head line, also behind other text; where a file begins later, at a frame."""
        if line.text.rstrip().endswith(_HEAD + ":") or line.text.startswith((_HEAD, *_IGNORED)):
            return cls(line)
        started = cls(line)
        return started if _CALL.match(line.text) and started.take(line) else None

    def take(self, line: Line) -> bool:
        self.count += 1
        if self.count > _LIMIT:
            return False
        if self.state == "frames":
            return self._frame(line)
        return self._after(line)

    def _frame(self, line: Line) -> bool:
        text = line.text
        if found := _FRAME.match(text):
            self.frames.append((found["file"], int(found["line"]), found["function"] or ""))
            self.pinning = found["function"] == "pin_memory"
            return True
        if text.startswith((" ", "\t")) or not text.strip():
            self.pinning = self.pinning or bool(_PINS.search(text))
            return True
        found = _EXCEPTION.match(text)
        if found is None or (not self.frames and found["name"] == text.split(" ")[0] and " " in found["name"]):
            return False
        self.name, self.message, self.last = found["name"], (found["message"] or "").strip(), line
        self.state = "message"
        return True

    def _after(self, line: Line) -> bool:
        """Chained tracebacks, and the further lines of a message of several lines."""
        text = line.text
        if text.startswith(_CHAINED):
            self.chain.append((self.name, self.message, self.frames))
            self.frames = []
            self.state = "between"
            return True
        if self.state == "between":
            if _HEAD in text:
                self.state = "frames"
            return not text.strip() or _HEAD in text
        if not text.strip():
            self.state = "blank"
            return True
        if self.state == "blank":
            return False
        quoted = self.message.endswith("Last error:")  # what NCCL warned of, in the line after it
        further = (" ", "\t", "Last error", "ncclUnhandled", "ncclSystem", "ncclInternal", "ncclRemote")
        if line.logger or _HEAD in text or not (quoted or text.startswith(further)):
            return False
        self.message = f"{self.message}\n{text}"[:4000]
        return True

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if not self.name:
            return
        deepest = _deepest(self.frames)
        detail: dict[str, Any] = {"frames": len(self.frames), "first_line": self.first.line}
        if deepest:
            detail |= {"file": deepest[0], "file_line": deepest[1], "function": deepest[2]}
        if self.chain:
            detail["after"] = [f"{name}: {message}"[:500] for name, message, _ in self.chain]
        if self.pinning:
            detail["pinning"] = True
        kind, role, further = classify(self.name, self.message)
        if role == "root" and self.chain:  # who cleans up after a lost peer and fails at that only follows, too
            role = _first_role(self.chain[0])
        if role == "root" and self.ignored:
            role = "context"
        row = {**self.last.carried(), "kind": kind, "role": role, "name": self.name, "message": self.message}
        yield "event", {**row, **further, "detail": json.dumps(detail, ensure_ascii=False)}


def _first_role(cause: tuple[str, str, list[tuple[str, int, str]]]) -> str:
    """The role of the exception that a chain began with."""
    return classify(cause[0], cause[1])[1]


def classify(name: str, message: str) -> tuple[str, str, dict[str, Any]]:
    """(kind, role, further columns) of an exception: what only follows from another process's end is a cascade."""
    short = name.rsplit(".", 1)[-1]
    if short == "OutOfMemoryError" or re.search(
        r"out of memory|can't allocate memory|CUBLAS_STATUS_ALLOC_FAILED", message
    ):
        return "exception", "root", {}
    if short == "SystemExit" and message.strip() in ("", "0", "None"):  # an end without an error
        return "exception", "context", {}
    if short in _FOLLOWERS or _FOLLOWS.search(message):
        return "exception", "cascade", {}
    # Every rank raises the first, whoever is the odd one; the others come from whoever waits at the start for the rest.
    if "Detected mismatch between collectives on ranks" in message or _WAITED.search(f"{name}: {message}"):
        return "exception", "symptom", {}
    return "exception", "root", {}


# torch/distributed/elastic/rendezvous, torch/csrc/distributed/c10d/TCPStore.cpp and socket.cpp
_WAITED = re.compile(
    r"RendezvousTimeoutError|waiting for clients|wait timeout after \d+ms, keys|client socket has (?:timed out|failed to connect)"
)
# Exceptions of whoever waits for the process that failed: torchrun, Ray (python/ray/exceptions.py, ray/train).
_FOLLOWERS = {
    "ChildFailedError", "SignalException", "KeyboardInterrupt", "ProcessExitedException", "ProcessRaisedException",
    "RendezvousClosedError", "RendezvousGracefulExitError", "RendezvousConnectionError", "ActorDiedError", "RayActorError", "ActorUnavailableError",
    "WorkerCrashedError", "WorkerGroupError", "TrainingFailedError", "TuneError",
}  # fmt: skip
# Sentences of gloo (transport/tcp/pair.cc, unbound_buffer.cc), TCPStore and NCCL about a peer that is gone or silent.
_FOLLOWS = re.compile(
    r"Connection closed by (?:peer|remote)|Connection reset by peer|Broken pipe|Timed out waiting \d+ms for"
    r"|recvValue failed|sendBytes failed|Socket Timeout|socket timeout|remote process exited|ncclRemoteError"
    r"|has been aborted|was aborted|failed to pass monitoredBarrier|received errors while waiting for send/recv"
    r"|NCCL communicator was aborted|aught collective operation timeout|connection was (?:closed|reset)|got signal: "
    r"|store may have been destroyed|[Ff]ailed to recv|ncclSystemError: System call \(e\.g\. socket"
    # TCPStore's client about a server that is gone (torch/csrc/distributed/c10d/socket.cpp, TCPStore.cpp)
    # subprocess.py, in a launcher that runs the training script as its child
    r"|^Command '\[.*(?:\.py'|torchrun|accelerate|torch\.distributed|deepspeed).* (?:returned non-zero exit status|died with)"
    r"|Connection was likely closed|Did the remote server shutdown|store->get\(.*\) got error|Software caused connection abort"
)


class Stack:
    """faulthandler's dump of the threads of a live process (Modules/faulthandler.c, Python/traceback.c of CPython)."""

    OPENS: ClassVar[tuple[str, ...]] = ("(most recent call first):",)
    FORMAT: ClassVar[str] = "python.stack"
    role = "context"
    _THREAD = re.compile(
        r"^(?P<current>Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>[^\]]+)\])? \(most recent call first\):"
    )
    _CALL = re.compile(r'^ +File "(?P<file>[^"]+)", line (?P<line>\d+|\?\?\?)(?: in (?P<function>.+))?')

    def __init__(self, line: Line, thread: re.Match[str]) -> None:
        self.first = line
        self.threads = [(line, thread["id"], bool(thread["current"] == "Current thread"), thread["name"] or "", [])]  # type: list[tuple[Line, str, bool, str, list[str]]]

    @classmethod
    def open(cls, line: Line) -> Stack | None:
        found = cls._THREAD.match(line.text)
        return cls(line, found) if found else None

    def take(self, line: Line) -> bool:
        if found := self._CALL.match(line.text):
            self.threads[-1][4].append(f"{found['function'] or '?'} ({found['file']}:{found['line']})")
            return True
        if found := self._THREAD.match(line.text):
            self.threads.append((line, found["id"], found["current"] == "Current thread", found["name"] or "", []))
            return True
        return not line.text.strip() or line.text.startswith(("  ...", "  <no Python frame>"))

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for line, ident, current, name, frames in self.threads:
            if frames:
                detail = {"thread": ident, "current": current, "thread_name": name, "frames": frames}
                row = {"kind": "stack", "role": "context", "name": frames[0], "message": frames[0]}
                yield "event", {**line.carried(), **row, "detail": json.dumps(detail, ensure_ascii=False)}


class Dump:
    """py-spy dump of one live process (py-spy, src/dump.rs): its threads and what each of them was in."""

    OPENS: ClassVar[tuple[str, ...]] = ("Thread ",)
    FORMAT: ClassVar[str] = "python.py_spy"
    role = "context"
    _THREAD = re.compile(
        r'^Thread (?P<id>\d+|0x[0-9A-Fa-f]+) \((?P<state>active|idle|active\+gil|idle\+gil)\)(?:: "(?P<name>[^"]*)")?\s*$'
    )
    _CALL = re.compile(r"^ {4}(?P<function>\S.*?) \((?P<place>[^()]+)\)\s*$")

    def __init__(self, line: Line, thread: re.Match[str]) -> None:
        self.threads: list[tuple[Line, re.Match[str], list[str]]] = [(line, thread, [])]

    @classmethod
    def open(cls, line: Line) -> Dump | None:
        """A dump's threads start each with a header of its own."""
        found = cls._THREAD.match(line.text)
        return cls(line, found) if found else None

    def take(self, line: Line) -> bool:
        """A frame, or the header of the next thread."""
        if found := self._CALL.match(line.text):
            self.threads[-1][2].append(f"{found['function']} ({found['place']})")
            return True
        if found := self._THREAD.match(line.text):
            self.threads.append((line, found, []))
            return True
        return not line.text.strip()

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One event of kind stack per thread."""
        for line, thread, frames in self.threads:
            if frames:
                main = thread["name"] in (None, "MainThread")
                detail = {
                    "thread": thread["id"],
                    "current": main,
                    "thread_name": thread["name"] or "",
                    "frames": frames,
                }
                row = {"kind": "stack", "role": "context", "name": frames[0], "message": frames[0]}
                yield "event", {**line.carried(), **row, "detail": json.dumps(detail, ensure_ascii=False)}


MACHINES = (Traceback, Stack, Dump)
