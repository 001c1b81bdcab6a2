"""How many ELF files a second are read, with their symbols and without, and pyelftools beside.

    python evaluation/elf_speed.py [FOLDER...]

Takes every ELF file of the folders (default: the system's libraries and programs), reads them
once to warm the page cache, then times whole passes; each figure is the best of three. Figures
of one process are by its CPU time, those of several by the clock, which a busy machine slows
down. The ratio to pyelftools is over one and the same sample, in turns, in this one run.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from mpigraft.binary.elf import reader
from mpigraft.binary.elf.tables import ElfError

DEFAULT = (f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/bin")
PASSES = 3
SAMPLE = 40


def facts(path: Path) -> int:
    return len(reader.read_elf(path).needed)


def symbols(path: Path) -> int:
    read = reader.read_elf(path)
    return len(read.imported) + len(read.exported)


def pyelftools(path: Path) -> int:
    """The same work: names of dynamic symbols, and the version of each."""
    count = 0
    with path.open("rb") as stream:
        file = ELFFile(stream)
        table = file.get_section_by_name(".dynsym")
        versions = file.get_section_by_name(".gnu.version")
        if isinstance(table, SymbolTableSection):
            for number, symbol in enumerate(table.iter_symbols()):
                count += bool(symbol.name)
                if isinstance(versions, GNUVerSymSection):
                    versions.get_symbol(number)
    return count


def collect(folders: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for folder in folders:
        for path in folder.rglob("*") if folder.is_dir() else ():
            try:
                if path.is_file() and reader.read_elf(path).dynamic:
                    found[path.resolve()] = None
            except (ElfError, OSError):
                continue
    return sorted(found)


def timed(work: Callable[[Path], int], files: Sequence[Path]) -> tuple[float, int]:
    """(CPU seconds, what was counted) of one pass."""
    begun = time.process_time()
    total = sum(map(work, files))
    return time.process_time() - begun, total


def parallel(files: Sequence[Path], workers: int) -> float:
    """Seconds of one pass with symbols over several processes, their start left out."""
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(facts, files[: 4 * workers]))
        begun = time.perf_counter()
        sum(pool.map(symbols, files, chunksize=50))
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="*", type=Path, default=[Path(d) for d in DEFAULT])
    files = collect(parser.parse_args().folder)
    plain = min(timed(facts, files)[0] for _ in range(PASSES))
    runs = [timed(symbols, files) for _ in range(PASSES)]
    whole, count = min(runs)
    workers = len(os.sched_getaffinity(0))
    wide = min(parallel(files, workers) for _ in range(PASSES))
    print(f"{len(files)} files, {count} symbols")
    print(f"without symbols, 1 process: {len(files) / plain:.0f} files/s")
    print(f"with symbols, 1 process:    {len(files) / whole:.0f} files/s, "
          f"{count / whole / 1e6:.2f} million symbols/s")  # fmt: skip
    print(f"with symbols, {workers} processes:  {len(files) / wide:.0f} files/s")
    sample = files[:: max(1, len(files) // SAMPLE)]
    pairs = [(timed(symbols, sample)[0], timed(pyelftools, sample)[0]) for _ in range(PASSES)]
    ours, theirs = min(a for a, _ in pairs), min(b for _, b in pairs)
    print(f"pyelftools, 1 process, {len(sample)} of the files: {len(sample) / theirs:.0f} files/s; "
          f"ratio {theirs / ours:.0f}")  # fmt: skip


if __name__ == "__main__":
    main()
