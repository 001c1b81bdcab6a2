"""Which nodes stand out of a matrix of links: exact matrices, and how often of random ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from mpigraft.analysis.pairs import outliers
from mpigraft.analysis.pairs.outliers import Way

Floats = NDArray[np.float64]
RING = [(0, 2), (2, 3), (3, 0), (2, 0), (3, 2), (0, 3)]  # all links of four nodes but node 1's


def logs(
    nodes: int, launches: int = 4, *, sends: float = 1.0, receives: float = 1.0,
    noise: float = 0.0, seed: int = 0, unlike: float = 0.0,
) -> Floats:  # fmt: skip
    """(launches, from, to), of which node 1 is slow."""
    rng = np.random.default_rng([seed, nodes])
    made: Floats = noise * rng.normal(size=(launches, nodes, nodes))
    made += unlike * rng.normal(size=(nodes, nodes))
    made[:, 1, :] += math.log(sends)
    made[:, :, 1] += math.log(receives)
    made[:, np.arange(nodes), np.arange(nodes)] = np.nan
    return made


def round_trips(made: Floats) -> Floats:
    """Of both directions the same value: the mean of both."""
    return np.log((np.exp(made) + np.exp(made.swapaxes(1, 2))) / 2)


def named(made: Floats, *, symmetric: bool = False) -> list[tuple[int, float, Way]]:
    return [(n, round(t, 6), way) for n, t, way in outliers.slow_nodes(made, symmetric=symmetric)]


@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_a_slow_node_has_its_direction_and_factor(nodes: int) -> None:
    assert named(logs(nodes, sends=2.0)) == [(1, 2.0, Way.SENDING)]
    assert named(logs(nodes, receives=2.0)) == [(1, 2.0, Way.RECEIVING)]
    assert named(logs(nodes, sends=2.0, receives=3.0)) == [(1, 3.0, Way.BOTH)]
    both = round_trips(logs(nodes, sends=2.0, receives=2.0))
    assert named(both, symmetric=True) == [(1, 2.0, Way.EITHER)]


def test_how_slow_all_are_is_no_matter() -> None:
    for nodes in (3, 4, 8):
        made = logs(nodes, sends=2.0, noise=0.02)
        one = outliers.slow_nodes(made, symmetric=False)
        moved = outliers.slow_nodes(made + 7, symmetric=False)
        assert [(n, way) for n, _, way in one] == [(n, way) for n, _, way in moved]
        assert one[0][1] == pytest.approx(moved[0][1])


def test_a_slow_link_elsewhere_moves_no_scale() -> None:
    made = logs(4, 8, sends=1.3)
    made[:, 0, 2] += math.log(20)
    assert named(made) == [(1, 1.3, Way.SENDING)]


def test_what_stands_out_at_times_has_to_stand_out_of_the_medians_too() -> None:
    """Three times as slow in three of eight launches, else by less than links differ."""
    made = logs(4, 8, sends=1.2)
    for sign, (a, b) in zip([1, 1, 1, -1, -1, -1], RING, strict=True):
        made[:, a, b] += 0.08 * sign
    made[:3, 1, :] += math.log(3)
    assert named(made) == []
    made[:, 1, :] += math.log(3)
    assert [node for node, _, _ in named(made)] == [1]


def test_a_launch_in_which_a_node_had_one_link_does_not_count() -> None:
    made = logs(3, 3, sends=2.0)
    assert len(named(made)) == 1
    made[0, 1, 2] = np.nan
    assert named(made) == []


def test_alike_nodes_and_two_nodes_are_not_named() -> None:
    assert named(logs(2, sends=9.0)) == []
    for nodes in (3, 4, 8):
        assert named(logs(nodes)) == []
        assert named(round_trips(logs(nodes)), symmetric=True) == []


@pytest.mark.parametrize("symmetric", [False, True])
def test_how_many_launches_it_takes(symmetric: bool) -> None:
    """Of three nodes that met twice it may be chance, of three times it is not."""
    for launches, times in ((1, 0), (2, 0), (3, 1)):
        made = logs(3, launches, sends=2.0, receives=2.0)
        assert len(named(made, symmetric=symmetric)) == times


@pytest.mark.parametrize(
    ("nodes", "times", "others", "expected"),
    [(3, 4, 0, [1]), (3, 4, 1, []), (4, 4, 2, [1]), (4, 4, 3, []), (3, 5, 2, [1]), (3, 5, 3, [])],
)
def test_the_oftener_others_were_slow_the_less_it_is_a_sign(
    nodes: int, times: int, others: int, expected: list[int]
) -> None:
    """Of six launches, node 1 in `times` of them and node 2 in `others`."""
    made = logs(nodes, 6)
    made[:times, 1, :] += math.log(3)
    made[6 - others :, 2, :] += math.log(3)
    assert [node for node, _, _ in named(made)] == expected


def test_less_than_the_least_is_not_named() -> None:
    assert named(logs(4, 20, sends=1.09)) == []
    assert named(logs(4, 20, sends=1.11)) == [(1, 1.11, Way.SENDING)]


def test_several_slow_nodes_come_worst_first() -> None:
    made = logs(8, sends=2.0)
    made[:, 5, :] += math.log(4)
    made[:, :, 3] += math.log(3)
    slow = [(n, way) for n, _, way in named(made)]
    assert slow == [(5, Way.SENDING), (3, Way.RECEIVING), (1, Way.SENDING)]


def test_of_five_nodes_two_are_named_although_each_hides_the_other() -> None:
    """With the worst one gone the other stands out of what is left."""
    made = logs(5, 6, sends=1.3, receives=1.3)
    made[:, 3, :] += math.log(6)
    made[:, :, 3] += math.log(6)
    assert [node for node, _, _ in named(made)] == [3, 1]


def test_a_link_of_two_good_nodes_blames_neither() -> None:
    for nodes in (3, 4, 8):
        made = logs(nodes)
        made[:, 0, 2] = made[:, 2, 0] = math.log(5)
        assert named(made) == []
        assert named(made, symmetric=True) == []


def test_nodes_with_one_partner_and_missing_links() -> None:
    made = logs(5, 8, sends=3.0)
    made[:, 4, :] = np.nan
    made[:, :, 4] = np.nan
    assert named(made) == [(1, 3.0, Way.SENDING)]
    made[:, 4, 0] = made[:, 0, 4] = math.log(50)  # one link: not told from it
    assert named(made) == [(1, 3.0, Way.SENDING)]
    alone = np.full((6, 3, 3), np.nan)
    alone[:, 1, 0] = alone[:, 1, 2] = math.log(9)  # nothing between the others
    assert named(alone) == []


def test_a_launch_with_one_link_is_passed_over() -> None:
    made = logs(4, 6, sends=3.0)
    made[0] = np.nan
    made[0, 1, 0] = 1.0
    made[1] = np.nan
    made[1, 0, 2] = 1.0
    assert named(made) == [(1, 3.0, Way.SENDING)]


@pytest.mark.parametrize("side", ["sends", "receives"])
def test_half_as_slow_again_is_named_of_three_nodes(side: str) -> None:
    """At 10 % noise and 20 launches; with the candidate in the scale every sixth was missed."""
    right = [
        [n for n, _, _ in named(logs(3, 20, noise=0.1, seed=seed, **{side: 1.5}))]
        for seed in range(60)
    ]
    assert sum(one == [1] for one in right) >= 57


@pytest.mark.parametrize("nodes", [3, 4, 8])
def test_alike_nodes_at_ten_percent_noise_are_not_named(nodes: int) -> None:
    alarms = [named(logs(nodes, 20, noise=0.1, seed=seed)) for seed in range(60)]
    assert sum(map(bool, alarms)) <= 1


def test_links_unlike_throughout_name_few() -> None:
    alarms = [named(logs(4, 20, noise=0.03, unlike=0.2, seed=seed)) for seed in range(60)]
    assert sum(map(bool, alarms)) <= 5
    slow = [named(logs(4, 20, noise=0.03, unlike=0.2, sends=9.0, seed=seed)) for seed in range(60)]
    assert sum((1, Way.SENDING) in [(n, w) for n, _, w in one] for one in slow) >= 57


# ------------------------------------------------------------------ arithmetic


def test_the_limit_is_five_deviations_of_links() -> None:
    """Links of four nodes lie 0.1 off their median, by hand: node 1 sends above them."""
    made = np.zeros((6, 4, 4))
    for sign, (a, b) in zip([1, 1, 1, -1, -1, -1], RING, strict=True):
        made[:, a, b] = 0.02 * sign
    made[:, np.arange(4), np.arange(4)] = np.nan
    whole = made[0]
    one = outliers._excess(whole, 1, Way.SENDING, 0.0)
    assert one is None
    made[:, 1, [0, 2, 3]] = 0.5
    one = outliers._excess(whole, 1, Way.SENDING, 0.0)
    assert one is not None
    assert (one.node, one.way) == (1, Way.SENDING)
    assert one.above == pytest.approx(0.5)
    spread = 1.2533 * math.sqrt(6 * 0.02**2 / 7) * math.sqrt(1 / 3 + 1 / 6)
    assert one.limit == pytest.approx(max(5 * spread, math.log(1.1)))
    loud = outliers._excess(whole, 1, Way.SENDING, 0.05)
    assert loud is not None
    assert loud.limit == pytest.approx(0.25)
    whole *= 3
    wide = outliers._excess(whole, 1, Way.SENDING, 0.0)
    assert wide is not None
    assert wide.limit == pytest.approx(15 * spread)


def test_of_round_trips_each_link_counts_once() -> None:
    made = np.zeros((4, 4))
    made[0, 2] = made[2, 0] = 0.06
    made[0, 3] = made[3, 0] = -0.06
    made[1, :] = made[:, 1] = [1.0, 1.0, 0.9, 1.1]
    made[np.arange(4), np.arange(4)] = np.nan
    one = outliers._excess(made, 1, Way.EITHER, 0.0)
    assert one is not None
    assert one.limit == pytest.approx(5 * math.sqrt(2 * (0.06**2 + 0.1**2) / 4))


def test_nodes_that_differ_from_each_other_widen_the_limit() -> None:
    """Of eight nodes the others send at 0, 0.1, ... 0.6: the MAD of these is 0.2."""
    made = np.repeat(np.array([0.3, 0.0, 0.1, 0.2, 0.4, 0.5, 0.6])[:, None], 8, axis=1)
    made = np.insert(made, 1, 3.0, axis=0)
    made[np.arange(8), np.arange(8)] = np.nan
    one = outliers._excess(made, 1, Way.SENDING, 0.0)
    assert one is not None
    assert one.limit == pytest.approx(5 * 1.4826 * 0.2)


def test_of_four_nodes_the_other_three_say_how_nodes_differ() -> None:
    made = np.repeat(np.array([0.0, 3.0, 0.2, 0.4])[:, None], 4, axis=1)
    made[np.arange(4), np.arange(4)] = np.nan
    one = outliers._excess(made, 1, Way.SENDING, 0.0)
    assert one is not None
    assert one.limit == pytest.approx(5 * 1.4826 * 0.2)


def test_a_node_with_one_faster_link_lies_off_its_own_median() -> None:
    made = np.zeros((4, 4))
    made[1, :] = [1.0, np.nan, 1.0, 0.7]
    for sign, (a, b) in zip([1, 1, 1, -1, -1, -1], RING, strict=True):
        made[a, b] = 0.1 * sign
    made[np.arange(4), np.arange(4)] = np.nan
    one = outliers._excess(made, 1, Way.SENDING, 0.0)
    assert one is not None
    few = 1.2533 * math.sqrt(1 / 3 + 1 / 6)
    assert one.limit == pytest.approx(5 * few * math.sqrt((6 * 0.1**2 + 0.3**2) / 7))


def test_the_chance_counts_launches_of_the_others_both_ways() -> None:
    made = logs(3, 3, sends=2.0)
    ways = {Way.SENDING: made, Way.RECEIVING: made.swapaxes(1, 2)}
    one = outliers.Excess(1, Way.SENDING, math.log(2), 0.3)
    assert outliers._chance(one, ways) == pytest.approx((1 / 13) ** 3)


def test_low_medians_of_rows() -> None:
    nan = np.nan
    rows = np.array([[nan, 2.0, 1.0, nan], [5.0, nan, nan, nan], [4.0, 3.0, 2.0, 1.0],
                     [3.0, nan, 9.0, 7.0], [nan] * 4])  # fmt: skip
    np.testing.assert_equal(outliers._lows(rows), [1.0, 5.0, 2.0, 7.0, nan])


def test_of_three_nodes_the_limit_is_that_of_one_link() -> None:
    made = np.array([[np.nan, 0.0, 0.04], [1.0, np.nan, 1.01], [-0.04, 0.0, np.nan]])
    one = outliers._excess(made, 1, Way.SENDING, 0.0)
    assert one is not None
    assert one.above == pytest.approx(1.0)
    assert one.limit == pytest.approx(5 * math.sqrt((2 * 0.04**2 + 2 * 0.005**2) / 2))


def test_a_deviation_has_room_for_a_third_of_anything() -> None:
    off = np.array([0.1, 0.1, 0.1, 0.1, 9.0, 9.0])
    most = 3 * 1.4826 * 0.1
    assert outliers.deviation(off, 1) == pytest.approx(math.sqrt((4 * 0.01 + 2 * most**2) / 5))
    assert outliers.deviation(off, 2) == pytest.approx(math.sqrt((4 * 0.01 + 2 * most**2) / 4))
    assert outliers.deviation(np.array([0.1, 0.2, 0.1]), 1) == pytest.approx(math.sqrt(0.06 / 2))


def test_the_least_above() -> None:
    assert outliers.least_above(0.0, 0.0) == pytest.approx(math.log(1.1))
    assert outliers.least_above(0.1, 0.2) == pytest.approx(1.0)
    assert outliers.least_above(0.3, 0.2) == pytest.approx(1.5)


def test_the_noise_of_launches() -> None:
    assert outliers.launch_noise(logs(3, 1)) == 0.0
    two = np.array([[[0.0, 0.3]], [[0.2, 0.1]]])
    each = 1.4826 * 0.1 * math.sqrt(2)  # 0.1 off the medians, of two launches
    assert outliers.launch_noise(two) == pytest.approx(1.2533 * each / math.sqrt(2))
    assert outliers.launch_noise(np.full((3, 2, 2), np.nan)) == 0.0
    many = 0.1 * np.random.default_rng(3).normal(size=(20, 40, 40))
    assert outliers.launch_noise(many) == pytest.approx(0.1 * 1.2533 / math.sqrt(20), rel=0.1)


def test_the_binomial_tail() -> None:
    assert outliers.tail(3, 3, 0.5) == pytest.approx(1 / 8)
    assert outliers.tail(3, 2, 0.5) == pytest.approx(1 / 2)
    assert outliers.tail(4, 0, 0.3) == pytest.approx(1.0)
    assert outliers.tail(2, 1, 0.1) == pytest.approx(0.19)
    assert outliers.tail(2, 2, 1.5) == 1.0
