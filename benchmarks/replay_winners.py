"""Whether a program and its replay name the same transport as the faster one.

    python -m benchmarks.replay_winners [--mpi openmpi@5] [--transports ob1-sm ofi-lnx]
        [--benchmark bw] [--sizes 256 4096] [--rounds 10]

Each pattern is a program of two ranks: `mpigraft-bench` at one size with a fixed number of
iterations; of `bw` each streams 64 messages. It is recorded on the first transport. Then one
campaign measures program and replay over both transports, in the same rounds. The table gives the
second transport over the first: programs in MB/s, above 1 is faster; replays in ms, below 1 is.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mpigraft.native.programs import PREBUILT

MPIGRAFT = str(Path(sys.executable).parent / "mpigraft")
ITERATIONS = "10000"
FIGURE = '"metric":"bandwidth".*?"value":([0-9.e+]+)'


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mpi", default="openmpi@5")
    parser.add_argument("--transports", nargs=2, default=["ob1-sm", "ofi-lnx"])
    parser.add_argument("--benchmark", default="bw")
    parser.add_argument("--sizes", nargs="+", type=int, default=[256, 4096])
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    abi = "ompi" if asked.mpi.startswith("openmpi") else "mpich"
    program = str(PREBUILT / platform.machine() / abi / "mpigraft-bench")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tables = []
        for size in asked.sizes:
            words = [
                program, "--benchmark", asked.benchmark, "--min", str(size), "--max", str(size),
                "--iterations", ITERATIONS, "--no-validate", "--format", "json",
            ]  # fmt: skip
            on = ["--mpi", asked.mpi, "--transport", asked.transports[0], "-n", "2"]
            start(["record", "-o", str(folder / f"{size}.record"), *on, "--", *words])
            tables.append(table_of(str(size), words))
        (folder / "campaign.toml").write_text(campaign_of(asked, folder, tables), encoding="utf-8")
        store = ["--store", str(folder / "results")]
        rounds = ["--rounds", str(asked.rounds), "--name", "winners"]
        start([*store, "bench", str(folder / "campaign.toml"), *rounds])
        compared = json.loads(start([*store, "compare", "winners", "--json"]))
    return show(compared, asked.sizes)


def start(words: list[str]) -> str:
    done = subprocess.run(
        [MPIGRAFT, *words], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"mpigraft {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def table_of(name: str, words: list[str]) -> str:
    return f"""
[app.stream-{name}]
command = {json.dumps(words)}
figure = '{FIGURE}'
unit = "MB/s"
better = "higher"
"""


def campaign_of(asked: argparse.Namespace, folder: Path, tables: list[str]) -> str:
    names = [f"app:stream-{size}" for size in asked.sizes]
    names += [f"app:{folder / f'{size}.record'}" for size in asked.sizes]
    return f"""
mpi = [{json.dumps(asked.mpi)}]
transport = {json.dumps(asked.transports)}
layout = ["1x2"]
benchmark = {json.dumps(names)}
{"".join(tables)}"""


def show(compared: dict[str, Any], sizes: list[int]) -> int:
    """Print a row for each pattern; 1 unless program and replay have the same verdict each time,
    and one."""
    wrong = 0
    print(f"{'size':>8}  {'of':8} {'ratio':>7}  95 % interval      verdict")
    for size in sizes:
        verdicts = set()
        for one in compared["comparisons"]:
            if "routine=" in one["benchmark"]:
                continue
            replay = f"{size}.record" in one["benchmark"]
            if not replay and one["benchmark"] != f"app:stream-{size}":
                continue
            low, high = one["pooled_low"], one["pooled_high"]
            bounds = "-" if low is None else f"{low:.3f} to {high:.3f}"
            what = "replay" if replay else "program"
            print(f"{size:8}  {what:8} {one['pooled']:7.3f}  {bounds:17}  {one['curve']}")
            verdicts.add(one["curve"])
        wrong += not verdicts or len(verdicts) > 1 or bool(verdicts - {"faster", "slower"})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
