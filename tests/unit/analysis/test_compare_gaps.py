"""What is not there is named and never filled; unlike things never meet."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from mpigraft.analysis import grouping
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import AllocationRecord, ConfigurationRecord, Level, Origin
from tests.builders.campaigns import CAMPAIGN, SPREAD, arms, around, campaign, lacking, row
from tests.builders.comparisons import codes, compare, compared, only, verdicts
from tests.builders.messages import matches, shows
from tests.builders.verdicts import FASTER, INCONCLUSIVE


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
    comparison = compared(rows)
    first, second = comparison.groups
    assert [(c.size, c.rounds) for c in first.cells] == [(1, 8), (8, 8)]
    assert [(c.size, c.rounds) for c in second.cells] == [(1, 7), (8, 6), (64, 7)]
    assert codes(comparison.findings) == ["values-missing"] * 3
    base, k0, k1 = (f.message for f in comparison.findings)
    here = "native:latency (1x2)"
    assert shows(base, "mpi@base", here, "sizes 512", here, "second launch in round 8")
    assert shows(k0, "mpi@k0", here, "sizes 64")
    assert shows(k1, "round 4 of 8")
    assert shows(k1, "some sizes in round 6")
    # Sizes without all rounds stay out of the pooled ratio, so its rounds are like each other.
    assert second.pooled == pytest.approx(
        math.exp(math.log(0.5) + np.median([SPREAD[n % 6] for n in (0, 1, 2, 4, 5, 6, 7)]))
    )


def test_absolute_values_are_of_the_rounds_that_both_have() -> None:
    rows = campaign(around(0.5), rounds=8)
    less = [r for r in rows if r.round < 6 or r.configuration == "base"]
    more = [r for r in rows if r.round < 6 or r.configuration == "k0"]
    expected = only(compared([r for r in rows if r.round < 6])).cells
    for comparison in (less, more):
        cells = only(compare(CAMPAIGN, arms("k0"), comparison)).cells
        assert [(c.baseline, c.value) for c in cells] == [(c.baseline, c.value) for c in expected]


def test_without_a_size_in_common_there_is_no_curve() -> None:
    rows = campaign(around(0.5), sizes=(1, 8))
    apart = [r for r in rows if (r.size == 8) == (r.configuration == "k0")]
    for origin in Origin:
        record = replace(CAMPAIGN, origin=origin)
        assert compare(record, arms("k0"), apart).groups == ()


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
    comparison = compare(CAMPAIGN, arms("k0", "k9"), campaign(around(0.5)))
    assert [g.configuration for g in comparison.groups] == ["mpi@k0"]
    assert [f.message for f in comparison.findings] == [
        "mpi@k9 has no value of native:latency (1x2) in any round"
    ]


def test_without_a_pair_a_finding_says_that_noise_is_unknown() -> None:
    rows = [r for r in campaign(around(0.5)) if not r.replica]
    comparison = compared(rows)
    assert codes(comparison.findings) == ["no-noise"]
    assert comparison.noise == ()
    assert set(verdicts(only(comparison))) == {FASTER}


def test_values_that_are_stored_twice_count_once() -> None:
    rows = campaign(around(0.5))
    again = [r._replace(value=99.0) for r in rows if r.configuration == "k0"]
    comparison = compared(rows + again)
    assert only(comparison).cells == only(compared(rows)).cells
    assert [(f.code, f.level) for f in comparison.findings] == [("values-twice", Level.WARNING)]
    assert matches(
        comparison.findings[0], "values-twice", count="18 values are",
        examples="mpi@k0: native:latency at 1 B in",
    )  # fmt: skip


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_values_without_a_ratio_are_reported_and_not_used(value: float) -> None:
    rows = campaign(around(0.5))
    odd = row("k0", 7, 8, value)
    comparison = compare(CAMPAIGN, arms("k0"), [*rows, odd])
    assert only(comparison).cells == only(compared(rows)).cells
    (finding,) = [f for f in comparison.findings if f.code == "values-odd"]
    message = finding.message
    assert finding.level is Level.WARNING
    assert matches(message, "values-odd", count="1 value is", examples="mpi@k0:")
    again = compare(CAMPAIGN, arms("k0"), [*rows, odd, odd._replace(round=8)])
    (message,) = [f.message for f in again.findings if f.code == "values-odd"]
    assert matches(message, "values-odd", count="2 values are")
    assert message.endswith(" (2 times)")
    strange = [r._replace(metric="colour") for r in rows]
    assert "values-odd" in codes(compare(CAMPAIGN, arms("k0"), strange).findings)


def test_an_overlap_of_nothing_is_no_gap() -> None:
    """Such a cell has no ratio, and nothing is wrong with it."""
    rows = [r._replace(metric="overlap") for r in campaign(around(0.5))]
    rows[3] = rows[3]._replace(value=0.0)
    findings = compare(CAMPAIGN, arms("k0"), rows).findings
    assert not {"values-odd", "values-missing"} & set(codes(findings))
    (finding,) = [f for f in findings if f.code == "overlap-none"]
    assert finding.level is Level.INFO
    assert matches(finding, "overlap-none", count="1 value is")


@pytest.mark.parametrize(("count", "end"), [(1, ": 0.0"), (3, ": 0.0"), (4, "; and 1 more")])
def test_a_finding_shows_three_examples_and_counts_the_rest(count: int, end: str) -> None:
    odd = [row("k0", 0, size, 0.0) for size in range(count)]
    (finding,) = grouping.table_of(odd, {}, {"k0": "k0"}).findings
    assert finding.message.endswith(end)
    assert "times" not in finding.message
    assert finding.message.count("; ") == min(count, 4) - 1


def test_two_metrics_of_one_measurement_lack_a_size_once() -> None:
    rows = campaign(around(0.5), benchmark="osu:mbw_mr", metric="bandwidth")
    rows = lacking(rows, lambda r: r.size == 64)
    rates = [r._replace(metric="message_rate", value=r.value / r.size) for r in rows]
    (finding,) = (f for f in compared([*rows, *rates]).findings if f.code == "values-missing")
    assert matches(finding, "values-missing", gaps="osu:mbw_mr (1x2) at sizes 64 B", label="mpi@k0")


def test_an_empty_campaign_is_an_error_with_a_fix() -> None:
    with pytest.raises(MissingError, match="no value"):
        compare(CAMPAIGN, arms(), [])


def test_unlike_options_layouts_and_buffers_never_meet() -> None:
    rows = campaign(around(0.5))
    other = {"benchmark": "native:latency,datatype=indexed", "layout": "1x4", "buffers": "cuda"}
    for name, unlike in other.items():
        mixed = [r._replace(**{name: unlike}) if r.configuration == "k0" else r for r in rows]  # type: ignore[arg-type]
        comparison = compared(mixed)
        assert comparison.groups == ()
        assert "values-missing" in codes(comparison.findings)


def test_configurations_of_another_campaign_are_refused() -> None:
    foreign = replace(arms("k0")[1], campaign="c2")
    with pytest.raises(UsageError, match="c2"):
        compare(CAMPAIGN, [*arms(), foreign], campaign(around(0.5)))


def test_rounds_of_different_allocations_are_different_rounds() -> None:
    """In the second allocation everything is ten times slower: ratios do not see it."""
    rows = campaign(around(0.5))
    rows += [r._replace(allocation="a1", value=10 * r.value) for r in rows]
    group = only(compared(rows))
    assert [c.rounds for c in group.cells] == [12] * 3
    assert group.cells[0].ratio == pytest.approx(0.5 * math.exp(0.005))


def test_a_round_that_a_kill_split_is_one_round_on_one_host() -> None:
    rows = campaign(around(0.5), pair=0.25)
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
    assert [c.ratio for c in only(joined).cells] != [c.ratio for c in only(apart).cells]
    assert only(compared(split, allocations=other)).cells == only(apart).cells
    table = grouping.table_of(split, {"a0": "n1", "a1": "n1"}, {"base": "base", "k0": "k0"})
    assert table.allocation == {grouping.Block("n1", turn): int(turn > 4) for turn in range(6)}


def test_jobs_that_measure_the_same_rounds_on_the_same_nodes_are_other_rounds() -> None:
    """Another hour: nothing of the second is left out, nor held against the first."""
    rows = campaign(around(0.5))
    twice = [*rows, *(r._replace(allocation="a1", value=10 * r.value) for r in rows)]
    hosts = ("n1", "n2")
    jobs = [AllocationRecord(a, "c1", a, "n1", "{}", hosts, a) for a in ("a0", "a1")]
    comparison = compared(twice, allocations=jobs)
    assert comparison.rounds == 12
    assert [c.rounds for c in only(comparison).cells] == [12] * 3
    assert only(comparison).cells[0].ratio == pytest.approx(0.5 * math.exp(0.005))
    assert not [f for f in comparison.findings if f.code == "values-twice"]


def test_the_first_host_alone_does_not_make_nodes_the_same() -> None:
    rows = campaign(around(0.5))
    split = [r._replace(allocation="a1") if r.replica == 1 else r for r in rows]
    jobs = [AllocationRecord(a, "c1", a, "n1", "{}", ("n1", b), a)
            for a, b in (("a0", "n2"), ("a1", "n3"))]  # fmt: skip
    assert compared(split, allocations=jobs).rounds == 12


def test_the_baseline_is_the_campaigns_or_the_one_that_is_named() -> None:
    rows = campaign(around(0.5), around(2.0))
    assert compared(rows).baseline == "mpi@base"
    for wish in ("k1", "mpi@k1"):
        comparison = compared(rows, baseline=wish)
        assert comparison.baseline == "mpi@k1"
        assert {g.configuration: set(verdicts(g)) for g in comparison.groups} == {
            "mpi@base": {FASTER}, "mpi@k0": {FASTER},
        }  # fmt: skip
    for wish, problem in (("mpi", "several"), ("nothing", "has no values")):
        with pytest.raises(UsageError, match=problem) as caught:
            compared(rows, baseline=wish)
        assert "mpi@k1" in caught.value.fix


def test_a_whole_name_is_meant_although_others_begin_with_it() -> None:
    rows = [r._replace(configuration="k0b") if r.configuration == "k1" else r
            for r in campaign(around(0.5), around(2.0))]  # fmt: skip
    assert compared(rows, baseline="k0").baseline == "mpi@k0"
    with pytest.raises(UsageError, match="several") as caught:
        compared(rows, baseline="mpi@k")
    assert caught.value.fix == "give one of: mpi@k0, mpi@k0b"


def test_a_configuration_without_values_is_no_baseline() -> None:
    rows = campaign(around(0.5))
    with pytest.raises(UsageError, match="has no values") as caught:
        compare(CAMPAIGN, arms("k0", "k1"), rows, baseline="k1")
    assert matches(caught.value, "baseline-unknown", known="mpi@base, mpi@k0")
    with pytest.raises(UsageError) as caught:
        compare(CAMPAIGN, arms("k0", "k1"), rows, baseline="mpi@bsae")
    assert matches(caught.value, "baseline-unknown", near="did you mean mpi@base")


def test_a_baseline_that_never_ran_is_replaced_with_a_finding() -> None:
    rows = [r for r in campaign(around(0.5), around(2.0)) if r.configuration != "base"]
    comparison = compared(rows)
    assert comparison.baseline == "mpi@k0"
    assert "baseline-missing" in codes(comparison.findings)
    assert comparison.findings[0].level is Level.WARNING


def test_one_id_with_two_contents_is_two_configurations() -> None:
    twins = [ConfigurationRecord("c1", key, "mpi@same", "{}") for key in ("k0", "k1")]
    comparison = compare(CAMPAIGN, [*arms(), *twins], campaign(around(0.5), around(2.0)))
    assert [g.configuration for g in comparison.groups] == ["mpi@same (k0)", "mpi@same (k1)"]
