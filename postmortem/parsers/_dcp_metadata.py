"""What .metadata of torch.distributed.checkpoint says: every piece of every tensor, and where it is stored.

Classes: torch/distributed/checkpoint/metadata.py and filesystem.py of pytorch/pytorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from postmortem.parsers._tensors import ITEMSIZE
from postmortem.parsers._unpickle import Global, Inert, Refused

MAX_PIECES = 250_000
PIECES = frozenset({
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
})  # fmt: skip
"""Classes of which every piece of a tensor has an object."""
_WIDEST = 1 << 48  # elements along one axis


@dataclass(frozen=True, slots=True)
class Described:
    """A tensor: its dtype, full shape, and the shape of every piece by its offsets."""

    dtype: str | None
    shape: tuple[int, ...]
    pieces: Mapping[tuple[int, ...], tuple[int, ...]]


def pieces(value: Any) -> list[dict[str, Any]]:
    """Rows of checkpoint_parameter: one per stored item, then one, without a file, per piece that is stored nowhere.

    Raises:
        Refused: there are more than `MAX_PIECES`; a few bytes can state the same list many times.

    """
    tensors = described(value)
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for index, info in _mapping(value, "storage_data").items():
        where, what = _attributes(info), _attributes(index)
        file, offset, length = where.get("relative_path"), where.get("offset"), where.get("length")
        if isinstance(file, str) and _count(offset) and _count(length):
            name, origin = str(what.get("fqn", "")), _counts(what.get("offset"))
            seen.add((name, origin or ()))
            rows.append(_row(name, origin, tensors.get(name)) | {"file": file, "offset": offset, "bytes": length})
    for name, tensor in tensors.items():
        rows += [_row(name, origin, tensor) for origin in tensor.pieces if (name, origin) not in seen]
    return [{"kind": "chunk", "position": position, **row} for position, row in enumerate(rows)]


def described(value: Any) -> dict[str, Described]:
    """Every tensor by its name; objects that are no tensors are left out."""
    found: dict[str, Described] = {}
    total = 0
    for name, entry in _mapping(value, "state_dict_metadata").items():
        stated = _attributes(entry)
        shape, chunks = _counts(stated.get("size")), stated.get("chunks")
        if not isinstance(name, str) or shape is None or not isinstance(chunks, list | tuple):
            continue
        total += len(chunks)
        if total > MAX_PIECES:
            raise Refused("limit", f"it lists more than {MAX_PIECES} pieces of tensors")
        found[name] = Described(_dtype(stated.get("properties")), shape, dict(_chunks(chunks, len(shape))))
    return found


def _chunks(chunks: list[Any] | tuple[Any, ...], axes: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for chunk in chunks:
        stated = _attributes(chunk)
        origin, sizes = _counts(stated.get("offsets")), _counts(stated.get("sizes"))
        if origin is not None and sizes is not None and len(origin) == len(sizes) == axes:
            yield origin, sizes


def _row(name: str, origin: tuple[int, ...] | None, tensor: Described | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name}
    if tensor is None or origin is None:
        return row
    piece = tensor.pieces.get(origin)
    row |= {"dtype": tensor.dtype, "shape": list(tensor.shape), "origin": list(origin)}
    return row if piece is None else row | {"piece": list(piece), "numel": min(math.prod(piece), 1 << 60)}


def _dtype(properties: Any) -> str | None:
    # TensorProperties.__getstate__ gives a tuple with the dtype first; before torch 2.0 it was a dict.
    state = properties.state if isinstance(properties, Inert) else None
    first = state[0] if isinstance(state, tuple) and state else _attributes(properties).get("dtype")
    name = first.name.removeprefix("torch.") if isinstance(first, Global) else None
    return name if name in ITEMSIZE else None


def _mapping(value: Any, name: str) -> Mapping[Any, Any]:
    found = _attributes(value).get(name)
    return found if isinstance(found, Mapping) else {}


def _attributes(value: Any) -> Mapping[str, Any]:
    return value.attributes() if isinstance(value, Inert) else {}


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 60


def _counts(value: Any) -> tuple[int, ...] | None:
    """A torch.Size, which is a tuple or what is left of a call of it."""
    if isinstance(value, Inert) and value.name == "torch.Size" and len(value.args) == 1:
        value = value.args[0]
    if not isinstance(value, tuple | list) or len(value) > 64:
        return None
    return tuple(value) if all(type(v) is int and 0 <= v < _WIDEST for v in value) else None
