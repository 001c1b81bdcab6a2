"""Figures for a paper: SVG and PDF that other programs can read, of every benchmark and view."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import ValueRow, Verdict, layout_order
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import curves
from mpigraft.report.paper import figures
from mpigraft.report.paper.drawing import LINE, draw, text_width
from mpigraft.report.paper.figures import WIDTHS, render_figures
from mpigraft.report.paper.panels import (
    Curve,
    Dot,
    Panel,
    PaperFigure,
    PaperLine,
    paper_figures,
)
from mpigraft.report.scaling import cards
from tests.builders.messages import matches, shows
from tests.builders.reports import olivia, small_data

SVG = "{http://www.w3.org/2000/svg}"
POINTS = 72


def over_nodes() -> ReportData:
    """The campaign of `small_data` on 1, 2 and 16 nodes."""
    data = small_data()
    groups = tuple(
        replace(group, layout=f"{nodes}x2")
        for group in data.comparison.groups
        for nodes in (1, 2, 16)
    )
    return replace(data, comparison=replace(data.comparison, groups=groups))


def of_nodes() -> ReportData:
    """A view of one benchmark, without what it has over message size."""
    data = over_nodes()
    groups = tuple(
        replace(g, cells=g.cells[:1]) for g in data.comparison.groups if g.metric == "latency"
    )
    return replace(data, comparison=replace(data.comparison, groups=groups))


def texts(svg: bytes) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}text"))


@pytest.fixture(scope="module")
def first() -> tuple[bytes, bytes]:
    """The first figure of `small_data`: SVG and PDF, of a process of its own."""
    files = render_figures(small_data())
    (_, svg), (_, pdf) = itertools.islice(files, 2)
    return svg, pdf


# ------------------------------------------------------------------ what is in them


def test_every_benchmark_has_a_figure_of_each_layout_and_one_over_nodes() -> None:
    names = [figure.name for figure in paper_figures(over_nodes())]
    assert len(names) == len(set(names)) == 2 * (1 + 3)
    assert shows(names[0], "native-latency", "over-nodes")
    assert shows(names, "native-bw", "16x2")


def test_values_have_the_interval_of_the_rounds_median_and_ratios_their_own() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    key = {c.id: c.key for c in data.configurations}[group.configuration]
    cell = group.cells[0]
    row = next(row for row in data.values if row.configuration == key)

    def launched(turn: int) -> ValueRow:
        here = row._replace(benchmark=group.benchmark, metric=group.metric, layout=group.layout)
        return here._replace(buffers=group.buffers, size=cell.size, round=turn, value=turn + 1.0)

    data = replace(data, values=tuple(map(launched, range(6))))
    values, ratios = next(paper_figures(data)).panels
    (dot,) = (c.dots[0] for c in values.curves if c.name == group.configuration)
    assert dot == Dot(cell.size, cell.value, (1.0, 6.0))
    assert cell.low is not None
    assert cell.high is not None
    (dot,) = (c.dots[0] for c in ratios.curves if c.name == group.configuration)
    assert dot == Dot(cell.size, cell.ratio, (cell.low, cell.high), cell.verdict)


def test_single_runs_are_marked() -> None:
    data = olivia()
    figures = list(paper_figures(data))
    assert all(shows(figure.notes, "Single runs", "no verdict") for figure in figures)
    assert not any("Bands" in figure.notes for figure in figures)
    verdicts = [
        dot.verdict
        for f in figures
        for p in f.panels
        if p.ratio
        for c in p.curves
        for dot in c.dots
    ]
    assert set(verdicts) == {Verdict.INCONCLUSIVE}
    assert len(verdicts) == sum(len(g.cells) for g in data.comparison.groups)


def test_a_file_name_cannot_leave_its_folder() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    evil = tuple(replace(group, benchmark=name) for name in ("../../x", "..//..//x", "/etc/x", "é"))
    figures = paper_figures(replace(data, comparison=replace(data.comparison, groups=evil)))
    names = [figure.name for figure in figures]
    assert all(re.fullmatch(r"[A-Za-z0-9-]+", name) for name in names)
    assert len({name.lower() for name in names}) == 4


# ------------------------------------------------------------------ files


def test_svg_has_all_names_and_what_was_measured_where_as_text(first: tuple[bytes, bytes]) -> None:
    found = ["".join(text.itertext()) for text in texts(first[0])]
    assert shows(found, "native:latency", "1x2")
    for name in ("mpich ofi-tcp, baseline", "intel shm", "openmpi ob1-tcp", "openmpi ofi-tcp"):
        assert found.count(name) == 1  # in the key, whole
    assert found.count("message size (bytes)") == found.count("latency (us)") * 2 == 2
    assert found.count("ratio to the baseline") == 1
    below = " ".join(found)
    assert shows(below, "AMD EPYC", "7763")
    assert shows(below, "openmpi@5.0.11", "libfabric", "2.1.0")
    assert shows(below, "Bands", "95", "intervals")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_key_is_whole_and_nothing_leaves_the_figure(width: str) -> None:
    _, svg = next(render_figures(small_data(), width))
    root = ET.fromstring(svg)
    wide, tall = (float(root.get(side, "").removesuffix("pt")) for side in ("width", "height"))
    assert wide == pytest.approx(WIDTHS[width] * POINTS, abs=1e-3)
    placed = {}
    for text in texts(svg):
        match = re.search(r"translate\(([\d.]+) ([\d.]+)\)", text.get("transform", ""))
        x, y = map(float, match.groups() if match else (text.get("x", ""), text.get("y", "")))
        own = "".join(text.itertext())
        assert 0 <= y <= tall
        assert 0 <= x <= wide
        placed[own] = (x, y)
    keys = {name: at for name, at in placed.items() if name.startswith(("openmpi ", "intel "))}
    assert len(keys) >= 3
    assert all(x + text_width(name) <= wide for name, (x, _) in keys.items())
    rows = sorted({y for _, y in keys.values()})
    assert all(b - a >= LINE - 0.1 for a, b in itertools.pairwise(rows))


def test_lines_differ_by_mark_and_dash_and_neighbours_by_shade() -> None:
    """So that a print in grey shows which is which."""
    looks = figures.line_styles(small_data())
    base, *others = looks.values()
    assert base.base
    assert not any(look.base or not look.dash for look in others)
    assert len({look.mark for look in looks.values()}) == len(looks)
    assert len({look.dash for look in looks.values()}) == len(looks)
    greys = [sum(int(look.ink[k : k + 2], 16) for k in (1, 3, 5)) for look in others]
    assert all(abs(a - b) > 30 for a, b in itertools.pairwise(greys))


def test_pdf_embeds_its_font_and_has_no_date(first: tuple[bytes, bytes]) -> None:
    pdf = first[1]
    assert pdf.startswith(b"%PDF-1.4")
    assert b"+DejaVuSans" in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"Date" not in pdf
    assert b"dc:date" not in first[0]


def test_the_same_campaign_gives_the_same_bytes_in_another_process(
    first: tuple[bytes, bytes],
) -> None:
    script = (
        "import sys, itertools; from mpigraft.report.paper.figures import render_figures\n"
        "from tests.builders.reports import small_data\n"
        "for _, content in itertools.islice(render_figures(small_data()), 2):\n"
        "    sys.stdout.buffer.write(content)"
    )
    root = Path(__file__).parents[3]
    again = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
    )  # fmt: skip
    assert again.stdout == b"".join(first)


def test_a_figure_of_one_column_has_its_panels_below_each_other() -> None:
    data = of_nodes()
    (figure,) = paper_figures(data)
    (_, page), _ = render_figures(data)
    (_, column), _ = render_figures(data, "column")
    roots = [ET.fromstring(svg) for svg in (page, column)]
    wide = [float(root.get("width", "").removesuffix("pt")) for root in roots]
    assert wide == [pytest.approx(7.16 * POINTS), pytest.approx(3.5 * POINTS)]
    tall = float(roots[1].get("height", "").removesuffix("pt"))
    assert tall < 9.5 * POINTS  # what a page of a journal has

    def tops(svg: bytes) -> list[float]:
        titles = {panel.title for panel in figure.panels}
        return sorted({round(float(re.findall(r"[\d.]+", t.get("transform", "0 0"))[-1]))
                       for t in texts(svg) if "".join(t.itertext()) in titles})  # fmt: skip

    assert len(figure.panels) == 2
    assert len(tops(page)) == 1
    assert len(tops(column)) == 2


def test_a_peak_near_the_values_is_drawn_and_one_far_above_is_not() -> None:
    def labels(peak: float) -> list[str]:
        data = small_data()
        machine = json.loads(data.allocations[0].machine)
        speed = [["speed", f"{peak:.0f} Mb/s"]]
        device = {"name": "cxi0", "kind": "cxi", "state": "up", "details": speed}
        machine = json.dumps(machine | {"fabrics": [device]})
        groups = tuple(
            replace(g, layout="2x1") for g in data.comparison.groups if g.metric == "bandwidth"
        )
        data = replace(
            data,
            comparison=replace(data.comparison, groups=groups),
            allocations=(replace(data.allocations[0], machine=machine),),
        )
        (_, svg), _ = render_figures(data)
        return ["".join(t.itertext()) for t in texts(svg) if "%" in "".join(t.itertext())]

    assert any(shows(text, "100", "cxi0", "200 Gbit/s") for text in labels(200_000))
    assert not any(text.startswith("100 %") for text in labels(9_000_000))


def test_matplotlib_is_missed_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mpigraft.report.paper.drawing")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingError, match="matplotlib") as caught:
        render_figures(small_data())
    assert matches(caught.value, "figures-missing")


def test_an_unknown_width_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="--figure-width 'wide' is unknown"):
        render_figures(small_data(), "wide")


# ------------------------------------------------------------------ any text

ANY = st.text(st.characters(codec="utf-8"), max_size=40)


def one_panel(name: str, title: str) -> Iterator[bytes]:
    curves = (Curve(name, ((Dot(1, 2.0, (1.5, 2.5)), Dot(4, 3.0)),)),)
    panels = tuple(
        Panel(title, "x", "y", curves, (1.0, 4.0), bytes=True, ratio=ratio)
        for ratio in (False, True)
    )
    looks = {name: PaperLine(name, "#000000", "7 3", "s")}
    return draw(PaperFigure("n", title, panels, title), looks, 7.16, 2)


@settings(max_examples=8, deadline=None)
@given(ANY, ANY)
def test_any_text_is_drawn_as_it_is(name: str, title: str) -> None:
    from mpigraft.core.text import printable

    name, title = printable(name), printable(title)
    svg, pdf = one_panel(name, title)
    found = ["".join(text.itertext()) for text in texts(svg)]
    if title.strip():
        assert title in found
    if name.strip():
        assert name in found
    assert pdf.rstrip().endswith(b"%%EOF")


def test_words_of_mathematics_and_of_tex_stay_words() -> None:
    words = ("$x^2$", r"\frac{a}{b} $")
    svg, _ = one_panel(*words)
    assert {*words} <= {"".join(text.itertext()) for text in texts(svg)}


# ------------------------------------------------------------------ what is over nodes


def test_a_view_takes_the_size_that_most_layouts_have() -> None:
    data = over_nodes()
    short = tuple(
        replace(g, cells=g.cells[:2]) if g.layout == "16x2" else g for g in data.comparison.groups
    )
    (first, _) = cards(replace(data.comparison, groups=short))
    (view,) = first.views
    assert [x for x, _ in view.points] == [1, 2, 16]
    assert shows(view.series, "2 ranks")
    assert view.sizes == (("small", 8), ("medium", 1 << 10), ("large", 1 << 16))


@pytest.mark.parametrize(
    ("layouts", "views"),
    [
        (("1x1", "1x2", "1x4"), [("ranks per node", "on 1 node")]),
        (("1x2", "2x2", "2x4"), [("nodes", "2 ranks per node"), ("ranks per node", "on 2 nodes")]),
        (("1x2:numa", "2x2:numa", "2x2"), [("nodes", "2 ranks per node (:numa)")]),
        (("unknown", "1x2"), []),
        (("1x2",), []),
    ],
)
def test_layouts_that_differ_in_one_number_make_a_view(
    layouts: tuple[str, ...], views: list[tuple[str, str]]
) -> None:
    data = small_data()
    groups = tuple(replace(data.comparison.groups[0], layout=layout) for layout in layouts)
    (card,) = cards(replace(data.comparison, groups=groups))
    assert [(view.axis, view.series) for view in card.views] == views


# ------------------------------------------------------------------ what is missing


def test_a_curve_has_a_gap_where_a_size_is_missing() -> None:
    """Of one configuration, and of all: the baseline lacks it then, and others were measured."""
    data = small_data()
    groups = data.comparison.groups[:3]
    one, name = groups[0], groups[0].configuration
    row = data.values[0]._replace(benchmark=one.benchmark, metric=one.metric, layout=one.layout)
    row = row._replace(buffers=one.buffers, size=1 << 20)
    lost = replace(one, cells=tuple(c for c in one.cells if c.size != 1024))
    comparison = replace(data.comparison, groups=(lost, *groups[1:]))
    data = replace(data, comparison=comparison, values=(row,))
    for panel in next(paper_figures(data)).panels:
        pieces = {c.name: [[dot.x for dot in p] for p in c.pieces] for c in panel.curves}
        assert pieces[name] == [[8], [65536], [1 << 22]]
        assert pieces[groups[1].configuration] == [[8, 1024, 65536], [1 << 22]]
    (section,) = json.loads(json.dumps(curves(data)))["sections"]
    assert [section["sizes"][n] for n in section["breaks"]] == [65536]


def test_a_curve_has_a_gap_where_a_layout_is_missing() -> None:
    data = over_nodes()
    groups = data.comparison.groups
    name = groups[0].configuration
    middle = sorted({g.layout for g in groups}, key=layout_order)[1]
    kept = tuple(g for g in groups if (g.configuration, g.layout) != (name, middle))
    data = replace(data, comparison=replace(data.comparison, groups=kept))
    panel = next(paper_figures(data)).panels[0]
    (curve,) = (c for c in panel.curves if c.name == name)
    assert [len(piece) for piece in curve.pieces] == [1, 1]


def test_a_view_has_a_gap_where_only_the_baseline_ran() -> None:
    data = over_nodes()
    one = data.comparison.groups[0]
    kept = tuple(g for g in data.comparison.groups if g.layout != "2x2")
    row = data.values[0]._replace(benchmark=one.benchmark, metric=one.metric, layout="2x2")
    rows = tuple(row._replace(buffers=one.buffers, layout=x) for x in ("2x2", "2x3", "32x2"))
    data = replace(data, comparison=replace(data.comparison, groups=kept), values=rows)
    for panel in next(paper_figures(data)).panels:
        assert panel.marks == (1, 2, 16)
        assert {tuple(map(len, curve.pieces)) for curve in panel.curves} == {(1, 1)}
    views = json.loads(json.dumps(curves(data)))["views"]
    assert [view["x"] for view in views] == [[1, 2, 16], [1, 16]]
    assert views[0]["at"][1] is None
