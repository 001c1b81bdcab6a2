"""What an import took, as text and as a document."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mpigraft.core.errors import MpigraftError
from mpigraft.core.numbers import counted
from mpigraft.core.text import fold, join_some

if TYPE_CHECKING:
    from mpigraft.bench import ImportedFile

MAYBE_CUT = "maybe-cut"  # the code of findings
OF_FILE = ("state", "campaign", "configuration", "layout", "suite")
SHOWN = 5  # files of a kind that a line lists
STORED, FAILED, KNOWN, REFUSED, SKIPPED = "stored", "failed", "known", "refused", "skipped"


class ImportTally:
    """Files as they are imported; of what was taken only counts stay in memory."""

    def __init__(self, unmatched: Sequence[ImportedFile], *, detailed: bool, keep: bool) -> None:
        self.counts = dict.fromkeys((STORED, FAILED, KNOWN, REFUSED, SKIPPED), 0)
        self.detailed = detailed
        self.keep = keep
        self.values = 0
        self.campaigns: dict[str, None] = {}
        self.rounds: dict[tuple[str, str], dict[str, int]] = {}  # of (configuration, benchmark)
        self.refused: list[tuple[str, MpigraftError]] = []
        self.skipped: list[tuple[str, MpigraftError]] = []
        self.files: list[dict[str, Any]] = []
        self.short: list[str] = []  # files with a table that may be cut
        for one in unmatched:
            self.add(one)

    def add(self, file: ImportedFile) -> list[str]:
        """Count a file; returns the lines that describe it, if any."""
        if file.error:
            self._out(file.name, file.state, file.error)
            return []
        self.counts[file.state] += 1
        self.campaigns[file.campaign] = None
        if self.keep:
            self.files.append(_document(file))
        if any(finding.code == MAYBE_CUT for finding in file.findings):
            self.short.append(file.name)
        if file.rounds:
            self.values += file.values
            for benchmark in file.benchmarks:
                layouts = self.rounds.setdefault((file.configuration, benchmark), {})
                layouts[file.layout] = layouts.get(file.layout, 0) + len(file.rounds)
        return import_lines(file, detailed=self.detailed)

    @property
    def failed(self) -> int:
        """Count files of runs that died."""
        return self.counts[FAILED]

    @property
    def taken(self) -> int:
        """Count files that are in the store, now or from before."""
        return self.counts[STORED] + self.counts[KNOWN]

    def _out(self, name: str, state: str, error: MpigraftError) -> None:
        self.counts[state] += 1
        (self.refused if state == REFUSED else self.skipped).append((name, error))
        if self.keep:
            reason = {"code": error.code, "message": error.message, "why": error.why}
            self.files.append({"file": name, "state": state, **reason, "fix": error.fix})


def import_lines(file: ImportedFile, *, detailed: bool = True) -> list[str]:
    """Describe what became of one file, and every note and finding about it; or of many files
    only what is wrong with each."""
    if file.suite == "export":
        what = f"campaign {file.campaign}, {counted(file.launches, 'launch')}"
        stored = f"{what}, {counted(file.values, 'value')}" if file.launches else "stored already"
        return [f"{file.name}: {stored}"]
    if not detailed:
        findings = file.findings if file.state != KNOWN else ()
        shown = (f for f in findings if f.level != "info" and f.code != MAYBE_CUT)
        return [f"{f.level}: {f.message}" for f in shown]
    if file.rounds:
        values = counted(file.values, "value")
        rounds = ", ".join(str(n + 1) for n in file.rounds)
        head = f"{file.name}: {values}, round {rounds}, layout {file.layout}"
    elif file.state == FAILED:
        head = f"{file.name}: no value"
    else:
        head = f"{file.name}: stored already, not stored again"
    if file.lost:
        head += f"; failed: {counted(file.lost, 'value')} left out"
    text = [head, *(f"  {key}" for key in file.benchmarks)]
    text += [f"  warning: {note}" for note in file.notes]
    return text + [f"  {f.level}: {f.message}" for f in file.findings]


def import_summary(tally: ImportTally, *, dry_run: bool, detailed: bool) -> Iterator[str]:
    """Say what was taken of many files, a line for each configuration and benchmark, and what to
    type next."""
    if not detailed:
        yield from _counts(tally, dry_run=dry_run)
        if tally.short:
            names = join_some(tally.short, SHOWN, ", ")
            yield from fold(f"shorter than most, and perhaps cut: {names}", "  ", 6)
    if tally.skipped:
        names = join_some([name for name, _ in tally.skipped], SHOWN, ", ")
        yield from fold(f"skipped: {names}", "  ", 6)
    if not dry_run:
        for campaign in tally.campaigns:
            yield f"campaign {campaign}: mpigraft compare {shlex.quote(campaign)}"


def _counts(tally: ImportTally, *, dry_run: bool) -> Iterator[str]:
    counts = tally.counts
    if not any(counts.values()):  # that is an error
        return
    verb = "would be stored" if dry_run else "stored"
    parts = [f"{counted(counts[STORED], 'file')} {verb}: {counted(tally.values, 'value')}"]
    if counts[FAILED]:
        parts.append(f"{counts[FAILED]} of runs that died")
    if counts[KNOWN]:
        parts.append(f"{counts[KNOWN]} stored already")
    if counts[REFUSED]:
        parts.append(f"{counts[REFUSED]} refused")
    if counts[SKIPPED]:
        parts.append(f"{counts[SKIPPED]} skipped")
    yield "; ".join(parts)
    for (configuration, benchmark), layouts in tally.rounds.items():
        yield from fold(f"{configuration}  {benchmark}: {_layouts(layouts)}", "  ", 6)


def _layouts(rounds: dict[str, int]) -> str:
    single = sum(n == 1 for n in rounds.values())
    most = max(rounds.values())
    span = _natural(rounds)
    what = span[0] if len(span) == 1 else f"{len(span)} layouts, {span[0]} to {span[-1]}"
    if single == len(rounds):
        return f"{what}; single runs"
    return f"{what}; up to {most} rounds" + (f", {single} of them single runs" if single else "")


def _natural(layouts: Iterable[str]) -> list[str]:
    from mpigraft.core.model import layout_order

    return sorted(layouts, key=layout_order)


def import_document(tally: ImportTally, *, dry_run: bool) -> str:
    """Make the document of an import."""
    from mpigraft.core.serialize import document

    return document(
        dry_run=dry_run, campaigns=list(tally.campaigns), counts=tally.counts,
        values=tally.values, files=tally.files,
    )  # fmt: skip


def _document(file: ImportedFile) -> dict[str, Any]:
    return {
        "file": file.name,
        **{name: getattr(file, name) for name in OF_FILE},
        "rounds": [number + 1 for number in file.rounds],
        "values": file.values,
        "left_out": file.lost,
        "benchmarks": file.benchmarks,
        "notes": file.notes,
        "findings": [
            {"level": f.level, "code": f.code, "message": f.message} for f in file.findings
        ],
    }
