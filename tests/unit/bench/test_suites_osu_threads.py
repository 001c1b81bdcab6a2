"""OSU's threads above and below a title, and the step of printed digits."""

from __future__ import annotations

from tests.unit.bench.test_suites_osu import PLAIN, codes, keys, parse, parse_file

MT = (  # as 5.6 to 7.5 print it: the threads first, with a blank at the end of a line
    "# Number of Sender threads: {} \n# Number of Receiver threads: {}\n"
    "# OSU MPI Multi-threaded Latency Test v7.4\n"
    "# Size       Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)\n"
    "# Datatype: MPI_CHAR.\n"
    "1                       1.52              1.50              1.61              1.75\n"
    "2                       1.55              1.51              1.62              1.80\n"
)
MP = (  # as 7 prints it; 5 printed the forked processes below the title
    "# Number of forked processes in sender: {}\n# Number of forked processes in receiver: {}\n"
    "# OSU MPI Multi-process Latency Test v7.4\n# Size       Avg Latency(us)\n1      0.26\n"
)


def test_threads_above_the_title_are_of_the_table_below() -> None:
    text = MT.format(1, 2) + MT.format(4, 13) + MP.format(2, 2)
    parsed = parse(text)
    assert keys(parsed) == {
        "osu:latency_mt,receivers=2,senders=1",
        "osu:latency_mt,receivers=13,senders=4",
        "osu:latency_mp,receivers=2,senders=2",
    }
    assert [m.p90 for m in parsed.measurements[:2]] == [1.61, 1.62]
    assert not parsed.findings


def test_threads_below_the_title_are_of_the_table_above() -> None:
    below = (
        "# OSU MPI Multi-process Latency Test v5.6.3\n"
        "# Number of forked processes in sender: 3\n# Number of forked processes in receiver: 2\n"
        "# Size          Latency (us)\n0                       0.22\n"
    )
    parsed = parse(below + MT.format(4, 13) + below)
    assert [m.benchmark.key for m in parsed.measurements] == [
        "osu:latency_mp,receivers=2,senders=3",
        *["osu:latency_mt,receivers=13,senders=4"] * 2,
        "osu:latency_mp,receivers=2,senders=3",
    ]


def test_threads_of_a_program_that_died_are_no_one_elses() -> None:
    """It printed them and ended before its title."""
    died = "".join(MT.format(4, 13).splitlines(keepends=True)[:2])
    after = parse(died + PLAIN + "1 1.00\n" + died + MT.format(1, 2))
    assert keys(after) == {"osu:latency", "osu:latency_mt,receivers=2,senders=1"}


def test_percentiles_that_a_threaded_test_announces_and_does_not_print() -> None:
    """-z of 7.4: the header has them, the rows have not."""
    rows = [line.split()[:2] for line in MT.format(1, 2).splitlines()[-2:]]
    text = "\n".join(MT.format(1, 2).splitlines()[:-2]) + "\n"
    parsed = parse(text + "".join(f"{a}    {b}\n" for a, b in rows))
    assert [(m.size, m.value, m.p90) for m in parsed.measurements] == [(1, 1.52, None),
                                                                       (2, 1.55, None)]  # fmt: skip
    assert codes(parsed) == ["header-differs"]


def test_a_program_that_prints_no_figures_says_so() -> None:
    parsed = parse("# OSU MPI Hello World Test v7.4\nThis is a test with 2 processes\n")
    assert codes(parsed) == ["no-figures"]
    assert "hello" in parsed.findings[0].message


def test_a_value_has_the_step_of_its_printed_digits() -> None:
    parsed = parse(PLAIN + "1 0.63\n2 1.5\n4 12\n8 1e-3\n16 7.\n")
    assert [m.resolution for m in parsed.measurements] == [0.01, 0.1, 1.0, 0.001, 1.0]
    started = parse("# OSU MPI Init Test v7.4\nnprocs: 2, min: 39 ms, max: 42 ms, avg: 40 ms\n")
    assert [m.resolution for m in started.measurements] == [1.0]
    assert {m.resolution for m in parse_file("osu-7.4/mpich-mbw_mr.out").measurements} == {0.01}
