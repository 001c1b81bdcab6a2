"""Whether a host MPI fits under all programs of a software stack: text and documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

from mpigraft.core.model import Level
from mpigraft.core.numbers import counted
from mpigraft.core.serialize import row_of
from mpigraft.core.text import columns, fold, join_some, printable
from mpigraft.report.fit import PROGRAMS, WORDS, fact_lines, finding_lines, fit_rows, left_out_lines
from mpigraft.report.screen import ROOM, Screen, by_kind, shorten
from mpigraft.report.table import list_rows

if TYPE_CHECKING:
    from mpigraft.core.model import Finding
    from mpigraft.graft import ModuleCheck, Slot, Stack, StackCheck, StackLoader

MODULES = 40  # that are listed where nothing is wrong with them
NOTABLE = 400  # of more modules those that are listed
ROWS = 12  # modules of a screen
SAME = 3  # findings of one kind that are shown
LEVELS = {**WORDS, "info": "note"}  # the worst first
WOULD = ("would ", "would", "would change")
REASONS = {
    "other-abi": "of another MPI family",
    "other-machine": "of another architecture",
    "runpath": "searched by DT_RUNPATH",
    "no-override": "without an override",
    "not-used": "without that library",
    "other-override": "on the MPI in another override",
}


class StackRow(TypedDict):
    """A software stack."""

    root: str  # absolute
    real: str  # links resolved
    only: str  # the one program that was named
    elf_files: int  # that were read
    programs: int  # that need MPI
    modules: int  # that these belong to
    loader: StackLoader | None  # of most programs
    overrides: Sequence[Slot]
    unread: Sequence[str]  # files and folders that may not be read


class StackCheckRow(TypedDict):
    """Whether a host MPI may be injected."""

    mpi: str  # id
    ok: bool  # programs fit, none is refused, and no finding is an error
    overrides: list[str]  # paths of those into which it would go
    glibc: str  # of the stack: 2.37; empty: not known
    fits: int  # programs that would load the MPI while nothing else changes
    refused: int  # programs that would not
    accepted: int  # programs that would not, named by --except when it was injected
    kept: int  # programs that no override reaches
    modules: Sequence[ModuleCheck]
    findings: Sequence[Finding]  # about the stack as a whole


class StackDocument(TypedDict):
    """Whether host MPIs may be injected into a software stack."""

    ok: bool  # all that is injected is right; if nothing is, one of the checks passes
    stack: StackRow
    injected: list[StackCheckRow]  # one for each MPI that is injected now, if no MPI was named
    checks: list[StackCheckRow]  # one for each host MPI: the one that was named, or all
    unread: list[str]  # MPIs that cannot be used or read, with the reason


def stack_document(
    stack: Stack,
    checks: Sequence[StackCheck],
    unread: Sequence[str] = (),
    injected: Sequence[StackCheck] = (),
) -> StackDocument:
    """Make the keys of schemas/check-stack.json."""
    fits = all(v.ok for v in injected) if injected else any(v.ok for v in checks)
    counts = {"programs": len(stack.programs), "modules": len(stack.modules)}
    return {
        "ok": fits,
        "stack": row_of(StackRow, stack, overrides=stack.slots, **counts),
        "injected": [check_document(check) for check in injected],
        "checks": [check_document(check) for check in checks],
        "unread": list(unread),
    }


def check_document(check: StackCheck) -> StackCheckRow:
    """Give one check, as the schemas of `check` and `inject` describe it."""
    from mpigraft.graft import Fate

    counts = {fate.value: check.count(fate) for fate in Fate}
    overrides = [slot.path for slot in check.slots]
    return row_of(StackCheckRow, check, overrides=overrides, **counts)


def stack_size(stack: Stack) -> str:
    """Describe a stack by the number of its files, programs and modules."""
    if stack.only:
        return f"{stack.only}, a program of {stack.root}"
    programs = counted(len(stack.programs), "program")
    modules = counted(len(stack.modules), "module")
    need = "needs" if len(stack.programs) == 1 else "need"
    files = counted(stack.elf_files, "ELF file")
    return f"{stack.root}: {files}; {programs} of {modules} {need} MPI"


def own_mpi_line(stack: Stack) -> str:
    """Describe what overrides have where they have no MPI: libfabric or UCX alone."""
    from mpigraft.graft import read_override

    active = [(slot.path, record) for slot in stack.slots if (record := read_override(slot).active)]
    rows = (f"{', '.join(r.bindings)} of {r.mpi} injected in {path}" for path, r in active)
    prove = f"; `mpigraft inject {stack.root} --verify` proves it"
    text = "; ".join(rows) + prove if active else "nothing injected"
    return f"{text}: programs run on the stack's own MPI"


def stack_answer_lines(
    stack: Stack, checks: Sequence[StackCheck], unread: Sequence[str]
) -> Iterator[str]:
    """Describe a single check in full, several in a table; then the MPIs that were not read."""
    single = len(checks) == 1
    yield from stack_check_lines(checks[0]) if single else stack_checks_table(stack, checks)
    for line in unread:
        yield from fact_lines("left out", line)


def stack_screen(check: StackCheck) -> Screen:
    """Describe one check in one screen: the answer and what to do, the modules, and a line for
    each kind of finding."""
    fates = [*_fates(check)]
    kinds = [kind for kind in _kinds(check) if kind[0] is not Level.INFO]
    errors = [f for level, _, some in kinds for f, _ in some if level is Level.ERROR]
    fix = next((error.fix for error in errors if error.fix), "")
    findings = []
    for level, _, members in kinds:
        finding = members[0][0]
        modules = list(dict.fromkeys(name for _, names in members for name in names))
        where = f" (in {join_some(modules, SAME, ', ')})" if modules else ""
        text = shorten(
            f"{WORDS[level]} {finding.code}: {finding.message}", 2 * columns() - len(where) - ROOM
        )
        findings.append((level, printable(f"{text}{where}")))
    answer = ["; ".join([f"fits: {_fit(check)}", *fates[:1]]), "; ".join(fates[1:])]
    answer += [f"what to do: {fix}"] if fix else []
    return Screen(
        [printable(line) for line in answer if line],
        [[(printable(line), "")] for line in _modules(check, ROWS, ROWS, "--full")],
        findings,
        ["--full: every module, why each finding matters, the overrides"],
        [printable(f"{check.mpi} under {stack_size(check.stack)}")],
    )


def stack_checks_screen(
    stack: Stack, checks: Sequence[StackCheck], unread: Sequence[str], now: str = ""
) -> Screen:
    """Describe the check of every MPI in one screen; `now` is what programs run on."""
    from mpigraft.graft import Fate

    fitting = [check.mpi for check in checks if check.ok]
    which = f": {join_some(fitting, PROGRAMS, ', ')}" if fitting else ""
    order = sorted(checks, key=lambda one: (not one.ok, -one.count(Fate.FITS)))
    answer = [f"fits: {len(fitting)} of {counted(len(checks), 'MPI')}{which}", now]
    return Screen(
        [printable(line) for line in answer if line],
        fit_rows([(check.mpi, check.ok, _reason(check)) for check in order]),
        left_out_lines(unread),
        ["--mpi SPEC: one of them, with its modules; --full: every reason"],
        [printable(stack_size(stack))],
    )


def stack_check_lines(check: StackCheck) -> Iterator[str]:
    """Describe one check: the answer, a summary by module, then what is wrong."""
    stack = check.stack
    yield f"fits: {_fit(check)}"
    yield ""
    yield from fact_lines("stack", stack_size(stack))
    if stack.loader:
        glibc = f", glibc {check.glibc}" if check.glibc else ""
        yield from fact_lines("loader", f"{stack.loader.path}{glibc}")
    yield from fact_lines("injected" if check.injected else "host MPI", check.mpi)
    for slot in check.slots:
        programs = counted(slot.programs, "program")
        names = " and ".join(filter(None, slot.names))
        yield from fact_lines(
            "override", f"{slot.path}{f' ({names})' if names else ''}: {programs}"
        )
    yield ""
    yield from _fates(check)
    if modules := [*_modules(check, MODULES, NOTABLE)]:
        yield from ("", *modules)
    yield from _findings(check)


def _fit(check: StackCheck) -> str:
    from mpigraft.graft import Fate

    return "no" if not check.ok else "in part" if check.count(Fate.KEPT) else "yes"


def _fates(check: StackCheck) -> Iterator[str]:
    """Count the programs that would load the MPI, and those that would not, with the reason."""
    from mpigraft.graft import Fate

    count = {fate: check.count(fate) for fate in Fate}
    would, not_, change = ("", "do", "differs") if check.injected else WOULD
    if count[Fate.FITS]:
        every = sum(count.values())
        some = f"{count[Fate.FITS]} of " if count[Fate.FITS] < every else ""
        load = "loads" if count[Fate.FITS] == 1 and not would else "load"
        programs = f"{some}{counted(every, 'program')} {would}{load}"
        yield f"{programs} {check.mpi}, and nothing else {change}"
    if count[Fate.REFUSED]:
        programs = counted(count[Fate.REFUSED], "program")
        yield f"{programs} {not_} not start, or load other libraries"
    if count[Fate.ACCEPTED]:
        yield f"accepted by --except: {counted(count[Fate.ACCEPTED], 'program')}"
    if count[Fate.KEPT]:
        stay = "stay as they are"
        if count[Fate.KEPT] == 1:
            stay = "stay as it is" if would else "stays as it is"
        yield f"{counted(count[Fate.KEPT], 'program')} {would}{stay}: {_kept(check)}"


def _kept(check: StackCheck) -> str:
    whys = [p.why for module in check.modules for p in module.programs if p.why in REASONS]
    parts = (f"{whys.count(why)} {REASONS[why]}" for why in dict.fromkeys(whys))
    return ", ".join(parts)


def _modules(check: StackCheck, every: int, most: int, rest: str = "--json") -> Iterator[str]:
    """Count the programs of each module: of `every` modules at most, or of the first `most` that
    are notable."""
    from mpigraft.graft import Fate

    modules = check.modules
    shown = modules if len(modules) <= every else [m for m in modules if m.notable][:most]
    if not shown:
        return
    fates = [Fate.FITS, Fate.REFUSED, Fate.KEPT]
    fates += [Fate.ACCEPTED] if any(m.count(Fate.ACCEPTED) for m in modules) else []
    words = ["stays" if fate is Fate.KEPT else fate.value for fate in fates]
    rows = [
        (printable(module.name), *(module.count(fate) or "" for fate in fates)) for module in shown
    ]
    yield from list_rows(("module", *words), rows, right=words)
    if more := len(modules) - len(shown):
        yield f"and {counted(more, 'more module')}: {rest}"


def _findings(check: StackCheck) -> Iterator[str]:
    """Describe each kind of finding once, with the modules that it is about, the worst first."""
    for level, code, members in _kinds(check):
        yield ""
        yield f"{LEVELS[level]:10}{code}"
        for finding, modules in members[:SAME]:
            last = finding is members[min(SAME, len(members)) - 1][0]
            yield from finding_lines(finding if last else replace(finding, why="", fix=""))
            if modules:
                yield from fact_lines("  in", join_some(modules, SAME, ", "))
        if len(members) > SAME:
            yield from fold(f"and {len(members) - SAME} more of this kind: --json", " " * 10)


def _kinds(check: StackCheck) -> Iterator[tuple[Level, str, list[tuple[Finding, list[str]]]]]:
    """Yield each level and code, the worst first, with its findings and their modules."""
    gathered = [*_gathered(check)]
    modules = {id(finding): names for finding, names in gathered}
    for level, code, findings in by_kind(finding for finding, _ in gathered):
        yield level, code, [(finding, modules[id(finding)]) for finding in findings]


def _gathered(check: StackCheck) -> Iterator[tuple[Finding, list[str]]]:
    """Yield each finding once, with the modules that have it."""
    yield from ((finding, []) for finding in check.findings)
    by_text: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
    for module in check.modules:
        for finding in module.findings:
            key = finding.code, finding.message
            by_text.setdefault(key, (finding, []))[1].append(module.name)
    yield from by_text.values()


def stack_checks_table(stack: Stack, checks: Sequence[StackCheck]) -> Iterator[str]:
    """Describe each MPI in a line: yes, or the first thing in the way."""
    from mpigraft.graft import Fate

    yield f"fits: {sum(check.ok for check in checks)} of {len(checks)} MPIs"
    yield ""
    yield from fact_lines("stack", stack_size(stack))
    yield ""
    width = max(len(check.mpi) for check in checks) + 2
    for check in sorted(checks, key=lambda v: (not v.ok, -v.count(Fate.FITS))):
        text = f"{check.mpi:{width}}{_reason(check)}"
        yield from fold(printable(text), f"{'yes' if check.ok else 'NO':10}", 10 + width)
    yield ""
    yield "--mpi SPEC says more of one of them"


def _reason(check: StackCheck) -> str:
    from mpigraft.graft import Fate

    findings = [f for f, _ in _gathered(check) if f.level == "error"]
    fits = counted(check.count(Fate.FITS), "program")
    if not findings:
        return f"{fits} would load it"
    some = f"{fits} would load it; " if check.count(Fate.FITS) else ""
    return f"{some}{findings[0].message}"
