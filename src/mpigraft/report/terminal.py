"""A comparison on a terminal or in a pipe: at most 80 columns, colour only where there is some.

The longest part comes first and the answer last, since the end is what a terminal shows:
tables per size, one overview per benchmark, noise, findings, summary; and tables over layouts of a
benchmark that has several. `print_answer` has one screen instead (answer.py).
Verdicts carry a sign as well as a colour; a stream that cannot write it gets ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from mpigraft.analysis import reason_of
from mpigraft.core import numbers
from mpigraft.core.model import Cause, CellGroup, Origin, Verdict, shared_reason
from mpigraft.core.text import NO_BREAK, WIDTH, printable
from mpigraft.report import answer, looks, node_pairs, precision, rank_scaling
from mpigraft.report.baseline_only import BaselineSeries, baseline_series
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import left_out, report_findings
from mpigraft.report.headline import headline
from mpigraft.report.layouts_table import NodesTable, over_notes, split_layouts
from mpigraft.report.screen import (
    LEVELS,
    LINES,
    Screen,
    finding_lines,
    folded,
    print_line,
    print_screen,
    say,
    signs_of,
)
from mpigraft.report.software import guest_lines, role_lines
from mpigraft.report.table import STYLES, Line, Signs, Table, by_title
from mpigraft.report.tables import baseline_table, launches_table, size_table
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, Subject, count, sections, tally

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

NAME = 27  # columns for a configuration's id: the longest of the fetched MPIs
STRIP = 24  # columns for one sign per size: 1 B to 8 MiB
WHY_NOT = "mpigraft discover --full".replace(" ", NO_BREAK)
GUEST = " in "  # of what was left out: a host MPI in a guest, which the check refused


def print_report(data: ReportData, console: Console) -> None:
    """Print all of the comparison: every size of every curve, every finding."""
    signs = signs_of(console)
    over, _ = split_layouts(data.comparison, signs)
    every = sections(data.comparison)
    say(console, _headline(data))
    for name, role in guest_lines(data).items():
        say(console, f"{printable(name)}: {printable(role)}")
    for section in every:
        for group in section.groups:
            _sizes(console, section, group, data.comparison.baseline, signs)
    alike = bool(shared_reason(data.comparison.groups))
    for section in every:
        _overview(console, section, data.comparison.baseline, signs, alike=alike)
    for line in (line for table in over for line in _over_lines(table, console.width)):
        print_line(console, *line)
    for series in baseline_series(data):
        _baseline_only(console, series, data.comparison.baseline)
    _figures(console, data, signs)
    console.print()
    _over_legend(console, over)
    _noise(console, data, signs)
    _launches(console, data)
    _findings(console, data)
    _summary(console, data)


def print_answer(data: ReportData, console: Console) -> None:
    """Print what a comparison found in one screen; print_report has all of it."""
    signs, width = signs_of(console), console.width
    over, alone = split_layouts(data.comparison, signs)
    table = [line for one in over for line in _over_lines(one, width)]
    if over and not alone and len(table) <= LINES:
        table += [[], *folded("; ".join(over_notes(over)), width, "dim")]
    elif table := answer.curve_table(data.comparison, width, signs):
        table += answer.legend(signs, width)
    for role in role_lines(data):
        table += folded(printable(role), width)
    for series in baseline_series(data):
        values = _absolute({f.size: f.value for f in series.figures}, data.comparison.baseline)
        table += [[], *folded(_title(series), width, "bold"), *folded(values, width)]
    for sentence in (line for figure in node_pairs.figures(data) for line in figure.sentences):
        table += [[], *folded(words.single_line(sentence), width)]
    shown = Screen(
        answer.answer_lines(data),
        table,
        finding_lines((f for f in report_findings(data) if f.code != answer.IN_THE_ANSWER), width),
        answer.next_lines(data, width),
        title=(_headline(data),),
    )
    print_screen(shown, console)


def _figures(console: Console, data: ReportData, signs: Signs) -> None:
    in_ascii = signs is words.ASCII_SIGNS
    for title, figures in by_title(
        (*rank_scaling.figures(data), *node_pairs.figures(data))
    ).items():
        console.print()
        say(console, title, "bold")
        for figure in figures:
            for line in figure.text(in_ascii):
                print_line(console, line)
            for sentence in figure.sentences:
                say(console, words.single_line(sentence), indent=4)


def _headline(data: ReportData) -> str:
    comparison = data.comparison
    what = printable(data.campaign.name)
    date = data.campaign.created[:10]
    baseline = printable(comparison.baseline)
    if comparison.origin is Origin.IMPORT:  # when it was measured is not known
        when = f"imported on {date}" if date else "imported"
    else:
        when = ", ".join(filter(None, (date, numbers.counted(comparison.rounds, "round"))))
    return f"{what} {comparison.campaign[:8]}, {when}, against {baseline}"


def _sizes(
    console: Console, section: Section, group: CellGroup, baseline: str, signs: Signs
) -> None:
    """Every size of one configuration on one benchmark."""
    console.print()
    say(console, _title(section), "bold")
    say(console, f"{printable(group.configuration)} against {printable(baseline)}")
    _print_table(console, size_table(section, group, narrow=True), signs)
    for size, ahead in words.crossings(group, baseline, section.better).items():
        print_line(console, f"from {numbers.size(size)} {printable(ahead)} is ahead")


def _baseline_only(console: Console, series: BaselineSeries, baseline: str) -> None:
    """Give the baseline's own values, where there is nothing else."""
    console.print()
    say(console, _title(series), "bold")
    say(console, printable(baseline))
    _print_table(console, baseline_table(series, baseline))


def _print_table(console: Console, table: Table, signs: Signs = words.VERDICT_SIGNS) -> None:
    for line in table.styled(signs):
        print_line(console, *line)


def _title(section: Subject) -> str:
    return (
        f"{printable(section.benchmark)}: {words.in_unit(section.quantity, section.unit)}, "
        f"{words.better(section.better)}, {section.place}"
    )


def _over_lines(table: NodesTable, width: int) -> list[Line]:
    """Lay one benchmark out over its layouts."""
    lines: list[Line] = []
    for block in table.blocks(width):
        lines += [[], *folded(table.title, width, "bold"), *block]
    return lines


def _over_legend(console: Console, over: tuple[NodesTable, ...]) -> None:
    if notes := "; ".join(over_notes(over)):
        say(console, notes, "dim")


def _overview(
    console: Console, section: Section, baseline: str, signs: Signs, *, alike: bool
) -> None:
    """One row per configuration: a sign per size, and the ratio over the whole curve. `alike`: no
    curve has a verdict, all for the reason that the summary gives."""
    console.print()
    say(console, _title(section), "bold")
    if section.repeats:
        say(console, section.repeats)
    say(console, _absolute(section.baseline, baseline))
    sizes = section.sizes
    wide = len(sizes) <= STRIP
    column = NAME if console.width >= WIDTH else max(NAME - WIDTH + console.width, 0)
    ruler = _ruler(sizes) if wide else ""
    margin = f", margin {numbers.percent(section.noise.margin)}" if section.noise else ""
    print_line(console, (f"{'':{column}} {ruler:<{STRIP}}   ratio{margin}", "dim"))
    for group in section.groups:
        name = printable(group.configuration)
        if len(name) > column:  # a long name has a line of its own, never cut
            print_line(console, name)
            name = ""
        strip = _strip(group, sizes, signs) if wide else _counts(group, signs)
        whole = f"{signs[group.curve]} {numbers.ratio(group.pooled):>5}"
        if group.pooled_low is not None:
            whole += f" {numbers.interval(group.pooled_low, group.pooled_high)}"
        print_line(console, f"{name:<{column}} ", strip, " ", (whole, STYLES[group.curve]))
    for note in () if alike else words.curve_notes(section.groups):
        say(console, note, "dim")
    if unlike := words.unlike_sizes(section.groups):
        say(console, unlike, "dim")
    for group in section.groups:
        reason = reason_of(group)
        mixed = reason is not None and reason.cause is Cause.MIXED  # it names the first crossover
        changes = words.crossings(group, baseline, section.better)
        if len(changes) > mixed:
            steps = words.crossing_steps(changes, baseline)
            say(console, f"{printable(group.configuration)}: {steps}", "dim")


def _absolute(values: Mapping[int, float], baseline: str) -> str:
    """Write the baseline's value at a few sizes, for the ratios below."""
    every = list(values)
    few = sorted({every[0], every[len(every) // 2], every[-1]}) if every else []
    parts = (numbers.number(values[s]) + (f" at {numbers.size(s)}" if s > 0 else "") for s in few)
    return f"baseline {printable(baseline)}: {', '.join(parts)}"


def _ruler(sizes: tuple[int, ...]) -> str:
    """Write marks over the strip where 1, 1K and 1M are; at least the first size."""
    line = [" "] * len(sizes)
    for place, size in enumerate(sizes):
        mark = numbers.short_size(size)
        free = all(c == " " for c in line[max(place - 1, 0) : place + len(mark)])
        fits = place + len(mark) <= STRIP
        if free and fits and (place == 0 or size in (1 << 10, 1 << 20)):
            line[place : place + len(mark)] = mark
    return "".join(line)


def _strip(group: CellGroup, sizes: tuple[int, ...], signs: Signs) -> Text:
    from rich.text import Text

    verdicts = {cell.size: cell.verdict for cell in group.cells}
    text = Text()
    for size in sizes:
        verdict = verdicts.get(size)
        text.append(signs[verdict] if verdict else " ", STYLES[verdict] if verdict else "")
    text.append(" " * (STRIP - len(sizes)))
    return text


def _counts(group: CellGroup, signs: Signs) -> Text:
    """Return where there are more sizes than columns: how many cells have each verdict."""
    from rich.text import Text

    text = Text()
    for verdict, number in count(list(group.cells)).items():
        if number:
            text.append(f"{number}{signs[verdict]} ", STYLES[verdict])
    text.append(" " * max(STRIP - len(text), 0))
    return text


def _noise(console: Console, data: ReportData, signs: Signs) -> None:
    if not data.comparison.groups:
        say(console, _plus_minus(precision.precision(data).line, signs))
        return
    legend = ", ".join(f"{signs[v]} {v}" for v in Verdict)
    say(console, f"{legend}; one sign per size, the last for the curve", "dim")
    say(console, "in brackets after the rounds: how many would decide", "dim")
    say(console, tally(data.comparison))
    say(console, _plus_minus(precision.precision(data).line, signs))
    for line in looks.look_lines(data.comparison):
        say(console, line)
    if deciding := precision.deciding(data):
        say(console, deciding)
    if command := precision.extension(data):
        print_line(console, f"  {command}")


def _launches(console: Console, data: ReportData) -> None:
    """How many completed, where any did not."""
    if table := launches_table(data):
        console.print()
        say(console, table.caption, "bold")
        _print_table(console, table)


def _plus_minus(text: str, signs: Signs) -> str:
    return text.replace("±", "+-") if signs is words.ASCII_SIGNS else text


def _by_mpi(names: Iterable[str]) -> str:
    """`openmpi@5.0.11/ofi-cxi, ofi-efa; mpich@5.0.2/ofi-cxi`: each MPI once."""
    transports_of: dict[str, list[str]] = {}
    for name in map(printable, names):
        mpi, slash, transport = name.partition("/")
        transports_of.setdefault(mpi + slash, []).append(transport)
    return "; ".join(mpi + ", ".join(transports) for mpi, transports in transports_of.items())


def _findings(console: Console, data: ReportData) -> None:
    findings, out = report_findings(data), left_out(data)
    if findings or out:
        console.print()
    for (why, fix), alike in groupby(findings, key=lambda f: (f.why, f.fix)):
        for finding in alike:
            message = words.single_line(finding.message)
            head = f"{finding.level} {printable(finding.code)}: {message}"
            say(console, head, LEVELS[finding.level])
        _reason(console, why, fix)
    here = [name for name, _ in out if GUEST not in name]
    if here:
        say(console, f"left out: {_by_mpi(here)}; why: {WHY_NOT}", "dim")
    for name, why in out:
        if GUEST in name:
            say(
                console,
                f"left out: {printable(name)}: {words.single_line(why)}",
                "dim",
                indent=2,
            )


def _reason(console: Console, why: str, fix: str) -> None:
    """Why and what to do, once for all findings in a row that share them."""
    for place, line in enumerate(why.splitlines()):
        say(console, f"  {'why: ' if place == 0 else '     '}{words.single_line(line)}", indent=4)
    if fix:
        say(console, f"  what to do: {words.single_line(fix)}", indent=4)


def _summary(console: Console, data: ReportData) -> None:
    """Say what is known of each curve, and give the answer."""
    lines, summary = headline(data), data.comparison.summary
    if summary:
        console.print()
    for line in summary:
        say(console, words.single_line(line))
    if lines:
        console.print()
    for place, line in enumerate(lines):
        say(console, words.single_line(line), "" if place else "bold", indent=2 if place else 0)
