"""Bindings that have no ABI of their own: Fortran's belong to a compiler, C++'s are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpigraft.check.case import Case, base, count, part, some, verb
from mpigraft.knowledge import fit
from mpigraft.knowledge.sonames import binding_of
from mpigraft.knowledge.table import version
from mpigraft.model import AbiObject, Family, Finding, Level, Part

if TYPE_CHECKING:
    from mpigraft.elf import Elf
    from mpigraft.linking import Unbound

# MPI::Comm in C++, and what Open MPI's C++ binding needs of its libmpi.
CXX = re.compile(r"_ZNK?3MPI|_ZT[VIS]N3MPI|ompi_(mpi_cxx_|op_set_cxx_|mpi_errors_throw_)")
HAVE_CXX = {
    "ompi": "Open MPI 4.1 configured with --enable-mpi-cxx",
    "mpich": "Intel MPI, or MPICH configured with --enable-cxx",
    "mpi-abi": "none of this ABI has",
}
FORTRAN = re.compile(r"p?mpix?_\w*_*$|P?MPIX?_[A-Z0-9_]+$|__mpi\w*_MOD_|mpi\w*_mp_|_QMmpi")
MODERN = re.compile(r"p?mpix?_\w+_f08(ts)?_|\w*mpi_f08", re.IGNORECASE)
# Fortran's constants are addresses: of common blocks that a program and its MPI share by name.
SHARED = re.compile(r"mpifcmb\w_|mpipriv\w_|mpi_fortran_\w+_")


# ------------------------------------------------------------------ Fortran


def fortran(case: Case) -> Part:
    if not case.whole:
        return part("fortran", "the guest keeps its own bindings", ())
    users = [user for one in case.injection.programs for user in case.users(one) if _calls(user)]
    if not users:
        return part("fortran", "no Fortran bindings are used", ())
    found = tuple(_fortran(case, users))
    made = some(sorted(set().union(*(_compilers(u) for u in users))))
    return part("fortran", f"{case.mpi} has bindings for {made or 'this compiler'}", found)


def _calls(file: Elf) -> bool:
    """Whether a file calls MPI by a Fortran binding."""
    return any(_is_fortran(name) for name in file.needed) and any(
        FORTRAN.match(s.name) for s in file.imported
    )


def _is_fortran(name: str) -> bool:
    binding = binding_of(name)
    return binding is not None and binding.language == "fortran"


def _fortran(case: Case, users: list[Elf]) -> Iterator[Finding]:
    ours = [o for o in case.abi.objects if _is_fortran(o.soname)]
    absent = [(name, by) for name, by in case.injection.absent if _is_fortran(name)]
    if absent:
        yield _absent(case, absent)
        return
    modern = [u for u in users if any(MODERN.match(s.name) for s in u.imported)]
    yield from _compiler(case, [u for u in users if u not in modern], ours, "mpi")
    yield from _compiler(case, modern, ours, "mpi_f08")
    yield from _other_family(case, modern)
    yield from _lost(case)
    yield from _constants(case, users, ours)


def _absent(case: Case, absent: list[tuple[str, str]]) -> Finding:
    names = some(name for name, _ in absent)
    users = [base(by) for _, by in absent]
    needed = f"{some(users)} {verb(users, 'needs', 'need')} {names}"
    lines = tuple(f"{by} needs {name}" for name, by in absent)
    if _own_will_do(case):
        return Finding(
            Level.WARNING,
            "fortran-own",
            f"{needed}, which {case.mpi} has not: the guest's own of {case.own_name} are kept",
            "bindings and libmpi are of one ABI and every symbol is there, but nobody promises "
            "that they work together",
            "try the program's own tests; or take a host MPI with Fortran bindings",
            lines,
        )
    gone = {r.name for one in case.injection.programs for r in one.missing}
    return Finding(
        Level.ERROR,
        "fortran-absent",
        f"{needed}, and {case.mpi} has no such Fortran bindings",
        "the guest has none either: cannot open shared object file"
        if gone & {name for name, _ in absent}
        else "the guest's own bindings over another libmpi reach into structures that differ",
        "take a host MPI of the same family with Fortran bindings for the program's compiler",
        lines,
    )


def _own_will_do(case: Case) -> bool:
    """Whether the guest's bindings may stay over the host's libmpi: with nothing else of the
    guest's MPI beside the host's, no symbol lost, and of one release series. MPICH's reach libmpi
    by its public symbols alone, which have been one ABI since 3.1."""
    host = case.abi.mpi
    if case.own is None or case.own.family != host.family:
        return False
    mine, theirs = version(host.version), version(case.own.version)
    if host.family is not Family.MPICH and mine[:2] != theirs[:2]:
        return False
    if host.family is Family.MPICH and min(mine, theirs) < (3, 1):
        return False
    for one in case.injection.programs:
        kept = list(case.kept(one))
        files = {r.elf.name for r in kept if r.elf}
        if not all(_is_fortran(r.soname) or _is_cxx(r.soname) for r in kept) or any(
            u.by in files for u in one.unbound
        ):
            return False
    return True


def _compiler(
    case: Case, users: list[Elf], ours: list[AbiObject], module: str
) -> Iterator[Finding]:
    """The same compiler family on both sides: argument lists, logicals, modules and the layout
    of array descriptors (CFI_cdesc_t) differ."""
    theirs = set().union(*(_compilers(u) for u in users))
    host = fit.compilers_of_symbols((s for o in ours for s in o.exported), module)
    host |= fit.compilers_of_libraries(n for o in ours for n in o.needed)
    if not users or (theirs and theirs <= host):
        return
    if not theirs or not host:
        side = "the program" if not theirs else case.mpi
        yield Finding(
            Level.INFO,
            "fortran-compiler-unknown",
            f"with which Fortran compiler {side} was built could not be seen",
            "bindings fit only where both sides were built by one family of compilers",
        )
        return
    binding = "module mpi_f08 was" if module == "mpi_f08" else "bindings were"
    yield Finding(
        Level.ERROR,
        "fortran-compiler",
        f"built with {some(sorted(theirs))}; {case.mpi}'s {binding} built with "
        f"{some(sorted(host))}",
        "compilers pass strings and array descriptors in their own ways, name modules in "
        "their own ways, and differ in what is true: wrong values, not only missing symbols",
        f"take a host MPI built with {some(sorted(theirs))} (on a Cray: the cray-mpich of "
        "that PrgEnv), or build the program with " + some(sorted(host)),
        tuple(f"{u.name} needs {some(_seen(u))}" for u in users),
    )


def _compilers(file: Elf) -> set[str]:
    return fit.compilers_of_libraries(file.needed) | fit.compilers_of_symbols(
        s.name for s in file.imported
    )


def _seen(file: Elf) -> list[str]:
    """What tells a file's compiler."""
    return [n for n in file.needed if fit.compilers_of_libraries([n])] or [
        s.name for s in file.imported if fit.compilers_of_symbols([s.name])
    ]


def _other_family(case: Case, modern: list[Elf]) -> Iterator[Finding]:
    """The initiative's names cover mpif.h and the module mpi; mpi_f08 stays outside.

    Source: wiki.mpich.org, ABI Compatibility Initiative.
    """
    if case.own is None or case.own.family in (None, case.abi.mpi.family):
        return
    both = f"built with {case.own_name}, and {case.mpi} is of another family"
    if modern:
        yield Finding(
            Level.ERROR,
            "fortran-family",
            f"{some(base(u.name) for u in modern)} uses mpi_f08, {both}",
            "the ABI that MPICH's relatives share leaves the module mpi_f08 out",
            f"take a host MPI of the family {case.own.family}, or build with {case.mpi}",
            tuple(u.name for u in modern),
        )
    else:
        yield Finding(
            Level.INFO,
            "fortran-relative",
            both,
            "mpif.h and the module mpi are part of the ABI that MPICH's relatives share",
        )


def _lost(case: Case) -> Iterator[Finding]:
    lost = [u for one in case.injection.programs for u in one.unbound if FORTRAN.match(u.symbol)]
    if lost:
        yield _unbound(case, lost, "fortran-symbols", "Fortran")


def _unbound(case: Case, lost: list[Unbound], code: str, language: str) -> Finding:
    names = sorted({u.symbol for u in lost})
    users = sorted({u.by for u in lost})
    return Finding(
        Level.ERROR,
        code,
        f"{some(map(base, users))}: {count(len(names), 'symbol')} of the {language} bindings "
        f"missing in {case.mpi}: {some(names)}",
        "the program ends at its start, or where it first calls one: undefined symbol",
        "take a host MPI that has them",
        (f"missing: {' '.join(names)}", *(f"needed by {by}" for by in users)),
    )


def _constants(case: Case, users: list[Elf], ours: list[AbiObject]) -> Iterator[Finding]:
    known = {s.partition("@")[0] for o in (case.abi.objects[0], *ours) for s in o.exported}
    own = {s.name for u in users for s in u.exported if SHARED.fullmatch(s.name)}
    if strange := sorted(own - known):
        yield Finding(
            Level.ERROR,
            "fortran-constants",
            f"{case.mpi} does not know {some(strange)}, through which the program says "
            "MPI_IN_PLACE, MPI_BOTTOM and the like",
            "their addresses would be taken for buffers: wrong results, and no message",
            "take a host MPI of the release that the program was built with, or a newer one",
            tuple(strange),
        )


# ------------------------------------------------------------------ C++


def cxx(case: Case) -> Part:
    """MPI's own C++ bindings, deprecated in MPI-2.2 (2009) and gone since MPI-3.0 (2012)."""
    if not case.whole:
        return part("cxx", "the guest keeps its own bindings", ())
    absent = [(n, by) for n, by in case.injection.absent if _is_cxx(n)]
    lost = [u for one in case.injection.programs for u in one.unbound if CXX.match(u.symbol)]
    used = any(_is_cxx(n) for one in case.injection.programs for n in case.bindings(one))
    fine = f"{case.mpi} has them" if used else "no C++ bindings of MPI are used"
    if absent and not lost and _own_will_do(case):
        return part("cxx", fine, [_own_cxx(case, absent)])
    if absent:
        return part("cxx", fine, [_gone(case, absent, lost)])
    return part("cxx", fine, [_unbound(case, lost, "cxx-symbols", "C++")] if lost else ())


def _is_cxx(name: str) -> bool:
    binding = binding_of(name)
    return binding is not None and binding.language == "cxx"


def _own_cxx(case: Case, absent: list[tuple[str, str]]) -> Finding:
    return Finding(
        Level.WARNING,
        "cxx-own",
        f"{absent[0][0]}, MPI's C++ bindings, stays the guest's: {case.mpi} has none",
        "it is of the same release series and every symbol is there, but nobody promises that the "
        "two work together",
        "build the program without them (-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX): most do not "
        "use them",
        tuple(f"{by} needs {name}" for name, by in absent),
    )


def _gone(case: Case, absent: list[tuple[str, str]], lost: list[Unbound]) -> Finding:
    users = [by for _, by in absent]
    lines = (
        *(f"{by} needs {name}" for name, by in absent),
        *(f"{u.by} would miss {u.symbol}" for u in lost),
    )
    return Finding(
        Level.ERROR,
        "cxx-bindings",
        f"{some(map(base, users))} {verb(users, 'needs', 'need')} {absent[0][0]}, MPI's C++ "
        f"bindings, and {case.mpi} has none",
        "MPI-3.0 removed them in 2012, Open MPI 5 has none; the guest's own library needs parts "
        "of a libmpi that are gone: undefined symbol, exit 127",
        "most programs are linked to them and do not use them: build anew with "
        "-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX and without "
        f"-l{absent[0][0].removeprefix('lib').partition('.so')[0]}; or take a host MPI that has "
        f"them: {HAVE_CXX[str(case.abi.mpi.abi)]}",
        lines,
    )
