"""What `mpigraft check` of a whole image costs: one MPI, all of this machine, and a repeat.

    python evaluation/check_mpis.py IMAGE [--rounds N]

By the processor time of the command and its children, best of N, since a busy machine slows the
clock; the clock is shown too. Nothing is kept at the start of a first check: each has an
MPIGRAFT_HOME of its own, with the MPIs of yours and what is known of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mpigraft.core import cache
from mpigraft.discovery import inventory

ALL_OVER_ONE, REPEAT_S = 2.0, 1.0


def check(home: Path, *words: str) -> tuple[float, float]:
    """(processor seconds, seconds by the clock) of one check."""
    before, begun = os.times(), time.perf_counter()
    argv = [sys.executable, "-m", "mpigraft.cli.entry", "check", *words]
    environment = {**os.environ, "MPIGRAFT_HOME": str(home)}
    done = subprocess.run(argv, env=environment, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.decode())
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, time.perf_counter() - begun


def fresh(base: Path) -> Path:
    """A home with nothing kept of any check."""
    home = Path(tempfile.mkdtemp(dir=base))
    (home / "mpi").symlink_to(cache.folders().data / "mpi")
    kept = shutil.ignore_patterns("verdicts-*", "searched-*", "run")
    shutil.copytree(cache.folders().cache, home / "cache", ignore=kept)
    return home


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    mpis = [m.id for m in inventory.discover_machine().mpis if m.usable]
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        one = {
            mpi: min(check(fresh(base), given.image, "--mpi", mpi) for _ in range(given.rounds))
            for mpi in mpis
        }
        homes = [fresh(base) for _ in range(given.rounds)]
        every = min(check(home, given.image) for home in homes)
        time.sleep(2.5)  # what has just been written is not trusted
        check(homes[0], given.image)
        repeat = min(check(homes[0], given.image) for _ in range(given.rounds))
    for mpi, (used, wall) in one.items():
        print(f"{mpi}: {used:.2f} s of processors, {wall:.2f} s by the clock")
    mean = sum(used for used, _ in one.values()) / len(one)
    ratio = f"{every[0] / mean:.2f} times the mean of one (bound {ALL_OVER_ONE})"
    print(f"all {len(mpis)}: {every[0]:.2f} s, {every[1]:.2f} s by the clock: {ratio}")
    print(f"again: {repeat[0]:.2f} s, {repeat[1]:.2f} s by the clock (bound {REPEAT_S})")


if __name__ == "__main__":
    main()
