"""What would work where an MPI was refused: those of this machine that do fit, by the same check,
and what `mpigraft get` can fetch. What a site's profile keeps from its users is no way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mpigraft.binary import ElfError, RootError
from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import Family, Machine, MpiInstall, Replace
from mpigraft.discovery import MPI_WHEELS, Wheel
from mpigraft.graft import FORTRAN_SYMBOL, MPI_F08_SYMBOL, Guest, GuestMpi, loaded_objects
from mpigraft.knowledge import (
    binding_of,
    compilers_of_libraries,
    compilers_of_symbols,
    version_numbers,
)
from mpigraft.request import flag_of_key

ANOTHER_MPI = re.compile(
    r"(use|name) (a|an|another)( host)? MPI\b|--mpi\b|mpigraft get\b|\bhost MPI (that|whose)\b"
)
CLAUSES = re.compile(r"; (?:or )?")
MOST = 4  # that are named


@dataclass(frozen=True, slots=True)
class ProgramNeeds:
    """What programs of a guest want of an MPI, as far as their names of libraries tell."""

    abis: frozenset[str]
    fortran: frozenset[str]  # compilers, where Fortran's bindings are called
    modern: bool  # by the module mpi_f08 too
    calls_fortran: bool
    cxx: bool


def fitting_mpis(
    machine: Machine, tried: Collection[str], check: Callable[[MpiInstall], object]
) -> tuple[str, ...]:
    """Ids of this machine's other MPIs for which `check` raises nothing."""
    fits = []
    for mpi in machine.mpis:
        if mpi.id in tried or not mpi.usable:
            continue
        try:
            check(mpi)
        except (CheckFailed, MissingError, UsageError):
            continue
        fits.append(mpi.id)
    return tuple(fits)


def suggest_mpis(no: MpigraftError, fits: Sequence[str], fetches: Sequence[str]) -> None:
    """Name the alternatives in a refusal. What fits was checked; what can be fetched was not, and
    is judged by the content of its wheel."""
    instead = describe_others(fits, fetches)
    if not no.fix:
        no.fix = instead
    else:
        no.fix = f"{instead}; else {no.fix}" if fits else f"{no.fix}; {instead}"


def describe_others(fits: Sequence[str], fetches: Sequence[str]) -> str:
    """Describe what fits in place of what does not, or what fetches one: `--mpi openmpi@4.1.8 fits,
    which was checked; so does openmpi@4.1.4`."""
    if fits:
        more = fits[1:MOST]
        others = f"; so {'does' if len(more) == 1 else 'do'} {', '.join(more)}" if more else ""
        return f"--mpi {fits[0]} fits, which was checked{others}"
    wheels = f"; {describe_wheels(fetches)}" if fetches else ""
    return f"no other MPI of this machine does{wheels}"


def describe_wheels(commands: Sequence[str]) -> str:
    return " or ".join(f"`{command}`" for command in commands) + " fetches one for such programs"


# ------------------------------------------------------------------ what can be fetched


def fetchable_mpis(
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
    except (ElfError, RootError):  # which the check has reported
        return ()
    present = {(mpi.family, mpi.version) for mpi in machine.mpis if mpi.usable}
    return tuple(
        wheel.command
        for wheel in MPI_WHEELS
        if (wheel.family, wheel.version) not in present
        and machine.cpu.architecture in wheel.architectures
        and guest.label.architecture == machine.cpu.architecture
        and needs.abis == {wheel.abi}
        and not (wheel.family is Family.INTEL and engine == "podman")
        and _new_enough(wheel, own)
        and (_has(wheel, needs) or _keeps_own(wheel, own))
    )


def needs_of(guest: Guest) -> ProgramNeeds:
    abis: set[str] = set()
    compilers: set[str] = set()
    modern = calls = cxx = False
    for subject in (*guest.label.programs, *guest.libraries):
        objects = loaded_objects(guest.root, subject, dict(guest.label.environment))
        main = guest.root.elf(subject)
        files = [r.elf for r in objects if r.elf and not binding_of(r.soname)]
        for file in (main, *files):
            bindings = [b for b in map(binding_of, file.needed) if b]
            abis |= {binding.abi for binding in bindings}
            cxx |= any(binding.language == "cxx" for binding in bindings)
            if any(b.language == "fortran" for b in bindings):
                names = [symbol.name for symbol in file.imported]
                calls |= any(map(FORTRAN_SYMBOL.match, names))
                modern |= any(map(MPI_F08_SYMBOL.match, names))
                compilers |= compilers_of_libraries(file.needed)
                compilers |= compilers_of_symbols(names)
    return ProgramNeeds(frozenset(abis), frozenset(compilers), modern, calls, cxx)


def _new_enough(wheel: Wheel, own: GuestMpi | None) -> bool:
    """Return whether it has what a program may call that was built with the guest's own MPI."""
    if own is None or own.family is not wheel.family:
        return True
    return version_numbers(wheel.version) >= version_numbers(own.version)


def _has(wheel: Wheel, needs: ProgramNeeds) -> bool:
    built = wheel.modern if needs.modern else wheel.fortran
    fortran = not needs.calls_fortran or bool(needs.fortran and needs.fortran <= set(built))
    return fortran and (wheel.cxx or not needs.cxx)


def _keeps_own(wheel: Wheel, own: GuestMpi | None) -> bool:
    """Return whether the guest's own bindings may stay over it: Open MPI's, within a release
    series."""
    same = own is not None and own.family is wheel.family is Family.OPENMPI
    return (
        same
        and own is not None
        and version_numbers(own.version)[:2] == version_numbers(wheel.version)[:2]
    )


# ------------------------------------------------------------------ a site's profile


def drop_forbidden_fixes(error: MpigraftError, fixed: Mapping[str, str]) -> None:
    """Take out of an error's way out what the profile does not leave to users. `fixed` has the
    keys that it fixes, and where it says so."""
    if not fixed or not error.fix:
        return
    kept = [c for c in CLAUSES.split(error.fix) if not _forbidden(c, fixed)]
    if kept == CLAUSES.split(error.fix):
        return
    where = ", ".join(dict.fromkeys(fixed.values()))
    advice = (
        f"ask those who keep the site's profile, which does not leave the rest to users ({where})"
    )
    error.fix = "; ".join([*kept, advice])


def _forbidden(clause: str, fixed: Iterable[str]) -> bool:
    flags = set(map(flag_of_key, fixed))
    words = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", clause))
    engine = "engine" in fixed and "another engine" in clause
    return bool(words & flags) or engine or ("mpi" in fixed and bool(ANOTHER_MPI.search(clause)))
