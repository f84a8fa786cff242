"""Checksums and statistics of stored numbers, chunk by chunk, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from isal import isal_zlib

CHUNK = 1 << 18  # B; small enough to stay in a core's cache between the passes
_BLOCK = 1 << 13  # elements summed in single precision before the sum goes on in double; BLAS starts threads above


@dataclass
class Statistics:
    """What the elements of a tensor look like; nan and inf are counts, the rest is over the finite ones."""

    nan: int = 0
    inf: int = 0
    zeros: int = 0
    min: float = math.inf
    max: float = -math.inf
    total: float = 0.0
    squares: float = 0.0
    count: int = 0
    content: str = ""

    @property
    def mean(self) -> float | None:
        """Mean of the finite elements."""
        return self.total / self.finite if self.finite else None

    @property
    def l2(self) -> float:
        """Euclidean norm of the finite elements."""
        return math.sqrt(self.squares)

    @property
    def finite(self) -> int:
        """Number of finite elements."""
        return self.count - self.nan - self.inf


def chunks(file: BinaryIO, offset: int, size: int) -> Iterator[memoryview]:
    """The bytes of a range, in views of one buffer; it ends early where the file does."""
    buffer = memoryview(bytearray(min(CHUNK, max(size, 1))))
    file.seek(offset)
    while size > 0:
        got = file.readinto(buffer[: min(CHUNK, size)])  # type: ignore[attr-defined]
        if not got:
            return
        size -= got
        yield buffer[:got]


def crc32(file: BinaryIO, offset: int, size: int) -> int:
    """CRC-32 of a range, as zip directories state it."""
    value = 0
    for chunk in chunks(file, offset, size):
        value = isal_zlib.crc32(chunk, value)
    return value


def statistics(file: BinaryIO, offset: int, size: int, dtype: str) -> Statistics:
    """Statistics of the `dtype` elements in a range; `content` names its bytes (CRC-32 and Adler-32).

    Raises:
        KeyError: a dtype without numbers in it, see `KNOWN`.

    """
    load = _LOADERS[dtype]
    found = Statistics()
    crc, adler = 0, 1
    for chunk in chunks(file, offset, size):
        crc, adler = isal_zlib.crc32(chunk, crc), isal_zlib.adler32(chunk, adler)
        _add(found, load(chunk))
    found.content = f"{crc:08x}{adler:08x}"
    return found


def _add(found: Statistics, values: np.ndarray[Any, Any]) -> None:
    if not len(values):
        return
    found.count += len(values)
    found.zeros += len(values) - int(np.count_nonzero(values))
    low, high = float(values.min()), float(values.max())  # NaN if any element is
    if not (math.isfinite(low) and math.isfinite(high)):
        found.nan += int(np.isnan(values).sum())
        found.inf += int(np.isinf(values).sum())
        values = values[np.isfinite(values)]
        if not len(values):
            return
        low, high = float(values.min()), float(values.max())
    found.min, found.max = min(found.min, low), max(found.max, high)
    total, squares = _sums(values)
    found.total += total
    found.squares += squares


def _sums(values: np.ndarray[Any, Any]) -> tuple[float, float]:
    """(sum, sum of squares); single precision within a block, double across blocks."""
    if values.dtype == np.float32:
        with np.errstate(all="ignore"):
            total = sum(float(block.sum()) for block in _blocks(values))
            squares = _squares(values)
        # Squares below 1e-38 vanish and above 1e38 overflow in single precision.
        faithful = squares > 1e-25 * len(values) or (not squares and not values.any())
        if math.isfinite(total) and math.isfinite(squares) and faithful:
            return total, squares
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        return float(wide.sum()), _squares(wide)


def _squares(values: np.ndarray[Any, Any]) -> float:
    return sum(float(np.dot(block, block)) for block in _blocks(values))


def _blocks(values: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    return (values[start : start + _BLOCK] for start in range(0, len(values), _BLOCK))


def _as(dtype: str) -> Callable[[memoryview], np.ndarray[Any, Any]]:
    size = np.dtype(dtype).itemsize
    return lambda chunk: np.frombuffer(chunk, dtype, len(chunk) // size)


def _narrow(dtype: str) -> Callable[[memoryview], np.ndarray[Any, Any]]:
    """Integers that single precision holds exactly."""
    load = _as(dtype)
    return lambda chunk: load(chunk).astype("<f4")


def _bfloat16(chunk: memoryview) -> np.ndarray[Any, Any]:
    wide = np.frombuffer(chunk, "<u2", len(chunk) // 2).astype("<u4")
    wide <<= 16  # in place: another temporary would cost as much as all statistics
    return wide.view("<f4")


def _half(chunk: memoryview) -> np.ndarray[Any, Any]:
    return np.frombuffer(chunk, "<f2", len(chunk) // 2).astype("<f4")


def _float8(exponent: int, mantissa: int, bias: int, special: str) -> Callable[[memoryview], np.ndarray[Any, Any]]:
    """A table of the 256 values of an 8-bit float: OCP 8-bit Floating Point Specification; *fnuz: arXiv 2206.02915."""
    table = np.zeros(256, "<f4")
    for code in range(256):
        power, rest = code >> mantissa & (1 << exponent) - 1, code & (1 << mantissa) - 1
        value = math.ldexp(rest + (1 << mantissa if power else 0), max(power, 1) - bias - mantissa)
        if special == "ieee" and power == (1 << exponent) - 1:
            value = math.nan if rest else math.inf
        if special == "fn" and code & 0x7F == 0x7F:
            value = math.nan
        table[code] = -value if code & 0x80 else value
    if special == "fnuz":
        table[0x80] = math.nan
    return lambda chunk: table[np.frombuffer(chunk, "u1")]


_LOADERS: Mapping[str, Callable[[memoryview], np.ndarray[Any, Any]]] = {
    "float64": _as("<f8"), "float32": _as("<f4"), "float16": _half, "bfloat16": _bfloat16,
    "int64": _as("<i8"), "int32": _as("<i4"), "int16": _narrow("<i2"), "int8": _narrow("i1"), "uint8": _narrow("u1"),
    "uint16": _narrow("<u2"), "uint32": _as("<u4"), "uint64": _as("<u8"), "bool": _narrow("u1"),
    "float8_e4m3fn": _float8(4, 3, 7, "fn"), "float8_e5m2": _float8(5, 2, 15, "ieee"),
    "float8_e4m3fnuz": _float8(4, 3, 8, "fnuz"), "float8_e5m2fnuz": _float8(5, 2, 16, "fnuz"),
    "complex64": _as("<f4"), "complex128": _as("<f8"),
}  # fmt: skip
KNOWN = frozenset(_LOADERS)


def bit_sums(file: BinaryIO, offset: int, size: int, dtype: str, target: str) -> tuple[int, int] | None:
    """(sum, sum of squares modulo 2^64) of the 16-bit patterns that a range has once rounded to `target`.

    Both add up over the fragments of a parameter, so a 16-bit weight can be compared with its master copy
    although no rank holds all of it. float32 is rounded as a cast does: to nearest, ties to even.
    """
    if target not in ("bfloat16", "float16") or dtype not in ("float32", target):
        return None
    total, squares = 0, 0
    for chunk in chunks(file, offset, size):
        bits = _rounded(chunk, target) if dtype == "float32" else np.frombuffer(chunk, "<u2", len(chunk) // 2)
        wide = bits.astype(np.float64)  # exact: a chunk's squares add up to less than 2^53
        total += int(wide.sum())
        squares += int(_squares(wide))
    return total, squares & (1 << 63) - 1


def _rounded(chunk: memoryview, target: str) -> np.ndarray[Any, Any]:
    values = np.frombuffer(chunk, "<f4", len(chunk) // 4)
    if target == "float16":
        with np.errstate(all="ignore"):
            return values.astype("<f2").view("<u2")
    bits = values.view("<u4")
    rounded: np.ndarray[Any, Any] = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return rounded
