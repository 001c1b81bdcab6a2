"""The answer of a comparison: three lines, one table, a line for each kind of finding."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpigraft.core import numbers
from mpigraft.core.model import Cause, Comparison, Finding, Level, NoVerdict, Verdict
from mpigraft.report import answer, headline, screen, terminal
from mpigraft.report.table import Line
from mpigraft.report.wording import words
from tests.builders.messages import shows
from tests.builders.reports import BENCHMARKS, comparison, data_of, report_of, small_data

SIGNS = words.VERDICT_SIGNS


def printed(found: Comparison) -> list[str]:
    stream = io.StringIO()
    terminal.print_answer(data_of(found, 6), Console(file=stream, width=80))
    return stream.getvalue().splitlines()


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


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


@pytest.mark.parametrize("layouts", [1, 5])
def test_a_verdict_has_its_colour_on_a_terminal_and_nowhere_else(layouts: int) -> None:
    group = comparison().groups[0]
    every = [
        replace(group, configuration=f"mpi@{n}/{verdict}", curve=verdict, layout=f"{2**k}x4")
        for n, verdict in enumerate(Verdict)
        for k in range(layouts)
    ]
    found = replace(comparison(), groups=tuple(every))
    shown = {}
    colour: dict[str, Any] = {"force_terminal": True, "color_system": "standard"}
    for name, how in (("pipe", {}), ("terminal", colour), ("no", colour | {"no_color": True})):
        stream = io.StringIO()
        terminal.print_answer(data_of(found, 6), Console(file=stream, width=80, **how))
        shown[name] = stream.getvalue()
    assert "\x1b" not in shown["pipe"]
    colours = {"1;32": Verdict.FASTER, "1;35": Verdict.SLOWER, "36": Verdict.EQUIVALENT}
    rows = shown["terminal"].partition("faster")[2].splitlines()
    for code, verdict in {**colours, "2": Verdict.INCONCLUSIVE}.items():
        assert any(f"\x1b[{code}m{SIGNS[verdict]}" in row.replace("m ", "m") for row in rows)
    assert not re.search(r"\x1b\[(?:\d;)?3\dm", shown["no"])
    assert re.sub(r"\x1b\[[\d;]*m", "", shown["terminal"]) == shown["pipe"]


@given(st.integers(1, 30), st.integers(1, 3), st.integers(1, 9))
def test_the_table_fits_a_screen(count: int, benchmarks: int, layouts: int) -> None:
    found = named(count, benchmarks, layouts)
    lines = texts(answer.curve_table(found, 80, SIGNS))
    assert len(lines) <= screen.LINES + 1
    assert max(map(len, lines)) <= 80
    assert len({name for line in lines for name in line.split() if "mpi@" in name}) == min(
        count, answer.ROWS
    )
    assert (count > answer.ROWS) == any(shows(line, "and", "more", "--full") for line in lines)


def test_a_curve_is_a_sign_and_a_factor() -> None:
    found = small_data().comparison
    lines = texts(answer.curve_table(found, 80, SIGNS))
    assert lines[0].split() == ["1x2", "latency", "bw"]
    for group in found.groups:
        (row,) = (line for line in lines if line.startswith(group.configuration))
        by = max(group.pooled, 1 / group.pooled)
        assert f"{SIGNS[group.curve]} {numbers.ratio(by)}x" in row


def test_layouts_have_a_column_each_and_gains() -> None:
    found = named(1, 1, 8)
    head, *rows = texts(answer.curve_table(found, 80, SIGNS))
    assert head.split()[-8:] == [f"{2**k}x4" for k in range(8)]
    assert all(len(row.split()) == 9 for row in rows)


def test_findings_are_a_line_each_kind_without_notes_and_what_the_answer_has() -> None:
    long = "mpi@1/ofi: " + "one word " * 60
    findings = (
        Finding(Level.WARNING, "a", "at 3 sizes: mpi@1/ofi, mpi@2/ofi"),
        Finding(Level.WARNING, "b", long),
        Finding(Level.WARNING, "b", "mpi@2/ofi: the same"),
        Finding(Level.INFO, "c", "a note"),
        Finding(Level.WARNING, "a", "again"),
        Finding(Level.ERROR, "d", "worst"),
    )
    lines = [line for _, line in screen.finding_lines(findings, 80)]
    assert shows(lines[0], "error", "d", "worst")
    assert shows(lines[1], "warning", "a", "3", "1 more")
    assert "@" not in lines[1]
    assert shows(lines[2], "...", "1 more")
    assert len(lines) == 3
    assert max(map(len, lines)) <= 160


def test_an_answer_of_many_lines_keeps_what_has_no_verdict() -> None:
    """Its finding is not repeated below: without this line a reader would miss the noise."""
    found = small_data().comparison
    full = headline.headline(small_data())
    open_curve = replace(
        found.groups[0],
        configuration="x",
        curve=Verdict.INCONCLUSIVE,
        no_verdict=NoVerdict(Cause.NOISE, "noise"),
    )
    lines = answer.answer_lines(report_of(replace(found, groups=(*found.groups, open_curve))))
    assert len(full) == len(lines) == answer.ANSWER
    assert lines[0] == full[0]
    assert "decided" in lines[-1]


@pytest.mark.parametrize("count", [1, 12])
def test_a_screen_begins_with_the_answer(count: int) -> None:
    lines = printed(named(count, 3, 1))
    assert lines[0].startswith("quick ")
    assert lines[2].split()[0] in ("Largest", "Stay", "No")
    assert len(lines) <= 40
