"""Tensors as checkpoints describe them: dtype, shape and the bytes of a file, never the array."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from postmortem.parsers._unpickle import Global, Inert

ITEMSIZE: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1,
    "complex64": 8, "complex128": 16, "complex32": 4,
    "quint8": 1, "qint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
}  # fmt: skip
"""Bytes of one element by torch dtype (c10/core/ScalarType.h of pytorch/pytorch)."""

# Classes of torch.storage by what they hold.
_STORAGES: Mapping[str, str] = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "UntypedStorage": "uint8", "QUInt8Storage": "quint8",
    "QInt8Storage": "qint8", "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Storage:
    """A persistent id of torch.save: what kind of elements, under which key, how many, on which device."""

    key: str
    dtype: str
    device: str
    numel: int

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.numel * ITEMSIZE[self.dtype]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view into a storage; start and stride in elements of dtype."""

    storage: Storage
    dtype: str
    start: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def dense(self) -> bool:
        """Whether its elements are one gapless range of the storage, in whatever order."""
        span = 1
        for step, size in sorted((step, size) for step, size in zip(self.stride, self.shape, strict=True) if size != 1):
            if step != span:
                return False
            span *= size
        return True

    @property
    def inside(self) -> bool:
        """Whether every element lies inside the storage."""
        if not self.numel:
            return True
        last = sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))
        return (self.start + last + 1) * ITEMSIZE[self.dtype] <= self.storage.bytes


def storage(identity: Any) -> Storage:
    """Turn torch.save's persistent id ("storage", class, key, location, numel[, view]) into a Storage.

    Raises:
        ValueError: it is not one.

    """
    if not isinstance(identity, tuple) or len(identity) < 5 or identity[0] != "storage":
        raise ValueError("not a storage")
    _, kind, key, device, numel = identity[:5]
    dtype = _STORAGES.get(kind.name.rsplit(".", 1)[-1]) if isinstance(kind, Global) else None
    if dtype is None or not _counts((numel,)):
        raise ValueError("not a storage")
    return Storage(str(key), dtype, str(device)[:40], numel)


def _counts(values: Any) -> bool:
    return isinstance(values, tuple) and all(type(v) is int and 0 <= v < 1 << 60 for v in values)


def tensor(made: Inert) -> Tensor | None:
    """Give the tensor that one of torch's rebuild functions would make, or None for anything else.

    Source: torch/_utils.py, torch/_tensor.py of pytorch/pytorch.
    """
    name, args = made.name, made.args
    for _ in range(4):
        if name == "torch._tensor._rebuild_from_type_v2" and len(args) >= 3 and isinstance(args[0], Global):
            name, args = args[0].name, args[2] if isinstance(args[2], tuple) else ()
        elif name.startswith("torch._utils._rebuild_parameter") and args and isinstance(args[0], Inert):
            name, args = args[0].name, args[0].args
    if name not in _REBUILDERS or len(args) < 4:
        return None
    held, start, shape, stride = args[:4]
    shape, stride = _plain(shape), _plain(stride)
    dtype = held.dtype if isinstance(held, Storage) else ""
    if name.endswith("_v3") and len(args) > 6 and isinstance(args[6], Global):
        dtype = args[6].name.removeprefix("torch.")
    sound = isinstance(held, Storage) and _counts((start,)) and _counts(shape) and _counts(stride)
    if not sound or len(shape) != len(stride) or dtype not in ITEMSIZE or math.prod(shape) >= 1 << 60:
        return None
    return Tensor(held, dtype, start, shape, stride)


_REBUILDERS = {
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_qtensor",  # its quantizer's scale and zero point are not applied
}


def _plain(size: Any) -> Any:
    return tuple(size) if isinstance(size, list) else size
