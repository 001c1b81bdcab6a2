"""What `mpigraft run` costs over the same command line written by hand.

    .venv/bin/python evaluation/run_cost.py [--starts 21] [--image GUEST] [--refused MPI]
        -- PROGRAM [ARGUMENT]...

The line by hand is what `--dry-run` prints: launcher, engine, environment,
program. Starts alternate, in an order drawn anew each time, and medians count. Files opened and
bytes read are those of one rank, seen by strace, from its start to its end; the parent's are told
apart. With e4s-cl (PyPI) in PATH, the same program is started by it too. A "first" start has words
that no start had before, and what is known of the MPIs is kept. `--refused` names an MPI that does
not fit: its refusals are timed too.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

MPIGRAFT = str(Path(sys.executable).parent / "mpigraft")
OPENED = re.compile(r'open(?:at)?\(.*"[^"]+".*\)\s+= \d+')
NEW, NUMBERS = "{n}", itertools.count(time.time_ns())  # stands for a word that is new each time
REFUSED = 1  # exit code
READ = re.compile(r"(?:read|pread64)\(\d+, .*\)\s+= (\d+)$")


def by_hand(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command line and environment that `--dry-run` shows."""
    shown = subprocess.run(
        [MPIGRAFT, "run", "--dry-run", *words], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    environ = dict(os.environ)
    for line in shown[:-1]:
        word, _, rest = line.partition(" ")
        name, _, value = rest.partition("=")
        if word == "unset":
            environ.pop(name, None)
        else:
            environ[name] = shlex.split(value)[0] if value else ""
    return shlex.split(shown[-1]), environ


def start(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Seconds of one start: on the clock, and of processors, which others disturb less."""
    words = [word.replace(NEW, str(next(NUMBERS))) for word in argv]
    began, used = time.perf_counter(), processors()
    done = subprocess.run(
        words, check=False, capture_output=True, env=environ, stdin=subprocess.DEVNULL
    )
    if done.returncode not in (0, REFUSED):
        raise SystemExit(done.stderr.decode())
    return time.perf_counter() - began, processors() - used


def processors() -> float:
    seen = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seen.ru_utime + seen.ru_stime


def times(lines: Mapping[str, tuple[Sequence[str], Mapping[str, str]]], starts: int) -> None:
    """Start each line in turn and print medians, and what each costs over the first."""
    for argv, environ in lines.values():
        start(argv, environ)  # the plan, the proof, and warm pages
        start(argv, environ)
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    order = list(lines)
    for _ in range(starts):
        random.shuffle(order)
        for name in order:
            taken[name].append(start(*lines[name]))
    hand = next(iter(lines))
    for name in lines:
        wall, cpu = (statistics.median(x) for x in zip(*taken[name], strict=True))
        pairs = [(a[0] - b[0], a[1] - b[1]) for a, b in zip(taken[name], taken[hand], strict=True)]
        more_wall, more_cpu = (1000 * statistics.median(x) for x in zip(*pairs, strict=True))
        more = f", costs {more_wall:+.0f} ms, {more_cpu:+.0f} ms" if name != hand else ""
        clock, used = f"{1000 * wall:6.0f} ms on the clock", f"{1000 * cpu:5.0f} ms of processors"
        print(f"{name:14} {clock}, {used}{more}")
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    print(f"{starts} starts each, medians; {load}")


def traced(argv: Sequence[str], environ: Mapping[str, str], program: str) -> None:
    """Print, for rank 0's process and for all that is not a rank, files opened and bytes read."""
    with tempfile.TemporaryDirectory() as folder:
        trace = ["strace", "-ff", "-qq", "-s", "0", "-o", f"{folder}/t"]
        calls = "trace=openat,open,read,pread64,execve"
        subprocess.run([*trace, "-e", calls, *argv], check=True, capture_output=True, env=environ)
        ranks, others = [], [0, 0]
        for file in sorted(Path(folder).iterdir()):
            opened, read, is_rank = counted(file.read_text(errors="replace"), program)
            if is_rank:
                ranks.append((opened, read))
            else:
                others = [others[0] + opened, others[1] + read]
    for number, (opened, read) in enumerate(ranks):
        print(f"    rank process {number}: {opened} files opened, {read / 1024:.0f} KiB read")
    print(f"    all others: {others[0]} files opened, {others[1] / 1024:.0f} KiB read")


def counted(text: str, program: str) -> tuple[int, int, bool]:
    """(files opened, bytes read, whether the process became the program) of one strace file,
    from the first execve of a rank's own words on: what launchers do before is theirs."""
    lines = text.splitlines()
    mine = [n for n, line in enumerate(lines) if line.startswith("execve") and " = 0" in line]
    last = [n for n in mine if program in lines[n]]
    rank = bool(last)
    begin = mine[0] if rank else 0
    opened = sum(1 for line in lines[begin:] if OPENED.search(line))
    read = sum(int(m[1]) for line in lines[begin:] if (m := READ.search(line)))
    return opened, read, rank


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=21)
    parser.add_argument("--image")
    parser.add_argument("--mpi", default="openmpi@5")
    parser.add_argument("--transport", default="ob1-sm")
    parser.add_argument("--refused", help="an MPI that does not fit the program")
    parser.add_argument("-n", default="2")
    parser.add_argument("--peer-profile", help="of e4s-cl, made by `e4s-cl init`")
    parser.add_argument("program", nargs="+")
    given = parser.parse_args()
    image = ["--image", given.image] if given.image else []
    words = [*image, "--mpi", given.mpi, "--transport", given.transport, "-n", given.n, "--"]
    words += given.program
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([MPIGRAFT, "run", *words], check=True, capture_output=True, env=environ)
    argv, plain = by_hand(words)
    print(shlex.join(argv))
    lines: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
        "by hand": (argv, plain),
        "mpigraft run": ([MPIGRAFT, "run", *words], environ),
    }
    first = ["--env", f"MPIGRAFT_COST={NEW}"]
    lines["first start"] = ([MPIGRAFT, "run", *first, *words], environ)
    if given.refused:
        refused = [*image, "--mpi", given.refused, "-n", given.n, "--", *given.program]
        lines["first refusal"] = ([MPIGRAFT, "run", *first, *refused], environ)
        lines["refusal again"] = ([MPIGRAFT, "run", *refused], environ)
    if given.peer_profile and (peer := shutil.which("e4s-cl")):
        lines["e4s-cl"] = (peer_line(peer, argv, given.peer_profile, given.program), plain)
    times(lines, given.starts)
    if shutil.which("strace"):
        name = Path(given.program[0]).name
        for label in ("by hand", "mpigraft run"):
            print(f"{label}, by strace:")
            traced(*lines[label], name)
    return 0


def peer_line(peer: str, argv: Sequence[str], profile: str, program: Sequence[str]) -> list[str]:
    """The same job by e4s-cl: the launcher's words go before its `--`, the program after it."""
    launcher = argv[: next(n for n, word in enumerate(argv) if word.endswith("/env"))]
    return [peer, "launch", "--profile", profile, *launcher, "--", *program]


if __name__ == "__main__":
    sys.exit(main())
