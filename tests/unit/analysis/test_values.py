"""One estimator: the launches of a configuration give the same value wherever it is shown."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.overtime.history import sort_history
from mpigraft.analysis.pairs.matrices import pair_matrices
from mpigraft.analysis.rank_scaling.scaling import fit_growth
from mpigraft.analysis.values import values_by_size
from mpigraft.core.model import Measured, Origin, ValueRow
from mpigraft.core.numbers import from_log
from mpigraft.report.baseline_only import baseline_series
from mpigraft.report.json import render_json
from tests.builders.campaigns import CAMPAIGN, arms, row
from tests.builders.comparisons import compare
from tests.builders.reports import report_of

Launches = list[tuple[float, float | None]]  # of the baseline in each round: the second may be lost
LAUNCHES = st.lists(
    st.tuples(st.floats(1e-3, 1e6), st.none() | st.floats(1e-3, 1e6)), min_size=1, max_size=7
)


def launched(name: str, launches: Launches, **changes: object) -> list[ValueRow]:
    return [
        row(name, turn, 8, value, replica=replica, **changes)
        for turn, pair in enumerate(launches)
        for replica, value in enumerate(pair)
        if value is not None
    ]


def shown_values(launches: Launches) -> dict[str, float]:
    """The value of a baseline at 8 B in each place that shows it."""
    rows = launched("base", launches)
    others = [row("k0", turn, 8, 1.0) for turn in range(len(launches))]
    record = replace(CAMPAIGN, rounds=len(launches), created="2026-01-02T00:00:00+00:00")
    cell = compare(record, arms("k0"), [*rows, *others]).groups[0].cells[0]
    alone = compare(record, arms(), rows)
    data = report_of(alone, campaign=record, configurations=tuple(arms()), values=tuple(rows))
    (history,) = sort_history([Measured(record, tuple(arms()), (), (), tuple(rows), ())])
    layouts = [one._replace(layout=layout) for one in rows for layout in ("1x2", "1x4")]
    grown = [one._replace(benchmark="native:barrier") for one in layouts]
    (growth,) = fit_growth(grown, {}, {})
    links = [
        one._replace(benchmark=f"native:pairs,from={a},to={b}", metric="bandwidth")
        for one in rows
        for a, b in (("n1", "n2"), ("n2", "n1"))
    ]
    (matrix,) = pair_matrices(links, {"base": "base"})
    ((_, _, values),) = values_by_size(rows, (), {"base": "base"})
    return {
        "compare": cell.baseline,
        "alone": baseline_series(data)[0].figures[0].value,
        "JSON": json.loads(render_json(data))["baseline_only"][0]["figures"][0]["value"],
        "history": history.points[0].value,
        "growth": growth.points[0].value,
        "pairs": matrix.links[0][1],
        "values": values[8].value,
    }


def test_two_rounds_are_their_geometric_mean_alone_and_beside_another() -> None:
    assert set(shown_values([(10.0, None), (1000.0, None)]).values()) == {100.0}


@given(LAUNCHES)
def test_a_value_is_the_same_wherever_it_is_shown(launches: Launches) -> None:
    values = shown_values(launches)
    assert {name: pytest.approx(values["values"]) for name in values} == values


def test_of_a_round_the_baseline_counts_once() -> None:
    launches: Launches = [(1.0, 4.0), (3.0, None), (5.0, None)]
    assert set(shown_values(launches).values()) == {3.0}


@given(st.integers(1, 10**8), st.integers(-6, 4))
def test_a_single_launch_keeps_its_digits(digits: int, places: int) -> None:
    value = float(f"{digits}e{places}")
    assert from_log(math.log(value)) == value


def test_a_document_has_the_digits_that_were_measured() -> None:
    rows = [row(name, 0, 8, value) for name, value in (("base", 6.74), ("k0", 130.66))]
    record = replace(CAMPAIGN, origin=Origin.IMPORT)
    data = report_of(
        compare(record, arms("k0"), rows), campaign=record, configurations=tuple(arms("k0"))
    )
    (cell,) = json.loads(render_json(data))["comparisons"][0]["cells"]
    assert (cell["baseline"], cell["value"]) == (6.74, 130.66)
