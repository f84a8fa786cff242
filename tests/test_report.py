"""The report without a browser: its facts, what cannot get into it, and how large it may be."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any, cast

import pytest
import report_samples as samples

from postmortem import report
from postmortem.redact import Redactor
from postmortem.report import blocks, carried, curves, svg, ticket, words
from postmortem.report import page as page_module
from postmortem.report.charts import Marks
from postmortem.report.data import Data, Result, Row
from postmortem.report.transport import pairs, transports

PAYLOADS = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>alert(1)</script>",
    "\"'><svg onload=alert(1)>",
    "]]></text><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title></textarea><iframe src=javascript:alert(1)>",
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(1)",
    "\u2028alert(1)\u2029",
    "' onmouseover='alert(1)",
    "url(https://example.org/x)",
    "<b>\x00\x1b[31m\u202e\ud800\uffff",  # control characters abort vl-convert: it must never see them
    "data:text/html,<script>alert(1)</script>",
]


PHASES = [{"phase": "bwd", "difference": -0.1, "n": "9 and 9"}]


class Elements(HTMLParser):
    """Every element with the names of its attributes, in order; and the text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.policy = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""
        self.links += [value or "" for name, value in attrs if name in {"href", "src", "xlink:href", "action"}]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


Texts = Callable[[], str]


def corpus(first: int, texts: list[str] = PAYLOADS) -> Texts:
    """One payload after another, from the `first` on."""
    return itertools.cycle(texts[first:] + texts[:first]).__next__


def poison(value: Any, text: Texts) -> Any:
    """Every text of a document replaced, except where a word decides on the page's structure."""
    fixed = {"schema", "verdict", "fault", "can_mask"}
    if isinstance(value, dict):
        return {k: v if k in fixed else poison(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [poison(item, text) for item in value]
    return text() if isinstance(value, str) else value


def poisoned_data(text: Texts) -> Data:
    def poisoned(found: Mapping[str, Result]) -> dict[str, Result]:
        return {
            name: Result(name, result.title, result.sql, [_poison_row(row, text) for row in result.rows])
            for name, result in found.items()
        }

    clean = samples.data()
    return Data({side: poisoned(found) for side, found in clean.sides.items()}, poisoned(clean.pair))


def _poison_row(row: Row, text: Texts) -> Row:
    free = {"message", "source", "text"} | ({"kind", "name"} if "role" in row else set())
    changed = {key: text() if key in free else value for key, value in row.items()}
    if "series" in row:  # stays apart from the other series, and in their order
        changed["series"] = row["series"] + PAYLOADS[0]
    return changed


@pytest.fixture(scope="module")
def page() -> str:
    return report.html(samples.comparison(), samples.data())


def hostile(first: int, texts: list[str] = PAYLOADS) -> dict[str, Any]:
    return cast("dict[str, Any]", poison(samples.comparison(), corpus(first, texts)))


@pytest.mark.parametrize("first", [0, 5])
def test_no_text_of_an_input_becomes_markup(first: int) -> None:
    page = report.html(hostile(first), poisoned_data(corpus(first)), static=True)
    harmless = report.html(poison(samples.comparison(), lambda: "word"), poisoned_data(lambda: "word"), static=True)
    pictures = re.compile(r"<svg.*?</svg>", re.DOTALL)
    assert Elements(pictures.sub("", page)).found == Elements(pictures.sub("", harmless)).found
    # Where a mark is drawn may depend on a text's order, so of the pictures only the kinds of elements are compared.
    assert set(Elements(page).found) == set(Elements(harmless).found)
    shown = Elements(page).text
    for payload in PAYLOADS:
        assert words.cut(payload).split()[0] in shown


def test_no_text_of_an_input_ends_the_scripts_of_the_interactive_page() -> None:
    text = report.html(hostile(3), poisoned_data(corpus(8)))
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    kinds = re.findall(r"<script([^>]*)>", text)
    assert len(scripts) == len(kinds)
    for kind, body in zip(kinds, scripts, strict=True):
        if "json" in kind:
            assert not set("<>&\u2028\u2029") & set(body)
            json.loads(body, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    allowed = re.findall(r"'sha256-([^']+)'", Elements(text).policy)
    run = [body for kind, body in zip(kinds, scripts, strict=True) if "json" not in kind]
    assert [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in run] == allowed


def test_every_fact_stands_in_the_page_and_in_the_markdown(page: str) -> None:
    document = samples.comparison()
    shown = " ".join(Elements(page).text.split())
    text = ticket.render(document).replace("\\", "")
    for fact in (
        "undecided", document["why"], "0.472", "0.455 to 0.489", "1,400 and 2,000", "28,500", "1.60 MB/step",
        "Every step takes 2.1 times as long from step 600 on.", "Something slows the host of rank 3", "118 ms",
        "no throttling line in dmesg", "--exclude=node-a17", "logs/rank3.log:812", "train_micro_batch_size_per_gpu",
        "Rank 6 has no log.", "The loss spiked at step 312 and recovered.",
    ):  # fmt: skip
        assert fact in shown, fact
        assert fact in text, fact


def test_every_chart_is_drawn(page: str) -> None:
    assert "could not be drawn" not in page
    names = re.findall(r'<figure id="chart-([^"]+)" data-spec', page)
    assert names == [
        "step-time", "carried-phases", "carried-operators", "ranks", "phases", "waits", "progress", "transports", "transport-pairs", "timeline", "loss", "grad-norm", "memory", "twins", "checkpoints",
    ]  # fmt: skip


def _values(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    data = layer["data"]
    return cast("list[dict[str, Any]]", data["values"] if "values" in data else spec["datasets"][data["name"]])


def test_what_carries_the_change_adds_up_to_it() -> None:
    """Thirty operators, the largest of which by name: twelve, the rest and the whole, which is their sum."""
    rows = [
        {"name": f"op{place}", "phase": "cpu", "before_ms": 10.0, "after_ms": 10.0 + place, "change_ms": float(place),
         "before_count": 2.0, "after_count": 2.0} for place in range(-10, 20)
    ]  # fmt: skip
    found = carried.operators(Data({}, {"trace_operators_compared": Result("x", "x", "SELECT 1", rows)}), Marks())
    assert found is not None
    bars = max((_values(found.spec, layer) for layer in found.spec["layer"]), key=len)
    values = {bar["part"]: bar["value"] for bar in bars}
    assert values.pop("whole change") == sum(range(-10, 20))
    assert sum(values.values()) == sum(range(-10, 20))
    assert next(iter(values)) == "op19 (cpu)"
    assert len(values) == 13


def test_the_slope_is_drawn_through_the_last_half() -> None:
    """Rank 3 grows by 1.6 MB a step, from 4.06 GB on."""
    found = curves.memory(
        samples.data(), Marks(slopes={("before", "host_rss", 3): 1.6e6, ("before", "host_rss", 1): 0.0})
    )
    assert found is not None
    lines = [_values(found.spec, layer) for layer in found.spec["layer"] if layer["mark"].get("strokeWidth") == 7]
    assert [point["value"] for point in lines[0]] == pytest.approx([4.06 + 1.6e-3 * 1000, 4.06 + 1.6e-3 * 1960])
    assert "before, rank 3: 1.60 MB/step" in found.sentence


def test_the_transport_map_says_what_differs(page: str) -> None:
    """Eight connections over sockets before, none after."""
    assert "NET/Socket 8 connections of 4 processes before, 0 of 0 after" in page
    assert "NET/IB/GDRDMA 8 connections of 4 processes before, 16 of 8 after" in page
    figure = transports(samples.data(("run",)), Marks())
    assert figure is not None
    assert "Different" not in figure.sentence
    assert ("run", "node-b02", "NET/Socket", "ranks 4 to 7", "4", "8") in figure.rows
    assert transports(Data(), Marks()) is None


def test_the_pairs_say_whose_transport_differs(page: str) -> None:
    """Ranks 0 to 3 reach rank 7 over sockets before and over InfiniBand after; 28 pairs of eight ranks."""
    assert "NCCL connects 28 pairs (before) and 28 pairs (after)." in page
    assert (
        "NET/Socket before, NET/IB/GDRDMA after: rank 0 and rank 7, rank 1 and rank 7, rank 2 and rank 7 and 1 more"
        in page
    )
    figure = pairs(samples.data(("run",)), Marks())
    assert figure is not None
    assert figure.sentence == "NCCL connects 28 pairs."
    assert ("run", "rank 3", "rank 7", "NET/Socket", "4") in figure.rows
    assert pairs(Data(), Marks()) is None


def test_charts_keep_to_the_schema_of_vega_lite() -> None:
    for make in page_module._CHARTS:  # Altair checks what it builds unless it is told not to
        assert (
            make(samples.data(), Marks(onsets=[{"step": 600, "label": "x"}], steady={"before": (1, 9)}, phases=PHASES))
            is not None
        )


def test_nothing_is_loaded_or_linked_from_elsewhere(page: str) -> None:
    assert all(link.startswith("#") for link in Elements(page).links)
    assert Elements(page).policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_static_page_has_no_script_and_fixes_its_style() -> None:
    text = report.html(samples.comparison(), samples.data(), static=True)
    assert "<script" not in text
    assert "script-src" not in Elements(text).policy
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in Elements(text).policy


def test_identifiers_are_unique_over_all_pictures(page: str) -> None:
    found = re.findall(r'\sid="([^"]*)"', re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert len(found) == len(set(found))
    assert set(re.findall(r"url\(#([^)]+)\)", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))) <= set(found)


def test_sizes_of_small_and_large_jobs() -> None:
    for ranks in (8, 1024):
        static = report.html(samples.comparison(), samples.data(ranks=ranks), static=True)
        assert len(static.encode()) < 500_000
    assert len(report.html(samples.comparison(), samples.data(ranks=1024)).encode()) < 1_700_000


def test_a_page_that_would_be_too_large_leaves_its_scripts_out() -> None:
    document = samples.comparison()
    document["extra"] = ["x" * 1000] * 1000  # goes into the machine-readable copy only
    text = report.html(document, samples.data())
    assert len(text.encode()) <= 2_000_000
    assert "<script" not in text


def test_many_ranks_become_a_distribution_with_the_late_one_named() -> None:
    text = report.html(samples.comparison(), samples.data(ranks=1024), static=True)
    assert "Apart from the others: rank 3 (before)" in text


def test_what_is_not_finite_is_a_mark_and_never_in_json(page: str) -> None:
    figure = curves.loss(samples.data(), Marks())
    assert figure is not None
    assert "NaN rank 2 from step 1,500" in figure.sentence
    svg.script_json(figure.spec)
    drawn = svg.draw(figure.spec, "x")
    assert "NaN rank 2" in drawn
    assert ">NaN rank 2" in page


def test_a_document_with_nothing_in_it_still_gives_a_page() -> None:
    for document in ({"schema": "postmortem.diagnosis/1", "run": {}}, {"schema": "postmortem.comparison/1"}):
        assert "</html>" in report.html(document, Data())
        assert report.markdown(document)


def test_secrets_are_always_masked_and_names_on_request() -> None:
    document = samples.comparison()
    document["changes"].append(
        {
            "kind": "environment",
            "what": "WANDB_API_KEY",
            "before": "abc123",
            "after": "def456",
            "can_mask": [],
        }
    )
    document["before_diagnosis"]["faults"][0]["evidence"][0]["text"] = (
        "token=hf_abcdefghijklmnopqrstuvwxyz /home/jim/x.py"
    )
    for text in (report.html(document, samples.data()), report.markdown(document)):
        for secret in ("abc123", "def456", "hf_abcdef"):
            assert secret not in text
        assert "node-a17" in text.replace("\\", "")
    hide = Redactor(["node-a17", "node-b02"], ["jim"])
    text = report.html(document, samples.data(), redact=hide)
    for name in ("node-a17", "node-b02", "jim"):
        assert name not in text
    assert "host-1" in text


def test_markdown_has_no_formatting_of_the_inputs_and_fits_a_comment() -> None:
    document = poison(samples.comparison(), lambda: "a|b `x` <img src=x> @team **bold** [l](https://e.org) #1\n# head")
    text = ticket.render(document)
    outside = re.sub(r"`+ .*? `+", "", text)
    assert not re.search(r"(?<!\\)<|(?<!\\)\*\*bold|@team|(?<!\\)\[l|https://|(?m:^# head)", outside)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert widths <= {3, 4, 5, 6, 7}
    document["changes"] = document["changes"] * 5000
    document["before_diagnosis"]["faults"] *= 300
    assert len(ticket.render(document).encode()) <= 60_000


def test_the_svg_cleaner_drops_what_it_does_not_know() -> None:
    bad = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="x()">'
        '<script>x()</script><a xlink:href="javascript:x()"><text>t</text></a><text onclick="x()" style="fill:red">t</text>'
        '<rect fill="url(https://e.org/x)"/><g clip-path="url(#c)"/><foreignObject/><clipPath id="c"/></svg>'
    )
    clean = svg.clean(bad, "p")
    for word in ("script", "onload", "onclick", "javascript", "foreignObject", "https://e.org", "style"):
        assert word not in clean
    assert 'clip-path="url(#p-c)"' in clean
    assert 'id="p-c"' in clean


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (28500, "28,500"), (0.4721, "0.472"), (1 / 3, "0.333"), (1234.5, "1,234"), (0.0000123, "1.23e-05"), (None, "unknown"), (float("nan"), "nan"), (-200.0, "-200")],
)  # fmt: skip
def test_numbers(value: Any, shown: str) -> None:
    assert words.number(value) == shown


def test_when_the_memory_is_full_is_said_in_steps_and_hours() -> None:
    full = {"steps": 61.3, "steps_ci": [50.0, None], "hours": 0.5, "hours_ci": [0.4, None]}
    side = {"kind": "growing", "why": "", "slope": 2.0, "ci": [1.0, 3.0], "n": 40, "full_in": full}
    document = {"run": {}, "memory": [{"kind": "device_allocated", "rank": 0, "run": side, "unit": "B/step"}]}
    (block,) = blocks.blocks(document)
    assert block.table.rows[0][-1] == "growing; full in 61 steps (50 to unbounded), 0.50 hours (0.400 to unbounded)"


def test_ranks_and_sizes() -> None:
    assert words.ranks([3]) == "rank 3"
    assert words.ranks([1, 0, 2, 3]) == "ranks 0 to 3"
    assert words.ranks(range(0, 40, 2)) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 8 more"
    assert words.size(1.6e6) == "1.60 MB"
    assert words.interval([1, None]) == "1 to unbounded"
