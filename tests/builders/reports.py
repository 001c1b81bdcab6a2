"""Comparisons of realistic shape for the report's tests: 9 others x 6 benchmarks x 23 sizes, and
the published Olivia tables, which have one run and no interval; and links between nodes."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpigraft.analysis.curve_comparison import Limits
from mpigraft.analysis.reasons import IMPORTED, open_reason
from mpigraft.core.model import (
    METRICS,
    AllocationRecord,
    Better,
    CampaignRecord,
    Cell,
    CellGroup,
    Comparison,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    Level,
    Noise,
    Origin,
    ValueRow,
    Verdict,
)
from mpigraft.report.contents import ReportData
from tests.builders.records import machine, provenance, reported_evidence, reported_launches

OLIVIA = Path(__file__).parents[1] / "data" / "olivia"
SIZES = tuple(1 << n for n in range(23))
BASELINE = "mpich@5.0.1/ofi-tcp"

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


Benchmarks = tuple[tuple[str, str, float], ...]  # benchmark, metric, weight


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
    made = CellGroup(
        *(name, metric, METRICS[metric].unit, "1x2", "host", configuration),
        cells=cells,
        curve=verdict(low, high, better, 0.03),
        curve_p=0.031,
        curve_p_alone=0.016,
        by_chance=0.01 * len(cells),
        pooled=pooled,
        pooled_low=low,
        pooled_high=high,
        crossovers=tuple(
            b.size for a, b in itertools.pairwise(cells) if (a.ratio < 1) != (b.ratio < 1)
        ),
    )
    reason = open_reason(made, made.curve, rounds, Limits(0.03, 0.03, 0.04))
    return replace(made, no_verdict=reason)


def comparison(
    *,
    rounds: int = 6,
    benchmarks: Benchmarks = BENCHMARKS,
    sizes: tuple[int, ...] = SIZES,
    names: tuple[str, ...] = tuple(SHAPES),
) -> Comparison:
    """Seeded: the same comparison at every call."""
    rng = random.Random(20)
    others = [name for name in names if name != BASELINE]
    return Comparison(
        campaign="6f1c2b9e-8d0a-4f57-9a51-0c54f3d7e1aa",
        baseline=BASELINE,
        origin=Origin.RUN,
        rounds=rounds,
        groups=tuple(
            group(rng, b, name, rounds=rounds, sizes=sizes) for b in benchmarks for name in others
        ),
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
            "openmpi@5.0.11/ob1-sm against mpich@5.0.1/ofi-tcp at latency: "
            "faster from 1 B to 4 MiB (0.07x)",
        ),
    )


def values(rounds: int = 6, benchmarks: Benchmarks = BENCHMARKS) -> tuple[ValueRow, ...]:
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


def campaign_data(rounds: int = 6) -> ReportData:
    """What a report shows of a whole campaign."""
    return data_of(comparison(rounds=rounds), rounds)


def small_data() -> ReportData:
    """Two benchmarks, three others, four sizes: to be read whole."""
    names = (BASELINE, "intel@2021.18.1/shm", "openmpi@5.0.11/ob1-tcp", "openmpi@5.0.11/ofi-tcp")
    found = comparison(benchmarks=BENCHMARKS[:2], sizes=(8, 1 << 10, 1 << 16, 1 << 22), names=names)
    return data_of(found, 6)


def report_of(found: Comparison, **known: Any) -> ReportData:
    """A comparison with those of its records that are given."""
    campaign = CampaignRecord(
        id=found.campaign,
        name="quick",
        created="2026-01-02T03:04:05Z",
        origin=found.origin,
        seed=7,
        rounds=found.rounds,
        baseline=f"key:{BASELINE}",
        plan="{}",
        tool="0.1.0",
    )
    empty = dict.fromkeys(("configurations", "allocations", "launches", "values"), ())
    return ReportData(**{"campaign": campaign, **empty, "comparison": found, **known})


def data_of(found: Comparison, rounds: int) -> ReportData:
    """A comparison with all its records."""
    names = [BASELINE, *sorted({g.configuration for g in found.groups})]
    left_out = [[f"{mpi}/ofi-cxi", "no cxi device"] for mpi in ("openmpi@5.0.11", "mpich@5.0.1")]
    campaign = replace(
        report_of(found).campaign,
        origin=Origin.RUN,
        rounds=rounds,
        plan=json.dumps({"skipped": left_out}),
    )
    return report_of(
        found,
        campaign=campaign,
        configurations=tuple(
            ConfigurationRecord(found.campaign, f"key:{name}", name, provenance(name))
            for name in names
        ),
        evidence=tuple(
            EvidenceRecord(found.campaign, f"key:{name}", "1x2", reported_evidence(name))
            for name in names
        ),
        allocations=(AllocationRecord("a1", found.campaign, campaign.created, "node1", machine()),),
        launches=reported_launches(names, rounds),
        values=tuple(row for row in values(rounds) if row.configuration[4:] in names),
    )


def hundred_benchmarks() -> ReportData:
    """A page of the size that its bound is for: 100 benchmarks of 6 configurations, 23 sizes."""
    every = tuple((f"{name}{n}", metric, w) for n in range(17) for name, metric, w in BENCHMARKS)
    data = data_of(comparison(benchmarks=every[:100], names=tuple(SHAPES)[:6]), 6)
    wish = {"mpi": ["openmpi", "mpich", "intel"], "rounds": 6, "max_size": 1 << 22}
    plan = json.dumps({**json.loads(data.campaign.plan), "wish": wish})
    return replace(data, campaign=replace(data.campaign, plan=plan))


def single_data() -> ReportData:
    """A campaign of the baseline alone: nothing is compared."""
    data = small_data()
    told = (f"only {BASELINE} has values: there is nothing to compare it with",)
    return replace(
        data,
        comparison=replace(data.comparison, groups=(), findings=(), summary=told),
        configurations=data.configurations[:1],
        evidence=data.evidence[:1],
        launches=tuple(x for x in data.launches if x.configuration == f"key:{BASELINE}"),
        values=tuple(
            row
            for row in data.values
            if row.configuration == f"key:{BASELINE}"
            and row.benchmark in ("native:latency", "native:bw")
            and row.size in (8, 1 << 10, 1 << 16, 1 << 22)
        ),
    )


def olivia(year: str = "2025") -> ReportData:
    """A pair of published tables: one run each, so there is no interval and no verdict."""
    base, other = {
        "2025": ("2025-cray-mpich-8.1.32", "2025-eessi-2023.06-openmpi-4.1.6"),
        "2026": ("2026-cray-mpich-9.1.0", "2026-eessi-2025.06-openmpi-5.0.3"),
    }[year]
    groups = []
    for name, metric in (("latency", "latency"), ("bibw", "bandwidth")):
        a, b = _table(base, name), _table(other, name)
        cells = tuple(
            Cell(s, a[s], b[s], b[s] / a[s], None, None, Verdict.INCONCLUSIVE, 1) for s in sorted(a)
        )
        pooled = math.exp(sum(math.log(c.ratio) for c in cells) / len(cells))
        groups.append(
            CellGroup(
                benchmark=f"osu:{name}",
                metric=metric,
                unit=METRICS[metric].unit,
                layout="2x1",
                buffers="cuda",
                configuration=other,
                cells=cells,
                curve=Verdict.INCONCLUSIVE,
                curve_p=None,
                pooled=pooled,
                pooled_low=None,
                pooled_high=None,
                no_verdict=IMPORTED,
            )
        )
    told = ("ratios only: imported runs did not alternate, so none is called faster or slower",)
    return report_of(Comparison("olivia", base, Origin.IMPORT, 1, tuple(groups), (), (), told))


def _table(configuration: str, name: str) -> dict[int, float]:
    lines = (OLIVIA / f"{configuration}.{name}.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {int(size): float(figure) for size, figure in rows}


def links(nodes: list[str], slow: dict[tuple[int, int], float] | None = None) -> ReportData:
    """One launch of bandwidth between all nodes: 100 MB/s, less by the factors of `slow`."""
    slower = slow or {}
    rows = tuple(
        ValueRow(f"key:{BASELINE}", "9x1", "a1", 0, 0, f"native:pairs,from={a},to={b}",
                 "bandwidth", 1 << 20, 100.0 / slower.get((i, j), 1.0), "host")
        for i, a in enumerate(nodes)
        for j, b in enumerate(nodes)
        if i != j
    )  # fmt: skip
    return replace(small_data(), links=rows)


def named(count: int) -> list[str]:
    return [f"nid{k:06d}" for k in range(1, count + 1)]
