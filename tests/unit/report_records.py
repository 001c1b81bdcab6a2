"""Records of realistic shape for the report's tests: provenance, evidence, launches, machine."""

from __future__ import annotations

import json

from mpigraft.model import (
    Evidence,
    Finding,
    Kind,
    LaunchRecord,
    LaunchState,
    Level,
    MappedLibrary,
    Peer,
    Proof,
    RankRecord,
    Standing,
)

ROUND_S = 25.0


def provenance(configuration: str) -> str:
    mpi, _, transport = configuration.partition("/")
    family, _, version = mpi.partition("@")
    return json.dumps(
        {
            "mpi": mpi,
            "family": family,
            "version": version,
            "abi": "ompi" if family == "openmpi" else "mpich",
            "library_version": f"{family} v{version}, package: root@builder, {version}, 2025",
            "source": "wheel",
            "found": [f"fetched by mpigraft get {family}"],
            "libmpi": f"/opt/{mpi}/lib/libmpi.so.40",
            "launcher": ["prrte" if family == "openmpi" else "hydra", "3.0.8"],
            "libfabric": {
                "name": "libfabric",
                "version": "2.1.0",
                "path": f"/opt/{mpi}/lib/libfabric.so.1",
                "offers": ["tcp", "shm", "lnx"],
                "reason": "",
            },
            "ucx": None,
            "transport": [transport, f"{family}-{transport}"],
            "sources": ["https://docs.open-mpi.org/en/v5.0.x/tuning-apps/networking/ofi.html"],
            "environment": [
                {"name": "OMPI_MCA_pml", "value": "ob1", "scope": "rank", "source": "transport"},
                {"name": "FI_PROVIDER", "value": "tcp", "scope": "rank", "source": "transport"},
            ],
            "libraries": [["libmpi.so.40", "ab" * 32], ["libfabric.so.1", "cd" * 32]],
            "programs": "ef" * 32,
        }
    )


def evidence(configuration: str) -> Evidence:
    transport = configuration.partition("/")[2]
    lane = {"ob1-sm": "sm", "ofi-lnx": "lnx (shm+lo)", "shm": "shm"}.get(transport, "tcp")
    return Evidence(
        asked=transport,
        ran=lane,
        proof=(
            Proof(
                Peer.ON_NODE,
                Kind.P2P,
                Standing.PROVEN,
                lane,
                f"mca: bml: Using {lane} btl for send",
            ),
            Proof(Peer.ON_NODE, Kind.ONE_SIDED, Standing.NO_EVIDENCE, "", ""),
            Proof(Peer.ON_NODE, Kind.COLLECTIVE, Standing.PROVEN, lane, f"coll: using {lane}"),
            Proof(Peer.OFF_NODE, Kind.P2P, Standing.NOT_EXERCISED, "", ""),
        ),
        findings=(
            (
                Finding(
                    Level.WARNING,
                    "LNX-02",
                    "windows went over shared memory, not over lnx",
                    "the one-sided component is chosen on its own",
                    "set OMPI_MCA_osc=^sm to send windows through the network too",
                ),
            )
            if transport == "ofi-lnx"
            else ()
        ),
        ranks=tuple(
            RankRecord(
                r,
                2,
                "node1",
                100 + r,
                "Library v1",
                (r,),
                (MappedLibrary("/opt/lib/libmpi.so.40", 1, 2),),
            )
            for r in range(2)
        ),
        wire=(("lo", 1_048_576 if lane == "tcp" else 0),),
        ok=True,
    )


def launches(names: list[str], rounds: int = 6) -> tuple[LaunchRecord, ...]:
    """The first name is the baseline: it comes twice."""
    names = [names[0], *names]
    return tuple(
        LaunchRecord(
            id=f"{r}-{slot}",
            campaign="6f1c2b9e",
            allocation="a1",
            configuration=f"key:{name}",
            layout="1x2",
            round=r,
            slot=slot,
            replica=1 if slot == 0 else 0,
            started="2026-01-02T03:04:05Z",
            wall_s=ROUND_S / len(names),
            exit_code=0,
            state=LaunchState.OK,
            findings=(),
        )
        for r in range(rounds)
        for slot, name in enumerate(names)
    )


def machine() -> str:
    return json.dumps(
        {
            "hostname": "node1",
            "os": "Debian GNU/Linux 12 (bookworm)",
            "kernel": "6.1.0-28-amd64",
            "cpu": {
                "model": "AMD EPYC 7763",
                "architecture": "x86_64",
                "cores": 2,
                "threads": 4,
                "sockets": 1,
                "numa": [[0, 1]],
                "l3": [[0, 1]],
            },
            "memory_mib": 24_000,
            "fabrics": [
                {"name": "lo", "kind": "loopback", "state": "up", "address": "", "details": []}
            ],
            "single_copy": [{"name": "cma", "usable": True, "reason": "ptrace scope 0"}],
            "gpus": [],
        }
    )
