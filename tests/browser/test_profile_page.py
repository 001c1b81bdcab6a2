"""The page of a profile in a real browser, opened from disk with no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.report.profile.page import render_profile_page
from tests.browser.chromium import Browser, draw_all, overflow
from tests.builders.profiles import a_profile

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("ranks", [2, 64])
def test_it_opens_offline_without_a_complaint(
    browser: Browser, tmp_path: Path, ranks: int, dark: bool
) -> None:
    page = tmp_path / "profile.html"
    page.write_text(render_profile_page(a_profile(ranks)), encoding="utf-8")
    browser.open(page, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert int(browser.ask("document.querySelectorAll('svg.heat').length")) == 2
    cells = "document.querySelector('svg.heat path').getBoundingClientRect()"
    assert float(browser.ask(f"{cells}.width")) > 20
    assert draw_all(browser) == 0  # bars are no curves
    bars = "document.querySelectorAll('.chart .moving rect').length"
    assert int(browser.ask(bars)) == ranks
    bars = "[...document.querySelectorAll('td.bar .moving')]"
    assert int(browser.ask(f"{bars}.filter(x => x.getBoundingClientRect().width > 1).length")) > 5
    browser.picture(tmp_path / "page.png")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(browser: Browser, tmp_path: Path, width: int) -> None:
    page = tmp_path / "profile.html"
    page.write_text(render_profile_page(a_profile(64)), encoding="utf-8")
    browser.open(page, width=width)
    assert overflow(browser) == 0
