"""A small machine, MPIs of which nothing is on disk, transports, a configuration, a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpigraft.core.model import (
    Abi,
    Configuration,
    Cpu,
    EnvRow,
    Family,
    JobRequest,
    Machine,
    MpiInstall,
    Peer,
    Scope,
    Transport,
    TransportOffer,
)

LAUNCHERS = {("openmpi", "5"): "prrte", ("openmpi", "4"): "orte"}  # by major version


def an_mpi(identity: str = "openmpi@5.0.11", **changes: object) -> MpiInstall:
    """An MPI of which nothing is on disk."""
    family, _, version = identity.partition("@")
    prefix = Path("/opt") / identity
    values: dict[str, object] = {
        "id": identity,
        "family": Family(family),
        "version": version,
        "abi": Abi.OMPI if family == "openmpi" else Abi.MPICH,
        "soname": "libmpi.so.40" if family == "openmpi" else "libmpi.so.12",
        "prefix": prefix,
        "libmpi": prefix / "lib/libmpi.so",
        "launcher": prefix / "bin/mpiexec",
        "launcher_kind": LAUNCHERS.get((family, version[:1]), "hydra"),
        "launcher_version": version,
        "wrappers": (),
        "library_version": f"{family} v{version}",
        "libfabric": None,
        "ucx": None,
        "device": "" if family == "openmpi" else "ch4:ucx,ofi",
        "components": (),
        "environment": (),
        "source": "wheel",
        "found": (),
        "usable": True,
    }
    return MpiInstall(**{**values, **changes})  # type: ignore[arg-type]


def a_transport(name: str, row: str = "") -> Transport:
    return Transport(
        name=name,
        row=row or f"row-{name}",
        env=(EnvRow("ASKED", name, Scope.RANK, "transport"),),
        template=(("ASKED", name),),
        probe_env=(),
        signs=(),
        peers=tuple(Peer),
        issues=(),
        sources=(),
    )


def an_offer(name: str, reason: str = "") -> TransportOffer:
    return TransportOffer(name, f"row-{name}", usable=not reason, reason=reason)


def a_configuration(mpi: MpiInstall, transport: str = "ob1-sm") -> Configuration:
    return Configuration(
        key=f"{mpi.id}-{transport}",
        id=f"{mpi.id}/{transport}",
        mpi=mpi,
        transport=a_transport(transport),
    )


def a_machine(*mpis: MpiInstall, cores: int = 2) -> Machine:
    cpu = Cpu("a model", "x86_64", cores, cores, 1, (tuple(range(cores)),), ())
    return Machine("host", "Debian", "6.1", cpu, 1024, (), (), (), (), None, mpis)


def a_job_request(**changes: Any) -> JobRequest:
    """A request with characters in it that a shell or a scheduler would take for its own."""
    values: dict[str, Any] = {
        "folder": "/proj/my dir",
        "name": "mpigraft-night",
        "nodes": 2,
        "limit_s": 5400,
        "output": "/proj/store/logs/c0ffee-1",
        "command": ("/opt/mpigraft", "bench", "--resume", "it's"),
        "environment": (("MPIGRAFT_HOME", "/proj/$HOME"),),
        "extra": ("--account=p", "a b"),
    }
    return JobRequest(**{**values, **changes})
