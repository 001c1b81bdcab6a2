"""Reports that IPM prints at the end of a program (IPM_REPORT=terse or full), versions 0.98 and 2.

The program's own output may be around it. Only `full` lists routines. Of a report with regions
the first table is the whole program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath

from mpigraft.core.text import printable
from mpigraft.trace.profile.reports.text import ReportLines, routine_name
from mpigraft.trace.profile.values import Profile, Routine, by_time

HEAD = re.compile(r"^[^\S\n]*##IPM(?:v| v)?(\d[\w.]*)#*", re.MULTILINE)
RULE = re.compile(r"\s*#{20,}\s*")
FACT = re.compile(
    r"(command|start|stop|host|mpi_tasks|wallclock|%comm)\s*: (.*?)(?=\s{2,}\S+\s*: |$)"
)
TASKS = re.compile(r"([\d,]+) on ([\d,]+) nodes?")
FOUR = re.compile(r"(wallclock|MPI|mpi)\s*:?((?:\s+[\d.,e+]+){4})\s*$")


def is_ipm(text: str) -> bool:
    return HEAD.search(text) is not None


def parse_ipm(text: str, path: Path) -> Profile:
    """Make the profile of the first report of a text. Raises UsageError."""
    lines = ReportLines(text, path)
    start = next(k for k, line in enumerate(lines.all) if HEAD.match(line))
    version = HEAD.match(lines.all[start])
    assert version is not None
    end = next((k for k in range(start + 1, len(lines.all)) if RULE.fullmatch(lines.all[k])), 0)
    if not end:
        raise lines.refused(len(lines.all) - 1, "the report has no end: it was cut short")
    rows = [(k, lines.all[k].strip().lstrip("#").strip()) for k in range(start + 1, end)]
    facts = {name: (k, value.strip()) for k, row in rows for name, value in FACT.findall(row)}
    tasks = TASKS.search(facts.get("mpi_tasks", (0, ""))[1])
    if not tasks:
        raise lines.refused(start, "a report of IPM without mpi_tasks")
    sums = _sums(lines, rows)
    if "wallclock" not in sums:
        raise lines.refused(start, "a report of IPM without the times of all ranks")
    total_s = lines.figure(sums["wallclock"][0], start)
    mpi_s = None
    if "mpi" in sums:
        number, percent = facts.get("%comm", (start, ""))
        word = sums["mpi"][0]
        mpi_s = (
            lines.share(total_s, word, percent, number) if percent else lines.figure(word, start)
        )
    command = facts.get("command", (0, ""))[1].split()
    routines = by_time(_routines(lines, rows))
    notes = () if routines else ("no routines: IPM_REPORT=full lists them",)
    host = printable(facts.get("host", (0, ""))[1].split("/")[0])
    return Profile(
        program=printable(PurePath(command[0]).name) if command else path.stem,
        source=f"IPM {version[1]}",
        ranks=lines.count(tasks[1], start),
        hosts=(host,) if host else (),
        began=printable(facts.get("start", (0, ""))[1]),
        run_s=lines.figure(sums["wallclock"][3], start),
        total_s=total_s,
        mpi_s=mpi_s,
        routines=routines,
        notes=notes,
    )


def _sums(lines: ReportLines, rows: list[tuple[int, str]]) -> dict[str, list[str]]:
    """{name: [total, average, lowest, highest]}; the first of each, which are seconds."""
    sums: dict[str, list[str]] = {}
    for number, row in rows:
        match = FOUR.match(row)
        if match and match[1].lower() not in sums:
            sums[match[1].lower()] = match[2].split()
            for word in sums[match[1].lower()]:
                lines.figure(word, number)
    return sums


def _routines(lines: ReportLines, rows: list[tuple[int, str]]) -> Iterator[Routine]:
    """Yield the rows of the first table of routines: name, seconds, calls, shares."""
    within = False
    for number, row in rows:
        words = row.split()
        if words[:1] == ["[time]"]:
            if within:
                return
            within = True
        elif within and words and (name := routine_name(words[0])):
            if len(words) not in (4, 5):
                raise lines.refused(number, "seconds, calls and shares of a routine expected")
            yield Routine(name, lines.figure(words[1], number), lines.count(words[2], number))
