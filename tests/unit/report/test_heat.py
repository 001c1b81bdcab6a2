"""The heat map of links: steps that an eye tells apart, a picture that stays small, names whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.pairs.matrices import PairMatrix, pair_matrices
from mpigraft.report import heat, node_pairs
from mpigraft.report.contents import ReportData
from mpigraft.report.html import page as html
from tests.builders.messages import shows
from tests.builders.reports import links, named


def only(data: ReportData) -> PairMatrix:
    (one,) = pair_matrices(data.links, {})
    return one


@pytest.mark.parametrize(
    ("times", "step"), [(0.3, 0), (1.05, 0), (1.06, 1), (1.2, 1), (1.5, 2), (2.0, 3), (2.01, 4)]
)
def test_a_link_has_the_step_of_its_slowness(times: float, step: int) -> None:
    assert heat.step(times) == step
    page = heat.html(only(links(named(5), {(1, 2): times})), "title", 0)
    cell = re.search(r'<td title="nid000002 to nid000003: [^"]*" class="h(\d)">', page)
    assert cell is not None
    assert int(cell[1]) == step


def test_a_table_says_each_link_in_figures_and_words() -> None:
    page = heat.html(only(links(named(4), {(0, 1): 4.0, (2, 3): 0.5})), "title", 0)
    for values in (
        ("nid000001 to nid000002", "25.0 MB/s", "4.00 times slower"),
        ("nid000003 to nid000004", "200 MB/s", "2.00 times faster"),
        ("nid000002 to nid000001", "100 MB/s", "like the median"),
        ("Rows send", "columns receive"),
    ):
        assert shows(page, *values)
    assert "<svg" not in page


def test_a_link_without_a_value_is_not_a_fast_one() -> None:
    data = links(named(20))
    without = replace(data, links=data.links[1:])  # n1 to n2
    assert shows(heat.html(only(without), "title", 0), "d=", "M1 0h1v1h-1z", "class=")
    few = links(named(4))
    assert shows(heat.html(only(replace(few, links=few.links[1:])), "t", 0), 'class="hu"', "?")


@pytest.mark.parametrize("count", [13, 64, 110])
def test_a_picture_has_as_many_elements_whatever_the_nodes(count: int) -> None:
    page = heat.html(only(links(named(count), {(5, 3): 3.0, (5, 4): 3.0, (2, 7): 1.3})), "t", 3)
    paths = dict(re.findall(r'<path d="([^"]*)" class="h(\w)"', page))
    assert {kind: d for d, kind in paths.items()} == {
        "d": "".join(f"M{k} {k}h1v1h-1z" for k in range(count)),
        "2": "M7 2h1v1h-1z",
        "4": "M3 5h2v1h-2z",  # neighbours are one piece
    }
    assert 'data-map="3"' in page
    assert shows(page, heat.SLOWEST, count * (count - 1))
    names = re.findall(r"<text[^>]*>(\w+)</text>", page)
    assert len(names) <= 2 * heat.SIDE / heat.LABEL
    assert names[0] == named(count)[0].removeprefix("nid0000" if count < 100 else "nid000")


def test_the_slowest_links_come_first_and_whole() -> None:
    page = heat.html(only(links(named(16), {(5, 3): 3.0, (2, 7): 1.3})), "t", 0)
    rows = re.findall(r"<tr><td>(\w+)</td><td>(\w+)</td><td>([\d.]+)</td><td>([\d.]+)</td>", page)
    assert rows[:2] == [("nid000006", "nid000004", "33.3", "3.00"),
                        ("nid000003", "nid000008", "76.9", "1.30")]  # fmt: skip


@given(st.lists(st.text("abn01", min_size=1, max_size=6), min_size=1, max_size=9, unique=True))
def test_short_names_stay_different_and_say_all(names: list[str]) -> None:
    short, begin = heat._short(tuple(names))
    assert [begin + name for name in short] == names
    assert all(short)
    assert begin == "" or len(begin) >= heat.SHORT


def test_names_are_foreign_text_and_secrets_are_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2hunter2"
    monkeypatch.setenv("SOME_TOKEN", secret)
    for count in (3, 20):
        nodes = [f"<evil>{secret}", *named(count)]
        page = html.render_html(links(nodes))
        assert "<evil" not in page
        assert secret not in page


def test_the_page_has_the_figures_that_a_tooltip_says() -> None:
    data = links(named(13), {(0, 2): 2.5})
    (one,) = node_pairs.values(data)
    assert one is not None
    assert (one["values"][0][:3], one["worse"][0][:3]) == ([None, 100.0, 40.0], [None, 1.0, 2.5])
    assert json.dumps(one["values"][0]).replace(" ", "") in html.render_html(data)
    assert node_pairs.values(links(named(4))) == [None]  # its table says so by itself


def test_a_column_on_the_terminal_has_the_number_of_its_row() -> None:
    lines = node_pairs.picture(only(links(named(64), {(5, 22): 3.0})))
    assert max(map(len, lines)) <= 80
    slow = next(line for line in lines if "█" in line)
    assert shows(slow, "nid000006 6")
    assert lines[0][slow.index("█")] == "3"  # of 23
    assert shows(lines[23], "nid000023 3")


@pytest.mark.parametrize("count", [2, 5, 8])
def test_names_above_figures_are_whole_where_they_fit(count: int) -> None:
    lines = node_pairs.picture(only(links(named(count))))
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == [name if count < 8 else name[-7:] for name in named(count)]
