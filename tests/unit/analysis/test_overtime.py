"""Two campaigns compared: intervals of unpaired rounds, verdicts, matches, and what changed."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.overtime_synthetic import EFFECTS, Kind, shares
from mpigraft.analysis.between_campaigns import permutation, shift
from mpigraft.analysis.between_campaigns.campaigns import compare_campaigns
from mpigraft.analysis.overtime.changes import ChangeStatus, FactChange, list_changes, what_changed
from mpigraft.analysis.overtime.matching import (
    MatchedConfiguration,
    match_configurations,
    series_name,
    unmatched,
)
from mpigraft.analysis.overtime.reference_state import RECHECK
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    AcrossRule,
    Conditions,
    CpuUse,
    LaunchState,
    Measured,
    NodeState,
    Origin,
    Verdict,
)
from mpigraft.core.serialize import parse_object
from tests.builders.comparisons import codes
from tests.builders.messages import matches, shows
from tests.builders.overtime import MACHINE, MPICH, OPENMPI, campaign

# Bounds of the shifts that scipy 1.17.1's mannwhitneyu(method="exact") does not reject at 5 %.
SCIPY = (
    ([0.0599, 0.0338, 0.0876, 0.121, 0.1568, 0.1055],
     [-0.0387, -0.0549, 0.0524, 0.1144, 0.0191, -0.0863], 0.0066, 0.1759),
    ([0.0521, 0.18, 0.1101, 0.0134, 0.0958, 0.0418],
     [-0.0441, -0.0342, -0.0499, 0.0387, -0.0044, -0.0413, 0.0287, 0.0581, -0.115],
     0.0377, 0.1568),
    ([0.0872, 0.051, 0.0913, 0.0355, 0.101, 0.0981, 0.0848, 0.0476],
     [-0.0277, -0.0764, -0.0949, 0.0157, -0.0777, 0.0819, 0.0502, -0.1398, 0.019, -0.0771, 0.0023,
      0.0031, -0.1392, -0.0163, -0.0179, 0.0673, -0.0827, 0.0517, -0.0769, -0.0232],
     0.0487, 0.1636),
    ([0.058, 0.1724, 0.1284, 0.2216, 0.1321, 0.1422, 0.142, 0.0697, 0.0965, 0.1675, 0.0802, 0.1094],
     [-0.0015, 0.0426, -0.0255, -0.0107, 0.017, 0.0072, -0.0605], 0.0858, 0.1699),
)  # fmt: skip


def bounds(new: list[float], old: list[float]) -> tuple[float, float]:
    arms = [np.array(arm)[:, None] for arm in (new, old)]
    places = tuple(np.zeros(len(arm), dtype=np.int64) for arm in arms)
    low, high = shift.intervals(arms[0], arms[1], (places[0], places[1]), 1)
    return float(low[0]), float(high[0])


# ------------------------------------------------------------------ intervals


@pytest.mark.parametrize(("new", "old", "low", "high"), SCIPY)
def test_interval_has_the_shifts_that_the_rank_sum_test_does_not_reject(
    new: list[float], old: list[float], low: float, high: float
) -> None:
    assert bounds(new, old) == pytest.approx((low, high), abs=2e-6)


@pytest.mark.parametrize(("first", "second"), [(1, 4), (3, 3), (2, 5), (4, 4)])
def test_orders_of_two_samples_are_counted(first: int, second: int) -> None:
    counts = [0] * (first * second + 1)
    for places in itertools.combinations(range(first + second), first):
        counts[sum(place - number for number, place in enumerate(places))] += 1
    assert shift._ways(first, second) == counts


def test_rank_is_the_greatest_below_the_tail() -> None:
    assert shift.rank_of(6, 6) == 6  # table of Mann and Whitney: 5 is the critical value
    assert shift.rank_of(20, 20) == 128  # 127
    assert shift.rank_of(3, 3) == 0  # no interval
    ways, total = shift._ways(8, 9), math.comb(17, 8)
    rank = shift.rank_of(8, 9)
    assert (
        Fraction(sum(ways[:rank]), total)
        <= Fraction(1, 40)
        < Fraction(sum(ways[: rank + 1]), total)
    )


def test_many_launches_have_the_rank_of_the_normal_limit() -> None:
    """The exact rank of 21 and 21 launches is 142 + 1 (tables end at 20)."""
    assert shift.rank_of(21, 21) == pytest.approx(143, abs=2)


@given(
    st.lists(st.floats(-1, 1), min_size=6, max_size=9),
    st.lists(st.floats(-1, 1), min_size=6, max_size=9),
)
def test_interval_is_mirrored_when_campaigns_change_places(
    new: list[float], old: list[float]
) -> None:
    low, high = bounds(new, old)
    back = bounds(old, new)
    assert (low, high) == pytest.approx((-back[1], -back[0]), abs=1e-9)
    middle = float(np.median(new) - np.median(old))
    assert low - 1e-9 <= middle <= high + 1e-9


def test_several_allocations_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    places = np.repeat([0, 1, 2], 4)
    new = (rng.normal(0, 0.01, 12) + np.array([0.0, 0.1, -0.1])[places])[:, None]
    old = rng.normal(0, 0.01, 12)[:, None]
    none = np.zeros(12, dtype=np.int64)
    low, high = shift.intervals(new, old, (none, none), 1)
    wide = shift.intervals(new, old, (places, none), 1)
    assert wide[0][0] <= low[0]
    assert wide[1][0] >= high[0]
    assert wide[1][0] - wide[0][0] > 1.5 * (high[0] - low[0])


def test_p_is_the_share_of_deals_that_differ_as_much() -> None:
    """Six old and six new rounds, all new ones slower: 2 of the 924 deals part them so."""
    new = np.arange(6.0)[:, None] / 10 + 5
    old = np.arange(6.0)[:, None] / 10
    rounds = np.arange(6), np.arange(6)
    ((p, alone),) = permutation.joint_p([permutation.Arms(new, old, rounds)], (6, 6), 1)
    assert 0.0005 < p < 0.005
    assert p == alone
    ((p, alone),) = permutation.joint_p([permutation.Arms(old, old, rounds)], (6, 6), 1)
    assert p > 0.5


# ------------------------------------------------------------------ verdicts


def test_a_slower_campaign_is_called_and_an_equal_one_is_not() -> None:
    old = campaign(1)
    slow = campaign(2, level=lambda name, _: 1.2 if name == OPENMPI else 1.0)
    comparison = compare_campaigns(old, slow)
    assert {g.configuration: g.curve for g in comparison.groups} == {
        MPICH: Verdict.EQUIVALENT,
        OPENMPI: Verdict.SLOWER,
    }
    (group,) = (g for g in comparison.groups if g.configuration == OPENMPI)
    assert group.pooled == pytest.approx(1.2, rel=0.02)
    assert all(c.verdict is Verdict.SLOWER for c in group.cells)
    assert "allocations-single" in codes(comparison.findings)
    back = compare_campaigns(slow, old)
    assert {g.curve for g in back.groups} == {Verdict.EQUIVALENT, Verdict.FASTER}


def test_a_slower_part_of_a_curve_is_in_the_cells() -> None:
    slower = campaign(2, level=lambda _, size: 1.2 if size > 99 else 1.0)
    comparison = compare_campaigns(campaign(1), slower)
    for group in comparison.groups:
        assert [c.verdict for c in group.cells][-1] is Verdict.SLOWER
        assert group.cells[0].verdict is not Verdict.SLOWER


def test_few_rounds_call_nothing() -> None:
    comparison = compare_campaigns(campaign(1, rounds=5), campaign(2, level=lambda *_: 2.0))
    assert {g.curve for g in comparison.groups} == {Verdict.INCONCLUSIVE}
    assert "rounds-few-across" in codes(comparison.findings)


def test_an_inconclusive_cell_says_how_many_rounds_would_decide() -> None:
    new = campaign(2, level=lambda *_: 1.06, spread=0.05)
    cells = [c for g in compare_campaigns(campaign(1, spread=0.05), new).groups for c in g.cells]
    assert any(c.rounds_needed and c.rounds_needed > 8 for c in cells)


def test_imports_are_compared_and_named() -> None:
    old = campaign(1)
    old = replace(old, campaign=replace(old.campaign, origin=Origin.IMPORT))
    assert "campaign-import-compared" in codes(compare_campaigns(old, campaign(2)).findings)


def busy(side: Measured, others: float, rounds: int = 99) -> Measured:
    """The campaign, with others on the CPUs in the first rounds."""
    state = NodeState()
    there = Conditions(state, state, (CpuUse("n1", 2, 2, 9.0, 9, 0, 9, others, 0),))
    launches = [replace(x, conditions=there) if x.round < rounds else x for x in side.launches]
    return replace(side, launches=tuple(launches))


def test_disturbed_rounds_withhold_a_verdict() -> None:
    new = campaign(2, level=lambda *_: 1.3)
    comparison = compare_campaigns(campaign(1), busy(new, 0.5))
    assert {g.curve for g in comparison.groups} == {Verdict.INCONCLUSIVE}
    assert all(
        "other processes used the CPU in every round" in g.withheld for g in comparison.groups
    )
    assert "verdict-withheld" in codes(comparison.findings)
    assert {g.curve for g in compare_campaigns(campaign(1), new).groups} == {Verdict.SLOWER}


@pytest.mark.parametrize(
    ("ratio", "old_busy", "new_busy", "expected"),
    [
        (17.0, 0.0, 0.3, Verdict.SLOWER),  # at most 2.5 times
        (2.0, 0.0, 0.3, Verdict.INCONCLUSIVE),
        (17.0, 0.0, 0.5, Verdict.INCONCLUSIVE),  # without a bound
        (2.0, 0.5, 0.0, Verdict.SLOWER),  # it was the old one that may have lost
        (1 / 17, 0.3, 0.0, Verdict.FASTER),
        (1 / 2, 0.3, 0.0, Verdict.INCONCLUSIVE),
        (1 / 2, 0.0, 0.5, Verdict.FASTER),
    ],
)
def test_a_difference_that_others_cannot_explain_is_called(
    ratio: float, old_busy: float, new_busy: float, expected: Verdict
) -> None:
    old, new = campaign(1), campaign(2, level=lambda *_: ratio)
    comparison = compare_campaigns(busy(old, old_busy), busy(new, new_busy))
    assert {g.curve for g in comparison.groups} == {expected}
    assert ("slow-down-bounded" in codes(comparison.findings)) is (
        expected is not Verdict.INCONCLUSIVE
    )


def test_rounds_that_are_enough_without_the_disturbed_ones_decide_alone() -> None:
    new = campaign(2, level=lambda *_: 0.5, rounds=12)
    slowed = tuple(v._replace(value=18 * v.value) if v.round < 3 else v for v in new.values)
    comparison = compare_campaigns(campaign(1), busy(replace(new, values=slowed), 0.5, 3))
    assert {g.curve for g in comparison.groups} == {Verdict.FASTER}
    assert all(g.pooled < 0.6 for g in comparison.groups)
    assert "rounds-dropped" in codes(comparison.findings)


def test_lost_launches_withhold_what_rests_on_the_rest() -> None:
    """Half of the new launches failed: the others are called neither faster nor the same."""
    new = campaign(2, level=lambda *_: 0.7, rounds=16)
    lost = {f"2-{turn}-2" for turn in range(0, 16, 2)}  # of OPENMPI
    launches = tuple(
        replace(x, state=LaunchState.FAILED) if x.id in lost else x for x in new.launches
    )
    values = tuple(v for v in new.values if v.configuration == "k0" or v.round % 2)
    comparison = compare_campaigns(campaign(1), replace(new, launches=launches, values=values))
    curves = {g.configuration: g.curve for g in comparison.groups}
    assert curves == {MPICH: Verdict.FASTER, OPENMPI: Verdict.INCONCLUSIVE}
    assert "launches-lost" in codes(comparison.findings)


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(MissingError) as error:
        compare_campaigns(campaign(1, names={"k0": MPICH}), campaign(2, names={"k1": OPENMPI}))
    assert error.value.code == "campaigns-no-match"


def test_simulated_campaigns_have_few_false_curves_and_find_true_ones() -> None:
    """Smaller runs of evaluation/overtime_synthetic.py."""
    null = shares(Kind((6, 6), shape="heavy tails"), 12, AcrossRule())
    assert null.called <= 0.1
    assert null.coverage > 0.9
    found = shares(Kind((10, 10), ratio=1.2, effect=EFFECTS[1]), 5, RECHECK)
    assert found.slower >= 0.8


# ------------------------------------------------------------------ matches


def test_versions_are_no_part_of_a_series() -> None:
    assert series_name("openmpi@5.0.11/ofi-lnx@app.sif+srun") == "openmpi/ofi-lnx@app.sif+srun"
    assert series_name("img.sif:mpich@4.1rc1/ucx[cuda]") == "img.sif:mpich/ucx[cuda]"


def test_a_configuration_continues_that_of_the_same_key_then_id_then_series() -> None:
    old = {"a": "openmpi@5.0.1/ucx", "b": "mpich@4.2/ucx", "c": "mpich@5.0/ucx", "e": "gone@1/x"}
    new = {"a": "openmpi@5.0.9/ucx", "B": "mpich@4.2/ucx", "C": "mpich@5.1/ucx", "f": "fresh@1/x"}
    pairs = match_configurations(old, new)
    assert [(p.old, p.new) for p in pairs] == [("a", "a"), ("b", "B"), ("c", "C")]
    assert unmatched(old, new, pairs) == (("gone@1/x",), ("fresh@1/x",))
    assert shows(pairs[2].name, "mpich@5.1/ucx", "mpich@5.0/ucx")


def test_a_series_that_fits_two_is_matched_by_hand_only() -> None:
    old = {"a": "mpich@4.2/ucx"}
    new = {"b": "mpich@5.0/ucx", "c": "mpich@5.1/ucx"}
    assert match_configurations(old, new) == ()
    (pair,) = match_configurations(old, new, ["mpich@4=mpich@5.1"])
    assert pair == MatchedConfiguration("a", "c", "mpich@4.2/ucx", "mpich@5.1/ucx")
    for word in ("mpich@4=mpich@5", "x=mpich@5.1", "mpich@4.2/ucx", "=", ""):
        with pytest.raises(UsageError):
            match_configurations(old, new, [word])


# ------------------------------------------------------------------ what changed


def fact(old: Measured, new: Measured, name: str) -> FactChange:
    return next(row for row in list_changes(old, new) if row.name == name)


def test_facts_of_the_machine_are_compared() -> None:
    newer = {**MACHINE, "kernel": "6.12.1"}
    old, new = campaign(1, libraries=("/x/libcxi.so.1.5.0",)), campaign(2, machine=newer)
    assert fact(old, new, "kernel") == FactChange(
        "machine", "kernel", "6.1.0-28-amd64", "6.12.1", ChangeStatus.CHANGED
    )
    assert fact(old, new, "network driver").new == "cxi_ss1 1.2"
    assert fact(old, new, "network firmware").status is ChangeStatus.SAME
    assert fact(old, new, "PMI of srun").old == "pmix_v4"
    assert shows(what_changed(list_changes(old, new)), "kernel", "6.1.0-28-amd64 -> 6.12.1")


def test_what_one_campaign_did_not_record_is_not_unchanged() -> None:
    old = campaign(1, machine={"kernel": "6.1"})
    new = campaign(2)
    for name in ("network driver", "network firmware", "operating system", "CPU governor"):
        assert fact(old, new, name).status is ChangeStatus.NOT_RECORDED
    damaged = tuple(replace(c, provenance="{") for c in old.configurations)
    blank = replace(old, configurations=damaged)
    rows = {row.name: row.status for row in list_changes(blank, new) if row.scope != "machine"}
    for name in ("MPI", "libfabric", "UCX", "libcxi", "PMIx", "launcher", "environment"):
        assert rows[name] is ChangeStatus.NOT_RECORDED
    assert fact(replace(new, allocations=()), new, "kernel").status is ChangeStatus.NOT_RECORDED


def test_mapped_libraries_tell_versions_that_the_provenance_lacks() -> None:
    mapped = ("/a/libcxi.so.1.5.0", "/a/libpmix.so.2.13.2", "/b/libucp.so.0.0.0")
    old = campaign(1, libraries=mapped)
    new = campaign(2, libraries=("/a/libcxi.so.1.5.3", "/a/libpmix.so.2.13.2"))
    assert (fact(old, new, "libcxi").old, fact(old, new, "libcxi").new) == ("so 1.5.0", "so 1.5.3")
    assert fact(old, new, "PMIx").status is ChangeStatus.SAME
    assert fact(old, new, "UCX").new == "not mapped"
    assert fact(old, new, "libfabric").old == "2.1.0"  # of the provenance


def test_contents_tell_a_library_without_a_version() -> None:
    def with_digest(one: Measured, digest: str) -> Measured:
        records = []
        for record in one.configurations:
            document = json.loads(record.provenance)
            document["libraries"] = [["libpmix.so.2", digest], ["libmpi.so.40", "ab" * 32]]
            records.append(replace(record, provenance=json.dumps(document)))
        return replace(one, configurations=tuple(records))

    old, new = with_digest(campaign(1), "11" * 32), with_digest(campaign(2), "22" * 32)
    assert fact(old, new, "PMIx").status is ChangeStatus.CHANGED
    assert fact(old, new, "contents of libpmix.so.2").status is ChangeStatus.CHANGED
    assert fact(old, new, "contents of libmpi.so.40").status is ChangeStatus.SAME


def test_a_damaged_document_has_no_facts() -> None:
    assert parse_object("[1]") == {}
    assert parse_object("{") == {}


def test_sizes_that_only_one_campaign_has_are_named() -> None:
    old, new = campaign(1), campaign(2)
    few = replace(new, values=tuple(row for row in new.values if row.size < 99))
    for sides, lacking in (((old, few), few), ((few, old), few)):
        (gap,) = (f for f in compare_campaigns(*sides).findings if f.code == "values-missing")
        assert matches(
            gap, "values-missing", gaps="native:latency (1x2) at sizes 4 KiB", label=lacking.title
        )
    assert "values-missing" not in codes(compare_campaigns(old, new).findings)


def test_the_advice_for_few_rounds_is_for_the_campaign_that_has_them() -> None:
    runs, imported = campaign(1), campaign(2, rounds=2, origin=Origin.IMPORT)
    for sides in ((runs, imported), (imported, runs)):
        (few,) = (f for f in compare_campaigns(*sides).findings if f.code == "rounds-few-across")
        assert matches(
            few, "rounds-few-across", rounds="2 rounds",
            advice=f"import 6 runs or more into {imported.title}",
        )  # fmt: skip
    comparison = compare_campaigns(campaign(3, rounds=1), campaign(4))
    assert shows(comparison.summary[0], "1 round", "6")
    (few,) = (f for f in comparison.findings if f.code == "rounds-few-across")
    assert matches(few, "rounds-few-across", advice="mpigraft bench --resume 00000003 --rounds 10")
