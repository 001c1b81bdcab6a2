"""Which transports an MPI has on this machine, and what is known to go wrong with them.

Facts live in transports.toml, families.toml and issues.toml; this file only matches them. Exactly
one row answers a wish; none, or a need that is not met, is an error that says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from mpigraft.errors import MissingError, UsageError
from mpigraft.knowledge.rows import Row, When, read_rows, read_tells
from mpigraft.knowledge.table import Document, Table, document, version
from mpigraft.model import (
    EnvRow,
    Family,
    KnownIssue,
    Machine,
    MpiInstall,
    NetDevice,
    Scope,
    Transport,
    TransportOffer,
)

LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a machine says to the templates and conditions of the rows."""

    interface: str  # of the kernel, for tcp: first Ethernet that is up, else lo
    cxi: tuple[str, ...]  # Slingshot NICs: cxi0, cxi1
    infiniband: tuple[str, ...]  # whatever speaks verbs: mlx5_0, irdma0
    nodes: int = 1
    efa: tuple[str, ...] = ()  # rdmap0s31: of that class too, but not of those verbs
    omnipath: tuple[str, ...] = ()  # hfi1_0
    gpus: tuple[str, ...] = ()  # vendors
    copies: tuple[tuple[str, str], ...] = ()  # means of single copies, and why not; empty: usable

    @classmethod
    def of(cls, machine: Machine, nodes: int = 1) -> Facts:
        """The facts of a machine that `discover` saw."""

        here = [device for device in machine.fabrics if _is_up(device)]

        def up(*kinds: str) -> tuple[str, ...]:
            return tuple(device.name for device in here if _kind(device) in kinds)

        ethernet = up("ethernet")
        return cls(
            interface=ethernet[0] if ethernet else LOOPBACK,
            cxi=up("cxi"),
            infiniband=up("infiniband"),
            nodes=nodes,
            efa=up("efa"),
            omnipath=up("omnipath"),
            gpus=tuple(dict.fromkeys(gpu.vendor for gpu in machine.gpus)),
            copies=tuple((c.name, "" if c.usable else c.reason) for c in machine.single_copy),
        )

    @property
    def templates(self) -> dict[str, str]:
        """The facts that templates may name (rows.FACTS). One LNX link per NIC, so that a rank
        takes the near one: a single link over all of them spreads messages over far NICs."""
        links = "|".join(f"shm+cxi:{nic}" for nic in self.cxi)
        return {"interface": self.interface, "lnx_cxi_links": links}

    @property
    def flags(self) -> dict[str, bool]:
        return {
            "cxi": bool(self.cxi),
            # by name and not by driver, as Open MPI's own list of UCX devices does it
            "mellanox": any(name.startswith("mlx") for name in self.infiniband),
            "loopback": self.interface == LOOPBACK,
            "xpmem": dict(self.copies).get("xpmem", "not looked for") == "",
        }

    @property
    def fabrics(self) -> dict[str, bool]:
        """What `needs` may want of the machine (rows.FABRICS)."""
        return {
            "cxi": bool(self.cxi),
            "verbs": bool(self.infiniband),
            "mellanox": self.flags["mellanox"],
            "efa": bool(self.efa),
            "omnipath": bool(self.omnipath),
        }


NIC = {  # what a row of that need is refused with
    "cxi": "no Slingshot NIC is up here",
    "verbs": "no InfiniBand or RoCE device is up here",
    "mellanox": "no Mellanox device is up here",
    "efa": "no EFA device is up here",
    "omnipath": "no Omni-Path device is up here",
}


def _kind(device: NetDevice) -> str:
    """The kind of a device. The kernel keeps EFA and Omni-Path in InfiniBand's class, and neither
    speaks its verbs as MPIs use them."""
    driver = dict(device.details).get("driver", "").partition(" ")[0]
    if device.kind == "infiniband":
        known = {"efa": "efa", "hfi1": "omnipath", "hfi2": "omnipath"}
        return known.get(driver or device.name.partition("_")[0], device.kind)
    return device.kind


def _is_up(device: NetDevice) -> bool:
    return device.state.lower() in ("up", "active", "unknown", "")


@cache
def rows() -> tuple[Row, ...]:
    """Every row of transports.toml, read and checked once."""
    found = read_rows(document("transports.toml"), read_tells(document("families.toml")))
    known = {issue.id for issue in issues()}
    for row in found:
        for issue in row.issues:
            if issue not in known:
                raise UsageError(f"transports.toml, row {row.id}, key issues: {issue} is unknown")
    return found


@cache
def issues() -> tuple[KnownIssue, ...]:
    """Every known issue of issues.toml. Raises UsageError for a wrong row."""
    return read_issues(document("issues.toml"))


def read_issues(data: Document, file: str = "issues.toml") -> tuple[KnownIssue, ...]:
    found: dict[str, KnownIssue] = {}
    for table in Table(file, dict(data)).tables("issue"):
        table.where = f"{file}, row {table.text('id')}"
        issue = KnownIssue(
            id=table.text("id"),
            symptom=table.text("symptom"),
            affects=table.text("affects"),
            cause=table.text("cause"),
            fix=table.text("fix"),
            sources=table.texts("sources"),
            evidence=table.texts("evidence"),
            pattern=table.pattern("pattern", ""),
        )
        table.done()
        if issue.id in found:
            raise UsageError(f"{file}: two rows are called {issue.id}")
        found[issue.id] = issue
    return tuple(found.values())


def names(family: Family) -> tuple[str, ...]:
    """Public names of a family's transports, in the order of the file."""
    return tuple(dict.fromkeys(row.name for row in rows() if row.family is family))


def offers(mpi: MpiInstall, facts: Facts) -> tuple[TransportOffer, ...]:
    """Every transport that the family knows, and whether it can run here with the reason."""
    return tuple(_offer(name, mpi, facts) for name in names(mpi.family))


def _offer(name: str, mpi: MpiInstall, facts: Facts) -> TransportOffer:
    try:
        row = meant(name, mpi, facts)
    except MissingError as error:
        return TransportOffer(name, "", usable=False, reason=error.seen)
    unmet = _unmet(row, mpi, facts) or _unknown(row, mpi) or row.broken
    return TransportOffer(name, row.id, usable=not unmet, reason=unmet, variant=row.variant)


def resolve(name: str, mpi: MpiInstall, facts: Facts) -> Transport:
    """The transport of that name for this MPI on this machine.

    Raises UsageError for a name that the family does not have, MissingError when no row is meant
    for this MPI and machine or when one lacks what it needs. What could not be found out, and a
    row known to be broken, do not stop who asks by name: the probe will tell.
    """
    if name not in names(mpi.family):
        raise UsageError(
            f"{mpi.family} has no transport {name!r}",
            mend=f"its transports are {', '.join(names(mpi.family)) or 'not known'}",
        )
    row = meant(name, mpi, facts)
    if unmet := _unmet(row, mpi, facts):
        raise MissingError(f"{mpi.id} cannot use {name} here: {unmet}")
    return transport(row, facts)


def transport(row: Row, facts: Facts) -> Transport:
    """A row with its templates filled in."""
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


def meant(name: str, mpi: MpiInstall, facts: Facts) -> Row:
    """The row that is meant, whatever it needs. Two cannot be: read_rows refuses rows that
    overlap. Raises MissingError where none is."""
    candidates = [row for row in rows() if (row.family, row.name) == (mpi.family, name)]
    for row in candidates:
        if not _excluded(row.when, mpi, facts):
            return row
    reasons = dict.fromkeys(_excluded(row.when, mpi, facts) for row in candidates)
    raise MissingError(f"{name} is not known for {mpi.id} here: {'; or '.join(reasons)}")


def _excluded(when: When, mpi: MpiInstall, facts: Facts) -> str:
    """Why a row is not meant for this MPI on this machine; empty if it is."""
    if when.mpi is not None and version(mpi.version) not in when.mpi:
        return f"it is for {mpi.family} {when.mpi}, this is {mpi.version}"
    if when.libfabric is not None:
        library = mpi.libfabric
        if library is None or library.version is None:
            return "the version of its libfabric is not known"
        if version(library.version) not in when.libfabric:
            return f"it is for libfabric {when.libfabric}, this is {library.version}"
    if when.ucx is not None:
        if mpi.ucx is None or mpi.ucx.version is None:
            return "the version of its UCX is not known"
        if version(mpi.ucx.version) not in when.ucx:
            return f"it is for UCX {when.ucx}, this is {mpi.ucx.version}"
    for name, wanted in when.flags:
        if facts.flags[name] is not wanted:
            return f"it is for machines {'with' if wanted else 'without'} {name}"
    return ""


def _unmet(row: Row, mpi: MpiInstall, facts: Facts) -> str:
    """The first need that is known not to be met; empty if there is none."""
    for component in row.needs.components:
        framework, _, name = component.partition(":")
        have = mpi.components_of(framework)
        if have and name not in have:
            return f"it has no {framework} component {name}"
    if row.needs.netmod and mpi.device and row.needs.netmod not in re.split("[:,]", mpi.device):
        load = f"; load {','.join(row.modules)} (--modules)" if row.modules else ""
        return f"its device is {mpi.device}, without {row.needs.netmod}{load}"
    if (fabric := row.needs.fabric) and not facts.fabrics[fabric]:
        return NIC[fabric]
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
    """Providers one by one: verbs;ofi_rxm is two."""
    return tuple(dict.fromkeys(layer for name in providers for layer in name.split(";")))


def _unknown(row: Row, mpi: MpiInstall) -> str:
    """The first need that nobody could look at; what is not known to work is not offered."""
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


def matching_issues(output: str, transport: Transport | None) -> tuple[KnownIssue, ...]:
    """Known issues whose pattern is in a failed launch's output, those of the transport first.

    An issue without a pattern never matches: it would be offered for every failure. One that rows
    name, but not the transport's own, is left out: it is about another transport or version.
    """
    mine = transport.issues if transport else ()
    named = {issue for row in rows() for issue in row.issues}
    hits = [
        issue
        for issue in issues()
        if issue.pattern
        and (issue.id in mine or issue.id not in named)
        and re.search(issue.pattern, output, re.MULTILINE)
    ]
    return tuple(sorted(hits, key=lambda i: mine.index(i.id) if i.id in mine else len(mine)))
