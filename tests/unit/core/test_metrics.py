"""A metric is a row, or a key that says its own unit and direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import METRICS, Better, Metric, metric_key, metric_name


def test_a_figure_of_merit_says_its_unit_and_direction() -> None:
    key = metric_key("performance", "ns/day", Better.HIGHER)
    assert METRICS[key] == Metric("performance", "ns/day", Better.HIGHER)
    assert key in METRICS
    assert METRICS.get(metric_key("time", "", Better.LOWER)) == Metric("time", "", Better.LOWER)


@pytest.mark.parametrize("key", ["speed", "a [b] worse", "A [s] lower", "a [[]] lower", ""])
def test_what_is_no_metric_is_none(key: str) -> None:
    assert key not in METRICS
    assert METRICS.get(key) is None


def test_a_person_reads_the_name_alone() -> None:
    assert metric_name("latency") == "latency"
    assert metric_name(metric_key("performance", "ns/day", Better.HIGHER)) == "performance"
    assert metric_name("speed") == "speed"


def test_the_rows_alone_are_listed() -> None:
    assert metric_key("x", "s", Better.LOWER) in METRICS
    assert len(METRICS) == len(list(METRICS)) == len({*METRICS})
    assert "latency" in [*METRICS]


@given(st.text(max_size=8), st.text(max_size=8), st.sampled_from(list(Better)))
def test_a_key_is_read_as_it_was_made_or_refused(name: str, unit: str, better: Better) -> None:
    try:
        key = metric_key(name, unit, better)
    except ValueError:
        return
    assert METRICS[key] == Metric(name, unit, better)
