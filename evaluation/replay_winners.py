"""Whether a program and its replay name the same transport as the faster one.

    python -m evaluation.replay_winners [--mpi openmpi@5] [--transports ob1-sm ofi-lnx]
        [--rounds 10] [latency:8 bw:4096 ...]

Each pattern is a program of two ranks: `mpigraft-bench` with one benchmark at one size and a fixed
number of iterations; of `bw` each streams 64 messages. It is recorded on the first transport. Then
one campaign measures program and replay over both transports, in the same rounds. The table gives
the second transport over the first: of a program's bandwidth above 1 is faster, of its latency
and of every replay, which is timed, below 1 is.
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
PATTERNS = ["latency:8", "alltoallv:64", "bw:128", "bw:4096"]
STREAMS = ("bw", "bibw")  # whose figure is a bandwidth; that of all others is a latency


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mpi", default="openmpi@5")
    parser.add_argument("--transports", nargs=2, default=["ob1-sm", "ofi-lnx"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("patterns", nargs="*", default=PATTERNS, metavar="BENCHMARK:BYTES")
    asked = parser.parse_args()
    abi = "ompi" if asked.mpi.startswith("openmpi") else "mpich"
    program = str(PREBUILT / platform.machine() / abi / "mpigraft-bench")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        tables = []
        for pattern in asked.patterns:
            benchmark, size = pattern.split(":")
            words = [
                program, "--benchmark", benchmark, "--min", size, "--max", size,
                "--iterations", ITERATIONS, "--no-validate", "--format", "json",
            ]  # fmt: skip
            on = ["--mpi", asked.mpi, "--transport", asked.transports[0], "-n", "2"]
            start(["record", "-o", str(record_of(folder, pattern)), *on, "--", *words])
            tables.append(table_of(pattern, words))
        (folder / "campaign.toml").write_text(campaign_of(asked, folder, tables), encoding="utf-8")
        store = ["--store", str(folder / "results")]
        rounds = ["--rounds", str(asked.rounds), "--name", "winners"]
        start([*store, "bench", str(folder / "campaign.toml"), *rounds])
        compared = json.loads(start([*store, "compare", "winners", "--json"]))
    return show(compared, asked.patterns)


def start(words: list[str]) -> str:
    done = subprocess.run(
        [MPIGRAFT, *words], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"mpigraft {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def record_of(folder: Path, pattern: str) -> Path:
    return folder / f"{name_of(pattern)}.record"


def name_of(pattern: str) -> str:
    return pattern.replace(":", "-")


def table_of(pattern: str, words: list[str]) -> str:
    stream = pattern.split(":", maxsplit=1)[0] in STREAMS
    metric, unit, better = ("bandwidth", "MB/s", "higher") if stream else ("latency", "us", "lower")
    return f"""
[app.{name_of(pattern)}]
command = {json.dumps(words)}
figure = '"metric":"{metric}".*?"value":([0-9.e+]+)'
unit = "{unit}"
better = "{better}"
"""


def campaign_of(asked: argparse.Namespace, folder: Path, tables: list[str]) -> str:
    names = [f"app:{name_of(pattern)}" for pattern in asked.patterns]
    names += [f"app:{record_of(folder, pattern)}" for pattern in asked.patterns]
    return f"""
mpi = [{json.dumps(asked.mpi)}]
transport = {json.dumps(asked.transports)}
layout = ["1x2"]
benchmark = {json.dumps(names)}
{"".join(tables)}"""


def show(compared: dict[str, Any], patterns: list[str]) -> int:
    """Print two rows for each pattern; 1 unless program and replay have the same verdict each
    time, and name a winner."""
    wrong = 0
    print(f"{'pattern':14}  {'of':8} {'ratio':>7}  95 % interval     verdict")
    for pattern in patterns:
        verdicts = set()
        for one in compared["comparisons"]:
            benchmark = one["benchmark"]
            if "routine=" in benchmark:
                continue
            replay = f"{name_of(pattern)}.record" in benchmark
            if not replay and benchmark != f"app:{name_of(pattern)}":
                continue
            low, high = one["pooled_low"], one["pooled_high"]
            bounds = "-" if low is None else f"{low:.3f} to {high:.3f}"
            what = "replay" if replay else "program"
            print(f"{pattern:14}  {what:8} {one['pooled']:7.3f}  {bounds:16}  {one['curve']}")
            verdicts.add(one["curve"])
        wrong += not verdicts or len(verdicts) > 1 or bool(verdicts - {"faster", "slower"})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
