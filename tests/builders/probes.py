"""Recorded probes and the values around them; phases of a probe under foreign traffic, with what
the ranks' own connections carried."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    Configuration,
    Evidence,
    Kind,
    Layout,
    Level,
    MappedLibrary,
    MpiInstall,
    NetLibrary,
    Peer,
    Proof,
    ProofStatus,
    RankRecord,
    Transport,
)
from mpigraft.core.process.command import Completed
from mpigraft.evidence import judge
from mpigraft.evidence.traffic import attribution
from mpigraft.evidence.traffic.counters import due_counters
from mpigraft.evidence.traffic.lanes import TrafficFinding, Wire, _with_wire, wire_state
from mpigraft.evidence.traffic.probe import ProbePhase, Transfer
from mpigraft.evidence.traffic.sockets import Sockets
from mpigraft.knowledge.transports.match import Facts, matching_row, transport
from mpigraft.launch import LaunchResult
from tests.builders.configuration import an_mpi

LOGS = Path(__file__).parents[1] / "data" / "logs"
HERE = Facts(interface="eth0")
LOOPBACK = Facts(interface="lo")
LAYOUT = Layout()

COMPONENTS = {
    "5": (
        ("pml", ("ob1", "cm", "ucx")),
        ("btl", ("self", "sm", "tcp", "ofi", "uct")),
        ("mtl", ("ofi",)),
        ("osc", ("sm", "rdma", "ucx")),
    ),
    "4": (
        ("pml", ("ob1", "cm", "ucx")),
        ("btl", ("self", "vader", "tcp", "ofi")),
        ("mtl", ("ofi",)),
        ("osc", ("sm", "rdma", "pt2pt", "ucx")),
    ),
}
LIBFABRIC = {
    "openmpi@5.0.11": NetLibrary("libfabric", "2.5.1", None, ("tcp", "tcp;ofi_rxm", "shm", "lnx")),
    "openmpi@4.1.8": NetLibrary("libfabric", "1.22.0", None, ("tcp", "shm")),
    "openmpi@4.1.4": NetLibrary("libfabric", "1.17.0", None, ("tcp", "shm")),
    "mpich@4.0.2": NetLibrary("libfabric", "1.17.0", None, ("tcp", "shm")),
    "mpich@5.0.2": NetLibrary("libfabric", "2.5.1", None, ("tcp", "shm", "lnx")),
    "intel@2021.18.1": NetLibrary("libfabric", "2.4.0-impi", None, ("tcp", "shm")),
}

# Launches that did not run as asked, but as another transport of the table would have.
RAN = {
    "ofi-tcp-loopback": ("ofi-tcp",),
    "not-lnx-is-tcp": ("ofi-tcp",),
    "not-lnx-old-name-unforced": ("ob1-sm",),
    "not-ofi-local": ("shm-ofi-tcp",),
    "not-ucx-local": ("shm-ucx",),
}
# Transports that nothing tells from the recorded one on one node: UCX's shared memory is the same
# whatever is between nodes, and vader does not say that it copies once.
UCX_NETWORKS = tuple(f"shm-ucx-{name}" for name in ("rc", "dc", "cuda", "rocm", "tcp"))
ALIKE = {
    ("openmpi", "ucx"): UCX_NETWORKS,
    ("openmpi@5.0.11", "ofi-tcp-loopback"): ("ofi-tcp-rxm",),
    ("openmpi@4.1.4", "ofi-tcp"): ("ofi-tcp-rxm",),  # libfabric 1.17 has tcp under ofi_rxm only
    ("openmpi@4.1.4", "ob1-sm"): ("ob1-sm-xpmem", "ob1-sm-cma", "ob1-sm-knem"),
    ("openmpi@4.1.8", "ob1-sm"): ("ob1-sm-xpmem", "ob1-sm-cma", "ob1-sm-knem"),
}


def install(identity: str, **changes: object) -> MpiInstall:
    """The MPI of a recorded log; its libmpi is a file that exists."""
    family, _, version = identity.partition("@")
    recorded: dict[str, object] = {
        "prefix": Path("/opt/mpi"),
        "libmpi": LOGS / "README.md",
        "launcher": Path("/opt/mpi/bin/mpirun"),
        "library_version": "",
        "libfabric": LIBFABRIC.get(identity),
        "device": "ch4:ucx,ofi" if family == "mpich" else "",
        "components": COMPONENTS[version[0]] if family == "openmpi" else (),
    }
    return an_mpi(identity, **{**recorded, **changes})


def configuration(identity: str, name: str, facts: Facts = HERE) -> Configuration:
    """Of the row that applies, whether or not it could run: lines of a log are held against the
    rows of hardware too."""
    mpi = install(identity)
    row = transport(matching_row(name, mpi, facts), facts)
    return Configuration("key", f"{identity}/{name}", mpi, row)


def with_transport(asked: Configuration, **changes: object) -> Configuration:
    assert asked.transport is not None
    return replace(asked, transport=replace(asked.transport, **changes))  # type: ignore[arg-type]


def asked_for(asked: Configuration) -> Transport:
    assert asked.transport is not None
    return asked.transport


def records(
    count: int = 2, *, hosts: int = 1, libmpi: Path = LOGS / "README.md"
) -> tuple[RankRecord, ...]:
    """A world of `count` ranks as the witness saw it, in blocks over `hosts`."""
    seen = libmpi.stat()
    mapped = MappedLibrary("/opt/mpi/lib/libmpi.so.40", seen.st_dev, seen.st_ino)
    return tuple(
        RankRecord(rank, count, f"n{rank * hosts // count}", 100 + rank, "MPI", (rank,), (mapped,))
        for rank in range(count)
    )


@dataclass(frozen=True)
class Recorded:
    """One file of tests/data/logs."""

    name: str
    identity: str  # openmpi@5.0.11
    asked: tuple[str, ...]  # the transport that this is the output of; none: no known one
    completed: Completed
    ranks: tuple[RankRecord, ...]

    def edited(self, old: str, new: str) -> Completed:
        """The output with one text in place of another, which has to be there."""
        both = self.completed.stdout + self.completed.stderr
        assert re.search(old.encode(), both), f"{self.name} has no {old}"
        out, err = (
            re.sub(old.encode(), new.encode(), stream)
            for stream in (self.completed.stdout, self.completed.stderr)
        )
        return replace(self.completed, stdout=out, stderr=err)


def recorded(name: str) -> Recorded:
    text = (LOGS / f"{name}.log").read_text()
    head, _, rest = text.partition("[stdout]\n")
    out, _, err = rest.partition("[stderr]\n")
    code = re.search(r"^# code (\d+)$", head, re.M)
    count = re.search(r"^# ranks (\d+)$", head, re.M)
    assert code
    assert count
    version, _, what = name.partition("--")
    identity = "@".join(version.rsplit("-", 1))
    ran = RAN.get(what, (what,) if int(code[1]) == 0 and not what.startswith("not-") else ())
    alike = [ALIKE.get((known, what), ()) for known in (identity, identity.partition("@")[0])]
    return Recorded(
        name=name,
        identity=identity,
        asked=(*ran, *alike[0], *alike[1]),
        completed=Completed(("mpirun",), int(code[1]), out.encode(), err.encode(), 1.0),
        ranks=records(int(count[1])) if int(count[1]) else (),
    )


def logs(pattern: str = "*") -> list[Recorded]:
    found = [recorded(path.stem) for path in sorted(LOGS.glob(f"{pattern}.log"))]
    assert found, f"no log {pattern}"
    return found


def facts_of(log: Recorded) -> Facts:
    return LOOPBACK if log.name.endswith("-loopback") else HERE


def unknown(log: Recorded, name: str) -> bool:
    """Whether no row applies: 4.1 knows no LNX, and the version of these UCX is not known."""
    try:
        matching_row(name, install(log.identity), facts_of(log))
    except MissingError:
        return True
    return False


def judged(log: Recorded, asked: str, layout: Layout = LAYOUT) -> Evidence:
    asking = configuration(log.identity, asked, facts_of(log))
    return judge.judge_evidence(asking, layout, LaunchResult(log.completed, log.ranks))


def errors(evidence: Evidence) -> list[str]:
    return [f.code for f in evidence.findings if f.level is Level.ERROR]


def standing(evidence: Evidence, kind: Kind, peer: Peer = Peer.ON_NODE) -> ProofStatus:
    return next(p.standing for p in evidence.proof if (p.kind, p.peer) == (kind, peer))


PAYLOAD = 16 << 20
FLOOD = 1 << 40
WHO = (("lo", "netdev"), ("e0", "netdev"), ("e1", "netdev"), ("mlx5_0:1", "infiniband"))
NETDEVS = WHO[:3]


def own(sent: int, name: str = "lo", **changes: Any) -> Sockets:
    """Two ranks that each sent half of it, all through one interface."""
    half = PAYLOAD // 2
    made = Sockets(sent, sent, 0, half, sent // 2, sent // 2, ((name, sent),) if sent else ())
    return replace(made, **changes)


def a_phase(
    sockets: Sockets | None,
    *,
    peer: Peer = Peer.ON_NODE,
    kind: Kind = Kind.P2P,
    size: int = PAYLOAD,
    noise: float = float(FLOOD),
    wire: Mapping[str, int] | None = None,
) -> ProbePhase:
    """Under traffic that drowns everything, unless `wire` says otherwise."""
    counts = tuple(({"lo": FLOOD, "e0": FLOOD, "e1": FLOOD} | dict(wire or {})).items())
    part = Transfer("1 MiB", size, counts, noise, weakest=counts, sockets=sockets)
    return ProbePhase(kind, peer, size, counts, ok=True, parts=(part,))


def attributed(
    phase: ProbePhase, who: tuple[tuple[str, str], ...], claims: Collection[str]
) -> ProbePhase:
    made = attribution.attributed(phase, who, claims)
    assert made
    return made


def says(phase: ProbePhase, claim: str, names: tuple[str, ...] = ()) -> Wire | None:
    made = due_counters(
        attributed(phase, WHO, {claim}), names, 2 if phase.peer is Peer.OFF_NODE else 1
    )
    return wire_state(made, frozenset({phase.peer}))


def heard_of(phase: ProbePhase, claim: str, names: tuple[str, ...] = ()) -> TrafficFinding:
    made = due_counters(
        attributed(phase, WHO, {claim}), names, 2 if phase.peer is Peer.OFF_NODE else 1
    )
    silent = TrafficFinding(
        proof=Proof(phase.peer, phase.kind, ProofStatus.PROVEN, "lane", "a line")
    )
    return _with_wire(silent, {claim}, wire_state(made, frozenset({phase.peer})), made)


def between(sockets: Sockets) -> ProbePhase:
    return a_phase(sockets, peer=Peer.OFF_NODE)
