"""Verdicts on cells: intervals, margins, noise, and what more rounds would do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from mpigraft.analysis import verdict_rules as under_test
from mpigraft.core.model import Better, Comparison, Verdict
from tests.builders.campaigns import SPREAD, Ratio, around, campaign
from tests.builders.comparisons import codes, compared, only, verdicts
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER


def test_a_cell_has_absolute_values_a_ratio_and_students_interval() -> None:
    group = only(compared(campaign(around(0.5))))
    cell = group.cells[1]
    assert (group.benchmark, group.metric, group.unit) == ("native:latency", "latency", "us")
    assert (group.layout, group.buffers, group.configuration) == ("1x2", "host", "mpi@k0")
    assert (cell.size, cell.rounds, cell.verdict) == (8, 6, FASTER)
    assert cell.baseline == pytest.approx(10 * math.sqrt(1.6 * 1.9))  # median of the logarithms
    assert cell.ratio == pytest.approx(0.5 * math.exp(0.005))  # median of SPREAD is 0.005
    half = 2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)
    middle = math.log(0.5) + float(np.mean(SPREAD))
    assert cell.low == pytest.approx(math.exp(middle - half))
    assert cell.high == pytest.approx(math.exp(middle + half))


def test_the_value_is_the_median_of_its_rounds() -> None:
    cell = only(compared(campaign(lambda turn, _: (1, 2, 3, 4, 5, 90)[turn]))).cells[0]
    values = [3 * (1 + 0.3 * n) * r for n, r in enumerate((1, 2, 3, 4, 5, 90))]
    assert cell.value == pytest.approx(math.sqrt(values[2] * values[3]))
    assert cell.ratio == pytest.approx(math.sqrt(12))


def test_the_denominator_is_the_geometric_mean_of_both_launches() -> None:
    """One launch of the baseline is 4 times the other; the mean is right in the middle."""
    cell = only(compared(campaign(around(1.0), pair=4.0))).cells[0]
    assert cell.ratio == pytest.approx(math.exp(0.005))


def test_fewer_than_six_rounds_decide_nothing() -> None:
    for rounds in (2, 5):
        comparison = compared(campaign(around(0.1), lambda *_: 1.0, rounds=rounds))
        for group in comparison.groups:
            assert set(verdicts(group)) == {INCONCLUSIVE}
            assert group.curve is INCONCLUSIVE
            assert all(c.low is not None for c in group.cells)
        assert codes(comparison.findings) == ["few-rounds"]
        assert all(n.false_verdicts == 0 for n in comparison.noise)
    assert set(verdicts(only(compared(campaign(around(0.1), rounds=6))))) == {FASTER}


def test_a_single_run_has_no_interval_and_says_so() -> None:
    comparison = compared(campaign(around(0.5), rounds=1))
    group = only(comparison)
    assert [c.ratio for c in group.cells] == pytest.approx([0.5 * math.exp(0.01)] * 3)
    for cell in group.cells:
        assert (cell.low, cell.high, cell.rounds_needed) == (None, None, None)
        assert cell.verdict is INCONCLUSIVE
    assert (group.pooled_low, group.pooled_high, group.curve_p) == (None, None, None)
    assert "no interval" in comparison.findings[0].message
    assert comparison.noise == ()


@pytest.mark.parametrize(
    ("metric", "ratio", "verdict"),
    [
        ("latency", 0.7, FASTER), ("latency", 1.4, SLOWER), ("bandwidth", 0.7, SLOWER),
        ("bandwidth", 1.4, FASTER), ("message_rate", 1.4, FASTER), ("init_time", 1.4, SLOWER),
        ("memory", 0.7, FASTER), ("overlap", 1.4, FASTER),
    ],
)  # fmt: skip
def test_better_is_lower_or_higher_by_metric(metric: str, ratio: float, verdict: Verdict) -> None:
    group = only(compared(campaign(around(ratio), metric=metric)))
    assert set(verdicts(group)) == {verdict}
    assert group.curve is verdict


def decide(low: float, high: float, **changes: object) -> Verdict:
    given = {"better": Better.LOWER, "rounds": 6, "margin": 0.03, "limit": 0.03, **changes}
    return under_test.decide(math.log(low), math.log(high), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "limit", "verdict"),
    [
        (1.04, 1.5, 0.03, SLOWER), (1.0299, 1.5, 0.03, INCONCLUSIVE), (1.0301, 9, 0.03, SLOWER),
        (0.5, 0.96, 0.03, FASTER), (0.5, 1 / 1.0301, 0.03, FASTER),
        (0.5, 1 / 1.0299, 0.03, INCONCLUSIVE), (1.04, 1.5, 0.05, INCONCLUSIVE),
        (1.06, 1.5, 0.05, SLOWER), (0.5, 0.96, 0.05, INCONCLUSIVE), (0.5, 0.95, 0.05, FASTER),
        (0.98, 1.02, 0.03, EQUIVALENT), (0.98, 1.02, 0.3, EQUIVALENT),
        (1 / 1.0299, 1.0299, 0.03, EQUIVALENT), (1 / 1.0301, 1.01, 0.03, INCONCLUSIVE),
        (0.99, 1.0301, 0.03, INCONCLUSIVE), (0.96, 1.04, 0.3, INCONCLUSIVE),
        (0.96, 1.01, 0.3, INCONCLUSIVE), (0.99, 1.04, 0.3, INCONCLUSIVE),
        (1.01, 1.02, 0.03, EQUIVALENT), (0.5, 2.0, 0.03, INCONCLUSIVE),
        (1.0, 1.0, 0.03, EQUIVALENT),
    ],
)  # fmt: skip
def test_the_verdict_on_an_interval(
    low: float, high: float, limit: float, verdict: Verdict
) -> None:
    assert decide(low, high, limit=limit) is verdict
    assert decide(low, high, limit=limit, rounds=5) is INCONCLUSIVE
    mirrored = {FASTER: SLOWER, SLOWER: FASTER}.get(verdict, verdict)
    assert decide(low, high, limit=limit, better=Better.HIGHER) is mirrored
    assert decide(1 / high, 1 / low, limit=limit) is mirrored


def test_bounds_on_the_margin_are_inside_it() -> None:
    edge, given = math.log1p(0.03), (Better.LOWER, 6, 0.03, 0.03)
    assert under_test.decide(edge, 1.0, *given) is INCONCLUSIVE
    assert under_test.decide(-1.0, -edge, *given) is INCONCLUSIVE
    assert under_test.decide(-edge, edge, *given) is EQUIVALENT


def test_no_interval_decides_nothing() -> None:
    assert decide(math.nan, math.nan) is INCONCLUSIVE


def test_values_that_never_vary_are_decided() -> None:
    """Memory per rank is often the same number every time."""
    comparison = compared(campaign(lambda *_: 1.0, lambda *_: 1.2, metric="memory"))
    assert [set(verdicts(g)) for g in comparison.groups] == [{EQUIVALENT}, {SLOWER}]
    assert [g.curve for g in comparison.groups] == [EQUIVALENT, SLOWER]


def test_what_the_pair_does_widens_what_a_winner_must_exceed() -> None:
    """The second launch is 30 % slower throughout; 25 % slower is then nothing to call, and the
    middle of the two launches is neither equivalent because of it."""
    noisy = compared(campaign(around(1.25), around(1.4), around(1.0), pair=1.3))
    quiet = compared(campaign(around(1.25), around(1.4), around(1.0), pair=1.01))
    assert [set(verdicts(g)) for g in noisy.groups] == [{INCONCLUSIVE}, {SLOWER}, {INCONCLUSIVE}]
    assert [set(verdicts(g)) for g in quiet.groups] == [{SLOWER}, {SLOWER}, {INCONCLUSIVE}]
    assert noisy.noise[0].margin == pytest.approx(0.3)
    assert quiet.noise[0].margin == 0.03
    assert [g.curve for g in noisy.groups] == [INCONCLUSIVE, SLOWER, INCONCLUSIVE]
    assert [g.curve for g in quiet.groups] == [SLOWER, SLOWER, INCONCLUSIVE]
    assert [c.rounds_needed for c in noisy.groups[0].cells] == [None] * 3


def test_the_pairs_floor_is_the_median_over_sizes_of_both_directions() -> None:
    rows = campaign(around(1.0), sizes=(1, 8, 64))
    shift = {1: 1.1, 8: 1 / 1.2, 64: 1.5}
    rows = [r._replace(value=r.value * shift[r.size]) if r.replica else r for r in rows]
    assert compared(rows).noise[0].margin == pytest.approx(0.2)


def paired(shift: dict[int, Ratio], sizes: Sequence[int] = (1, 8, 64, 512, 4096)) -> Comparison:
    """A campaign whose second launch of the baseline differs at some sizes."""
    rows = campaign(around(1.0), sizes=sizes)
    return compared(
        [
            r._replace(value=r.value * shift[r.size](r.round, r.size))
            if r.replica and r.size in shift
            else r
            for r in rows
        ]
    )


def test_noise_counts_the_pairs_cells_that_would_have_been_called() -> None:
    """Three sizes agree; one is always twice as slow, one twice as fast: false verdicts both."""
    (noise,) = paired({8: lambda *_: 2.0, 64: lambda *_: 0.5}).noise
    assert (noise.benchmark, noise.layout) == ("native:latency", "1x2")
    assert (noise.false_verdicts, noise.cells, noise.margin) == (2, 5, 0.03)


def test_the_width_of_a_cell_is_stated_per_benchmark() -> None:
    wild = campaign(lambda turn, _: math.exp(8 * SPREAD[turn]), benchmark="native:bibw")
    tame = campaign(around(1.0))
    alone = {n.benchmark: n for rows in (tame, wild) for n in compared(rows).noise}
    assert alone["native:bibw"].spread > 2 * alone["native:latency"].spread
    assert {n.benchmark: n for n in compared([*tame, *wild]).noise} == alone


def test_the_pairs_cells_that_reach_back_to_one_are_no_false_verdicts() -> None:
    def wide(turn: int, _: int) -> float:
        return math.exp((0.0, 0.1, 0.2, 0.3, 0.4, 0.5)[turn] - 0.08)

    (noise,) = paired({8: wide, 64: lambda turn, size: 1 / wide(turn, size)}).noise
    assert (noise.false_verdicts, noise.margin) == (0, 0.03)


def test_sizes_with_one_pair_say_nothing_of_noise() -> None:
    rows = campaign(around(1.0))
    lone = [r for r in rows if not (r.replica and r.size == 8 and r.round)]
    assert compared(lone).noise[0].cells == 2
    alone = compared([r for r in lone if r.configuration == "base" and r.round < 2])
    assert alone.noise[0].cells == 2
    assert alone.noise[0].spread == 0.0
    assert compared([r for r in rows if not (r.replica and r.round)]).noise == ()


def test_spread_is_the_half_width_of_a_typical_cell() -> None:
    comparison = compared(campaign(around(1.0)))
    cell = only(comparison).cells[0]
    assert cell.low is not None
    assert cell.high is not None
    assert comparison.noise[0].spread == pytest.approx(math.sqrt(cell.high / cell.low) - 1)
    half = math.exp(2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)) - 1
    assert comparison.noise[0].spread == pytest.approx(half)


def test_a_typical_cell_is_the_middle_one() -> None:
    def uneven(turn: int, size: int) -> float:
        return math.exp(SPREAD[turn] * {1: 1.0, 8: 2.0, 64: 9.0}[size])

    half = 2.0 * 2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)
    assert compared(campaign(uneven)).noise[0].spread == pytest.approx(math.exp(half) - 1)


def test_alone_the_pair_gives_the_spread() -> None:
    rows = [
        r._replace(value=r.value * math.exp(SPREAD[r.round])) if r.replica else r
        for r in campaign()
    ]
    comparison = compared(rows)
    half = math.exp(2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)) - 1
    assert comparison.noise[0].spread == pytest.approx(half)
    assert comparison.groups == ()
    assert "nothing to compare" in comparison.summary[0]
    assert "few-rounds" not in codes(compared(campaign(rounds=3)).findings)


def test_a_margin_that_is_asked_for_is_the_margin() -> None:
    rows = campaign(around(1.1))
    assert set(verdicts(only(compared(rows)))) == {SLOWER}
    assert set(verdicts(only(compared(rows, margin=0.2)))) == {EQUIVALENT}
    assert compared(rows, margin=0.2).noise[0].margin == 0.2


def test_a_layout_without_a_pair_takes_the_widest_margin_of_its_own_benchmark() -> None:
    rows = campaign(around(1.25), pair=1.3) + campaign(around(1.25), pair=1.1, layout="1x4")
    rows += [r for r in campaign(around(1.25), layout="1x8") if not r.replica]
    rows += campaign(around(1.25), pair=1.6, benchmark="native:bcast")
    comparison = compared(rows)
    called = {(g.benchmark, g.layout): g.curve for g in comparison.groups}
    assert [round(n.margin, 2) for n in comparison.noise] == [0.6, 0.3, 0.1]
    assert called["native:latency", "1x4"] is SLOWER
    assert called["native:latency", "1x8"] is INCONCLUSIVE
    rows = [r for r in rows if r.layout != "1x2" or r.benchmark != "native:latency"]
    called = {(g.benchmark, g.layout): g.curve for g in compared(rows).groups}
    assert called["native:latency", "1x8"] is SLOWER


def test_each_benchmark_and_layout_has_its_own_noise() -> None:
    rows = campaign(around(1.25), pair=1.3) + campaign(around(1.25), layout="1x4")
    comparison = compared(rows)
    assert [(n.layout, n.margin) for n in comparison.noise] == [
        ("1x2", pytest.approx(0.3)),
        ("1x4", 0.03),
    ]
    assert [set(verdicts(g)) for g in comparison.groups] == [{INCONCLUSIVE}, {SLOWER}]


def needed(middle: float, limit: float = 0.03, rounds: int = 6) -> int | None:
    return under_test.rounds_needed(math.log(middle), 0.1, rounds, 0.03, limit)


def test_rounds_needed_by_the_distance_to_the_nearest_decision() -> None:
    def plan(gap: float) -> int:
        return math.ceil((2.802 * 0.1 / gap) ** 2)

    assert needed(1.10) == needed(1 / 1.10) == plan(math.log(1.10 / 1.03))  # a winner
    assert needed(1.0) == plan(math.log(1.03))  # equivalent
    assert needed(1.01) == needed(1 / 1.01) == plan(math.log(1.03 / 1.01))
    assert needed(1.0301) is None  # on the margin itself
    assert needed(1.05, limit=0.10) is None  # between margin and noise
    assert needed(1.20, limit=0.10) == plan(math.log(1.2 / 1.1))
    assert needed(2.0) == 7  # more than there are, since these did not decide
    assert needed(2.0, rounds=2) == 6  # never fewer than decide anything
    assert needed(2.0, rounds=30) == 31


def test_only_inconclusive_cells_ask_for_rounds() -> None:
    comparison = compared(campaign(around(1.0), around(2.0)))
    near, far = comparison.groups
    spread = float(np.std(SPREAD, ddof=1))
    gap = math.log(1.03) - 0.005
    assert near.cells[0].rounds_needed == math.ceil((2.802 * spread / gap) ** 2)
    assert [c.rounds_needed for c in far.cells] == [None] * 3
