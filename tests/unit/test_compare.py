"""Verdicts: on hand-made values of which the answer is known, and on their symmetries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.variation import variation
from benchmarks.verdicts_synthetic import CORRELATION, SHAPES, rates, values
from mpigraft import compare as under_test
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import (
    AllocationRecord,
    Better,
    CampaignRecord,
    Cell,
    CellGroup,
    Comparison,
    ConfigurationRecord,
    Finding,
    Level,
    Origin,
    ValueRow,
    Verdict,
)
from mpigraft.suites import osu

OLIVIA = Path(__file__).parent.parent / "data" / "olivia"
CAMPAIGN = CampaignRecord("c1", "hand-made", "", Origin.RUN, 1, 6, "base", "{}", "")
FASTER, SLOWER = Verdict.FASTER, Verdict.SLOWER
EQUIVALENT, INCONCLUSIVE = Verdict.EQUIVALENT, Verdict.INCONCLUSIVE

# Six rounds that spread by 3 %: standard deviation 0.0326 of the logarithm.
SPREAD = (0.01, -0.04, 0.03, 0.0, -0.03, 0.04)

Ratio = Callable[[int, int], float]  # (round, size) -> ratio to the baseline


def arms(*names: str) -> list[ConfigurationRecord]:
    return [ConfigurationRecord("c1", name, f"mpi@{name}", "{}") for name in ("base", *names)]


def row(name: str, turn: int, size: int, value: float, **changes: object) -> ValueRow:
    made = ValueRow(name, "1x2", "a0", turn, 0, "native:latency", "latency", size, value, "host")
    return made._replace(**changes)  # type: ignore[arg-type]


def campaign(
    *others: Ratio,
    rounds: int = 6,
    sizes: Sequence[int] = (1, 8, 64),
    pair: float = 1.0,
    **changes: object,
) -> list[ValueRow]:
    """Values of a baseline, whose second launch is `pair` of the first, and of others k0, k1."""
    rows = []
    for turn in range(rounds):
        for size in sizes:
            level = (2.0 + size) * (1 + 0.3 * turn)  # rounds drift; pairing takes it out
            rows.append(row("base", turn, size, level / math.sqrt(pair), **changes))
            rows.append(row("base", turn, size, level * math.sqrt(pair), replica=1, **changes))
            for n, ratio in enumerate(others):
                rows.append(row(f"k{n}", turn, size, level * ratio(turn, size), **changes))
    return rows


def around(ratio: float) -> Ratio:
    return lambda turn, _: ratio * math.exp(SPREAD[turn % 6])


def compared(rows: Sequence[ValueRow], **changes: object) -> Comparison:
    names = sorted({r.configuration for r in rows} - {"base"})
    rounds = 1 + max(r.round for r in rows)
    record = replace(CAMPAIGN, rounds=rounds)
    return under_test.compare(record, arms(*names), rows, **changes)  # type: ignore[arg-type]


def only(comparison: Comparison) -> CellGroup:
    (group,) = comparison.groups
    return group


def verdicts(group: CellGroup) -> list[Verdict]:
    return [cell.verdict for cell in group.cells]


def codes(findings: Sequence[Finding]) -> list[str]:
    return [f.code for f in findings]


# ------------------------------------------------------------------ one cell


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
        found = compared(campaign(around(0.1), lambda *_: 1.0, rounds=rounds))
        for group in found.groups:
            assert set(verdicts(group)) == {INCONCLUSIVE}
            assert group.curve is INCONCLUSIVE
            assert all(c.low is not None for c in group.cells)
        assert codes(found.findings) == ["few-rounds"]
        assert all(n.false_verdicts == 0 for n in found.noise)
    assert set(verdicts(only(compared(campaign(around(0.1), rounds=6))))) == {FASTER}


def test_a_single_run_has_no_interval_and_says_so() -> None:
    found = compared(campaign(around(0.5), rounds=1))
    group = only(found)
    assert [c.ratio for c in group.cells] == pytest.approx([0.5 * math.exp(0.01)] * 3)
    for cell in group.cells:
        assert (cell.low, cell.high, cell.rounds_needed) == (None, None, None)
        assert cell.verdict is INCONCLUSIVE
    assert (group.pooled_low, group.pooled_high, group.curve_p) == (None, None, None)
    assert "no interval" in found.findings[0].seen
    assert found.noise == ()


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
    found = compared(campaign(lambda *_: 1.0, lambda *_: 1.2, metric="memory"))
    assert [set(verdicts(g)) for g in found.groups] == [{EQUIVALENT}, {SLOWER}]
    assert [g.curve for g in found.groups] == [EQUIVALENT, SLOWER]


# ------------------------------------------------------------------ margin and noise


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
    found = compared(campaign(around(1.0)))
    cell = only(found).cells[0]
    assert cell.low is not None
    assert cell.high is not None
    assert found.noise[0].spread == pytest.approx(math.sqrt(cell.high / cell.low) - 1)
    half = math.exp(2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)) - 1
    assert found.noise[0].spread == pytest.approx(half)


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
    found = compared(rows)
    half = math.exp(2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)) - 1
    assert found.noise[0].spread == pytest.approx(half)
    assert found.groups == ()
    assert "nothing to compare" in found.summary[0]


def test_a_margin_that_is_asked_for_is_the_margin() -> None:
    rows = campaign(around(1.1))
    assert set(verdicts(only(compared(rows)))) == {SLOWER}
    assert set(verdicts(only(compared(rows, margin=0.2)))) == {EQUIVALENT}
    assert compared(rows, margin=0.2).noise[0].margin == 0.2


def test_each_benchmark_and_layout_has_its_own_noise() -> None:
    rows = campaign(around(1.25), pair=1.3) + campaign(around(1.25), layout="1x4")
    found = compared(rows)
    assert [(n.layout, n.margin) for n in found.noise] == [
        ("1x2", pytest.approx(0.3)),
        ("1x4", 0.03),
    ]
    assert [set(verdicts(g)) for g in found.groups] == [{INCONCLUSIVE}, {SLOWER}]


# ------------------------------------------------------------------ what more rounds would do


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
    found = compared(campaign(around(1.0), around(2.0)))
    near, far = found.groups
    spread = float(np.std(SPREAD, ddof=1))
    gap = math.log(1.03) - 0.005
    assert near.cells[0].rounds_needed == math.ceil((2.802 * spread / gap) ** 2)
    assert [c.rounds_needed for c in far.cells] == [None] * 3


# ------------------------------------------------------------------ curves


def cell(size: int, verdict: Verdict) -> Cell:
    return Cell(size, 1.0, 1.0, 1.0, None, None, verdict, 6)


@pytest.mark.parametrize(
    ("said", "whole", "p", "verdict"),
    [
        ("FFF", FASTER, 0.03, FASTER), ("FFF", FASTER, 0.05, FASTER),
        ("FFF", FASTER, 0.06, INCONCLUSIVE), ("FFF", FASTER, None, INCONCLUSIVE),
        ("FFS", FASTER, 0.03, INCONCLUSIVE), ("SSS", SLOWER, 0.03, SLOWER),
        ("SFS", SLOWER, 0.03, INCONCLUSIVE), ("...", FASTER, 0.03, FASTER),
        ("FFF", INCONCLUSIVE, 0.03, INCONCLUSIVE), ("===", INCONCLUSIVE, 0.9, EQUIVALENT),
        ("===", EQUIVALENT, None, EQUIVALENT), ("==.", EQUIVALENT, 0.03, INCONCLUSIVE),
        ("==F", FASTER, 0.03, FASTER), ("", INCONCLUSIVE, None, INCONCLUSIVE),
    ],
)  # fmt: skip
def test_a_curve_needs_the_joint_test_the_pooled_ratio_and_no_contradiction(
    said: str, whole: Verdict, p: float | None, verdict: Verdict
) -> None:
    known = {"F": FASTER, "S": SLOWER, "=": EQUIVALENT, ".": INCONCLUSIVE}
    cells = [cell(1 << n, known[letter]) for n, letter in enumerate(said)]
    assert under_test.curve_verdict(cells, whole, p) is verdict


def test_a_curve_is_called_when_all_sizes_lean_the_same_way() -> None:
    """No size alone is sure; the pooled ratio is, because sizes vary on their own here."""
    turns = ((0.3, -0.1, 0.1), (0.1, 0.3, -0.1), (-0.1, 0.1, 0.3)) * 2

    def ratio(turn: int, size: int) -> float:
        return math.exp(0.1 + turns[turn][{1: 0, 8: 1, 64: 2}[size]])

    group = only(compared(campaign(ratio)))
    assert set(verdicts(group)) == {INCONCLUSIVE}
    assert group.pooled == pytest.approx(math.exp(0.2))
    assert group.pooled_low == pytest.approx(math.exp(0.2))
    assert group.pooled_high == pytest.approx(math.exp(0.2))
    assert group.curve_p is not None
    assert group.curve_p > 0.05  # too few rounds for sizes that vary so much
    assert group.curve is INCONCLUSIVE
    long = only(compared(campaign(lambda turn, size: ratio(turn % 6, size), rounds=11)))
    assert long.curve_p is not None
    assert long.curve_p < 0.05
    assert long.curve is SLOWER


@pytest.mark.parametrize("sign", [1, -1])
def test_a_pooled_ratio_that_reaches_back_to_the_margin_calls_no_curve(sign: int) -> None:
    """All rounds on one side please the joint test, not the interval."""
    logs = (0.02, 0.03, 0.05, 0.2, 0.4, 0.5)
    group = only(compared(campaign(lambda turn, _: math.exp(sign * logs[turn]))))
    assert group.curve_p == 2 / 64
    assert group.curve is INCONCLUSIVE


def test_two_rounds_have_a_joint_test_and_one_has_none() -> None:
    assert only(compared(campaign(around(0.5), rounds=2))).curve_p == 0.5
    assert only(compared(campaign(around(0.5), rounds=1))).curve_p is None


def test_the_pooled_ratio_takes_rounds_that_have_every_size() -> None:
    rows = [
        r
        for r in campaign(around(0.5), rounds=8, sizes=(1, 8))
        if r.configuration == "base" or (r.round, r.size) not in ((2, 1), (5, 8))
    ]
    logs = [SPREAD[n % 6] for n in (0, 1, 3, 4, 6, 7)]
    group = only(compared(rows))
    assert [c.rounds for c in group.cells] == [7, 7]
    assert group.pooled == pytest.approx(0.5 * math.exp(float(np.median(logs))))


def test_the_pooled_ratio_is_the_geometric_mean_with_its_own_interval() -> None:
    def ratio(turn: int, size: int) -> float:
        return (0.5 if size == 1 else 1.0) * math.exp(SPREAD[turn])

    group = only(compared(campaign(ratio, sizes=(1, 8))))
    assert group.pooled == pytest.approx(math.sqrt(0.5) * math.exp(0.005))
    half = 2.571 * float(np.std(SPREAD, ddof=1)) / math.sqrt(6)
    middle = math.log(0.5) / 2 + float(np.mean(SPREAD))
    assert group.pooled_low == pytest.approx(math.exp(middle - half))
    assert group.pooled_high == pytest.approx(math.exp(middle + half))


def test_a_crossover_is_where_the_better_one_changes() -> None:
    said = "FF.=S.SSF"
    known = {"F": FASTER, "S": SLOWER, "=": EQUIVALENT, ".": INCONCLUSIVE}
    cells = [cell(1 << n, known[letter]) for n, letter in enumerate(said)]
    assert under_test.crossovers(cells) == (1 << 4, 1 << 8)
    assert under_test.crossovers(cells[:4]) == ()
    assert under_test.crossovers([]) == ()
    sizes = (1, 8, 64)
    group = only(compared(campaign(lambda t, s: around(0.5 if s < 64 else 2.0)(t, s), sizes=sizes)))
    assert group.crossovers == (64,)
    assert group.curve is INCONCLUSIVE


# ------------------------------------------------------------------ what is not there


def test_missing_sizes_and_rounds_are_named_and_never_filled() -> None:
    rows = [
        r
        for r in campaign(around(0.5), around(0.5), rounds=8, sizes=(1, 8, 64, 512))
        if not (r.configuration == "k0" and r.size == 64)
        and not (r.configuration == "k1" and r.round == 3)
        and not (r.configuration == "k1" and r.round == 5 and r.size == 8)
        and not (r.configuration == "base" and r.size == 512)
        and not (r.replica == 1 and r.round == 7)
    ]
    found = compared(rows)
    first, second = found.groups
    assert [(c.size, c.rounds) for c in first.cells] == [(1, 8), (8, 8)]
    assert [(c.size, c.rounds) for c in second.cells] == [(1, 7), (8, 6), (64, 7)]
    assert codes(found.findings) == ["values-missing"] * 3
    base, k0, k1 = (f.seen for f in found.findings)
    assert base == ("mpi@base lacks native:latency (1x2): second launch of rounds 7")
    assert "native:latency (1x2): sizes 64;" in k0
    assert "the baseline's values at sizes 512" in k0
    assert "rounds 3 of 8" in k1
    assert "some sizes in rounds 5" in k1
    # Sizes without all rounds stay out of the pooled ratio, so its rounds are like each other.
    assert second.pooled == pytest.approx(
        math.exp(math.log(0.5) + np.median([SPREAD[n % 6] for n in (0, 1, 2, 4, 5, 6, 7)]))
    )


def test_absolute_values_are_of_the_rounds_that_both_have() -> None:
    rows = campaign(around(0.5), rounds=8)
    less = [r for r in rows if r.round < 6 or r.configuration == "base"]
    more = [r for r in rows if r.round < 6 or r.configuration == "k0"]
    expected = only(compared([r for r in rows if r.round < 6])).cells
    for found in (less, more):
        cells = only(under_test.compare(CAMPAIGN, arms("k0"), found)).cells
        assert [(c.baseline, c.value) for c in cells] == [(c.baseline, c.value) for c in expected]


def test_without_a_size_in_common_there_is_no_curve() -> None:
    rows = campaign(around(0.5), sizes=(1, 8))
    apart = [r for r in rows if (r.size == 8) == (r.configuration == "k0")]
    for origin in Origin:
        record = replace(CAMPAIGN, origin=origin)
        assert under_test.compare(record, arms("k0"), apart).groups == ()


def test_a_size_that_lacks_rounds_has_the_interval_of_those_it_has() -> None:
    rows = [r for r in campaign(around(0.5), rounds=8) if not (r.round == 2 and r.size == 8)]
    whole, gap, _ = only(compared(rows)).cells
    alone = only(compared([r for r in rows if r.size == 8 and r.round != 2])).cells[0]
    assert (gap.low, gap.high, gap.rounds) == (alone.low, alone.high, 7)
    assert gap.low != whole.low


def test_five_of_six_rounds_decide_nothing_for_the_size_that_lacks_one() -> None:
    rows = [r for r in campaign(around(0.1)) if (r.configuration, r.round, r.size) != ("k0", 2, 8)]
    assert verdicts(only(compared(rows))) == [FASTER, INCONCLUSIVE, FASTER]


def test_a_configuration_without_values_is_named() -> None:
    found = under_test.compare(CAMPAIGN, arms("k0", "k9"), campaign(around(0.5)))
    assert [g.configuration for g in found.groups] == ["mpi@k0"]
    assert [f.seen for f in found.findings] == ["mpi@k9 lacks native:latency (1x2): nothing"]


def test_without_a_pair_the_noise_is_unknown_and_said_to_be() -> None:
    rows = [r for r in campaign(around(0.5)) if not r.replica]
    found = compared(rows)
    assert codes(found.findings) == ["no-noise"]
    assert found.noise == ()
    assert set(verdicts(only(found))) == {FASTER}


def test_values_that_are_there_twice_count_once() -> None:
    rows = campaign(around(0.5))
    again = [r._replace(value=99.0) for r in rows if r.configuration == "k0"]
    found = compared(rows + again)
    assert only(found).cells == only(compared(rows)).cells
    assert codes(found.findings) == ["values-twice"]
    assert "18 values" in found.findings[0].seen


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_values_without_a_ratio_are_left_out_and_named(value: float) -> None:
    rows = campaign(around(0.5))
    odd = row("k0", 7, 8, value)
    found = under_test.compare(CAMPAIGN, arms("k0"), [*rows, odd])
    assert only(found).cells == only(compared(rows)).cells
    assert "values-odd" in codes(found.findings)
    strange = [r._replace(metric="colour") for r in rows]
    assert "values-odd" in codes(under_test.compare(CAMPAIGN, arms("k0"), strange).findings)


def test_an_empty_campaign_is_an_error_with_a_mend() -> None:
    with pytest.raises(MissingError, match="no value"):
        under_test.compare(CAMPAIGN, arms(), [])


# ------------------------------------------------------------------ like with like


def test_unlike_options_layouts_and_buffers_never_meet() -> None:
    rows = campaign(around(0.5))
    other = {"benchmark": "native:latency,datatype=indexed", "layout": "1x4", "buffers": "cuda"}
    for name, unlike in other.items():
        mixed = [r._replace(**{name: unlike}) if r.configuration == "k0" else r for r in rows]  # type: ignore[arg-type]
        found = compared(mixed)
        assert found.groups == ()
        assert "values-missing" in codes(found.findings)


def test_configurations_of_another_campaign_are_refused() -> None:
    foreign = replace(arms("k0")[1], campaign="c2")
    with pytest.raises(UsageError, match="c2"):
        under_test.compare(CAMPAIGN, [*arms(), foreign], campaign(around(0.5)))


def test_rounds_of_different_allocations_are_different_rounds() -> None:
    """In the second allocation everything is ten times slower: ratios do not see it."""
    rows = campaign(around(0.5))
    rows += [r._replace(allocation="a1", value=10 * r.value) for r in rows]
    group = only(compared(rows))
    assert [c.rounds for c in group.cells] == [12] * 3
    assert group.cells[0].ratio == pytest.approx(0.5 * math.exp(0.005))


def test_a_round_that_a_kill_split_is_one_round_on_one_host() -> None:
    rows = campaign(around(0.5))
    split = [
        r._replace(allocation="a1") if r.round == 5 or (r.round == 4 and r.replica == 1) else r
        for r in rows
    ]
    split = [
        r._replace(allocation="a1") if r.round == 4 and r.configuration == "k0" else r
        for r in split
    ]
    apart = compared(split)
    jobs = [AllocationRecord(a, "c1", a, "n1", "{}") for a in ("a0", "a1")]
    other = [replace(jobs[0]), replace(jobs[1], host="n2")]
    joined = compared(split, allocations=jobs)
    assert [c.rounds for c in only(apart).cells] == [6] * 3  # against the launch that is there
    assert [c.ratio for c in only(joined).cells] == [c.ratio for c in only(compared(rows)).cells]
    assert only(compared(split, allocations=other)).cells == only(apart).cells


def test_the_baseline_is_the_campaigns_or_the_one_that_is_named() -> None:
    rows = campaign(around(0.5), around(2.0))
    assert compared(rows).baseline == "mpi@base"
    for wish in ("k1", "mpi@k1"):
        found = compared(rows, baseline=wish)
        assert found.baseline == "mpi@k1"
        assert {g.configuration: set(verdicts(g)) for g in found.groups} == {
            "mpi@base": {FASTER}, "mpi@k0": {FASTER},
        }  # fmt: skip
    for wish, problem in (("mpi", "several"), ("nothing", "has no values")):
        with pytest.raises(UsageError, match=problem) as caught:
            compared(rows, baseline=wish)
        assert "mpi@k1" in caught.value.mend


def test_a_baseline_that_never_ran_is_replaced_and_that_is_said() -> None:
    rows = [r for r in campaign(around(0.5), around(2.0)) if r.configuration != "base"]
    found = compared(rows)
    assert found.baseline == "mpi@k0"
    assert "baseline-missing" in codes(found.findings)
    assert found.findings[0].level is Level.WARNING


def test_one_id_with_two_contents_is_two_configurations() -> None:
    twins = [ConfigurationRecord("c1", key, "mpi@same", "{}") for key in ("k0", "k1")]
    found = under_test.compare(CAMPAIGN, [*arms(), *twins], campaign(around(0.5), around(2.0)))
    assert [g.configuration for g in found.groups] == ["mpi@same (k0)", "mpi@same (k1)"]


# ------------------------------------------------------------------ imported tables


def published(year: str) -> Comparison:
    record = replace(CAMPAIGN, origin=Origin.IMPORT, rounds=1)
    rows = []
    for path in sorted(OLIVIA.glob(f"{year}-*.txt")):
        name = "base" if "cray" in path.name else "eessi"
        parsed = osu.parse(path.read_bytes(), source=path.name)
        rows += [
            row(name, 0, m.size, m.value, benchmark=m.benchmark.key, metric=m.metric)
            for m in parsed.measurements
        ]
    return under_test.compare(record, arms("eessi"), rows)


@pytest.mark.parametrize(("year", "small", "large"), [("2025", 0.17, 0.99), ("2026", 2.25, 1.02)])
def test_published_tables_give_their_ratios_and_no_verdict(
    year: str, small: float, large: float
) -> None:
    found = published(year)
    group = next(g for g in found.groups if "bibw" in g.benchmark)
    at = {c.size: c for c in group.cells}
    assert round(at[8].ratio, 2) == small
    assert round(at[4 << 20].ratio, 2) == large
    assert at[8].ratio == pytest.approx(at[8].value / at[8].baseline)
    assert {c.verdict for g in found.groups for c in g.cells} == {INCONCLUSIVE}
    assert {(c.low, c.high, c.rounds_needed) for g in found.groups for c in g.cells} == {
        (None,) * 3
    }
    assert {(g.curve, g.curve_p, g.pooled_low) for g in found.groups} == {
        (INCONCLUSIVE, None, None)
    }
    assert group.pooled == pytest.approx(
        math.exp(np.mean([math.log(c.ratio) for c in group.cells]))
    )
    assert codes(found.findings) == ["no-interval"]
    assert "single run" in found.findings[0].why
    assert "no interval" in found.summary[0]


@pytest.mark.parametrize("short", ["k0", "base"])
def test_imported_runs_are_not_paired_however_many_there_are(short: str) -> None:
    """Nine runs of one, seven of the other: each has the median of its own."""
    rows = [r for r in campaign(lambda turn, _: 0.5 + turn, rounds=9) if not r.replica]
    rows = [r for r in rows if not (r.configuration == short and r.round > 6)]
    rows += [row("base", 0, 512, 1.0), row("k0", 0, 4096, 1.0)]
    record = replace(CAMPAIGN, origin=Origin.IMPORT, rounds=9)
    group = only(under_test.compare(record, arms("k0"), rows))
    assert set(verdicts(group)) == {INCONCLUSIVE}
    assert [c.size for c in group.cells] == [1, 8, 64]
    for found in group.cells:
        own = {
            name: [r.value for r in rows if (r.configuration, r.size) == (name, found.size)]
            for name in ("base", "k0")
        }
        assert (found.low, found.rounds) == (None, 7)
        assert found.baseline == pytest.approx(np.median(own["base"]))
        assert found.value == pytest.approx(np.median(own["k0"]))
        assert found.ratio == pytest.approx(found.value / found.baseline)
    logs = [math.log(c.ratio) for c in group.cells]
    assert group.pooled == pytest.approx(math.exp(float(np.mean(logs))))


# ------------------------------------------------------------------ what is said


def test_the_summary_says_what_to_take_from_it() -> None:
    def mixed(turn: int, size: int) -> float:
        return around({1: 0.5, 8: 0.5, 64: 1.0, 512: 0.5, 4096: 2.0}[size])(turn, size)

    sizes = (1, 8, 64, 512, 4096)
    rows = campaign(mixed, around(0.25), around(1.0), sizes=sizes)
    found = compared(rows)
    assert found.summary == (
        "mpi@k1 against mpi@base at latency: faster from 1 B to 4 KiB (0.25x)",
        "mpi@k0 against mpi@base at latency: faster at 3 of 4 sizes from 1 B to 512 B (0.50x), "
        "slower at 4 KiB (2.01x)",
    )
    same = compared(campaign(lambda *_: 1.001, benchmark="osu:allreduce", layout="1x4"))
    assert same.summary == (
        "mpi@k0 against mpi@base at osu:allreduce latency: equivalent at every size (1.00x)",
    )
    assert "nothing is called" in compared(campaign(around(1.0))).summary[0]


def test_the_summary_is_short_and_says_what_it_leaves_out() -> None:
    rows = [r for n in range(14) for r in campaign(around(0.5), benchmark=f"native:b{n}")]
    summary = compared(rows).summary
    assert len(summary) == 13
    assert summary[-1].startswith("and 2 more")


# ------------------------------------------------------------------ symmetries


ratios = st.floats(0.3, 3.0)
noises = st.lists(st.floats(-0.2, 0.2), min_size=18, max_size=18)


def noisy(ratio: float, noise: list[float]) -> list[ValueRow]:
    places = {1: 0, 8: 1, 64: 2}
    return campaign(lambda turn, size: ratio * math.exp(noise[3 * turn + places[size]]))


@settings(max_examples=40, deadline=None)
@given(ratios, noises)
def test_swapping_the_two_swaps_the_verdicts(ratio: float, noise: list[float]) -> None:
    rows = noisy(ratio, noise)
    group, turned = only(compared(rows)), only(compared(rows, baseline="k0"))
    opposite = {FASTER: SLOWER, SLOWER: FASTER}
    for one, other in zip(group.cells, turned.cells, strict=True):
        assert other.verdict is opposite.get(one.verdict, one.verdict)
        assert other.ratio == pytest.approx(1 / one.ratio)
        assert other.low == pytest.approx(1 / (one.high or 0))
        assert other.rounds_needed == one.rounds_needed
    assert turned.curve is opposite.get(group.curve, group.curve)
    assert turned.curve_p == group.curve_p


@settings(max_examples=40, deadline=None)
@given(ratios, noises, st.floats(1e-9, 1e9))
def test_units_change_no_verdict(ratio: float, noise: list[float], unit: float) -> None:
    rows = noisy(ratio, noise)
    scaled = compared([r._replace(value=r.value * unit) for r in rows])
    for one, other in zip(only(compared(rows)).cells, only(scaled).cells, strict=True):
        assert other.verdict is one.verdict
        assert other.ratio == pytest.approx(one.ratio)
        assert other.value == pytest.approx(one.value * unit)


@settings(max_examples=40, deadline=None)
@given(ratios, noises, st.randoms(use_true_random=False))
def test_the_order_of_values_changes_nothing(ratio: float, noise: list[float], rng: object) -> None:
    rows = noisy(ratio, noise)
    shuffled = list(rows)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert compared(shuffled) == compared(rows)


@settings(max_examples=40, deadline=None)
@given(ratios, noises)
def test_verdicts_follow_from_what_is_shown(ratio: float, noise: list[float]) -> None:
    """The interval holds the ratio, and a reader can check each verdict against the margin."""
    found = compared(noisy(ratio, noise))
    limit = 1 + found.noise[0].margin
    for shown in only(found).cells:
        assert shown.low is not None
        assert shown.high is not None
        assert shown.low <= shown.ratio * (1 + 1e-12)
        assert shown.high >= shown.ratio * (1 - 1e-12)
        assert (shown.verdict is SLOWER) == (shown.low > limit)
        assert (shown.verdict is FASTER) == (shown.high < 1 / limit)
        assert (shown.rounds_needed is not None) <= (shown.verdict is INCONCLUSIVE)


# ------------------------------------------------------------------ what the verdicts are worth


@pytest.mark.parametrize("shape", SHAPES)
def test_stated_rates_hold_on_synthetic_campaigns(shape: str) -> None:
    """With the variation and correlation of a small machine. benchmarks/verdicts_synthetic.py
    counts many more campaigns; the bounds allow for the few here."""
    few = rates(5, 10, shape)
    assert few.false_winners == few.power == few.pair == 0
    for rounds, campaigns, power in ((6, 150, 0.80), (10, 100, 0.95), (20, 100, 0.98)):
        found = rates(rounds, campaigns, shape)
        assert found.false_winners <= 0.03
        assert found.pair <= 0.03
        assert found.false_curves <= 0.05
        assert found.power >= power
        assert found.wrong <= 0.001
        assert found.coverage >= 0.93


def test_allocations_that_differ_do_not_make_false_winners() -> None:
    found = rates(12, 60, "normal", allocations=3, between=0.06)
    assert found.false_winners <= 0.03
    assert found.coverage >= 0.93


def test_variation_finds_what_the_synthetic_campaigns_put_in() -> None:
    made = values(np.random.default_rng(1), 200, 0.12, "normal")
    ((_, pairs, spread, together),) = variation(made)
    assert pairs == 200
    assert spread == pytest.approx(0.12, abs=0.02)
    assert together == pytest.approx(CORRELATION, abs=0.05)
