"""Which elements of an optimizer shard's flat tensors are padding, and what they hold.

Stages 1 and 2 pad a group at its end and state by how much (group_paddings; runtime/zero/stage_1_and_2.py of
deepspeedai/DeepSpeed). Stage 3 pads every parameter to a multiple of the ranks (runtime/zero/partition_parameters.py);
how long the parameters are is stated in the model states beside the shard, which are read for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from postmortem.parsers import _torch_file, _values
from postmortem.parsers._checkpoint_rows import parameters
from postmortem.parsers._tensors import Tensor, tensor
from postmortem.parsers._unpickle import Inert

Ranges = Mapping[int, Sequence[tuple[int, int]]]
"""Group -> the ranges of elements of its partition that are padding."""

_SHARD = re.compile(r"zero_pp_rank_(?P<dp>\d{1,7})_(?P<mp>mp_rank_\d+(?:_\d+)?)_?optim_states\.pt$")


def paddings(file: Path, value: Any) -> Ranges:
    """Padding of every group of the optimizer shard in `file`, as far as it is stated and fits the shard."""
    optimizer = value.get("optimizer_state_dict") if isinstance(value, Mapping) else None
    if not isinstance(optimizer, Mapping):
        return {}
    match = _SHARD.search(file.name)
    if match and isinstance(optimizer.get("fp32_flat_groups"), list):
        return _stage_3(optimizer, _shapes(file, match), int(match["dp"]))
    return _stage_12(optimizer)


def _stage_12(optimizer: Mapping[str, Any]) -> Ranges:
    stated, groups = optimizer.get("group_paddings"), optimizer.get("single_partition_of_fp32_groups")
    if not isinstance(stated, list) or not isinstance(groups, list) or len(stated) != len(groups):
        return {}
    found = {}
    for group, (padding, held) in enumerate(zip(stated, map(_numel, groups), strict=True)):
        if type(padding) is int and padding > 0 and held is not None:
            # BF16_Optimizer, which states no zero_stage, leaves the padding in the tensor.
            end = held if "zero_stage" not in optimizer else held + padding
            found[group] = [(end - padding, end)] if padding <= end else []
    return found


def _stage_3(optimizer: Mapping[str, Any], shapes: list[dict[str, Any]], dp: int) -> Ranges:
    ranks = optimizer.get("partition_count")
    if type(ranks) is not int or not dp < ranks < 1 << 24:
        return {}
    found: dict[int, list[tuple[int, int]]] = {}
    ends: dict[int, int] = {}
    for row in shapes:
        share = -(-row["numel"] // ranks)
        start = ends.get(row["group"], 0)
        end = ends[row["group"]] = start + share
        real = min(max(row["numel"] - dp * share, 0), share)
        if real < share:
            found.setdefault(row["group"], []).append((start + real, end))
    held = dict(enumerate(map(_numel, optimizer["fp32_flat_groups"])))
    return {group: ranges for group, ranges in found.items() if held.get(group) == ends[group]}


def _numel(value: Any) -> int | None:
    made = tensor(value) if isinstance(value, Inert) else None
    return made.numel if made else None


def _shapes(file: Path, match: re.Match[str]) -> list[dict[str, Any]]:
    """param_shapes of the model states that belong to a shard: every rank's file states them."""
    beside = file.with_name(f"zero_pp_rank_{match['dp']}_{match['mp']}_model_states.pt")
    try:
        with beside.open("rb") as opened:
            found = _torch_file.read(opened, beside.stat().st_size, opened.read(512))
    except OSError:
        return []
    return [] if found.defects else [row for row in parameters(found.value) if row["kind"] == "shape"]


def held(file: BinaryIO, offset: int, made: Tensor, size: int, ranges: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Columns of checkpoint_tensor: padding, how much of it is not zero, and where the first such element is.

    Args:
        file: the checkpoint file.
        offset: where the tensor's elements begin, B.
        made: the tensor, dense and one-dimensional.
        size: bytes per element.
        ranges: padding in elements; ranges beyond the tensor's end do not count.

    Returns:
        The columns, with `nan` and `inf` of the padding to be taken off the tensor's.
    """
    inside = [(start, stop) for start, stop in ranges if stop <= made.numel]
    found = {"padding": sum(stop - start for start, stop in inside), "padding_filled": 0, "nan": 0, "inf": 0}
    for start, values in _read(file, offset, made.dtype, size, inside):
        if (filled := values.count - values.zeros) and "padding_offset" not in found:
            found["padding_offset"] = offset + start * size
        found["padding_filled"] += filled
        found["nan"] += values.nan
        found["inf"] += values.inf
    return found


def _read(
    file: BinaryIO, offset: int, dtype: str, size: int, ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, _values.Statistics]]:
    for start, stop in ranges:
        yield start, _values.statistics(file, offset + start * size, (stop - start) * size, dtype)
