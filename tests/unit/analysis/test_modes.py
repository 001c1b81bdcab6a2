"""Launches in two states are told from launches that only scatter."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.bimodality import bimodality_findings, widest_gap
from mpigraft.core.model import Level, ValueRow
from tests.builders.messages import matches

Draw = Callable[[random.Random], float]

# logarithms of a launch's time, as such a machine has them
SCATTERS: dict[str, Draw] = {
    "even": lambda r: r.uniform(0, 0.6),
    "normal": lambda r: r.gauss(0, 0.3),
    "skewed": lambda r: r.expovariate(3),
    "heavy tails": lambda r: 0.2 * r.gauss(0, 1) / math.sqrt(r.gammavariate(1.5, 2 / 3)),
    "quiet, and half of them disturbed": lambda r: (
        r.gauss(0, 0.02) if r.random() < 0.5 else r.uniform(0, 1)
    ),
}


def rows(
    logs: list[float], metric: str = "latency", replicas: int = 1, allocation: str = "job"
) -> list[ValueRow]:
    """Three sizes of one curve; each of `logs` is a launch, `replicas` of them a round."""
    return [
        ValueRow("key", "1x2", allocation, number // replicas, number % replicas,
                 "native:latency", metric, size, size * math.exp(log), "host")
        for number, log in enumerate(logs)
        for size in (1, 8, 64)
    ]  # fmt: skip


def beside(own: list[float], *others: list[float]) -> list[ValueRow]:
    """A configuration and others, `key1` and so on, in the same rounds; two launches of a round
    where another has twice as many."""
    return [
        *rows(own),
        *(
            row._replace(configuration=f"key{n}")
            for n, logs in enumerate(others, 1)
            for row in rows(logs, replicas=len(logs) // len(own))
        ),
    ]


def two_states(count: int, apart: float, seed: int, share: float = 0.5) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, 0.03) + (apart if rng.random() < share else 0) for _ in range(count)]


SLOW = [0.0, 0.41, 0.02, 0.4, 0.01, -0.01, 0.42, 0.0, 0.43, 0.02]


def test_the_rounds_of_the_slower_group_are_named() -> None:
    (finding,) = bimodality_findings(rows(SLOW), {"key": "openmpi"})
    assert (finding.code, finding.level) == ("two-groups", Level.WARNING)
    assert matches(
        finding, "two-groups", label="openmpi",
        texts="native:latency on 1x2, 4 of 10 launches 1.51 times slower (rounds 2, 4, 7, 9)",
    )  # fmt: skip


def test_of_a_bandwidth_the_lower_group_is_the_slower() -> None:
    (finding,) = bimodality_findings(rows(SLOW, "bandwidth"), {})
    assert matches(
        finding, "two-groups", texts="6 of 10 launches 1.51 times slower (rounds 1, 3, 5, 6, 8, 10)"
    )


def test_two_metrics_of_one_measurement_fall_into_groups_once() -> None:
    bandwidths = rows(SLOW, "bandwidth")
    rates = [r._replace(metric="message_rate", value=r.value / r.size) for r in bandwidths]
    assert bimodality_findings([*rates, *bandwidths], {}) == bimodality_findings(bandwidths, {})


def test_each_launch_of_a_round_is_one() -> None:
    """A round's two launches may be in two states; their median would be in neither."""
    (finding,) = bimodality_findings(rows([*SLOW, *SLOW], replicas=2), {})
    assert matches(
        finding, "two-groups", texts=("8 of 20 launches", "(rounds 1, 2, 4, 5, 6, 7, 9, 10)")
    )


@pytest.mark.parametrize("rounds", [8, 12, 20])
@pytest.mark.parametrize("name", SCATTERS)
def test_one_group_is_none(name: str, rounds: int) -> None:
    """At most 2.5 % of curves where half of the launches are disturbed, 0.8 % of others."""
    rng = random.Random(name)
    findings = [
        bimodality_findings(rows([SCATTERS[name](rng) for _ in range(rounds)]), {})
        for _ in range(100)
    ]
    assert sum(map(bool, findings)) <= 4


@pytest.mark.parametrize(("rounds", "least"), [(12, 10), (20, 17)])
def test_two_states_are_reported(rounds: int, least: int) -> None:
    """Launches that vary by 3 %, and half of which take half as long again."""
    findings = [bimodality_findings(rows(two_states(rounds, 0.41, seed)), {}) for seed in range(20)]
    assert sum(map(bool, findings)) >= least


def quiet(count: int, seed: int = 1, spread: float = 0.03) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, spread) for _ in range(count)]


AWAY = (10, 11, 12, 13, 15)  # rounds in which the CPUs of a machine had moved apart
TIMES = math.log(3.2)


def test_a_state_of_the_machine_is_no_configurations() -> None:
    """5 of 20 launches 3.2 times slower, and 7 of the baseline's 40, all in five rounds."""
    own = [x + TIMES * (n in AWAY) for n, x in enumerate(quiet(20))]
    base = quiet(40, 2)
    for launch in (20, 21, 22, 24, 25, 26, 30):
        base[launch] += TIMES
    (finding,) = bimodality_findings(beside(own, base), {"key": "grafted", "key1": "baseline"})
    assert (finding.code, finding.level) == ("slow-rounds", Level.WARNING)
    assert matches(
        finding, "slow-rounds",
        share="5 of 20 launches 3.19 times slower (rounds 11, 12, 13, 14, 16)",
    )  # fmt: skip
    assert "grafted" not in finding.message
    (alone,) = bimodality_findings(
        beside(own, quiet(40, 2)), {"key": "grafted", "key1": "baseline"}
    )
    assert matches(alone, "two-groups", label="grafted")


def test_of_many_configurations_most_have_to_share_a_state() -> None:
    own = [x + 0.41 * (n % 2) for n, x in enumerate(quiet(20))]
    like = [x + 0.41 * (n % 2) for n, x in enumerate(quiet(20, 2))]
    (finding,) = bimodality_findings(beside(own, like, like, quiet(20, 3)), {})
    assert finding.code == "slow-rounds"
    both = bimodality_findings(beside(own, like, quiet(20, 3), quiet(20, 4)), {})
    assert [f.code for f in both] == ["two-groups"] * 2


def test_a_state_that_the_others_share_by_a_third_is_the_machines() -> None:
    own = [x + 0.9 * (n % 2) for n, x in enumerate(quiet(20))]
    for share, code in ((0.3, "two-groups"), (0.4, "slow-rounds")):
        base = [x + share * 0.9 * (n % 2) for n, x in enumerate(quiet(20, 2))]
        (finding,) = bimodality_findings(beside(own, base), {"key1": "baseline"})
        assert finding.code == code
        assert "baseline" not in finding.message


def test_groups_are_reported_though_rounds_vary() -> None:
    """By 30 %, and two states 1.5 apart; nobody is blamed for the rounds, nor for another's."""
    levels = quiet(20, 3, 0.3)
    states = random.Random(4).sample([0.41, 0.0] * 10, 20)
    own = [a + b + c for a, b, c in zip(levels, quiet(20), states, strict=True)]
    base = [levels[n // 2] + x for n, x in enumerate(quiet(40, 2))]
    assert not bimodality_findings(rows(own), {})
    (finding,) = bimodality_findings(beside(own, base), {"key": "mine"})
    assert matches(finding, "two-groups", label="mine", texts="10 of 20 launches")
    assert not bimodality_findings(
        beside([a + b for a, b in zip(levels, quiet(20), strict=True)], base), {}
    )


def test_a_configuration_that_did_not_move_is_not_named() -> None:
    """The others took two states: what is left of this one has two as well."""
    levels = quiet(20, 3, 0.3)
    slow = [level + 0.41 * (n % 2) for n, level in enumerate(levels)]
    other = [a + b for a, b in zip(slow, quiet(20, 5), strict=True)]
    for away in (0.0, -0.15):
        own = [
            x + away * (n % 2) + y for n, (x, y) in enumerate(zip(levels, quiet(20), strict=True))
        ]
        assert not [
            f
            for f in bimodality_findings(beside(own, other), {"key": "mine"})
            if "mine" in f.message
        ]


def test_shared_states_are_reported_by_the_configuration_that_moved_most() -> None:
    near, far = ([x + a * (n in AWAY) for n, x in enumerate(quiet(20))] for a in (0.5, 0.6))
    both = beside(near, far)
    both += [row._replace(benchmark="native:bcast") for row in beside(far, near)]
    (finding,) = bimodality_findings(both, {})
    assert finding.message.count("5 of 20 launches 1.82 times slower") == 2


@pytest.mark.parametrize("lost", [AWAY, tuple(set(range(20)) - set(AWAY))])
def test_a_configuration_that_was_not_launched_shares_no_state(lost: tuple[int, ...]) -> None:
    own = [x + 0.6 * (n in AWAY) for n, x in enumerate(quiet(20))]
    every = [
        r for r in beside(own, quiet(20, 2)) if r.configuration == "key" or r.round not in lost
    ]
    (finding,) = bimodality_findings(every, {})
    assert finding.code == "two-groups"


def test_rounds_of_another_job_or_benchmark_are_no_company() -> None:
    own = [x + TIMES * (n in AWAY) for n, x in enumerate(quiet(20))]
    both = beside(own, own)
    assert [f.code for f in bimodality_findings(both, {})] == ["slow-rounds"]
    for change in ("allocation", "layout", "benchmark"):
        other = {change: "native:other"}
        apart = [
            r if r.configuration == "key" else r._replace(**other)  # type: ignore[arg-type]
            for r in both
        ]
        assert [f.code for f in bimodality_findings(apart, {})] == ["two-groups"] * 2


def test_few_rounds_have_no_trend() -> None:
    exact = [0.0, 0.5, 0.001, 0.501, 0.002, 0.502, 0.003]
    assert not bimodality_findings(rows(exact), {})
    assert bimodality_findings(rows([*exact, 0.503]), {})
    assert not bimodality_findings(rows([*exact, *(x + 0.0001 for x in exact)], replicas=2), {})


def test_two_slow_launches_are_no_group() -> None:
    steady = [0.001 * k for k in range(18)]
    assert not bimodality_findings(rows([*steady, 0.5, 0.501]), {})
    assert not bimodality_findings(
        rows([*steady, 0.5, 0.501, 0.5015, 0.502]), {}
    )  # fewer than a fifth
    assert bimodality_findings(rows([*steady, 0.5, 0.501, 0.5015, 0.502, 0.5035]), {})


def test_groups_too_near_to_matter_are_not_reported() -> None:
    for times, count in ((1.09, 0), (1.12, 1)):
        near = [x / 100 + (math.log(times) if x > 0.2 else 0) for x in SLOW]
        assert len(bimodality_findings(rows(near), {})) == count


def test_rounded_values_are_no_groups() -> None:
    """A program that prints 9 or 10 is in no two states."""
    assert not bimodality_findings(rows([math.log(9 + k % 2) for k in range(60)]), {})
    assert not bimodality_findings(rows([math.log(9 + k % 3) for k in range(60)]), {})


def test_many_curves_ask_for_more() -> None:
    weak = two_states(12, 0.3, 3)
    assert bimodality_findings(rows(weak), {})
    others = [
        row._replace(benchmark=f"native:other{k}")
        for k in range(300)
        for row in rows([0.01 * (n * 7 % 12) for n in range(12)])
    ]
    assert not bimodality_findings([*rows(weak), *others], {})


def test_the_chance_is_multiplied_by_the_number_of_curves() -> None:
    """3.3 % for the one that the formula's test has, 6.7 % of two."""
    one = rows([0.1 * x for x in TEN])
    even = [row._replace(benchmark="native:bw") for row in rows([0.1 * k for k in range(10)])]
    assert bimodality_findings(one, {})
    assert not bimodality_findings([*one, *even], {})


def test_jobs_on_unlike_nodes_are_no_groups() -> None:
    one, other = rows([0.001 * k for k in range(10)]), rows([0.5 + 0.001 * k for k in range(10)])
    assert not bimodality_findings([*one, *(r._replace(allocation="b") for r in other)], {})


def test_many_curves_and_rounds_are_counted_rather_than_listed() -> None:
    many = [
        row._replace(benchmark=f"native:b{k}")
        for k in range(6)
        for row in rows([0.001 * n + 0.3 * (n % 2) + 0.01 * k * (n % 2) for n in range(40)])
    ]
    (finding,) = bimodality_findings(many, {})
    assert "and 8 more)" in finding.message
    assert finding.message.endswith("; and 2 more")
    assert finding.message.index("native:b5") < finding.message.index("native:b4")


@given(st.lists(st.floats(-1e6, 1e6), max_size=30))
def test_any_values_have_a_chance(values: list[float]) -> None:
    chance, border = widest_gap(values)
    assert 0 <= chance <= 1
    assert math.isnan(border) or min(values) <= border <= max(values)
    mirrored, there = widest_gap([-x for x in values])
    assert mirrored == pytest.approx(chance, rel=1e-6, abs=1e-12)
    assert math.isnan(there) == math.isnan(border)


TEN = [0, 1, 2, 3, 4, 14, 15, 16, 17, 18]


def test_the_chance_is_the_formulas() -> None:
    """Ten values, gaps of 1 but for one of 10 with five on either side: five gaps leave three
    values on both sides; beside this one stand four gaps of 1 each."""
    chance, border = widest_gap(TEN)
    assert chance == pytest.approx(5 * (1 - 10 / 14) ** 4)
    assert border == 9


def test_the_wider_side_counts() -> None:
    quiet = [0.0, 0.1, 0.2, 0.3, 0.4]
    for values in ([*quiet, 10, 12, 14, 16, 18], [-x for x in (*quiet, 10, 12, 14, 16, 18)]):
        chance, border = widest_gap(values)
        assert chance == pytest.approx(5 * (1 - 9.6 / 17.6) ** 4)
        assert abs(border) == pytest.approx(5.2)


def test_three_launches_are_the_smallest_group() -> None:
    for own, grouped in ((2, False), (3, True)):
        values = [0.01 * k for k in range(own)] + [50 + 0.01 * k for k in range(10 - own)]
        for sign in (1, -1):
            _, border = widest_gap([sign * x for x in values])
            assert (abs(border) < 50 and abs(border) > 1) is grouped


def test_a_gap_of_three_of_the_smallest_steps_is_one() -> None:
    for gap, grouped in ((2, False), (3, True)):
        _, border = widest_gap([0, 0, 1, 1, 2, 2, *(2 + gap + k // 2 for k in range(6))])
        assert math.isnan(border) is not grouped


def test_no_chance_is_above_one() -> None:
    chance, border = widest_gap([3 * k for k in range(9)] + [25])
    assert (chance, math.isnan(border)) == (1.0, False)
    chance, border = widest_gap([5.0] * 10)
    assert (chance, math.isnan(border)) == (1.0, True)
    assert widest_gap([1, 2])[0] == 1.0
