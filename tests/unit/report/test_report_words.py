"""Numbers, sizes and names as a report writes them."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpigraft.core import numbers
from mpigraft.core.homes import hide_homes
from mpigraft.core.model import Better, Evidence
from mpigraft.report.html.page import render_html
from mpigraft.report.markdown import render_markdown
from mpigraft.report.terminal import print_report
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import sections
from tests.builders.html import Page
from tests.builders.messages import shows
from tests.builders.reports import BASELINE, comparison, small_data


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_a_ratio_is_short_and_says_what_it_is(value: float) -> None:
    text = numbers.ratio(value)
    assert float(text) == pytest.approx(value, rel=0.051)
    if 0.01 <= value < 1000:
        assert len(text) <= 5


def test_ratios_and_numbers_as_they_are_read() -> None:
    ratios = {0.17: "0.170", 0.9996: "1.00", 9.996: "10.0", 0.0241: "0.024", 123.4: "123"}
    assert {v: numbers.ratio(v) for v in ratios} == ratios
    values = {0.29: "0.290", 1306.4: "1306", 5_100_000: "5.1M", 99.96: "100", 0.0: "0"}
    assert {v: numbers.number(v) for v in values} == values
    assert numbers.ratio(float("nan")) == "-"


ANN = "/".join(("", "home", "ann"))


@pytest.mark.parametrize(
    ("home", "text", "said"),
    [
        ("/ann", "/ann/mpi/lib:/ann", "~/mpi/lib:~"),
        ("/ann", "/opt/ann/lib /anna /ann-2", "/opt/ann/lib /anna /ann-2"),
        ("/cluster/h/ann", "-L/cluster/h/ann/lib", "-L~/lib"),
        ("/cluster/h/ann", "/cluster/h/anna/lib", "/cluster/h/anna/lib"),
        ("/ann", f"{ANN}/lib -I{ANN} file:///Users/bo.b/x", "~/lib -I~ file://~/x"),
        ("/root", "https://a.org/home/page /opt/home/x", "https://a.org/home/page /opt/home/x"),
        ("/", "/usr/lib", "/usr/lib"),
    ],
)
def test_home_folders_are_hidden(
    monkeypatch: pytest.MonkeyPatch, home: str, text: str, said: str
) -> None:
    monkeypatch.setenv("HOME", home)
    assert hide_homes(text) == said


def test_a_figure_without_a_unit_is_in_none() -> None:
    data = small_data()
    bare = tuple(replace(group, unit="") for group in data.comparison.groups)
    data = replace(data, comparison=replace(data.comparison, groups=bare))
    console = Console(file=io.StringIO(), width=80)
    print_report(data, console)
    assert isinstance(console.file, io.StringIO)
    for text in (console.file.getvalue(), render_markdown(data), render_html(data)):
        assert "latency" in text
        assert not re.findall(r"latency in |latency in[,;.]|latency, (?=[,;.<]|$)", text)


def test_the_page_names_a_figure_of_merit_without_unit_and_direction() -> None:
    data = small_data()
    (first, *_) = data.comparison.groups
    group = replace(first, metric="performance [ns/day] higher", unit="ns/day")
    page = Page(render_html(replace(data, comparison=replace(data.comparison, groups=(group,)))))
    assert shows(page.words, "performance", "1x2")
    assert "] higher" not in page.words


def test_sizes_as_they_are_read() -> None:
    sizes = {0: "-", 8: "8 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 22: "4 MiB"}
    assert {s: numbers.size(s) for s in sizes} == sizes
    assert [numbers.short_size(s) for s in (0, 512, 1 << 17, 1 << 30)] == [
        "-",
        "512",
        "128K",
        "1G",
    ]


def test_crossings_name_the_one_that_is_ahead() -> None:
    section = sections(small_data().comparison)[0]
    group = next(g for g in section.groups if g.configuration == "openmpi@5.0.11/ob1-tcp")
    found = words.crossings(group, BASELINE, Better.LOWER)
    assert found == {1 << 22: BASELINE}
    ahead = words.crossings(group, BASELINE, Better.HIGHER)
    assert ahead == {1 << 22: group.configuration}


def test_own_bytes_of_ranks_follow_counted_bytes() -> None:
    told = words.counted_bytes("e0", 1_100_000, "netdev", 1_000_000, due=True, own=1_000_123)
    assert shows(told, "RDMA", "1,000,123")
    assert "own" not in words.counted_bytes("e0", 9, "netdev", 9, due=False)
    assert shows(words.counted_bytes("e0", 9, "", 0, due=False, own=0), "0 by the ranks' own")


def test_only_interfaces_of_the_kernel_carry_connections() -> None:
    counters = (("e0", "netdev"), ("e1", "netdev"), ("cxi0", "cxi telemetry"))
    found = Evidence("x", "x", (), (), (), counters=counters, own=(("e0", 7),))
    names = ("e0", "e1", "cxi0", "e9")
    assert [words.own_bytes(found, name) for name in names] == [7, 0, None, None]
    assert words.own_bytes(replace(found, own=None), "e0") is None


def test_ratios_over_other_sizes_say_so_and_are_given_over_those_of_all() -> None:
    one, other = comparison(benchmarks=(("native:latency", "latency", 1.0),)).groups[:2]
    few = replace(other, cells=other.cells[:2], pooled_sizes=())
    assert words.unlike_sizes([one, other]) == ""
    means = [
        math.exp(sum(math.log(cell.ratio) for cell in group.cells[:2]) / 2) for group in (one, few)
    ]
    said = words.unlike_sizes([one, few])
    ratios = (means[0], few.pooled if few.used_sizes == (1, 2) else means[1])
    assert shows(said, "23 sizes", f"{few.configuration} 2", "2 sizes", "1 B to 2 B")
    for group, mean in zip((one, few), ratios, strict=True):
        assert shows(said, group.configuration, numbers.ratio(mean))
    rest = replace(one, cells=one.cells[2:], pooled_sizes=())
    assert shows(words.unlike_sizes([rest, few]), "no size", "in all")
    lost = replace(one, pooled_sizes=(1, 2, 4))
    assert shows(words.unlike_sizes([lost]), "23 sizes", f"{one.configuration} 3")
