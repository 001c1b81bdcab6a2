"""What `mpigraft profile` and `mpigraft record` add to a call of MPI.

    python benchmarks/trace_cost.py [--rounds 10]

A program of one rank makes millions of calls that do next to nothing, without the tracing library
and with it, by turns. What a call costs more is the difference of the least of the rounds: nothing
makes a call faster than it is, and other processes make it slower. Published for mpiP:
110 ns. `two reads` is what the counter itself takes, which is read before and after each call.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from mpigraft.core.model import Family
from mpigraft.discovery.install import fetch
from mpigraft.native.programs import PREBUILT, TRACE

MODES = {"none": None, "profile": "", "sites": "sites", "record": "record"}
ABIS = {Family.OPENMPI: "ompi", Family.MPICH: "mpich"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    for family, abi in ABIS.items():
        prefix = fetch.fetch_mpi(family)
        library = PREBUILT / platform.machine() / abi / TRACE
        with tempfile.TemporaryDirectory() as scratch:
            measure(prefix, library, Path(scratch), rounds)
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
