"""The page for people who do not see it, or not all of its colours: axe-core finds nothing."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.store import Store
from tests.browser.chromium import AXE, Browser, draw_all, overflow, violations
from tests.browser.test_report_page import write
from tests.builders.overtime import MACHINE, OPENMPI, campaign, keep
from tests.builders.reports import (
    comparison,
    data_of,
    hundred_benchmarks,
    links,
    named,
    single_data,
    small_data,
)
from tests.unit.report.test_report_growth import grown

pytestmark = pytest.mark.browser

PAGES = {
    "campaign": small_data(),
    "one configuration": single_data(),
    "two metrics": data_of(
        comparison(benchmarks=(("imb:PingPong", "latency", 1), ("imb:PingPong", "bandwidth", 1))), 6
    ),
    "links": links(named(24), {(5, 3): 2.5}),
    "growth": grown(),
}


def test_axe_is_the_one_that_its_record_names() -> None:
    digest = hashlib.sha256(AXE.read_bytes()).hexdigest()
    assert f"| axe.min.js | {digest} |" in (AXE.parent / "README.md").read_text()
    assert re.search(r"Mozilla Public License", (AXE.parent / "LICENSE").read_text())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("kind", PAGES)
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, kind: str, dark: bool) -> None:
    browser.open(write(PAGES[kind], tmp_path / "page.html"), dark=dark)
    browser.ask("for (const one of document.querySelectorAll('details')) one.open = true")
    draw_all(browser)
    assert violations(browser) == []
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("document.querySelector('.glance td small').style.color = '#e0905a'", "color-contrast"),
        ("document.querySelector('#filter').parentElement.replaceWith("
         "document.querySelector('#filter'))", "label"),
        ("document.querySelector('summary').innerHTML = '<button>a</button>'", "nested"),
    ],
)  # fmt: skip
def test_the_check_can_fail(browser: Browser, tmp_path: Path, fault: str, rule: str) -> None:
    browser.open(write(small_data(), tmp_path / "page.html"))
    browser.ask(f"{fault}; 0")
    assert any(rule in one for one in violations(browser))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nights of two configurations, one of which became slower with a kernel."""
    folder = tmp_path_factory.mktemp("history")
    newer = {**MACHINE, "kernel": "6.12.1"}
    sides = [campaign(n, rounds=6) for n in range(1, 9)]
    sides += [
        campaign(n, rounds=6, machine=newer, level=lambda name, _: 1.2 if name == OPENMPI else 1.0)
        for n in range(9, 13)
    ]
    keep(Store(folder / "store"), *sides)
    words = ["--store", folder / "store", "history", "-o", folder / "history.html"]
    command = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "history.html"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_axe_finds_nothing_in_a_history(
    browser: Browser, history: Path, width: int, dark: bool
) -> None:
    browser.open(history, width=width, dark=dark)
    assert draw_all(browser) == 1
    assert violations(browser) == []
    assert overflow(browser) <= 0
    assert browser.complaints() == []
    assert browser.requests() == []
    size = "document.querySelector('svg text').getBoundingClientRect().height"
    assert browser.ask(size) > 8  # on a phone too
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=features)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert browser.ask(ground) == "rgb(255, 255, 255)"  # paper is white, whatever the screen is


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_a_page_of_a_hundred_benchmarks(
    browser: Browser, tmp_path: Path, dark: bool
) -> None:
    """Tables of all figures are open in one; in all of them axe takes minutes, and finds none."""
    browser.open(write(hundred_benchmarks(), tmp_path / "page.html"), dark=dark)
    browser.ask("for (const one of document.querySelectorAll('details:not(.all)')) one.open = true")
    browser.ask("document.querySelector('.all').open = true")
    assert draw_all(browser) == 200
    assert violations(browser) == []
    assert browser.complaints() == []
