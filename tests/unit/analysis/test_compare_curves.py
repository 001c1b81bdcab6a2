"""Verdicts on whole curves, imported tables, and what the summary says of them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

import numpy as np
import pytest

from mpigraft.analysis import verdict_rules
from mpigraft.bench.suites import osu
from mpigraft.core.model import Cell, CellGroup, Comparison, JointBound, Origin, Verdict
from tests.builders.campaigns import CAMPAIGN, SPREAD, Ratio, arms, around, campaign, lacking, row
from tests.builders.comparisons import codes, compare, compared, only, verdicts
from tests.builders.messages import matches
from tests.builders.outputs import assert_output
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER


def cell(size: int, verdict: Verdict) -> Cell:
    return Cell(size, 1.0, 1.0, 1.0, None, None, verdict, 6)


WITHIN, BEYOND = (JointBound(8, 0.97, 1.05, 0.06, sizes) for sizes in ((), (8,)))


@pytest.mark.parametrize(
    ("said", "whole", "p", "joint", "verdict"),
    [
        ("FFF", FASTER, 0.03, None, FASTER), ("FFF", FASTER, 0.05, None, FASTER),
        ("FFF", FASTER, 0.06, None, INCONCLUSIVE), ("FFF", FASTER, None, None, INCONCLUSIVE),
        ("FFS", FASTER, 0.03, None, INCONCLUSIVE), ("SSS", SLOWER, 0.03, None, SLOWER),
        ("SFS", SLOWER, 0.03, None, INCONCLUSIVE), ("...", FASTER, 0.03, None, FASTER),
        ("FFF", INCONCLUSIVE, 0.03, None, INCONCLUSIVE), ("==F", FASTER, 0.03, None, FASTER),
        ("===", INCONCLUSIVE, 0.9, None, INCONCLUSIVE),
        ("", INCONCLUSIVE, None, None, INCONCLUSIVE),
        ("===", EQUIVALENT, None, WITHIN, EQUIVALENT),
        ("...", EQUIVALENT, 0.9, WITHIN, EQUIVALENT),
        ("==F", EQUIVALENT, 0.03, WITHIN, EQUIVALENT),
        ("===", EQUIVALENT, 0.9, BEYOND, INCONCLUSIVE),
        ("===", EQUIVALENT, 0.9, None, INCONCLUSIVE), ("FFF", FASTER, 0.03, WITHIN, FASTER),
    ],
)  # fmt: skip
def test_a_curve_needs_the_joint_test_the_pooled_ratio_and_no_contradiction(
    said: str, whole: Verdict, p: float | None, joint: JointBound | None, verdict: Verdict
) -> None:
    known = {"F": FASTER, "S": SLOWER, "=": EQUIVALENT, ".": INCONCLUSIVE}
    cells = [cell(1 << n, known[letter]) for n, letter in enumerate(said)]
    assert verdict_rules.curve_verdict(cells, whole, p, 0.05, joint) is verdict


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
    two, one = (only(compared(campaign(around(0.5), rounds=rounds))) for rounds in (2, 1))
    assert (two.curve_p, two.curve_p_alone) == (0.5, 0.5)
    assert (one.curve_p, one.curve_p_alone) == (None, None)


def varied(logs: dict[int, list[float]]) -> Ratio:
    return lambda turn, size: math.exp(logs[size][turn])


def test_a_curve_pays_for_the_others_of_its_campaign() -> None:
    """What one curve alone would be called for is called no more among a hundred that vary."""
    logs = (0.02, 0.16, 0.2, 0.14, 0.24, 0.13, -0.03, 0.22)
    rng = np.random.default_rng(2)
    rows = campaign(lambda turn, _: math.exp(logs[turn]), rounds=8)
    alone = only(compared(rows))
    assert (alone.curve, alone.curve_p) == (SLOWER, 6 / 256)
    for n in range(30):
        noise = dict(zip((1, 8, 64), rng.normal(0, 0.05, (3, 8)).tolist(), strict=True))
        rows += campaign(varied(noise), rounds=8, benchmark=f"native:b{n:02}")
    among = next(g for g in compared(rows).groups if g.benchmark == "native:latency")
    assert among.cells == alone.cells
    assert among.curve is INCONCLUSIVE
    assert among.curve_p is not None
    assert among.curve_p > 0.05
    assert among.curve_p_alone == alone.curve_p


def test_a_measurement_that_two_metrics_repeat_counts_once() -> None:
    """The message rate of a window follows from its bandwidth: no second chance, no second gain."""
    rng = np.random.default_rng(8)
    noise = dict(zip((1, 8, 64), rng.normal(0.15, 0.1, (3, 8)).tolist(), strict=True))
    rows = campaign(varied(noise), rounds=8, metric="bandwidth", benchmark="osu:mbw_mr")
    alone = compared(rows)
    rates = [r._replace(metric="message_rate", value=r.value / r.size) for r in rows]
    other = campaign(varied(noise), rounds=8, metric="overlap", benchmark="osu:mbw_mr")
    bandwidth, rate = compared([*rates, *rows]).groups
    assert bandwidth == only(alone)
    assert (bandwidth.repeats, rate.repeats) == ("", "bandwidth")
    assert (rate.curve_p, rate.curve_p_alone) == (bandwidth.curve_p, bandwidth.curve_p_alone)
    assert rate.curve is bandwidth.curve
    assert rate.pooled == pytest.approx(bandwidth.pooled)
    assert compared([*rates, *rows]).summary == alone.summary
    assert compared([*rates, *rows]).noise == alone.noise
    assert [g.repeats for g in compared([*rows, *other]).groups] == ["", ""]
    assert only(compared(rates)).repeats == ""
    others = [r for r in rates if r.configuration != "k0"] + rows
    assert [g.repeats for g in compared(others).groups] == [""]


def test_what_repeats_a_measurement_weighs_nothing_whatever_its_sizes() -> None:
    """Neither in the joint test of the others nor in what a typical cell is known by."""
    rng = np.random.default_rng(14)
    sizes = [1 << n for n in range(30)]
    noise = np.hstack([rng.normal(0.1, 0.1, (8, 3)), rng.normal(0, 0.1, (8, 27))])
    logs = dict(zip(sizes, noise.T.tolist(), strict=True))
    rows, rates = (
        campaign(varied(logs), rounds=8, sizes=own, metric=metric, benchmark="osu:mbw_mr")
        for metric, own in (("bandwidth", sizes[:3]), ("message_rate", sizes[3:]))
    )
    comparison, alone = compared([*rows, *rates]), compared(rows)
    assert [g.repeats for g in comparison.groups] == ["", "bandwidth"]
    assert comparison.groups[0] == only(alone)
    assert comparison.noise == alone.noise


def test_what_chance_alone_would_call_is_counted_on_what_the_mean_leaves() -> None:
    """As many as are called where nothing differs, whatever the difference; none of a few rounds,
    of a wide margin, or of what does not vary."""
    rng = np.random.default_rng(4)
    sizes = [1 << n for n in range(200)]
    noise = rng.normal(0, 0.2, (200, 8))

    def made(shift: float) -> CellGroup:
        logs = dict(zip(sizes, (shift + noise).tolist(), strict=True))
        return only(compared(campaign(varied(logs), rounds=8, sizes=sizes)))

    same, other = made(0.0), made(1.0)
    called = sum(v in (FASTER, SLOWER) for v in verdicts(same))
    assert same.by_chance == pytest.approx(called, abs=4)
    assert 2 < same.by_chance < 12
    assert other.by_chance == pytest.approx(same.by_chance)
    assert only(compared(campaign(around(2.0)))).by_chance < 0.01
    assert only(compared(campaign(around(2.0), rounds=5))).by_chance == 0
    rows = campaign(varied(dict(zip(sizes, noise.tolist(), strict=True))), rounds=8, sizes=sizes)
    restless = [r._replace(value=3 * r.value) if r.replica else r for r in rows]
    assert only(compared(restless)).by_chance == 0
    coarse = only(compared([r._replace(resolution=r.value) for r in rows]))
    assert coarse.by_chance == 0
    record = replace(CAMPAIGN, origin=Origin.IMPORT, rounds=8)
    assert only(compare(record, arms("k0"), rows)).by_chance == 0


@pytest.mark.parametrize(("log", "expected"), [(0.03, 2 / 64), (0.02, 0.0)])
def test_the_signs_of_whole_rounds_are_drawn_alike(log: float, expected: float) -> None:
    """Each size is as far above 1 in three of six rounds as below in the others. It is called if
    a drawing turns all to one side, which is one pattern of 64 and its opposite."""
    sides = [s for s in product((1, -1), repeat=6) if not sum(s)]
    sizes = [1 << n for n in range(len(sides))]
    logs = {size: [log * s for s in side] for size, side in zip(sizes, sides, strict=True)}
    group = only(compared(campaign(varied(logs), sizes=sizes)))
    assert group.by_chance / len(sizes) == pytest.approx(expected, rel=0.5)


def test_the_pooled_ratio_takes_rounds_that_have_every_size() -> None:
    rows = campaign(around(0.5), rounds=8, sizes=(1, 8))
    rows = lacking(rows, lambda r: (r.round, r.size) in ((2, 1), (5, 8)))
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
    letters = "FF.=S.SSF"
    known = {"F": FASTER, "S": SLOWER, "=": EQUIVALENT, ".": INCONCLUSIVE}
    cells = [cell(1 << n, known[letter]) for n, letter in enumerate(letters)]
    assert verdict_rules.crossovers(cells) == (1 << 4, 1 << 8)
    assert verdict_rules.crossovers(cells[:4]) == ()
    assert verdict_rules.crossovers([]) == ()
    sizes = (1, 8, 64)
    group = only(compared(campaign(lambda t, s: around(0.5 if s < 64 else 2.0)(t, s), sizes=sizes)))
    assert group.crossovers == (64,)
    assert group.curve is INCONCLUSIVE


OLIVIA = Path(__file__).parents[2] / "data" / "olivia"


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
    return compare(record, arms("eessi"), rows)


@pytest.mark.parametrize(("year", "small", "large"), [("2025", 0.17, 0.99), ("2026", 2.25, 1.02)])
def test_published_tables_give_their_ratios_and_no_verdict(
    year: str, small: float, large: float
) -> None:
    comparison = published(year)
    group = next(g for g in comparison.groups if "bibw" in g.benchmark)
    at = {c.size: c for c in group.cells}
    assert round(at[8].ratio, 2) == small
    assert round(at[4 << 20].ratio, 2) == large
    assert at[8].ratio == pytest.approx(at[8].value / at[8].baseline)
    assert {c.verdict for g in comparison.groups for c in g.cells} == {INCONCLUSIVE}
    assert {(c.low, c.high, c.rounds_needed) for g in comparison.groups for c in g.cells} == {
        (None,) * 3
    }
    assert {(g.curve, g.curve_p, g.pooled_low) for g in comparison.groups} == {
        (INCONCLUSIVE, None, None)
    }
    assert group.pooled == pytest.approx(
        math.exp(np.mean([math.log(c.ratio) for c in group.cells]))
    )
    assert codes(comparison.findings) == ["no-interval-imported"]
    assert matches(comparison.findings[0], "no-interval-imported")
    assert "ratios only" in comparison.summary[0]


@pytest.mark.parametrize("short", ["k0", "base"])
def test_imported_runs_are_not_paired_however_many_there_are(short: str) -> None:
    """Nine runs of one, seven of the other: each has the median of its own."""
    rows = [r for r in campaign(lambda turn, _: 0.5 + turn, rounds=9) if not r.replica]
    rows = [r for r in rows if not (r.configuration == short and r.round > 6)]
    rows += [row("base", 0, 512, 1.0), row("k0", 0, 4096, 1.0)]
    record = replace(CAMPAIGN, origin=Origin.IMPORT, rounds=9)
    group = only(compare(record, arms("k0"), rows))
    assert set(verdicts(group)) == {INCONCLUSIVE}
    assert group.curve_p is None
    assert [c.size for c in group.cells] == [1, 8, 64]
    for shown in group.cells:
        own = {
            name: [r.value for r in rows if (r.configuration, r.size) == (name, shown.size)]
            for name in ("base", "k0")
        }
        assert (shown.low, shown.rounds) == (None, 7)
        assert shown.baseline == pytest.approx(np.median(own["base"]))
        assert shown.value == pytest.approx(np.median(own["k0"]))
        assert shown.ratio == pytest.approx(shown.value / shown.baseline)
    logs = [math.log(c.ratio) for c in group.cells]
    assert group.pooled == pytest.approx(math.exp(float(np.mean(logs))))


def test_the_summary_says_what_to_take_from_it() -> None:
    def mixed(turn: int, size: int) -> float:
        return around({1: 0.5, 8: 0.5, 64: 1.0, 512: 0.5, 4096: 2.0}[size])(turn, size)

    sizes = (1, 8, 64, 512, 4096)
    rows = campaign(mixed, around(0.25), around(1.0), sizes=sizes)
    slower = campaign(lambda t, s: around(1.03 if s < 64 else 1.3)(t, s), sizes=sizes)
    single = campaign(around(0.5), sizes=(0,), benchmark="native:barrier")
    same = campaign(lambda *_: 1.001, benchmark="osu:allreduce", layout="1x4")
    equal, short = campaign(around(1.0)), campaign(around(1.0), rounds=2)
    found = [compared(one).summary for one in (rows, slower, single, same, equal, short)]
    assert_output("compare/summaries", "\n".join(chain.from_iterable(found)))


def test_single_cells_of_an_open_curve_are_no_headline() -> None:
    """Seven sizes are slower by themselves, sixteen are not; the curve is left open."""
    sizes = [1 << n for n in range(23)]
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.05, (23, 10))
    noise += 0.07 * (rng.random((23, 1)) < 0.4)
    comparison = compared(
        campaign(varied(dict(zip(sizes, noise.tolist(), strict=True))), rounds=10, sizes=sizes)
    )
    assert verdicts(only(comparison)).count(SLOWER) >= 3
    assert only(comparison).curve is INCONCLUSIVE
    assert_output("compare/open-cells", "\n".join(comparison.summary))


def test_the_summary_is_short_and_says_what_it_leaves_out() -> None:
    rows = [r for n in range(14) for r in campaign(around(0.5), benchmark=f"native:b{n}")]
    summary = compared(rows).summary
    assert len(summary) == 13
    assert summary[-1].startswith("and 2 more")


def test_a_curve_of_which_no_round_has_every_size_has_a_ratio_without_bounds() -> None:
    rows = campaign(around(0.5), rounds=12, sizes=(8, 64))
    rows = lacking(rows, lambda r: (r.round % 2 == 0) != (r.size == 8))
    group = only(compared(rows))
    assert group.pooled == pytest.approx(0.5, rel=0.05)
    assert group.pooled_low is None
    assert group.curve is INCONCLUSIVE


def test_speed_is_above_1_where_values_are_better() -> None:
    of_time = replace(only(compared(campaign(around(0.5)))), metric="latency", pooled=0.5)
    of_rate = replace(of_time, metric="performance [ns/day] higher")
    of_unknown = replace(of_time, metric="x")
    ratios = (None, 0.25, 4.0, 0.0)
    every = [[verdict_rules.speed_of(g, r) for r in ratios] for g in (of_time, of_rate, of_unknown)]
    assert every == [[2.0, 4.0, 0.25, math.inf], [0.5, 0.25, 4.0, 0.0], [2.0, 4.0, 0.25, math.inf]]
