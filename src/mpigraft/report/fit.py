"""Whether a host MPI fits under a guest: one check in full, or a line for each MPI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpigraft.core.model import Level
from mpigraft.core.numbers import counted
from mpigraft.core.text import columns, fold, join_some, labelled, printable
from mpigraft.report.screen import LEVELS, LINES, ROOM, Screen, shorten
from mpigraft.report.table import Line

if TYPE_CHECKING:
    from mpigraft.core.model import CheckResult, Finding, Fit, GuestLabel
    from mpigraft.graft import GuestMpi

SHOWN, LONG = 8, 400  # lines of evidence of one finding, their length; --json has all
WORDS = {"error": "NO", "warning": "warning", "info": "ok"}
PROGRAMS = 4  # that a line names


def fit_screen(fit: Fit, own: GuestMpi | None = None, instead: str = "") -> Screen:
    """Describe one check in one screen: the answer and what to do, a line for each part that is
    fine, and in full what is not."""
    from mpigraft.graft import NOT_CHECKED

    parts = sorted(fit.parts, key=lambda part: [*WORDS].index(part.level))
    skipped = [part for part in parts if part.message.startswith(NOT_CHECKED)]
    findings = [f for part in parts for f in part.findings if f.level == parts[0].level]
    fix = next((f.fix for f in findings if f.fix and f.level != "info"), "")
    warned = sum(part.level == "warning" for part in parts)
    word = f"yes, with {counted(warned, 'warning')}" if warned else "yes"
    answer = [f"fits: {word if fit.ok else 'no'}; {_place(fit, own)}"]
    answer += [f"what to do: {fix}"] if fix else []
    answer += [f"instead: {instead}"] if instead else []
    rows = [line for part in parts if part not in skipped for line in _part_lines(part)]
    alone = join_some(fit.fitting, PROGRAMS, ", ") if not fit.ok else ""
    more = [f"would fit alone: {alone}"] if alone else []
    were = "part was" if len(skipped) == 1 else "parts were"
    more += [f"{len(skipped)} {were} {skipped[0].message}"] if skipped else []
    return Screen(
        tuple(map(printable, answer)),
        [*_about(fit.guest), *rows],
        [(Level.INFO, printable(text)) for text in more],
        ["--full: why each of them matters, and what was seen"],
    )


def _about(guest: GuestLabel) -> Iterator[Line]:
    programs = guest.programs[0] if len(guest.programs) == 1 else len(guest.programs)
    text = f"{_guest(guest)}; {'program' if isinstance(programs, str) else 'programs'}: {programs}"
    yield from ([(line, "dim")] for line in fold(text))


def _part_lines(part: CheckResult) -> Iterator[Line]:
    """Fold what is wrong; cut what is fine."""
    text, label = printable(part.message), f"{WORDS[part.level]:9}{part.name:13}"
    if part.level == "info":
        yield [(f"{label}{shorten(text, columns() - len(label))}", "")]
        return
    yield from ([(line, LEVELS[Level(part.level)])] for line in fold(text, label, len(label)))


def fits_screen(
    guest: GuestLabel, tried: Sequence[Fit], unread: Sequence[str], instead: str = ""
) -> Screen:
    """Describe the check of every MPI in one screen: how many fit, and a line for each."""
    fitting = [fit.mpi for fit in tried if fit.ok]
    which = f": {join_some(fitting, PROGRAMS, ', ')}" if fitting else ""
    answer = [f"fits: {len(fitting)} of {len(tried)} MPIs{which}"]
    answer += [f"instead: {instead}"] if instead else []
    order = sorted(tried, key=lambda one: (not one.ok, -len(one.fitting)))
    return Screen(
        tuple(map(printable, answer)),
        [*_about(guest), *fit_rows([(fit.mpi, fit.ok, _reason(fit)) for fit in order])],
        left_out_lines(unread),
        ["--mpi SPEC: every part of one of them; --full: every reason"],
    )


def fit_rows(tried: Sequence[tuple[str, bool, str]]) -> list[Line]:
    """Write a line for each MPI: its id, whether it fits, and the first thing in the way."""
    width = max(len(mpi) for mpi, _, _ in tried) + 2
    rows: list[Line] = []
    for mpi, fits, reason in tried[: LINES - 3]:
        label = f"{'yes' if fits else 'NO':5}{printable(mpi):{width}}"
        text = shorten(printable(reason), columns() - len(label))
        rows.append([(f"{label}{text}", "" if fits else "dim")])
    more = len(tried) - len(rows)
    return [*rows, *([[(f"and {counted(more, 'more MPI')}: --full", "dim")]] if more else ())]


def left_out_lines(unread: Sequence[str]) -> Iterator[tuple[Level, str]]:
    """Say which MPIs could not be read, and why."""
    for line in unread:
        yield Level.WARNING, shorten(printable(f"left out: {line}"), 2 * columns() - ROOM)


def fit_lines(fit: Fit, own: GuestMpi | None = None, instead: str = "") -> Iterator[str]:
    """Describe one check in full, the worst part first, with the programs that would fit alone and
    the guest's own MPI; `instead` is what fits in its place."""
    from mpigraft.graft import NOT_CHECKED

    yield f"fits: {'yes' if fit.ok else 'no'}"
    yield ""
    yield from fact_lines("guest", _guest(fit.guest))
    yield from fact_lines("host MPI", _place(fit, own))
    yield from fact_lines("programs", join_some(fit.guest.programs, PROGRAMS, ", "))
    if fit.fitting and not fit.ok:
        alone = join_some(fit.fitting, PROGRAMS, ", ")
        yield from fact_lines("", f"of these would fit alone: {alone}")
    order = list(WORDS)
    parts = sorted(fit.parts, key=lambda part: order.index(part.level))
    for part in parts:
        if part.level != "info":
            yield from _part(part)
    yield ""
    for part in parts:
        if part.level == "info":
            word = "" if part.message.startswith(NOT_CHECKED) else WORDS[part.level]
            yield from fold(printable(f"{part.name:13}{part.message}"), f"{word:10}", 23)
    yield from _instead(instead)


def _instead(text: str) -> Iterator[str]:
    if text:
        yield ""
        yield from fact_lines("instead", text)


def _guest(guest: GuestLabel) -> str:
    facts = (guest.os, guest.architecture, f"glibc {guest.glibc}" if guest.glibc else "no glibc")
    return f"{guest.name} ({guest.kind}): {', '.join(filter(None, facts))}"


def _place(fit: Fit, own: GuestMpi | None) -> str:
    name = f"{own.family} {own.version}" if own else ""
    if fit.replace == "mpi":
        return f"{fit.mpi}, in place of the guest's own {name}" if name else fit.mpi
    return f"{fit.mpi}: its libfabric or UCX under the guest's own {name or 'MPI'}"


def _part(part: CheckResult) -> Iterator[str]:
    yield ""
    yield f"{WORDS[part.level]:10}{part.name}"
    for finding in part.findings:
        if finding.level != "info":  # true and harmless; --json has it
            yield from finding_lines(finding)


def finding_lines(finding: Finding) -> Iterator[str]:
    """Describe a finding: what was seen, its evidence, why it matters, what to do."""
    yield from fact_lines("  note" if finding.level == "info" else "  problem", finding.message)
    for line in finding.evidence[:SHOWN]:
        cut = line if len(line) <= LONG else f"{line[:LONG].rpartition(' ')[0]} ..."
        yield from fold(printable(cut), " " * 12, 14)
    if len(finding.evidence) > SHOWN:
        yield f"{'':12}and {len(finding.evidence) - SHOWN} more: --json"
    if finding.why:
        yield from fact_lines("  why", finding.why)
    if finding.fix:
        yield from fact_lines("  fix", finding.fix)


def finding_text(finding: Finding, evidence: int = 0, more: str = "") -> str:
    """Write a finding as a message on stderr, with some lines of its evidence; `more` goes on with
    what to do."""
    parts = [f"mpigraft: {finding.message}", *(f"  {line}" for line in finding.evidence[:evidence])]
    parts += [f"why it matters: {finding.why}"] if finding.why else []
    parts += [f"what to do: {finding.fix}{more}"] if finding.fix else []
    return "\n".join(parts)


def fact_lines(label: str, text: str) -> list[str]:
    """Lay out one fact behind its label."""
    return labelled(label, printable(text), column=10)  # a guest's names: line breaks too


def fits_table(
    guest: GuestLabel, tried: Sequence[Fit], unread: Sequence[str], instead: str = ""
) -> Iterator[str]:
    """Describe each MPI in a line: yes, or the first thing in the way; then those unread, and what
    fits `instead`."""
    yield f"fits: {sum(fit.ok for fit in tried)} of {len(tried)} MPIs"
    yield ""
    yield from fact_lines("guest", _guest(guest))
    yield from fact_lines("programs", join_some(guest.programs, PROGRAMS, ", "))
    yield ""
    width = max(len(fit.mpi) for fit in tried) + 2
    for fit in sorted(tried, key=lambda one: (not one.ok, -len(one.fitting))):
        text = f"{fit.mpi:{width}}{_reason(fit)}"
        yield from fold(printable(text), f"{'yes' if fit.ok else 'NO':10}", 10 + width)
    for line in unread:
        yield from fact_lines("left out", line)
    yield ""
    yield "--mpi SPEC says more of one of them"
    yield from _instead(instead)


def _reason(fit: Fit) -> str:
    parts = fit.parts
    bad = [part for part in parts if part.level == "error"]
    warned = [part.name for part in parts if part.level == "warning"]
    if not bad:
        return f"with warnings: {', '.join(warned)}" if warned else "without a warning"
    alone = f"of {len(fit.guest.programs)} programs {len(fit.fitting)} would fit; "
    return (alone if fit.fitting else "") + f"{bad[0].name}: {bad[0].message}"
