"""What nvidia-smi prints by itself: --query-gpu CSV and dmon tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from postmortem.parsers._read import blocks
from postmortem.parsers._text import plain
from postmortem.records import Batch, Issue, Parsed, Source

FORMAT = "nvidia_smi"
DOC = "nvidia-smi --query-gpu=... --format=csv and nvidia-smi dmon: use, memory, power, clocks, throttling per device."

_CSV = re.compile(
    rb"^(?:timestamp|index|name|uuid|gpu_uuid|pci\.bus_id|utilization\.gpu|memory\.used)[^\n]*, ?[a-z_.]+(?: \[[^\]]+\])?"
)
_DMON = re.compile(rb"^#(?:Date +Time +)? *gpu +")
_SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 2**20, "B": 1}
_MEMORY = {"memory.used": "device_used", "memory.total": "device_total", "fb": "device_used"}
_ENVIRONMENT = {"driver_version": "driver", "vbios_version": "firmware", "name": "gpu"}
_THROTTLES = re.compile(r"^clocks_(?:throttle|event)_reasons\.(?P<reason>.+)$")
# nvml.h, nvmlClocksThrottleReason*: the bits of clocks_event_reasons.active that hold a busy device back.
_BITS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
# dmon -s v: share of the time at the power limit, and whether the temperature limit holds the device back.
_VIOLATIONS = {"pviol": "power_violation", "tviol": "thermal_violation"}
# Reasons that only say that there was nothing to do, or that clocks were set by an administrator.
_HARMLESS = ("gpu_idle", "applications_clocks_setting", "active", "supported", "sync_boost")


def sniff(path: str, head: bytes) -> bool:
    """The header of a query, or of dmon."""
    del path
    return _DMON.match(head) is not None or (_CSV.match(head) is not None and b"\n" in head)


def parse(source: Source) -> Iterator[Parsed]:
    """Rows of memory and metric by device, and events of kind throttle."""
    header: list[str] = []
    seen: set[tuple[str, str]] = set()
    for block in blocks(source):
        if isinstance(block, Issue):
            yield block
            continue
        found = _Rows(source.host, seen)
        bad = 0
        for number, text in enumerate(block.data.decode("utf-8", "replace").split("\n"), block.line):
            cells = _cells(text)
            if not cells or (text.startswith("#") and "Idx" in cells):  # units; after -o DT they begin with the date's
                continue
            if text.startswith("#") or _CSV.match(text.encode() + b"\n"):
                header = _header(cells)
            elif len(cells) == len(header):
                found.take(number, dict(zip(header, cells, strict=True)))
            else:
                bad += 1
        if bad:
            yield Issue("malformed", f"{bad} lines do not fit the header; they were left out.", block.line, None, bad)
        yield from found.batches()


def _cells(text: str) -> list[str]:
    return [c.strip() for c in text.split(",")] if "," in text else text.lstrip("# ").split()


def _header(cells: Sequence[str]) -> list[str]:
    return [re.sub(r" \[.*\]$", "", c).lower() for c in cells]


class _Rows:
    """Rows of one block."""

    def __init__(self, host: str | None, seen: set[tuple[str, str]]) -> None:
        self.host = host
        self.seen = seen
        self.memory: list[dict[str, Any]] = []
        self.metric: list[dict[str, Any]] = []
        self.event: list[dict[str, Any]] = []
        self.environment: list[dict[str, Any]] = []

    def take(self, line: int, row: dict[str, str]) -> None:
        """One device at one moment."""
        device = next((row[k] for k in ("index", "gpu", "pci.bus_id", "uuid", "gpu_uuid") if k in row), None)
        shared = {"line": line, "time": _time(row), "device": device, "host": self.host}
        self._throttle(row, shared)
        self._stated(row, line)
        for key, cell in row.items():
            if _THROTTLES.match(key):
                continue
            number = re.match(r"^(-?\d+(?:\.\d*)?) ?([A-Za-z/%]*)$", cell)
            if number is None or key in ("index", "gpu", "timestamp", "date", "time", "driver_version", *_VIOLATIONS):
                continue
            if key in _MEMORY:
                size = float(number[1]) * _SIZES.get(number[2] or "MiB", 2**20)
                self.memory.append({**shared, "kind": _MEMORY[key], "bytes": int(size)})
            else:
                self.metric.append({**shared, "name": f"device_{plain(key)}", "value": float(number[1]), "text": cell})

    def _throttle(self, row: dict[str, str], shared: dict[str, Any]) -> None:
        """What holds the device back at this moment."""
        device, bus = shared["device"], row.get("pci.bus_id") or row.get("gpu_bus_id")
        index = row.get("index") or row.get("gpu")
        place = {k: v for k, v in (("device", index), ("pci", bus)) if v}
        said = str(device) if bus is None or bus == device else f"{device} ({bus})"
        for name in _reasons(row):
            self.event.append(
                {
                    **{k: v for k, v in shared.items() if k != "device"},
                    "part": len(self.event),
                    "kind": "throttle",
                    "role": "symptom",
                    "name": name,
                    "clock": "local",
                    "message": f"device {said}: {name} active",
                    "detail": json.dumps(place),
                }
            )

    def _stated(self, row: dict[str, str], line: int) -> None:
        """Versions and the device's model, which are the same in every row: the first of each counts."""
        for key, name in _ENVIRONMENT.items():
            value = row.get(key)
            if value and not value.startswith("[") and (name, value) not in self.seen:
                self.seen.add((name, value))
                self.environment.append({"line": line, "host": self.host, "name": name, "value": value})

    def batches(self) -> Iterator[Batch]:
        """One batch per table that has rows."""
        for table in ("memory", "metric", "event", "environment"):
            rows = getattr(self, table)
            if rows:
                yield Batch(table, {column: [row[column] for row in rows] for column in rows[0]})


def _reasons(row: dict[str, str]) -> list[str]:
    """Names of the reasons that are active in one row, each once."""
    found = []
    for key, cell in row.items():
        if reason := _THROTTLES.match(key):
            if cell == "Active" and reason["reason"] not in _HARMLESS:
                found.append(reason["reason"])
            elif reason["reason"] == "active" and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", cell):
                found += [name for bit, name in _BITS.items() if int(cell, 16) & bit]
        elif key in _VIOLATIONS and re.fullmatch(r"\d+(?:\.\d+)?", cell) and float(cell) > 0:
            found.append(_VIOLATIONS[key])
    return list(dict.fromkeys(found))


def _time(row: dict[str, str]) -> int | None:
    stamp = row.get("timestamp") or (f"{row['date']} {row['time']}" if "date" in row and "time" in row else "")
    for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y%m%d %H:%M:%S"):
        try:
            return int(datetime.strptime(stamp, form).replace(tzinfo=UTC).timestamp() * 1000) * 1_000_000
        except ValueError:
            continue
    return None
