"""How long 10,000 OSU files take to import, and how much memory.

    python evaluation/import_speed.py [--files 10000] [--folder FOLDER]

Writes files as `osu_*` prints them (5 configurations, 8 layouts, 10 benchmarks, 23 sizes), then
starts `mpigraft import` with a pattern, the same again, `compare`, `report` and `export` of the
campaign, and the import of what was exported.
The bar is 60 s and 300 MiB on two cores for the first.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIGURATIONS = ("cray-mpich", "cray-mpich-ucx", "openmpi", "mpich", "intel")
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
TITLES = {
    "allreduce": "Allreduce", "alltoall": "All-to-All Personalized Exchange",
    "allgather": "Allgather", "bcast": "Broadcast", "reduce": "Reduce", "gather": "Gather",
    "scatter": "Scatter", "reduce_scatter": "Reduce_scatter", "alltoallv":
    "All-to-Allv Personalized Exchange", "allgatherv": "Allgatherv",
}  # fmt: skip
PATTERN = "{configuration}/osu_{benchmark}_{nodes}nodes_{ranks}processes_{date}.dat"
MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        fill(folder / "files", given.files)
        store = ("--store", str(folder / "store"))
        words = ("import", str(folder / "files"), "--pattern", PATTERN, "--campaign", "speed")
        print(f"import of {given.files} files: {timed(*store, *words)} (bar: 60 s, 300 MiB)")
        size = sum(path.stat().st_size for path in (folder / "store").iterdir())
        print(f"the store: {size / MIB:.0f} MiB")
        for title, command in (
            ("the same again", words),
            ("compare", ("compare", "speed")),
            ("report", ("report", "speed", "--output", str(folder / "page.html"))),
            ("export as CSV", ("export", "speed", "--output", str(folder / "all.csv"))),
        ):
            print(f"{title}: {timed(*store, *command)}")
        again = timed("--store", str(folder / "again"), "import", str(folder / "all.csv"))
        print(f"import of the CSV: {again}")


def fill(folder: Path, files: int) -> None:
    rng = random.Random(1)
    for number in range(files):
        configuration = CONFIGURATIONS[number % 5]
        nodes = NODES[number // 5 % 8]
        benchmark, title = list(TITLES.items())[number // 40 % 10]
        date = f"202201{1 + number // 400:02}1200"
        name = f"osu_{benchmark}_{nodes}nodes_{nodes * 128}processes_{date}.dat"
        path = folder / configuration / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(table(title, nodes, rng))


def table(title: str, nodes: int, rng: random.Random) -> str:
    lines = [f"== Nodes = {nodes}", f"== Processes = {nodes * 128}", ""]
    lines += [f"# OSU MPI {title} Latency Test v5.9", "# Size       Avg Latency(us)"]
    for power in range(23):
        value = (1 + (1 << power) / 4096) * nodes**0.5 * rng.lognormvariate(0, 0.1)
        lines.append(f"{1 << power:<10}{value:18.2f}")
    return "\n".join(lines) + "\n"


def timed(*words: str) -> str:
    """Seconds, seconds of processor time, and the peak memory of this command and all before."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "mpigraft.cli.main", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    wall = time.perf_counter() - began
    return f"{wall:.1f} s ({spent:.1f} s of processor time), {after.ru_maxrss / 1024:.0f} MiB"


if __name__ == "__main__":
    main()
