"""What a reader chooses on the page: baseline, configurations, benchmarks, order, files."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.report.tables import size_table
from mpigraft.report.wording.counts import sections
from tests.browser.chromium import Browser, draw_all, violations
from tests.browser.test_report_page import write
from tests.builders.reports import small_data

pytestmark = pytest.mark.browser

OTHER = "openmpi@5.0.11/ob1-tcp"


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Path:
    path = write(small_data(), tmp_path / "page.html")
    browser.open(path)
    return path


def choose(browser: Browser, control: str, value: str) -> None:
    browser.ask(
        f"""(() => {{ const one = document.getElementById("{control}"); one.value = "{value}";
             one.dispatchEvent(new Event("input", {{ bubbles: true }}));
             one.dispatchEvent(new Event("change", {{ bubbles: true }})); }})()"""
    )


def glance(browser: Browser) -> dict[str, list[str]]:
    """The rows of the table at a glance, in their order."""
    rows = browser.ask(
        """[...document.querySelectorAll(".glance tbody tr")].filter((row) => !row.hidden)
             .map((row) => [row.dataset.name, [...row.cells].slice(1).map((c) => c.innerText)])"""
    )
    return dict(rows)


@pytest.mark.usefixtures("page")
def test_another_baseline_changes_ratios_and_takes_verdicts_away(browser: Browser) -> None:
    before = glance(browser)
    assert browser.ask("document.getElementById('against').hidden") is True
    choose(browser, "baseline", OTHER)
    after = glance(browser)
    assert after[OTHER] == ["1", "1"]
    group = next(g for g in small_data().comparison.groups if g.configuration == OTHER)
    mean = 1.0
    for cell in group.cells:
        mean *= cell.baseline / cell.value
    lower = mean ** (1 / len(group.cells))
    assert float(after["mpich@5.0.1/ofi-tcp"][0].splitlines()[-1]) == pytest.approx(lower, rel=5e-3)
    note = browser.ask("document.getElementById('against').textContent")
    assert "without intervals and verdicts" in note
    assert f"mpigraft report --baseline '{OTHER}'" in note
    draw_all(browser)
    marked = "document.querySelectorAll('figure:not([hidden]) :is(.v-faster, .v-slower)').length"
    assert browser.ask(marked) == 0
    assert browser.ask("document.querySelector('.forest').closest('figure').hidden")
    matrix = "document.querySelector('.matrix')"
    browser.ask(f"{matrix}.scrollIntoView()")
    browser.until(f"{matrix}.tBodies[0].rows[0].dataset.against === '{OTHER}'")
    names = browser.ask(f"[...{matrix}.tBodies[0].rows].map((row) => row.cells[0].textContent)")
    assert OTHER not in names
    assert "mpich@5.0.1/ofi-tcp" in names
    assert violations(browser) == []
    choose(browser, "baseline", "mpich@5.0.1/ofi-tcp")
    assert glance(browser) == before
    assert browser.complaints() == []


@pytest.mark.usefixtures("page")
def test_a_configuration_can_be_taken_away_and_a_curve_isolated(browser: Browser) -> None:
    browser.ask("document.querySelector('.chart').scrollIntoView()")
    shown = (
        "[...document.querySelector('.chart').querySelectorAll('.name')].map((t) => t.textContent)"
    )
    assert "intel shm" in browser.ask(shown)
    browser.ask("document.querySelector('[data-shown=\"0\"]').click()")
    browser.until(f"!{shown}.includes('intel shm')")
    assert "intel@2021.18.1/shm" not in glance(browser)
    button = "document.querySelector('[data-only=\"2\"]')"
    browser.ask(f"{button}.click()")
    assert browser.ask(f"{button}.getAttribute('aria-pressed')") == "true"
    draw_all(browser)
    bright = """[...new Set([...document.querySelectorAll(".chart .curve:not(.dim)")]
                 .map((c) => c.dataset.name))]"""
    assert browser.ask(bright) == ["2"]
    browser.ask(f"{button}.click()")
    assert browser.ask("document.querySelectorAll('.dim').length") == 0
    curve = "document.querySelector('.chart .curve[data-name=\"3\"] .line')"
    browser.ask(f"{curve}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))")
    assert browser.ask(bright) == ["3"]


@pytest.mark.usefixtures("page")
def test_benchmarks_are_found_by_words(browser: Browser) -> None:
    parts = """[...document.querySelectorAll("section.benchmark")].filter((p) => !p.hidden)
                .map((p) => p.querySelector("h2").textContent)"""
    assert browser.ask(parts) == ["native:latency", "native:bw"]
    choose(browser, "filter", "BANDwidth")
    assert browser.ask(parts) == ["native:bw"]
    assert browser.ask("document.getElementById('filtered').textContent") == "1 of 2 benchmarks"
    assert {len(row) for row in glance(browser).values()} == {2}
    hidden = "[...document.querySelector('.glance tbody tr').cells].map((c) => c.hidden)"
    assert browser.ask(hidden) == [False, True, False]
    choose(browser, "filter", "")
    assert browser.ask(parts) == ["native:latency", "native:bw"]


@pytest.mark.usefixtures("page")
def test_configurations_are_ordered_by_a_benchmark(browser: Browser) -> None:
    measured = list(glance(browser))
    choose(browser, "order", "1")
    groups = [g for g in small_data().comparison.groups if g.metric == "bandwidth"]
    best = sorted([*((g.pooled, g.configuration) for g in groups), (1.0, measured[0])])
    assert list(glance(browser)) == [name for _, name in reversed(best)]
    choose(browser, "order", "")
    assert list(glance(browser)) == measured


def test_csv_has_every_figure_and_no_formula(browser: Browser, tmp_path: Path) -> None:
    data = small_data()
    first, *others = data.comparison.groups
    evil = '=cmd|"/C calc"!A0'
    groups = (replace(first, configuration=evil), *others)
    changed = replace(data, comparison=replace(data.comparison, groups=groups))
    browser.open(write(changed, tmp_path / "page.html"))
    rows = list(csv.DictReader(io.StringIO(browser.ask("Controls.csv()"))))
    cells = [r for r in rows if r["verdict"] != "baseline"]
    assert len(cells) == sum(len(g.cells) for g in groups)
    assert len(rows) - len(cells) == 2 * 4
    mine = [r for r in rows if r["configuration"] == f"'{evil}"]
    assert [int(r["bytes"]) for r in mine] == [c.size for c in first.cells]
    assert [float(r["ratio"]) for r in mine] == pytest.approx([c.ratio for c in first.cells], 1e-4)
    assert mine[0]["verdict"] == first.cells[0].verdict
    browser.ask("document.getElementById('csv').click()")
    assert browser.complaints() == []
    assert browser.requests() == []


def test_without_scripts_there_are_tables_and_no_dead_controls(
    browser: Browser, tmp_path: Path
) -> None:
    path = write(small_data(), tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.rindex("<script>")] + "</body></html>", encoding="utf-8")
    browser.open(path)
    visible = (
        "[...document.querySelectorAll('button, select, input')].filter((e) => e.checkVisibility())"
    )
    assert browser.ask(f"{visible}.length") == 0
    assert browser.ask("document.querySelectorAll('.matrix td').length") == 3 * 4 * 2


# ------------------------------------------------------------------ all figures


def tables(browser: Browser) -> list[list[list[str]]]:
    """Each table of all figures that is there: its caption, and its rows."""
    found: list[list[list[str]]] = browser.ask(
        """[...document.querySelectorAll(".all table")].map((table) =>
             [[table.caption.textContent], ...[...table.tBodies[0].rows].map((row) =>
               [...row.cells].map((cell) => cell.textContent))])"""
    )
    return found


@pytest.mark.usefixtures("page")
def test_all_figures_are_made_when_they_are_opened_as_the_terminal_prints_them(
    browser: Browser,
) -> None:
    assert tables(browser) == []
    browser.ask("document.querySelectorAll('.all').forEach((one) => { one.open = true; })")
    browser.until("document.querySelectorAll('.all table').length === 6")
    shown = tables(browser)
    for section in sections(small_data().comparison):
        for group in section.groups:
            (caption,), *rows = shown.pop(0)
            what = f"{group.configuration}, {section.quantity} in {section.unit}"
            assert caption == f"{what}, 6 rounds at each size"
            expected = [row[:5] for row in size_table(section, group).rows]
            for (size, base, own, ratio, interval, _), row in zip(rows, expected, strict=True):
                assert [size, base, own, ratio.split()[-1], interval] == list(row)
    assert shown == []
    assert browser.complaints() == []


@pytest.mark.usefixtures("page")
def test_all_figures_follow_the_baseline_and_the_configurations(browser: Browser) -> None:
    browser.ask("document.querySelector('.all').open = true")
    browser.until("document.querySelectorAll('.all table').length === 3")
    choose(browser, "baseline", OTHER)
    captions = [table[0][0] for table in tables(browser)]
    assert not any(caption.startswith(OTHER) for caption in captions)
    assert {row[4] for table in tables(browser) for row in table[1:]} == {"-"}
    browser.ask("document.querySelector('[data-shown]').click()")
    assert len(tables(browser)) == 2


@pytest.mark.usefixtures("page")
def test_all_figures_are_printed(browser: Browser) -> None:
    browser.ask(
        """addEventListener("beforeprint", () => {
             window.printed = document.querySelectorAll(".all[open] table").length; })"""
    )
    browser.call("Page.printToPDF")
    assert browser.ask("window.printed") == 6
    assert browser.ask("document.querySelectorAll('.all[open]').length") == 0


def test_without_scripts_the_page_says_what_is_missing(browser: Browser, tmp_path: Path) -> None:
    browser.open(write(small_data(), tmp_path / "page.html"), scripts=False)
    shown = "document.querySelector('noscript').textContent"
    assert "mpigraft compare --markdown" in browser.ask(shown)
    assert browser.ask("document.querySelectorAll('.all:not([hidden])').length") == 0
    assert browser.ask("document.querySelectorAll('.matrix td').length") == 24
