"""A comparison as Markdown tables, for an issue, a wiki or a site's documentation.

Every foreign word is escaped, so that no name can end a table or start a link.
"""

from __future__ import annotations

import re

from mpigraft.core import numbers
from mpigraft.core.homes import hide_homes
from mpigraft.core.model import CellGroup, shared_reason
from mpigraft.core.text import printable
from mpigraft.report import looks, node_pairs, precision, rank_scaling
from mpigraft.report.baseline_only import BaselineSeries, baseline_series
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import report_findings
from mpigraft.report.headline import headline
from mpigraft.report.layouts_table import over_notes, split_layouts
from mpigraft.report.software import guest_lines, machine_table, software_table
from mpigraft.report.table import Column, Judged, Table, by_title, cell_text
from mpigraft.report.tables import baseline_table, launches_table, size_table
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, tally

SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")
OVERVIEW = (
    Column("configuration"),
    Column("curve"),
    Column("ratio", right=True),
    Column("95 % interval"),
    Column("crossovers"),
)


def escape(text: str) -> str:
    """Foreign text on one line, with all that Markdown reads as markup taken literally."""
    return SPECIAL.sub(r"\\\1", hide_homes(printable(" ".join(text.splitlines()))))


def render_markdown(data: ReportData, *, full: bool = False) -> str:
    """Summary first, then an overview of each benchmark; of one on several layouts a table over
    them. In `full` every benchmark and layout has its overview and a table of all sizes."""
    comparison = data.comparison
    over, alone = split_layouts(comparison, words.VERDICT_SIGNS, full=full)
    title = escape(data.campaign.name)
    lines = [f"# {title} {comparison.campaign[:8]}, against {escape(comparison.baseline)}", ""]
    for line in headline(data):
        lines += [escape(line), ""]
    if roles := guest_lines(data):
        lines += [*(f"- {escape(name)}: {escape(role)}" for name, role in roles.items()), ""]
    summary = () if over and headline(data) else comparison.summary
    lines += [f"- {escape(line)}" for line in summary]
    lines += [""] if summary else []
    lines += [precision.precision(data).line + ".", ""]
    if taken := looks.look_lines(data.comparison):
        lines += [*(f"- {line}" for line in taken), ""]
    if deciding := precision.deciding(data):
        lines += [deciding + ".", ""]
    if command := precision.extension(data):
        lines += [f"    {command}", ""]
    for table in over:
        lines += [f"## {escape(table.title)}", "", *markdown_table(table.table()), ""]
    if notes := "; ".join(over_notes(over)):
        lines += [f"{escape(notes)}.", ""]
    alike = bool(shared_reason(comparison.groups))  # then the summary has it
    for section in alone:
        lines += _section(section, comparison.baseline, full=full, alike=alike)
    for series in baseline_series(data):
        lines += _baseline_only(series, comparison.baseline)
    for title, figures in by_title(
        (*node_pairs.figures(data), *rank_scaling.figures(data))
    ).items():
        sentences = (line for figure in figures for line in figure.sentences)
        lines += [f"## {escape(title)}", "", *(f"- {escape(line)}" for line in sentences), ""]
    if comparison.groups:
        lines += [f"{tally(comparison)}.", ""]
    lines += _launches(data)
    lines += _measured_with(data)
    lines += _findings(data)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section, baseline: str, *, full: bool, alike: bool) -> list[str]:
    head = f"## {escape(section.benchmark)} on {escape(section.place)}"
    what = f"{words.in_unit(section.quantity, section.unit)}, {words.better(section.better)}."
    what += f" This is {section.repeats}." if section.repeats else ""
    lines = [head, "", what, ""]
    rows = tuple(
        (
            group.configuration,
            Judged(group.curve, "" if alike else words.bracketed_note(group)),
            numbers.ratio(group.pooled),
            numbers.interval(group.pooled_low, group.pooled_high),
            _crossovers(group, section, baseline),
        )
        for group in section.groups
    )
    lines += markdown_table(Table("", OVERVIEW, rows))
    if unlike := words.unlike_sizes(section.groups):
        lines += ["", f"{escape(unlike)}."]
    for group in section.groups if full else ():
        lines += ["", f"### {escape(group.configuration)}", ""]
        lines += markdown_table(size_table(section, group))
    return [*lines, ""]


def _baseline_only(series: BaselineSeries, baseline: str) -> list[str]:
    """Give the baseline's own values, where there is nothing else."""
    head = f"## {escape(series.benchmark)} on {escape(series.place)}"
    figures = words.in_unit(series.quantity, series.unit)
    what = f"{escape(baseline)}: {figures}, {words.better(series.better)}."
    return [head, "", what, "", *markdown_table(baseline_table(series, baseline)), ""]


def markdown_table(table: Table) -> list[str]:
    """Lay a table out, its texts escaped."""
    rules = ("--:" if column.right else "---" for column in table.columns)
    lines = [[column.head for column in table.columns], rules]
    lines += [[escape(cell_text(cell)) for cell in row] for row in table.rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _crossovers(group: CellGroup, section: Section, baseline: str) -> str:
    changes = words.crossings(group, baseline, section.better)
    steps = (f"from {numbers.size(size)} {ahead}" for size, ahead in changes.items())
    return ", ".join(steps) or "none"


def _launches(data: ReportData) -> list[str]:
    """Return how many completed, where any did not."""
    table = launches_table(data)
    return ["## Launches", "", *markdown_table(table), ""] if table else []


def _measured_with(data: ReportData) -> list[str]:
    """Hosts, CPU, network and system; MPIs with their modules, libraries and launchers."""
    lines: list[str] = []
    for table in (machine_table(data), software_table(data)):
        lines += [f"## {table.caption}", "", *markdown_table(table), ""] if table else []
    return lines


def _findings(data: ReportData) -> list[str]:
    findings = report_findings(data)
    if not findings:
        return []
    lines = ["## Findings", ""]
    for finding in findings:
        parts = [f"- **{finding.level} {escape(finding.code)}**: {escape(finding.message)}"]
        parts += [f"Why: {escape(finding.why)}"] if finding.why else []
        parts += [f"What to do: {escape(finding.fix)}"] if finding.fix else []
        text = f"{'. '.join(parts)}." if len(parts) > 1 else parts[0]
        lines.append(text)
    return lines
