"""Where each shape of a curve begins and ends, and which curves a detector examines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mpigraft.analysis.shapes import SHAPES, MeasuredCurve, curve_of, issues_of_curves
from mpigraft.core.model import SeriesKey, Value
from mpigraft.knowledge import CurveShape, Shape
from mpigraft.knowledge.issues import NumberRange
from tests.builders.messages import shows
from tests.unit.analysis.test_shapes import CASES, COPIES, RATE, SLOWER, made

LARGE = NumberRange(1024, 4096)  # where no curve here has a shape
# shape, times at 1, 2, 4 ... B, sizes of each place, its level; the factor is 2
PLACES: list[tuple[str, list[float], list[tuple[int, ...]], float]] = [
    ("drop", [10, 10, 10, 4, 4, 4], [(1, 2, 4)], 2.5),
    ("drop", [10, 10, 4, 4, 4], [(1, 2)], 2.5),
    ("drop", [10, 13, 10, 5, 5], [(1, 2, 4)], 2),
    ("drop", [10, 14, 10, 4, 4], [], 0),
    ("drop", [10, 13, 10, 5.1, 5], [], 0),
    ("drop", [10, 10, 10, 4, 9, 9], [], 0),
    ("drop", [10, 10, 10, 10, 4], [], 0),
    ("odd", [10, 10, 20, 10, 10], [(4,)], 2),
    ("odd", [10, 20, 10, 10, 10], [(2,)], 2),
    ("odd", [10, 10, 10, 20, 10], [(8,)], 2),
    ("odd", [10, 10, 19, 10, 10], [], 0),
    ("odd", [10, 20, 15, 10, 10], [], 0),
    ("odd", [10, 10, 10, 10, 20], [], 0),
    ("hump", [10, 20, 20, 10, 10], [(2, 4)], 2),
    ("hump", [10, 10, 20, 30, 24, 10, 10], [(4, 8, 16)], 2),
    ("hump", [10, 30, 30, 10, 30, 30, 10], [(2, 4), (16, 32)], 3),
    ("hump", [10, 10, 10, 20, 20, 10], [(8, 16)], 2),
    ("hump", [10, 20, 20, 11, 10], [], 0),
    ("hump", [10, 20, 10, 10, 10], [], 0),
    ("hump", [10, 10, 20, 20, 20], [], 0),
    ("cliff", [1, 2, 16, 32, 64], [(4,)], 4),
    ("cliff", [1, 2, 8, 16, 32], [(4,)], 2),
    ("cliff", [1, 8, 16, 32, 64], [(2,)], 4),
    ("cliff", [1, 2, 7.9, 16, 32], [], 0),
    ("cliff", [1, 2, 16, 13, 64], [(4,)], 4),
    ("cliff", [1, 2, 16, 64, 12], [], 0),
    ("cliff", [1, 2, 4, 32, 64], [], 0),
]


@pytest.mark.parametrize(("shape", "times", "places", "level"), PLACES)
def test_a_shape_is_where_it_begins_and_ends(
    shape: str, times: Sequence[float], places: list[tuple[int, ...]], level: float
) -> None:
    rule = CurveShape(shape=Shape(shape))
    hits = [*SHAPES[rule.shape](made(times, "latency"), rule)]
    assert [hit.sizes for hit in hits] == places
    assert all(hit.level == pytest.approx(level) for hit in hits[:1])
    assert not [*SHAPES[rule.shape](made(times, "latency"), replace(rule, sizes=LARGE))]


@pytest.mark.parametrize(
    ("last", "due"),
    [
        ([100, 101, 100, 102], True), ([100, 101, 100, 102.1], False),
        ([108.5, 109, 110, 110.5], False), ([111, 111, 111, 111], False), ([89] * 4, False),
    ],
)  # fmt: skip
def test_a_plateau_is_flat_and_wholly_in_its_rate(last: list[float], due: bool) -> None:
    rule = CurveShape(shape=Shape.PLATEAU, rate=NumberRange(90, 110))
    hits = [*SHAPES[rule.shape](made([10, 50, *last]), rule)]
    assert [hit.sizes for hit in hits] == ([(4, 8, 16, 32)] if due else [])


def ids(*curves: MeasuredCurve, baseline: str = "base") -> set[str]:
    return {match.issue.id for match in issues_of_curves(curves, baseline)}


def test_a_detector_of_gpus_or_of_one_node_examines_no_other_curve() -> None:
    (step,) = CASES["CXI-01"][0]
    assert "CXI-01" not in ids(replace(step, key=step.key._replace(buffers="host")))
    assert "CXI-01" not in ids(replace(step, key=step.key._replace(metric="bandwidth")))
    for layout in ("2x2", "unknown", "1nodes"):
        assert "CXI-11" not in ids(made(RATE, layout=layout))
    assert "CXI-11" not in ids(made(RATE, "bibw"))


def test_metrics_that_are_no_times_have_no_shape() -> None:
    spiky = made([10.0, 90, 10, 10, 50, 10, 10, 11], "latency")
    assert "VAL-01" in ids(spiky)
    assert not ids(replace(spiky, key=spiky.key._replace(metric="overlap")))


def test_a_baseline_is_of_the_same_layout_and_is_named() -> None:
    base, slow = made(COPIES, label="base"), made(SLOWER)
    assert "CMA-03" in ids(base, slow)
    assert "CMA-03" in ids(base, replace(slow, label="app.sif:openmpi@5.0.11/ob1-sm"))
    for other in ("mpich@5.0.2/ucx", "cray-mpich@9.1.0/ofi-cxi"):  # the issue is of Open MPI
        assert "CMA-03" not in ids(base, replace(slow, label=other))
    assert "CMA-03" not in ids(base, slow, baseline="")
    assert "CMA-03" not in ids(base, slow, baseline="other")
    assert "CMA-03" not in ids(replace(base, key=base.key._replace(layout="1x4")), slow)
    assert "CMA-03" not in ids(replace(base, key=base.key._replace(benchmark="osu:bibw")), slow)


def test_more_ranks_are_compared_with_fewer_on_as_many_nodes() -> None:
    fewer, more = CASES["COL-05"][0]
    for layout in ("5x32", "10x36", "10x40", "unknown"):
        other = replace(fewer, key=fewer.key._replace(layout=layout))
        assert "COL-05" not in ids(other, more), layout
    assert "COL-05" not in ids(replace(fewer, label="b"), more)
    single = replace(fewer, sizes=(2,), values=fewer.values[:1], best=fewer.best[:1])
    assert "COL-05" not in ids(single, more)


def test_the_best_round_is_the_fastest_by_the_metric() -> None:
    key = SeriesKey("osu:bw", "bandwidth", "1x2", "host")
    values = {1: Value(50.0, (40.0, 50.0, 100.0), ()), 2: Value(50.0, (0.0, 50.0), ())}
    curve = curve_of(key, "a", values)
    assert (curve.sizes, curve.best) == ((1,), (100.0,))


def test_every_size_of_a_range_is_slower_and_in_the_best_rounds_too() -> None:
    base, slow = made(COPIES, label="base"), made(SLOWER)
    (match,) = (m for m in issues_of_curves((base, slow), "base") if m.issue.id == "CMA-03")
    assert shows(match.message, "64 KiB to 4 MiB", "6000 MB/s", "12000 MB/s", "of base")
    assert "CMA-03" not in ids(base, replace(slow, best=base.values))
    equal = (*slow.values[:-1], base.values[-1])
    assert "CMA-03" not in ids(base, replace(slow, values=equal, best=equal))
