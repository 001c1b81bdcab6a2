"""Build the C programs for every architecture and ABI with zig, for glibc 2.17 and newer.

    tools/build_natives.py [--openmpi PREFIX] [--mpich PREFIX] [--arch x86_64|aarch64]

MPI is needed by its headers only. A program is linked to a stand-in with the soname of the real
library and the functions that the program calls: no library of another architecture has to be
had, and no symbol version of the machine that builds gets into the binary.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from mpigraft.binary.elf import reader  # noqa: E402
from mpigraft.core.errors import MpigraftError  # noqa: E402
from mpigraft.core.model import Abi, Family  # noqa: E402
from mpigraft.core.process.command import clean, run_command  # noqa: E402
from mpigraft.discovery.install import fetch  # noqa: E402
from mpigraft.native.programs import (  # noqa: E402
    FLAGS,
    PREBUILT,
    SOURCES,
    WARNINGS,
    Program,
    programs,
    unlinked,
)
from tools.write_calls import write_tables  # noqa: E402

GLIBC = (2, 17)  # of RHEL 7 and SLES 12, and the oldest with an aarch64 port
ARCHITECTURES = ("x86_64", "aarch64")
KEEP = "-Wl,--no-gc-sections"  # nothing is exported, so nothing would be left
LIBRARIES = ("-ldl", "-lpthread")  # parts of libc from glibc 2.34 on
Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Interface:
    """How to compile for an ABI: whose headers, with which flags, and the library's name."""

    abi: Abi
    headers: Family
    flags: tuple[str, ...]
    soname: str


INTERFACES = (
    Interface(Abi.OMPI, Family.OPENMPI, (), "libmpi.so.40"),
    Interface(Abi.MPICH, Family.MPICH, (), "libmpi.so.12"),
    Interface(Abi.MPI_ABI, Family.MPICH, ("-DMPI_ABI",), "libmpi_abi.so.1"),
)


class Failed(Exception):
    """A compiler's complaint, or a binary that is not what it should be."""


def compile_c(architecture: str, *words: str | Path, static: bool = False) -> None:
    """zig cc; its caches lie in build/, not in the user's home. `static`: with musl, whose
    programs need no library of where they run. No path of this tree gets into a program."""
    libc = "musl" if static else f"gnu.{GLIBC[0]}.{GLIBC[1]}"
    target = f"{architecture}-linux-{libc}"
    cache = str(ROOT / "build" / "zig")
    done = run_command(
        [sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=undefined",
         f"-ffile-prefix-map={SOURCES}/=", "-g0", "-s", *(("-static",) if static else ()), *FLAGS,
         *words],
        env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache},
        limit_s=600,
    )  # fmt: skip
    if not done.ok:
        raise Failed(f"{' '.join(map(str, words))}\n{clean(done.stderr)}")


def stand_in(architecture: str, interface: Interface, program: Path, folder: Path) -> Path:
    """A library with the soname of `interface` and whatever MPI names `program` wants."""
    wanted = sorted(
        {
            symbol.name
            for symbol in reader.read_elf(program).imported
            if symbol.name.startswith(("MPI_", "PMPI_", "ompi_"))
        }
    )
    text = "".join(f"void {name}(void);\nvoid {name}(void) {{}}\n" for name in wanted)
    source = folder / "stand-in.c"
    source.write_text(text, encoding="utf-8")
    library = folder / interface.soname
    words = ("-shared", "-fvisibility=default", f"-Wl,-soname,{interface.soname}")
    compile_c(architecture, *words, source, "-o", library)
    return library


def build_linked(
    architecture: str, interface: Interface, headers: Path, program: Program, target: Path
) -> None:
    """Linked twice: first as a library, whose names may stay open, to learn which it wants."""
    with tempfile.TemporaryDirectory() as scratch:
        code, open_ended = Path(scratch) / "program.o", Path(scratch) / "open.so"
        source: tuple[str | Path, ...] = ("-isystem", headers / "include", *program.sources)
        compile_c(architecture, *WARNINGS, *interface.flags, "-r", *source, "-o", code)
        compile_c(architecture, "-shared", KEEP, code, "-o", open_ended, *LIBRARIES)
        library = stand_in(architecture, interface, open_ended, Path(scratch))
        compile_c(architecture, code, library, "-o", target, *LIBRARIES)


def build_typed(
    architecture: str, interface: Interface, headers: Path, program: Program, target: Path
) -> None:
    """A preloaded library: it finds the MPI of whatever program it is in."""
    library = (*WARNINGS, *program.kind, *interface.flags, f"-Wl,-soname,{program.name}")
    source: tuple[str | Path, ...] = ("-isystem", headers / "include", *program.sources)
    compile_c(architecture, *library, *source, "-o", target, *LIBRARIES)


def build_alone(architecture: str, program: Program, target: Path) -> None:
    """What needs no MPI: a static program, a library that is preloaded, or a usual program."""
    words: tuple[str, ...] = ("-static",) if program.static else ()
    if program.kind:
        words = (*program.kind, f"-Wl,-soname,{program.name}", "-ldl")
    compile_c(
        architecture, *WARNINGS, *words, *program.sources, "-o", target, static=program.static
    )


def verify(path: Path, needed: str | None) -> None:
    """No symbol of a glibc newer than the floor, and exactly the MPI that is meant."""
    facts = reader.read_elf(path)
    for library, nodes in facts.version_needs.items():
        for node in nodes:
            number = node.removeprefix("GLIBC_")
            if number == node or tuple(map(int, number.split("."))) > GLIBC:
                raise Failed(f"{path} wants {node} of {library}")
    mpi = [name for name in facts.needed if "mpi" in name]
    if mpi != ([needed] if needed else []):
        raise Failed(f"{path} needs {mpi}, not {needed}")


def steps(architecture: str, headers: dict[Family, Path], stage: Path) -> Iterator[Step]:
    """Yield what makes each file in the folder `stage`; none needs another."""

    def linked(interface: Interface, program: Program, target: Path) -> None:
        of_abi = build_linked if program.links == "mpi" else build_typed
        of_abi(architecture, interface, headers[interface.headers], program, target)
        verify(target, interface.soname if program.links == "mpi" else None)

    def alone(program: Program) -> None:
        build_alone(architecture, program, stage / program.name)
        verify(stage / program.name, None)

    of_mpi = [program for program in programs().values() if program.links != "none"]
    for interface in INTERFACES:
        (stage / interface.abi).mkdir()
        for program in of_mpi:
            yield partial(linked, interface, program, stage / interface.abi / program.name)
    for program in unlinked():
        yield partial(alone, program)


def build(architecture: str, headers: dict[Family, Path]) -> None:
    """Everything for one architecture, as many files at once as there are processors, into a fresh
    folder that takes the old one's place."""
    target = PREBUILT / architecture
    PREBUILT.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=PREBUILT, prefix=".build-") as scratch,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        stage = Path(scratch) / architecture
        stage.mkdir()
        try:
            for done in [pool.submit(step) for step in steps(architecture, headers, stage)]:
                done.result()
        except Failed:
            pool.shutdown(cancel_futures=True)
            raise
        shutil.rmtree(target, ignore_errors=True)
        stage.rename(target)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--openmpi", type=Path, help="prefix of an Open MPI 5 (default: fetch)")
    parser.add_argument("--mpich", type=Path, help="prefix of an MPICH 5 (default: fetch)")
    parser.add_argument("--arch", choices=ARCHITECTURES, action="append")
    asked = parser.parse_args()
    try:
        headers = {
            Family.OPENMPI: asked.openmpi or fetch.fetch_mpi(Family.OPENMPI),
            Family.MPICH: asked.mpich or fetch.fetch_mpi(Family.MPICH),
        }
        write_tables(headers[Family.MPICH] / "include", headers[Family.OPENMPI] / "include")
        for architecture in asked.arch or ARCHITECTURES:
            build(architecture, headers)
            sys.stdout.write(f"built the C programs for {architecture}\n")
    except (Failed, MpigraftError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
