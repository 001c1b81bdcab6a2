"""The page over nodes: ARCHER2's UCX against OFI from 1 to 128 nodes, imported, in a browser."""

from __future__ import annotations

import base64
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.chromium import Browser, overflow, violations
from tests.builders.messages import shows

pytestmark = pytest.mark.browser

ARCHER2 = Path(__file__).parents[1] / "data" / "archer2"
NODES = "document.getElementById('nodes')"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as its user makes it: two imports and a report."""
    folder = tmp_path_factory.mktemp("archer2")
    environment = {**os.environ, "MPIGRAFT_HOME": str(folder / "home")}

    def say(*words: str | Path) -> None:
        command = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
        subprocess.run(command, check=True, env=environment, cwd=folder, capture_output=True)

    for name in ("OFI", "UCX"):
        files = sorted((ARCHER2 / name).glob("*.dat"))
        configuration = f"cray-mpich@8.1.4/{name.lower()}"
        say("import", *files, "--configuration", configuration, "--machine", "ARCHER2")
    say("report", "ARCHER2", "--output", "archer2.html")
    return folder / "archer2.html"


def show(browser: Browser) -> None:
    """Bring the figures over nodes into view one by one, and their part to the top."""
    for number in range(3):
        chart = f"{NODES}.querySelectorAll('.chart')[{number}]"
        browser.ask(f"{chart}.scrollIntoView()")
        browser.until(f"'drawn' in {chart}.dataset")
    browser.ask(f"{NODES}.scrollIntoView()")
    browser.until(f"{NODES}.querySelectorAll('.chart[data-drawn]').length === 3")


def test_two_benchmarks_fit_one_screen_with_every_number_of_nodes_named(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    browser.open(page)
    show(browser)
    top, bottom = browser.ask(
        f"""(() => {{ const at = [...{NODES}.querySelectorAll("h2, figure")]
              .map((one) => one.getBoundingClientRect());
            return [at[0].top, at[2].bottom]; }})()"""
    )
    assert 0 <= top < bottom <= 900
    words = browser.ask(f"{NODES}.querySelector('.chart').textContent")
    for panel in words.split("latency, us at")[1:]:
        assert "1248163264128" in panel.replace(" ", ""), panel
    assert browser.complaints() == []
    browser.picture(tmp_path / "archer2.png")


def test_each_benchmark_is_one_part_with_its_layouts_inside(browser: Browser, page: Path) -> None:
    browser.open(page)
    parts = browser.ask(
        """[...document.querySelectorAll("section.benchmark")].map((part) =>
             [part.querySelector("h2").textContent,
              [...part.querySelectorAll("details.layout > summary")].map((s) => s.textContent)])"""
    )
    assert [name for name, _ in parts] == [
        "osu:allreduce,datatype=MPI_FLOAT", "osu:alltoall", "osu:alltoallv",
    ]  # fmt: skip
    for _, layouts in parts:
        assert layouts == [f"Layout {2**n}x128" for n in range(8)]
    folded = "[...document.querySelectorAll('details.layouts > summary')].map((s) => s.textContent)"
    assert all(shows(text, "8 layouts", "1x128", "128x128") for text in browser.ask(folded))
    assert len(browser.ask(folded)) == 3
    browser.ask("document.querySelector('details.layouts').open = true")
    summary = "document.querySelector('details.layout > summary')"
    chart = "document.querySelector('details.layout .chart')"
    assert browser.ask(f"'drawn' in {chart}.dataset") is False
    browser.ask(f"{summary}.focus()")
    browser.key("Enter")
    browser.ask(f"{summary}.click()")
    browser.ask(f"{chart}.scrollIntoView()")
    browser.until(f"'drawn' in {chart}.dataset")


def test_curves_are_what_the_files_have(browser: Browser, page: Path) -> None:
    """UCX over OFI, allreduce of 32 bytes: faster on one node than OFI, 3.8 times slower on 128."""
    browser.open(page)
    show(browser)
    texts = browser.ask(
        f"[...{NODES}.querySelector('.chart').querySelectorAll('.title')].map((t) => t.textContent)"
    )
    assert texts == [f"latency, us at {s}" for s in ("32 B", "4 KiB", "256 KiB")] + [
        f"ratio at {s}" for s in ("32 B", "4 KiB", "256 KiB")
    ]
    words = browser.ask(
        """(() => { const view = Charts.data.views[0];
             return view.at.map((at, k) => { const section = Charts.data.sections[at];
               const i = section.sizes.indexOf(32);
               return [view.x[k], section.base[i], section.groups[0].cells[i][0]]; }); })()"""
    )
    for nodes, ofi, ucx in words:
        assert {ofi, ucx} == {value_of("OFI", nodes), value_of("UCX", nodes)} or nodes == 128


def value_of(folder: str, nodes: int) -> float:
    (path,) = (
        (ARCHER2 / folder).glob(f"osu_allreduce_{nodes}nodes_*.dat")
        if nodes < 128
        else (next((ARCHER2 / folder).glob("osu_allreduce_128nodes_*.dat")),)
    )
    match = re.search(r"^32\s+([\d.]+)", path.read_text(), re.MULTILINE)
    assert match is not None
    return float(match[1])


def test_names_stand_at_the_ends_of_their_curves_and_not_on_each_other(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    show(browser)
    ends = browser.ask(
        f"""[...{NODES}.querySelectorAll(".chart")].map((chart) =>
              [...chart.querySelectorAll(".at-end")].map((one) => {{
                const box = one.getBoundingClientRect();
                return [one.textContent, box.left, box.top, box.right, box.bottom]; }}))"""
    )
    for chart in ends:
        assert [name for name, *_ in chart].count("ofi") == 3  # the baseline has no ratio
        assert [name for name, *_ in chart].count("ucx") == 6
        for (_, *a), (_, *b) in itertools.combinations(chart, 2):
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] + 4 or b[3] <= a[1] + 4
            assert apart, (a, b)


def test_single_runs_say_so_and_have_no_band(browser: Browser, page: Path) -> None:
    browser.open(page)
    show(browser)
    captions = browser.ask(f"[...{NODES}.querySelectorAll('figcaption')].map((c) => c.textContent)")
    assert all("Single runs: no interval, no verdict." in text for text in captions)
    assert browser.ask(f"{NODES}.querySelectorAll('.band').length") == 0
    assert browser.ask(f"{NODES}.querySelectorAll('.v-faster, .v-slower').length") == 0
    assert browser.ask(f"{NODES}.querySelectorAll('.ring circle').length") > 40


def test_paper_has_the_figures_over_nodes_and_no_page_for_each_layout(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.ask(
        f"""addEventListener("beforeprint", () => {{
              window.printed = [{NODES}.querySelector(".chart").textContent,
                document.querySelectorAll(".layout[open]").length,
                {NODES}.querySelector("details").open]; }})"""
    )
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    words, layouts, figures = browser.ask("window.printed")
    panels = words.split("latency, us at")[1:]
    assert len(panels) == 3
    assert all("1248163264128" in panel.replace(" ", "") for panel in panels)
    assert (layouts, figures) == (0, True)
    assert len(re.findall(rb"/Type /Page\b", pdf)) <= 4
    assert browser.ask("document.querySelectorAll('details[open]').length") == 0
    browser.ask("document.querySelector('.layouts').open = true")
    browser.call("Page.printToPDF")
    assert browser.ask("window.printed")[1] == 8


@pytest.mark.parametrize("width", [360, 768])
def test_it_fits_a_phone(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    show(browser)
    assert overflow(browser) <= 0
    assert violations(browser, "#nodes") == []
