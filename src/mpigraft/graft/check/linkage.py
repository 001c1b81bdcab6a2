"""Check symbols and version nodes: what the loader would refuse, or find missing later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mpigraft.core.model import CheckResult, Finding, Replace
from mpigraft.core.numbers import counted
from mpigraft.graft.check.check_input import CheckInput, base, binds_now, part, some, verb
from mpigraft.graft.check.languages import CXX_SYMBOL, FORTRAN_SYMBOL
from mpigraft.graft.injection.contents import node_numbers

if TYPE_CHECKING:
    from mpigraft.binary import UnboundSymbol, UnmetVersion
    from mpigraft.graft.injection.simulation import SimulatedProgram

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


def symbols(pair: CheckInput) -> CheckResult:
    fine = f"{_counted(pair)} of MPI are present"
    return part("symbols", fine, _symbols(pair))


def _counted(pair: CheckInput) -> str:
    names: set[str] = set()
    for simulated in pair.contents.programs:
        for user in pair.users(simulated):
            names.update(s.name for s in user.imported if MPI.match(s.name))
    return f"all {len(names)} symbols" if names else "all symbols"


def _symbols(pair: CheckInput) -> Iterator[Finding]:
    """Yield one finding for each set of symbols that are missing together."""
    sets: dict[tuple[bool, tuple[str, ...]], list[tuple[SimulatedProgram, UnboundSymbol]]] = {}
    for simulated in pair.contents.programs:
        # Symbols that the guest's own MPI misses do not count: the two MPIs do not mix anyway.
        own_mpi = {r.elf.name for r in pair.kept(simulated) if r.elf} if pair.whole else set()
        unbound = [
            u for u in simulated.unbound if u.by not in own_mpi and not _of_binding(u.symbol)
        ]
        for of_host in (False, True):
            missing = [u for u in unbound if pair.ours(u.by) is of_host]
            if missing:
                key = of_host, tuple(sorted({u.symbol for u in missing}))
                sets.setdefault(key, []).extend((simulated, u) for u in missing)
    for (of_host, names), hits in sets.items():
        yield _guest_symbols(pair, names, hits) if not of_host else _host_symbols(names, hits)


def _of_binding(symbol: str) -> bool:
    return CXX_SYMBOL.match(symbol) is not None or FORTRAN_SYMBOL.match(symbol) is not None


def _guest_symbols(
    pair: CheckInput, names: tuple[str, ...], hits: list[tuple[SimulatedProgram, UnboundSymbol]]
) -> Finding:
    """Report symbols that the guest's files need."""
    users = list(dict.fromkeys(u.by for _, u in hits))
    number, of_mpi = counted(len(names), "symbol"), any(map(MPI.match, names))
    at_once = any(_binds_now(pair, simulated, u.by) for simulated, u in hits)
    when = (
        "the program fails at its start"
        if at_once
        else "the program starts, and fails at the first call: undefined symbol, exit 127"
    )
    who, lines = some(map(base, users)), _lines_of(names, users)
    if not of_mpi:
        return Finding.of(
            "symbols", users=who, symbols=number, names=some(names), when=when, evidence=lines
        )
    return Finding.of(
        "mpi-symbols",
        users=who,
        symbols=number,
        mpi=pair.mpi,
        names=some(names),
        when=when,
        advice=_fix_for_symbols(pair, names),
        evidence=lines,
    )


def _lines_of(names: Iterable[str], users: Iterable[str]) -> tuple[str, ...]:
    return (f"missing: {' '.join(names)}", *(f"needed by {by}" for by in users))


def _fix_for_symbols(pair: CheckInput, names: Iterable[str]) -> str:
    standard = max((since for since, p in SINCE if any(map(p.match, names))), default="")
    newer = f" (the newest came with MPI {standard})" if standard else ""
    return (
        f"use a host MPI that has them{newer}; or build the program with an MPI no newer than "
        f"{pair.mpi}"
    )


def _binds_now(pair: CheckInput, simulated: SimulatedProgram, by: str) -> bool:
    """Return whether the loader binds all functions of a file at its start."""
    facts = pair.elf(simulated.program if by == simulated.program else by)
    return pair.binds_now or (facts is not None and binds_now(facts))


def _host_symbols(
    names: tuple[str, ...], hits: list[tuple[SimulatedProgram, UnboundSymbol]]
) -> Finding:
    """Report symbols that the host's libraries find on the host and not in the guest."""
    by = list(dict.fromkeys(base(u.by) for _, u in hits))
    return Finding.of(
        "host-symbols",
        libraries=some(by),
        symbols=counted(len(names), "symbol"),
        names=some(names),
        evidence=(f"missing: {' '.join(names)}", *(f"needed by the host's {name}" for name in by)),
    )


# ------------------------------------------------------------------ version nodes


def versions(pair: CheckInput) -> CheckResult:
    glibc = f"glibc {pair.guest.label.glibc}" if pair.guest.label.glibc else "no glibc"
    fine = f"the guest's {glibc} has what the host's libraries need"
    if pair.contents.glibc:
        fine = f"the host's glibc {pair.abi.glibc} goes in: the guest's {glibc} is too old"
    return part("versions", fine.replace("  ", " "), _versions(pair))


def _versions(pair: CheckInput) -> Iterator[Finding]:
    if pair.contents.glibc:
        yield Finding.of(
            "glibc-replaced",
            glibc=pair.abi.glibc,
            guest_glibc=pair.guest.label.glibc,
            mpi=pair.mpi,
            libraries=some(pair.contents.glibc_lacking),
            evidence=pair.contents.glibc_lacking,
        )
    sets: dict[tuple[str, str], set[UnmetVersion]] = {}
    for simulated in pair.contents.programs:
        for need in (*simulated.unmet, *simulated.broken):  # neither starts
            sets.setdefault((need.library, _kind(need.node)), set()).add(need)
    libc = {need for (_, kind), unmet in sets.items() if kind == "GLIBC" for need in unmet}
    if libc:
        yield _glibc(pair, libc)
    for (library, kind), unmet in sets.items():
        if kind != "GLIBC":
            yield _unmet(pair, library, kind, unmet)


def _kind(node: str) -> str:
    """Give GLIBCXX of GLIBCXX_3.4.30; GLIBC of GLIBC_PRIVATE and GLIBC_ABI_DT_RELR too."""
    return re.sub(r"_([\d.]+|ABI_\w+|PRIVATE)$", "", node)


def _lines(unmet: Iterable[UnmetVersion]) -> tuple[str, ...]:
    rows = sorted(unmet, key=lambda u: (node_numbers(u.node), u.library, u.by), reverse=True)
    return tuple(f"{u.by} needs {u.node} of {u.library}; {u.provider} lacks it" for u in rows)


def _glibc(pair: CheckInput, unmet: set[UnmetVersion]) -> Finding:
    node = max((u.node for u in unmet), key=node_numbers)
    users = sorted({base(u.by) for u in unmet})
    names, need = some(users), verb(users, "needs", "need")
    if not node_numbers(node):  # GLIBC_PRIVATE: what the parts of one glibc share
        return Finding.of(
            "glibc-mixed",
            names=names,
            need=need,
            node=node,
            glibc=pair.abi.glibc or "whose version is unknown",
            evidence=_lines(unmet),
        )
    guest_kept = bool(pair.contents.glibc_lacking) and not pair.contents.glibc
    release = node.partition("_")[2]
    return Finding.of(
        "glibc-old",
        names=names,
        need=need,
        node=node,
        glibc=pair.guest.label.glibc,
        first="leave --no-glibc out: the host's glibc then goes in too; or " if guest_kept else "",
        release=release,
        evidence=_lines(unmet),
    )


def _unmet(pair: CheckInput, library: str, kind: str, unmet: set[UnmetVersion]) -> Finding:
    node = max((u.node for u in unmet), key=node_numbers)
    users = sorted({base(u.by) for u in unmet})
    names, need = some(users), verb(users, "needs", "need")
    ours = any(pair.ours(u.provider) for u in unmet)
    side = f"{pair.mpi}'s" if ours else "the guest's"
    return Finding.of(
        "version-unmet",
        names=names,
        need=need,
        node=node,
        library=library,
        side=side,
        advice=_fix_for_version(pair, library, kind, ours=ours),
        evidence=_lines(unmet),
    )


def _fix_for_version(pair: CheckInput, library: str, kind: str, *, ours: bool) -> str:
    if pair.contents.replace is Replace.LIBFABRIC:
        return (
            f"use a host MPI whose {library} is as new as the guest's (`mpigraft discover --full` "
            "shows versions); or replace the guest's MPI: --replace mpi"
        )
    if ours:
        return f"use a host MPI whose {library} is newer"
    if kind in ("GLIBCXX", "CXXABI", "GCC"):
        return f"install a newer {library} in the image (its compiler's run-time library)"
    return f"install a newer {library} in the image"
