"""A comparison on a terminal and as Markdown, against kept outputs, and what goes into them.

The kept outputs in tests/data/report are read by people: when one changes on purpose, look at the
new one before it takes the old one's place.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpigraft.analysis import reasons
from mpigraft.cli import common
from mpigraft.core import numbers
from mpigraft.core.model import Finding, LaunchState, Level, Noise, Verdict
from mpigraft.report import findings, markdown, precision, terminal
from mpigraft.report.baseline_only import baseline_series
from mpigraft.report.contents import ReportData
from tests.builders.messages import shows
from tests.builders.reports import (
    BASELINE,
    campaign_data,
    olivia,
    report_of,
    single_data,
    small_data,
)

RECORDED = Path(__file__).parents[2] / "data/report"


def shown(data: ReportData, *, answer: bool = False, encoding: str = "utf-8") -> str:
    """What a pipe gets."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=stream, markup=False, highlight=False, emoji=False, width=80)
    (terminal.print_answer if answer else terminal.print_report)(data, console)
    stream.flush()
    return raw.getvalue().decode(encoding)


# ------------------------------------------------------------------ kept outputs


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("campaign.txt", lambda: shown(small_data())),
        ("answer.txt", lambda: shown(small_data(), answer=True)),
        ("ascii.txt", lambda: shown(small_data(), answer=True, encoding="ascii")),
        ("imported.txt", lambda: shown(olivia(), answer=True)),
        ("single.txt", lambda: shown(single_data())),
        ("single.md", lambda: markdown.render_markdown(single_data())),
        ("campaign.md", lambda: markdown.render_markdown(small_data(), full=True)),
    ],
)
def test_output_is_the_recorded_one(name: str, make: Callable[[], str]) -> None:
    assert make() == (RECORDED / name).read_text(encoding="utf-8")


def test_a_pipe_of_a_whole_campaign_fits_80_columns_and_has_no_escapes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    terminal.print_report(campaign_data(), common.console())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 6 * 9 * 23
    assert max(len(line) for line in lines) <= 80
    assert not [line for line in lines if line != line.rstrip() or not line.isprintable()]


def test_no_color_leaves_no_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_terminal() -> str:
        file = io.StringIO()
        terminal.print_report(small_data(), Console(file=file, force_terminal=True, width=80))
        return file.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1;32m" in on_terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", on_terminal())


def test_every_size_has_a_row_with_its_figures() -> None:
    group = olivia("2026").comparison.groups[1]
    text = shown(olivia("2026"))
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+ [KM]?i?B ", line)]
    assert ["8", "B", "9.18", "20.7", "2.25", "-", "1", "·", "inconclusive"] in rows
    assert len(rows) == 2 * len(group.cells)


def test_published_tables_give_the_ratios_of_the_papers() -> None:
    """Of Cray MPICH's bibw: 0.17 and 0.99 in 2025, 2.25 and 1.02 in 2026 (8 B, 4 MiB)."""
    for year, small, large in (("2025", 0.17, 0.99), ("2026", 2.25, 1.02)):
        cells = {c.size: c for c in olivia(year).comparison.groups[1].cells}
        assert round(cells[8].ratio, 2) == small
        assert round(cells[1 << 22].ratio, 2) == large


# ------------------------------------------------------------------ hostile and odd input


def named(name: str) -> ReportData:
    data = small_data()
    first, *others = data.comparison.groups
    groups = (replace(first, configuration=name), *others)
    return replace(data, comparison=replace(data.comparison, groups=groups))


def test_a_name_cannot_move_the_cursor_or_forge_a_row() -> None:
    row = "openmpi ▲ 0.01"
    text = shown(named(f"evil\x1b[2J\n{row}"))
    assert "\x1b" not in text
    assert shows(text, r"evil\x1b[2J\x0aopenmpi")
    assert not [line for line in text.splitlines() if line.startswith(row)]


def test_a_long_name_is_never_cut() -> None:
    name = "a-stack-with-a-very-long-name/" + "x" * 70
    text = shown(named(name))
    assert name in text.splitlines()


@pytest.mark.parametrize("name", ["a|b", "<script>", "[x](http://y)", "`c`", "*d*_e_", "f\ng"])
def test_a_name_cannot_end_a_markdown_table(name: str) -> None:
    text = markdown.render_markdown(named(name))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for row in rows:
        bars = len(re.findall(r"(?<!\\)\|", row))
        assert bars in (6, 8), row
    bare = re.sub(r"\\.", "", text)  # what a reader of Markdown still takes as markup
    assert "<" not in bare
    assert "](" not in bare
    assert "`" not in bare


@given(st.text())
def test_escaped_text_is_one_line_without_bare_markup(text: str) -> None:
    escaped = markdown.escape(text)
    assert "\n" not in escaped
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<`\[]", escaped)


def test_more_sizes_than_columns_are_counted_instead() -> None:
    data = small_data()
    cell = data.comparison.groups[0].cells[0]
    cells = tuple(replace(cell, size=n, verdict=Verdict.FASTER) for n in range(1, 41))
    group = replace(data.comparison.groups[0], cells=cells, crossovers=())
    data = report_of(replace(data.comparison, groups=(group,), noise=()))
    assert "40▲" in shown(data)


def test_an_empty_comparison_is_reported() -> None:
    data = small_data()
    empty = replace(data.comparison, groups=(), noise=(), summary=("only one has values",))
    text = shown(report_of(empty))
    assert shows(text, *empty.summary)
    assert "0 faster" not in text
    assert "0 cells" not in text
    assert shows(text, "6 rounds", "nothing to compare")


def test_a_single_configuration_shows_its_own_values() -> None:
    data = single_data()
    latency, bandwidth = baseline_series(data)[1], baseline_series(data)[0]
    assert (latency.unit, bandwidth.unit) == ("us", "MB/s")
    at_8 = [r.value for r in data.values if (r.benchmark, r.size) == ("native:latency", 8)]
    figure = latency.figures[0]
    assert (figure.size, figure.launches) == (8, 6)
    assert figure.value == pytest.approx((sorted(at_8)[2] * sorted(at_8)[3]) ** 0.5)
    assert figure.interval == pytest.approx((min(at_8), max(at_8)))
    assert f"{numbers.number(figure.value)} at 8 B" in shown(data, answer=True)
    assert baseline_series(small_data()) == ()


def test_a_line_break_in_a_finding_is_white_space() -> None:
    data = small_data()
    finding = Finding(Level.WARNING, "x", "two\n  lines", "why\tso\n\nmore", "do\r\nthis")
    text = shown(replace(data, comparison=replace(data.comparison, findings=(finding,))))
    assert shows(text.splitlines(), "warning x", "two lines")
    assert shows(text.splitlines(), "do this")
    assert "\\x" not in text


# ------------------------------------------------------------------ what is not known


def test_the_campaign_is_honest_about_itself() -> None:
    data = small_data()
    noise = (Noise("native:latency", "1x2", 0.03, 0.15, 1, 12),)
    data = replace(data, comparison=replace(data.comparison, noise=noise))
    line = precision.precision(data).line
    assert shows(line, "6 rounds", "±15 %")
    assert shows(line, "1 of 12", "false")
    assert shows(line, "±5 %", "54 rounds", "22 min")


def test_a_campaign_that_knows_nothing_says_so_and_asks_for_no_days() -> None:
    data = small_data()
    noise = (Noise("native:latency", "1x2", 0.03, 4.9, 1, 12),)
    line = precision.precision(replace(data, comparison=replace(data.comparison, noise=noise))).line
    assert shows(line, "more than ±100 %")
    assert "needs about" not in line


def test_more_rounds_have_a_price() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    needs = (10, 20, 30, 40)
    cells = tuple(
        replace(c, verdict=Verdict.INCONCLUSIVE, rounds_needed=n)
        for c, n in zip(group.cells, needs, strict=True)
    )
    one = replace(data.comparison, groups=(replace(group, cells=cells),))
    text = precision.deciding(replace(data, comparison=one))
    assert shows(text, "20 rounds", "8 min", "40 rounds", "17 min")
    decided = tuple(replace(c, verdict=Verdict.FASTER) for c in cells)
    none = replace(data.comparison, groups=(replace(group, cells=decided),))
    assert precision.deciding(replace(data, comparison=none)) == ""


def test_a_round_costs_its_launches_and_none_without_them() -> None:
    assert precision.round_seconds(small_data().launches) == pytest.approx(25.0)
    assert precision.round_seconds(()) is None
    assert precision.precision(replace(small_data(), launches=())).line.endswith("rounds")


# ------------------------------------------------------------------ mixed curves


def with_verdicts(curve: Verdict, *verdicts: Verdict) -> ReportData:
    """One configuration whose curve and cells were called so."""
    data = small_data()
    group = data.comparison.groups[0]
    cells = tuple(replace(c, verdict=v) for c, v in zip(group.cells, verdicts, strict=True))
    group = replace(group, cells=cells, curve=curve, crossovers=(1 << 16,))
    return report_of(replace(data.comparison, groups=(group,)))


UP, DOWN, OPEN = Verdict.FASTER, Verdict.SLOWER, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("curve", "verdicts", "said"),
    [
        (OPEN, (UP, OPEN, DOWN, DOWN), "mixed: faster up to 8 B, slower from 64 KiB"),
        (OPEN, (DOWN, DOWN, OPEN, UP), "mixed: slower up to 1 KiB, faster from 4 MiB"),
        (OPEN, (UP, DOWN, DOWN, UP), "mixed: faster at 2 sizes, slower at 2"),
        (OPEN, (UP, UP, UP, OPEN), ""),
        (UP, (UP, UP, UP, DOWN), ""),
    ],
)
def test_a_curve_of_both_directions_says_which_where(
    curve: Verdict, verdicts: tuple[Verdict, ...], said: str
) -> None:
    data = with_verdicts(curve, *verdicts)
    assert reasons.mixed_directions(data.comparison.groups[0]) == said.removeprefix("mixed: ")
    for text in (" ".join(shown(data).split()), markdown.render_markdown(data)):
        assert (said in text) if said else ("mixed" not in text)


@pytest.mark.parametrize(("p", "said"), [(0.04, True), (0.041, False), (None, False)])
def test_a_curve_is_mixed_only_if_the_joint_test_says_that_it_differs(
    p: float | None, said: bool
) -> None:
    group = replace(with_verdicts(OPEN, UP, UP, DOWN, DOWN).comparison.groups[0], curve_p=p)
    assert bool(reasons.mixed_directions(group)) is said


# ------------------------------------------------------------------ trouble


def test_a_mismatch_without_its_own_finding_is_an_error() -> None:
    data = small_data()
    record = data.evidence[0]
    wrong = replace(record, evidence=replace(record.evidence, ok=False, asked="x", ran="y"))
    found = findings.report_findings(replace(data, evidence=(wrong, *data.evidence[1:])))
    assert found[0].level is Level.ERROR
    assert shows(found[0].message, BASELINE, "1x2", "x", "y")


def test_a_shared_finding_is_reported_once() -> None:
    data = small_data()
    same = Finding(Level.WARNING, "x", "seen", "why", "mend")
    records = tuple(
        replace(r, evidence=replace(r.evidence, findings=(same,))) for r in data.evidence
    )
    data = replace(data, evidence=records)
    (found,) = (f for f in findings.report_findings(data) if f.code == "x")
    assert found.message.count("(1x2)") == len(records)
    assert shown(data).count("what to do: mend") == 1


def test_a_reason_that_several_findings_share_comes_after_the_last() -> None:
    data = small_data()
    findings = tuple(
        Finding(Level.WARNING, "x", f"seen {n}", "shared why", "mend") for n in range(3)
    )
    text = shown(replace(data, comparison=replace(data.comparison, findings=findings)))
    assert text.count("shared why") == 1
    assert text.index("seen 2") < text.index("shared why")


def test_missing_evidence_is_never_a_pass() -> None:
    data = small_data()
    found = findings.report_findings(replace(data, evidence=data.evidence[1:]))
    (missing,) = (f for f in found if f.code == "evidence-missing")
    assert shows(missing.message, BASELINE)
    assert not [f for f in findings.report_findings(olivia()) if f.code == "evidence-missing"]


def test_failed_launches_are_counted_with_the_first_finding() -> None:
    data = small_data()
    told = Finding(Level.ERROR, "timed-out", "was hung: ended", "it printed nothing", "look at it")
    broken = tuple(
        replace(launch, state=LaunchState.TIMEOUT, findings=(told,))
        if launch.slot == 2 and launch.round < 2
        else launch
        for launch in data.launches
    )
    found = [
        f for f in findings.report_findings(replace(data, launches=broken)) if f.code == "timed-out"
    ]
    assert len(found) == 1
    assert shows(found[0].message, "2 of 6 launches", "timeout")
    assert found[0].fix == "look at it"


def test_secrets_of_the_environment_do_not_reach_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_TOKEN", "hunter2-planted")
    data = small_data()
    finding = Finding(
        Level.WARNING, "x", "said hunter2-planted", "hunter2-planted", "hunter2-planted"
    )
    data = replace(data, comparison=replace(data.comparison, findings=(finding,)))
    assert "hunter2" not in shown(data) + markdown.render_markdown(data)


def test_what_was_left_out_names_each_mpi_once() -> None:
    names = ("a@1/ofi-cxi", "b@2/ucx", "a@1/ofi-efa", "c@3")
    assert terminal._by_mpi(names).split("; ") == [f"{names[0]}, ofi-efa", names[1], names[3]]


def test_a_finding_of_many_allocations_and_layouts_names_each_once() -> None:
    data = small_data()
    told = Finding(Level.WARNING, "lane-other", "one-sided went by rdma")
    first, *_ = data.evidence
    records = tuple(
        replace(first, layout=layout, evidence=replace(first.evidence, findings=(told,)))
        for layout in ("2x1", "2x2", "2x1", "2x2")
    )
    (found,) = (
        f
        for f in findings.report_findings(replace(data, evidence=records))
        if f.code == "lane-other"
    )
    name = next(c.id for c in data.configurations if c.key == first.configuration)
    assert shows(found.message, name, "2x1", "2x2", "one-sided", "rdma")
