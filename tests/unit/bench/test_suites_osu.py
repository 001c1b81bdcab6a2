"""OSU output of all versions: real files to the right numbers, damaged ones to a named refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import osu, osu_titles
from mpigraft.bench.suites.base import Parsed
from mpigraft.core.model import Benchmark, Level, Measurement
from tests.builders.messages import matches

DATA = Path(__file__).parents[2] / "data"
PLAIN = "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"


def parse(text: str) -> Parsed:
    return osu.parse(text.encode(), source="table")


def parse_file(name: str) -> Parsed:
    return osu.parse((DATA / name).read_bytes(), source=name)


def keys(parsed: Parsed) -> set[str]:
    return {m.benchmark.key for m in parsed.measurements}


def codes(parsed: Parsed) -> list[str]:
    return [f.code for f in parsed.findings]


def cells(parsed: Parsed) -> list[tuple[str, str, int, float]]:
    return [(m.benchmark.key, m.metric, m.size, m.value) for m in parsed.measurements]


# ------------------------------------------------------------------ real files


@pytest.mark.parametrize(
    ("name", "benchmark", "metric", "rows", "first", "last"),
    [
        ("osu-7.4/mpich-lat.out", "osu:latency", "latency", 11, (1, 9.86), (1024, 16.60)),
        ("osu-7.4/mpich-lat_c_z.out", "osu:latency", "latency", 11, (1, 1.51), (1024, 1.32)),
        ("osu-7.4/mpich-bibw.out", "osu:bibw", "bandwidth", 11, (1, 0.41), (1024, 409.72)),
        ("osu-7.4/mpich-bw_c.out", "osu:bw", "bandwidth", 11, (1, 0.24), (1024, 618.63)),
        ("osu-7.4/mpich-multi_lat.out", "osu:multi_lat", "latency", 11, (1, 1.40), (1024, 6.99)),
        ("osu-7.4/mpich-allreduce.out", "osu:allreduce", "latency", 11, (1, 0.63), (1024, 1.29)),
        ("osu-7.4/mpich-alltoallv_f.out", "osu:alltoallv", "latency", 11, (1, 1766.03),
         (1024, 3.36)),
        ("osu-7.4/mpich-barrier_f.out", "osu:barrier", "latency", 1, (0, 0.66), (0, 0.66)),
        ("osu-7.4/mpich-init.out", "osu:init", "init_time", 1, (0, 40.0), (0, 40.0)),
        ("osu-7.4/mpich-get_acc.out", "osu:get_acc_latency,sync=lock-unlock,window=create",
         "latency", 11, (1, 27.31), (1024, 5.51)),
        ("osu-7.4/mpich-put_lat.out", "osu:put_latency,sync=flush,window=allocate", "latency", 11,
         (1, 0.21), (1024, 0.22)),
        ("osu-7.4/openmpi-acc.out", "osu:acc_latency,sync=flush,window=allocate", "latency", 11,
         (1, 0.13), (1024, 0.21)),
        ("osu-7.4/openmpi-bibw.out", "osu:bibw", "bandwidth", 11, (1, 11.54), (1024, 2555.81)),
        ("osu-7.4/openmpi-get_bw.out", "osu:get_bw,sync=lock-unlock,window=create", "bandwidth", 3,
         (1, 0.05), (4, 0.51)),
        ("olivia/2025-cray-mpich-8.1.32.bibw.txt", "osu:bibw,buffers=cuda", "bandwidth", 23,
         (1, 1.06), (4194304, 46470.29)),
        ("olivia/2026-eessi-2025.06-openmpi-5.0.3.latency.txt", "osu:latency,buffers=cuda",
         "latency", 23, (1, 2.38), (4194304, 179.65)),
        ("archer2/OFI/osu_allreduce_8nodes_1024processes_202203071614.dat",
         "osu:allreduce,datatype=MPI_FLOAT", "latency", 19, (4, 13.21), (1048576, 2124.83)),
        ("archer2/UCX/osu_alltoallv_128nodes_16384processes_202203081722.dat", "osu:alltoallv",
         "latency", 5, (1, 368971.29), (16, 504821.10)),
    ],
)  # fmt: skip
def test_a_real_file_gives_its_numbers(
    name: str,
    benchmark: str,
    metric: str,
    rows: int,
    first: tuple[int, float],
    last: tuple[int, float],
) -> None:
    parsed = parse_file(name)
    assert keys(parsed) == {benchmark}
    assert {m.metric for m in parsed.measurements} == {metric}
    points = [(m.size, m.value) for m in parsed.measurements]
    assert (len(points), points[0], points[-1]) == (rows, first, last)
    assert not [f for f in parsed.findings if f.level is not Level.INFO]


def test_every_real_row_is_counted() -> None:
    """No row of a recorded file is lost: as many sizes as there are lines of numbers."""
    for path in [*DATA.glob("osu-7.4/*.out"), *DATA.glob("archer2/*/*"), *DATA.glob("olivia/*")]:
        lines = [x for x in path.read_text().splitlines() if x[:1].isdigit() or x[:3] == "   "]
        parsed = osu.parse(path.read_bytes(), source=path.name)
        rows = {(m.benchmark.options, m.size) for m in parsed.measurements}
        per_row = 2 if "iallreduce" in path.name else 1  # pure and overall have their own keys
        assert len(rows) == per_row * max(1, len(lines)), path.name


def test_f_c_z_has_extremes_percentiles_iterations_and_validation() -> None:
    parsed = parse_file("osu-7.4/mpich-allreduce_f_c_z.out")
    row = next(m for m in parsed.measurements if m.size == 128)
    assert (row.value, row.mean, row.minimum, row.maximum) == (16.47, 16.47, 12.95, 19.99)
    assert (row.p90, row.p99, row.iterations, row.valid) == (0.72, 0.88, 200, True)


def test_bandwidth_percentiles_one_space_apart_are_not_glued() -> None:
    row = parse_file("osu-7.4/mpich-bw_c.out").measurements[-1]
    assert (row.value, row.p90, row.p99) == (618.63, 1104.10, 1527.08)


def test_a_non_blocking_collective_gives_communication_overall_and_overlap() -> None:
    parsed = parse_file("osu-7.4/mpich-iallreduce_f_c_z.out")
    assert cells(parsed)[:3] == [
        ("osu:iallreduce", "latency", 1, 2.49),
        ("osu:iallreduce,time=overall", "latency", 1, 19.82),
        ("osu:iallreduce", "overlap", 1, 0.0),
    ]
    pure, overall = parsed.measurements[:2]
    assert (pure.minimum, pure.maximum, pure.p99) == (2.28, 2.70, None)
    assert (overall.minimum, overall.p90, overall.p99) == (None, 6.51, 132.14)


def test_multiple_bandwidth_gives_two_metrics() -> None:
    parsed = parse_file("osu-7.4/mpich-mbw_mr.out")
    assert cells(parsed)[:2] == [
        ("osu:mbw_mr", "bandwidth", 1, 0.27),
        ("osu:mbw_mr", "message_rate", 1, 272437.41),
    ]
    assert parsed.measurements[0].p90 == 1.13
    assert parsed.measurements[1].p90 is None


def test_each_of_several_datatypes_is_a_benchmark_of_its_own() -> None:
    assert cells(parse_file("osu-7.4/mpich-lat_Tall.out")) == [
        ("osu:latency", "latency", 1, 20.06),
        ("osu:latency", "latency", 2, 1.35),
        ("osu:latency", "latency", 4, 1.28),
        ("osu:latency,datatype=MPI_INT", "latency", 4, 9.34),
        ("osu:latency,datatype=MPI_FLOAT", "latency", 4, 26.19),
    ]


def test_a_failed_validation_marks_its_row_and_is_an_error() -> None:
    data = (DATA / "osu-7.4/openmpi-allreduce_f_c_z.out").read_bytes()
    parsed = parse(data.replace(b"MPI_CHAR", b"MPI_INT").decode())
    assert [m.valid for m in parsed.measurements] == [True, True, True, True, False]
    assert codes(parsed) == ["program-failed", "validation-failed"]
    assert "line 10" in parsed.findings[0].message


def test_sums_of_characters_that_fail_are_left_out_and_accuse_nobody() -> None:
    """OSU's own check fails for them where the MPI is right."""
    parsed = parse_file("osu-7.4/openmpi-allreduce_f_c_z.out")
    assert [m.valid for m in parsed.measurements] == [True, True, True, True, False]
    (finding,) = parsed.findings
    assert (finding.code, finding.level) == ("osu-char-sums", Level.WARNING)
    assert matches(finding, "osu-char-sums", names="osu:allreduce")


def test_init_keeps_its_extremes() -> None:
    (row,) = parse_file("osu-7.4/mpich-init.out").measurements
    assert (row.minimum, row.value, row.maximum) == (39, 40, 42)


def test_the_batch_jobs_lines_say_the_layout() -> None:
    name = "archer2/UCX/osu_alltoallv_128nodes_16384processes_202203081722.dat"
    header = parse_file(name).header
    assert header == {"nodes": "128", "processes": "16384", "version": "5.9"}


# ------------------------------------------------------------------ layouts of other versions


def test_5_x_with_gpu_buffers() -> None:
    text = (
        "# OSU MPI-CUDA Bandwidth Test v5.9\n"
        "# Send Buffer on DEVICE (D) and Receive Buffer on {}\n"
        "# Size      Bandwidth (MB/s)\n1   2.00\n"
    )
    assert keys(parse(text.format("DEVICE (D)"))) == {"osu:bw,buffers=cuda"}
    assert keys(parse(text.format("HOST (H)"))) == {"osu:bw,buffers=cuda,sides=D-H"}
    both_host = text.replace("on DEVICE (D)", "on HOST (H)").format("HOST (H)")
    assert keys(parse(both_host)) == {"osu:bw"}


def test_7_1_says_the_datatype_below_the_header() -> None:
    text = (
        "# OSU MPI-ROCM Latency Test v7.1\n# Size          Latency (us)\n"
        "# Datatype: MPI_INT.\n4    1.50\n"
    )
    assert cells(parse(text)) == [("osu:latency,buffers=rocm,datatype=MPI_INT", "latency", 4, 1.5)]


def test_7_3_percentiles_and_unannounced_extremes() -> None:
    text = (
        "# OSU MPI Reduce Latency Test v7.3\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
        "1     0.50      0.40      0.60     1000\n"
        "# OSU MPI Latency Test v7.3\n# Datatype: MPI_CHAR.\n"
        "# Size          Latency (us)  P50 Tail Lat(us)  P95 Tail Lat(us)  P99 Tail Lat(us)\n"
        "1     0.50      0.40      0.60     1.00\n"
    )
    reduce, latency = parse(text).measurements
    assert (reduce.minimum, reduce.maximum, reduce.iterations) == (0.4, 0.6, 1000)
    assert (latency.p90, latency.p99, latency.minimum) == (None, 1.0, None)
    assert codes(parse(text)) == ["header-differs"]


def test_an_old_barrier_without_a_hash_before_its_columns() -> None:
    text = (
        "# OSU MPI Non-blocking Barrier Latency Test v5.9\n"
        "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n"
        "       Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
        "             10.54              5.85              4.89             96.00\n"
    )
    assert [(k, m, v) for k, m, _, v in cells(parse(text))] == [
        ("osu:ibarrier", "latency", 4.89),
        ("osu:ibarrier,time=overall", "latency", 10.54),
        ("osu:ibarrier", "overlap", 96.0),
    ]


def test_varied_windows_are_two_matrices() -> None:
    text = (
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n"
        "# [ pairs: 2 ] [ window size: varied ]\n\n"
        "# Uni-directional Bandwidth (MB/sec)\n# Datatype: MPI_CHAR.\n"
        "#              32          64\n1          1.00        2.00\n\n"
        "# Message Rate Profile\n"
        "#              32          64\n1       1000.00     2000.00\n"
    )
    assert cells(parse(text)) == [
        ("osu:mbw_mr,pairs=2,window=32", "bandwidth", 1, 1.0),
        ("osu:mbw_mr,pairs=2", "bandwidth", 1, 2.0),
        ("osu:mbw_mr,pairs=2,window=32", "message_rate", 1, 1000.0),
        ("osu:mbw_mr,pairs=2", "message_rate", 1, 2000.0),
    ]


def test_a_layout_with_gaps_is_another_benchmark() -> None:
    text = PLAIN.rstrip() + "     Transmit Size\n8    1.00      4\n"
    assert cells(parse(text)) == [("osu:latency,ddt=yes", "latency", 8, 1.0)]


def test_loader_noise_before_and_lines_injected_into_the_header() -> None:
    text = (
        "osu_latency: libnl-3.so.200: no version information available\n"
        "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
        "# Size      # HOST/POSIX_MEMALIGN send\n       Avg Latency(us)\n"
        "# HOST/POSIX_MEMALIGN receive\n1    1.00\n"
    )
    parsed = parse(text)
    assert cells(parsed) == [("osu:latency", "latency", 1, 1.0)]
    assert codes(parsed) == ["foreign-output"]
    assert "3 lines" in parsed.findings[0].message
    assert matches(parsed.findings[0], "foreign-output", quoted="line 1: osu_latency: libnl")


def test_a_table_that_runs_twice_is_kept_twice() -> None:
    assert [v for *_, v in cells(parse(PLAIN + "1   1.00\n" + PLAIN + "1   2.00\n"))] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("title", "program"),
    [
        ("OSU MPI Latency Test Test", "latency"),
        ("OSU MPI Bi-Directional Bandwidth Persistent Test", "bibw_persistent"),
        ("OSU MPI_Put-CUDA Bi-directional Bandwidth Test", "put_bibw"),
        ("OSU MPI_Compare_and_swap latency Test", "cas_latency"),
        ("OSU MPI-CUDA MANAGED Broadcast Latency Test", "bcast"),
        ("OSU MPI Reduce_scatter_block Persistent Latency Test",
         "reduce_scatter_block_persistent"),
        ("OSU MPI Non-blocking All-to-Allw Personalized Exchange Latency Test", "ialltoallw"),
        ("OSU MPI Non-blocking Neighborhood Allgatherv Latency Test", "ineighbor_allgatherv"),
        ("OSU MPI Neighbor Alltoall Latency Test", "neighbor_alltoall"),
        ("OSU MPI Bandwidth Congestion In Test", "bw_fan_in"),
        ("OSU OpenSHMEM Put Test", "openshmem_put_test"),
    ],
)  # fmt: skip
def test_a_title_names_its_program(title: str, program: str) -> None:
    read = osu_titles.read(f"# {title} v7.5.2")
    assert read
    assert (read.program, read.version) == (program, "7.5.2")
    assert read.known == ("OpenSHMEM" not in title)


# ------------------------------------------------------------------ properties

CENTS = st.integers(0, 10**12).map(lambda n: n / 100)
SIZES = st.integers(0, 2**40)
FULL = st.tuples(SIZES, CENTS, CENTS, CENTS, st.integers(1, 10**9), st.booleans(), CENTS, CENTS)


@given(st.lists(FULL, min_size=1), st.booleans(), st.booleans())
def test_a_printed_table_is_read_as_it_was(
    rows: list[tuple[int, float, float, float, int, bool, float, float]], full: bool, tail: bool
) -> None:
    text = "\n# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
    text += f"{'# Size':10}{'Avg Latency(us)':>18}"
    text += f"{'Min Latency(us)':>18}{'Max Latency(us)':>18}{'Iterations':>12}" if full else ""
    text += f"{'Validation':>18}"
    text += f"  P50 Tail Lat(us)  P90 Tail Lat(us){'P99 Tail Lat(us)':>18}" if tail else ""
    for size, mean, low, high, iterations, good, p90, p99 in rows:
        text += f"\n{size:<10}{mean:18.2f}"
        text += f"{low:18.2f}{high:18.2f}{iterations:12}" if full else ""
        text += f"{'Pass' if good else 'Fail':>18}"
        text += f"{0:18.2f}{p90:18.2f}{p99:18.2f}" if tail else ""
    expected = [
        Measurement(
            Benchmark("osu", "allreduce"),
            "latency", size, mean, mean, low if full else None, high if full else None,
            p90 if tail else None, p99 if tail else None, iterations if full else None, good,
            resolution=0.01,
        )
        for size, mean, low, high, iterations, good, p90, p99 in rows
    ]  # fmt: skip
    assert list(parse(text + "\n").measurements) == expected


LINES = st.sampled_from(
    [
        *PLAIN.splitlines(), "1   1.00", "2   2.00   Pass", "4 nan", "# Size", "  Avg Latency(us)",
        "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4", "#   1  2  4", "1 2 3 4",
        "# [ pairs: 1 ] [ window size: varied ]", "# Message Rate Profile", "== Nodes = 3",
        "nprocs: 2, min: 39 ms, max: 42 ms, avg: 40 ms", "", "# Datatype: MPI_INT.",
        "# OSU MPI Non-blocking Barrier Latency Test v5", "Overall(us) Pure Comm.(us)", "²", "٣ 1",
    ]
)  # fmt: skip
