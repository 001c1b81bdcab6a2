"""The picture of a growth curve: axes that can be read, and predictions that look like no value."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.growth.scaling import Growth
from mpigraft.report import growth
from mpigraft.report.figures.growth_picture import (
    APART,
    BOTTOM,
    LINES,
    PREDICTED,
    TOP,
    _numbers,
    _round_values,
    _scale,
    picture,
)
from tests.unit.report.test_report_growth import grown


def series() -> Growth:
    (one,) = growth.growths(grown())
    return one


@given(st.floats(1e-6, 1e12))
def test_values_beside_the_axis_are_few_and_reach_the_top(top: float) -> None:
    values = _round_values(top)
    assert values[0] == 0
    assert values[-1] >= top * (1 - 1e-9)
    assert values[-2] < top
    assert 2 <= len(values) <= LINES + 2


@given(st.lists(st.integers(1, 1 << 20), min_size=2, max_size=40, unique=True))
def test_numbers_below_the_axis_do_not_run_into_each_other(ranks: list[int]) -> None:
    shown = _numbers(_scale(min(ranks), max(ranks), 1.0), ranks)
    places = sorted(float(re.findall(r'x="([\d.]+)"', text)[0]) for text in shown)
    assert all(b - a >= APART - 0.2 for a, b in itertools.pairwise(places))
    assert f">{max(ranks)}<" in shown[0]


def test_what_was_not_measured_is_drawn_otherwise() -> None:
    drawn = picture(series(), "alt")
    ground = re.search(r'<rect x="([\d.]+)"[^>]*class="beyond"', drawn)
    assert ground is not None
    edge = float(ground[1])
    assert f">{PREDICTED}</text>" in drawn
    for kind, words in (("m", ", measured"), ("p", f", {PREDICTED}")):
        marks = re.findall(rf'<g class="{kind}">(.*?)</g>', drawn)
        assert len(marks) == {"m": 5, "p": 2}[kind]
        for mark in marks:
            assert f"{words}</title>" in mark
            x = float(re.findall(r'cx="([\d.]+)"', mark)[0])
            assert (x > edge) is (kind == "p")
    solid, dashed = re.findall(r'<polyline points="([^"]*)"([^>]*)class="law"', drawn)
    assert "dasharray" not in solid[1]
    assert "dasharray" in dashed[1]
    assert solid[0].split()[-1] == dashed[0].split()[0]
    assert float(dashed[0].split()[0].split(",")[0]) == edge


def test_a_law_below_zero_stays_on_the_paper() -> None:
    one = series()
    assert one.law is not None
    sunk = replace(one, law=replace(one.law, name="logarithm", a=-1e6, b=1.0))
    heights = [float(y) for y in re.findall(r"[\d.]+,(-?[\d.]+)", picture(sunk, "alt"))]
    assert all(TOP <= y <= BOTTOM for y in heights)
