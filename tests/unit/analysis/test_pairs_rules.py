"""The rules by which nodes, links and parts are named, each at its limits, on exact matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest

from mpigraft.analysis.pairs import matrices as pairs
from mpigraft.analysis.pairs.matrices import (
    Pair,
    PairMatrix,
    SlowNode,
    direction_phrase,
    pair_findings,
    pair_matrices,
)
from mpigraft.analysis.pairs.outliers import LEAST, Way
from mpigraft.core.model import Level, ValueRow
from tests.builders.messages import matches

Links = dict[Pair, float]
NO_PARTS = ((), 1.0)


def nodes(count: int) -> tuple[str, ...]:
    return tuple(f"n{k + 1}" for k in range(count))


def links(count: int, value: float, *others: Mapping[Pair, float]) -> Links:
    """One value between each two nodes, both ways, but for the others."""
    made = dict.fromkeys(permutations(nodes(count), 2), value)
    for other in others:
        made |= other
    return made


def of(node: str, count: int, value: float) -> Links:
    """The links of one node."""
    return {pair: value for pair in permutations(nodes(count), 2) if node in pair}


# ------------------------------------------------------------------ from rows to a matrix


def row(ends: str, value: float = 1.0, number: int = 0, metric: str = "bandwidth") -> ValueRow:
    return ValueRow(
        "key", "4x1", "job", number, 0, f"native:pairs{ends}", metric, 8, value, "host"
    )  # fmt: skip


def rows(values: Mapping[Pair, float], metric: str, launches: int) -> list[ValueRow]:
    return [
        row(f",from={a},to={b}", value, number, metric)
        for number in range(launches)
        for (a, b), value in values.items()
    ]


def matrix(
    values: Mapping[Pair, float], metric: str = "bandwidth", launches: int = 3
) -> PairMatrix:
    (one,) = pair_matrices(rows(values, metric, launches), {"key": "mpich@5/ofi"})
    return one


def named(slow: Iterable[SlowNode]) -> list[tuple[str, float, Way]]:
    return [(node, round(times, 6), way) for node, times, way in slow]


def test_a_value_needs_a_known_metric_two_ends_and_a_size() -> None:
    (one,) = pair_matrices([row(",from=n1,to=n2", 0.5)], {})
    assert (one.links, one.middle, one.configuration) == (((("n1", "n2"), 0.5),), 0.5, "key")
    for odd in (
        row(",from=n1"), row(",to=n1"), row(",from=n1,to=n2", metric="smell"),
        *(row(",from=n1,to=n2", value) for value in (0.0, -1.0, math.inf, math.nan)),
    ):  # fmt: skip
        assert pair_matrices([odd], {}) == (), odd


def test_each_metric_has_a_matrix() -> None:
    every = rows(links(3, 9.0), "latency", 2) + rows(links(3, 1e4), "bandwidth", 2)
    assert [one.metric for one in pair_matrices(every, {})] == ["bandwidth", "latency"]


def test_matrices_come_by_configuration_then_layout_as_numbers_then_metric_and_size() -> None:
    """2x1 comes before 16x1, although text sorts the other way."""
    order = [
        (configuration, layout, metric, size)
        for configuration in ("a", "b")
        for layout in ("2x1", "16x1")
        for metric in ("bandwidth", "latency")
        for size in (8, 64)
    ]
    every = [
        row(",from=n1,to=n2")._replace(configuration=c, layout=layout, metric=metric, size=size)
        for c, layout, metric, size in order[::-1]
    ]
    assert [
        (one.configuration, one.layout, one.metric, one.size) for one in pair_matrices(every, {})
    ] == order


def test_a_slow_node_of_four_takes_three_launches_and_no_part_in_the_middle() -> None:
    values = links(4, 1e4, of("n3", 4, 5e3))
    one = matrix(values)
    assert named(one.slow_nodes) == [("n3", 2.0, Way.BOTH)]
    assert (one.middle, one.launches, one.slow_links) == (1e4, 3, ())
    assert (one.parts, one.between) == NO_PARTS
    assert one.worse[("n3", "n1")] == 2.0
    assert matrix(values, launches=2).slow_nodes == ()


def test_a_round_trip_is_of_both_ways() -> None:
    trips = {(a, b): x for (a, b), x in links(4, 9.0, of("n3", 4, 18.0)).items() if a < b}
    one = matrix(trips, "latency")
    assert named(one.slow_nodes) == [("n3", 2.0, Way.EITHER)]
    assert (one.middle, len(one.links)) == (9.0, 12)
    assert one.worse[("n3", "n1")] == 2.0


@pytest.mark.parametrize("metric", ["latency", "bandwidth"])
def test_of_two_nodes_nothing_is_named(metric: str) -> None:
    one = matrix({("n1", "n2"): 9.0}, metric)
    assert (one.slow_nodes, one.slow_links, one.parts, one.between) == ((), (), (), 1.0)
    other = matrix({("n1", "n2"): 9.0, ("n2", "n1"): 1.0}, metric)
    assert (other.slow_nodes, other.slow_links, other.parts) == ((), (), ())


def test_slow_links_come_the_worst_first_and_then_by_name() -> None:
    slow = {("n5", "n1"): 5e3, ("n1", "n4"): 5e3, ("n4", "n2"): 2e3}
    one = matrix(slow | links(5, 1e4, slow), launches=6)
    assert [pair for pair, _ in one.slow_links] == [("n4", "n2"), ("n1", "n4"), ("n5", "n1")]
    assert [times for _, times in one.slow_links] == pytest.approx([5.0, 2.0, 2.0])


def test_a_value_of_one_way_says_nothing_of_the_other() -> None:
    there = {(a, b): float(a == "n1") for a, b in links(5, 0.0) if a < b}
    slow = pairs._slow_nodes(nodes(5), [there] * 3, symmetric=False)
    assert named(slow) == [("n1", round(math.e, 6), Way.SENDING)]
    back = {(a, b): float(b == "n5") for a, b in there}
    slow = pairs._slow_nodes(nodes(5), [back] * 3, symmetric=True)
    assert named(slow) == [("n5", round(math.e, 6), Way.EITHER)]


def test_links_within_parts_and_without_slow_nodes() -> None:
    every = links(4, 1.0)
    halves = (("n1", "n2"), ("n3", "n4"))
    ends = [("n1", "n2"), ("n2", "n1"), ("n3", "n4"), ("n4", "n3")]
    assert pairs._within(halves, every) == dict.fromkeys(ends, 1.0)
    assert pairs._within((), every) == every
    rest = pairs._without(every, [SlowNode("n1", 2.0, Way.BOTH), SlowNode("n4", 2.0, Way.BOTH)])
    assert list(rest) == [("n2", "n3"), ("n3", "n2")]


# ------------------------------------------------------------------ parts


def parted(*sizes: int, fast: float = -3.0, slow: float = -1.0) -> Links:
    """Nodes on so many switches, of each so many."""
    place = dict(zip(nodes(sum(sizes)), [k for k, n in enumerate(sizes) for _ in range(n)],
                     strict=True))  # fmt: skip
    return {(a, b): fast if place[a] == place[b] else slow for a, b in permutations(place, 2)}


def halves(count: int, within: Sequence[float], across: Sequence[float]) -> Links:
    """Two parts of so many nodes each: what their links are, the last of the values repeated."""
    made = parted(count, count, fast=0.0, slow=1.0)
    values = {0.0: list(within), 1.0: list(across)}
    return {
        pair: values[kind].pop(0) if len(values[kind]) > 1 else values[kind][0]
        for pair, kind in made.items()
    }


def parts(
    medians: Links, launches: Iterable[Mapping[Pair, float]] | None = None
) -> tuple[tuple[tuple[str, ...], ...], float]:
    names = sorted({node for pair in medians for node in pair})
    return pairs._parts(names, [medians, *(launches if launches is not None else [medians] * 3)])


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3), (2, 6), (2, 3, 4)])
def test_parts_have_two_nodes_or_more(sizes: tuple[int, ...]) -> None:
    groups, times = parts(parted(*sizes))
    assert tuple(map(len, groups)) == sizes
    assert tuple(node for group in groups for node in group) == nodes(sum(sizes))
    assert times == math.exp(2.0)


def test_what_is_no_part() -> None:
    """One node, three of them, a link within that is slow or one between that is fast."""
    assert parts({("n1", "n2"): 0.0}) == parts(parted(2, 1)) == NO_PARTS
    assert parts(parted(4, 1)) == parts(parted(6, 1)) == NO_PARTS
    assert parts(parted(3, 3) | {("n1", "n2"): -1.0, ("n2", "n1"): -1.0}) == NO_PARTS
    assert parts(parted(3, 3) | {("n1", "n6"): -3.0}) == NO_PARTS


@pytest.mark.parametrize(
    ("within", "across"),
    [((-3.0, -2.75, -2.75, -2.5), (-2.0,)), ((-3.0,), (-2.5, *[-2.25] * 6, -2.0))],
)
def test_of_four_nodes_the_gap_is_wider_than_either_side(
    within: tuple[float, ...], across: tuple[float, ...]
) -> None:
    """Sides are half wide."""
    assert parts(halves(2, within, across)) == NO_PARTS
    wider = [x + 0.125 for x in across]
    assert [len(part) for part in parts(halves(2, within, wider))[0]] == [2, 2]


def test_of_six_nodes_the_gap_is_wider_than_a_tenth() -> None:
    within = [-3 + 0.04 * k for k in range(12)]
    for gap, expected in ((0.09, []), (0.1, [3, 3])):
        across = [within[-1] + gap + 0.04 * k for k in range(18)]
        assert [len(part) for part in parts(halves(3, within, across))[0]] == expected, gap


def test_in_each_of_three_launches_half_of_the_links_between_parts_are_slow() -> None:
    whole = parted(2, 2)
    none = [{("n1", "n2"): -3.0}, {("n1", "n3"): -1.0}, {}]  # of which nothing can be said
    assert parts(whole, [whole] * 3 + none) == parts(whole)
    assert parts(whole, [whole] * 2 + none) == NO_PARTS
    assert parts(whole, none) == NO_PARTS
    least = math.log(1 + LEAST)
    for slow, expected in ((0.0, NO_PARTS), (least, NO_PARTS), (least + 0.001, parts(whole))):
        assert parts(whole, [whole, whole, parted(2, 2, fast=0.0, slow=slow)]) == expected, slow


# ------------------------------------------------------------------ links that stand out

A, B, C, D, E, F, G = ((f"n{k}", "m") for k in range(7))


def outliers(
    medians: Mapping[Pair, float], launches: Sequence[Mapping[Pair, float]], noise: float = 0.0
) -> Links:
    return pairs._outliers(medians, launches, noise)


def but(one: float, *others: Pair) -> Links:
    return {A: one} | dict.fromkeys(others, 0.0)


def test_a_link_stands_out_of_two_others_or_more() -> None:
    assert outliers({}, [{}]) == outliers({A: 9.0}, [{A: 9.0}] * 3) == {}
    assert outliers(but(9.0, B), [but(9.0, B)] * 9) == {}
    assert outliers(but(1.0, B, C), [but(1.0, B, C), {}] * 3) == {A: math.e}


def test_a_link_stands_out_by_five_deviations() -> None:
    """The others lie 0.1 off their median: by hand, five deviations of the seven are 1.016."""
    for x, expected in ((1.00, []), (1.05, [A])):
        values = {A: x, B: -0.1, C: -0.1, D: -0.1, E: 0.0, F: 0.1, G: 0.1}
        for centre in (-2.0, 0.0, 2.0):
            moved = {who: value + centre for who, value in values.items()}
            slow = outliers(moved, [moved] * 3)
            assert list(slow) == expected, (x, centre)
            assert list(slow.values()) == pytest.approx([math.exp(x)] * len(expected))


def test_a_link_stands_out_of_what_launches_differ_by_in_each() -> None:
    for medians, launch, expected in ((2.5, 3.0, []), (3.0, 2.5, []), (2.6, 2.6, [A])):
        slow = outliers(but(medians, B, C, D), [but(launch, B, C, D)] * 4, 0.5)
        assert list(slow) == expected, (medians, launch)


def test_a_link_stands_out_time_after_time() -> None:
    """By the binomial distribution, by hand: in three launches of three 0.0087 among three links;
    in three of six 0.0103 among four; two among seven in four of four 0.0112, in five 0.0019."""
    once, never = but(1.0, B, C, D), but(0.0, B, C, D)
    assert list(outliers(but(1.0, B, C), [but(1.0, B, C)] * 3)) == [A]
    assert list(outliers(but(1.0, B, C), [but(1.0, B, C)] * 2)) == []
    assert list(outliers(once, [once] * 3 + [never] * 3)) == []
    assert list(outliers(once, [once] * 4 + [never] * 2)) == [A]
    both = {A: 1.0, B: 1.0} | dict.fromkeys((C, D, E, F, G), 0.0)
    assert list(outliers(both, [both] * 4)) == []
    assert list(outliers(both, [both] * 5)) == [A, B]


# ------------------------------------------------------------------ findings

SENDER = SlowNode("n3", 2.0, Way.SENDING)
LINK = (("n1", "n2"), 3.0)


def made(count: int, **other: Any) -> PairMatrix:
    return PairMatrix(
        "mpich@5/ofi", "4x1", "bandwidth", "MB/s", 8, nodes(count), (), 1e4, 3, **other
    )  # fmt: skip


def test_of_two_nodes_there_is_a_note() -> None:
    (note,) = pair_findings(made(2))
    assert (note.level, note.code) == (Level.INFO, "two-nodes")
    assert matches(note, "two-nodes", nodes="n1 and n2")
    assert pair_findings(made(3)) == ()


def test_a_slow_node_and_a_slow_link_have_a_warning_each() -> None:
    node, link = pair_findings(made(4, slow_nodes=(SENDER,), slow_links=(LINK,)))
    assert (node.level, node.code) == (Level.WARNING, "slow-node")
    assert matches(
        node, "slow-node", direction="in sending", head="mpich@5/ofi: bandwidth", node="n3",
        times="2.00",
    )  # fmt: skip
    assert "part" not in node.message
    assert (link.level, link.code) == (Level.WARNING, "slow-link")
    assert matches(
        link, "slow-link", a="n1", b="n2", compared="times as slow as the median of 1e+04 MB/s",
        head="mpich@5/ofi: bandwidth", times="3.00",
    )  # fmt: skip


def test_parts_have_a_warning_and_what_is_slow_is_slow_within_its_own() -> None:
    groups = (tuple("abcdefghi"), tuple("klmnopqr"))
    node, link, apart = pair_findings(
        made(17, slow_nodes=(SENDER,), slow_links=(LINK,), parts=groups, between=2.5)
    )
    assert matches(node, "slow-node", inside="within its part")
    assert matches(link, "slow-link", compared="as the median within its part")
    assert (apart.level, apart.code) == (Level.WARNING, "slow-between")
    assert matches(
        apart, "slow-between", between="2.50",
        groups="(a, b, c, d, e, f, g, h ...) and (k, l, m, n, o, p, q, r)",
        head="mpich@5/ofi: bandwidth",
    )  # fmt: skip


@pytest.mark.parametrize(("slow", "more"), [((8, 8), 0), ((10, 11), 5), ((1, 9), 1), ((9, 1), 1)])
def test_findings_name_eight_nodes_and_links_and_count_the_rest(
    slow: tuple[int, int], more: int
) -> None:
    every = pair_findings(made(12, slow_nodes=(SENDER,) * slow[0], slow_links=(LINK,) * slow[1]))
    codes = (
        ["slow-node"] * min(slow[0], 8)
        + ["slow-link"] * min(slow[1], 8)
        + ["slow-link-more"] * bool(more)
    )
    assert [one.code for one in every] == codes
    assert {one.level for one in every} == {Level.WARNING}
    assert every[-1].message.endswith(f": and {more} more nodes and links") is bool(more)


def test_a_direction_is_named_where_there_is_one() -> None:
    assert direction_phrase(Way.EITHER) == ""
    assert direction_phrase(Way.SENDING) == " in sending"
    assert direction_phrase(Way.RECEIVING) == " in receiving"
    assert direction_phrase(Way.BOTH) == " in sending and in receiving"
