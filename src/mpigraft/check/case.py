"""What the parts of a check look at, and how a part says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.elf import Elf, ElfError
from mpigraft.knowledge.sonames import Binding, binding_of, role_of
from mpigraft.model import Finding, Level, Machine, MpiAbi, Part, Replace, Role
from mpigraft.resolve import Resolved, Rule
from mpigraft.root import RootError

if TYPE_CHECKING:
    from mpigraft.guest import Guest, GuestMpi
    from mpigraft.injection import Injection, Simulated

UNSEEN = "not looked at"  # begins what a part says that could not be judged
MOST_LINES, LONGEST, LONGEST_SEEN = 1000, 1 << 16, 2000  # of a finding: lines, characters
ORDER = (Level.INFO, Level.WARNING, Level.ERROR)


@dataclass(frozen=True, slots=True)
class Case:
    """A host MPI, a guest, and what the loader would say of the two together."""

    guest: Guest
    own: GuestMpi | None  # the guest's own MPI
    abi: MpiAbi
    injection: Injection
    machine: Machine | None  # None: nothing is known of its devices

    @property
    def mpi(self) -> str:
        return self.abi.mpi.id

    @property
    def own_name(self) -> str:
        """The guest's own MPI, as people say it."""
        if self.own is None:
            return "its own MPI"
        return f"{self.own.family or 'unknown MPI'} {self.own.version}".strip()

    @property
    def whole(self) -> bool:
        """The host's MPI takes the place of the guest's, libmpi and all."""
        return self.injection.replace is Replace.MPI

    def elf(self, program: str) -> Elf | None:
        """The facts of a guest's file; None where it cannot be read."""
        for one in self.injection.programs:
            if one.program == program:
                return one.main
        try:
            return self.guest.root.elf(program)
        except (ElfError, RootError):
            return None

    def ours(self, path: object) -> bool:
        """Whether ranks see a file of the graft folder there."""
        return str(path).startswith(f"{self.injection.place}/")

    def users(self, one: Simulated) -> Iterator[Elf]:
        """The program and those of its libraries that belong to no MPI: who calls MPI."""
        if (main := self.elf(one.program)) is not None:
            yield main
        for r in mapped(one.before):
            if r.elf is not None and not self.of_mpi(r.name) and not self.of_mpi(r.soname):
                yield r.elf

    def kept(self, one: Simulated) -> Iterator[Resolved]:
        """Parts of the guest's own MPI that would be loaded beside the host's."""
        for r in mapped(one.after):
            theirs = r.elf is not None and not self.ours(r.elf.name)
            if theirs and role_of(r.soname) is Role.MPI:
                yield r

    def of_mpi(self, name: str) -> bool:
        return binding_of(name) is not None

    def bindings(self, one: Simulated) -> dict[str, Binding]:
        """{soname: binding} of the MPI libraries that a program, or a library of it, asks for."""
        names = dict.fromkeys(name for user in self.users(one) for name in user.needed)
        return {name: found for name in names if (found := binding_of(name)) is not None}


def mapped(found: Iterable[Resolved]) -> Iterator[Resolved]:
    """What is loaded at the start: plugins, which come last, are left out."""
    return takewhile(lambda r: r.rule is not Rule.OPENED, found)


def part(name: str, fine: str, findings: Iterable[Finding]) -> Part:
    """A part as bad as its worst finding, which it says in one line; `fine` where none is bad."""
    found = tuple(map(_bounded, sorted(findings, key=lambda f: -ORDER.index(f.level))))
    worst = found[0].level if found else Level.INFO
    if worst is Level.INFO:
        return Part(name, worst, fine, found)
    bad = [f for f in found if f.level is worst]
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return Part(name, worst, bad[0].seen + more, found)


def _bounded(finding: Finding) -> Finding:
    """A guest chooses how many symbols it lacks, and how long their names are."""
    lines = tuple(line[:LONGEST] for line in finding.evidence[:MOST_LINES])
    if (more := len(finding.evidence) - MOST_LINES) > 0:
        lines = (*lines, f"and {more} more")
    return replace(finding, seen=finding.seen[:LONGEST_SEEN], evidence=lines)


def unseen(name: str, why: str) -> Part:
    """A part that could not be looked at."""
    return Part(name, Level.INFO, f"{UNSEEN}: {why}")


def count(number: int, word: str, many: str = "") -> str:
    """1 library, 2 libraries."""
    return f"{number} {word if number == 1 else many or word + 's'}"


def some(names: Iterable[str], most: int = 3) -> str:
    """Names in one line, the first few of them."""
    all_of_them = list(dict.fromkeys(names))
    more = len(all_of_them) - most
    return ", ".join(all_of_them[:most]) + (f" and {more} more" if more > 0 else "")


def verb(many: Iterable[object], one: str, several: str) -> str:
    """needs, need."""
    return one if len(set(many)) == 1 else several


def base(path: object) -> str:
    return PurePosixPath(str(path)).name


Judge = Callable[[Case], Part]
