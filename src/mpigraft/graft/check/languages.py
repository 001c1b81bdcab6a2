"""Check bindings without an ABI: Fortran's depend on the compiler, C++'s were removed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpigraft.core.model import AbiObject, CheckResult, Family, Finding
from mpigraft.core.numbers import counted
from mpigraft.graft.check.check_input import CheckInput, base, binds_now, part, some, verb
from mpigraft.knowledge import (
    binding_of,
    compilers_of_libraries,
    compilers_of_symbols,
    fit_facts,
    version_numbers,
)

if TYPE_CHECKING:
    from mpigraft.binary import Elf, UnboundSymbol

# MPI::Comm in C++, and what Open MPI's C++ binding needs of its libmpi.
CXX_SYMBOL = re.compile(r"_ZNK?3MPI|_ZT[VIS]N3MPI|ompi_(mpi_cxx_|op_set_cxx_|mpi_errors_throw_)")
HAVE_CXX = {
    "ompi": "Open MPI 4.1 configured with --enable-mpi-cxx",
    "mpich": "Intel MPI, or MPICH configured with --enable-cxx",
    "mpi-abi": "no MPI of this ABI has them",
}
FORTRAN_SYMBOL = re.compile(r"p?mpix?_\w*_*$|P?MPIX?_[A-Z0-9_]+$|__mpi\w*_MOD_|mpi\w*_mp_|_QMmpi")
MPI_F08_SYMBOL = re.compile(r"p?mpix?_\w+_f08(ts)?_|\w*mpi_f08", re.IGNORECASE)
MPI_FUNCTION = re.compile(r"P?MPIX?_(T_)?[A-Z][a-z]\w*(@\w+)?")  # constants are in capitals
# Fortran's constants are addresses: of common blocks that a program and its MPI share by name.
SHARED = re.compile(r"mpifcmb\w_|mpipriv\w_|mpi_fortran_\w+_")
UNCALLED = " but procedures that the program does not call"


# ------------------------------------------------------------------ Fortran


def fortran(pair: CheckInput) -> CheckResult:
    if not pair.whole:
        return part("fortran", "the guest keeps its own bindings", ())
    users = [
        user
        for simulated in pair.contents.programs
        for user in pair.users(simulated)
        if _calls(user)
    ]
    if not users:
        return part("fortran", "no Fortran bindings are used", ())
    findings = tuple(_fortran(pair, users))
    compilers = some(sorted(set().union(*(_compilers(u) for u in users))))
    return part("fortran", f"{pair.mpi} has bindings for {compilers or 'this compiler'}", findings)


def _calls(file: Elf) -> bool:
    """Return whether a file calls MPI by a Fortran binding."""
    return any(_is_fortran(name) for name in file.needed) and any(
        FORTRAN_SYMBOL.match(s.name) for s in file.imported
    )


def _is_fortran(name: str) -> bool:
    binding = binding_of(name)
    return binding is not None and binding.language == "fortran"


def _fortran(pair: CheckInput, users: list[Elf]) -> Iterator[Finding]:
    ours = [o for o in pair.abi.objects if _is_fortran(o.soname)]
    absent = [(name, by) for name, by in pair.contents.absent if _is_fortran(name)]
    if absent:
        yield _absent(pair, absent)
        return
    modern = [u for u in users if any(MPI_F08_SYMBOL.match(s.name) for s in u.imported)]
    yield from _compiler(pair, [u for u in users if u not in modern], ours, "mpi")
    yield from _compiler(pair, modern, ours, "mpi_f08")
    yield from _other_family(pair, modern)
    yield from _missing_symbols(pair)
    yield from _constants(pair, users, ours)


def _absent(pair: CheckInput, absent: list[tuple[str, str]]) -> Finding:
    names = some(name for name, _ in absent)
    users = [base(by) for _, by in absent]
    needed = f"{some(users)} {verb(users, 'needs', 'need')} {names}"
    lines = tuple(f"{by} needs {name}" for name, by in absent)
    lacking = tuple(dict.fromkeys(_lacking(pair)))
    if _own_bindings_fit(pair):
        return Finding.of(
            "fortran-own",
            needed=needed,
            mpi=pair.mpi,
            own_name=pair.own_name,
            uncalled=UNCALLED if lacking else "",
            evidence=(*lines, *lacking),
        )
    missing = {r.name for simulated in pair.contents.programs for r in simulated.missing}
    reason = "the guest's own bindings read structures that differ in another libmpi"
    if missing & {name for name, _ in absent}:
        reason = "the guest lacks them too: cannot open shared object file"
    elif lacking:
        reason = "the guest's own bindings would lack functions of libmpi that are called"
    evidence = (*lines, *lacking)
    return Finding.of(
        "fortran-absent", needed=needed, mpi=pair.mpi, reason=reason, evidence=evidence
    )


def _own_bindings_fit(pair: CheckInput) -> bool:
    """Return whether the guest's bindings may stay over the host's libmpi: both are of one release
    series, no symbol is missing but functions that nothing calls, and no other part of the guest's
    MPI is loaded. MPICH's bindings use only public symbols of libmpi, which have been one ABI since
    3.1."""
    host = pair.abi.mpi
    if pair.own is None or pair.own.family != host.family:
        return False
    host_version, guest_version = version_numbers(host.version), version_numbers(pair.own.version)
    if host.family is not Family.MPICH and host_version[:2] != guest_version[:2]:
        return False
    if host.family is Family.MPICH and min(host_version, guest_version) < (3, 1):
        return False
    for simulated in pair.contents.programs:
        own_parts = list(pair.kept(simulated))
        files = {r.elf.name for r in own_parts if r.elf}
        if not all(_is_fortran(r.soname) or _is_cxx(r.soname) for r in own_parts):
            return False
        cxx_files = {r.elf.name for r in own_parts if r.elf and _is_cxx(r.soname)}
        missing = [u for u in simulated.unbound if u.by in files]
        at_start = pair.binds_now or any(r.elf and binds_now(r.elf) for r in own_parts)
        imported = {s.name for user in pair.users(simulated) for s in user.imported}
        if missing and at_start:
            return False
        if any(_is_needed(u.symbol, imported, cxx=u.by in cxx_files) for u in missing):
            return False
    return True


def _is_needed(symbol: str, imported: set[str], *, cxx: bool) -> bool:
    """Return whether bindings need a symbol of libmpi for what their users import. A function is
    bound when it is first called: in Fortran by the procedure of its name, in C++ by the functions
    that rows name, or by others that are not known. Variables, in capitals by MPI's rule, are bound
    at the start."""
    if cxx:
        rows = [row for row in fit_facts().cxx_calls if row.symbol.fullmatch(symbol)]
        return not rows or any(row.callers.match(name) for row in rows for name in imported)
    called = map(_procedure, imported)
    return MPI_FUNCTION.fullmatch(symbol) is None or _procedure(symbol) in called


def _procedure(symbol: str) -> str:
    """Give what the names of one procedure share: of PMPIX_Delete_error_class and
    mpi_delete_error_class_f08_ it is delete_error_class."""
    plain = symbol.partition("@")[0].lower().rpartition("_mod_")[2]
    return re.sub(r"^_*p?mpi[xr]?_|_*(f08(ts)?)?_*$", "", plain)


def _lacking(pair: CheckInput) -> Iterator[str]:
    """Name what the guest's own bindings need and the host's libmpi lacks."""
    for simulated in pair.contents.programs:
        files = {r.elf.name for r in pair.kept(simulated) if r.elf}
        yield from (f"{u.by} lacks {u.symbol}" for u in simulated.unbound if u.by in files)


def _compiler(
    pair: CheckInput, users: list[Elf], ours: list[AbiObject], module: str
) -> Iterator[Finding]:
    """Check that both sides have one compiler family: argument lists, logicals, modules and array
    descriptors (CFI_cdesc_t) differ between families."""
    program_compilers = set().union(*(_compilers(u) for u in users))
    host_compilers = compilers_of_symbols((s for o in ours for s in o.exported), module)
    host_compilers |= compilers_of_libraries(n for o in ours for n in o.needed)
    if not users or (program_compilers and program_compilers <= host_compilers):
        return
    if not program_compilers or not host_compilers:
        side = "the program" if not program_compilers else pair.mpi
        yield Finding.of("fortran-compiler-unknown", side=side)
        return
    binding = "module mpi_f08 was" if module == "mpi_f08" else "bindings were"
    yield Finding.of(
        "fortran-compiler",
        program_compilers=some(sorted(program_compilers)),
        mpi=pair.mpi,
        binding=binding,
        host_compilers=some(sorted(host_compilers)),
        evidence=tuple(f"{u.name} needs {some(_compiler_signs(u))}" for u in users),
    )


def _compilers(file: Elf) -> set[str]:
    return compilers_of_libraries(file.needed) | compilers_of_symbols(s.name for s in file.imported)


def _compiler_signs(file: Elf) -> list[str]:
    """List the names that show a file's compiler."""
    return [n for n in file.needed if compilers_of_libraries([n])] or [
        s.name for s in file.imported if compilers_of_symbols([s.name])
    ]


def _other_family(pair: CheckInput, modern: list[Elf]) -> Iterator[Finding]:
    """Report other families: the ABI initiative covers mpif.h and the module mpi, not mpi_f08.

    Source: wiki.mpich.org, ABI Compatibility Initiative.
    """
    if pair.own is None or pair.own.family in (None, pair.abi.mpi.family):
        return
    both = f"built with {pair.own_name}, and {pair.mpi} is of another family"
    if modern:
        yield Finding.of(
            "fortran-family",
            programs=some(base(u.name) for u in modern),
            both=both,
            family=pair.own.family,
            mpi=pair.mpi,
            evidence=tuple(u.name for u in modern),
        )
    else:
        yield Finding.of("fortran-relative", both=both)


def _missing_symbols(pair: CheckInput) -> Iterator[Finding]:
    missing = [
        u
        for simulated in pair.contents.programs
        for u in simulated.unbound
        if FORTRAN_SYMBOL.match(u.symbol)
    ]
    if missing:
        yield _symbols_missing(pair, missing, "fortran-symbols")


def _symbols_missing(pair: CheckInput, missing: list[UnboundSymbol], code: str) -> Finding:
    names = sorted({u.symbol for u in missing})
    users = sorted({u.by for u in missing})
    return Finding.of(
        code,
        users=some(map(base, users)),
        symbols=counted(len(names), "symbol"),
        mpi=pair.mpi,
        names=some(names),
        evidence=(f"missing: {' '.join(names)}", *(f"needed by {by}" for by in users)),
    )


def _constants(pair: CheckInput, users: list[Elf], ours: list[AbiObject]) -> Iterator[Finding]:
    known = {s.partition("@")[0] for o in (pair.abi.objects[0], *ours) for s in o.exported}
    own = {s.name for u in users for s in u.exported if SHARED.fullmatch(s.name)}
    if strange := sorted(own - known):
        yield Finding.of(
            "fortran-constants", mpi=pair.mpi, symbols=some(strange), evidence=tuple(strange)
        )


# ------------------------------------------------------------------ C++


def cxx(pair: CheckInput) -> CheckResult:
    """Check MPI's C++ bindings, deprecated in MPI-2.2 (2009) and removed in MPI-3.0 (2012)."""
    if not pair.whole:
        return part("cxx", "the guest keeps its own bindings", ())
    absent = [(n, by) for n, by in pair.contents.absent if _is_cxx(n)]
    missing = [
        u
        for simulated in pair.contents.programs
        for u in simulated.unbound
        if CXX_SYMBOL.match(u.symbol)
    ]
    used = any(_is_cxx(n) for simulated in pair.contents.programs for n in pair.bindings(simulated))
    fine = f"{pair.mpi} has them" if used else "no C++ bindings of MPI are used"
    if absent and not missing and _own_bindings_fit(pair):
        return part("cxx", fine, [_own_cxx(pair, absent)])
    if absent:
        return part("cxx", fine, [_no_cxx(pair, absent, missing)])
    return part("cxx", fine, [_symbols_missing(pair, missing, "cxx-symbols")] if missing else ())


def _is_cxx(name: str) -> bool:
    binding = binding_of(name)
    return binding is not None and binding.language == "cxx"


def _own_cxx(pair: CheckInput, absent: list[tuple[str, str]]) -> Finding:
    lacking = tuple(dict.fromkeys(_lacking(pair)))
    return Finding.of(
        "cxx-own",
        library=absent[0][0],
        mpi=pair.mpi,
        uncalled=UNCALLED if lacking else "",
        evidence=(*(f"{by} needs {name}" for name, by in absent), *lacking),
    )


def _no_cxx(
    pair: CheckInput, absent: list[tuple[str, str]], missing: list[UnboundSymbol]
) -> Finding:
    users = [by for _, by in absent]
    lines = (
        *(f"{by} needs {name}" for name, by in absent),
        *(f"{u.by} would miss {u.symbol}" for u in missing),
        *dict.fromkeys(_lacking(pair)),
    )
    return Finding.of(
        "cxx-bindings",
        users=some(map(base, users)),
        verb=verb(users, "needs", "need"),
        library=absent[0][0],
        mpi=pair.mpi,
        name=absent[0][0].removeprefix("lib").partition(".so")[0],
        alternative=HAVE_CXX[str(pair.abi.mpi.abi)],
        evidence=lines,
    )
