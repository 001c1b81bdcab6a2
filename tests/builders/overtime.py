"""Campaigns of several dates: as values, and in a store, with what a machine and software are."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mpigraft.core.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    LaunchRecord,
    LaunchState,
    MappedLibrary,
    Measured,
    Measurement,
    Origin,
    RankRecord,
    ValueRow,
)
from mpigraft.store import Store
from tests.builders.records import CONDITIONS, provenance

SIZES = (1, 64, 4096)
OPENMPI, MPICH = "openmpi@5.0.11/ob1-sm", "mpich@5.0.2/ucx"
MACHINE = {
    "hostname": "n1",
    "os": "Debian GNU/Linux 12 (bookworm)",
    "kernel": "6.1.0-28-amd64",
    "cpu": {"model": "AMD EPYC 7763", "cores": 64},
    "memory_mib": 258_000,
    "fabrics": [
        {"name": "hsn0", "kind": "cxi", "state": "up", "address": "",
         "details": [["driver", "cxi_ss1 1.2"], ["firmware", "1.5.41"]]},
        {"name": "lo", "kind": "loopback", "state": "up", "address": "", "details": []},
    ],
    "launchers": [{"name": "srun", "version": "23.11", "pmi_offered": ["pmix_v4"]}],
}  # fmt: skip
Level = Callable[[str, int], float]  # (configuration, size) -> factor


def identity(number: int) -> str:
    return f"{number:08}-0000-4000-8000-000000000000"


def same(_: str, __: int) -> float:
    return 1.0


def campaign(
    number: int = 1,
    *,
    names: Mapping[str, str] | None = None,
    level: Level = same,
    rounds: int = 8,
    spread: float = 0.01,
    machine: Mapping[str, object] | None = None,
    hosts: tuple[str, ...] = ("n1",),
    libraries: Sequence[str] = (),
    others: float = 0.0,
    **changes: object,
) -> Measured:
    """Campaign `number`, of that day of 2026: `names` are {key: id}, the first the baseline;
    `libraries` are the files that ranks mapped; `others` is the share of the CPUs that other
    processes took."""
    names = names or {"k0": MPICH, "k1": OPENMPI}
    rng = random.Random(number)
    made = f"2026-01-{number:02}T03:04:05+00:00"
    first = next(iter(names))
    record = CampaignRecord(
        identity(number), f"night{number}", made, Origin.RUN, number, rounds, first, "{}", "0.1"
    )
    record = replace(record, **changes)  # type: ignore[arg-type]
    place = f"a{number}"
    allocation = AllocationRecord(
        place, record.id, made, hosts[0], json.dumps(MACHINE if machine is None else machine), hosts
    )
    use = replace(CONDITIONS.nodes[0], wall_s=100.0, others=others)
    used = replace(CONDITIONS, nodes=(use,)) if others else None
    rows, launches = [], []
    for turn in range(rounds):
        slots = [(first, 1), *((key, 0) for key in names)]
        for slot, (key, replica) in enumerate(slots):
            noise = math.exp(rng.gauss(0, spread))
            launches.append(LaunchRecord(
                f"{number}-{turn}-{slot}", record.id, place, key, "1x2", turn, slot, replica,
                made, 1.5, 0, LaunchState.OK, (), conditions=used,
            ))  # fmt: skip
            rows += [
                ValueRow(key, "1x2", place, turn, replica, "native:latency", "latency", size,
                         (1 + size / 1000) * noise * level(names[key], size), "host")
                for size in SIZES
            ]  # fmt: skip
    ranks = tuple(
        RankRecord(r, 2, "n1", 10, "v", (r,), tuple(MappedLibrary(p, 1, 1) for p in libraries))
        for r in range(2)
    )
    seen = Evidence("sm", "sm", (), (), ranks if libraries else ())
    return Measured(
        record,
        tuple(ConfigurationRecord(record.id, k, i, provenance(i)) for k, i in names.items()),
        (allocation,),
        tuple(launches),
        tuple(rows),
        tuple(EvidenceRecord(record.id, key, "1x2", seen, place) for key in names),
    )


def keep(store: Store, *campaigns: Measured) -> Store:
    """Write campaigns into a store."""
    with store.writer() as writer:
        for one in campaigns:
            writer.add_campaign(one.campaign)
            for allocation in one.allocations:
                writer.add_allocation(allocation)
            for configuration in one.configurations:
                writer.add_configuration(configuration)
            for evidence in one.evidence:
                writer.add_evidence(evidence)
            for launch in one.launches:
                place = (launch.configuration, launch.round, launch.replica)
                own = [r for r in one.values if (r.configuration, r.round, r.replica) == place]
                writer.add_launch(launch, [_measurement(row) for row in own], {})
    return store


def _measurement(row: ValueRow) -> Measurement:
    return Measurement(Benchmark.parse(row.benchmark), row.metric, row.size, row.value)
