"""What `mpigraft profile` and `mpigraft record` add to a call of MPI, or to an application.

    python -m evaluation.trace_cost [--rounds 10]
    python -m evaluation.trace_cost [--rounds 20] [--ranks 8] [--only profile] -- PROGRAM...

A program of one rank makes millions of calls that do next to nothing, without the tracing library
and with it, by turns. What a call costs more is the difference of the least of the rounds: nothing
makes a call faster than it is, and other processes make it slower. Published for mpiP:
110 ns.

An application runs by turns without the library, with it for a profile, and for a record, under
the launcher of Open MPI 5, as `mpigraft run` would start it. What it costs more is the geometric
mean of the ratios of the runs of a round, of wall time and of processor time, with the 95 %
interval of a bootstrap over rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from evaluation.run_cost import by_hand, start
from mpigraft.core.model import Family
from mpigraft.discovery.install import fetch
from mpigraft.native.programs import PREBUILT, TRACE

MODES = {"none": None, "profile": "", "sites": "sites", "record": "record"}
APPLICATION_MODES = ("profile", "record")
ABIS = {Family.OPENMPI: "ompi", Family.MPICH: "mpich"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--only", choices=APPLICATION_MODES, help="of an application")
    parser.add_argument("words", nargs="*", metavar="PROGRAM")
    asked = parser.parse_args()
    rounds = asked.rounds
    if asked.words:
        modes = [asked.only] if asked.only else APPLICATION_MODES
        return measure_application(asked.words, modes, asked.ranks, rounds)
    for family, abi in ABIS.items():
        prefix = fetch.fetch_mpi(family)
        library = PREBUILT / platform.machine() / abi / TRACE
        with tempfile.TemporaryDirectory() as scratch:
            measure(prefix, library, Path(scratch), rounds)
    return 0


def measure_application(
    words: Sequence[str], traced_modes: Sequence[str], ranks: int, rounds: int
) -> int:
    """Print what an application takes longer, in percent."""
    library = PREBUILT / platform.machine() / ABIS[Family.OPENMPI] / TRACE
    line, own = by_hand(["--mpi", "openmpi@5", "-n", str(ranks), "--", *words])
    launcher = [*line[: -len(words)], "env"]
    modes = ["none", *traced_modes]
    taken: dict[str, list[tuple[float, float]]] = {mode: [] for mode in modes}
    start([*launcher, *words], own)  # warm pages
    for _ in range(rounds):
        for mode in random.sample(modes, len(modes)):
            with tempfile.TemporaryDirectory() as folder:
                traced = [
                    f"LD_PRELOAD={library}",
                    f"MPIGRAFT_TRACE={folder}",
                    f"MPIGRAFT_TRACE_OPTIONS={MODES[mode]}",
                ]
                settings = traced if mode != "none" else []
                taken[mode].append(start([*launcher, *settings, *words], own))
    plain = np.array(taken["none"])
    print(f"{ranks} ranks, {rounds} rounds, {np.median(plain[:, 0]):.2f} s without: % more")
    for mode in modes[1:]:
        logs = np.log(np.array(taken[mode]) / plain)
        draws = np.random.default_rng(1).integers(rounds, size=(10_000, rounds))
        low, high = np.quantile(logs[draws].mean(axis=1), [0.025, 0.975], axis=0)
        rows = zip(("wall", "processor"), logs.mean(axis=0), low, high, strict=True)
        shown = [
            f"{name} time {100 * np.expm1(m):+.2f} [{100 * np.expm1(a):+.2f}, "
            f"{100 * np.expm1(b):+.2f}]" for name, m, a, b in rows
        ]  # fmt: skip
        print(f"  {mode:8} {', '.join(shown)}")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    return 0


def measure(prefix: Path, library: Path, folder: Path, rounds: int) -> None:
    """Print nanoseconds of a call for each mode, and what it is more than without."""
    program = folder / "trace_cost"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    source = Path(__file__).with_name("trace_cost.c")
    wrapper = [str(prefix / "bin" / "mpicc"), "-O2", str(source), "-o", str(program)]
    subprocess.run(wrapper, check=True, env=environment)
    times: dict[str, list[list[float]]] = {mode: [] for mode in MODES}
    for index in range(rounds):
        for mode, options in MODES.items():
            records = folder / f"{mode}-{index}"
            records.mkdir()
            traced = {
                "LD_PRELOAD": str(library),
                "MPIGRAFT_TRACE": str(records),
                "MPIGRAFT_TRACE_OPTIONS": options or "",
            }
            own = environment if options is None else environment | traced
            done = subprocess.run([program], check=True, env=own, capture_output=True, text=True)
            times[mode].append([float(word) for word in done.stdout.split()])
    print(f"{prefix.name}: ns of a call, and what is added")
    plain = [min(column) for column in zip(*times["none"], strict=True)]
    for mode, values in times.items():
        least = [min(column) for column in zip(*values, strict=True)]
        probe, message = (f"{m:8.1f} {m - p:+8.1f}" for m, p in zip(least, plain, strict=True))
        print(f"  {mode:8}  Iprobe {probe}   Isend, Irecv, Waitall {message}")


if __name__ == "__main__":
    sys.exit(main())
