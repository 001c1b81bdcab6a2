"""A comparison as Markdown tables, for an issue, a wiki or a site's documentation.

Every foreign word is escaped, so that no name can end a table or start a link.
"""

from __future__ import annotations

import re

from mpigraft.model import CellGroup, Verdict
from mpigraft.report import ReportData, cost, growth, matrix, stages, words
from mpigraft.report.alone import Alone, alone
from mpigraft.report.headline import headline
from mpigraft.report.sections import Section, sections, tally
from mpigraft.report.trouble import trouble
from mpigraft.summary import completed

SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")


def escape(text: str) -> str:
    """Foreign text on one line, with all that Markdown reads as markup taken literally."""
    return SPECIAL.sub(r"\\\1", words.homeless(words.visible(" ".join(text.splitlines()))))


def render(data: ReportData) -> str:
    """Summary first, then an overview and a table of all sizes for each benchmark."""
    comparison = data.comparison
    title = escape(data.campaign.name) if data.campaign else "campaign"
    lines = [f"# {title} {comparison.campaign[:8]}, against {escape(comparison.baseline)}", ""]
    for line in headline(comparison):
        lines += [escape(line), ""]
    lines += [f"- {escape(line)}" for line in comparison.summary]
    lines += [""] if comparison.summary else []
    lines += [cost.honesty(data).line + ".", ""]
    if looks := stages.lines(data.comparison):
        lines += [*(f"- {line}" for line in looks), ""]
    if deciding := cost.deciding(data):
        lines += [deciding + ".", ""]
    if command := cost.extension(data):
        lines += [f"    {command}", ""]
    for section in sections(comparison):
        lines += _section(section, comparison.baseline)
    for one in alone(data):
        lines += _alone(one, comparison.baseline)
    for one_map in matrix.found(data):
        lines += [f"## {escape(matrix.title(one_map))}", ""]
        lines += [*(f"- {escape(line)}" for line in matrix.told(one_map)), ""]
    for head, told in growth.lines(data):
        lines += [f"## {escape(head)}", "", *(f"- {escape(line)}" for line in told), ""]
    if comparison.groups:
        lines += [f"{tally(comparison)}.", ""]
    lines += _launches(data)
    lines += _findings(data)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section, baseline: str) -> list[str]:
    head = f"## {escape(section.benchmark)} on {escape(section.place)}"
    what = f"{section.metric} in {section.unit}, {words.better(section.better)}."
    what += f" This is {section.repeats}." if section.repeats else ""
    lines = [head, "", what, ""]
    lines += _table(("configuration", "curve", "ratio", "95 % interval", "crossovers"), "llrll")
    for group in section.groups:
        lines.append(
            _row(
                escape(group.configuration),
                _verdict(group.curve)
                + (f" \\({escape(note)}\\)" if (note := words.note(group)) else ""),
                words.ratio(group.pooled),
                _interval(group.pooled_low, group.pooled_high),
                _crossovers(group, section, baseline),
            )
        )
    for group in section.groups:
        lines += ["", f"### {escape(group.configuration)}", ""]
        heads = ("size", "baseline", "value", "ratio", "95 % interval", "rounds", "verdict")
        lines += _table(heads, "rrrrlrl")
        for cell in group.cells:
            needs = "" if cell.rounds_needed is None else f", needs {cell.rounds_needed} rounds"
            lines.append(
                _row(
                    words.size(cell.size),
                    words.number(cell.baseline),
                    words.number(cell.value),
                    words.ratio(cell.ratio),
                    _interval(cell.low, cell.high),
                    str(cell.rounds),
                    _verdict(cell.verdict) + needs,
                )
            )
    return [*lines, ""]


def _alone(one: Alone, baseline: str) -> list[str]:
    """The baseline's own values, where there is nothing else."""
    head = f"## {escape(one.benchmark)} on {escape(one.place)}"
    what = f"{escape(baseline)}: {one.metric} in {one.unit}, {words.better(one.better)}."
    rows = [
        _row(
            words.size(f.size),
            words.number(f.value),
            escape(words.span(f.interval)),
            str(f.launches),
        )
        for f in one.figures
    ]
    table = _table(("size", "value", "95 % interval", "launches"), "rrlr")
    return [head, "", what, "", *table, *rows, ""]


def _table(heads: tuple[str, ...], sides: str) -> list[str]:
    rules = {"l": "---", "r": "--:"}
    return [_row(*heads), _row(*(rules[side] for side in sides))]


def _row(*columns: str) -> str:
    return f"| {' | '.join(columns)} |"


def _verdict(verdict: Verdict) -> str:
    return f"{words.VERDICTS[verdict]} {verdict}"


def _interval(low: float | None, high: float | None) -> str:
    return escape(words.interval(low, high))


def _crossovers(group: CellGroup, section: Section, baseline: str) -> str:
    changes = words.crossings(group, baseline, section.better)
    return ", ".join(f"from {words.size(c.size)} {escape(c.ahead)}" for c in changes) or "none"


def _launches(data: ReportData) -> list[str]:
    """How many completed, where any did not."""
    counts = completed(data.comparison)
    if not counts:
        return []
    table = _table(("configuration", "layout", "launches that completed"), "lll")
    return ["## Launches", "", *table, *(_row(*map(escape, row)) for row in counts), ""]


def _findings(data: ReportData) -> list[str]:
    found = trouble(data)
    if not found:
        return []
    lines = ["## Findings", ""]
    for finding in found:
        text = f"- **{finding.level} {escape(finding.code)}**: {escape(finding.seen)}"
        text += f" Why: {escape(finding.why)}." if finding.why else ""
        text += f" What to do: {escape(finding.mend)}." if finding.mend else ""
        lines.append(text)
    return lines
