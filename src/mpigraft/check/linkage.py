"""What the loader would refuse, or find missing later: symbols and version nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mpigraft.check.case import Case, base, count, part, some, verb
from mpigraft.check.languages import CXX, FORTRAN
from mpigraft.model import Finding, Level, Part, Replace

if TYPE_CHECKING:
    from mpigraft.injection import Simulated
    from mpigraft.linking import Unbound, Unmet

DF_BIND_NOW, DF_1_NOW = 8, 1
MPI = re.compile(r"P?MPIX?_|QMPI_|P?ompi_|MPIR_|MPII_")
# Which MPI standard brought a function. Sources: the change logs of MPI 4.0, 4.1 and 5.0.
SINCE = (
    ("5.0", re.compile(r"P?MPI_(Abi_|\w+_(toint|fromint)$)")),
    ("4.1", re.compile(r"P?MPI_(\w+_(attach|detach|flush|iflush)_buffer|Buffer_i?flush|"
                       r"Get_hw_resource_info|Request_get_status_(all|any|some)|Remove_error_|"
                       r"Status_[gs]et_(source|tag|error)|Type_get_value_index)")),
    ("4.0", re.compile(r"P?MPI_(Session_|P(send|recv)_init|Pready|Parrived|Isendrecv|"
                       r"Comm_create_from_group|Comm_idup_with_info|Group_from_session|"
                       r"Info_(get_string|create_env)|\w+_init$|\w+_c$)")),
)  # fmt: skip


# ------------------------------------------------------------------ symbols


def symbols(case: Case) -> Part:
    fine = f"{_counted(case)} of MPI are there"
    return part("symbols", fine, _symbols(case))


def _counted(case: Case) -> str:
    names: set[str] = set()
    for one in case.injection.programs:
        for user in case.users(one):
            names.update(s.name for s in user.imported if MPI.match(s.name))
    return f"all {len(names)} symbols" if names else "all symbols"


def _symbols(case: Case) -> Iterator[Finding]:
    """One finding per set of symbols that are missing together."""
    sets: dict[tuple[bool, tuple[str, ...]], list[tuple[Simulated, Unbound]]] = {}
    for one in case.injection.programs:
        # What the guest's own MPI misses beside the host's is no news: the two do not mix.
        mixed = {r.elf.name for r in case.kept(one) if r.elf} if case.whole else set()
        left = [u for u in one.unbound if u.by not in mixed and not _of_a_part(u.symbol)]
        for ours in (False, True):
            lost = [u for u in left if case.ours(u.by) is ours]
            if lost:
                key = ours, tuple(sorted({u.symbol for u in lost}))
                sets.setdefault(key, []).extend((one, u) for u in lost)
    for (ours, names), hits in sets.items():
        yield _theirs(case, names, hits) if not ours else _ours(names, hits)


def _of_a_part(symbol: str) -> bool:
    return CXX.match(symbol) is not None or FORTRAN.match(symbol) is not None


def _theirs(case: Case, names: tuple[str, ...], hits: list[tuple[Simulated, Unbound]]) -> Finding:
    """Symbols that the guest's files need."""
    users = list(dict.fromkeys(u.by for _, u in hits))
    number, of_mpi = count(len(names), "symbol"), any(map(MPI.match, names))
    at_once = any(_binds_now(case, one, u.by) for one, u in hits)
    return Finding(
        Level.ERROR,
        "mpi-symbols" if of_mpi else "symbols",
        f"{some(map(base, users))}: {number} missing in {case.mpi}: {some(names)}"
        if of_mpi
        else f"{some(map(base, users))}: {number} missing with the host's libraries: {some(names)}",
        "the program ends at its start"
        if at_once
        else "the program starts, runs, and ends where it first calls one: undefined symbol, "
        "exit 127",
        _mend_symbols(case, names)
        if of_mpi
        else "the host's copy of a library that both sides have lacks them: take another host "
        "MPI, or build the image on a base as new as the host",
        (f"missing: {' '.join(names)}", *(f"needed by {by}" for by in users)),
    )


def _mend_symbols(case: Case, names: Iterable[str]) -> str:
    wanted = max((since for since, p in SINCE if any(map(p.match, names))), default="")
    newer = f" (MPI {wanted} brought the newest of them)" if wanted else ""
    return (
        f"take a host MPI that has them{newer}; or build the program with an MPI no newer than "
        f"{case.mpi}"
    )


def _binds_now(case: Case, one: Simulated, by: str) -> bool:
    """Whether the loader binds all functions of a file before it starts (-z now)."""
    facts = case.elf(one.program if by == one.program else by)
    return facts is not None and bool(facts.flags & DF_BIND_NOW or facts.flags_1 & DF_1_NOW)


def _ours(names: tuple[str, ...], hits: list[tuple[Simulated, Unbound]]) -> Finding:
    """Symbols that the host's libraries find at home and not in the guest."""
    by = list(dict.fromkeys(base(u.by) for _, u in hits))
    return Finding(
        Level.ERROR,
        "host-symbols",
        f"the host's {some(by)} would miss {count(len(names), 'symbol')} in this guest: "
        f"{some(names)}",
        "a library of the guest stands in the place of the one that has them",
        "take another host MPI, or an image whose libraries are as new as the host's",
        (f"missing: {' '.join(names)}", *(f"needed by the host's {name}" for name in by)),
    )


# ------------------------------------------------------------------ version nodes


def versions(case: Case) -> Part:
    glibc = f"glibc {case.guest.label.glibc}" if case.guest.label.glibc else "no glibc"
    fine = f"the guest's {glibc} has what the host's libraries need"
    if case.injection.glibc:
        fine = f"the host's glibc {case.abi.glibc} goes in: the guest's {glibc} is too old"
    return part("versions", fine.replace("  ", " "), _versions(case))


def _versions(case: Case) -> Iterator[Finding]:
    if case.injection.glibc:
        yield Finding(
            Level.INFO,
            "glibc-replaced",
            f"the host's whole glibc {case.abi.glibc} is put over the guest's "
            f"{case.guest.label.glibc}",
            f"{case.mpi} needs {some(case.injection.glibc_lacking)}",
            "--no-glibc refuses instead",
            case.injection.glibc_lacking,
        )
    sets: dict[tuple[str, str], set[Unmet]] = {}
    for one in case.injection.programs:
        for lack in one.unmet:
            sets.setdefault((lack.library, _kind(lack.node)), set()).add(lack)
    libc = {lack for (_, kind), found in sets.items() if kind == "GLIBC" for lack in found}
    if libc:
        yield _glibc(case, libc)
    for (library, kind), found in sets.items():
        if kind != "GLIBC":
            yield _unmet(case, library, kind, found)


def _kind(node: str) -> str:
    """GLIBCXX of GLIBCXX_3.4.30; GLIBC of GLIBC_PRIVATE and GLIBC_ABI_DT_RELR too."""
    return re.sub(r"_([\d.]+|ABI_\w+|PRIVATE)$", "", node)


def _number(node: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", node))


def _lines(found: Iterable[Unmet]) -> tuple[str, ...]:
    rows = sorted(found, key=lambda u: (_number(u.node), u.library, u.by), reverse=True)
    return tuple(f"{u.by} needs {u.node} of {u.library}; {u.found} lacks it" for u in rows)


def _glibc(case: Case, found: set[Unmet]) -> Finding:
    node = max((u.node for u in found), key=_number)
    users = sorted({base(u.by) for u in found})
    who, need = some(users), verb(users, "needs", "need")
    if not _number(node):  # GLIBC_PRIVATE: what parts of one glibc have among themselves
        return Finding(
            Level.ERROR,
            "glibc-mixed",
            f"{who} {need} {node} of another glibc than the one that would be loaded",
            "parts of two glibcs do not work together: the loader ends before the program starts",
            "build the image on a base whose glibc is as new as the host's, "
            f"{case.abi.glibc or 'whose version is unknown'}",
            _lines(found),
        )
    kept = bool(case.injection.glibc_lacking) and not case.injection.glibc
    release = node.partition("_")[2]
    return Finding(
        Level.ERROR,
        "glibc-old",
        f"{who} {need} {node}; the guest has glibc {case.guest.label.glibc}",
        f"the loader ends before the program starts: version `{node}' not found",
        ("without --no-glibc the host's glibc goes in with it; or " if kept else "")
        + f"build the image on a base with glibc {release} or newer, or take a host MPI that needs "
        "less (`mpigraft get` fetches some that need 2.17)",
        _lines(found),
    )


def _unmet(case: Case, library: str, kind: str, found: set[Unmet]) -> Finding:
    node = max((u.node for u in found), key=_number)
    users = sorted({base(u.by) for u in found})
    who, need = some(users), verb(users, "needs", "need")
    ours = any(case.ours(u.found) for u in found)
    side = f"{case.mpi}'s" if ours else "the guest's"
    return Finding(
        Level.ERROR,
        "version-unmet",
        f"{who} {need} {node} of {library}, which {side} lacks",
        f"the loader ends before the program starts: version `{node}' not found",
        _mend_version(case, library, kind, ours=ours),
        _lines(found),
    )


def _mend_version(case: Case, library: str, kind: str, *, ours: bool) -> str:
    if case.injection.replace is Replace.LIBFABRIC:
        return (
            f"take a host MPI whose {library} is as new as the guest's (`mpigraft discover` "
            "shows versions); or let the guest's MPI go: --replace mpi"
        )
    if ours:
        return f"take a host MPI whose {library} is newer"
    if kind in ("GLIBCXX", "CXXABI", "GCC"):
        return f"install a newer {library} in the image (its compiler's run-time library)"
    return f"install a newer {library} in the image"
