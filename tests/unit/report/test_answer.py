"""The answer of a comparison: three lines, one table, a line for each kind of finding."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpigraft.core import numbers
from mpigraft.core.model import Cause, Comparison, Finding, Level, NoVerdict, Verdict
from mpigraft.report import answer, headline, terminal
from mpigraft.report.wording import words
from tests.builders.messages import shows
from tests.builders.reports import BENCHMARKS, comparison, data_of, small_data

SIGNS = words.VERDICT_SIGNS


def screen(found: Comparison) -> list[str]:
    stream = io.StringIO()
    terminal.print_answer(data_of(found, 6), Console(file=stream, width=80))
    return stream.getvalue().splitlines()


def named(count: int, benchmarks: int, layouts: int) -> Comparison:
    """So many configurations, benchmarks and layouts, all with the same curve."""
    one = comparison(benchmarks=BENCHMARKS[:benchmarks])
    first = [g for g in one.groups if g.configuration == one.groups[0].configuration]
    groups = tuple(
        replace(group, configuration=f"mpi@{n}/ofi", layout=f"{2**k}x4")
        for n in range(count)
        for k in range(layouts)
        for group in first
    )
    return replace(one, groups=groups)


@given(st.integers(1, 30), st.integers(1, 3), st.integers(1, 9))
def test_the_table_fits_a_screen(count: int, benchmarks: int, layouts: int) -> None:
    found = named(count, benchmarks, layouts)
    lines = answer.curve_table(found, 80, SIGNS)
    assert len(lines) <= answer.LINES + 1
    assert max(map(len, lines)) <= 80
    assert len({name for line in lines for name in line.split() if "mpi@" in name}) == min(
        count, answer.ROWS
    )
    assert (count > answer.ROWS) == any(shows(line, "and", "more", "--full") for line in lines)


def test_a_curve_is_a_sign_and_a_factor() -> None:
    found = small_data().comparison
    lines = answer.curve_table(found, 80, SIGNS)
    assert lines[0].split() == ["1x2", "latency", "bw"]
    for group in found.groups:
        (row,) = (line for line in lines if line.startswith(group.configuration))
        by = max(group.pooled, 1 / group.pooled)
        assert f"{SIGNS[group.curve]} {numbers.ratio(by)}x" in row


def test_layouts_have_a_column_each_and_gains() -> None:
    found = named(1, 1, 8)
    head, *rows = answer.curve_table(found, 80, SIGNS)
    assert head.split()[-8:] == [f"{2**k}x4" for k in range(8)]
    assert all(len(row.split()) == 9 for row in rows)


def test_findings_are_a_line_each_kind_without_notes_and_what_the_answer_has() -> None:
    long = "mpi@1/ofi: " + "one word " * 60
    findings = (
        Finding(Level.WARNING, "a", "at 3 sizes: mpi@1/ofi, mpi@2/ofi"),
        Finding(Level.WARNING, "b", long),
        Finding(Level.WARNING, "b", "mpi@2/ofi: the same"),
        Finding(Level.INFO, "c", "a note"),
        Finding(Level.WARNING, "verdict-withheld", "on 3 curves"),
        Finding(Level.ERROR, "d", "worst"),
    )
    data = replace(small_data(), comparison=replace(small_data().comparison, findings=findings))
    lines = [line for _, line in answer.finding_lines(data, 80)]
    assert shows(lines[0], "error", "d", "worst")
    assert shows(lines[1], "warning", "a", "3")
    assert "@" not in lines[1]
    assert shows(lines[2], "...", "1 more")
    assert len(lines) == 3
    assert max(map(len, lines)) <= 160


def test_an_answer_of_many_lines_keeps_what_has_no_verdict() -> None:
    """Its finding is not repeated below: without this line a reader would miss the noise."""
    found = small_data().comparison
    full = headline.headline(found)
    open_curve = replace(
        found.groups[0], configuration="x", curve=Verdict.INCONCLUSIVE, withheld="noise"
    )
    open_curve = replace(open_curve, no_verdict=NoVerdict(Cause.NOISE, "noise"))
    lines = answer.answer_lines(replace(found, groups=(*found.groups, open_curve)))
    assert len(full) == len(lines) == answer.ANSWER
    assert lines[0] == full[0]
    assert "decided" in lines[-1]


@pytest.mark.parametrize("count", [1, 12])
def test_a_screen_begins_with_the_answer(count: int) -> None:
    lines = screen(named(count, 3, 1))
    assert lines[0].startswith("quick ")
    assert lines[2].split()[0] in ("Largest", "Stay", "No")
    assert len(lines) <= 40
