"""Lines of results over campaigns: their keys, their levels, and the changes in them."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.history_synthetic import EFFECTS, rates
from mpigraft.analysis.between_campaigns.curve_levels import curve_levels
from mpigraft.analysis.overtime.chains import name_chains
from mpigraft.analysis.overtime.history import machine_name, sort_history
from mpigraft.analysis.overtime.matching import series_name
from mpigraft.analysis.overtime.segments import normal_deviate, steps, tail
from mpigraft.core.model import Measured, Origin, ValueRow
from tests.builders.messages import shows
from tests.builders.overtime import MACHINE, MPICH, OPENMPI, campaign
from tests.oracles.level_changes import changes

HISTORIES = 150
NEWER = "openmpi@5.0.12/ob1-sm"


def noisy(levels: list[float], seed: int = 1, spread: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [level + rng.gauss(0, spread) for level in levels]


def places(levels: list[float], lines: int = 1) -> list[int]:
    return [step.place for step in steps(levels, [0.007] * len(levels), lines)]


def test_a_change_is_found_where_it_is() -> None:
    assert places(noisy([0.0] * 12 + [0.2] * 8)) == [12]
    assert places(noisy([0.0] * 12 + [-0.2] * 2)) == [12]
    assert places(noisy([0.0] * 20 + [0.2] * 7 + [0.0] * 20)) == [20, 27]
    assert places(noisy([0.0] * 10 + [0.2] * 10 + [0.4] * 10), lines=12) == [10, 20]
    (step,) = steps(noisy([0.0] * 10 + [0.2] * 10), [0.007] * 20)
    assert step.shift == pytest.approx(0.2, abs=0.01)
    assert step.p < 1e-6


def test_nothing_is_found_where_there_is_none() -> None:
    assert places(noisy([0.0] * 40)) == []
    assert places(noisy([0.0] * 20 + [0.02] * 20, spread=0.001)) == []  # within the margin
    assert places(noisy([0.0] * 20 + [0.5] + [0.0] * 20)) == []  # one odd night
    assert places([0.0, 0.0, 0.5]) == []  # three campaigns say nothing of their spread
    assert places([0.0] * 10) == []
    assert steps([], []) == []


def test_campaigns_that_agree_by_chance_do_not_make_another_one_a_change() -> None:
    levels = [0.0, 1e-6, -1e-6, 0.0, 0.05, 0.0501]
    assert [s.place for s in steps(levels, [1e-7] * 6)] == [4]
    assert steps(levels, [0.02] * 6) == []


@given(st.lists(st.floats(-3, 3), max_size=40))
def test_any_levels_have_places_in_order(levels: list[float]) -> None:
    found = places(levels)
    assert found == sorted(set(found))
    assert all(0 < place < len(levels) for place in found)


@pytest.mark.parametrize(
    ("t", "free", "exact"),  # scipy 1.17.1: 2 * scipy.stats.t.sf(t, free)
    [(2.0, 10, 0.07338803), (5.0, 8, 0.00105283), (9.0, 30, 4.9e-10), (20.0, 3, 0.00027322)],
)
def test_tail_is_close_to_students_and_never_much_smaller(
    t: float, free: int, exact: float
) -> None:
    assert 0.9 * exact < tail(normal_deviate(t, free)) < 2 * exact


def history(seed: int) -> tuple[list[float], list[float], int]:
    """Levels with a stretch of their own or two, in noise of several kinds; their errors."""
    rng = random.Random(seed)
    count = rng.choice([3, 4, 5, 6, 7, 8, 10, 14, 19, 20, 21, 26])
    spread = rng.choice([0.002, 0.01, 0.02])
    normal = [rng.gauss(0, spread) for _ in range(count)]
    skewed = [spread * (rng.expovariate(1) - 1) for _ in range(count)]
    levels = rng.choice([normal, skewed, [-level for level in skewed]])
    alike = rng.choice([0.0, 0.0, 0.6])
    for place in range(1, count):
        levels[place] += alike * levels[place - 1]
    for _ in range(rng.choice([1, 1, 2])):
        first = rng.randrange(count)
        last = rng.choice([count, min(count, first + rng.randint(1, 5))])
        shift = rng.choice([-1, 1]) * rng.choice([0.028, 0.032, 0.05, 0.08, 0.15])
        levels[first:last] = [level + shift for level in levels[first:last]]
    errors = [rng.choice([0.001, 0.004, 0.015]) for _ in range(count)]
    return levels, errors, rng.choice([1, 12, 60])


def test_changes_are_those_of_the_oracle() -> None:
    found = 0
    for seed in range(HISTORIES):
        levels, errors, lines = history(seed)
        made = [(s.place, s.shift, s.p) for s in steps(levels, errors, lines)]
        due = changes(levels, errors, lines)
        assert [place for place, _, _ in made] == [place for place, _, _ in due], seed
        for own, other in zip(made, due, strict=True):
            assert own[1:] == pytest.approx(other[1:], rel=1e-6), seed
        found += len(made)
    assert found > HISTORIES / 4


def test_simulated_histories_have_few_false_changes_and_show_true_ones() -> None:
    """Smaller runs of evaluation/history_synthetic.py."""
    assert rates(30, "heavy tails", 20).false <= 0.1
    assert rates(30, "normal", 10, 1.1, EFFECTS[0]).found >= 0.9


# ------------------------------------------------------------------ lines


def test_a_line_goes_on_when_versions_change() -> None:
    newer = {"k0": MPICH, "k9": NEWER}
    sides = [campaign(n) for n in (1, 2, 3)] + [campaign(n, names=newer) for n in (4, 5)]
    lines = sort_history(reversed(sides))
    series = [series_name(name) for name in (MPICH, NEWER)]
    assert [line.key.configuration for line in lines] == series
    ids = [point.configuration for point in lines[1].points]
    assert ids == [OPENMPI] * 3 + [NEWER] * 2
    assert [point.created[8:10] for point in lines[1].points] == ["01", "02", "03", "04", "05"]


def test_two_versions_in_one_campaign_are_two_lines() -> None:
    older = "openmpi@4.1.8/ob1-sm"
    names = {"k0": MPICH, "k1": OPENMPI, "k2": older}
    lines = sort_history([campaign(1, names=names), campaign(2, names=names)])
    assert [line.key.configuration for line in lines] == ["mpich/ucx", older, OPENMPI]


def test_a_change_says_what_changed() -> None:
    newer = {**MACHINE, "kernel": "6.12.1"}
    sides = [campaign(n) for n in range(1, 9)]
    sides += [campaign(n, machine=newer, level=lambda *_: 1.2) for n in range(9, 15)]
    for line in sort_history(sides):
        (shift,) = line.shifts
        assert (shift.index, shift.slower) == (8, True)
        assert shift.ratio == pytest.approx(1.2, rel=0.02)
        assert len(shift.what) == 1
        assert shows(shift.what[0], "kernel", MACHINE["kernel"], newer["kernel"])
    faster = [campaign(n, level=lambda *_: 1.0 if n < 9 else 0.8) for n in range(1, 15)]  # noqa: B023
    assert [s.slower for line in sort_history(faster) for s in line.shifts] == [False, False]


def test_nodes_of_one_cluster_are_one_machine() -> None:
    one, other = campaign(1, hosts=("nid001", "nid002")), campaign(2, hosts=("nid977.site",))
    assert machine_name(one) == machine_name(other)
    assert shows(machine_name(one), "nid", "7763", "64 cores")
    assert machine_name(campaign(3, hosts=("gpu1",))) != machine_name(one)
    assert shows(machine_name(replace(one, allocations=())), "not recorded")
    assert len({line.key.machine for line in sort_history([one, other])}) == 1


def test_levels_are_medians_of_launches() -> None:
    (base, other) = curve_levels(campaign(1, level=lambda name, _: 2.0 if name == OPENMPI else 1.0))
    assert other.logs[64] - base.logs[64] == pytest.approx(math.log(2), abs=0.02)
    assert 0.001 < base.error < 0.02
    assert base.rounds == 8
    (single,) = curve_levels(campaign(1, rounds=1, names={"k0": MPICH}))
    assert single.error == 0.05


def test_a_machine_that_an_import_names_keeps_its_number() -> None:
    first, second = (
        replace(one, campaign=replace(one.campaign, origin=Origin.IMPORT))
        for one in (
            campaign(1, hosts=("archer1",), machine={}),
            campaign(2, hosts=("archer2",), machine={}),
        )
    )
    assert [machine_name(side) for side in (first, second)] == ["archer1", "archer2"]


def test_an_update_beside_another_version_of_the_same_mpi_is_one_line() -> None:
    """Debian's Open MPI stays while the tuned one is updated, and gets slower by it."""
    beside, before, after = "openmpi@4.1.4/ob1-sm", OPENMPI, "openmpi@5.0.12/ob1-sm"
    sides = [campaign(n, names={"k0": beside, "k1": before}) for n in range(1, 6)]
    sides += [
        campaign(
            n, names={"k0": beside, "k2": after}, level=lambda name, _: 1.3 if "5.0" in name else 1
        )
        for n in range(6, 11)
    ]
    lines = {line.key.configuration: line for line in sort_history(sides)}
    assert lines.keys() == {beside, after}
    assert [len(line.points) for line in lines.values()] == [10, 10]
    (shift,) = lines[after].shifts
    assert (shift.index, shift.slower) == (5, True)
    assert lines[beside].shifts == ()


def test_a_line_goes_on_after_campaigns_that_left_it_out() -> None:
    """Some nights measure less; what the night before had goes first."""
    names = [
        {"k0": MPICH, "k1": OPENMPI},
        {"k0": MPICH},
        {"k0": MPICH, "k2": NEWER},
        {"k0": MPICH, "k2": NEWER, "k1": OPENMPI},
    ]
    named = name_chains(names)
    assert {named[0, "k1"], named[2, "k2"], named[3, "k2"]} == {NEWER}
    assert named[3, "k1"] == OPENMPI  # a new one beside it
    assert {named[n, "k0"] for n in range(4)} == {"mpich/ucx"}


def measured_at(number: int, *sizes: int) -> Measured:
    """A campaign of some sizes; its values are the size alone."""
    side = campaign(number, names={"k0": MPICH}, spread=0.0)
    rows = [replace_size(row, size) for row in side.values if row.size == 1 for size in sizes]
    return replace(side, values=tuple(rows))


def replace_size(row: ValueRow, size: int) -> ValueRow:
    return row._replace(size=size, value=float(size))


def test_means_of_a_line_are_over_the_same_sizes() -> None:
    """Without a size in common, campaigns are on lines of their own."""
    small, large = (8, 16), (4096, 16384)
    sides = [measured_at(1, *small), measured_at(2, *large), measured_at(3, 8, 4096)]
    lines = sort_history([*sides, measured_at(4, 16, 8)])
    assert [(line.sizes, line.left_out) for line in lines] == [
        ((8,), (16, 4096, 16384)),
        (large, small),
    ]
    assert [[p.name for p in line.points] for line in lines] == [
        ["night1", "night3", "night4"],
        ["night2"],
    ]
    assert [p.value for p in lines[0].points] == pytest.approx([8.0] * 3)
    (whole,) = sort_history(measured_at(n, *small) for n in (1, 2))
    assert (whole.sizes, whole.left_out) == (small, ())


def test_sizes_that_another_configuration_has_are_left_out_of_a_line() -> None:
    few = campaign(1)
    rows = tuple(row for row in few.values if row.configuration == "k0" or row.size < 99)
    lines = sort_history([replace(few, values=rows)])
    assert [(line.sizes, line.left_out) for line in lines] == [
        ((1, 64, 4096), ()),
        ((1, 64), (4096,)),
    ]
