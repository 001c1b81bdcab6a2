"""Each detector that reads curves finds its planted case, and not the near miss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mpigraft.analysis.shapes import MeasuredCurve, curve_of, issues_of_curves
from mpigraft.core.model import SeriesKey, Value
from mpigraft.knowledge import known_issues
from tests.builders.messages import shows

DATA = Path(__file__).resolve().parents[2] / "data"
SIZES = [1 << power for power in range(23)]


def once(value: float) -> Value:
    return Value(value, (value,), ())


def read(path: str, benchmark: str, *, layout: str = "unknown", label: str = "a") -> MeasuredCurve:
    rows = [line.split() for line in (DATA / path).read_text().splitlines() if line[:1].isdigit()]
    metric = "bandwidth" if benchmark in ("bw", "bibw") else "latency"
    key = SeriesKey(f"osu:{benchmark}", metric, layout, "cuda")
    return curve_of(key, label, {int(size): once(float(value)) for size, value, *_ in rows})


def made(
    values: Sequence[float], benchmark: str = "bw", layout: str = "1x2", label: str = "a"
) -> MeasuredCurve:
    metric = "latency" if benchmark in ("latency", "alltoall") else "bandwidth"
    key = SeriesKey(f"osu:{benchmark}", metric, layout, "host")
    return curve_of(key, label, {s: once(v) for s, v in zip(SIZES, values, strict=False)})


OLIVIA = "olivia/2025-eessi-2023.06-openmpi-4.1.6.{}.txt"
RATE = [min(10.0 * size, 24_100.0) for size in SIZES]
COPIES = [min(10.0 * size, 12_000.0) for size in SIZES]
SLOWER = [
    value / (2 if size >= 1 << 16 else 1.05) for size, value in zip(SIZES, COPIES, strict=True)
]
ALL_SLOWER = [value / 2 for value in COPIES]
# libfabric#8221, osu_bw of Open MPI's sm and of libfabric's shm on one node
MEMORY = [14.23, 28.86, 56.06, 114.76, 225.11, 446.38, 652.51, 958.51, 1641.82, 4086.58, 7026.63,
          8173.68, 7216.72, 11076.94, 14799.03, 18319.78, 21946, 19847.47, 22341.97, 22308.87,
          23412.34, 23597.94, 23412.66]  # fmt: skip

# issue -> (curves that show it, curves that do not)
CASES: dict[str, tuple[list[MeasuredCurve], list[MeasuredCurve]]] = {
    "CXI-01": (
        [read(OLIVIA.format("latency"), "latency")],
        [read("olivia/2026-eessi-2025.06-openmpi-5.0.3.latency.txt", "latency")],
    ),
    "CXI-11": ([made(RATE)], [made(MEMORY)]),
    "CXI-13": (
        [read("published/libfabric-10822.alltoall.txt", "alltoall")],
        [read("archer2/OFI/osu_alltoall_8nodes_1024processes_202203071614.dat", "alltoall")],
    ),
    "CMA-03": (
        [made(COPIES, label="base"), made(SLOWER)],
        [made(COPIES, label="base"), made(ALL_SLOWER)],
    ),
    "COL-05": (
        [
            read(f"published/mpich-2530.{n}.alltoall.txt", "alltoall", layout=f"10x{n}")
            for n in (32, 36)
        ],
        [made([90.0, 91, 92], "alltoall", "10x32"), made([400.0, 410, 420], "alltoall", "10x36")],
    ),
    "VAL-01": (
        [read("olivia/2025-cray-mpich-8.1.32.bibw.txt", "bibw")],
        [read("olivia/2026-cray-mpich-9.1.0.bibw.txt", "bibw")],
    ),
    "VAL-05": (
        [read("archer2/OFI/osu_allreduce_128nodes_16384processes_202203081242.dat", "allreduce")],
        [read("olivia/2026-cray-mpich-9.1.0.bibw.txt", "bibw")],
    ),
    "VAL-02": (
        [read("published/easyconfigs-25902.bw.txt", "bw")],
        [read(OLIVIA.format("bibw"), "bibw")],
    ),
    "VAL-03": (
        [made([10.0, 10, 60, 60, 61, 12, 12, 13], "latency")],
        [made([10.0, 10, 60, 60, 61, 62, 62, 63], "latency")],
    ),
}


def found(curves: list[MeasuredCurve]) -> set[str]:
    return {match.issue.id for match in issues_of_curves(curves, "base")}


def test_every_detector_has_a_case() -> None:
    kinds = {"curve", "ratio"}
    assert CASES.keys() == {i.id for i in known_issues() if kinds & set(i.detect.kinds)}


@pytest.mark.parametrize("name", CASES)
def test_a_curve_is_found_and_a_near_miss_is_not(name: str) -> None:
    fires, quiet = CASES[name]
    assert name in found(fires)
    assert name not in found(quiet)


def test_olivia_of_2025_has_its_two_known_faults_and_2026_none() -> None:
    (step,) = issues_of_curves(CASES["CXI-01"][0])
    assert step.sure == "matches"
    assert shows(step.message, "11.7 to 12.4 us at 1 B to 128 B", "3.76 us at 256 B")
    (cell,) = issues_of_curves(CASES["VAL-01"][0])
    assert cell.sure == "measured"
    assert shows(cell.message, "1852 MB/s at 8 KiB", "4069 MB/s", "18564 MB/s")
    for path in sorted((DATA / "olivia").glob("2026-*")):
        assert not found([read(f"olivia/{path.name}", path.name.split(".")[-2])]), path.name


def test_a_published_alltoall_has_its_slow_sizes_and_its_odd_one() -> None:
    matches = issues_of_curves(CASES["CXI-13"][0])
    assert [match.issue.id for match in matches] == ["CXI-13", "VAL-01"]
    assert shows(matches[0].message, "685 to 700 us at 4 B to 256 B", "69.7 us", "60.5 us")
    assert shows(matches[1].message, "5430 us at 8 KiB")


def test_ranks_a_node_are_compared_with_fewer() -> None:
    (match,) = issues_of_curves(CASES["COL-05"][0])
    assert shows(match.of, "osu:alltoall on 10x36")
    assert shows(match.message, "17616 us at 2 B", "88.5 us at 2 B", "10x32")


@pytest.mark.parametrize("count", range(5))
def test_a_curve_of_few_sizes_has_no_shape(count: int) -> None:
    assert not found([made([10.0, 1000.0, 10.0, 1000.0, 10.0][:count], "latency")])


def test_values_of_no_size_and_of_nothing_are_left_out() -> None:
    key = SeriesKey("osu:init", "init_time", "1x2", "host")
    assert curve_of(key, "a", {0: once(12.0), 1: once(0.0)}).sizes == ()
    assert not found([curve_of(key, "a", {0: once(12.0)})])


def test_the_worst_of_several_odd_sizes_is_described() -> None:
    (match,) = issues_of_curves([made([10.0, 90, 10, 10, 50, 10, 10, 11], "latency")])
    assert shows(match.message, "90.0 us at 2 B", "1 other size")
    assert match.level == 9


def test_what_the_best_rounds_do_not_show_was_a_disturbance() -> None:
    key = SeriesKey("osu:latency", "latency", "1x2", "host")
    steady = {size: once(10.0) for size in SIZES}
    for best, due in ((60.0, {"VAL-01"}), (11.0, set())):
        curve = curve_of(key, "a", {**steady, 64: Value(70.0, (80.0, 70.0, best), ())})
        assert found([curve]) == due
