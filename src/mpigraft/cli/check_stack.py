"""`mpigraft check STACK`: a host MPI under all programs of a software stack."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpigraft.cli.check import WORDS, chosen_mpis, finding_lines, row
from mpigraft.cli.common import console, examine_machine, out, tell
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.numbers import counted, duration
from mpigraft.core.text import fold, join_some, printable

if TYPE_CHECKING:
    from mpigraft.binary import Elf
    from mpigraft.core.model import Finding, MpiAbi
    from mpigraft.core.model import Machine as MachineFacts
    from mpigraft.graft import Slot, Stack, StackCheck

MODULES = 40  # that are listed where nothing is wrong with them
SAME = 3  # findings of one kind that are shown
EVERY_S = 5.0  # between lines of progress in a pipe
LEVELS = {**WORDS, "info": "note"}  # the worst first
PARTS = ("mpi", "libfabric", "ucx")  # what an override may hold


@dataclass(frozen=True, slots=True)
class _Answer:
    verdicts: tuple[StackCheck, ...]
    unread: tuple[str, ...]  # MPIs that could not be checked, with the reason

    @property
    def ok(self) -> bool:
        return any(verdict.ok for verdict in self.verdicts)


def check_stack_of(path: str, spec: str, machine: Path | None, *, as_json: bool) -> int:
    """Check the MPI that was named under the stack at a path; without one, what is injected there
    now, or if nothing is, all of the machine."""
    stack = read_named_stack(path)
    here = examine_machine(machine, [spec])
    if not spec and machine is None:
        if injected := injected_verdicts(stack, here):
            return _report_injected(stack, injected, as_json=as_json)
        if not as_json:
            out(f"{_below_own_mpi(stack)}: programs run on the stack's own MPI\n")
    answer = _answer(stack, chosen_mpis(spec, here), here, machine)
    if as_json:
        from mpigraft.core.serialize import document

        out(document(**as_document(stack, answer.verdicts, answer.unread)))
    else:
        single = len(answer.verdicts) == 1
        out("\n".join(lines(answer.verdicts[0]) if single else table(stack, answer.verdicts)))
        for line in answer.unread:
            out("\n".join(row("left out", line)))
    return 0 if answer.ok or not (spec or machine) else CheckFailed.exit_code


def _below_own_mpi(stack: Stack) -> str:
    """Say what overrides have where they have no MPI: libfabric or UCX alone."""
    from mpigraft.graft import read_override

    active = [(slot.path, record) for slot in stack.slots if (record := read_override(slot).active)]
    rows = (f"{', '.join(r.bindings)} of {r.mpi} injected in {path}" for path, r in active)
    prove = f"; `mpigraft inject {stack.root} --verify` proves it"
    return "; ".join(rows) + prove if active else "nothing injected"


def injected_verdicts(stack: Stack, here: MachineFacts) -> tuple[StackCheck, ...]:
    """Judge what is injected into a stack now, with progress on stderr."""
    from mpigraft.graft import check_injected

    with progress("checking what is injected") as checked:
        return check_injected(stack, here, checked)


def _report_injected(stack: Stack, verdicts: Sequence[StackCheck], *, as_json: bool) -> int:
    if as_json:
        from mpigraft.core.serialize import document

        out(document(**as_document(stack, (), injected=verdicts)))
    else:
        out("\n\n".join("\n".join(lines(verdict)) for verdict in verdicts))
    return 0 if all(verdict.ok for verdict in verdicts) else CheckFailed.exit_code


def read_part(text: str) -> str:
    """Read --replace of an override: libfabric, ucx, or empty for the MPI. Raises UsageError."""
    if text not in PARTS:
        raise UsageError.of("part-unknown", replace=text, parts=", ".join(PARTS))
    return "" if text == PARTS[0] else text


def read_named_stack(path: str) -> Stack:
    """Read a stack, with progress on stderr."""
    from mpigraft.graft import read_stack

    shown = console(stderr=True)
    with shown.status("reading the stack") as status:
        stack = read_stack(path, lambda n: status.update(f"reading the stack: {n} ELF files"))
    given = os.path.abspath(path)  # noqa: PTH100  links stay as they are given
    if not stack.only and stack.root != given:
        tell(
            f"{given}: of its CPU targets this node takes {stack.root}; name another by its folder"
        )
    if not shown.is_terminal:
        shown.print(_size_of(stack), soft_wrap=True)
    return stack


def _answer(stack: Stack, mpis: Sequence[str], here: MachineFacts, machine: Path | None) -> _Answer:
    from mpigraft.graft import check_stack

    verdicts, unread = [], []
    for mpi in mpis:
        try:
            abi = _abi(mpi, here, machine)
            with progress(f"checking {mpi}") as checked:
                files = files_of(abi)
                verdicts.append(check_stack(stack, abi, files, machine=here, checked=checked))
        except (MissingError, UsageError) as error:
            if len(mpis) == 1:
                raise
            unread.append(f"{mpi}: {error.message}")
    if not verdicts:
        raise MissingError.of("nothing-to-check", why="; ".join(unread), alternatives="")
    return _Answer(tuple(verdicts), tuple(unread))


def _abi(mpi: str, here: MachineFacts, machine: Path | None) -> MpiAbi:
    from mpigraft.graft import abi_from_machine, read_abi

    if machine:
        return abi_from_machine(machine, mpi)
    return read_abi(next(one for one in here.mpis if one.id == mpi))


def files_of(abi: MpiAbi) -> Callable[[Slot, frozenset[str]], Mapping[str, Elf]]:
    """Give what an override would have of an MPI, as `inject` plans it."""
    from mpigraft.graft import override_files, plan_override
    from mpigraft.native import settings_library

    settings = settings_library(abi.mpi, abi.objects[0].machine)

    def files(slot: Slot, needed: frozenset[str]) -> Mapping[str, Elf]:
        return override_files(plan_override(abi, slot, needed, settings), slot.path)

    return files


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show programs and the time left on stderr: a bar on a terminal, some lines in a pipe."""
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    from mpigraft.cli.progress import make_bar

    begun = last = time.monotonic()
    with make_bar(MofNCompleteColumn(), TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def checked(done: int, total: int) -> None:
            nonlocal last
            bar.update(task, completed=done, total=total)
            now = time.monotonic()
            if bar.console.is_terminal or now - last < EVERY_S or done == total:
                return
            last = now
            left_s = (now - begun) / done * (total - done)
            text = f"{what}: {done} of {total} programs, about {duration(left_s)} left"
            bar.console.print(text, soft_wrap=True)

        yield checked


# ------------------------------------------------------------------ for other tools


def as_document(
    stack: Stack,
    verdicts: Sequence[StackCheck],
    unread: Sequence[str] = (),
    injected: Sequence[StackCheck] = (),
) -> dict[str, Any]:
    """What report/schemas/check-stack.json describes."""
    fits = all(v.ok for v in injected) if injected else any(v.ok for v in verdicts)
    return {
        "ok": fits,
        "stack": {
            "root": stack.root,
            "real": stack.real,
            "only": stack.only,
            "elf_files": stack.elf_files,
            "programs": len(stack.programs),
            "modules": len(stack.modules),
            "loader": stack.loader,
            "overrides": stack.slots,
            "unread": stack.unread,
        },
        "injected": [check_document(verdict) for verdict in injected],
        "checks": [check_document(verdict) for verdict in verdicts],
        "unread": list(unread),
    }


def check_document(verdict: StackCheck) -> dict[str, Any]:
    """Give one verdict, as the schemas of `check` and `inject` describe it."""
    from mpigraft.graft import Fate

    return {
        "mpi": verdict.mpi,
        "ok": verdict.ok,
        "overrides": [slot.path for slot in verdict.slots],
        "glibc": verdict.glibc,
        **{fate.value: verdict.count(fate) for fate in Fate},
        "modules": verdict.modules,
        "findings": verdict.findings,
    }


# ------------------------------------------------------------------ for a person


def _size_of(stack: Stack) -> str:
    if stack.only:
        return f"{stack.only}, a program of {stack.root}"
    programs = counted(len(stack.programs), "program")
    modules = counted(len(stack.modules), "module")
    need = "needs" if len(stack.programs) == 1 else "need"
    files = counted(stack.elf_files, "ELF file")
    return f"{stack.root}: {files}; {programs} of {modules} {need} MPI"


def lines(verdict: StackCheck) -> Iterator[str]:
    """One verdict: the answer, a summary by module, then what is wrong."""
    from mpigraft.graft import Fate

    stack = verdict.stack
    yield f"fits: {'yes' if verdict.ok else 'no'}"
    yield ""
    yield from row("stack", _size_of(stack))
    if stack.loader:
        glibc = f", glibc {verdict.glibc}" if verdict.glibc else ""
        yield from row("loader", f"{stack.loader.path}{glibc}")
    yield from row("injected" if verdict.injected else "host MPI", verdict.mpi)
    for slot in verdict.slots:
        programs = counted(slot.programs, "program")
        names = " and ".join(filter(None, slot.names))
        yield from row("override", f"{slot.path}{f' ({names})' if names else ''}: {programs}")
    yield ""
    count = {fate: verdict.count(fate) for fate in Fate}
    would, not_, change = ("", "do", "differs") if verdict.injected else WOULD
    if count[Fate.FITS]:
        programs = counted(count[Fate.FITS], "program")
        load = "loads" if count[Fate.FITS] == 1 and not would else "load"
        yield f"{programs} {would}{load} {verdict.mpi}, and nothing else {change}"
    if count[Fate.REFUSED]:
        programs = counted(count[Fate.REFUSED], "program")
        yield f"{programs} {not_} not start, or load other libraries"
    if count[Fate.ACCEPTED]:
        yield f"accepted by --except: {counted(count[Fate.ACCEPTED], 'program')}"
    if count[Fate.KEPT]:
        stay = "stays as it is" if count[Fate.KEPT] == 1 and not would else "stay as they are"
        yield f"{counted(count[Fate.KEPT], 'program')} {would}{stay}: {_kept(verdict)}"
    yield from _modules(verdict)
    yield from _findings(verdict)


WOULD = ("would ", "would", "would change")
REASONS = {
    "other-abi": "of another MPI family",
    "other-machine": "of another architecture",
    "runpath": "searched by DT_RUNPATH",
    "no-override": "without an override",
    "not-used": "without that library",
    "other-override": "on the MPI in another override",
}


def _kept(verdict: StackCheck) -> str:
    whys = [p.why for module in verdict.modules for p in module.programs if p.why in REASONS]
    parts = (f"{whys.count(why)} {REASONS[why]}" for why in dict.fromkeys(whys))
    return ", ".join(parts)


def _modules(verdict: StackCheck) -> Iterator[str]:
    from mpigraft.graft import Fate

    modules = verdict.modules
    shown = modules if len(modules) <= MODULES else [m for m in modules if m.notable]
    if not shown:
        return
    width = max(6, *(len(printable(module.name)) for module in shown)) + 2
    yield ""
    fates = [Fate.FITS, Fate.REFUSED, Fate.KEPT]
    fates += [Fate.ACCEPTED] if any(m.count(Fate.ACCEPTED) for m in modules) else []
    words = {fate: "stays" if fate is Fate.KEPT else fate.value for fate in fates}
    yield f"{'module':{width}}" + "".join(f"{w:>{len(w) + 2}}" for w in words.values())
    for module in shown[: 10 * MODULES]:
        counts = (f"{module.count(fate) or '':>{len(w) + 2}}" for fate, w in words.items())
        yield f"{printable(module.name):{width}}{''.join(counts)}".rstrip()
    if more := len(modules) - len(shown[: 10 * MODULES]):
        yield f"and {counted(more, 'module')} more: --json"


def _findings(verdict: StackCheck) -> Iterator[str]:
    """Each kind of finding once, with the modules that it is about, the worst first."""
    kinds: dict[tuple[str, str], list[tuple[Finding, list[str]]]] = {}
    for finding, modules in _gathered(verdict):
        kinds.setdefault((str(finding.level), finding.code), []).append((finding, modules))
    for level, word in LEVELS.items():
        for (own, code), members in kinds.items():
            if own != level:
                continue
            yield ""
            yield f"{word:10}{code}"
            for finding, modules in members[:SAME]:
                last = finding is members[min(SAME, len(members)) - 1][0]
                yield from finding_lines(finding if last else replace(finding, why="", fix=""))
                if modules:
                    yield from row("  in", join_some(modules, SAME, ", "))
            if len(members) > SAME:
                yield from fold(f"and {len(members) - SAME} more of this kind: --json", " " * 10)


def _gathered(verdict: StackCheck) -> Iterator[tuple[Finding, list[str]]]:
    """Yield each finding once, with the modules that have it."""
    yield from ((finding, []) for finding in verdict.findings)
    by_text: dict[tuple[str, str], tuple[Finding, list[str]]] = {}
    for module in verdict.modules:
        for finding in module.findings:
            key = finding.code, finding.message
            by_text.setdefault(key, (finding, []))[1].append(module.name)
    yield from by_text.values()


def table(stack: Stack, verdicts: Sequence[StackCheck]) -> Iterator[str]:
    """Every MPI in a line: yes, or the first thing in the way."""
    from mpigraft.graft import Fate

    yield f"fits: {sum(verdict.ok for verdict in verdicts)} of {len(verdicts)} MPIs"
    yield ""
    yield from row("stack", _size_of(stack))
    yield ""
    width = max(len(verdict.mpi) for verdict in verdicts) + 2
    for verdict in sorted(verdicts, key=lambda v: (not v.ok, -v.count(Fate.FITS))):
        text = f"{verdict.mpi:{width}}{_reason(verdict)}"
        yield from fold(printable(text), f"{'yes' if verdict.ok else 'NO':10}", 10 + width)
    yield ""
    yield "--mpi SPEC says more of one of them"


def _reason(verdict: StackCheck) -> str:
    from mpigraft.graft import Fate

    findings = [f for f, _ in _gathered(verdict) if f.level == "error"]
    fits = counted(verdict.count(Fate.FITS), "program")
    if not findings:
        return f"{fits} would load it"
    more = f"; {fits} would load it" if verdict.count(Fate.FITS) else ""
    return f"{findings[0].message}{more}"
