"""Discover this machine: MPIs, network, GPUs, scheduler, CPU.

Every foreign library and tool is started in a child with a time limit. What is broken becomes a
row that says why, or a finding; it never ends the command.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from mpigraft.core.cache import file_digest
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Finding, Machine, MpiInstall
from mpigraft.discovery.known import remember_mpis
from mpigraft.discovery.sources import cpu, fabrics, given, gpus, schedulers
from mpigraft.discovery.sources.candidate import Candidate, Host
from mpigraft.discovery.sources.install import describe
from mpigraft.discovery.sources.provenance import provenance_of
from mpigraft.discovery.sources.registry import SOURCES
from mpigraft.knowledge import Facts, transport_offers

WORKERS = 4  # probes wait for the loader and the disk more than for a core


def discover_machine(host: Host | None = None, places: Sequence[str] = ()) -> Machine:
    """Describe all that this machine has, and the MPIs at these paths. Raises UsageError for a path
    that is no MPI's."""
    host = host or Host()
    devices = fabrics.devices(host)
    with ThreadPoolExecutor(WORKERS) as pool:
        gpu_rows = pool.submit(gpus.gpus, host)
        launcher_rows = pool.submit(schedulers.launchers, host)
        active_scheduler = pool.submit(schedulers.scheduler, host)
        copies = pool.submit(fabrics.single_copy, host)
        up = tuple(d.name for d in devices if d.state == "up")
        installed, findings = discover_mpis(host, up, places)
        own = cpu.cpu(host)
        machine = Machine(
            hostname=platform.node(),
            os=cpu.os_name(host),
            kernel=platform.release(),
            cpu=own,
            memory_mib=cpu.memory_mib(host),
            fabrics=devices,
            single_copy=copies.result(),
            gpus=gpu_rows.result(),
            launchers=launcher_rows.result(),
            scheduler=active_scheduler.result(),
            mpis=installed,
            findings=(*schedulers.step_findings(host, own), *findings),
            memory_read_mib_s=cpu.memory_read_mib_s(host),
        )
    facts = Facts.of(machine)
    remember_mpis(machine.hostname, [mpi.id for mpi in installed if mpi.usable])
    return replace(
        machine, mpis=tuple(replace(m, transports=transport_offers(m, facts)) for m in installed)
    )


def with_places(machine: Machine, specs: Sequence[str], host: Host | None = None) -> Machine:
    """Give the machine with the MPIs that `--mpi` words name by a path, as those of a stored
    campaign may. Raises as `discover_machine` does."""
    places = tuple(dict.fromkeys(filter(given.is_place, specs)))
    known = all(any(given.is_at(mpi, place) for mpi in machine.mpis) for place in places)
    return machine if known else discover_machine(host, places)


def discover_mpis(
    host: Host | None = None, devices: Sequence[str] = (), places: Sequence[str] = ()
) -> tuple[tuple[MpiInstall, ...], tuple[Finding, ...]]:
    """Find every MPI of every source, each once, and report what could be no row.

    An MPI that two sources find, by the real path of its libmpi, is one row with two `found` lines.
    """
    host = host or Host()
    candidates: list[Candidate] = []
    findings: list[Finding] = []
    for name, find in SOURCES.items():
        try:
            candidates += find(host)
        except OSError as error:
            findings.append(Finding.of("source-unreadable", name=name, error=error))
    candidates += [given.candidate_at(host, place) for place in places]
    groups: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(_identity(candidate), []).append(candidate)
    with ThreadPoolExecutor(WORKERS) as pool:
        rows = pool.map(lambda group: _row(_merged(group), host, devices), groups.values())
        described = list(zip(groups.values(), rows, strict=True))
    mpis = []
    for group, row in described:
        if isinstance(row, str) and group[0].source == given.SOURCE:
            raise UsageError.of("mpi-path-none", path=group[0].prefix, reason=row)
        if isinstance(row, str):
            findings.append(Finding.of("unknown-mpi", description=row))
        else:
            origins = tuple(dict.fromkeys(c.origin for c in group))
            mpis.append(replace(row, found=origins, provenance=provenance_of(row.prefix)))
    return _with_unique_ids(mpis), tuple(findings)


def _row(candidate: Candidate, host: Host, devices: Sequence[str]) -> MpiInstall | str:
    try:
        return describe(candidate, host, devices)
    except OSError as error:  # the place was removed, or its file system failed
        return f"{candidate.origin}: {error}"


def _merged(group: Sequence[Candidate]) -> Candidate:
    """Merge a group into its first candidate: a module's environment wins over the user's own, and
    a family over none."""
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


def _content(libmpi: Path) -> str:
    try:
        return file_digest(libmpi)[:6]
    except OSError:
        return given.SOURCE


def _with_unique_ids(mpis: Sequence[MpiInstall]) -> tuple[MpiInstall, ...]:
    """Give each row a unique id: family@version, then +source, then a number. One that only a path
    led to always has an id by content."""
    clashes = Counter(m.id for m in mpis if m.source != given.SOURCE)
    used: Counter[str] = Counter()
    named = []
    for mpi in mpis:
        label = mpi.id if clashes[mpi.id] == 1 else f"{mpi.id}+{mpi.source}"
        if mpi.source == given.SOURCE and mpi.libmpi:
            label = f"{mpi.id}+{_content(mpi.libmpi)}"
        used[label] += 1
        named.append(replace(mpi, id=label if used[label] == 1 else f"{label}-{used[label]}"))
    return tuple(named)
