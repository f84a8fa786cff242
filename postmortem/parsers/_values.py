"""Checksums and statistics of stored numbers, chunk by chunk, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

import numpy as np
from isal import isal_zlib

CHUNK = 1 << 18  # B; small enough to stay in a core's cache between the passes
_PIECE = 1 << 17  # B; what is made wider stays below the size from which the allocator maps fresh pages each time
_FEW = 1 << 14  # B; below, making a tally of all codes takes longer than the elements themselves
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
    load = _LOADERS.get(dtype) or _decoder(dtype)
    tally = _Tally(dtype) if dtype in _CODES and size > _FEW else None
    found = Statistics()
    crc, adler = 0, 1
    for chunk in chunks(file, offset, size):
        crc, adler = isal_zlib.crc32(chunk, crc), isal_zlib.adler32(chunk, adler)
        if tally is None:
            for start in range(0, len(chunk), _PIECE):
                _add(found, load(chunk[start : start + _PIECE]))
        else:
            tally.add(chunk)
    if tally is not None:
        tally.sum_up(found)
    found.content = f"{crc:08x}{adler:08x}"
    return found


class _Tally:
    """How often each code of a float of at most 16 bits occurs; the statistics that follow are exact.

    One pass over integers is faster than numpy's half precision. Integers and bfloat16 become wider without
    decoding, and are faster without a tally.
    """

    def __init__(self, dtype: str) -> None:
        self.counts = np.zeros(1 << 16, np.int64)
        self.values = _values_of(dtype)
        self.odd: list[int] = []

    def add(self, chunk: memoryview) -> None:
        """Count codes of two bytes; single bytes are counted in pairs, and one that is left over by itself."""
        even = len(chunk) & ~1
        found = np.bincount(np.frombuffer(chunk[:even], "<u2"))
        self.counts[: len(found)] += found
        self.odd += chunk[even:]

    def sum_up(self, found: Statistics) -> None:
        """Fill `found` from the counts."""
        counts = self.counts
        if len(self.values) == 1 << 8:
            pairs = counts.reshape(1 << 8, 1 << 8)
            odd = np.bincount(np.array(self.odd, np.intp), minlength=1 << 8)
            counts = pairs.sum(axis=0) + pairs.sum(axis=1) + odd
        used = np.flatnonzero(counts)
        values, counts = self.values[used], counts[used]
        finite = np.isfinite(values)
        found.count = int(counts.sum())
        found.nan = int(counts[np.isnan(values)].sum())
        found.inf = int(counts[np.isinf(values)].sum())
        found.zeros = int(counts[values == 0].sum())
        values, counts = values[finite], counts[finite]
        if len(values):
            found.min, found.max = float(values.min()), float(values.max())
            found.total = math.fsum((values * counts).tolist())
            found.squares = math.fsum((values * values * counts).tolist())


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


def _float8(exponent: int, mantissa: int, bias: int, special: str) -> np.ndarray[Any, Any]:
    """The 256 values of an 8-bit float: OCP 8-bit Floating Point Specification; *fnuz: arXiv 2206.02915."""
    table = np.zeros(256)
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
    return table


def _halves() -> np.ndarray[Any, Any]:
    # A signaling NaN among the codes is no mistake of the arithmetic.
    with np.errstate(invalid="ignore"):
        return np.arange(1 << 16).astype("<u2").view("<f2").astype(np.float64)


def _bfloat16(chunk: memoryview) -> np.ndarray[Any, Any]:
    return (np.frombuffer(chunk, "<u2", len(chunk) // 2).astype("<u4") << 16).view("<f4")


# Floats that no processor counts with, by what gives the values of all their codes.
_CODES: Mapping[str, Callable[[], np.ndarray[Any, Any]]] = {
    "float16": _halves, "complex32": _halves,
    "float8_e4m3fn": lambda: _float8(4, 3, 7, "fn"), "float8_e5m2": lambda: _float8(5, 2, 15, "ieee"),
    "float8_e4m3fnuz": lambda: _float8(4, 3, 8, "fnuz"), "float8_e5m2fnuz": lambda: _float8(5, 2, 16, "fnuz"),
}  # fmt: skip


@cache
def _values_of(dtype: str) -> np.ndarray[Any, Any]:
    return _CODES[dtype]()


_LOADERS: Mapping[str, Callable[[memoryview], np.ndarray[Any, Any]]] = {
    "float64": _as("<f8"), "float32": _as("<f4"), "int64": _as("<i8"), "int32": _as("<i4"),
    "uint32": _as("<u4"), "uint64": _as("<u8"), "complex64": _as("<f4"), "complex128": _as("<f8"),
    "int16": _as("<i2"), "uint16": _as("<u2"), "int8": _as("i1"), "uint8": _as("u1"), "bool": _as("u1"),
    "bfloat16": _bfloat16,
}  # fmt: skip


def _decoder(dtype: str) -> Callable[[memoryview], np.ndarray[Any, Any]]:
    """Values by a look-up per element, which is quicker than a tally for a few of them."""
    table = _values_of(dtype)
    code = _as("u1" if len(table) == 1 << 8 else "<u2")
    return lambda chunk: table[code(chunk)]


KNOWN = frozenset(_LOADERS) | frozenset(_CODES)


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
