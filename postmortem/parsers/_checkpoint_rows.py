"""The structure of a checkpoint -> rows: tensors, scalar settings, statements about parameters.

Keys: runtime/engine.py, runtime/zero/stage_1_and_2.py, stage3.py and bf16_optimizer.py of deepspeedai/DeepSpeed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from postmortem.parsers._tensors import Storage, Tensor, tensor
from postmortem.parsers._unpickle import Global, Inert, Refused

MAX_ROWS = 250_000  # containers and leaves of one file
_MAX_PATH = 300
_INLINE = 64  # scalars of a list that is kept as one value
_MAX_TEXT = 500
_SECRET = re.compile(r"(?i)(token|secret|passw|api_?key|credential)")

_FLAT = r"(?:single_partition_of_fp32_groups|fp32_flat_groups|fp32_groups_flat|fp32_groups)"
# What a path says about a tensor; named groups are columns.
_KINDS = [
    (re.compile(rf"(?:^|\.){_FLAT}\.(?P<group>\d+)"), "fp32"),
    (re.compile(r"(?:^|\.)fp32_from_(?:fp16|float16)_params\.(?P<group>\d+)"), "fp32"),  # of NVIDIA/Megatron-LM
    (re.compile(r"(?:^|\.)state\.(?P<group>\d+)\.(?P<kind>exp_avg_sq|exp_avg|step)$"), None),
    (re.compile(r"(?:^|\.)state\.(?P<group>\d+)\.(?:momentum_buffer|momentum)$"), "momentum"),
    (re.compile(r"base_optimizer_state\.(?P<group>\d+)\.(?P<kind>exp_avg_sq|exp_avg|step)$"), None),
    (re.compile(r"^module\.(?P<name>.+)$"), "parameter"),
]
_UNIVERSAL = re.compile(r"(?:^|/)zero/(?P<name>[^/]+)/(?P<kind>fp32|exp_avg|exp_avg_sq|step)\.pt$")
# Files whose further tensors are weights, by the root of their paths. In stage 3 the frozen fragments are
# partitions, whose tails hold whatever was in memory.
_WEIGHTS = [
    (re.compile(r"(?:^|/)model_optim_rng\.pt$"), re.compile(r"^model\d*\.")),
    (re.compile(r"(?:^|/)mp_rank_\d+[^/]*model_states\.pt$"), re.compile(r"^frozen_param_fragments\.")),
]
_LAYER = re.compile(r"(?:^|/)layer_\d+[^/]*model[-_]states?\.pt$")


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Every leaf with its dotted path: tensors, scalars, short lists of scalars, names of classes.

    The value has no cycles and bounded depth (`_unpickle.check_depth`); shared parts can still make the tree
    exponentially larger than the file.

    Raises:
        Refused: the tree has more than `MAX_ROWS` nodes.
    """
    stack: list[tuple[str, Any]] = [("", value)]
    nodes = 0
    while stack:
        path, item = stack.pop()
        nodes += 1
        if isinstance(item, Inert):
            made = tensor(item)
            if made is not None:
                yield path, made
                continue
            item = _opened(item)
        # A wide container is refused before its children's paths are made.
        wide = isinstance(item, Mapping) or (isinstance(item, list | tuple) and not all(map(_scalar, item)))
        if nodes + len(stack) + (len(item) if wide else 0) > MAX_ROWS:
            raise Refused("limit", f"its structure has more than {MAX_ROWS} parts")
        if isinstance(item, Mapping):
            stack += [(_join(path, key), child) for key, child in reversed(list(item.items()))]
        elif isinstance(item, list | tuple) and (len(item) > _INLINE or not all(map(_scalar, item))):
            nested = [child for child in item[: _INLINE * 16] if not _scalar(child)]
            if nested:
                stack += [(_join(path, i), child) for i, child in reversed([*enumerate(item)])]
            else:
                yield path, {"items": len(item)}
        else:
            yield path, item


def _opened(item: Inert) -> Any:
    attributes = item.attributes()
    if attributes:
        return attributes
    if item.pairs:
        return {str(key)[:_MAX_TEXT]: child for key, child in item.pairs}
    # An enumeration member is its class called with its value: ZeroStageEnum(1).
    return item.args[0] if len(item.args) == 1 else [*item.args, *(item.items or ())] or item.name


def _join(path: str, key: Any) -> str:
    text = str(key) if isinstance(key, str | int | float | bool | None) else type(key).__name__
    return (f"{path}.{text}" if path else text)[:_MAX_PATH]


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool | bytes | Global)


def as_json(path: str, value: Any) -> str:
    """A leaf as JSON text; secrets, long texts and bytes are left out."""
    if isinstance(value, str) and _SECRET.search(path):
        value = "(left out)"
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    if isinstance(value, Global):
        return value.name
    if isinstance(value, Storage):
        return {"storage": value.key}
    return [_plain(child) for child in value] if isinstance(value, list | tuple) else value


def classify(path: str, file: str, buffers: frozenset[str]) -> tuple[str, int | None, str | None]:
    """(kind, group, name) of the tensor at `path` in the checkpoint file `file`."""
    universal = _UNIVERSAL.search(file)
    if universal and path in ("", "param"):
        return universal["kind"], None, universal["name"]
    for pattern, kind in _KINDS:
        match = pattern.search(path)
        if match:
            groups = match.groupdict()
            name = groups.get("name")
            found = kind or groups["kind"]
            return ("buffer" if name in buffers else found), _int(groups.get("group")), name
    if _LAYER.search(file) or any(named.search(file) and root.search(path) for named, root in _WEIGHTS):
        return "parameter", None, path
    return "other", None, None


def _int(text: str | None) -> int | None:
    return int(text) if text is not None and len(text) < 9 else None


def content(value: Any) -> str:
    """What a file holds, by its top-level keys."""
    if not isinstance(value, Mapping):
        return "parameter" if isinstance(value, Inert) and tensor(value) else "other"
    if "optimizer_state_dict" in value:
        return "optimizer"
    if "module" in value:
        return "model"
    if "param" in value and isinstance(value["param"], Inert):
        return "parameter"
    weights = value and all(isinstance(child, Inert) and tensor(child) for child in value.values())
    return "weights" if weights else "other"


def parameters(value: Any) -> list[dict[str, Any]]:
    """What param_shapes, frozen_param_shapes and param_slice_mappings say, one row per parameter."""
    if not isinstance(value, Mapping):
        return []
    optimizer = value.get("optimizer_state_dict")
    slices = optimizer.get("param_slice_mappings") if isinstance(optimizer, Mapping) else None
    rows = [
        *_shapes("shape", value.get("param_shapes")),
        *_shapes("frozen", value.get("frozen_param_shapes")),
    ]
    return rows + [
        {"kind": "slice", "group": group, "position": position, "name": str(name), **_fragment(address)}
        for group, names in _groups(slices)
        for position, (name, address) in enumerate(names.items())
    ]


def _shapes(kind: str, value: Any) -> Iterator[dict[str, Any]]:
    for group, names in _groups(value):
        for position, (name, shape) in enumerate(names.items()):
            if isinstance(shape, tuple) and all(type(size) is int and 0 <= size < 1 << 40 for size in shape):
                numel = min(math.prod(shape), 1 << 60)
                row = {"kind": kind, "group": group, "position": position, "name": str(name)}
                yield {**row, "shape": list(shape), "numel": numel}


def _groups(value: Any) -> list[tuple[int, Mapping[Any, Any]]]:
    # Before a model had several groups, param_shapes was one dict instead of a list of them.
    listed = [value] if isinstance(value, Mapping) else value
    if not isinstance(listed, list | tuple):
        return []
    return [(group, names) for group, names in enumerate(listed) if isinstance(names, Mapping)]


def _fragment(address: Any) -> dict[str, Any]:
    state = address.attributes() if isinstance(address, Inert) else {}
    plain = {key: value for key, value in state.items() if type(value) is int and abs(value) < 1 << 60}
    if isinstance(address, Inert) and not plain and len(address.args) == 2:
        plain = dict(zip(("numel", "start"), address.args, strict=True))
    good = {key: plain.get(key) for key in ("numel", "start")}
    return {key: value if type(value) is int else None for key, value in good.items()}


def sixteen_bit(value: Any) -> str | None:
    """The 16-bit type that the configuration trains in, as a dtype."""
    config = value.get("ds_config") if isinstance(value, Mapping) else None
    for key, dtype in (("bf16", "bfloat16"), ("bfloat16", "bfloat16"), ("fp16", "float16")):
        section = config.get(key) if isinstance(config, Mapping) else None
        if isinstance(section, Mapping) and section.get("enabled") is True:
            return dtype
    return None


def leaf_tensors(value: Any) -> list[tuple[str, Tensor]]:
    """Every tensor with its path."""
    return [(path, leaf) for path, leaf in walk(value) if isinstance(leaf, Tensor)]
