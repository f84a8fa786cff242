"""Tables and dumps that launchers and DeepSpeed print over several lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from postmortem.parsers import _times
from postmortem.parsers._record import Line


class ErrorTable:
    """torchrun's table of failed workers (torch/distributed/elastic/multiprocessing/errors/__init__.py).

    It is printed once per node and knows only that node. A worker that got SIGTERM was stopped by its agent.
    """

    OPENS: ClassVar[tuple[str, ...]] = ("Failures:", "Root Cause (first observed failure):")
    FORMAT: ClassVar[str] = "torchrun.error_table"
    role = "symptom"
    _FIELD = re.compile(r"^ *(?P<name>time|host|rank|exitcode|error_file|traceback) *: ?(?P<value>.*)$")
    # A worker's traceback is set in by two spaces, its frames by four.
    _RAISED = re.compile(r"^  (?P<raised>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)(?:: .*)?)$")

    def __init__(self, line: Line) -> None:
        self.first = line
        self.failures: list[dict[str, Any]] = []

    @classmethod
    def open(cls, line: Line) -> ErrorTable | None:
        return cls(line) if line.text.strip() in cls.OPENS else None

    def take(self, line: Line) -> bool:
        text = line.text.strip()
        if re.fullmatch(r"\[\d+\]:", text):
            self.failures.append({"line": line})
            return True
        if (found := self._FIELD.match(line.text)) and self.failures:
            self.failures[-1][found["name"]] = found["value"].strip()
            self.failures[-1]["line"] = line if found["name"] == "exitcode" else self.failures[-1]["line"]
            return True
        if re.fullmatch(r"-{5,}|<NO_OTHER_FAILURES>|Root Cause \(first observed failure\):|Failures:|", text):
            return True
        if re.fullmatch(r"={5,}", text):
            return not self.failures
        if not self.failures or "traceback" not in self.failures[-1] or line.logger:
            return False
        if raised := self._RAISED.match(line.text):
            self.failures[-1]["traceback"] = raised["raised"]
        return line.text.startswith((" ", "T", "File"))

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for failure in self.failures:
            yield from self._failure(failure)

    def _failure(self, failure: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        rank = re.match(r"(\d+)(?: \(local_rank: (\d+)\))?", failure.get("rank", ""))
        code = re.match(r"(-?\d+)(?: \(pid: (\d+)\))?(?:\s+\((SIG\w+)\))?", failure.get("exitcode", ""))
        row = failure["line"].carried()
        if stamp := _times.whole_seconds(failure.get("time", "")):
            row |= {"time": stamp, "clock": "local"}
        if rank:
            row |= {"rank": int(rank[1]), "local_rank": int(rank[2]) if rank[2] else None}
        if host := failure.get("host"):
            row["host"] = host
        if code:
            row |= {"code": int(code[1]), "pid": int(code[2]) if code[2] else None, "name": code[3]}
        about = {k: row.get(k) for k in ("line", "part", "time", "rank", "local_rank", "host", "pid", "attempt")}
        yield "process", {**about, "statement": "table"}
        if code:
            stopped = int(code[1]) == -15
            row |= {
                "kind": "exit",
                "role": "cascade" if stopped else "symptom",
                "message": failure.get("traceback", ""),
            }
            yield "event", {**row, "detail": json.dumps({"error_file": failure.get("error_file", "")})}


class RankMapping:
    """DeepSpeed's launcher: host -> global ranks, in one line (deepspeed/launcher/launch.py)."""

    OPENS: ClassVar[tuple[str, ...]] = ("global_rank_mapping=",)
    FORMAT: ClassVar[str] = "deepspeed_launcher.rank_mapping"
    role = "context"
    _HOST = re.compile(r"'([^']+)': \[([\d, ]*)\]")

    def __init__(self, line: Line) -> None:
        self.line = line

    @classmethod
    def open(cls, line: Line) -> RankMapping | None:
        return cls(line) if line.text.startswith("global_rank_mapping=") else None

    def take(self, line: Line) -> bool:
        del line
        return False

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        where = {"line": self.line.line, "part": self.line.part, "time": self.line.time, "attempt": self.line.attempt}
        for node, (host, ranks) in enumerate(self._HOST.findall(self.line.text)):
            for local, rank in enumerate(int(r) for r in ranks.split(",") if r.strip()):
                about = {"statement": "mapping", "host": host, "rank": rank, "local_rank": local, "node_rank": node}
                yield "process", {**where, **about}


class MpiEnd:
    """mpirun on the process that failed first, over several lines.

    Open MPI and PRRTE print "Process name" and "Exit code" (orte/tools/orterun/orterun.c), Hydra and Intel MPI a box
    (src/pm/hydra/ui/utils/uiu.c). Intel MPI prints a box for each process that it then killed itself: of those that
    a signal ended it is not known who was first, so their number is left out.
    """

    OPENS: ClassVar[tuple[str, ...]] = ("Process name: [", "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES")
    FORMAT: ClassVar[str] = "schedulers.mpi_end"
    role = "symptom"
    _FIELD = re.compile(
        r"^\W*(?:Process name: \[(?:\[\d+,\d+\],|\S+@\d+,)(?P<task>\d+)\]"
        r"|(?:RANK (?P<rank>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>[\w.-]+)"
        r"|(?i:exit code): +(?P<code>\d+)"
        r"|KILLED BY SIGNAL: (?P<signal>\d+)"
        r"|YOUR APPLICATION TERMINATED WITH THE EXIT STRING: .*\(signal (?P<string>\d+)\))"
    )

    def __init__(self, line: Line) -> None:
        self.first, self.found = line, {k: v for k, v in self._fields(line.text).items() if v}

    @classmethod
    def open(cls, line: Line) -> MpiEnd | None:
        """The line with the name of the process, or the head of the box."""
        return cls(line)

    @classmethod
    def _fields(cls, text: str) -> dict[str, str | None]:
        found = cls._FIELD.match(text)
        return found.groupdict() if found else {}

    def take(self, line: Line) -> bool:
        """A field, or a rule of the box."""
        fields = {k: v for k, v in self._fields(line.text).items() if v}
        self.found |= fields
        box = re.match(r"={5,}|= +(?:CLEANING|YOU CAN IGNORE)", line.text)
        return bool(fields or box) and line.line - self.first.line < 12

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One exit, where a code was stated."""
        signal = self.found.get("signal") or self.found.get("string")
        code = -int(signal) if signal else int(self.found["code"]) if "code" in self.found else None
        if code is None:
            return
        task = self.found.get("task") or (self.found.get("rank") if "signal" not in self.found else None)
        row: dict[str, Any] = {"kind": "exit", "role": "cascade" if code == -15 else "symptom", "code": code}
        row |= {"task": int(task) if task else None, "message": f"ended first, exit code {code}"}
        stated: dict[str, Any] = {
            k: int(self.found[k]) if k == "pid" else self.found[k] for k in ("pid", "host") if k in self.found
        }
        yield "event", {**self.first.carried(), **row, **stated}


class ConfigDump:
    """DeepSpeed's dump of its effective configuration (deepspeed/runtime/config.py, print)."""

    OPENS: ClassVar[tuple[str, ...]] = ("  json = {",)
    FORMAT: ClassVar[str] = "deepspeed_config.json"
    role = "context"
    _JSON = re.compile(r'^(?: +(?:"|[-\d]|true|false|null|[{[])| *[]}])')
    _FOREIGN = 50

    def __init__(self, line: Line) -> None:
        self.first = line
        self.text = ["{"]
        self.done, self.foreign = False, 0

    @classmethod
    def open(cls, line: Line) -> ConfigDump | None:
        return cls(line) if line.text.strip() == "json = {" else None

    def take(self, line: Line) -> bool | None:
        """The next line of the JSON text. What is none stands between: a dump that is never closed takes nothing else."""
        if self.done or len(self.text) > 2000 or self.foreign > self._FOREIGN:
            return False
        if not self._JSON.match(line.text):
            self.foreign += 1
            return None
        self.text.append(line.text)
        self.done = line.text.rstrip() == "}"
        return True

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        try:
            config = json.loads("\n".join(self.text))
        except ValueError:
            return
        for key, value in flat(config):
            yield (
                "config",
                {
                    "line": self.first.line,
                    "rank": self.first.rank,
                    "host": self.first.host,
                    "kind": "deepspeed",
                    "key": key,
                    "value": value,
                },
            )


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted path and JSON text of every leaf; a list is a leaf. Secrets are left out."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    elif path:
        secret = re.search(r"(?i)(?:^|[._])(?:api_?key|token|password|secret|credential)s?$", path)
        yield path, '"(secret)"' if secret and isinstance(value, str) else json.dumps(value, ensure_ascii=False)


MACHINES = (ErrorTable, RankMapping, MpiEnd, ConfigDump)
