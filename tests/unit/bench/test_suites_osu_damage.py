"""Damaged OSU output: what is whole is taken, the rest is reported with its line."""

from __future__ import annotations

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Level
from tests.builders.messages import matches, shows
from tests.unit.bench.test_suites_osu import PLAIN, codes, parse


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("nothing here\nof the kind\n", 3),
        ("Invalid option [-d]\nUsage: ./osu_latency [options]\n", 3),
        ("== Nodes = 1\n" + PLAIN + "1  1.00\n== Nodes = 2\n", 6),
    ],
)
def test_what_is_no_table_or_has_two_layouts_is_refused(text: str, line: int) -> None:
    with pytest.raises(UsageError, match=rf"^table:{line}:"):
        parse(text)


@pytest.mark.parametrize(
    "row",
    [
        "1   nan", "1   inf", "1   -1.00", "1   1.00   2.00", "1", "1.5   1.00", f"{2**63}   1.00",
        "1   Pass",
    ],
)  # fmt: skip
def test_a_damaged_row_is_left_out_with_its_line_and_the_others_count(row: str) -> None:
    parsed = parse(PLAIN + f"1  1.00\n{row}\n4  4.00\n")
    assert [(m.size, m.value) for m in parsed.measurements] == [(1, 1.0), (4, 4.0)]
    (finding,) = parsed.findings
    assert matches(finding, "damaged-lines", count=1, problems="table:5:")
    assert finding.evidence == ("lines 5",)


@pytest.mark.parametrize(
    "header",
    [
        PLAIN.rstrip() + "  Speed of Light",
        PLAIN.rstrip() + "  Avg Latency(us)",
    ],
)
def test_rows_under_a_damaged_header_are_left_out(header: str) -> None:
    parsed = parse(f"{header}\n1  1.00  2.00\n{PLAIN}8  8.00\n")
    assert [(m.size, m.value) for m in parsed.measurements] == [(8, 8.0)]
    assert codes(parsed) == ["empty-table", "damaged-lines"]
    assert parsed.findings[1].evidence == ("lines 3, 4",)


def test_a_row_without_a_result_is_damage() -> None:
    parsed = parse("# OSU MPI Latency Test v7.5\n# Size  Iterations\n1   100\n")
    assert not parsed.measurements
    assert shows(parsed.findings[-1].message, "table:3", "latency", "bandwidth")


def test_much_damage_is_one_finding() -> None:
    parsed = parse(PLAIN + "1  nan\n" * 5000)
    finding = parsed.findings[-1]
    assert matches(finding, "damaged-lines", count=5000, problems=("table:4: latency", 4997))
    assert shows(finding.evidence[0], "103", "4900")


@pytest.mark.parametrize("last", ["2   3", "2   3.1", "2"])
def test_a_row_cut_off_at_the_end_is_left_out_with_a_finding(last: str) -> None:
    parsed = parse(PLAIN + "1   1.00\n" + last)
    assert [m.size for m in parsed.measurements] == [1]
    assert codes(parsed) == ["cut-short"]


def test_a_whole_last_row_needs_no_newline() -> None:
    parsed = parse(PLAIN + "1   1.00\n2   3.14")
    assert [m.value for m in parsed.measurements] == [1.0, 3.14]
    assert codes(parsed) == []


def test_a_crash_in_the_middle_keeps_what_came_before() -> None:
    text = PLAIN + "1  1.00\n2   [nid1:7] *** Process received signal ***\n4  [nid1] oops\n"
    parsed = parse(text)
    assert [m.size for m in parsed.measurements] == [1]
    assert codes(parsed) == ["program-failed", "unread-row"]


@pytest.mark.parametrize("size", ["2x", "[1]2", "n1:2"])
def test_a_row_with_something_glued_to_its_size_is_said_to_be_unread(size: str) -> None:
    parsed = parse(PLAIN + f"1  1.00\n{size}  2.00\n4  3.00\n")
    assert [m.size for m in parsed.measurements] == [1, 4]
    (finding,) = parsed.findings
    assert (finding.code, finding.level) == ("unread-row", Level.WARNING)
    assert matches(finding, "unread-row", line=size, place=5)


def test_a_crash_of_many_ranks_is_one_finding() -> None:
    parsed = parse(PLAIN + "1  1.00\n" + "srun: error: task died\n" * 5000)
    (finding,) = parsed.findings
    assert matches(finding, "program-failed", lines=("line 5: srun", "line 6", 4997))


def test_a_table_without_rows_is_an_error() -> None:
    parsed = parse(PLAIN)
    assert codes(parsed) == ["empty-table"]
    assert parsed.findings[0].level is Level.ERROR


def test_lines_may_end_as_windows_ends_them() -> None:
    parsed = parse((PLAIN + "1   1.00\n2   2.00\n").replace("\n", "\r\n"))
    assert [(m.size, m.value) for m in parsed.measurements] == [(1, 1.0), (2, 2.0)]
    assert not parsed.findings


@pytest.mark.parametrize("word", ["\u0661.00", "0e999", "1_0"])
def test_only_a_number_that_the_programs_print_is_one(word: str) -> None:
    parsed = parse(PLAIN + f"1   {word}\n2   2.00\n")
    assert [m.size for m in parsed.measurements] == [2]
    assert parsed.findings
