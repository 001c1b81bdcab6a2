"""How long a store of 100,000 values takes to write, to read and to compare.

    python evaluation/store_speed.py [--rows 100000] [--allocations 1]
    python evaluation/store_speed.py --files 90
    python evaluation/store_speed.py --launches 2001

With `--files`, as many campaigns of 10 rounds (3 configurations, 4 benchmarks, 23 sizes), each in
a file of its own, are read by the commands instead. With `--launches`, as many launches (3 a round)
of 100 benchmarks of one size are compared: the time of comparing over that of reading, which is
about the same on any machine.

The bar is 2 s for reading and comparing together, on a machine that does nothing else. Of three
passes the fastest counts; processor time is shown too, because on a busy machine it says more.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from mpigraft.analysis import campaign_findings, judge_campaign
from mpigraft.core.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    LaunchRecord,
    LaunchState,
    Measured,
    Measurement,
    Origin,
)
from mpigraft.store import Store

T = TypeVar("T")
SIZES = 23
CAMPAIGN = "00000000-0000-4000-8000-000000000001"


class Shape(NamedTuple):
    """How many of each a campaign has; the baseline is launched once more a round."""

    configurations: int = 10
    benchmarks: int = 10
    sizes: int = SIZES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--allocations", type=int, default=1)
    parser.add_argument("--files", type=int)
    parser.add_argument("--launches", type=int)
    given = parser.parse_args()
    if given.files:
        time_commands(given.files)
        return
    shape = Shape(2, 100, 1) if given.launches else Shape()
    rows = given.launches * shape.benchmarks if given.launches else given.rows
    rounds = -(-rows // ((shape.configurations + 1) * shape.benchmarks * shape.sizes))
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        began = time.perf_counter()
        launches = fill(store, rounds, given.allocations, shape)
        wrote = time.perf_counter() - began
        campaign = store.campaign()
        arms = tuple(store.configurations(campaign.id))
        read, values = fastest(lambda: store.values(campaign.id))
        stored = store.launches(campaign.id)
        told, found = fastest(
            lambda: (
                judge_campaign(Measured(campaign, arms, (), tuple(stored), tuple(values))),
                campaign_findings(values, (), stored, {}),
            )[0]
        )
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    cells = sum(len(group.cells) for group in found.groups)
    print(f"{len(values)} values of {launches} launches, {size / 2**20:.0f} MiB; {cells} cells")
    print(f"write {1000 * wrote / launches:.1f} ms per launch")
    for name, r, t in zip(("wall", "processor"), read, told, strict=True):
        bar = f"ratio {t / r:.1f}" if given.launches else f"together {r + t:.2f} s (bar: 2 s)"
        print(f"{name}: read {r:.2f} s, compare {t:.2f} s, {bar}")


def time_commands(files: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name) / "store")
        for day in range(files):
            add_night(store, day)
        for words in (
            ("history",),
            ("compare", "night-1"),
            ("compare", "night-1", "night-2"),
            ("report", "night-1", "--output", f"{name}/page.html"),
            ("export", "night-1", "--output", f"{name}/all.csv"),
            ("results", "list"),
        ):
            command = [sys.executable, "-m", "mpigraft.cli.main", "--store", str(store.folder)]
            began = time.perf_counter()
            done = subprocess.run([*command, *words], check=False, capture_output=True, text=True)
            spent = time.perf_counter() - began
            if done.returncode:
                raise SystemExit(done.stderr[-2000:])
            print(f"{' '.join(words[: 1 + words.count('night-2')])}: {spent:.1f} s")


def add_night(store: Store, day: int) -> None:
    """One campaign of a machine, in one file."""
    rng = random.Random(day)
    campaign = f"{day:08x}-0000-4000-8000-000000000001"
    created = f"2026-{1 + day // 28:02}-{1 + day % 28:02}T02:00:00.000+00:00"
    with store.writer() as writer:
        writer.add_campaign(
            CampaignRecord(campaign, f"night-{day}", created, Origin.RUN, 1, 10, "k0", "{}", "0")
        )
        for n in range(3):
            writer.add_configuration(ConfigurationRecord(campaign, f"k{n}", f"mpi@{n}", "{}"))
        writer.add_allocation(AllocationRecord(f"a{day}", campaign, created, "n", "{}"))
        for turn in range(10):
            for slot, arm in enumerate((0, 1, 2, 0)):
                record = LaunchRecord(
                    f"{day}-{turn}-{slot}", campaign, f"a{day}", f"k{arm}", "1x2", turn, slot,
                    int(slot == 3), f"{created}{turn:04}", 1.0, 0, LaunchState.OK, (),
                )  # fmt: skip
                values = measured(rng, Shape(benchmarks=4))
                writer.add_launch(record, values, {"stdout": b"line\n" * 500})


def fill(store: Store, rounds: int, allocations: int, shape: Shape) -> int:
    rng = random.Random(1)
    launches = 0
    with store.writer() as writer:
        writer.add_campaign(
            CampaignRecord(CAMPAIGN, "speed", "2026", Origin.RUN, 1, rounds, "k0", "{}", "0")
        )
        for n in range(shape.configurations):
            writer.add_configuration(ConfigurationRecord(CAMPAIGN, f"k{n}", f"mpi@{n}", "{}"))
        for n in range(allocations):
            writer.add_allocation(AllocationRecord(f"a{n}", CAMPAIGN, f"2026-{n:04}", "n", "{}"))
        for turn in range(rounds):
            for slot, arm in enumerate((*range(shape.configurations), 0)):
                record = LaunchRecord(
                    f"{turn}-{slot}", CAMPAIGN, f"a{turn * allocations // rounds}", f"k{arm}",
                    "1x2", turn, slot, int(slot == shape.configurations), f"{turn:06}", 1.0, 0,
                    LaunchState.OK, (),
                )  # fmt: skip
                output = {"stdout": b"line of output\n" * 500}
                writer.add_launch(record, measured(rng, shape), output)
                launches += 1
    return launches


def measured(rng: random.Random, shape: Shape) -> list[Measurement]:
    return [
        Measurement(
            Benchmark("native", f"benchmark{n}"), "latency", 1 << power,
            rng.lognormvariate(power / 3, 0.12), 1.0, 0.9, 2.0, 1.5, 1.9, 1000, True,
        )
        for n in range(shape.benchmarks)
        for power in range(shape.sizes)
    ]  # fmt: skip


def fastest(action: Callable[[], T]) -> tuple[tuple[float, float], T]:
    """((wall, processor) seconds of the fastest of three passes, what it returned)."""
    best = (float("inf"), float("inf"))
    for _ in range(3):
        wall, processor = time.perf_counter(), time.process_time()
        result = action()
        best = min(best, (time.perf_counter() - wall, time.process_time() - processor))
    return best, result


if __name__ == "__main__":
    main()
