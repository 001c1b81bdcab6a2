"""What a machine has, as text and as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from mpigraft.core.model import Level
from mpigraft.core.numbers import counted
from mpigraft.core.text import columns, labelled, printable
from mpigraft.report.screen import Screen, finding_lines, shorten
from mpigraft.report.table import Column, Table

if TYPE_CHECKING:
    from mpigraft.core.model import Machine, MpiAbi, MpiInstall, NetLibrary
    from mpigraft.core.serialize import Keys

    AbiKeys = Annotated[dict[str, Any], MpiAbi, Keys(mpi=object)]
    MpiKeys = Annotated[dict[str, Any], MpiInstall, Keys(abi_facts=NotRequired[AbiKeys | None])]
    MachineKeys = Annotated[dict[str, Any], Machine, Keys(mpis=list[MpiKeys])]

COLUMN = 13  # width of the first column
INTERNAL = ("ofi_hook_", "off_coll", "ofi_mrail", "ofi_rxd")  # providers that nobody asks for


def machine_document(machine: Machine, *, abi: bool = False) -> MachineKeys:
    """Make the document of schemas/discover.json."""
    from mpigraft.core.serialize import plain

    keys: dict[str, Any] = plain(machine, shown=True)
    if abi:
        for row, mpi in zip(keys["mpis"], machine.mpis, strict=True):
            row["abi_facts"] = _abi_facts(mpi)
    return keys


def _abi_facts(mpi: MpiInstall) -> AbiKeys | None:
    """Read what `check --machine` needs elsewhere; None for an MPI that is not usable, or that went
    away since it was probed."""
    from mpigraft.core.errors import MissingError
    from mpigraft.core.serialize import plain
    from mpigraft.graft import read_abi

    try:
        facts: dict[str, Any] = plain(read_abi(mpi))
    except MissingError:
        return None
    return facts


HEADS = ("MPI", "ABI", "transports", "launcher", "found")
SOURCE = 12  # columns that say where an MPI is from, at least


def machine_screen(machine: Machine) -> Screen:
    """Describe the machine in one screen: a line for each MPI, and counts of all else."""
    width = columns()
    mpis = sorted(machine.mpis, key=lambda mpi: not mpi.usable)
    usable = sum(mpi.usable for mpi in mpis)
    name = printable(machine.hostname)
    answer = [f"{counted(usable, 'MPI')} can be used on {name}, and {len(mpis) - usable} cannot."]
    if usable == len(mpis):
        answer = [f"{counted(usable, 'MPI')} can be used on {name}."]
    rest = ["--full: each transport or why it cannot run; networks, GPUs, launchers"]
    if not mpis:
        answer = [f"No MPI was found on {name}."]
        rest = ["`mpigraft get openmpi` fetches one; --full: networks, GPUs, launchers"]
    up = Counter(one.kind for one in machine.fabrics if one.state == "up")
    up.pop("loopback", None)
    networks = ", ".join(f"{count} {printable(kind)}" for kind, count in up.items()) or "none"
    facts = [printable(machine.os), counted(machine.cpu.cores, "core")]
    facts += [counted(len(machine.gpus), "GPU")] if machine.gpus else ["no GPU"]
    answer += [f"{', '.join(facts)}. Network interfaces that are up: {networks}."]
    broken = [f"{printable(m.id)}: {printable(m.reason)}" for m in mpis if not m.usable]
    return Screen(
        answer,
        [*_mpi_table(mpis, width).styled()] if mpis else (),
        [
            *((Level.ERROR, shorten(f"cannot be used: {text}", 2 * width)) for text in broken),
            *finding_lines(machine.findings, width),
        ],
        rest,
    )


def _mpi_table(mpis: list[MpiInstall], width: int) -> Table:
    """Leave the launchers out where there is no room, and cut what is found last."""
    rows = [tuple(map(printable, _mpi_row(mpi))) for mpi in mpis]
    for names in (HEADS, (*HEADS[:3], HEADS[4])):
        places = [HEADS.index(name) for name in names]
        heads = tuple(Column(name, right=name == "transports") for name in names)
        cells = [tuple(row[place] for place in places) for row in rows]
        others = Table("", heads[:-1], tuple(row[:-1] for row in cells))
        room = width - max(map(len, others.lines())) - others.before
        if room >= SOURCE:
            break
    return Table("", heads, tuple((*row[:-1], shorten(row[-1], room)) for row in cells))


def _mpi_row(mpi: MpiInstall) -> tuple[str, ...]:
    """Give what a line has of an MPI; why transports cannot run is counted."""
    found = next(iter(mpi.found), "").partition(": ")[0]
    if not mpi.usable:
        return mpi.id, "-", "-", "-", found
    run = sum(transport.usable for transport in mpi.transports)
    launcher = f"{mpi.launcher_kind} {mpi.launcher_version}".strip()
    return mpi.id, mpi.abi, f"{run} of {len(mpi.transports)}", launcher, found


def machine_lines(machine: Machine, width: int) -> Iterator[str]:
    """Describe the machine in lines of at most `width` columns, MPIs last: they matter most."""
    for label, text in _hardware(machine):
        yield from labelled(label, text, width, COLUMN)
    for finding in machine.findings:
        yield from labelled(finding.level, finding.message, width, COLUMN)
    if not machine.mpis:
        yield ""
        yield from labelled("MPIs", "none found; `mpigraft get openmpi` fetches one", width, COLUMN)
    for mpi in machine.mpis:
        yield ""
        yield mpi.id if mpi.usable else f"{mpi.id}  UNUSABLE"
        for label, text in _mpi(mpi):
            yield from labelled(f"  {label}", text, width, COLUMN)


def _hardware(machine: Machine) -> Iterator[tuple[str, str]]:
    cpu = machine.cpu
    yield "host", f"{machine.hostname}: {machine.os}, Linux {machine.kernel}"
    counts = ", ".join(
        (
            counted(cpu.cores, "core"),
            counted(cpu.threads, "thread"),
            counted(cpu.sockets, "socket"),
            counted(len(cpu.numa), "NUMA domain"),
            counted(len(cpu.l3), "L3 group"),
        )
    )
    memory = f"{machine.memory_mib / 1024:.1f} GiB"
    if machine.memory_read_mib_s:
        memory += f", read at {machine.memory_read_mib_s / 1024:.0f} GiB/s by a NUMA domain"
    yield "cpu", f"{cpu.model} ({cpu.architecture}): {counts}; {memory}"
    for device in machine.fabrics:
        yield device.name, ", ".join((device.kind, device.state, *_facts(device.details)))
    copies = (f"{c.name}: {'usable' if c.usable else c.reason}" for c in machine.single_copy)
    yield "single copy", "; ".join(copies)
    for gpu in machine.gpus:
        words = (gpu.name, f"{gpu.memory_mib} MiB", *_facts(gpu.details))
        yield f"gpu {gpu.index}", ", ".join(words)
    if scheduler := machine.scheduler:
        where = f"in job {scheduler.job}" if scheduler.in_allocation else "not in an allocation"
        yield "scheduler", f"{scheduler.name} {scheduler.version}, {where}"
    for launcher in machine.launchers:
        offers = ", ".join(launcher.pmi_offered)
        text = f"{launcher.path} {launcher.version or launcher.reason}"
        text += f"; offers PMI by {offers} (not probed)" if offers else ""
        yield launcher.name, text + (f"; {launcher.reason}" if offers and launcher.reason else "")


def _facts(details: tuple[tuple[str, str], ...]) -> list[str]:
    """`driver cxi_ss1`, and `virtual` where the value is a plain yes."""
    return [name if value == "yes" else f"{name} {value}" for name, value in details]


def _mpi(mpi: MpiInstall) -> Iterator[tuple[str, str]]:
    for line in mpi.found:
        yield "found", line
    for what, value in mpi.provenance:
        word, _, of = what.partition(" of ")
        yield word, f"{of}: {value}" if of else value
    if not mpi.usable:
        yield "reason", mpi.reason
        return
    yield "abi", f"{mpi.abi}: {mpi.soname}"
    yield "languages", "; ".join(_languages(mpi))
    yield "libmpi", _short(mpi.libmpi, mpi)
    if mpi.launcher:
        yield "launcher", f"{_short(mpi.launcher, mpi)}, {mpi.launcher_kind} {mpi.launcher_version}"
    else:
        yield "launcher", f"none of its own: {mpi.launcher_kind}"
    if mpi.wrappers:
        yield "wrappers", " ".join(path.name for _, path in mpi.wrappers)
    if mpi.device:
        yield "device", mpi.device
    for framework in ("pml", "mtl", "btl"):
        if names := mpi.components_of(framework):
            yield framework, " ".join(names)
    for library in (mpi.libfabric, mpi.ucx):
        if library is not None:
            yield library.name, _library(library)
    yield from _transports(mpi)


def _languages(mpi: MpiInstall) -> Iterator[str]:
    """`C`, `Fortran mpif.h, use mpi (gfortran)`, `C++`: with the compilers whose modules it has."""
    yield "C"
    rows = [row for row in mpi.interfaces if row.name != "C++"]
    names = (f"{r.name} ({', '.join(r.compilers)})" if r.compilers else r.name for r in rows)
    yield f"Fortran: {', '.join(names)}" if rows else "no Fortran"
    yield "C++ bindings" if len(rows) < len(mpi.interfaces) else "no C++ bindings"


def _transports(mpi: MpiInstall) -> Iterator[tuple[str, str]]:
    """Yield those that run here in one line, the others by why they do not."""
    if usable := [t.name for t in mpi.transports if t.usable]:
        yield "transports", " ".join(usable)
    missing: dict[str, list[str]] = {}
    for transport in mpi.transports:
        if not transport.usable:
            missing.setdefault(transport.reason, []).append(transport.name)
    for reason, names in missing.items():
        yield "not here", f"{', '.join(names)}: {reason}"


def _short(path: Path | None, mpi: MpiInstall) -> str:
    """Write a path below the MPI's own prefix, which a `found` line has named; others in full."""
    if path and len(mpi.prefix.parts) > 2 and path.is_relative_to(mpi.prefix):
        return str(path.relative_to(mpi.prefix))
    return str(path)


def _library(library: NetLibrary) -> str:
    shown = [name for name in library.offers if not name.startswith(INTERNAL)]
    offers = " ".join(shown) if shown else library.reason
    return f"{library.version or 'unknown version'}: {offers}"
