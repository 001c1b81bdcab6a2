"""What is here: MPIs, network, GPUs, scheduler, CPU.

Every foreign library and tool is started in a child with a time limit. What is broken is a row
that says why, or a finding; nothing that this machine has ends the command.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from mpigraft.knowledge.loader import Facts, offers
from mpigraft.model import Finding, Level, Machine, MpiInstall
from mpigraft.sources import SOURCES, cpu, fabrics, gpus, schedulers
from mpigraft.sources.candidate import Candidate, Here
from mpigraft.sources.install import describe

WORKERS = 4  # probes wait for the loader and the disk more than for a core


def machine(here: Here | None = None) -> Machine:
    """All that this machine has."""
    place = here or Here()
    devices = fabrics.devices(place)
    with ThreadPoolExecutor(WORKERS) as pool:
        found_gpus = pool.submit(gpus.gpus, place)
        found_launchers = pool.submit(schedulers.launchers, place)
        found_scheduler = pool.submit(schedulers.scheduler, place)
        copies = pool.submit(fabrics.single_copy, place)
        up = tuple(d.name for d in devices if d.state == "up")
        installed, findings = mpis(place, up)
        found = Machine(
            hostname=platform.node(),
            os=cpu.os_name(place),
            kernel=platform.release(),
            cpu=cpu.cpu(place),
            memory_mib=cpu.memory_mib(place),
            fabrics=devices,
            single_copy=copies.result(),
            gpus=found_gpus.result(),
            launchers=found_launchers.result(),
            scheduler=found_scheduler.result(),
            mpis=installed,
            findings=findings,
        )
    facts = Facts.of(found)
    return replace(found, mpis=tuple(replace(m, transports=offers(m, facts)) for m in installed))


def mpis(
    here: Here | None = None, devices: Sequence[str] = ()
) -> tuple[tuple[MpiInstall, ...], tuple[Finding, ...]]:
    """Every MPI that a source finds, each once, and what was found but could be no row.

    The same MPI found twice, by the real path of its libmpi, is one row with two `found` lines.
    """
    place = here or Here()
    candidates: list[Candidate] = []
    findings: list[Finding] = []
    for name, find in SOURCES.items():
        try:
            candidates += find(place)
        except OSError as error:
            findings.append(Finding(Level.WARNING, f"{name}-unreadable", str(error)))
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(_identity(candidate), []).append(candidate)
    with ThreadPoolExecutor(WORKERS) as pool:
        rows = pool.map(lambda group: _row(_merged(group), place, devices), groups.values())
        described = list(zip(groups.values(), rows, strict=True))
    found = []
    for group, row in described:
        if isinstance(row, str):
            findings.append(Finding(Level.WARNING, "unknown-mpi", row))
        else:
            found.append(replace(row, found=tuple(dict.fromkeys(c.found for c in group))))
    return _named(found), tuple(findings)


def _row(candidate: Candidate, here: Here, devices: Sequence[str]) -> MpiInstall | str:
    try:
        return describe(candidate, here, devices)
    except OSError as error:  # a place that went away, or a filesystem that fails under it
        return f"{candidate.found}: {error}"


def _merged(group: Sequence[Candidate]) -> Candidate:
    """The first of a group, with the best that the others know: a module's environment over the
    user's own, and a family over none."""
    first = group[0]
    ranked = sorted(group, key=lambda c: c.source not in {"module", "cray"})
    return replace(
        first,
        environment=next((c.environment for c in ranked if c.environment), ()),
        family=next((c.family for c in group if c.family), None),
        version=next((c.version for c in group if c.version), ""),
        bins=tuple(dict.fromkeys(folder for c in group for folder in c.bins)),
        suffix=next((c.suffix for c in group if c.suffix), ""),
    )


def _identity(candidate: Candidate) -> str:
    if candidate.libmpi is None:
        return f"prefix {os.path.realpath(candidate.prefix)}"
    return os.path.realpath(candidate.libmpi)


def _named(found: Sequence[MpiInstall]) -> tuple[MpiInstall, ...]:
    """Rows with ids that are unique: family@version, then +source, then a number."""
    clashes = Counter(m.id for m in found)
    used: Counter[str] = Counter()
    named = []
    for mpi in found:
        label = mpi.id if clashes[mpi.id] == 1 else f"{mpi.id}+{mpi.source}"
        used[label] += 1
        named.append(replace(mpi, id=label if used[label] == 1 else f"{label}-{used[label]}"))
    return tuple(named)
