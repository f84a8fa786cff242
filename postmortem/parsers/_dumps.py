"""Blocks of numbers and settings that DeepSpeed and trainers print once: profiles, summaries, arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, ClassVar

from postmortem.formats import names
from postmortem.parsers import _times
from postmortem.parsers._record import Line
from postmortem.parsers._text import plain

_SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}


def _value(text: str, unit: str) -> float:
    """A number in base units (s, flops, parameters): "76.67 ms" is 0.07667, "81.9 TFLOPS" is 8.19e13."""
    return float(text) * _SCALES.get(unit[:1] if unit not in {"s", "FLOPS", "flops", "MACs"} else "", 1.0)


_ABOUT = ("line", "part", "time", "rank", "local_rank", "task", "host", "attempt")
_about = attrgetter(*_ABOUT)


def _metric(line: Line, name: str, value: float, text: str, step: int | None = None) -> tuple[str, dict[str, Any]]:
    row = dict(zip(_ABOUT, _about(line), strict=True))
    if line.clock == "day":
        row["time"] = None
    return "metric", {**row, "name": name, "value": value, "text": text, "step": step}


class FlopsProfile:
    """The summary of one step by DeepSpeed's flops profiler (deepspeed/profiling/flops_profiler/profiler.py).

    Its values become metrics named profile_..., in seconds, flops and parameters; they come from hooks around every
    module, so that they are kept apart from the timers of ordinary steps.
    """

    OPENS: ClassVar[tuple[str, ...]] = ("Profile Summary at step ",)
    FORMAT: ClassVar[str] = "deepspeed_other.flops_profile"
    role = "context"
    # Label up to its colon or equal sign -> name; the words changed their case between 0.3 and 0.19.
    _NAMES: ClassVar[dict[str, str]] = {
        "batch size per gpu": "profile_batch_size", "batch size": "profile_batch_size",
        "params per gpu": "profile_params", "number of parameters": "profile_params",
        "fwd macs per gpu": "profile_fwd_macs", "number of multiply-accumulate operations (macs)": "profile_fwd_macs",
        "fwd flops per gpu": "profile_fwd_flops", "fwd latency": "profile_fwd_time", "latency": "profile_fwd_time",
        "bwd latency": "profile_bwd_time", "step latency": "profile_step_time", "iter latency": "profile_iteration_time",
        "flops per gpu": "profile_flops_per_second", "samples/second": "profile_samples_per_second",
        "fwd flops per second": "profile_fwd_flops_per_second",
    }  # fmt: skip
    _ROW = re.compile(r"^(?P<label>[A-Za-z][\w+/() -]*?)(?: = [^:]*)?: +(?P<value>[\d.]+) ?(?P<unit>[A-Za-zµ]*)\s*$")
    _WORDS = re.compile(
        r"^(?:Notations:|data parallel size \(dp_size\)|number of (?:parameters|floating-point)|fwd latency \(|step \(weights)"
    )

    def __init__(self, step: int) -> None:
        self.step, self.found = step, list[tuple[Line, str, float, str]]()

    @classmethod
    def open(cls, line: Line) -> FlopsProfile | None:
        """The line that states the step."""
        found = re.match(r"Profile Summary at step (\d+):", line.text)
        return cls(int(found[1])) if found else None

    def take(self, line: Line) -> bool:
        """A value, a blank line or a word of explanation."""
        if found := self._ROW.match(line.text):
            label = found["label"].lower()
            # "fwd FLOPS per GPU" is a speed, "fwd flops per GPU" an amount.
            if found["label"].startswith("fwd FLOPS"):
                label = "fwd flops per second"
            if name := self._NAMES.get(label):
                text = f"{found['value']} {found['unit']}".strip()
                self.found.append((line, name, _value(found["value"], found["unit"]), text))
            return True
        return not line.text.strip() or bool(self._WORDS.match(line.text))

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One metric per value."""
        for line, name, value, text in self.found:
            yield _metric(line, name, value, text, self.step)


class CommSummary:
    """DeepSpeed's tables of collectives, plain and with the time spent waiting (deepspeed/utils/comms_logging.py).

    One row per operation and message size becomes metrics comm_<operation>_<column>, times in seconds, with the size
    as text. The waiting time is that of the rank that prints.
    """

    OPENS: ClassVar[tuple[str, ...]] = ("Comm. Op  ",)
    FORMAT: ClassVar[str] = "deepspeed_other.comm_table"
    role = "context"
    _PLAIN = ("count", "total_time", "mean_time", "gbps", "bus_gbps")
    _NAME = re.compile(r"^([a-z0-9_]*(?:reduce|gather|scatter|broadcast|barrier|send|recv|all_?to_?all)[a-z0-9_]*)\s*$")
    _FOREIGN = 50  # lines between the rows of one table
    _WAITING = ("count", "total_time", "total_wait", "mean_time", "mean_wait")
    _ROW = re.compile(r"^\s+(?P<size>[\d.]+ [KMGTPE]?B)\s+(?P<rest>\d+(?:\s+-?[\d.]+){4})\s*$")

    def __init__(self, line: Line) -> None:
        waiting = "straggler" in line.text
        self.columns = self._WAITING if waiting else self._PLAIN
        self.operation, self.found, self.foreign = "", list[tuple[Line, str, str, str]](), 0

    @classmethod
    def open(cls, line: Line) -> CommSummary | None:
        """The head of either table."""
        return cls(line) if line.text.startswith("Comm. Op") else None

    def take(self, line: Line) -> bool | None:
        """The name of an operation, or a row of it. Other lines may stand between: warnings are not printed with it."""
        if self.operation and (found := self._ROW.match(line.text)):
            self.found.append((line, self.operation, found["size"], found["rest"]))
            return True
        if named := self._NAME.match(line.text):
            self.operation = named[1]
            return True
        self.foreign += 1
        return None if self.foreign <= self._FOREIGN and not self.open(line) else False

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One metric per number."""
        for line, operation, size, rest in self.found:
            for column, value in zip(self.columns, rest.split(), strict=True):
                factor = 1e-3 if column.endswith(("time", "wait")) else 1.0
                yield _metric(line, f"comm_{operation}_{column}", float(value) * factor, size)


class Arguments:
    """TrainingArguments of transformers as they print themselves, one per line (training_args.py, __str__)."""

    OPENS: ClassVar[tuple[str, ...]] = ("Arguments(", "Config(")
    FORMAT: ClassVar[str] = "huggingface.arguments_dump"
    role = "context"
    _MOST = 1000
    _ROW = re.compile(r"^\s*(?P<key>[A-Za-z_]\w*)=(?P<value>.*?),?$")

    def __init__(self, line: Line) -> None:
        self.first, self.found, self.done = line, list[tuple[Line, str, str]](), False

    @classmethod
    def open(cls, line: Line) -> Arguments | None:
        """The class name with its bracket at the end of a line."""
        return cls(line) if re.search(r"\w(?:Arguments|Config)\($", line.text) else None

    def take(self, line: Line) -> bool:
        """A field, or the closing bracket."""
        if self.done or len(self.found) > self._MOST:
            return False
        self.done = line.text.strip() == ")"
        found = self._ROW.match(line.text)
        if found:
            self.found.append((line, found["key"], found["value"]))
        return self.done or bool(found)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One setting per field, its value as text: view setting reads it."""
        for line, key, value in self.found:
            row = {"line": line.line, "rank": line.rank, "host": line.host, "kind": "trainer", "key": key}
            yield "config", {**row, "value": json.dumps(value)}


class DeviceQuery:
    """nvidia-smi -q, whole or an excerpt: versions, and of each device memory in use, what holds it back, and errors.

    An error counter under "Aggregate" counts since the device was made; its section is told with it.
    """

    OPENS: ClassVar[tuple[str, ...]] = (
        "=NVSMI LOG=", "GPU 0000", "Slowdown ", "SW Power Cap ",
        "Uncorrectable", "Double Bit ECC ", "Remapping Failure ", "Pending Page Blacklist ",
    )  # fmt: skip
    FORMAT: ClassVar[str] = "kernel.device_query"
    role = "context"
    _NAMES: ClassVar[dict[str, str]] = {
        "Driver Version": "driver",
        "CUDA Version": "driver_cuda",
        "Product Name": "gpu",
        "VBIOS Version": "firmware",
    }
    _KINDS: ClassVar[dict[str, str]] = {"Used": "device_used", "Total": "device_total"}
    _FIELD = re.compile(r"^ *(?P<key>[A-Z]\w[^:]*?) +: (?P<value>.+?) *$")
    _DEVICE = re.compile(r"^GPU (?P<device>[0-9A-Fa-f]+:[0-9A-Fa-f:.]+) *$")
    _EVENTS: ClassVar[dict[str, re.Pattern[str]]] = {
        "throttle": re.compile(
            r"^ *(?P<name>HW (?:Thermal |Power Brake )?Slowdown|SW Thermal Slowdown|SW Power Cap) +: (?P<value>Active) *$"
        ),
        "ecc": re.compile(
            r"^ *(?P<name>(?:DRAM |SRAM )?Uncorrectable(?: Parity| SEC-DED)?|Double Bit ECC|Remapping Failure Occurred"
            r"|Uncorrectable Error|Pending Page Blacklist) +: (?P<value>[1-9]\d*|Yes) *$"
        ),
    }

    def __init__(self) -> None:
        self.found, self.device, self.section = list[tuple[str, dict[str, Any]]](), "", ""
        self.time: int | None = None

    @classmethod
    def open(cls, line: Line) -> DeviceQuery | None:
        """The title or a device, alone on its line; in an excerpt a line that says that something is wrong."""
        fresh = cls()
        if line.text.strip(" =") == "NVSMI LOG" or fresh._device(line) or fresh._event(line):
            return fresh
        return None

    def take(self, line: Line) -> bool | None:
        """A device, a field or the title of a section; what other formats know of it stays theirs."""
        if self._device(line) or self._event(line):
            return True
        if field := self._FIELD.match(line.text):
            return self._field(line, field["key"], field["value"]) or None
        if line.text.startswith("  "):
            self.section = line.text.strip()
        return None if line.text.startswith("  ") or not line.text.strip() else False

    def _device(self, line: Line) -> bool:
        if device := self._DEVICE.match(line.text):
            self.device, self.section = device["device"].lower(), ""
        return device is not None

    def _event(self, line: Line) -> bool:
        for kind, form in self._EVENTS.items():
            if found := form.match(line.text):
                where = f"device {self.device}: " if self.device else ""
                section = f" ({self.section})" if kind == "ecc" and self.section else ""
                said = {"value": found["value"], "section": self.section, "pci": self.device}
                row = {**line.carried(), "kind": kind, "role": "symptom", "name": found["name"]}
                if self.time is not None and kind == "throttle":  # when a counter rose is not known
                    row |= {"time": self.time, "clock": "local"}
                row |= {"message": f"{where}{found['name']}: {found['value']}{section}"}
                self.found.append(("event", {**row, "detail": json.dumps({k: v for k, v in said.items() if v})}))
                return True
        return False

    def _field(self, line: Line, key: str, value: str) -> bool:
        size = re.match(r"(\d+) MiB$", value)
        where = {"line": line.line, "rank": line.rank, "local_rank": line.local_rank, "host": line.host}
        if key == "Timestamp":
            self.time = _times.whole_seconds(value, "%a %b %d %H:%M:%S %Y")
        elif self.section == "FB Memory Usage" and key in self._KINDS and size:
            about = {"part": line.part, "time": self.time, "task": line.task, "device": self.device}
            row = {**where, **about, "kind": self._KINDS[key], "bytes": int(size[1]) << 20}
            self.found.append(("memory", row))
        elif key in self._NAMES:
            self.found.append(("environment", {**where, "name": self._NAMES[key], "value": value}))
        else:
            return False
        return True

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Memory by device, and what the host said of its driver and devices."""
        yield from self.found


class RankTimers:
    """Timers of every rank that one rank prints: Megatron's --timing-log-option all (megatron/core/timers.py)."""

    OPENS: ClassVar[tuple[str, ...]] = ("times across ranks (ms):",)
    FORMAT: ClassVar[str] = "megatron.timers_of_all_ranks"
    role = "progress"
    _NAME = re.compile(r"^ {1,4}(?P<name>[A-Za-z][\w -]*?):\s*$")
    _ROW = re.compile(r"^ {3,}rank +(?P<rank>\d{1,7}): (?P<ms>\d+(?:\.\d+)?)\s*$")

    def __init__(self) -> None:
        self.phase, self.found = "", list[dict[str, Any]]()

    @classmethod
    def open(cls, line: Line) -> RankTimers | None:
        """The head, alone on its line."""
        return cls() if line.text.strip() == "times across ranks (ms):" else None

    def take(self, line: Line) -> bool:
        """The name of a timer, or one rank's time."""
        if named := self._NAME.match(line.text):
            name = plain(named["name"])
            self.phase = names()["phase"].get(name, name)
            return True
        if self.phase and (row := self._ROW.match(line.text)):
            about = {"line": line.line, "part": line.part, "time": None if line.clock == "day" else line.time}
            duration = round(float(row["ms"]) * 1e6)
            self.found.append({**about, "rank": int(row["rank"]), "phase": self.phase, "duration": duration})
            return True
        return False

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One time per timer and rank."""
        for row in self.found:
            yield "phase_time", row


MACHINES = (RankTimers, FlopsProfile, CommSummary, Arguments, DeviceQuery)
