"""How near the times of a replay are to those of the program that was recorded.

    python -m evaluation.replay_fidelity [--rounds 10] [--mpi openmpi@5] [--transport ob1-sm]
        [-n 2] -- PROGRAM [ARGUMENT]...

The program is recorded once. Then it runs by turns with its replay, in an order drawn anew each
round: `mpigraft profile` gives the program's time in each routine, `mpigraft replay` the replay's.
For each routine of 5 % and more of the program's time the table shows the median of the replay
over the median of the program, and the program's own run-to-run interval, as least and most over
its median. A ratio within 15 % of 1, or within that interval, is near. MPI_Init and MPI_Finalize
are no part of it. No more ranks than processors: else the kernel's scheduler is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MPIGRAFT = str(Path(sys.executable).parent / "mpigraft")
SHARE, NEAR = 0.05, 0.15
OUTSIDE = {"Init", "Init_thread", "Finalize"}
REST = "(outside of MPI)"
Times = Mapping[str, float]  # seconds of a routine, averaged over ranks


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--mpi", default="openmpi@5")
    parser.add_argument("--transport", default="ob1-sm")
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("words", nargs="+", metavar="PROGRAM")
    asked = parser.parse_args()
    job = ["--mpi", asked.mpi, "--transport", asked.transport]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        program = [*job, "-n", str(asked.ranks), "--", *asked.words]
        start(["record", "-o", str(folder / "it.record"), *program])
        start(["replay", str(folder / "it.record"), *job])  # prepared, proven, and warm
        taken: dict[str, list[Times]] = {"program": [], "replay": []}
        for _ in range(asked.rounds):
            for which in random.sample(sorted(taken), 2):
                times = profiled(folder, program) if which == "program" else replayed(folder, job)
                taken[which].append(times)
    return show(taken["program"], taken["replay"])


def start(words: Sequence[str]) -> str:
    done = subprocess.run(
        [MPIGRAFT, *words], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"mpigraft {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def profiled(folder: Path, program: Sequence[str]) -> Times:
    """The program's times, from its profile."""
    start(["profile", "-o", str(folder / "it.json"), *program])
    profile = json.loads((folder / "it.json").read_text(encoding="utf-8"))["profile"]
    ranks = profile["ranks"]
    times = {row["name"]: row["time_s"] / ranks for row in profile["routines"]}
    times[REST] = profile["total_s"] / ranks - sum(times.values())
    return {name: time for name, time in times.items() if name not in OUTSIDE}


def replayed(folder: Path, job: Sequence[str]) -> Times:
    """The replay's times, as it prints them."""
    times, whole = {}, 0.0
    for line in start(["replay", str(folder / "it.record"), *job, "--json"]).splitlines():
        row = json.loads(line)
        if row["mpigraft"] == "value":
            _, _, routine = row["benchmark"].partition(",routine=")
            if routine:
                times[routine] = row["mean"] / 1000
            else:
                whole = row["mean"] / 1000
    return {**times, REST: whole - sum(times.values())}


def show(programs: Sequence[Times], replays: Sequence[Times]) -> int:
    """Print a row for each routine that counts; 1 if one of them is not near."""
    middle = {name: statistics.median(run.get(name, 0) for run in programs) for name in programs[0]}
    whole = sum(middle.values())
    far = 0
    print(f"{'routine':20} {'share':>6} {'program':>10} {'replay':>10} {'ratio':>6}  run to run")
    for name in sorted(middle, key=middle.__getitem__, reverse=True):
        if middle[name] < SHARE * whole:
            continue
        runs = [run.get(name, 0) / middle[name] for run in programs]
        replay = statistics.median(run.get(name, 0) for run in replays)
        ratio, low, high = replay / middle[name], min(runs), max(runs)
        near = min(low, 1 - NEAR) <= ratio <= max(high, 1 + NEAR)
        far += not near
        times = f"{1000 * middle[name]:8.1f}ms {1000 * replay:8.1f}ms"
        print(
            f"{name:20} {100 * middle[name] / whole:5.1f}% {times} {ratio:6.2f}  "
            f"{low:.2f} to {high:.2f}{'' if near else '   FAR'}"
        )
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    print(f"{len(programs)} rounds, medians of runs; {load}")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
