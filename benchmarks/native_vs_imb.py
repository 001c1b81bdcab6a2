"""Whether our latency is Intel's: mpigraft-bench against IMB-MPI1 PingPong on the same Intel MPI.

    python benchmarks/native_vs_imb.py [--launches 20] [--max 65536] [--transport shm] [--real-time]

Launches alternate, so that both meet the same disturbances. IMB reports the mean of half a round
trip, and is compared with our mean of the same; our median is printed beside. Per launch and size
one ratio, ours over IMB's; the pooled ratio is the median over launches of the geometric mean
over sizes, with its 95 % interval (mpigraft.stats). Exit code 1 when that leaves 0.9 to 1.1. On a
busy machine means say who was interrupted: run it alone, or with --real-time (root), which lets
no other process run while a launch does, and pauses between launches.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpigraft import env, fetch, stats
from mpigraft.model import Abi, Family
from mpigraft.natives import BENCH, PREBUILT
from mpigraft.run import clean, run

MARGIN = 0.10

FIRST: list[str] = []  # words before the launcher: --real-time

Sizes = dict[int, float]


def environment(prefix: Path, transport: str) -> dict[str, str]:
    return {
        **env.base(),
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        "I_MPI_ROOT": str(prefix),
        "FI_PROVIDER_PATH": str(prefix / "lib"),
        "I_MPI_FABRICS": transport,
        "FI_PROVIDER": "tcp",
    }


def launch(prefix: Path, transport: str, *words: str | Path) -> str:
    argv: list[str | Path] = [*FIRST, prefix / "bin/mpiexec.hydra", "-n", "2", *words]
    time.sleep(1.0 if FIRST else 0.0)
    done = run(argv, env=environment(prefix, transport), limit_s=300)
    if not done.ok:
        raise SystemExit(f"{argv}: {done.code}\n{done.text()}")
    return clean(done.stdout)


def imb(prefix: Path, transport: str, sizes: list[int]) -> Sizes:
    """Mean half round trip by size, microseconds, over 10,000 round trips, fewer from 100 KB."""
    with tempfile.NamedTemporaryFile("w", suffix=".sizes") as file:
        file.write("\n".join(map(str, sizes)) + "\n")
        file.flush()
        words = ["-iter", "10000,1000", "-iter_policy", "off", "-time", "60"]  # MB per size
        program = prefix / "bin/IMB-MPI1"
        text = launch(prefix, transport, program, "PingPong", "-msglen", file.name, *words)
    rows = [line.split() for line in text.splitlines()]
    return {
        int(row[0]): float(row[2])
        for row in rows
        if len(row) == 4 and row[0].isdigit() and int(row[0]) in sizes
    }


def ours(prefix: Path, transport: str, sizes: list[int], budget_s: float) -> tuple[Sizes, Sizes]:
    """(means, medians) by size, microseconds."""
    program = PREBUILT / os.uname().machine / Abi.MPICH / BENCH
    words = ["--min", str(sizes[0]), "--max", str(sizes[-1]), "--budget", f"{1e3 * budget_s:g}"]
    text = launch(prefix, transport, program, "--benchmark", "latency", *words)
    rows = [json.loads(line) for line in text.splitlines() if '"value"' in line]
    return {r["size"]: r["mean"] for r in rows}, {r["size"]: r["value"] for r in rows}


def interval(ratios: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Pooled ratio and its 95 % interval, as a comparison makes them: the median over launches of
    each launch's geometric mean over sizes. `ratios` is launches x sizes."""
    per_launch = np.log(ratios).mean(axis=1, keepdims=True)
    low, high = stats.interval(per_launch, np.zeros(len(per_launch), dtype=np.int64))
    middle = float(np.median(per_launch))
    return float(np.exp(middle)), float(np.exp(low[0])), float(np.exp(high[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("--min", type=int, default=1)
    parser.add_argument("--max", type=int, default=65536)
    parser.add_argument("--budget", type=float, default=0.05, help="seconds per size")
    parser.add_argument("--transport", default="shm", help="I_MPI_FABRICS: shm, ofi, shm:ofi")
    parser.add_argument("--real-time", action="store_true", help="before all other processes")
    given = parser.parse_args()
    FIRST.extend(["chrt", "-r", "1"] if given.real_time else [])
    prefix = fetch.get(Family.INTEL)
    sizes = [1 << k for k in range(23) if given.min <= 1 << k <= given.max]
    theirs, means, medians = [], [], []
    for number in range(given.launches):
        if number % 2:
            theirs.append(imb(prefix, given.transport, sizes))
        mean, median = ours(prefix, given.transport, sizes, given.budget)
        means.append(mean)
        medians.append(median)
        if not number % 2:
            theirs.append(imb(prefix, given.transport, sizes))
    a, b, c = (np.array([[row[s] for s in sizes] for row in rows])
               for rows in (theirs, means, medians))  # fmt: skip
    load = os.getloadavg()[0]
    print(f"Intel MPI, {given.transport}, {given.launches} alternated launches, load {load:.1f}")
    print(f"{'size':>8}{'IMB us':>10}{'ours us':>10}{'ratio':>8}{'median us':>11}")
    for k, size in enumerate(sizes):
        ratio = np.exp(np.log(b[:, k] / a[:, k]).mean())
        print(f"{size:>8}{np.median(a[:, k]):>10.3f}{np.median(b[:, k]):>10.3f}{ratio:>8.3f}"
              f"{np.median(c[:, k]):>11.3f}")  # fmt: skip
    pooled, low, high = interval(b / a)
    agrees = low >= 1 - MARGIN and high <= 1 + MARGIN
    print(f"pooled ratio {pooled:.3f}, 95 % interval {low:.3f} to {high:.3f}: "
          f"{'agrees' if agrees else 'does not agree'} within +-{MARGIN:.0%}")  # fmt: skip
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
