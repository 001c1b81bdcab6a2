"""A comparison on a terminal or in a pipe: at most 80 columns, colour only where there is some.

The longest part comes first and the answer last, since the end is what a terminal shows:
tables per size, one overview per benchmark, noise, findings, summary. `brief` leaves the tables
out. Verdicts carry a sign as well as a colour; a stream that cannot write it gets ASCII.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from mpigraft.model import Cell, CellGroup, Comparison, Level, Origin, Verdict
from mpigraft.report import ReportData, cost, growth, matrix, stages, words
from mpigraft.report.alone import Alone, alone
from mpigraft.report.headline import headline
from mpigraft.report.sections import Section, count, sections, tally
from mpigraft.report.trouble import left_out, trouble
from mpigraft.summary import completed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

NAME = 27  # columns for a configuration's id: the longest of the fetched MPIs
STRIP = 24  # columns for one sign per size: 1 B to 8 MiB
STYLES = {  # green and magenta differ for every kind of colour blindness; red and green do not
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold magenta",
    Verdict.EQUIVALENT: "cyan",
    Verdict.INCONCLUSIVE: "dim",
}
GUEST = " in "  # of what was left out: a host MPI in a guest, which the check refused
LEVELS = {Level.INFO: "dim", Level.WARNING: "yellow", Level.ERROR: "bold red"}

Signs = Mapping[Verdict, str]


def show(data: ReportData, console: Console, *, brief: bool = False) -> None:
    """Print the comparison; `brief` without the tables per size."""
    signs = _signs(console)
    found = sections(data.comparison)
    _say(console, _headline(data))
    if not brief:
        for section in found:
            for group in section.groups:
                _table(console, section, group, data.comparison.baseline, signs)
    for section in found:
        _overview(console, section, data.comparison.baseline, signs)
    for one in alone(data):
        _alone(console, one, data.comparison.baseline, brief=brief)
    _growth(console, data)
    _matrices(console, data, signs)
    _noise(console, data, signs, brief=brief)
    _launches(console, data)
    _findings(console, data)
    _summary(console, data.comparison, brief=brief)


def _growth(console: Console, data: ReportData) -> None:
    for title, lines in growth.lines(data):
        console.print()
        _say(console, title, "bold")
        for line in lines:
            _say(console, words.line(line), indent=4)


def _matrices(console: Console, data: ReportData, signs: Signs) -> None:
    shades = matrix.SHADES_ASCII if signs is words.VERDICTS_ASCII else matrix.SHADES
    for one in matrix.found(data):
        console.print()
        _say(console, matrix.title(one), "bold")
        for line in matrix.picture(one, shades):
            _row(console, line)
        for line in matrix.told(one):
            _say(console, words.line(line), indent=4)


def _signs(console: Console) -> Signs:
    try:
        "".join(words.VERDICTS.values()).encode(console.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return words.VERDICTS_ASCII
    return words.VERDICTS


def _row(console: Console, *parts: str | tuple[str, str] | Text) -> None:
    """One row: each part is a string, (string, style) or Text. It stays one line in a pipe."""
    from rich.text import Text

    text = Text.assemble(*parts)
    text.rstrip()
    console.print(text, soft_wrap=True)


def _say(console: Console, text: str, style: str = "", indent: int = 2) -> None:
    """A sentence, folded at the console's width; further lines are indented."""
    from rich.text import Text

    lines = textwrap.wrap(
        words.unbroken(text),
        width=console.width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(Text(line.replace(words.STUCK, " "), style), soft_wrap=True)


def _headline(data: ReportData) -> str:
    comparison = data.comparison
    what = words.visible(data.campaign.name) if data.campaign else "campaign"
    date = data.campaign.created[:10] if data.campaign else ""
    baseline = words.visible(comparison.baseline)
    if comparison.origin is Origin.IMPORT:  # when it was measured is not known
        when = f"imported on {date}" if date else "imported"
    else:
        when = ", ".join(filter(None, (date, cost.rounds(comparison.rounds))))
    return f"{what} {comparison.campaign[:8]}, {when}, against {baseline}"


def _table(
    console: Console, section: Section, group: CellGroup, baseline: str, signs: Signs
) -> None:
    """Every size of one configuration on one benchmark."""
    console.print()
    _say(console, _title(section), "bold")
    _say(console, f"{words.visible(group.configuration)} against {words.visible(baseline)}")
    heads = ("size", "baseline", "value", "ratio", "95 % interval", "rounds")
    _row(console, (_columns(*heads) + "  verdict", "dim"))
    for cell in group.cells:
        row = _columns(
            words.size(cell.size),
            words.number(cell.baseline),
            words.number(cell.value),
            words.ratio(cell.ratio),
            words.interval(cell.low, cell.high),
            _rounds(cell),
        )
        _row(console, row, "  ", (f"{signs[cell.verdict]} {cell.verdict}", STYLES[cell.verdict]))
    for crossing in words.crossings(group, baseline, section.better):
        _row(console, f"from {words.size(crossing.size)} {words.visible(crossing.ahead)} is ahead")


def _alone(console: Console, one: Alone, baseline: str, *, brief: bool) -> None:
    """The baseline's own values, where there is nothing else."""
    console.print()
    _say(console, _title(one), "bold")
    if brief:
        _say(console, _absolute({f.size: f.value for f in one.figures}, baseline))
        return
    _say(console, words.visible(baseline))
    _row(console, (f"{'size':>8} {'value':>9}  {'95 % interval':<18} {'launches':>8}", "dim"))
    for f in one.figures:
        span = words.span(f.interval)
        _row(
            console,
            f"{words.size(f.size):>8} {words.number(f.value):>9}  {span:<18} {f.launches:>8}",
        )


def _columns(size: str, baseline: str, value: str, ratio: str, interval: str, rounds: str) -> str:
    return f"{size:>8} {baseline:>9} {value:>9} {ratio:>6}  {interval:<14} {rounds:>10}"


def _rounds(cell: Cell) -> str:
    """Rounds that were measured and, in brackets, how many would decide."""
    needed = cell.rounds_needed
    if needed is None:
        return str(cell.rounds)
    return f"{cell.rounds} ({needed if needed < 10_000 else '>9999'})"


def _title(section: Section | Alone) -> str:
    return (
        f"{words.visible(section.benchmark)}: {section.metric} in {section.unit}, "
        f"{words.better(section.better)}, {section.place}"
    )


def _overview(console: Console, section: Section, baseline: str, signs: Signs) -> None:
    """One row per configuration: a sign per size, and the ratio over the whole curve."""
    console.print()
    _say(console, _title(section), "bold")
    if section.repeats:
        _say(console, section.repeats)
    _say(console, _absolute(section.baseline, baseline))
    sizes = section.sizes
    wide = len(sizes) <= STRIP
    ruler = _ruler(sizes) if wide else ""
    margin = f", margin {words.percent(section.noise.margin)}" if section.noise else ""
    _row(console, (f"{'':{NAME}} {ruler:<{STRIP}}   ratio{margin}", "dim"))
    for group in section.groups:
        name = words.visible(group.configuration)
        if len(name) > NAME:  # a long name has a line of its own, never cut
            _row(console, name)
            name = ""
        strip = _strip(group, sizes, signs) if wide else _counts(group, signs)
        whole = f"{signs[group.curve]} {words.ratio(group.pooled):>5}"
        if group.pooled_low is not None:
            whole += f" {words.interval(group.pooled_low, group.pooled_high)}"
        _row(console, f"{name:<{NAME}} ", strip, " ", (whole, STYLES[group.curve]))
    for group in section.groups:
        why = words.undecided(group)
        if note := words.note(group):
            _say(console, f"{words.visible(group.configuration)}: {note}", "dim")
        changes = words.crossings(group, baseline, section.better)
        if changes and (not why or len(changes) > 1):
            _say(console, _crossover(group, baseline, changes), "dim")


def _crossover(group: CellGroup, baseline: str, changes: tuple[words.Crossing, ...]) -> str:
    steps = ", ".join(
        f"{'baseline' if c.ahead == baseline else 'it'} is ahead from {words.size(c.size)}"
        for c in changes[:4]
    )
    more = f", and {len(changes) - 4} more" if len(changes) > 4 else ""
    return f"{words.visible(group.configuration)}: {steps}{more}"


def _absolute(values: Mapping[int, float], baseline: str) -> str:
    """The baseline's value at a few sizes, so that a ratio has something to stand on."""
    every = list(values)
    few = sorted({every[0], every[len(every) // 2], every[-1]}) if every else []
    parts = (words.number(values[s]) + (f" at {words.size(s)}" if s > 0 else "") for s in few)
    return f"baseline {words.visible(baseline)}: {', '.join(parts)}"


def _ruler(sizes: tuple[int, ...]) -> str:
    """Marks over the strip where 1, 1K and 1M stand; at least the first size."""
    line = [" "] * len(sizes)
    for place, size in enumerate(sizes):
        mark = words.short_size(size)
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
    """Where there are more sizes than columns: how many cells have each verdict."""
    from rich.text import Text

    text = Text()
    for verdict, number in count(list(group.cells)).items():
        if number:
            text.append(f"{number}{signs[verdict]} ", STYLES[verdict])
    text.append(" " * max(STRIP - len(text), 0))
    return text


def _noise(console: Console, data: ReportData, signs: Signs, *, brief: bool) -> None:
    console.print()
    if not data.comparison.groups:
        _say(console, _plus_minus(cost.honesty(data).line, signs))
        return
    legend = ", ".join(f"{signs[v]} {v}" for v in Verdict)
    _say(console, f"{legend}; one sign per size, the last for the curve", "dim")
    if not brief:
        _say(console, "in brackets after the rounds: how many would decide", "dim")
    _say(console, tally(data.comparison))
    _say(console, _plus_minus(cost.honesty(data).line, signs))
    for line in stages.lines(data.comparison):
        _say(console, line)
    if deciding := cost.deciding(data):
        _say(console, deciding)
    if command := cost.extension(data):
        _row(console, f"  {command}")


def _launches(console: Console, data: ReportData) -> None:
    """How many completed, where any did not."""
    counts = completed(data.comparison)
    several = len({layout for _, layout, _ in counts}) > 1
    if counts:
        console.print()
        _say(console, "launches that completed", "bold")
    for who, layout, share in counts:
        name = words.visible(who) + (f" on {words.visible(layout)}" if several else "")
        _row(console, f"{name:<{NAME}} {share}")


def _plus_minus(text: str, signs: Signs) -> str:
    return text.replace("±", "+-") if signs is words.VERDICTS_ASCII else text


def _by_mpi(names: Iterable[str]) -> str:
    """`openmpi@5.0.11/ofi-cxi, ofi-efa; mpich@5.0.2/ofi-cxi`: each MPI once."""
    found: dict[str, list[str]] = {}
    for name in map(words.visible, names):
        mpi, slash, transport = name.partition("/")
        found.setdefault(mpi + slash, []).append(transport)
    return "; ".join(mpi + ", ".join(transports) for mpi, transports in found.items())


def _findings(console: Console, data: ReportData) -> None:
    found, out = trouble(data), left_out(data)
    if found or out:
        console.print()
    for (why, mend), alike in groupby(found, key=lambda f: (f.why, f.mend)):
        for finding in alike:
            head = f"{finding.level} {words.visible(finding.code)}: {words.line(finding.seen)}"
            _say(console, head, LEVELS[finding.level])
        _reason(console, why, mend)
    here = [who for who, _ in out if GUEST not in who]
    if here:
        _say(console, f"left out: {_by_mpi(here)} (`mpigraft discover` says why)", "dim")
    for who, why in out:
        if GUEST in who:
            _say(console, f"left out: {words.visible(who)}: {words.line(why)}", "dim", indent=2)


def _reason(console: Console, why: str, mend: str) -> None:
    """Why and what to do, once for all findings in a row that share them."""
    for place, line in enumerate(why.splitlines()):
        _say(console, f"  {'why: ' if place == 0 else '     '}{words.line(line)}", indent=4)
    if mend:
        _say(console, f"  what to do: {words.line(mend)}", indent=4)


def _summary(console: Console, comparison: Comparison, *, brief: bool) -> None:
    """The answer. In brief the lines per curve are left to the overviews that stand above."""
    answer = headline(comparison)
    curves = () if brief and answer else comparison.summary
    if curves:
        console.print()
    for line in curves:
        _say(console, words.line(line))
    if answer:
        console.print()
    for place, line in enumerate(answer):
        _say(console, words.line(line), "" if place else "bold", indent=2 if place else 0)
