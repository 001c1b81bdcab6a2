"""The picture below a page's headline."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import pytest

from mpigraft.core.model import Better, Verdict
from mpigraft.report.html import page
from mpigraft.report.html.forest import COLUMNS, ROWS, WIDTH, Axis, forest
from mpigraft.report.markup import Html
from mpigraft.report.scaling import Card, cards
from tests.builders.messages import shows
from tests.builders.reports import BASELINE, small_data

METRIC = {Better.LOWER: "latency", Better.HIGHER: "bandwidth"}
NAMES = ("intel@2021.18.1/shm", "openmpi@5.0.11/ob1-tcp", "openmpi@5.0.11/ofi-tcp")


def a_card(better: Better = Better.LOWER, /, **pooled: float) -> Card:
    """One benchmark, with a configuration for each word and its ratio to the baseline."""
    card = cards(small_data().comparison)[0]
    (section,), group = card.sections, card.sections[0].groups[0]
    groups = tuple(
        replace(
            group,
            configuration=name,
            metric=METRIC[better],
            pooled=ratio,
            pooled_low=None,
            pooled_high=None,
        )
        for name, ratio in pooled.items()
    )
    section = replace(section, better=better, groups=groups)
    return replace(card, better=better, sections=(section,))


def drawn(*of: Card) -> Html:
    picture = forest(of, BASELINE)
    assert picture is not None
    return picture


def dots(picture: str) -> list[tuple[str, float]]:
    """(configuration, x) of each dot, from above."""
    rows = re.findall(r'<tr data-name="([^"]*)">(.*?)</tr>', picture)
    return [(n, float(x)) for n, row in rows for x in re.findall(r'<circle cx="([\d.]+)"', row)]


@pytest.mark.parametrize(("better", "fast"), [(Better.LOWER, 0.5), (Better.HIGHER, 2.0)])
def test_faster_is_above_and_to_the_right_for_latencies_and_bandwidths(
    better: Better, fast: float
) -> None:
    (quick, right), (alike, middle), (slow, left) = dots(
        drawn(a_card(better, slow=1 / fast, alike=1.0, quick=fast))
    )
    assert (quick, alike, slow) == ("quick", "alike", "slow")
    assert right - middle == pytest.approx(middle - left, abs=0.2)
    assert 0 < left < middle == WIDTH / 2 < right < WIDTH


def test_all_columns_have_one_axis() -> None:
    one, other = a_card(small=0.5), a_card(small=0.5, large=0.01)
    (_, (_, x)), (_, (_, again)) = (
        ("", next(dot for dot in dots(drawn(*of)) if dot[0] == "small"))
        for of in ((one, other), (other, one))
    )
    assert x == again
    assert x < dots(drawn(one))[0][1]


def test_a_dot_says_whether_there_is_a_verdict() -> None:
    card = a_card(one=0.5)
    for verdict, kind in ((Verdict.FASTER, "v-faster"), (Verdict.INCONCLUSIVE, "v-open")):
        (section,) = card.sections
        groups = tuple(replace(group, curve=verdict) for group in section.groups)
        own = replace(card, sections=(replace(section, groups=groups),))
        assert shows(drawn(own), f'class="curve {kind}"')


def test_an_interval_is_a_line_with_its_value_on_it() -> None:
    card = a_card(one=0.5)
    (section,) = card.sections
    group = replace(section.groups[0], pooled_low=0.4, pooled_high=0.8)
    picture = drawn(replace(card, sections=(replace(section, groups=(group,)),)))
    ((_, x),) = dots(picture)
    ends = re.search(r'<line x1="([\d.]+)" x2="([\d.]+)"[^>]*class="whisker"', picture)
    assert ends is not None
    assert float(ends[1]) < x < float(ends[2])
    assert shows(picture, "Lines are 95 % intervals")
    assert not shows(drawn(card), "whisker")
    assert not shows(drawn(card), "intervals")


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_what_is_no_ratio_is_left_out(value: float) -> None:
    assert [name for name, _ in dots(drawn(a_card(good=0.9, bad=value)))] == ["good"]
    assert forest((a_card(bad=value),), BASELINE) is None


def test_what_is_not_one_picture_has_none() -> None:
    one = a_card(one=0.5)
    many = {f"m{number}": 1.1 for number in range(ROWS + 1)}
    assert forest((), BASELINE) is None
    assert forest((replace(one, sections=one.sections * 2),), BASELINE) is None
    assert forest((replace(one, unit="%"),), BASELINE) is None
    assert forest((one,) * (COLUMNS + 1), BASELINE) is None
    assert forest((a_card(**many),), BASELINE) is None
    many.popitem()
    assert len(dots(drawn(a_card(**many)))) == ROWS


def test_ticks_have_room_for_their_labels() -> None:
    assert [text for _, text, _ in Axis(1 / 30, 1.3).ticks] == ["1", "20x slower"]
    assert [text for _, text, _ in Axis(1 / 3, 3).ticks] == ["1", "3x slower", "3x faster"]
    assert [text for _, text, _ in Axis(0.5, 1.9).ticks] == ["1", "2x slower", "1.5x faster"]
    assert shows(Axis(1e-7, 3e6).ticks[2][1], "10,000x")
    for axis in (Axis(1e-7, 3e6), Axis(0.8, 1.25), Axis(0.8, 1e9)):
        ends = [(x - 2.8 * len(text), x + 2.8 * len(text)) for _, text, x in axis.ticks]
        assert all(0 < low < high < WIDTH for low, high in ends)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(sorted(ends)))
        assert not any("e+" in text for _, text, _ in axis.ticks)


def of_metric(metric: str, unit: str, repeats: str = "") -> Card:
    """One configuration on one benchmark; twice its baseline's values."""
    card = a_card(one=2.0)
    (section,) = card.sections
    groups = tuple(replace(g, metric=metric, unit=unit, repeats=repeats) for g in section.groups)
    section = replace(section, metric=metric, unit=unit, groups=groups)
    return replace(card, metric=metric, unit=unit, sections=(section,))


def heads(picture: str) -> list[str]:
    return re.findall(r'<th scope="col">([^<]+)<svg', picture)


def test_columns_of_one_benchmark_are_told_apart() -> None:
    rate = of_metric("performance [ns/day] higher", "ns/day")
    picture = drawn(rate, of_metric("time [s] lower", "s"))
    assert [name.rpartition(" ")[2] for name in heads(picture)] == ["performance", "time"]
    right, left = (x for _, x in dots(picture))
    assert left < WIDTH / 2 < right


def test_a_measurement_is_drawn_once_and_what_is_no_speed_not_at_all() -> None:
    again = of_metric("message_rate", "messages/s", repeats="bandwidth")
    every = (of_metric("bandwidth", "MB/s"), again, of_metric("memory", "MiB"))
    assert len(heads(drawn(*every))) == 1
    assert forest(every[1:], BASELINE) is None


def test_a_long_name_is_folded_and_a_short_one_is_not() -> None:
    picture = drawn(a_card(**{"n" * 90: 0.5, "short": 0.9}))
    assert re.findall(r'class="long">(\w+)<', picture) == ["n" * 90]


def test_the_page_begins_with_it_and_escapes_its_names() -> None:
    data = small_data()
    text = page.render_html(data)
    assert text.index('class="forest"') < text.index('class="glance"')
    assert {name for name, _ in dots(text)} == {*NAMES}
    assert not shows(drawn(a_card(**{"<script>alert(1)</script>": 0.5})), "<script>")
