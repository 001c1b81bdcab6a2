"""The input of a check's parts, and the functions that make a part from its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.binary import Elf, ElfError, Resolved, RootError, Rule
from mpigraft.core.model import CheckResult, Finding, Level, Machine, MpiAbi, Replace, Role
from mpigraft.core.text import join_some
from mpigraft.knowledge import Binding, binding_of, role_of

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest
    from mpigraft.graft.guest.own_mpi import GuestMpi
    from mpigraft.graft.injection.contents import GraftContents
    from mpigraft.graft.injection.simulation import SimulatedProgram

DF_BIND_NOW, DF_1_NOW = 8, 1
NOT_CHECKED = "not checked"  # begins the text of a part that could not be checked
MOST_LINES, LONGEST, LONGEST_SEEN = 1000, 1 << 16, 2000  # of a finding: lines, characters
ORDER = (Level.INFO, Level.WARNING, Level.ERROR)


@dataclass(frozen=True, slots=True)
class CheckInput:
    """A host MPI, a guest, and what the loader would do with the two together."""

    guest: Guest
    abi: MpiAbi
    contents: GraftContents
    own: GuestMpi | None = None  # the guest's own MPI
    machine: Machine | None = None  # where ranks will run; None: its devices are not checked
    libraries: dict[int, list[Elf]] = field(default_factory=dict)  # of users, once for each list

    @property
    def mpi(self) -> str:
        return self.abi.mpi.id

    def only(self, programs: Sequence[SimulatedProgram]) -> CheckInput:
        """Restrict the pair to some of the guest's programs."""
        names = {r.name for one in programs for r in one.before}
        absent = tuple((name, by) for name, by in self.contents.absent if name in names)
        return replace(
            self, contents=replace(self.contents, programs=tuple(programs), absent=absent)
        )

    @property
    def own_name(self) -> str:
        """The name of the guest's own MPI in messages."""
        if self.own is None:
            return "its own MPI"
        return f"{self.own.family or 'unknown MPI'} {self.own.version}".strip()

    @property
    def binds_now(self) -> bool:
        """Whether the image's environment makes the loader bind all functions at the start."""
        return bool(dict(self.guest.label.environment).get("LD_BIND_NOW"))

    @property
    def whole(self) -> bool:
        """Whether the host's whole MPI replaces the guest's."""
        return self.contents.replace is Replace.MPI

    def elf(self, program: str) -> Elf | None:
        """Read the facts of a guest's file; None where it cannot be read."""
        for simulated in self.contents.programs:
            if simulated.program == program:
                return simulated.main
        try:
            return self.guest.root.elf(program)
        except (ElfError, RootError):
            return None

    def ours(self, path: object) -> bool:
        """Return whether ranks see a file of the host's MPI there."""
        return self.contents.of_host(path)

    def users(self, simulated: SimulatedProgram) -> Iterator[Elf]:
        """Yield the callers of MPI: the program and its libraries that belong to no MPI."""
        if (main := self.elf(simulated.program)) is not None:
            yield main
        key = id(simulated.before)  # of a stack, many programs have the same libraries
        if key not in self.libraries:
            self.libraries[key] = [
                r.elf
                for r in mapped(simulated.before)
                if r.elf is not None and not self.of_mpi(r.name) and not self.of_mpi(r.soname)
            ]
        yield from self.libraries[key]

    def kept(self, simulated: SimulatedProgram) -> Iterator[Resolved]:
        """Yield parts of the guest's own MPI that would be loaded together with the host's."""
        for r in mapped(simulated.after):
            of_guest = r.elf is not None and not self.ours(r.elf.name)
            if of_guest and role_of(r.soname) is Role.MPI:
                yield r

    def of_mpi(self, name: str) -> bool:
        return binding_of(name) is not None

    def bindings(self, simulated: SimulatedProgram) -> dict[str, Binding]:
        """Give {soname: binding} of the MPI libraries that a program, or a library of it, needs."""
        names = dict.fromkeys(name for user in self.users(simulated) for name in user.needed)
        return {name: binding for name in names if (binding := binding_of(name)) is not None}


def binds_now(file: Elf) -> bool:
    """Return whether the loader binds all functions of a file at its start (-z now)."""
    return bool(file.flags & DF_BIND_NOW or file.flags_1 & DF_1_NOW)


def mapped(rows: Iterable[Resolved]) -> Iterator[Resolved]:
    """Give what is loaded at the start, without plugins, which come last."""
    return takewhile(lambda r: r.rule is not Rule.OPENED, rows)


def part(name: str, fine: str, findings: Iterable[Finding]) -> CheckResult:
    """Make a part as bad as its worst finding, which is its text; `fine` where none is bad."""
    ordered = tuple(map(_bounded, sorted(findings, key=lambda f: -ORDER.index(f.level))))
    worst = ordered[0].level if ordered else Level.INFO
    if worst is Level.INFO:
        return CheckResult(name, worst, fine, ordered)
    bad = [f for f in ordered if f.level is worst]
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return CheckResult(name, worst, bad[0].message + more, ordered)


def _bounded(finding: Finding) -> Finding:
    """Bound a finding: a guest decides how many symbols it lacks, and how long their names are."""
    lines = tuple(line[:LONGEST] for line in finding.evidence[:MOST_LINES])
    if (more := len(finding.evidence) - MOST_LINES) > 0:
        lines = (*lines, f"and {more} more")
    return replace(finding, message=finding.message[:LONGEST_SEEN], evidence=lines)


def not_checked(name: str, why: str) -> CheckResult:
    """Make a part that could not be checked."""
    return CheckResult(name, Level.INFO, f"{NOT_CHECKED}: {why}")


def some(names: Iterable[str], most: int = 3) -> str:
    """Give names in one line, the first few of them."""
    return join_some(list(dict.fromkeys(names)), most, ", ")


def verb(many: Iterable[object], singular: str, plural: str) -> str:
    """Select the form of a verb: needs, need."""
    return singular if len(set(many)) == 1 else plural


def base(path: object) -> str:
    return PurePosixPath(str(path)).name


Check = Callable[[CheckInput], CheckResult]
