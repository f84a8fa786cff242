"""Checkpoints written by torch.save (DeepSpeed, Megatron, plain PyTorch), without torch and without unpickling.

By default the structure is read and checked; the values of tensors are read too where the file is small or
`checkpoints = "deep"` is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

from postmortem.parsers import _checkpoint_rows as rows
from postmortem.parsers import _padding, _torch_file, _values
from postmortem.parsers._checkpoint_file import batch, checksums, is_deep, values, verdict
from postmortem.parsers._tensors import ITEMSIZE, Tensor
from postmortem.parsers._torch_file import LEGACY, TorchFile
from postmortem.parsers._torch_zip import Defect, Record
from postmortem.records import Parsed, Source

FORMAT = "torch_checkpoint"
DOC = "Files of torch.save: DeepSpeed ZeRO shards and model states, Megatron, universal checkpoints, .pt and .bin."

_BATCH = 20_000
_PADDED = frozenset({"fp32", "exp_avg", "exp_avg_sq", "momentum"})
# Names that promise a checkpoint whatever the bytes are, so that a damaged file is not taken for something else
# (runtime/engine.py, utils/constants of deepspeedai/DeepSpeed; checkpointing.py of NVIDIA/Megatron-LM).
_NAMES = re.compile(
    r"(model|optim)[-_]?states?\.pt$|(^|/)model_optim_rng\.pt$|(^|/)pytorch_model[^/]*\.bin$"
    r"|(^|/)zero/([^/]+/(fp32|exp_avg|exp_avg_sq|step)|optimizer_state)\.pt$"
)


def sniff(path: str, head: bytes) -> bool:
    """Whether it is a zip that begins with data.pkl, a legacy file, or has the name of a checkpoint."""
    if head[:4] == b"PK\x03\x04":
        return b"/data.pkl" in head[30:1100] or bool(_NAMES.search(path))
    return head.startswith(LEGACY) or _is_tar(head) or bool(_NAMES.search(path))


def _is_tar(head: bytes) -> bool:
    """Whether it is a tar as torch wrote before 0.1.10: torch/serialization.py of pytorch/pytorch, _legacy_load."""
    return head[257:262] == b"ustar" and head[:100].rstrip(b"\0") in {b"sys_info", b"pickle", b"tensors", b"storages"}


def parse(source: Source) -> Iterator[Parsed]:
    """Read the structure, then the values as far as asked, then say what the file is worth."""
    with source.file.open("rb") as file:
        head = file.read(512)
        if head[:4] != b"PK\x03\x04" and not head.startswith(LEGACY):
            yield from _foreign(source, head)
            return
        found = _torch_file.read(file, source.bytes, head)
        deep = is_deep(source)
        if deep:
            found.defects += checksums(file, found)
        yield from _contents(file, source, found, deep)
        yield from _verdict(source, found, deep)


def _foreign(source: Source, head: bytes) -> Iterator[Parsed]:
    message = "its first bytes are not those of a file that torch.save wrote"
    if not head.strip(b"\0"):
        message = "its first bytes are zero"
    if _is_tar(head):
        message = (
            "it is a tar, as torch wrote before version 0.1.10, which is not read; load and save it with a newer torch"
        )
    found = TorchFile("zip", defects=[Defect("foreign", message, 0, min(64, source.bytes))])
    yield from _verdict(source, found, deep=False)


def _contents(file: BinaryIO, source: Source, found: TorchFile, deep: bool) -> Iterator[Parsed]:
    if found.value is None:
        return
    value = found.value
    buffers = value.get("buffer_names") if isinstance(value, Mapping) else None
    named = frozenset(name for name in buffers if isinstance(name, str)) if isinstance(buffers, list) else frozenset()
    bare = rows.content(value) == "weights"
    leaves = rows.walk(value)
    masters: dict[int, tuple[Tensor, Record]] = {}
    paddings = _padding.paddings(source.file, value) if deep and found.little_endian else {}
    while part := list(islice(leaves, _BATCH)):
        tensors, states = [], []
        for path, leaf in part:
            if isinstance(leaf, Tensor):
                tensors.append(row := _tensor_row(file, source.path, found, (path, leaf), named, deep))
                if row["kind"] in _PADDED and row["group"] in paddings and row.get("nan") is not None:
                    _take_off(
                        row, _padding.held(file, row["offset"], leaf, ITEMSIZE[leaf.dtype], paddings[row["group"]])
                    )
                if bare and row["kind"] == "other":  # a file of nothing but named tensors
                    row |= {"kind": "parameter", "name": path}
                states += _scalar_row(file, found, path, leaf)
                record = found.records.get(leaf.storage.key)
                if row["kind"] == "fp32" and row["group"] is not None and record and row["offset"] is not None:
                    masters.setdefault(row["group"], (leaf, record))
            elif not _is_parameter_map(path):
                states.append({"key": path, "value": rows.as_json(path, leaf)})
        yield from batch("checkpoint_tensor", tensors)
        yield from batch("checkpoint_state", states)
    listed = rows.parameters(value)
    target = rows.sixteen_bit(value)
    if deep and target and found.little_endian:
        _add_bits(file, listed, masters, target)
    yield from batch("checkpoint_parameter", listed)


def _take_off(row: dict[str, Any], padding: dict[str, Any]) -> None:
    """What no parameter owns does no harm, whatever it is."""
    for name in ("nan", "inf"):
        row[name] -= padding.pop(name)
    row |= padding


def _is_parameter_map(path: str) -> bool:
    return bool(re.match(r"param_shapes\.|frozen_param_shapes\.|optimizer_state_dict\.param_slice_mappings\.", path))


def _tensor_row(
    file: BinaryIO, path: str, found: TorchFile, leaf: tuple[str, Tensor], buffers: frozenset[str], deep: bool
) -> dict[str, Any]:
    where, tensor = leaf
    kind, group, name = rows.classify(where, path, buffers)
    record = found.records.get(tensor.storage.key)
    size = tensor.numel * ITEMSIZE[tensor.dtype]
    held = record is not None and tensor.inside and tensor.storage.bytes == record.size
    offset = record.offset + tensor.start * ITEMSIZE[tensor.dtype] if record and held else None
    row = {
        "path": where, "kind": kind, "group": group, "name": name, "dtype": tensor.dtype,
        "shape": list(tensor.shape), "numel": tensor.numel, "storage": tensor.storage.key,
        "storage_numel": tensor.storage.numel, "offset": offset, "bytes": size, "device": tensor.storage.device,
        "crc32": record.crc if record else None,
    }  # fmt: skip
    if deep and offset is not None and tensor.dense and found.little_endian:
        row |= values(file, offset, size, tensor.dtype)
        if row["crc32"] is None and tensor.storage.bytes == size:
            row["crc32"] = int(str(row["content"])[:8], 16)
        if kind == "parameter" and (bits := _values.bit_sums(file, offset, size, tensor.dtype, tensor.dtype)):
            row |= {"bits": bits[0], "bits_squared": bits[1]}
    return row


def _scalar_row(file: BinaryIO, found: TorchFile, path: str, tensor: Tensor) -> list[dict[str, Any]]:
    """Tensors of one number, such as an optimizer's step, count as settings."""
    record = found.records.get(tensor.storage.key)
    size = ITEMSIZE[tensor.dtype]
    if tensor.numel != 1 or tensor.dtype not in _values.KNOWN or record is None or not tensor.inside:
        return []
    if record.size != tensor.storage.bytes or not found.little_endian:
        return []
    one = _values.statistics(file, record.offset + tensor.start * size, size, tensor.dtype)
    number = one.min if one.finite else float("nan") if one.nan else float("inf")
    return [{"key": path, "value": rows.as_json(path, int(number) if number == number // 1 else number)}]


def _add_bits(
    file: BinaryIO, listed: list[dict[str, Any]], masters: Mapping[int, tuple[Tensor, Record]], target: str
) -> None:
    for row in listed:
        master = masters.get(row["group"]) if row["kind"] == "slice" else None
        if master is None or row["start"] is None or row["numel"] is None:
            continue
        tensor, record = master
        size = ITEMSIZE[tensor.dtype]
        start, stop = row["start"], row["start"] + row["numel"]
        if start >= 0 and stop <= tensor.numel and tensor.dense:
            offset = record.offset + (tensor.start + start) * size
            bits = _values.bit_sums(file, offset, row["numel"] * size, tensor.dtype, target)
            row.update({"bits": bits[0], "bits_squared": bits[1]} if bits else {})


def _verdict(source: Source, found: TorchFile, deep: bool) -> Iterator[Parsed]:
    known = found.value is not None
    yield from verdict(
        source, found.container, found.defects, deep=deep,
        content=rows.content(found.value) if known else None, stem=found.stem, identity=found.identity,
        storages=len(found.storages), storage_bytes=sum(held.bytes for held in found.storages.values()),
        recovered_bytes=sum(record.size for record in found.records.values()),
        tensors=len(rows.leaf_tensors(found.value)) if known else None,
    )  # fmt: skip
