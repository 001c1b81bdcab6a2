"""Which MPI at which message size, and how a ratio reads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Better, Verdict
from mpigraft.report.html import winners
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, sections
from tests.builders.reports import BASELINE, small_data

ONE, OTHER = "intel@2021.18.1/shm", "openmpi@5.0.11/ob1-tcp"


def section(metric: str, **ratios: tuple[float, ...]) -> Section:
    """A section whose configurations have these ratios, all of them called."""
    data = small_data()
    first = next(g for g in data.comparison.groups if g.metric == metric)
    groups = tuple(
        replace(
            first,
            configuration={"one": ONE, "other": OTHER}[name],
            cells=tuple(
                replace(c, ratio=r, verdict=Verdict.FASTER)
                for c, r in zip(first.cells, own, strict=True)
            ),
        )
        for name, own in ratios.items()
    )
    (made,) = sections(replace(data.comparison, groups=groups))
    return made


def test_sizes_are_cut_where_the_best_changes() -> None:
    made = section("latency", one=(0.5, 0.5, 2.0, 2.0), other=(0.9, 0.8, 1.5, 0.5))
    found = list(winners.runs(made, BASELINE, 0.03))
    assert [(run.best, run.sizes) for run in found] == [
        (ONE, (8, 1 << 10)), (BASELINE, (1 << 16,)), (OTHER, (1 << 22,)),
    ]  # fmt: skip
    assert found[0].gains == (2.0, 2.0)
    assert [run.called for run in found] == [True, False, True]


def test_of_bandwidths_the_highest_is_the_best() -> None:
    made = section("bandwidth", one=(2.0, 2.0, 2.0, 0.5), other=(3.0, 3.0, 3.0, 0.4))
    assert [(run.best, len(run.sizes)) for run in winners.runs(made, BASELINE, 0.03)] == [
        (OTHER, 3), (BASELINE, 1),
    ]  # fmt: skip


def test_what_lies_within_the_margin_at_each_size_is_as_good() -> None:
    made = section("latency", one=(0.5, 0.5, 0.5, 0.5), other=(0.51, 0.505, 0.51, 0.5))
    (run,) = winners.runs(made, BASELINE, 0.03)
    assert {run.best, *run.others} == {ONE, OTHER}
    apart = section("latency", one=(0.5, 0.5, 0.5, 0.5), other=(0.51, 0.9, 0.51, 0.51))
    (run,) = winners.runs(apart, BASELINE, 0.03)
    assert (run.best, run.others) == (ONE, ())


@pytest.mark.parametrize(
    ("ratio", "better", "text"),
    [
        (12.0, Better.LOWER, "12.0x slower"),
        (1 / 12, Better.HIGHER, "12.0x slower"),
        (0.5, Better.LOWER, "2.00x faster"),
        (2.0, Better.HIGHER, "2.00x faster"),
        (1.004, Better.HIGHER, "equal"),
        (0.0, Better.LOWER, "-"),
        (float("nan"), Better.LOWER, "-"),
    ],
)
def test_bandwidth_and_latency_read_alike(ratio: float, better: Better, text: str) -> None:
    assert words.factor(ratio, better) == text


@pytest.mark.parametrize("better", list(Better))
def test_a_share_in_percent_is_no_speed(better: Better) -> None:
    """Of an overlap or a CPU's share, whichever is the better."""
    assert words.factor(4.46, better, "%") == "4.46x higher"
    assert words.factor(1 / 4.46, better, "%") == "4.46x lower"
    assert words.factor(1.004, better, "%") == "equal"


@given(st.sampled_from([2.0**n for n in range(-20, 21)]))
def test_a_ratio_and_its_inverse_read_as_opposites(ratio: float) -> None:
    assert words.factor(ratio, Better.HIGHER) == words.factor(1 / ratio, Better.LOWER)
