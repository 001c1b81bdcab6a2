"""The report in a real browser, opened from disk with no network: Chromium over its debugging
pipe, so that nothing is injected into the page and its own policy stays in force."""

from __future__ import annotations

import base64
import itertools
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.natives import GUARD, PREBUILT
from mpigraft.report import ReportData, html
from tests.unit.heat_links import links, named
from tests.unit.report_samples import campaign_data, olivia, small_data

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 120


class Browser:
    """One Chromium, spoken to in the DevTools protocol: JSON, each message ended by a NUL."""

    def __init__(self, profile: Path) -> None:
        to_read, self.to = os.pipe()
        self.answers, to_write = os.pipe()
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-'
        program = shutil.which("chromium") or "chromium"
        # Its crash handlers leave their parent and outlive it for a while: the guard ends them.
        guard = PREBUILT / platform.machine() / GUARD
        shell = ["bash", "-c", script, program, *FLAGS, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [guard, "--", *shell],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        self.rest = b""

    def close(self) -> None:
        self.call("Browser.close", session="")
        self.process.wait(PATIENCE_S)
        os.close(self.to)
        os.close(self.answers)

    def call(self, method: str, *, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of one command; events that come meanwhile are kept."""
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if chosen := self.session if session is None else session:
            message["sessionId"] = chosen
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    session = ""

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            block = os.read(self.answers, 1 << 20)
            assert block, "the browser ended"
            self.rest += block
        first, _, self.rest = self.rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def open(self, path: Path, *, width: int = 1200, dark: bool = False) -> None:
        """A new page on a file; returns when it has loaded, offline."""
        target = self.call("Target.createTarget", session="", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", session="", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions",
            offline=True, latency=0, downloadThroughput=0, uploadThroughput=0,
        )  # fmt: skip
        self.scheme(dark=dark)
        self.size(width)
        self.call("Page.navigate", url=path.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())

    def size(self, width: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def scheme(self, *, dark: bool) -> None:
        value = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Return when a condition holds; the browser looks again at each of its turns."""
        self.ask(
            f"""new Promise((done) => {{
                  const look = () => ({condition} ? done() : setTimeout(look, 10));
                  look();
                }})"""
        )

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def complaints(self) -> list[str]:
        """Errors of scripts, of the console, and of the page's policy."""
        bad = {"Runtime.exceptionThrown", "Log.entryAdded"}
        self.ask("1")  # what was said before has come by now
        return [
            json.dumps(e["params"])
            for e in self.events
            if e.get("method") in bad
            or (e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] == "error")
        ]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, less the file itself and what is in it."""
        asked = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]

    def picture(self, path: Path) -> None:
        """Screenshot of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@pytest.fixture(scope="module")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(_browser: Browser) -> Iterator[Browser]:
    yield _browser
    _browser.call("Page.close")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(campaign_data(), tmp_path_factory.mktemp("page") / "report.html")


def write(data: ReportData, path: Path) -> Path:
    path.write_text(html.render(data), encoding="utf-8")
    return path


def drawn(browser: Browser) -> int:
    """Charts that have lines or marks of some size in them."""
    count: int = browser.ask(
        """[...document.querySelectorAll(".chart")].filter((chart) =>
             [...chart.querySelectorAll(".scatterlayer path")].some((path) => {
               const box = path.getBoundingClientRect();
               return box.width > 2 || box.height > 2;
             })).length"""
    )
    return count


def overflow(browser: Browser) -> int:
    """Pixels by which the page is wider than its window."""
    wide: int = browser.ask("document.documentElement.scrollWidth - window.innerWidth")
    return wide


# ------------------------------------------------------------------ it opens


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_opens_offline_without_a_complaint(
    browser: Browser, page: Path, tmp_path: Path, dark: bool
) -> None:
    browser.open(page, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.ask("document.documentElement.dataset.charts") == "12"
    assert drawn(browser) == 12
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    browser.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 100_000


def test_the_check_for_complaints_can_fail(browser: Browser, page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    bad = tmp_path / "bad.html"
    extra = '<img src="http://192.0.2.1/x.png"><script>document.title = "ran"</script>'
    bad.write_text(text.replace("<main>", f"<main>{extra}"), encoding="utf-8")
    browser.open(bad)
    complaints = "".join(browser.complaints())
    assert "img-src" in complaints
    assert "script-src" in complaints
    assert browser.ask("document.title") != "ran"


def test_every_line_has_its_name_and_every_panel_its_line_at_one(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    names = browser.ask(
        """[...document.querySelector('.chart[data-kind="absolute"]')
             .querySelectorAll(".annotation-text")].map((t) => t.textContent)"""
    )
    assert len(names) == 10
    assert "mpich ofi-tcp, baseline" in names
    tops = browser.ask(
        """[...document.querySelector('.chart[data-kind="absolute"]')
             .querySelectorAll(".annotation-text")].map((t) => t.getBoundingClientRect().top)"""
    )
    assert min(b - a for a, b in itertools.pairwise(sorted(tops))) > 11  # no name on another
    ratios = '.chart[data-kind="ratio"]'
    assert browser.ask(f"document.querySelector('{ratios}').data.length") == 9 * 3
    assert browser.ask(
        f"document.querySelector('{ratios}').data.filter((t) => t.y.every((v) => v === 1)).length"
    ) == 9  # fmt: skip
    assert "4 MiB" in browser.ask("document.querySelector('.chart').textContent")


def test_a_hostile_name_stays_text_in_the_charts(browser: Browser, tmp_path: Path) -> None:
    evil = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
    data = small_data()
    first, *others = data.comparison.groups
    groups = (replace(first, configuration=evil), *others)
    data = replace(data, comparison=replace(data.comparison, groups=groups))
    browser.open(write(data, tmp_path / "evil.html"))
    assert browser.complaints() == []
    assert browser.ask("document.title") != "ran"
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert "<script>document.title" in browser.ask("document.querySelector('.chart').textContent")


def test_imported_tables_and_benchmarks_without_sizes_are_drawn(
    browser: Browser, tmp_path: Path
) -> None:
    data = olivia()
    group = data.comparison.groups[0]
    init = replace(
        group, benchmark="native:init", metric="init_time", unit="ms",
        cells=(replace(group.cells[0], size=0, low=3.9, high=4.5),),
    )  # fmt: skip
    data = replace(data, comparison=replace(data.comparison, groups=(group, init)))
    browser.open(write(data, tmp_path / "page.html"))
    assert browser.complaints() == []
    assert drawn(browser) == browser.ask("document.querySelectorAll('.chart').length") == 3


# ------------------------------------------------------------------ it is used


def test_the_matrix_is_read_with_the_keyboard(browser: Browser, page: Path) -> None:
    browser.open(page)
    stops = "document.querySelectorAll('.matrix td[tabindex=\"0\"]').length"
    assert browser.ask(stops) == 6  # one per matrix, not one per cell
    browser.ask("document.querySelector('.matrix td').focus()")
    tip = "document.getElementById('tip')"
    assert browser.ask(f"{tip}.hidden") is False
    assert browser.ask(f"{tip}.textContent").startswith("intel@2021.18.1/ofi-tcp, 1 B\n")
    browser.key("ArrowRight")
    browser.key("ArrowDown")
    cell = campaign_data().comparison.groups[1].cells[1]
    text = browser.ask(f"{tip}.textContent")
    assert text.startswith("intel@2021.18.1/shm, 2 B\n")
    assert f"ratio {cell.ratio:.3f} [" in text
    assert "▲ faster, 6 rounds" in text
    assert browser.ask(stops) == 6
    browser.key("Escape")
    assert browser.ask(f"{tip}.hidden") is True


def test_a_link_of_many_nodes_is_told_under_the_pointer(browser: Browser, tmp_path: Path) -> None:
    browser.open(write(links(named(24), {(5, 3): 2.5}), tmp_path / "page.html"), width=360)
    assert overflow(browser) <= 0
    grid = "document.querySelector('svg.heat g')"
    browser.ask(f"{grid}.scrollIntoView()")
    for row, column, words in (
        (5, 3, "nid000006 to nid000004\n40 MB/s\n2.50 times slower than the median link"),
        (3, 5, "nid000004 to nid000006\n100 MB/s\nlike the median link"),
    ):
        at = f"new DOMPoint({column}.5, {row}.5).matrixTransform({grid}.getScreenCTM())"
        x, y = browser.ask(f"(() => {{ const p = {at}; return [p.x, p.y]; }})()")
        browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        assert browser.ask("document.getElementById('tip').textContent") == words
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert browser.ask("document.getElementById('tip').hidden") is True
    assert browser.complaints() == []


def test_the_theme_follows_the_system(browser: Browser, page: Path) -> None:
    browser.open(page)
    ink = """document.querySelector('.chart[data-kind="absolute"]').data.at(-1).line.color"""
    light = browser.ask(ink)
    browser.scheme(dark=True)
    browser.until(f"{ink} !== '{light}'")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_nothing_is_wider_than_the_window(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    assert overflow(browser) <= 0
    assert drawn(browser) == 12


def test_charts_follow_the_window(browser: Browser, page: Path) -> None:
    browser.open(page, width=1200)
    browser.size(700)
    browser.until("document.querySelector('.chart .main-svg').clientWidth < 700")
    assert overflow(browser) <= 0


def test_it_prints_in_light_on_paper_and_comes_back(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    browser.open(page, dark=True)
    browser.ask(
        """window.addEventListener("beforeprint", () => {
             window.printed = [document.querySelector(".chart .main-svg").clientWidth,
               getComputedStyle(document.body).backgroundColor,
               document.querySelectorAll(".configuration[open]").length,
               document.querySelectorAll(".benchmark > details:not([open])").length];
           })"""
    )
    found = browser.call("Page.printToPDF", printBackground=True)
    pdf = base64.b64decode(found["data"])
    (tmp_path / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")
    assert browser.ask("window.printed") == [680, "rgb(255, 255, 255)", 0, 0]
    assert browser.ask("document.querySelectorAll('details[open]').length") == 0
    assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert browser.complaints() == []
