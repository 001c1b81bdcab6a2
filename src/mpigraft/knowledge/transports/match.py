"""Which transports an MPI has on this machine.

Facts live in transports.toml and families.toml; this file only matches them. Exactly one row
matches a request; none, or a need that is not met, is an error that says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    EnvRow,
    Family,
    Machine,
    MpiInstall,
    Scope,
    Transport,
    TransportOffer,
)
from mpigraft.knowledge.issues import known_issues
from mpigraft.knowledge.reader import load_document
from mpigraft.knowledge.transports.fabrics import UP, devices_by_fabric, fabrics
from mpigraft.knowledge.transports.rows import (
    GPUS,
    TransportRow,
    When,
    read_tells,
    read_transports,
)
from mpigraft.knowledge.versions import version_numbers

LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the templates and conditions of the rows may use of a machine."""

    interface: str  # of the kernel, for tcp: first Ethernet that is up, else lo
    devices: tuple[tuple[str, tuple[str, ...]], ...] = ()  # up, by fabric: cxi: cxi0, cxi1
    nodes: int = 1
    gpus: tuple[str, ...] = ()  # vendors
    copies: tuple[tuple[str, str], ...] = ()  # means of single copies, and why not; empty: usable

    @classmethod
    def of(cls, machine: Machine, nodes: int = 1) -> Facts:
        """Return the facts of a machine that `discover` described."""
        up = [device for device in machine.fabrics if device.state.lower() in UP]
        ethernet = [device.name for device in up if device.kind == "ethernet"]
        return cls(
            interface=ethernet[0] if ethernet else LOOPBACK,
            devices=tuple(devices_by_fabric(up).items()),
            nodes=nodes,
            gpus=tuple(dict.fromkeys(gpu.vendor for gpu in machine.gpus)),
            copies=tuple((c.name, "" if c.usable else c.reason) for c in machine.single_copy),
        )

    @property
    def templates(self) -> dict[str, str]:
        """The facts that templates may name (rows.FACTS). One LNX link per NIC, so that a rank
        takes the near one: a single link over all of them spreads messages over far NICs."""
        links = "|".join(f"shm+cxi:{nic}" for nic in dict(self.devices).get("cxi", ()))
        return {"interface": self.interface, "lnx_cxi_links": links}

    @property
    def flags(self) -> dict[str, bool]:
        """The conditions that `when` may name (rows.known_flags)."""
        return {fabric.id: fabric.id in dict(self.devices) for fabric in fabrics()} | {
            "loopback": self.interface == LOOPBACK,
            "xpmem": dict(self.copies).get("xpmem", "not looked for") == "",
            **{vendor: vendor in self.gpus for vendor in GPUS},
        }


@cache
def transport_rows() -> tuple[TransportRow, ...]:
    """Return every row of transports.toml, read and checked once."""
    tells = read_tells(load_document("families.toml"))
    rows = read_transports(load_document("transports.toml"), tells)
    known = {issue.id for issue in known_issues()}
    for row in rows:
        for issue in row.issues:
            if issue not in known:
                raise UsageError.of("transports-issue-unknown", id=row.id, issue=issue)
    return rows


def transport_names(family: Family) -> tuple[str, ...]:
    """Return the public names of a family's transports, in the order of the file."""
    return tuple(dict.fromkeys(row.name for row in transport_rows() if row.family is family))


def transport_offers(mpi: MpiInstall, facts: Facts) -> tuple[TransportOffer, ...]:
    """Return every transport of the family, with whether it can run here and why not."""
    return tuple(_offer(name, mpi, facts) for name in transport_names(mpi.family))


def _offer(name: str, mpi: MpiInstall, facts: Facts) -> TransportOffer:
    row, reasons = _match(name, mpi, facts)
    if row is None:
        return TransportOffer(name, "", usable=False, reason=reasons)
    unmet = _unmet(row, mpi, facts) or _unknown(row, mpi) or row.broken
    return TransportOffer(name, row.id, usable=not unmet, reason=unmet, variant=row.variant)


def resolve_transport(name: str, mpi: MpiInstall, facts: Facts) -> Transport:
    """Resolve the transport of that name for this MPI on this machine.

    Raises UsageError for a name that the family does not have, MissingError when no row is for this
    MPI and machine or when one lacks what it needs. An unknown fact, and a row known to be broken,
    do not stop a transport that is named: the probe shows whether it works.
    """
    if name not in transport_names(mpi.family):
        known = transport_names(mpi.family)
        raise UsageError.unknown("transport-unknown", name, known, family=mpi.family)
    row = matching_row(name, mpi, facts)
    if unmet := _unmet(row, mpi, facts):
        raise MissingError.of("transport-unusable", id=mpi.id, name=name, unmet=unmet)
    return transport(row, facts)


def transport(row: TransportRow, facts: Facts) -> Transport:
    """Fill in the templates of a row."""
    fill = facts.templates
    env = [
        EnvRow(key, value.format_map(fill), scope, "transport")
        for scope, pairs in ((Scope.LAUNCHER, row.launcher), (Scope.RANK, row.env))
        for key, value in pairs
    ]
    return Transport(
        name=row.name,
        row=row.id,
        env=tuple(env),
        template=(*row.launcher, *row.env),
        probe_env=tuple(EnvRow(k, v, Scope.RANK, "probe") for k, v in row.probe),
        signs=row.signs,
        peers=row.peers,
        issues=row.issues,
        sources=row.sources,
    )


def matching_row(name: str, mpi: MpiInstall, facts: Facts) -> TransportRow:
    """Find the row that applies, even if this machine lacks what it needs. Never two, since
    read_transports refuses rows that overlap. Raises MissingError where none does."""
    row, reasons = _match(name, mpi, facts)
    if row is None:
        raise MissingError.of("transport-unknown-here", name=name, id=mpi.id, reasons=reasons)
    return row


def _match(name: str, mpi: MpiInstall, facts: Facts) -> tuple[TransportRow | None, str]:
    """Return the row of a name that applies; else why none does."""
    reasons: dict[str, None] = {}
    for row in transport_rows():
        if (row.family, row.name) == (mpi.family, name):
            if not (reason := why_excluded(row.when, mpi, facts)):
                return row, ""
            reasons[reason] = None
    return None, "; or ".join(reasons)


def why_excluded(when: When, mpi: MpiInstall, facts: Facts) -> str:
    """Return why a row is not for this MPI on this machine; empty if it is."""
    if when.mpi is not None and version_numbers(mpi.version) not in when.mpi:
        return f"it is for {mpi.family} {when.mpi}, this is {mpi.version}"
    if when.libfabric is not None:
        library = mpi.libfabric
        if library is None or library.version is None:
            return "the version of its libfabric is not known"
        if version_numbers(library.version) not in when.libfabric:
            return f"it is for libfabric {when.libfabric}, this is {library.version}"
    if when.ucx is not None:
        if mpi.ucx is None or mpi.ucx.version is None:
            return "the version of its UCX is not known"
        if version_numbers(mpi.ucx.version) not in when.ucx:
            return f"it is for UCX {when.ucx}, this is {mpi.ucx.version}"
    for name, wanted in when.flags:
        if facts.flags[name] is not wanted:
            return f"it is for machines {'with' if wanted else 'without'} {name}"
    return ""


def _unmet(row: TransportRow, mpi: MpiInstall, facts: Facts) -> str:
    """Return the first need that is known not to be met; empty if there is none."""
    for component in row.needs.components:
        framework, _, name = component.partition(":")
        have = mpi.components_of(framework)
        if have and name not in have:
            return f"it has no {framework} component {name}"
    if row.needs.netmod and mpi.device and row.needs.netmod not in re.split("[:,]", mpi.device):
        load = f"; load {','.join(row.modules)} (--modules)" if row.modules else ""
        return f"its device is {mpi.device}, without {row.needs.netmod}{load}"
    for fabric in fabrics():
        if fabric.id == row.needs.fabric and not facts.flags[fabric.id]:
            return f"no {fabric.device.partition(' ')[2]} is up here"
    if row.needs.gpu and row.needs.gpu not in facts.gpus:
        return f"no {row.needs.gpu} GPU is here"
    if why := dict(facts.copies).get(row.needs.copy, ""):
        return why
    have = _layers(mpi.libfabric.offers if mpi.libfabric else ())
    for provider in _layers(row.needs.providers):
        if have and provider not in have:
            return f"its libfabric has no provider {provider}"
    have = mpi.ucx.offers if mpi.ucx else ()
    for transport in row.needs.tls:
        if have and not any(o.startswith(transport) for o in have):
            return f"its UCX has no transport {transport}"
    return ""


def _layers(providers: Iterable[str]) -> tuple[str, ...]:
    """Split providers one by one: verbs;ofi_rxm is two."""
    return tuple(dict.fromkeys(layer for name in providers for layer in name.split(";")))


def _unknown(row: TransportRow, mpi: MpiInstall) -> str:
    """Return the first need that is not known; what is not known to work is not offered."""
    for component in row.needs.components:
        if not mpi.components_of(component.partition(":")[0]):
            return f"its {component.partition(':')[0]} components are not known"
    if row.needs.netmod and not mpi.device:
        return "its ch4 device is not known"
    library = mpi.libfabric
    if row.needs.providers and (library is None or not library.offers):
        why = library.reason if library else ""
        return f"the providers of its libfabric are not known{': ' if why else ''}{why}"
    if row.needs.tls and (mpi.ucx is None or not mpi.ucx.offers):
        return "the transports of its UCX are not known"
    return ""
