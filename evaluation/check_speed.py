"""How many ELF files of a whole image are read, resolved and linked in a second.

    python evaluation/check_speed.py [ROOT...] [--workers N]

For every program of a root: its closure as its own loader would have it, then all version nodes
and symbols that would be missing. Libraries that no program needs are linked for themselves, so
that every file's symbols are looked at. Each pass in fresh processes, their start left out, with
the page cache warm; best of three. By CPU time (of several processes the one that took longest)
and by the clock, which a busy machine slows down. `lacking` shows that something was linked:
modules of interpreters lack, by themselves, what the interpreter has.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.loader import dependencies, symbols
from mpigraft.cli.entry import collect_seldom

PASSES = 3


def linked(root: FolderRoot, path: str) -> tuple[list[Elf], int]:
    """(objects, what they lack) of one program or library."""
    rows = [r for r in dependencies.closure(path, environment={}, root=root) if r.elf]
    objects = [root.elf(path), *(r.elf for r in rows if r.elf)]
    unmet = symbols.unmet_versions(objects, [path, *(r.name for r in rows)])
    return objects, len(unmet) + len(symbols.unbound_symbols(objects))


def check(folder: str, share: int, shares: int) -> tuple[float, int, int, int]:
    """(CPU seconds, ELF files, programs, what they lack) of one share of a root."""
    collect_seldom()  # as the command does
    begun = time.process_time()
    root = FolderRoot(Path(folder))
    elves: dict[str, Elf] = {}
    for number, entry in enumerate(root.files()):
        if number % shares == share:
            try:
                elves[entry.path] = root.elf(entry.path)
            except ElfError:
                continue
    programs = [path for path, facts in elves.items() if facts.interpreter]
    lacking, done = 0, set()
    for path in [*programs, *elves]:
        if path not in done:
            objects, lost = linked(root, path)
            done |= {path, *(facts.name for facts in objects)}
            lacking += lost
    return time.process_time() - begun, len(elves), len(programs), lacking


def timed(folder: str, workers: int) -> tuple[float, float, tuple[int, ...]]:
    """(CPU seconds, seconds by the clock, sums of what `check` counts)."""
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(abs, range(workers * 4)))
        begun = time.perf_counter()
        shares = range(workers)
        found = list(pool.map(check, [folder] * workers, shares, [workers] * workers))
        wall = time.perf_counter() - begun
    seconds, files, programs, lacking = zip(*found, strict=True)
    return max(seconds), wall, (sum(files), sum(programs), sum(lacking))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="*", default=["/"])
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    for folder in given.root:
        for workers in sorted({1, given.workers}):
            passes = [timed(folder, workers) for _ in range(PASSES)]
            (cpu, _, (files, programs, lacking)), wall = min(passes), min(p[1] for p in passes)
            print(f"{folder}, {workers} processes: {files} ELF files, {programs} programs, "
                  f"{lacking} lacking: {files / cpu:.0f} files/s by CPU time, "
                  f"{files / wall:.0f} by the clock")  # fmt: skip


if __name__ == "__main__":
    main()
