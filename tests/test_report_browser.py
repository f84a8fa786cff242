"""The report in headless Chromium: drawn, silent, harmless, readable where scripts are forbidden, from 320 px to 4K."""

from __future__ import annotations

import base64
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import report_samples as samples
from test_report import PAYLOADS, corpus, hostile, poisoned_data

from postmortem import report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and its driver are not installed")
ROOT = Path(__file__).resolve().parent.parent
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)
JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
CHARTS = [
    "step-time",
    "carried-phases",
    "carried-operators",
    "ranks",
    "phases",
    "waits",
    "progress",
    "transports",
    "transport-pairs",
    "timeline",
    "loss",
    "grad-norm",
    "memory",
    "twins",
    "checkpoints",
]


class Browser:
    """A Chromium with helpers; every address it asks for is noted."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(DRIVER)
        self.driver = webdriver.Chrome(options=options, service=service)

    def size(self, width: int, height: int = 900) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def cdp(self, command: str, **values: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.driver.execute_cdp_cmd(command, values)
        return found

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def open(self, address: str, *, live: bool = False) -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(address)
        if live:
            self.driver.set_script_timeout(60)
            self.driver.execute_async_script(
                "const done = arguments[0]; const look = () => "
                "document.documentElement.dataset.charts ? done() : setTimeout(look, 30); look();"
            )

    def asked(self) -> list[str]:
        """Addresses that the page asked for since it was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def said(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("reports")
    (where / "report.html").write_text(report.html(samples.comparison(), samples.data()))
    (where / "static.html").write_text(report.html(samples.comparison(), samples.data(), static=True))
    text = report.html(hostile(2), poisoned_data(corpus(6)))
    (where / "hostile.html").write_text(text, encoding="utf-8", errors="replace")
    return where


@contextmanager
def served(folder: Path, policy: str) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            self.send_header("Content-Security-Policy", policy)
            super().end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_charts_come_alive_without_a_word_or_a_request(browser: Browser, folder: Path) -> None:
    browser.size(1280)
    browser.open((folder / "report.html").as_uri(), live=True)
    assert browser.said() == []
    assert browser.asked() == [(folder / "report.html").as_uri()]
    live = browser.run("return [...document.querySelectorAll('figure:has(.live)')].map(f => f.id)")
    assert live == [f"chart-{name}" for name in CHARTS]
    drawn = browser.run(
        "return [...document.querySelectorAll('.live svg')].map(s => s.querySelectorAll('path,line,text').length)"
    )
    assert min(drawn) > 5


def test_pictures_stay_where_scripts_and_styles_are_forbidden(browser: Browser, folder: Path) -> None:
    browser.size(1280)
    with served(folder, JENKINS) as address:
        browser.open(f"{address}/report.html")
        boxes = browser.cdp("DOM.getDocument", depth=0)
        assert boxes["root"]
        found = _outline(browser)
    assert found["svg"] == len(CHARTS)
    assert found["seen"] == len(CHARTS)
    assert "undecided" in found["text"]


def _outline(browser: Browser) -> dict[str, Any]:
    """What stands on a page whose own scripts are forbidden; the driver's still run in a world of their own."""
    snapshot = browser.cdp("DOMSnapshot.captureSnapshot", computedStyles=[])
    strings, document = snapshot["strings"], snapshot["documents"][0]
    names = [strings[i].lower() for i in document["nodes"]["nodeName"]]
    boxes = dict(zip(document["layout"]["nodeIndex"], document["layout"]["bounds"], strict=True))
    pictures = [i for i, name in enumerate(names) if name == "svg"]
    text = " ".join(strings[i] for i in document["layout"]["text"] if i >= 0)
    seen = sum(boxes.get(i, [0, 0, 0, 0])[2] > 200 and boxes[i][3] > 50 for i in pictures)
    return {"svg": len(pictures), "seen": seen, "text": text}


def test_no_payload_runs(browser: Browser, folder: Path) -> None:
    browser.size(1280)
    browser.open((folder / "hostile.html").as_uri(), live=True)
    assert browser.said() == []
    assert browser.asked() == [(folder / "hostile.html").as_uri()]
    assert browser.run("return document.querySelectorAll('img,iframe,object,embed,a:not([href^=\"#\"])').length") == 0
    shown = browser.run("return document.body.innerText")
    assert PAYLOADS[0] in shown
    # Tooltips are built by script from data: hover over every point of the timeline.
    browser.run(
        "for (const p of document.querySelectorAll('#chart-timeline .mark-symbol path'))"
        " p.dispatchEvent(new MouseEvent('pointermove', {bubbles: true, clientX: 5, clientY: 5}))"
    )
    assert (
        browser.run("return document.querySelectorAll('#vg-tooltip-element img, #vg-tooltip-element script').length")
        == 0
    )
    assert browser.said() == []


@pytest.mark.parametrize("width", [320, 768, 1920, 3840])
def test_nothing_sticks_out_at_any_width(browser: Browser, folder: Path, width: int) -> None:
    browser.size(width)
    for name in ("report.html", "static.html"):
        browser.open((folder / name).as_uri(), live=name == "report.html")
        assert browser.run("return document.documentElement.scrollWidth") <= width
        out = browser.run(
            "return [...document.querySelectorAll('figure, article, table, .figure')].filter(e => !e.closest('.scroll'))"
            ".filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.id || e.className)"
        )
        assert out == []


def test_print_cuts_no_chart_and_opens_what_is_folded(browser: Browser, folder: Path) -> None:
    browser.size(1000)
    browser.open((folder / "report.html").as_uri(), live=True)
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    browser.size(718)  # A4 at 96 dpi without its margins
    try:
        wide = browser.run(
            "return [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().right > 719).length"
        )
        assert wide == 0
        hidden = browser.run(
            "return [...document.querySelectorAll('details:not(.sql):not(.data) table')].filter(t => t.checkVisibility && !t.getClientRects().length).length"
        )
        assert hidden == 0
        pdf = base64.b64decode(
            browser.cdp("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)["data"]
        )
    finally:
        browser.cdp("Emulation.setEmulatedMedia", media="")
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 30


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(browser: Browser, folder: Path, scheme: str) -> None:
    axe = Path(os.environ.get("AXE_CORE", ROOT / "node_modules" / "axe-core" / "axe.min.js"))
    if not axe.exists():
        pytest.skip("axe-core is not installed (npm install axe-core, or AXE_CORE=path of axe.min.js)")
    browser.size(1280 if scheme == "light" else 320)  # narrow pages scroll inside: that must work from the keyboard
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    try:
        for name in ("report.html", "static.html"):
            browser.open((folder / name).as_uri(), live=name == "report.html")
            browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            browser.run(axe.read_text() + "; window.axe = axe")
            found = browser.driver.execute_async_script(
                "const done = arguments[0]; axe.run().then(r => done(r.violations))"
            )
            bad = [
                (v["id"], v["impact"], v["nodes"][0]["html"][:150])
                for v in found
                if v["impact"] in {"serious", "critical"}
            ]
            assert bad == []
    finally:
        browser.cdp("Emulation.setEmulatedMedia", features=[])
