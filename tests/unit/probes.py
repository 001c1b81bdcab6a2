"""Recorded probes and the values around them, for tests of what a probe proves."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft import prove
from mpigraft.errors import MissingError
from mpigraft.knowledge.loader import Facts, meant, transport
from mpigraft.model import (
    Abi,
    Configuration,
    Evidence,
    Family,
    Kind,
    Layout,
    Level,
    MappedLibrary,
    MpiInstall,
    NetLibrary,
    Peer,
    RankRecord,
    Standing,
    Transport,
)
from mpigraft.run import Completed

LOGS = Path(__file__).parents[1] / "machines" / "logs"
HERE = Facts(interface="eth0", cxi=(), infiniband=())
LOOPBACK = Facts(interface="lo", cxi=(), infiniband=())
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
    values: dict[str, object] = {
        "id": identity,
        "family": Family(family),
        "version": version,
        "abi": Abi.OMPI if family == "openmpi" else Abi.MPICH,
        "soname": "libmpi.so.40" if family == "openmpi" else "libmpi.so.12",
        "prefix": Path("/opt/mpi"),
        "libmpi": LOGS / "README.md",
        "launcher": Path("/opt/mpi/bin/mpirun"),
        "launcher_kind": {"5": "prrte", "4": "orte"}[version[0]]
        if family == "openmpi"
        else "hydra",
        "launcher_version": version,
        "wrappers": (),
        "library_version": "",
        "libfabric": LIBFABRIC.get(identity),
        "ucx": None,
        "device": "ch4:ucx,ofi" if family == "mpich" else "",
        "components": COMPONENTS[version[0]] if family == "openmpi" else (),
        "environment": (),
        "source": "wheel",
        "found": (),
        "usable": True,
    }
    return MpiInstall(**{**values, **changes})  # type: ignore[arg-type]


def configuration(identity: str, name: str, facts: Facts = HERE) -> Configuration:
    """Of the row that is meant, whether or not it could run: lines of a log are held against the
    rows of hardware too."""
    mpi = install(identity)
    row = transport(meant(name, mpi, facts), facts)
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
    """One file of tests/machines/logs."""

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
    """Whether no row is meant: 4.1 knows no LNX, and the version of these UCX is not known."""
    try:
        meant(name, install(log.identity), facts_of(log))
    except MissingError:
        return True
    return False


def judged(log: Recorded, asked: str, layout: Layout = LAYOUT) -> Evidence:
    asking = configuration(log.identity, asked, facts_of(log))
    return prove.judge(asking, layout, log.completed, log.ranks)


def errors(evidence: Evidence) -> list[str]:
    return [f.code for f in evidence.findings if f.level is Level.ERROR]


def standing(evidence: Evidence, kind: Kind, peer: Peer = Peer.ON_NODE) -> Standing:
    return next(p.standing for p in evidence.proof if (p.kind, p.peer) == (kind, peer))
