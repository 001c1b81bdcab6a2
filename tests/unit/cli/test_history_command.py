"""`mpigraft history` on real stores, through the command line: text, JSON, JUnit and the page."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

import mpigraft
from mpigraft.analysis.overtime.matching import series_name
from mpigraft.report.screen import LINES
from mpigraft.store import Store
from tests.builders.commands import Run
from tests.builders.messages import matches, shows
from tests.builders.outputs import assert_output
from tests.builders.overtime import MACHINE, MPICH, OPENMPI, campaign, identity, keep

SCHEMAS = Path(mpigraft.__file__).parent / "report/schemas"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Twelve nights; from the ninth on another kernel, and Open MPI is 1.2 times slower."""
    newer = {**MACHINE, "kernel": "6.12.1"}
    sides = [campaign(n, rounds=6) for n in range(1, 9)]
    sides += [
        campaign(n, rounds=6, machine=newer, level=lambda name, _: 1.2 if name == OPENMPI else 1.0)
        for n in range(9, 13)
    ]
    return keep(Store(tmp_path / "store"), *sides)


def test_history_shows_each_line_and_its_change(run: Run, store: Store) -> None:
    for name, flags in (("page", ()), ("full", ("--full",))):
        ended = run("history", *flags)
        assert ended.code == 0
        assert_output(f"history/{name}", ended.out)
        assert max(map(len, ended.out.splitlines())) <= 80


def test_many_lines_fit_a_screen_and_the_slower_ones_are_in_it(run: Run, tmp_path: Path) -> None:
    names = {f"k{n}": f"openmpi@5.0.11/t{n}" for n in range(30)}

    def level(name: str, _: int) -> float:
        return late.get(name.partition("/")[2], 1.0)

    for n in range(1, 7):
        late = {"t28": 1.3, "t29": 1.5} if n > 3 else {}
        keep(
            Store(tmp_path / "store"),
            campaign(n, names=names, rounds=6, spread=0.002, level=level),
        )
    lines = run("history").out.splitlines()
    assert shows(lines[0], "Slower now", "2 of 30 lines")
    table = lines[lines.index("") + 1 :]
    assert table.index("") <= LINES
    assert any(shows(line, "openmpi/t29", "1.50x slower") for line in table)
    assert shows(
        "\n".join(lines), "and 10 more lines: --full", "t29 1.50x slower (and 1 more line)"
    )
    assert len(lines) <= 40


def test_what_is_slowest_now_is_in_the_screen_whose_rows_long_names_fill(
    run: Run, tmp_path: Path
) -> None:
    """Once ten times slower and well again is less than 1.3 times slower now."""
    names = {f"k{n}": f"openmpi@5.0.11/{n}-{'x' * 60}" for n in range(20)}
    last = names["k19"]

    def level(name: str, _: int) -> float:
        return now if name == last else once if name != names["k0"] else 1.0

    for n in range(1, 10):
        once, now = (10.0 if 4 <= n < 7 else 1.0), (1.3 if n >= 7 else 1.0)
        keep(
            Store(tmp_path / "store"),
            campaign(n, names=names, rounds=6, spread=0.002, level=level),
        )
    lines = run("history").out.splitlines()
    assert shows(lines[0], "Slower now", "1 of 20 lines")
    table = lines[lines.index("") + 1 :]
    assert table.index("") <= LINES
    assert any(shows(line, f"openmpi/19-{'x' * 60}") for line in table)
    assert len(lines) <= 40


def test_a_slower_line_fails_a_pipeline_until_it_is_accepted(run: Run, store: Store) -> None:
    ended = run("history", "--fail-on", "slower")
    assert ended.code == 1
    assert_output("history/slower", ended.err)
    assert run("history", "--accept", "night10").code == 0
    assert [name for _, name in store.accepted()] == [identity(10)]
    assert run("history", "--fail-on", "slower").code == 0
    out = run("history").out
    assert shows(out, "No line is slower now")
    assert not {"▲", "▼"} & {*out}


def test_a_history_too_short_to_judge_is_no_pass(run: Run, tmp_path: Path) -> None:
    keep(Store(tmp_path / "store"), *(campaign(n, rounds=6) for n in range(1, 4)))
    ended = run("history", "--fail-on", "slower")
    assert ended.code == 6
    assert matches(ended.err, "history-unjudged")
    keep(Store(tmp_path / "store"), campaign(4, rounds=6))
    assert run("history", "--fail-on", "slower").code == 0


@pytest.mark.usefixtures("store")
def test_document_has_its_schema(run: Run) -> None:
    document = json.loads(run("history", "--json", "--last", "6").out)
    jsonschema.validate(document, json.loads((SCHEMAS / "history.json").read_text()))
    assert len(document["campaigns"]) == 6
    lines = {line["key"]["configuration"] for line in document["lines"]}
    assert lines == {series_name(MPICH), series_name(OPENMPI)}


@pytest.mark.usefixtures("store")
def test_junit_has_a_case_for_each_line(run: Run, tmp_path: Path) -> None:
    assert run("history", "--junit", str(tmp_path / "history.xml")).code == 0
    suites = ElementTree.parse(tmp_path / "history.xml").getroot()
    assert suites.attrib == {"tests": "2", "failures": "1", "errors": "0", "skipped": "0"}
    (failure,) = suites.iter("failure")
    assert shows(failure.attrib["message"], "2026-01-09")
    assert run("history", "--last", "2", "--junit", str(tmp_path / "few.xml")).code == 0
    assert ElementTree.parse(tmp_path / "few.xml").getroot().attrib["skipped"] == "2"


def test_the_last_campaigns_are_of_those_with_values(run: Run, store: Store) -> None:
    record = replace(store.campaigns()[-1], id="f0000000", name="stopped")
    with store.writer() as writer:
        writer.add_campaign(replace(record, created="2026-02-01T00:00:00+00:00"))
    document = json.loads(run("history", "--json", "--last", "3").out)
    assert len(document["campaigns"]) == 3


def test_a_single_campaign_is_held_against_nothing(run: Run, tmp_path: Path) -> None:
    keep(Store(tmp_path / "store"), campaign(1))
    out = run("history", "--machine", "epyc", "--full").out
    (line, *_) = (line for line in out.splitlines() if "one campaign" in line)
    assert not shows(out, "the first")
    assert " to " not in line
    assert shows(line, "us", "one campaign")
    out = run("history").out
    assert shows(out, "Too few campaigns to judge", "the longest of 2 lines has 1")
    assert not shows(out, "the first")


def test_page_marks_the_change_and_escapes_names(run: Run, tmp_path: Path) -> None:
    hostile = {"k0": MPICH, "k1": "evil<script>alert(1)</script>@1/x"}
    keep(
        Store(tmp_path / "store"),
        *(
            campaign(n, rounds=6, names=hostile, level=lambda *_: 1.0)
            for n in range(1, 5)
        ),
    )  # fmt: skip
    page = tmp_path / "history.html"
    assert run("history", "-o", str(page)).code == 0
    text = page.read_text()
    assert text.count("<script") == 2  # the page's own, and its figures
    assert html.escape("evil<script>") in text
    assert text == (run("history", "-o", str(page)), page.read_text())[1]


def test_one_campaign_has_a_table_and_no_picture(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    charts = []
    for n in (1, 2):
        keep(Store(tmp_path / "store"), campaign(n, rounds=6))
        assert run("history", "-o", str(page)).code == 0
        charts.append(page.read_text().count('data-plot="0"'))
        assert len(figures(page.read_text())["plots"]) == 1
    assert charts == [0, 1]


def figures(page: str) -> dict[str, Any]:
    """What the page's script draws."""
    found = re.search(r'<script type="application/json" id="curves">(.*?)</script>', page)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


@pytest.mark.usefixtures("store")
def test_page_has_a_line_for_each_configuration(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    run("history", "-o", str(page))
    text = page.read_text()
    (plot,) = figures(text)["plots"]
    drawn = [(line["name"], len(line["points"])) for line in plot["lines"]]
    assert drawn == [(series_name(MPICH), 12), (series_name(OPENMPI), 12)]
    assert plot["lines"][1]["points"][8][1] == pytest.approx(1 / 1.2, rel=0.02)
    assert [number for _, number in plot["changes"]] == [1]
    assert shows(text, "Scripts", "off")
    assert len(re.findall(r'<th scope="row">2026-01-\d\d</th>', text)) == 12  # without scripts
    assert shows(text, "kernel", MACHINE["kernel"], "6.12.1")


@pytest.mark.usefixtures("store")
def test_what_is_not_there_is_refused(run: Run) -> None:
    assert run("history", "--machine", "nowhere").code == 3
    assert run("history", "--layout", "9x9").code == 3
    assert run("history", "--accept", "gone").code == 2
    assert run("history", "--fail-on", "faster").code == 2
    assert run("history", "-o", "/nonexistent/x.html").code == 2


def test_an_empty_store_is_not_blamed_on_machine_or_layout(run: Run) -> None:
    assert "store-empty" in run("history").err
