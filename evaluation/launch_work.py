"""mpigraft's own work for one launch, counted, against the number of ranks.

    .venv/bin/python evaluation/launch_work.py [--ranks 1 2 4 8 16 32 64] [--mpi ID] [--json]

Counted, and not timed: processes that this process starts, files and folders that it opens
(Python's audit events) and bytes that it reads (the kernel's count: files and pipes), for a launch
of a campaign and for the second start of `mpigraft run`; and, by strace, files that the guard
opens and bytes that it reads. What launchers and ranks do is theirs. Without --program it is a
barrier of mpigraft-bench.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.core.errors import MissingError
from mpigraft.core.model import Configuration, Layout, MpiInstall
from mpigraft.core.process import run_command
from mpigraft.discovery import inventory
from mpigraft.evidence import runner
from mpigraft.launch import LaunchRequest, prepare_launch
from mpigraft.native.programs import Natives, choose_natives
from mpigraft.run.cached import start as fast

ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")
WORDS = ("--benchmark", "barrier", "--budget", "1", "--samples", "2", "--warmup", "1")
STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system"))
LISTS = frozenset(("os.listdir", "os.scandir"))
LIMIT_S = 240.0

counts: Counter[str] = Counter()


def note(event: str, values: tuple[object, ...]) -> None:
    if event in STARTS:
        counts["processes"] += 1
    elif event in LISTS:
        counts["folders"] += 1
    elif event == "open" and not isinstance(values[0], int):  # an int: it is open already
        counts["files"] += 1


@contextmanager
def counting(found: dict[str, int]) -> Iterator[None]:
    counts.clear()
    before = bytes_read()
    yield
    found |= {name: counts[name] for name in ("processes", "files", "folders")}
    found["bytes"] = bytes_read() - before


def bytes_read() -> int:
    """By read and its kin, of this thread, from its start. Not of the process: that has what its
    children read, once they have ended, and the threads that take in a program's output."""
    handle = os.open("/proc/thread-self/io", os.O_RDONLY)
    try:
        return int(os.read(handle, 1000).split()[1])  # rchar: N
    finally:
        os.close(handle)


# ------------------------------------------------------------------ what is counted


@dataclass(frozen=True, slots=True)
class Subject:
    """What is launched: an MPI, our programs for it, and nothing forced."""

    mpi: MpiInstall
    programs: Natives
    words: tuple[str, ...]
    folder: Path

    @property
    def configuration(self) -> Configuration:
        return Configuration("key", self.mpi.id, self.mpi, None)


def of_campaign(subject: Subject, ranks: int) -> dict[str, int]:
    """One measured launch, from its command line to its records."""
    found: dict[str, int] = {}
    one, layout = subject.configuration, Layout(ranks_per_node=ranks, bind="none")
    with runner.make_starter({one.key: subject.programs}) as start, counting(found):
        launched = start(one, layout, subject.words, LIMIT_S, False)
    ended, records = launched.completed, launched.ranks
    assert ended.ok, ended.text()
    assert sorted(r.rank for r in records) == list(range(ranks)), records
    return found


def of_run(subject: Subject, ranks: int) -> dict[str, int]:
    """The second start of a job: nothing but what `mpigraft run` does once it knows its words."""
    words = ["--mpi", subject.mpi.id, "-n", str(ranks), "--", *subject.words]
    first = run_command(
        [*ENTRY, *words], env=os.environ, limit_s=LIMIT_S
    )  # it plans, and keeps that
    assert first.ok, first.text()
    found: dict[str, int] = {}
    judged: list[tuple[str, str, int]] = []

    def judge(key: str, folder: str, failed: int) -> bool:
        judged.append((key, folder, failed))
        return False

    out = os.dup(1)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
    try:
        with counting(found):
            code = fast.start_kept(words, os.environ, judge)
    finally:
        os.dup2(out, 1)
        os.close(out)
    assert code == 0, code
    found["judged in full"] = len(judged)
    return found


def of_guard(subject: Subject, ranks: int) -> dict[str, int]:
    """The guard alone, by strace: ranks and launcher are not followed."""
    records = subject.folder / f"records-{ranks}"
    records.mkdir()
    request = LaunchRequest(
        subject.configuration,
        Layout(ranks_per_node=ranks, bind="none"),
        subject.words,
        natives=subject.programs,
        witness=records,
        limit_s=LIMIT_S,
        cwd=subject.folder,
    )
    made = prepare_launch(request)
    trace = subject.folder / f"trace-{ranks}"
    calls = "trace=open,openat,read,pread64,getdents64,fork,vfork,clone,clone3"
    strace = ["strace", "-D", "-qq", "-s", "0", "-e", calls, "-o", str(trace)]  # -D: no parent
    ended = run_command([*strace, *made.argv], env=dict(made.env), cwd=made.cwd, limit_s=LIMIT_S)
    assert ended.ok, ended.text()
    lines = trace.read_text(errors="replace").splitlines()
    read = (re.match(r"(?:read|pread64|getdents64)\(.*= (\d+)$", line) for line in lines)
    return {
        "processes": sum(bool(re.match(r"(?:v?fork|clone3?)\(.*= \d+$", line)) for line in lines),
        "files": sum(bool(re.match(r"open(?:at)?\(.*= \d+$", line)) for line in lines),
        "bytes": sum(int(match[1]) for match in read if match),
    }


PARTS: Mapping[str, Callable[[Subject, int], dict[str, int]]] = {
    "launch of a campaign": of_campaign,
    "second mpigraft run": of_run,
    "guard": of_guard,
}


def measured(
    mpi: str, ranks: Sequence[int], program: str = ""
) -> dict[str, dict[int, dict[str, int]]]:
    """{part: {ranks: {what: count}}}. The first launch of each part is not counted: it loads what
    all have in common. Raises MissingError without that MPI."""
    machine = inventory.discover_machine()
    chosen = next((m for m in machine.mpis if m.id.startswith(mpi)), None)
    if chosen is None:
        raise MissingError(f"{mpi} is not here", fix=f"mpigraft get {mpi}")
    found: dict[str, dict[int, dict[str, int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ours = choose_natives(chosen, machine.cpu.architecture)
        words = (program,) if program else (str(ours.bench), *WORDS)
        subject = Subject(chosen, ours, words, Path(folder))
        for part, count in PARTS.items():
            if part == "guard" and not shutil.which("strace"):
                continue
            warm = replace(subject, folder=Path(folder) / part)
            warm.folder.mkdir()
            count(warm, 2)
            found[part] = {n: count(subject, n) for n in ranks}
            shutil.rmtree(warm.folder)
            for path in subject.folder.glob("*-*"):
                shutil.rmtree(path, ignore_errors=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--mpi", default="mpich@5")
    parser.add_argument("--program", default="", help="another one, of the same MPI's ABI")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    sys.addaudithook(note)
    found = measured(given.mpi, given.ranks, given.program)
    if given.json:
        print(json.dumps(found))
        return 0
    for part, rows in found.items():
        print(part)
        for ranks, row in rows.items():
            print(f"    {ranks:3} ranks: " + ", ".join(f"{n} {what}" for what, n in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
