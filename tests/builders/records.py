"""Records of a store: one campaign with launches, values and evidence; then records of the
shape that a report shows: provenance, evidence, launches and machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

from mpigraft.core.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    Conditions,
    ConfigurationRecord,
    CpuUse,
    Evidence,
    Finding,
    Kind,
    LaunchRecord,
    LaunchState,
    Level,
    MappedLibrary,
    Measurement,
    NodeState,
    Origin,
    Peer,
    Proof,
    ProofStatus,
    RankRecord,
)
from mpigraft.store import Writer

CAMPAIGN = CampaignRecord(
    "c0ffee00-0000-4000-8000-000000000001", "nightly", "2026-01-02T03:04:05+00:00", Origin.RUN,
    7, 6, "k0", '{"rounds":6}', "0.1",
)  # fmt: skip
ALLOCATION = AllocationRecord("a1", CAMPAIGN.id, "2026-01-02T03:04:06+00:00", "n1", "{}")
LATENCY = Benchmark("native", "latency")
INDEXED = Benchmark("native", "bw", (("datatype", "indexed"),))

STATE = NodeState((0.5, 0.25, 0.125), 12.5, 8.0, 0.25, "performance")
CONDITIONS = Conditions(STATE, STATE, (CpuUse("n1", 2, 2, 1.0, 1.9, 0.0, 1.8, 0.05, 7),))
SECRET = "planted-value-0"  # of the environment, to be struck out


def launch(number: int = 0, **changes: object) -> LaunchRecord:
    record = LaunchRecord(
        str(uuid4()), CAMPAIGN.id, ALLOCATION.id, "k0", "1x2", number, 0, 0,
        f"2026-01-02T03:05:{number:02}+00:00", 1.5, 0, LaunchState.OK,
        (Finding(Level.WARNING, "unbound", "rank 0 may run anywhere"),),
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def add_campaign(
    writer: Writer, campaign: CampaignRecord, names: Mapping[str, str], provenance: str = "{}"
) -> None:
    """A campaign with one allocation, `a0`, and configurations: {key: name}."""
    writer.add_campaign(campaign)
    writer.add_allocation(AllocationRecord("a0", campaign.id, campaign.created, "n1", "{}"))
    for key, name in names.items():
        writer.add_configuration(ConfigurationRecord(campaign.id, key, name, provenance))


def measured(*values: float, benchmark: Benchmark = LATENCY) -> list[Measurement]:
    return [Measurement(benchmark, "latency", i + 1, v) for i, v in enumerate(values)]


def evidence(ran: str) -> Evidence:
    rank = RankRecord(0, 2, "n1", 11, "Open MPI v5", (0, 1), (MappedLibrary("/lib/m.so", 8, 9),))
    proof = Proof(Peer.ON_NODE, Kind.P2P, ProofStatus.PROVEN, "sm", "btl sm")
    return Evidence("ob1-sm", ran, (proof,), (), (rank,), (("lo", 512),), ok=True)


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


def reported_evidence(configuration: str) -> Evidence:
    transport = configuration.partition("/")[2]
    lane = {"ob1-sm": "sm", "ofi-lnx": "lnx (shm+lo)", "shm": "shm"}.get(transport, "tcp")
    return Evidence(
        asked=transport,
        ran=lane,
        proof=(
            Proof(
                Peer.ON_NODE,
                Kind.P2P,
                ProofStatus.PROVEN,
                lane,
                f"mca: bml: Using {lane} btl for send",
            ),
            Proof(Peer.ON_NODE, Kind.ONE_SIDED, ProofStatus.NO_EVIDENCE, "", ""),
            Proof(Peer.ON_NODE, Kind.COLLECTIVE, ProofStatus.PROVEN, lane, f"coll: using {lane}"),
            Proof(Peer.OFF_NODE, Kind.P2P, ProofStatus.NOT_EXERCISED, "", ""),
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


def reported_launches(names: list[str], rounds: int = 6) -> tuple[LaunchRecord, ...]:
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
