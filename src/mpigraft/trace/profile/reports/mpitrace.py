"""Profiles of IBM's mpitrace: mpi_profile.JOB.RANK.

Each file is of one rank; that of rank 0 has the times of all ranks too. The part on routines
is this rank's alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.text import printable
from mpigraft.trace.profile.reports.text import ReportLines, routine_name
from mpigraft.trace.profile.values import Profile, RankUse, Routine, SizeUse, by_time

HEAD = re.compile(r"^[^\S\n]*Data for MPI rank (\d{1,9}) of (\d{1,9}):", re.MULTILINE)
SUM = re.compile(r"\s*total (communication|elapsed) time\s*=\s*(\S+)\s+seconds")
SIZES = "Message size distributions"
EACH = "taskid"
RANK_TABLE = "MPI timing summary for all ranks"  # over a row for each, as newer versions write it


def is_mpitrace(text: str) -> bool:
    return HEAD.search(text) is not None


def parse_mpitrace(text: str, path: Path) -> Profile:
    """Make the profile of one rank's file. Raises UsageError."""
    lines = ReportLines(text, path)
    start = next(k for k, line in enumerate(lines.all) if HEAD.match(line))
    match = HEAD.match(lines.all[start])
    assert match is not None
    rank, ranks = int(match[1]), int(match[2])
    if rank >= ranks:
        raise lines.refused(start, f"rank {rank} of {ranks}")
    if any(HEAD.match(line) for line in lines.all[start + 1 :]):
        raise lines.refused(start, "several files in one: name one of them")
    sums = dict(_sums(lines))
    if len(sums) != 2:
        raise lines.refused(len(lines.all) - 1, "the total times are missing: it was cut short")
    sizes = _sizes(lines, start)
    each = tuple(_each(lines))
    _refuse_cut(lines, rank, ranks, len(each))
    each = each or (RankUse(rank, "", sums["elapsed"], sums["communication"]),)
    others = f"; {ranks - 1} others have files of their own" if ranks > 1 else ""
    return Profile(
        program=path.name,
        source="mpitrace",
        ranks=ranks,
        hosts=tuple(dict.fromkeys(one.host for one in each if one.host)),
        run_s=max(sums["elapsed"], *(one.run_s or 0.0 for one in each)),
        total_s=sums["elapsed"],
        mpi_s=sums["communication"],
        routines=by_time(_routines(lines, start, sizes)),
        each=each,
        notes=(f"shares and routines are those of rank {rank}{others}",),
    )


def merge_ranks(profiles: Sequence[Profile]) -> Profile:
    """Make one profile of the files that ranks of one job wrote: what they say is added up. The
    times of ranks without a file are those that rank 0 lists. Raises UsageError for other files."""
    own = [profile for profile in profiles if profile.source == "mpitrace"]
    # By the rank whose file it is: rank 0 lists others too.
    writers = {min((one.rank for one in profile.each), default=0): profile for profile in own}
    if len(writers) < len(profiles) or len({profile.ranks for profile in own}) > 1:
        names = ", ".join(profile.program for profile in profiles[:4])
        raise UsageError.of("profile-other-jobs", names=names)
    listed = {one.rank: one for one in (writers[0].each if 0 in writers else ())}
    each = listed | {
        rank: replace(use, host=listed.get(rank, use).host)  # which only rank 0 knows
        for rank, profile in writers.items()
        for use in profile.each
        if use.rank == rank
    }
    routines: dict[str, list[Routine]] = {}
    for profile in profiles:
        for routine in profile.routines:
            routines.setdefault(routine.name, []).append(routine)
    ranks, known = profiles[0].ranks, len(profiles)
    notes = (f"routines are those of the {known} of {ranks} ranks that have files",)
    return replace(
        profiles[0],
        program=profiles[0].program.rpartition(".")[0],
        hosts=tuple(dict.fromkeys(each[rank].host for rank in sorted(each) if each[rank].host)),
        run_s=max(profile.run_s or 0.0 for profile in profiles),
        total_s=sum(profile.total_s or 0.0 for profile in profiles),
        mpi_s=sum(profile.mpi_s or 0.0 for profile in profiles),
        routines=by_time(map(_added, routines.values())),
        each=tuple(each[rank] for rank in sorted(each)),
        notes=notes if known < ranks else (),
    )


def _added(parts: list[Routine]) -> Routine:
    """Return one routine of several ranks."""
    sizes: dict[tuple[int, int], list[SizeUse]] = {}
    for size in (size for part in parts for size in part.sizes):
        sizes.setdefault((size.least, size.most), []).append(size)
    return Routine(
        parts[0].name,
        sum(part.time_s or 0.0 for part in parts),
        sum(part.calls or 0 for part in parts),
        sum(part.bytes or 0 for part in parts),
        sizes=tuple(
            SizeUse(
                *place,
                sum(one.calls for one in same),
                sum(one.bytes or 0 for one in same),
                sum(one.time_s or 0.0 for one in same),
            )
            for place, same in sorted(sizes.items())
        ),
    )


def _refuse_cut(lines: ReportLines, rank: int, ranks: int, rows: int) -> None:
    """Raise UsageError for a file of rank 0 that ends before its table of ranks, or within."""
    last = len(lines.all) - 1
    if rank == 0 and ranks > 1 and not rows:
        raise lines.refused(last, "the times of the ranks are missing: it was cut short")
    if rows != ranks and any(line.startswith(RANK_TABLE) for line in lines.all):
        raise lines.refused(last, f"the times of {rows} of {ranks} ranks: it was cut short")


def _sums(lines: ReportLines) -> Iterator[tuple[str, float]]:
    for number, line in enumerate(lines.all):
        match = SUM.match(line)
        if match:
            yield match[1], lines.figure(match[2], number)


def _routines(lines: ReportLines, start: int, sizes: dict[str, list[SizeUse]]) -> Iterator[Routine]:
    """Yield the rows of the first table: name, calls, average bytes, seconds."""
    for number, line in enumerate(lines.all[start:], start):
        if SUM.match(line) or line.startswith(SIZES):
            return
        words = line.split()
        name = routine_name(words[0]) if words else ""
        if not name or "#calls" in words:
            continue
        if len(words) != 4:
            raise lines.refused(number, "calls, bytes and seconds of a routine expected")
        calls, mean, time_s = (lines.figure(word, number) for word in words[1:])
        own = tuple(sizes.get(name, ()))
        counted = sum(size.calls for size in own)
        if own and counted != round(calls):
            reason = f"{round(calls)} calls, {counted} by their sizes: it was cut short or edited"
            raise lines.refused(number, reason)
        yield Routine(name, time_s, round(calls), round(calls * mean), sizes=own)


def _sizes(lines: ReportLines, start: int) -> dict[str, list[SizeUse]]:
    """Return the distributions: a head with the routine, then rows of calls, bytes, seconds."""
    found: dict[str, list[SizeUse]] = {}
    rows: list[SizeUse] | None = None
    within = False
    for number, line in enumerate(lines.all[start:], start):
        words = line.split()
        if line.startswith(SIZES):
            within = True
        elif within and "#calls" in words:
            rows = found.setdefault(routine_name(words[0]), [])
        elif line.startswith("-") or not words:
            rows = None
        elif rows is not None:
            if len(words) != 3:
                raise lines.refused(number, "calls, bytes and seconds of a size expected")
            calls, mean, time_s = (lines.figure(word, number) for word in words)
            size = round(mean)
            rows.append(SizeUse(size, size, round(calls), round(calls * mean), time_s))
    return found


def _each(lines: ReportLines) -> Iterator[RankUse]:
    """Yield the ranks of the summary that rank 0 writes; older versions name no host."""
    heads: list[str] = []
    for number, line in enumerate(lines.all):
        words = line.split()
        if words[:1] == [EACH]:
            heads = words
        elif heads and len(words) == len(heads) and words[0].isdigit():
            row = dict(zip(heads, words, strict=True))
            if "comm(s)" not in row or "elapsed(s)" not in row:
                raise lines.refused(number, "times of ranks without comm(s) and elapsed(s)")
            yield RankUse(
                int(row[EACH][:12]), printable(row.get("hostname", "")),
                lines.figure(row["elapsed(s)"], number), lines.figure(row["comm(s)"], number),
            )  # fmt: skip
        elif words:
            heads = []
