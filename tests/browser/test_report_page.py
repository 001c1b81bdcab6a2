"""The report in a real browser, opened from disk with no network."""

from __future__ import annotations

import base64
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.report.contents import ReportData
from mpigraft.report.html import page as html
from tests.browser.chromium import Browser, draw_all, overflow
from tests.builders.reports import (
    BASELINE,
    BENCHMARKS,
    campaign_data,
    comparison,
    data_of,
    links,
    named,
    olivia,
    small_data,
)

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(campaign_data(), tmp_path_factory.mktemp("page") / "report.html")


def write(data: ReportData, path: Path) -> Path:
    path.write_text(html.render_html(data), encoding="utf-8")
    return path


# ------------------------------------------------------------------ it opens


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_opens_offline_without_a_complaint(
    browser: Browser, page: Path, tmp_path: Path, dark: bool
) -> None:
    browser.open(page, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.ask("document.documentElement.dataset.charts") == "12"
    assert draw_all(browser) == 12
    assert browser.complaints() == []
    paper = browser.ask("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    browser.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 100_000


def test_the_check_for_complaints_can_fail(browser: Browser, page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    bad = tmp_path / "bad.html"
    extra = '<img src="http://192.0.2.1/x.png"><script>document.title = "ran"</script>'
    bad.write_text(text.replace("</header>", f"</header>{extra}"), encoding="utf-8")
    browser.open(bad)
    complaints = "".join(browser.complaints())
    assert "img-src" in complaints
    assert "script-src" in complaints
    assert browser.ask("document.title") != "ran"


def test_every_line_has_its_name_and_every_panel_its_line_at_one(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.ask("document.querySelector('.chart').scrollIntoView()")
    labels = """[...document.querySelector('.chart[data-kind="absolute"]')
             .querySelectorAll(".name")]"""
    names = browser.ask(f"{labels}.map((t) => t.textContent)")
    assert len(names) == 10
    assert "mpich ofi-tcp, baseline" in names
    tops = browser.ask(f"{labels}.map((t) => t.getBoundingClientRect().top)")
    assert min(b - a for a, b in itertools.pairwise(sorted(tops))) > 11  # no name on another
    ratios = """document.querySelector('.chart[data-kind="ratio"]')"""
    browser.ask(f"{ratios}.scrollIntoView()")
    browser.until(f"'drawn' in {ratios}.dataset")
    assert browser.ask(f"{ratios}.querySelectorAll('.title').length") == 9
    assert browser.ask(f"{ratios}.querySelectorAll('.one').length") == 9
    assert "4 MiB" in browser.ask("document.querySelector('.chart').textContent")


def test_only_what_is_near_is_drawn(browser: Browser, page: Path) -> None:
    browser.open(page)
    count = "document.querySelectorAll('.chart[data-drawn]').length"
    browser.until(f"{count} > 0")
    assert browser.ask(count) < 4
    browser.ask("document.querySelectorAll('.chart')[9].scrollIntoView()")
    browser.until("'drawn' in document.querySelectorAll('.chart')[9].dataset")
    assert browser.ask("'drawn' in document.querySelectorAll('.chart')[5].dataset") is False


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
    assert draw_all(browser) == browser.ask("document.querySelectorAll('.chart').length") == 3


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
    ink = "getComputedStyle(document.querySelector('.chart .curve.hue0 .line')).stroke"
    light = browser.ask(ink)
    browser.scheme(dark=True)
    browser.until(f"{ink} !== '{light}'")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_nothing_is_wider_than_the_window(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    assert overflow(browser) <= 0
    assert draw_all(browser) == 12
    assert overflow(browser) <= 0


def test_charts_follow_the_window(browser: Browser, page: Path) -> None:
    browser.open(page, width=1200)
    browser.size(700)
    browser.until("document.querySelector('.chart svg').clientWidth < 700")
    assert overflow(browser) <= 0


def test_it_prints_in_light_on_paper_and_comes_back(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    browser.open(page, dark=True)
    browser.ask(
        """window.addEventListener("beforeprint", () => {
             window.printed = [document.querySelector(".chart svg").clientWidth,
               getComputedStyle(document.body).backgroundColor,
               document.querySelectorAll(".configuration[open]").length,
               document.querySelectorAll(".benchmark details:not([open])").length];
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


def test_a_narrow_range_has_several_marks(browser: Browser, tmp_path: Path) -> None:
    """Sizes that cost almost the same: a decade's 1, 2, 5 would leave an axis with one mark."""
    names = (BASELINE, "intel@2021.18.1/ofi-tcp")
    found = comparison(benchmarks=BENCHMARKS[:1], sizes=(8, 16, 32, 64), names=names)
    browser.open(write(data_of(found, 6), tmp_path / "narrow.html"))
    draw_all(browser)
    labels = "[aria-label='y-axis tick label']"
    counted = browser.ask(f"[...document.querySelectorAll(`{labels}`)].map(g => g.children.length)")
    assert len(counted) == 2  # values, and ratios
    assert min(counted) >= 3
