"""What counts once, what chance would call, and intervals that say nothing, in every form."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from mpigraft.core import numbers
from mpigraft.core.model import Look
from mpigraft.report import headline, looks, markdown, precision
from mpigraft.report import json as as_json
from mpigraft.report.contents import ReportData
from mpigraft.report.html import page
from mpigraft.report.wording.counts import tally
from tests.builders.messages import shows
from tests.builders.reports import report_of, small_data
from tests.unit.report.test_report_text import OPEN, UP, shown, with_verdicts

# ------------------------------------------------------------------ what counts


def repeated() -> ReportData:
    """One configuration whose message rate repeats its bandwidth: six cells, of which three."""
    data = small_data()
    rate = replace(data.comparison.groups[0], benchmark="native:mbw_mr", curve=UP, by_chance=0.2)
    cells = tuple(replace(c, verdict=UP) for c in rate.cells[:3])
    both = (
        replace(rate, metric="bandwidth", cells=cells, pooled=2.0),
        replace(rate, metric="message_rate", cells=cells, pooled=2.0, repeats="bandwidth"),
    )
    return replace(data, comparison=replace(data.comparison, groups=both, summary=()))


def test_a_measurement_that_two_metrics_repeat_counts_once() -> None:
    data = repeated()
    assert headline.records(data.comparison.groups)[0].curves == 1
    for text in (" ".join(shown(data).split()), markdown.render_markdown(data)):
        assert shows(text, "3 faster", "0 slower", "0", "0")
        assert shows(text, "chance alone", "call about", "0.2")
        assert shows(text, "same", "bandwidth", "counted once")


def test_a_look_counts_a_measurement_once() -> None:
    both = repeated().comparison
    planned = tuple(Look(rounds, 0.003) for rounds in (9, 14, 20))
    groups = tuple(replace(g, look=9, curve_p=0.002) for g in both.groups)
    data = replace(both, groups=groups, looks=planned, taken=1)
    look, end = looks.look_lines(data)
    assert shows(look, "9 rounds", "0.3 %", "1 of 1", "0.2 %")
    assert shows(end, "every", "11 rounds")
    assert [look["called"] for look in looks.document(data)] == [1, 0, 0]


def test_who_lacks_a_curve_has_not_won_every_one() -> None:
    """It failed on one of two layouts in every launch."""
    (group, *_) = small_data().comparison.groups
    won = replace(group, configuration="a", curve=UP)
    other = replace(group, configuration="b", curve=OPEN)
    there = replace(other, layout="2x8")
    first = headline.records([won, other, there])[0]
    assert (first.configuration, first.faster, first.curves) == ("a", 1, 2)
    comparison = replace(small_data().comparison, groups=(won, other, there))
    assert shows(headline.headline(report_of(comparison))[0], "faster", "1 of 2", "curves")


def test_chance_is_weighed_where_cells_were_called() -> None:
    comparison = repeated().comparison
    few = tuple(replace(g, by_chance=0.01) for g in comparison.groups)
    assert shows(tally(replace(comparison, groups=few)), "chance alone", "call fewer", "0.1")
    none = with_verdicts(*[OPEN] * 5).comparison
    assert shows(tally(none), "0 faster", "0 slower", "0 equivalent", "4 inconclusive")


# ------------------------------------------------------------------ intervals that say nothing


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (None, None, "-"), (None, 1.0, "-"), (0.9, 1.1, "[0.900, 1.10]"),
        (4.4e-11, 3.5e13, "unknown"),
        (0.1, 9.9, "[0.100, 9.90]"), (0.1, 10.0, "unknown"), (0.0, 1.0, "unknown"),
        (1e5, 2e6, "[100000, 2000000]"), (0.5, math.inf, "unknown"),
    ],
)  # fmt: skip
def test_an_interval_that_says_nothing_is_unknown(
    low: float | None, high: float | None, text: str
) -> None:
    assert numbers.interval(low, high) == text


def test_the_wild_intervals_of_two_rounds_are_printed_nowhere() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    wild = tuple(replace(c, low=4.4e-11, high=35161306434171.0, rounds=2) for c in group.cells)
    group = replace(group, cells=wild, pooled_low=1e-9, pooled_high=1e9, curve=OPEN)
    noise = (replace(data.comparison.noise[0], spread=4e12),)
    data = replace(data, comparison=replace(data.comparison, groups=(group,), noise=noise))
    for text in (shown(data), markdown.render_markdown(data), page.render_html(data)):
        assert "unknown" in text
        for figure in ("4.4e-11", "e-09", "35161306434171", "3.5161e+13", "1000000000", "±4e+14"):
            assert figure not in text, figure
    document = json.loads(as_json.render_json(data))  # programs get the figure itself
    assert document["comparisons"][0]["cells"][0]["high"] == 35161306434171.0


def test_few_rounds_are_advised_once() -> None:
    """Their finding has the number of rounds; what would decide is not known from them."""
    data = small_data()
    few = replace(data, comparison=replace(data.comparison, rounds=5))
    assert precision.deciding(few) == precision.extension(few) == ""
