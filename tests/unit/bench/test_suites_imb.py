"""Output of the Intel MPI Benchmarks: recorded files, other layouts, damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import imb
from mpigraft.bench.suites.base import Parsed
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, Measurement
from tests.builders.messages import matches, shows

DATA = Path(__file__).parents[2] / "data" / "imb"
BANNER = "#    Intel(R) MPI Benchmarks 2021.11, {} part\n"
HEAD = BANNER.format("MPI-1") + "# Benchmarking Allreduce \n# #processes = 2 \n"
RANGE = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"


def parse(text: str) -> Parsed:
    return imb.parse(text.encode(), source="table")


def cells(parsed: Parsed) -> list[tuple[str, str, int, float]]:
    return [(m.benchmark.key, m.metric, m.size, m.value) for m in parsed.measurements]


def codes(parsed: Parsed) -> list[str]:
    return [f.code for f in parsed.findings]


def test_every_block_of_a_recorded_run() -> None:
    parsed = imb.parse((DATA / "mpi1.out").read_bytes(), source="mpi1.out")
    read = cells(parsed)
    assert read[:3] == [
        ("imb:PingPong", "latency", 0, 1.40),
        ("imb:PingPong", "latency", 8, 1.38),
        ("imb:PingPong", "bandwidth", 8, 5.82),
    ]
    names = ["PingPong", "Exchange", "Sendrecv", "Allreduce", "Alltoallv", "Barrier"]
    assert list(dict.fromkeys(key for key, *_ in read)) == [f"imb:{name}" for name in names]
    assert read[-1] == ("imb:Barrier", "latency", 0, 0.34)
    assert len(read) == 5 * 5 + 3 * 4 + 1  # latencies, bandwidths of sizes over 0, the barrier
    assert parsed.findings == ()
    assert parsed.header == {"version": "2021.11", "part": "MPI-1", "processes": "2"}


def test_a_collective_has_the_extremes_over_ranks() -> None:
    parsed = imb.parse((DATA / "mpi1.out").read_bytes(), source="mpi1.out")
    row = next(m for m in parsed.measurements if m.benchmark.name == "Allreduce" and m.size == 8)
    assert (row.minimum, row.maximum, row.value, row.iterations) == (0.45, 0.59, 0.52, 50)


def test_p2p_is_not_mpi_1_and_has_message_rates() -> None:
    parsed = imb.parse((DATA / "p2p.out").read_bytes(), source="p2p.out")
    assert cells(parsed)[:3] == [
        ("imb:PingPong,part=P2P", "latency", 8, 4.11),
        ("imb:PingPong,part=P2P", "bandwidth", 8, 1.95),
        ("imb:PingPong,part=P2P", "message_rate", 8, 243429.0),
    ]
    assert codes(parsed) == []


def test_a_size_without_memory_is_a_finding() -> None:
    parsed = imb.parse((DATA / "oom.out").read_bytes(), source="oom.out")
    assert cells(parsed) == [("imb:Alltoall", "latency", 0, 0.04)]
    (finding,) = parsed.findings
    assert finding.code == "out-of-mem"
    assert shows(finding.message, "oom.out:36", "Alltoall", "65536 B")


def test_processes_that_wait_make_another_benchmark_in_the_same_world() -> None:
    text = (
        HEAD + "# ( 2 additional processes waiting in MPI_Barrier)\n" + RANGE
        + "8  100  1.00  3.00  2.00\n# Benchmarking Allreduce \n# #processes = 4 \n" + RANGE
        + "8  100  2.00  6.00  4.00\n"
    )  # fmt: skip
    parsed = parse(text)
    assert [k for k, *_ in cells(parsed)] == ["imb:Allreduce,processes=2", "imb:Allreduce"]
    assert parsed.header["processes"] == "4"


def test_groups_that_run_at_once_are_each_a_benchmark() -> None:
    text = (
        BANNER.format("MPI-1") + "# Benchmarking Multi-PingPong \n"
        "# ( 2 groups of 2 processes each running simultaneous ) \n# Group  0:     0    1\n"
        "# Group  1:     2    3\n"
        "        Group       #bytes #repetitions      t[usec]   Mbytes/sec\n"
        "            0            8          100         1.00         8.00\n"
        "            1            8          100         2.00         4.00\n"
    )
    parsed = parse(text)
    keys = [f"imb:Multi-PingPong,group={g},groups=2x2" for g in (0, 0, 1, 1)]
    assert [k for k, *_ in cells(parsed)] == keys
    assert parsed.header["processes"] == "4"


def test_overlap_modes_and_defects() -> None:
    text = (
        BANNER.format("NBC") + "# Benchmarking Ibcast \n# #processes = 2 \n"
        "       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]  overlap[%]  defects\n"
        "            8          100        3.00         2.00         1.90        50.00     0.00\n"
        "           16          100        3.00         2.00         1.90        50.00     1.00\n"
        + BANNER.format("RMA")
        + "# Benchmarking Unidir_put \n# #processes = 2 \n#\n"
        "#    MODE: NON-AGGREGATE \n#\n       #bytes #repetitions      t[usec]   Mbytes/sec\n"
        "            8          100        1.00         8.00\n"
    )
    parsed = parse(text)
    assert cells(parsed)[:3] == [
        ("imb:Ibcast", "latency", 8, 2.0),
        ("imb:Ibcast,time=overall", "latency", 8, 3.0),
        ("imb:Ibcast", "overlap", 8, 50.0),
    ]
    assert cells(parsed)[-1][0] == "imb:Unidir_put,mode=non-aggregate"
    assert [m.valid for m in parsed.measurements] == [True] * 3 + [False] * 3 + [None] * 2
    assert codes(parsed) == ["validation-failed"]


def test_megabytes_of_old_versions_are_not_taken_for_10_6() -> None:
    text = HEAD.replace("2021.11", "4.1 Update 1") + (
        "       #bytes #repetitions      t[usec]   Mbytes/sec\n8  100  1.00  7.63\n"
    )
    parsed = parse(text)
    assert [m for _, m, *_ in cells(parsed)] == ["latency"]
    assert codes(parsed) == ["unit-unknown"]


def test_another_datatype_is_another_benchmark() -> None:
    text = HEAD.replace("# Bench", "# MPI_Datatype for reductions    :   MPI_DOUBLE\n# Bench")
    parsed = parse(text + RANGE + "8  100  1.00  3.00  2.00\n")
    assert cells(parsed)[0][0] == "imb:Allreduce,reduction=MPI_DOUBLE"


@pytest.mark.parametrize(("text", "line"), [("", 1), ("# a file\nof another kind\n", 3)])
def test_what_has_no_block_is_refused(text: str, line: int) -> None:
    with pytest.raises(UsageError, match=rf"^table:{line}:"):
        parse(text)


@pytest.mark.parametrize(
    "row", ["8  100  1.00  3.00", "8  100  nan  3.00  2.00", "8  1e3  1.00  3.00  2.00"]
)
def test_a_damaged_row_is_left_out_with_its_line_and_the_others_count(row: str) -> None:
    parsed = parse(HEAD + RANGE + f"{row}\n16  100  1.00  3.00  2.00\n")
    assert [m.size for m in parsed.measurements] == [16]
    assert codes(parsed) == ["damaged-lines"]
    assert matches(
        parsed.findings[0], "damaged-lines", count="1 line is", problems="table:5:", source="table"
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (HEAD + RANGE.rstrip() + "  t_odd[usec]\n8  100  1.00  3.00  2.00  1.00\n", "lines 4, 5"),
        (HEAD + RANGE.rstrip() + "  t_avg[usec]\n8  100  1.00  3.00  2.00  1.00\n", "lines 4, 5"),
        (HEAD.replace("= 2", "= " + "9" * 5000) + RANGE + "8  1  1.00  3.00  2.00\n", "lines 3, 5"),
    ],
)
def test_a_block_whose_head_is_damaged_is_left_out(text: str, lines: str) -> None:
    parsed = parse(text + HEAD.splitlines()[1] + "\n" + RANGE + "16  100  1.00  3.00  2.00\n")
    assert [m.size for m in parsed.measurements] == [16]
    assert codes(parsed) == ["empty-table", "damaged-lines"]
    assert parsed.findings[1].evidence == (lines,)


@pytest.mark.parametrize("last", ["16  100  1.0", "16  100  1.00  3.00  2.0", "16  10"])
def test_a_row_cut_off_at_the_end_is_left_out_with_a_finding(last: str) -> None:
    parsed = parse(HEAD + RANGE + "8  100  1.00  3.00  2.00\n" + last)
    assert [m.size for m in parsed.measurements] == [8]
    assert codes(parsed) == ["cut-short"]


def test_noise_and_crashes_are_findings() -> None:
    text = "warning: libnl\n" + HEAD + RANGE + "8  100  1.00  3.00  2.00\nsrun: error: task 1\n"
    parsed = parse(text)
    assert len(parsed.measurements) == 1
    assert codes(parsed) == ["program-failed", "foreign-output"]


CENTS = st.integers(0, 10**9).map(lambda n: n / 100)


@given(st.lists(st.tuples(st.integers(0, 2**31), st.integers(1, 10**6), CENTS, CENTS, CENTS),
                min_size=1))  # fmt: skip
def test_a_printed_table_is_read_as_it_was(
    rows: list[tuple[int, int, float, float, float]],
) -> None:
    printed = "".join(f"{s:13}{n:13}{a:13.2f}{b:13.2f}{c:13.2f}\n" for s, n, a, b, c in rows)
    benchmark = Benchmark("imb", "Allreduce")
    expected = [
        Measurement(
            benchmark, "latency", size, mean, mean, low, high, iterations=n, resolution=0.01
        )
        for size, n, low, high, mean in rows
    ]
    assert list(parse(HEAD + RANGE + printed).measurements) == expected


LINES = st.sampled_from(
    [
        *HEAD.splitlines(), RANGE, "8  100  1.00  3.00  2.00", "16 out-of-mem.; needed X=1",
        "# #processes = 4; rank order (rowwise): ", "out-of-mem.;", "#repetitions", "0 1 2",
        "# ( 2 groups of 2 processes each running simultaneous )", "#    MODE: AGGREGATE",
        "Group #bytes #repetitions Mbytes/sec Msg/sec", "# ( 1 additional process waiting in "
        "MPI_Barrier)", "# All processes entering MPI_Finalize", "²  1  2  3  4", "8", "",
    ]
)  # fmt: skip
