"""A chart's specification -> SVG text that is safe inside the page."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

from postmortem.report import words

_SVG = "http://www.w3.org/2000/svg"
_TAGS = {
    "svg",
    "g",
    "path",
    "text",
    "tspan",
    "rect",
    "line",
    "circle",
    "defs",
    "clipPath",
    "linearGradient",
    "stop",
    "title",
}
_BANNED = re.compile(r"(?i)^(?:on|href$|style$|.*\}href$|aria-|role)")
_LOCAL = re.compile(r"url\(#([\w\-]+)\)")


def draw(spec: dict[str, Any], prefix: str) -> str:
    """Draw a Vega-Lite specification, whatever characters its data hold.

    Only known elements and harmless attributes pass, whatever stood in the data. Identifiers get `prefix`,
    since several pictures share one page.

    Raises:
        ValueError: Vega could not draw it.
    """
    import vl_convert  # noqa: PLC0415 (84 MB; cleaning needs none of it)

    return clean(vl_convert.vegalite_to_svg(words.printable(spec), vl_version=_vega_lite(spec)), prefix)


def _vega_lite(spec: dict[str, Any]) -> str:
    # "https://vega.github.io/schema/vega-lite/v6.4.1.json" -> "6.4"
    return ".".join(re.findall(r"\d+", spec["$schema"].rpartition("/")[2])[:2])


def clean(text: str, prefix: str) -> str:
    """Rewrite an SVG with the known elements and attributes only."""
    root = ET.fromstring(text)  # noqa: S314 (our own renderer's output, without a DTD)
    _clean(root, prefix)
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    ET.register_namespace("", _SVG)
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, prefix: str) -> None:
    for name in [name for name in element.attrib if _BANNED.match(name)]:
        del element.attrib[name]
    for name, value in element.attrib.items():
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif "url(" in value:
            element.set(name, _LOCAL.sub(rf"url(#{prefix}-\1)", value) if _LOCAL.fullmatch(value) else "none")
    for child in list(element):
        if not isinstance(child.tag, str) or child.tag.removeprefix(f"{{{_SVG}}}") not in _TAGS:
            element.remove(child)
        else:
            _clean(child, prefix)


def script_json(value: Any) -> str:
    """JSON for a <script type="application/json">: nothing in it can end the element or start a comment.

    Raises:
        ValueError: a NaN or an infinity is in it; JSON has none.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
