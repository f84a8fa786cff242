"""The one-line files that name the checkpoint to resume from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from postmortem.parsers._checkpoint_file import verdict
from postmortem.parsers._torch_zip import Defect
from postmortem.records import Parsed, Source

FORMAT = "checkpoint_tag"
DOC = "latest, latest_universal, latest_checkpointed_iteration.txt: the tag of the checkpoint to resume from."

# runtime/engine.py of deepspeedai/DeepSpeed, checkpointing.py of NVIDIA/Megatron-LM
_NAME = re.compile(r"(^|/)(latest|latest_universal|latest_checkpointed_iteration\.txt)$")
_MAX_TAG = 1000


def sniff(path: str, head: bytes) -> bool:
    """Whether the file is named like a tag file and is short."""
    return bool(_NAME.search(path)) and len(head) <= 4 * _MAX_TAG


def parse(source: Source) -> Iterator[Parsed]:
    """Read the tag."""
    text = source.file.read_bytes()[: 4 * _MAX_TAG].decode("utf-8", "replace").strip()
    good = bool(text) and len(text) <= _MAX_TAG and text.isprintable() and ".." not in text.split("/")
    defects = [] if good else [Defect("damaged", "it does not hold the name of a tag", 0, source.bytes)]
    if source.path.endswith("latest_checkpointed_iteration.txt") and text.isdecimal():
        text = f"iter_{int(text):07d}"  # get_checkpoint_name in checkpointing.py of NVIDIA/Megatron-LM
    yield from verdict(source, "tag", defects, deep=True, points_to=text if good else None)
