"""Records for the tests of the store."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from mpigraft.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    Conditions,
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
    RankRecord,
    Standing,
)

CAMPAIGN = CampaignRecord(
    "c0ffee00-0000-4000-8000-000000000001", "nightly", "2026-01-02T03:04:05+00:00", Origin.RUN,
    7, 6, "k0", '{"rounds":6}', "0.1",
)  # fmt: skip
ALLOCATION = AllocationRecord("a1", CAMPAIGN.id, "2026-01-02T03:04:06+00:00", "n1", "{}")
LATENCY = Benchmark("native", "latency")
INDEXED = Benchmark("native", "bw", (("datatype", "indexed"),))

STATE = NodeState((0.5, 0.25, 0.125), 12.5, 8.0, 0.25, "performance")
CONDITIONS = Conditions(STATE, STATE, (CpuUse("n1", 2, 2, 1.0, 1.9, 0.0, 1.8, 0.05, 7),))


def launch(number: int = 0, **changes: object) -> LaunchRecord:
    record = LaunchRecord(
        str(uuid4()), CAMPAIGN.id, ALLOCATION.id, "k0", "1x2", number, 0, 0,
        f"2026-01-02T03:05:{number:02}+00:00", 1.5, 0, LaunchState.OK,
        (Finding(Level.WARNING, "unbound", "rank 0 may run anywhere"),),
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def measured(*values: float, benchmark: Benchmark = LATENCY) -> list[Measurement]:
    return [Measurement(benchmark, "latency", i + 1, v) for i, v in enumerate(values)]


def evidence(ran: str) -> Evidence:
    rank = RankRecord(0, 2, "n1", 11, "Open MPI v5", (0, 1), (MappedLibrary("/lib/m.so", 8, 9),))
    proof = Proof(Peer.ON_NODE, Kind.P2P, Standing.PROVEN, "sm", "btl sm")
    return Evidence("ob1-sm", ran, (proof,), (), (rank,), (("lo", 512),), ok=True)
