"""One file per structured format; the folder is walked, there is no list to edit."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import cast

from postmortem.records import Parser


@cache
def parsers() -> Mapping[str, Parser]:
    """Every parser by its FORMAT, from the modules of this folder whose name has no leading underscore."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {module.FORMAT: cast("Parser", module) for module in modules if hasattr(module, "FORMAT")}
