"""Reports of mpiP: APP.N.PID.1.mpiP.

Times of sites are count times mean, in milliseconds with three digits. A site's row `*` is of all
ranks. Only the twenty longest sites are in `Aggregate Time`; where all are listed those are used.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePath

from mpigraft.core.text import printable
from mpigraft.trace.profile.reports.text import ReportLines
from mpigraft.trace.profile.values import CallSite, Profile, RankUse, Routine, by_time, spread_of

HEAD = re.compile(r"^@ mpiP\s*$", re.MULTILINE)
FACT = re.compile(r"@ ([^:]+?)\s*: (.*)")
SECTION = re.compile(r"@--- (.+?)(?: -+|-*)$")
TIME, SITES, AGGREGATE = "MPI Time", "Callsites", "Aggregate Time"
SIZE, EACH, SENT = "Aggregate Sent Message Size", "Callsite Time", "Callsite Message Sent"
KNOWN = (TIME, SITES, AGGREGATE, SIZE, EACH, SENT)
END = "End of Report"
ALL = "*"
MS = 1e-3

Row = tuple[int, list[str]]  # number of its line, words


def is_mpip(text: str) -> bool:
    return HEAD.search(text) is not None


def parse_mpip(text: str, path: Path) -> Profile:
    """Make the profile of a report. Raises UsageError."""
    lines = ReportLines(text, path)
    facts, hosts = _facts(lines)
    sections = _sections(lines)
    if TIME not in sections:
        raise lines.refused(len(lines.all) - 1, "a report of mpiP without MPI Time")
    each, total_s, mpi_s = _ranks(lines, sections[TIME], hosts)
    names = dict(_sites(sections.get(SITES, [])))
    partial = EACH not in sections
    counted = _counted(lines, sections, partial=partial)
    sites, routines = [], []
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for (name, site), own in counted.items():
        sites.append(
            CallSite(name, names.get(site, (f"site {site}",)), own.calls, own.time_s, own.bytes)
        )
        sums[name].add(own)
    ranks = len(each)
    for name, own in sums.items():
        routines.append(Routine(
            name, own.time_s, own.calls, own.bytes,
            longest_s=own.longest_s, spread=spread_of(own.ranks, ranks),
        ))  # fmt: skip
    notes = ("only the twenty longest call sites are in this report",) if partial else ()
    command = facts.get("Command", "").split()
    return Profile(
        program=printable(PurePath(command[0]).name) if command else path.stem,
        source=f"mpiP {printable(facts.get('Version', ''))}".strip(),
        ranks=ranks,
        hosts=tuple(dict.fromkeys(hosts.values())),
        began=printable(facts.get("Start time", "")),
        run_s=max((one.run_s or 0.0 for one in each), default=None),
        total_s=total_s,
        mpi_s=mpi_s,
        routines=by_time(routines),
        each=each,
        sites=tuple(sorted(sites, key=lambda one: -(one.time_s or 0.0))),
        notes=notes,
    )


class _Sum:
    """What rows of one routine or site add up to; times in seconds."""

    def __init__(self) -> None:
        self.calls: int | None = None
        self.time_s: float | None = None
        self.bytes: int | None = None
        self.longest_s: float | None = None
        self.ranks: dict[int, float] = {}

    def add(self, other: _Sum) -> None:
        self.calls = _plus(self.calls, other.calls)
        self.bytes = _plus(self.bytes, other.bytes)
        if other.time_s is not None:
            self.time_s = (self.time_s or 0.0) + other.time_s
        if other.longest_s is not None:
            self.longest_s = max(self.longest_s or 0.0, other.longest_s)
        for rank, time_s in other.ranks.items():
            self.ranks[rank] = self.ranks.get(rank, 0.0) + time_s


def _plus(one: int | None, other: int | None) -> int | None:
    return one if other is None else (one or 0) + other


def _facts(lines: ReportLines) -> tuple[dict[str, str], dict[int, str]]:
    facts: dict[str, str] = {}
    hosts: dict[int, str] = {}
    for number, line in enumerate(lines.all):
        match = FACT.match(line)
        if not match:
            continue
        if match[1] == "MPI Task Assignment":
            rank, _, host = match[2].partition(" ")
            hosts[lines.count(rank, number)] = printable(host.strip())
        else:
            facts.setdefault(match[1], match[2].strip())
    return facts, hosts


def _sections(lines: ReportLines) -> dict[str, list[Row]]:
    """{title: rows of words}, without rules and heads. Raises UsageError for a report that ends
    before its end."""
    sections: dict[str, list[Row]] = {}
    rows: list[Row] = []
    for number, line in enumerate(lines.all):
        match = SECTION.match(line)
        if match:
            if match[1].startswith(END):
                return sections
            title = next((known for known in KNOWN if match[1].startswith(known)), match[1])
            rows = sections.setdefault(title, [])
        elif line.strip() and not line.startswith(("-", "@")):
            rows.append((number, line.split()))
    raise lines.refused(len(lines.all) - 1, "the report has no end: it was cut short")


def _ranks(
    lines: ReportLines, rows: list[Row], hosts: dict[int, str]
) -> tuple[tuple[RankUse, ...], float, float]:
    each = []
    total: tuple[float, float] | None = None
    for number, words in rows:
        if words[0] == "Task":
            continue
        if len(words) != 4:
            raise lines.refused(number, "four words of a rank's times expected")
        run_s = lines.figure(words[1], number)
        mpi_s = lines.share(run_s, words[2], words[3], number)
        if words[0] == ALL:
            total = (run_s, mpi_s)
        else:
            rank = lines.count(words[0], number)
            each.append(RankUse(rank, hosts.get(rank, ""), run_s, mpi_s))
    if total is None:
        raise lines.refused(rows[-1][0] if rows else 0, "the times of all ranks are missing")
    return tuple(each), *total


def _sites(rows: list[Row]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """{site: its frames}: `update (fft.f:184)`, or the address alone."""
    frames: dict[str, list[str]] = defaultdict(list)
    for _, words in rows:
        if len(words) < 4 or not words[0].isdigit():
            continue
        site, _, file, *rest = words
        if rest[0].isdigit() and len(rest) > 1:
            frames[site].append(printable(f"{rest[1]} ({file}:{rest[0]})"))
        else:
            name = "" if rest[0].startswith("[") else f"{rest[0]} "
            frames[site].append(printable(f"{name}({file})" if name else file))
    for site, own in frames.items():
        yield site, tuple(own)


def _counted(
    lines: ReportLines, sections: dict[str, list[Row]], *, partial: bool
) -> dict[tuple[str, str], _Sum]:
    """{(routine, site): figures}. Rows have a routine, a site, and then figures."""
    counted: dict[tuple[str, str], _Sum] = defaultdict(_Sum)
    for number, words in [] if partial else sections[EACH]:
        if words[0] == "Name":
            continue
        own = counted[_place(lines, number, words, 9)]
        calls, longest, mean = (lines.figure(word, number) for word in words[3:6])
        if words[2] == ALL:
            own.calls, own.time_s, own.longest_s = round(calls), calls * mean * MS, longest * MS
        else:
            rank = lines.count(words[2], number)
            own.ranks[rank] = own.ranks.get(rank, 0.0) + calls * mean * MS
    for number, words in sections.get(AGGREGATE, []):
        if words[0] == "Call":
            continue
        own = counted[_place(lines, number, words, 6, 7)]
        time_s = lines.figure(words[2], number) * MS
        own.time_s = time_s if partial or own.time_s is None else own.time_s
        if partial and len(words) == 7:
            own.calls = lines.count(words[5], number)
    for number, words in sections.get(SENT, []):
        if words[0] != "Name" and words[2:3] == [ALL]:
            own = counted[_place(lines, number, words, 8)]
            own.bytes = lines.count(words[7], number)
    for number, words in sections.get(SIZE, []):
        if words[0] != "Call" and SENT not in sections:
            own = counted[_place(lines, number, words, 6)]
            own.bytes = lines.count(words[3], number)
            own.calls = own.calls or lines.count(words[2], number)
    return dict(counted)


def _place(lines: ReportLines, number: int, words: list[str], *lengths: int) -> tuple[str, str]:
    """Routine and site of a row. Raises UsageError for one of another length."""
    if len(words) not in lengths or not words[0].isidentifier() or not words[1].isdigit():
        raise lines.refused(number, "this is no row of a call site")
    return words[0], words[1]
