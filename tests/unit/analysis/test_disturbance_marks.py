"""Which launches are marked as disturbed, by how much, and how a finding counts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpigraft.analysis import disturbance
from mpigraft.core.model import (
    CpuUse,
    Finding,
    LaunchRecord,
    Level,
)
from tests.builders.campaigns import row
from tests.builders.messages import matches, shows
from tests.unit.analysis.test_disturbance import launch, use


@pytest.mark.parametrize(
    ("others", "wall_s", "share"),
    [(0.5, 4.0, 0.49), (0.5, 0.5, 0.42), (0.001, 4.0, 0.0), (0.9, 0.0, 0.0)],
)
def test_what_the_kernel_counts_too_coarsely_is_not_taken(
    others: float, wall_s: float, share: float
) -> None:
    assert disturbance.taken(use(others, wall_s=wall_s)) == pytest.approx(share)


TENTH, MORE, LESS = (use(x, wall_s=4.0) for x in (0.11, 0.3, 0.1))  # less a hundredth


def test_a_tenth_of_one_nodes_cpus_marks_a_launch() -> None:
    assert disturbance.taken(TENTH) == disturbance.TAKEN
    assert disturbance.is_disturbed(launch(("k0", 0, 0), LESS, TENTH))
    assert not disturbance.is_disturbed(launch(("k0", 0, 0), LESS, LESS))
    assert not disturbance.is_disturbed(replace(launch(("k0", 0, 0)), conditions=None))


def finding(*launches: LaunchRecord) -> Finding:
    (one,) = disturbance.disturbance_findings(launches, {"k0": "mpi@k0"})
    return one


def test_rounds_are_counted_whose_launches_have_conditions() -> None:
    unknown = replace(launch(("k0", 2, 0)), conditions=None)
    one = finding(launch(("k0", 0, 0), TENTH, LESS), launch(("k0", 1, 0), MORE), unknown)
    assert (one.level, one.code) == (Level.WARNING, "cpu-taken")
    assert matches(one, "cpu-taken", count=2, hosts="n1", known=2, range="11 to 30 %", rounds="")
    assert list(disturbance.disturbance_findings([launch(("k0", 0, 0), LESS), unknown], {})) == []


def test_configurations_are_counted_apart_where_they_differ() -> None:
    base = launch(("base", 0, 0), MORE)
    alike = finding(base, launch(("k0", 0, 0), MORE))
    assert shows(alike.message, "1 of 1 rounds; 30 % of the CPUs of n1")
    other = finding(base, launch(("k0", 0, 0), LESS))
    assert shows(other.message.split(": ")[1], "base in 1, 1 of 2 in none", "30 %", "n1")
    both = finding(base, *(launch(("k0", n, 0), MORE) for n in (0, 1)))
    assert shows(both.message, "base in 1, mpi@k0 in 2")
    assert not shows(both.message, "in none")


@pytest.mark.parametrize(("count", "more"), [(12, ""), (13, " and 1 more"), (15, " and 3 more")])
def test_twelve_rounds_and_hosts_are_named_and_the_rest_counted(count: int, more: str) -> None:
    quiet = launch(("k0", count, 0), LESS)
    one = finding(quiet, *(launch(("k0", n, 0), use(0.3, host=f"n{n:02}")) for n in range(count)))
    first = range(12)
    assert f"({', '.join(str(n + 1) for n in first)}{more})" in one.message
    hosts = ", ".join(f"n{n:02}" for n in first)
    assert shows(one.message, "of the CPUs of", hosts + more)


def test_a_value_is_as_disturbed_as_its_own_launch() -> None:
    rows = [row(name, turn, 8, 1.0) for name in ("base", "k0") for turn in (0, 1)]
    loaded = [launch(("base", 0, 0), LESS), launch(("k0", 1, 0), TENTH)]
    assert [factor > 1 for factor in disturbance.slow_downs(rows, loaded)] == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ((use(0.05),), 1.0),
        ((use(0.1),), 1.5),
        ((use(0.05), use(0.15, host="n2")), 7 / 3),
        ((use(0.25),), 3.0),
        ((use(0.25), use(0.15, host="n2")), 9.0),
        ((use(0.5),), disturbance.UNBOUNDED),
        ((use(0.9),), disturbance.UNBOUNDED),
    ],
)
def test_a_median_is_slowed_at_most_as_if_ranks_lost_the_cpu_in_half_of_its_samples(
    uses: tuple[CpuUse, ...], expected: float
) -> None:
    assert disturbance.slow_down(uses) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "factor", "expected"),
    [
        ("latency", 1.0, 10.0),
        ("latency", 1.6, 6.25),
        ("bandwidth", 1.6, 16.0),
        ("message_rate", 1.6, 16.0),
        ("overlap", 1.0, 10.0),
        ("overlap", 1.6, 10.0 * disturbance.UNBOUNDED),
    ],
)
def test_a_time_is_divided_and_a_rate_multiplied_and_anything_else_has_no_bound(
    metric: str, factor: float, expected: float
) -> None:
    found = disturbance.without_slow_down(row("k0", 0, 8, 10.0, metric=metric), factor)
    assert found == row("k0", 0, 8, found.value, metric=metric)
    assert found.value == pytest.approx(expected)


def of_benchmark(others: float, benchmark: str, **changes: Any) -> CpuUse:
    return replace(use(others, **changes), benchmark=f"native:{benchmark}")


def test_a_benchmark_is_as_disturbed_as_its_own_record_says() -> None:
    """Others took a tenth of the launch, all during latency; a start has no record of its own."""
    names = ("latency", "latency,time=overall", "bw", "bw,window=1", "init_time", "launch_time")
    rows = [row("k0", 0, 8, 1.0, benchmark=f"native:{n}") for n in names]
    own = (of_benchmark(0.25, "latency"), of_benchmark(0.125, "latency", host="n2"))
    rest = (of_benchmark(0.05, "bw"), of_benchmark(0.3, "bw,window=1"), use(0.125, wall_s=9.0))
    loaded = launch(("k0", 0, 0), *own, *rest)
    assert disturbance.slow_downs(rows, [loaded]) == pytest.approx([7.0, 7.0, 1.0, 4.0, 3.0, 3.0])
    assert disturbance.is_disturbed(launch(("k0", 0, 0), own[0], use(0.02)))
    assert matches(finding(loaded), "cpu-taken", count=1, hosts="n1, n2", known=1, rounds="")


def test_what_is_too_short_to_be_sure_of_is_not_taken_for_clean() -> None:
    """Hundredths of a second may be a fifth of a short benchmark; the launch says which it was."""
    rows = [row("k0", 0, 8, 1.0)]
    short = of_benchmark(0.125, "latency", wall_s=0.2)
    for others, expected in ((0.05, 1.0), (0.2, 5 / 3)):
        loaded = launch(("k0", 0, 0), short, use(others))
        assert disturbance.slow_downs(rows, [loaded]) == pytest.approx([expected])


def test_without_its_record_what_others_took_may_all_have_fallen_on_one_benchmark() -> None:
    """Three benchmarks share a launch of which others took a tenth of two CPUs."""
    rows = [row("k0", 0, 8, 1.0, benchmark=f"native:{n}") for n in ("bw", "latency", "bibw")]
    rows += [rows[0]._replace(metric="message_rate"), row("k1", 0, 8, 1.0)]
    loaded = [launch((name, 0, 0), use(0.125, wall_s=9.0)) for name in ("k0", "k1")]
    assert disturbance.slow_downs(rows, loaded) == pytest.approx([7.0] * 4 + [5 / 3])
