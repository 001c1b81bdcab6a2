"""Reports of CrayPat-lite, and of pat_report: their first table of functions.

The program's own output may come before it. Samples are shares of the run time; traces have
seconds and calls, a rank's on average. `Imb.` is how much the highest rank has above the average.
Waiting has its own group, MPI_SYNC, with `(sync)` behind the routine's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from mpigraft.core.text import printable
from mpigraft.trace.profile.reports.text import ReportLines, routine_name
from mpigraft.trace.profile.values import Profile, Routine, Spread, by_time

HEAD = re.compile(r"^[^\S\n]*(?:#\s+CrayPat-lite Performance Statistics|CrayPat/X:)", re.MULTILINE)
VERSION = re.compile(r"^[^\S\n]*CrayPat/X:\s+Version (\S+)", re.MULTILINE)
TABLE = re.compile(r"\s*Table \d+:\s+(?:Sample )?Profile by (?:Function|Group)")
RANKS = re.compile(r"\s*Number of PEs \(MPI ranks\):\s*([\d,]+)")
TIME = re.compile(r"\s*(?:Avg )?Process Time:\s*([\d.,]+)\s+secs(?:\s+([\d.,]+)\s+secs per PE)?")
STARTED = re.compile(r"\s*Execution start time:\s+(.+?)\s*$")
HOST = re.compile(r"\s*System name and speed:\s+(\S+)")
INVOCATION = re.compile(r"\s*Program invocation:\s*(\S+)?")
RULE = re.compile(r"\s*\|+[-=]+\s*")
BARS = re.compile(r"^\s*\d?\|+(?=\s*[\d.]+%)")  # before a row, one for each level
GROUPS = ("MPI", "MPI_SYNC")
SYNC = "(sync)"
NONE = ("--", "")


@dataclass(frozen=True, slots=True)
class CrayPatRow:
    """A line of a table; the names of its columns are those of its head."""

    number: int
    name: str
    cells: dict[str, str]


def is_craypat(text: str) -> bool:
    return HEAD.search(text) is not None


def parse_craypat(text: str, path: Path) -> Profile:
    """Make the profile of a report. Raises UsageError."""
    lines = ReportLines(text, path)
    start = next((k for k, line in enumerate(lines.all) if TABLE.match(line)), -1)
    if start < 0:
        raise lines.refused(len(lines.all) - 1, "a report of CrayPat without a table of functions")
    facts = {name: next(_matches(lines, form), None) for name, form in (
        ("ranks", RANKS), ("time", TIME), ("started", STARTED), ("host", HOST),
        ("program", INVOCATION),
    )}  # fmt: skip
    number, match = facts["ranks"] or (0, None)
    if match is None:
        raise lines.refused(start, "a report of CrayPat without the number of its ranks")
    ranks = lines.count(match[1], number)
    rows = list(_rows(lines, start))
    run_s = _run_time(lines, facts["time"], rows)
    known = [one for row in rows if (one := _routine(lines, row, ranks, run_s)) is not None]
    group = [_share(lines, row) for row in rows if row.name in GROUPS]
    version = VERSION.search(text)
    waits = any(row.name == "MPI_SYNC" for row in rows)
    return Profile(
        program=_named(facts["program"]) or path.stem,
        source=f"CrayPat {version[1]}" if version else "CrayPat",
        ranks=ranks,
        hosts=tuple(_named(facts[name]) for name in ("host",) if facts[name]),
        began=_named(facts["started"]),
        run_s=run_s,
        total_s=None if run_s is None else run_s * ranks,
        mpi_s=None if run_s is None else sum(group) * run_s * ranks,
        waits=waits,
        routines=by_time(_joined(known)),
        notes=("functions below the report's threshold are not in it",),
    )


def _matches(lines: ReportLines, form: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in enumerate(lines.all):
        match = form.match(line)
        if match:
            yield number, match


def _named(fact: tuple[int, re.Match[str]] | None) -> str:
    text = (fact[1][1] or "") if fact else ""
    return printable(PurePath(text).name if "/" in text else text)


def _rows(lines: ReportLines, start: int) -> Iterator[CrayPatRow]:
    """Yield the rows of a table, which ends with a double rule. Raises UsageError for one without
    a head or an end."""
    heads: list[str] = []
    begun = False
    for number in range(start + 1, len(lines.all)):
        line = lines.all[number]
        if RULE.fullmatch(line):
            begun = True
            following = lines.all[number + 1] if number + 1 < len(lines.all) else ""
            if set(line.strip()) == {"|", "="} and not following.lstrip().startswith("|"):
                return
            continue
        cells = [cell.strip() for cell in BARS.sub("", line).split("|")]
        if len(cells) < 3:
            continue
        if "%" not in cells[0] or not cells[0][:1].isdigit():
            if begun and cells[0]:
                raise lines.refused(number, "this is no row of the table")
            if not begun:
                heads = _longer(heads, cells)
            continue
        if len(cells) != len(heads):
            raise lines.refused(number, f"{len(heads)} columns expected")
        yield CrayPatRow(number, cells[-1], dict(zip(heads[:-1], cells[:-1], strict=True)))
    raise lines.refused(len(lines.all) - 1, "the table has no end: it was cut short")


def _longer(heads: list[str], cells: list[str]) -> list[str]:
    """Heads are set over several lines: `Imb.` above `Samp%`."""
    if len(heads) != len(cells):
        return cells
    return [f"{a} {b}".strip() for a, b in zip(heads, cells, strict=True)]


def _share(lines: ReportLines, row: CrayPatRow) -> float:
    word = next(iter(row.cells.values()))
    return lines.figure(word.rstrip("%"), row.number) / 100


def _cell(lines: ReportLines, row: CrayPatRow, *names: str) -> float | None:
    word = next((row.cells[name] for name in names if name in row.cells), "")
    return None if word in NONE else lines.figure(word, row.number)


def _run_time(
    lines: ReportLines, fact: tuple[int, re.Match[str]] | None, rows: list[CrayPatRow]
) -> float | None:
    """Return the time of a rank on average: as it is stated, else the total of a trace."""
    if fact:
        return lines.figure(fact[1][2] or fact[1][1], fact[0])
    total = next((row for row in rows if row.name == "Total"), None)
    return _cell(lines, total, "Time") if total else None


def _routine(
    lines: ReportLines, row: CrayPatRow, ranks: int, run_s: float | None
) -> Routine | None:
    waiting = row.name.endswith(SYNC)
    name = routine_name(row.name.removesuffix(SYNC))
    if not name or row.name in GROUPS:
        return None
    mean = _cell(lines, row, "Time")
    unit = 1.0
    if mean is None and run_s is not None:  # samples: a share, and how long one is
        mean = _share(lines, row) * run_s
        samples = _cell(lines, row, "Samp")
        unit = mean / samples if samples else 0.0
    above = _cell(lines, row, "Imb. Time", "Imb. Samp")
    calls = _cell(lines, row, "Calls")
    spread = None
    if mean is not None and above is not None:
        spread = Spread(None, mean, mean + above * unit)
    time_s = None if mean is None else mean * ranks
    return Routine(
        name, time_s, None if calls is None else round(calls * ranks),
        waited_s=time_s if waiting else None, spread=spread,
    )  # fmt: skip


def _joined(routines: list[Routine]) -> Iterator[Routine]:
    """Yield each routine once: what it waited, which is a row of its own, is part of its time."""
    joined: dict[str, Routine] = {}
    for one in routines:
        before = joined.get(one.name)
        if before is None:
            joined[one.name] = one
            continue
        waited = [x.waited_s for x in (before, one) if x.waited_s is not None]
        joined[one.name] = replace(
            before,
            time_s=(before.time_s or 0.0) + (one.time_s or 0.0),
            calls=before.calls if before.calls is not None else one.calls,
            waited_s=sum(waited) if waited else None,
            spread=None,
        )
    yield from joined.values()
