"""How long `mpigraft --help` takes: a command that answers at once is used, a slow one is not.

The bound is 0.15 s. A busy machine is slower at everything, so the ratio to `python -c pass` is
printed too, and is what to compare between machines. Starts alternate, and the median counts.

    .venv/bin/python evaluation/help_speed.py [STARTS]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

BOUND_S = 0.15
BIN = Path(sys.executable).parent
COMMANDS: dict[str, list[str]] = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "mpigraft --version": [str(BIN / "mpigraft"), "--version"],
    "mpigraft --help": [str(BIN / "mpigraft"), "--help"],
}


def start(argv: list[str]) -> float:
    """Seconds of one start, byte code kept as in any install."""
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run(argv, check=True, capture_output=True, env=environ)
    return time.perf_counter() - began


def main(starts: int) -> int:
    for argv in COMMANDS.values():
        start(argv)  # fills the page cache and the byte code
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(starts):
        for name, argv in COMMANDS.items():
            times[name].append(start(argv))
    bare = statistics.median(times["python -c pass"])
    print(f"{starts} starts each, Python {sys.version.split()[0]}")
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:20} median {median:.3f} s  least {min(taken):.3f} s  x{median / bare:.1f}")
    median = statistics.median(times["mpigraft --help"])
    print(f"bound {BOUND_S} s: {'kept' if median < BOUND_S else 'BROKEN'}")
    return 0 if median < BOUND_S else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 21))
