"""Whether our figures are Intel's: mpigraft-bench against IMB on the same Intel MPI.

    python evaluation/native_vs_imb.py [--launches 8] [--max 65536] [--transport shm]
                                       [--only PingPong] [--osu PATH] [--real-time]

Launches alternate, so that both meet the same disturbances. Per launch and size there is one
ratio, ours over theirs; the pooled ratio of a benchmark is the median over launches of the
geometric mean over sizes, with its 95 % interval (analysis.statistics). Both report means over
iterations and, of a collective, over ranks, with a root that changes. Exit code 1 when the
interval of PingPong leaves 0.9 to 1.1; the others are shown without a bound, because Intel's
programs do other things in them: IMB-RMA's windows lie in memory of its own (MPI_Win_create),
which Intel MPI reaches by messages, ours and OSU's in memory from MPI (MPI_Win_allocate), which
it reaches directly; and an aggregate sample has one flush for all, ours one for each window.

--osu takes a build or an installation of the OSU Micro-Benchmarks in the place of Intel's, for the
MPI that it is linked to, and times as OSU does (mpigraft-bench --like osu). On a busy machine
means say who was interrupted: run it alone, or with --real-time (root), which lets no other
process run while a launch does, and pauses between launches. The kernel takes the CPU from such
launches after 0.95 of each second: --budget 0.02 keeps ours shorter than that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpigraft.analysis.statistics import bootstrap
from mpigraft.bench.suites.registry import SUITES
from mpigraft.binary.elf import reader
from mpigraft.core import env
from mpigraft.core.model import Abi, Family, Measurement
from mpigraft.core.process.command import clean, run_command
from mpigraft.discovery.install import fetch
from mpigraft.native.programs import BENCH, PREBUILT

MARGIN = 0.10
LEAST_LAUNCHES = 8  # the fewest whose interval is worth a claim
SONAMES = {"libmpi.so.12": Family.INTEL, "libmpi.so.40": Family.OPENMPI}
ABIS = {Family.INTEL: Abi.MPICH, Family.OPENMPI: Abi.OMPI}


@dataclass(frozen=True, slots=True)
class Pair:
    """A benchmark of theirs and one of ours. `mode` is IMB-RMA's; `words` go to their program."""

    program: str
    theirs: str
    ours: str
    metric: str = "latency"
    mode: str = ""
    words: tuple[str, ...] = ()
    least: int = 1  # bytes; sums are of floats
    bound: bool = False  # whether it decides the exit code

    @property
    def name(self) -> str:
        return f"{self.theirs} {self.mode}".strip()

    @property
    def unit(self) -> str:
        return "us" if self.metric == "latency" else "MB/s"


EACH, ALL = "non-aggregate", "aggregate"  # a flush after each access, one after all
IMB = (
    Pair("IMB-MPI1", "PingPong", "latency", bound=True),
    Pair("IMB-MPI1", "Bcast", "bcast", words=("-root_shift", "on")),
    Pair("IMB-MPI1", "Allreduce", "allreduce", least=4),
    Pair("IMB-MPI1", "Alltoall", "alltoall"),
    Pair("IMB-RMA", "Unidir_put", "put_lat", mode=EACH),
    Pair("IMB-RMA", "Unidir_get", "get_lat", mode=EACH),
    Pair("IMB-RMA", "Unidir_put", "put_bw", "bandwidth", ALL),
    Pair("IMB-RMA", "Unidir_get", "get_bw", "bandwidth", ALL),
)
OSU = (
    Pair("osu_latency", "osu_latency", "latency", bound=True),
    Pair("osu_bw", "osu_bw", "bw", "bandwidth"),
    Pair("osu_bcast", "osu_bcast", "bcast"),
    Pair("osu_allreduce", "osu_allreduce", "allreduce"),
    Pair("osu_alltoall", "osu_alltoall", "alltoall"),
    Pair("osu_put_latency", "osu_put_latency", "put_lat"),
    Pair("osu_get_latency", "osu_get_latency", "get_lat"),
    Pair("osu_put_bw", "osu_put_bw", "put_bw", "bandwidth"),
    Pair("osu_get_bw", "osu_get_bw", "get_bw", "bandwidth"),
)

Sizes = dict[int, float]


@dataclass(frozen=True, slots=True)
class Machine:
    """How programs are started here. `first`: words before the launcher."""

    family: Family
    prefix: Path
    transport: str
    first: tuple[str, ...] = ()

    def launch(self, *words: str | Path) -> bytes:
        argv: list[str | Path] = [*self.first, *self._launcher(), *words]
        time.sleep(1.0 if self.first else 0.0)
        done = run_command(argv, env=self._environment(), limit_s=600)
        if not done.ok:
            raise SystemExit(f"{argv}: {done.code}\n{clean(done.stdout)}\n{clean(done.stderr)}")
        return done.stdout

    def _launcher(self) -> list[str | Path]:
        if self.family is Family.INTEL:
            return [self.prefix / "bin/mpiexec.hydra", "-n", "2"]
        bind = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "core", "--mca", "pml", "ob1"]
        return [self.prefix / "bin/mpirun", *bind, "-n", "2"]

    def _environment(self) -> dict[str, str]:
        values = {**env.base(), "LD_LIBRARY_PATH": str(self.prefix / "lib")}
        if self.family is Family.INTEL:
            lib = str(self.prefix / "lib")
            values |= {"I_MPI_ROOT": str(self.prefix), "FI_PROVIDER_PATH": lib}
            return values | {"I_MPI_FABRICS": self.transport, "FI_PROVIDER": "tcp"}
        return values | {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}


# ------------------------------------------------------------------ one launch


def imb(machine: Machine, pair: Pair, sizes: Sequence[int]) -> Sizes:
    """Means by size over 10,000 iterations, fewer from 100 KB: microseconds, or MB/s."""
    with tempfile.NamedTemporaryFile("w", suffix=".sizes") as file:
        file.write("\n".join(map(str, sizes)) + "\n")
        file.flush()
        words = ["-iter", "10000,1000", "-iter_policy", "off", "-time", "60"]  # MB per size
        program = machine.prefix / "bin" / pair.program
        text = machine.launch(program, pair.theirs, "-msglen", file.name, *words, *pair.words)
    found = SUITES["imb"].parse(text, source=pair.name).measurements
    return by_size(
        pair, (m for m in found if dict(m.benchmark.options).get("mode", "") == pair.mode)
    )


def osu(machine: Machine, pair: Pair, sizes: Sequence[int], folder: Path) -> Sizes:
    program = next(path for path in sorted(folder.rglob(pair.program)) if path.is_file())
    text = machine.launch(program, "-m", f"{sizes[0]}:{sizes[-1]}")
    return by_size(pair, SUITES["osu"].parse(text, source=pair.name).measurements)


def ours(
    machine: Machine, pair: Pair, sizes: Sequence[int], budget_s: float, like: Sequence[str]
) -> Sizes:
    program = PREBUILT / os.uname().machine / ABIS[machine.family] / BENCH
    words = ["--min", str(sizes[0]), "--max", str(sizes[-1]), "--budget", f"{1e3 * budget_s:g}"]
    text = machine.launch(program, "--benchmark", pair.ours, *words, *like)
    lines = clean(text).splitlines()
    rows = [json.loads(line) for line in lines if line.startswith('{"mpigraft":"value"')]
    return {r["size"]: r.get("rank_mean", r["mean"]) for r in rows if r["metric"] == pair.metric}


def by_size(pair: Pair, measurements: Iterable[Measurement]) -> Sizes:
    return {m.size: m.mean or m.value for m in measurements if m.metric == pair.metric}


# ------------------------------------------------------------------ all launches


@dataclass(frozen=True, slots=True)
class Line:
    """A benchmark in the summary."""

    text: str
    within: bool


def compare(pair: Pair, sizes: Sequence[int], theirs: list[Sizes], own: list[Sizes]) -> Line:
    """Print the benchmark's sizes; return its line of the summary."""
    a, b = (np.array([[row[s] for s in sizes] for row in rows]) for rows in (theirs, own))
    logs = np.log(b / a)
    print(f"\n{pair.name} and {pair.ours}, {pair.unit}")
    print(f"{'size':>8}{'theirs':>11}{'ours':>11}{'ratio':>8}  95 % interval")
    for k, size in enumerate(sizes):
        middle, low, high = interval(logs[:, k])
        print(f"{size:>8}{np.median(a[:, k]):>11.3f}{np.median(b[:, k]):>11.3f}{middle:>8.3f}"
              f"  [{low:.3f}, {high:.3f}]")  # fmt: skip
    middle, low, high = interval(logs.mean(axis=1))
    within = low >= 1 - MARGIN and high <= 1 + MARGIN
    word = "" if within else "not "
    text = f"{pair.name:<26}{middle:>7.3f}  [{low:.3f}, {high:.3f}]  {word}within +-{MARGIN:.0%}"
    return Line(text, within)


def interval(logs: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Median ratio of launches and its 95 % interval, as a comparison makes them."""
    low, high = bootstrap.interval(logs[:, None], np.zeros(len(logs), dtype=np.int64))
    return float(np.exp(np.median(logs))), float(np.exp(low[0])), float(np.exp(high[0]))


def machine_of(given: argparse.Namespace) -> Machine:
    """Intel MPI, or the MPI that the OSU build is linked to."""
    first = ("chrt", "-r", "1") if given.real_time else ()
    family = Family.INTEL
    if given.osu:
        programs = [path for path in sorted(given.osu.rglob("osu_latency")) if path.is_file()]
        if not programs:
            raise SystemExit(f"{given.osu}: no osu_latency below it; name the folder of a build")
        needed = reader.read_elf(programs[0]).needed
        families = [SONAMES[name] for name in needed if name in SONAMES]
        if not families:
            known = ", ".join(SONAMES)
            raise SystemExit(f"{programs[0]}: needs {', '.join(needed)}; none of {known}")
        family = families[0]
    return Machine(family, fetch.fetch_mpi(family), given.transport, first)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--launches", type=int, default=LEAST_LAUNCHES)
    parser.add_argument("--min", type=int, default=1)
    parser.add_argument("--max", type=int, default=65536)
    parser.add_argument("--budget", type=float, default=0.05, help="seconds per size")
    parser.add_argument("--transport", default="shm", help="I_MPI_FABRICS: shm, ofi, shm:ofi")
    parser.add_argument("--only", action="append", metavar="NAME", help="of their benchmarks")
    parser.add_argument("--osu", type=Path, metavar="PATH", help="a build or an installation")
    parser.add_argument("--real-time", action="store_true", help="before all other processes")
    given = parser.parse_args()
    if given.launches < LEAST_LAUNCHES:
        parser.error(f"--launches {given.launches}: fewer than {LEAST_LAUNCHES} decide nothing")
    return given


def main() -> int:
    given = arguments()
    machine = machine_of(given)
    sizes = [1 << k for k in range(31) if given.min <= 1 << k <= given.max]
    pairs = [p for p in (OSU if given.osu else IMB) if not given.only or p.theirs in given.only]
    theirs: dict[str, list[Sizes]] = {p.name: [] for p in pairs}
    own: dict[str, list[Sizes]] = {p.name: [] for p in pairs}
    like = ["--like", "osu"] if given.osu else []
    for number in range(given.launches):
        for pair in pairs:
            least = [s for s in sizes if s >= pair.least]
            for mine in (True, False) if number % 2 else (False, True):
                if mine:
                    own[pair.name].append(ours(machine, pair, least, given.budget, like))
                elif given.osu:
                    theirs[pair.name].append(osu(machine, pair, least, given.osu))
                else:
                    theirs[pair.name].append(imb(machine, pair, least))
    load = statistics.fmean(os.getloadavg())
    print(f"{machine.prefix.name}, {given.launches} alternated launches, load {load:.1f}")
    lines = {
        p.name: compare(p, [s for s in sizes if s >= p.least], theirs[p.name], own[p.name])
        for p in pairs
    }
    print("\nours over theirs, all sizes:", *(line.text for line in lines.values()), sep="\n")
    bound = lines.get(pairs[0].name)
    return 1 if bound and pairs[0].bound and not bound.within else 0


if __name__ == "__main__":
    sys.exit(main())
