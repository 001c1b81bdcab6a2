"""Which languages an MPI can be called from: its binding libraries, by their symbols.

Names of files promise nothing: Debian's libmpi_mpifh-gfortran.so.40 has no binding in it, and a
library of the name may be a link to another's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpigraft.binary import Elf, ElfError, read_elf
from mpigraft.core import cache, file_dependencies
from mpigraft.core.fingerprint import file_fingerprint, own_state
from mpigraft.core.model import Abi, MpiInterface
from mpigraft.core.serialize import digest, plain, revive
from mpigraft.knowledge import binding_of, compilers_of_libraries, is_libmpi, modules_of_symbols

SHARED = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")  # with libraries of many packages
MPIF_H = ("mpi_init_", "mpi_init", "mpi_init__", "MPI_INIT")  # as compilers spell the routine
MPI_F08_ROUTINE = re.compile(r"mpix?_\w+_f08(ts)?_|\w*mpi_f08", re.IGNORECASE)
MPI_F08_MODULE = re.compile(r"p?mpi_f08|p?mpi_c_interface|mpi_f08ts", re.IGNORECASE)
CXX = "_ZN3MPI"
NAMES = ("mpif.h", "use mpi", "use mpi_f08", "C++")
KIND = "interfaces"  # of what is kept in the cache


def interfaces(abi: Abi, libmpi: Path) -> tuple[MpiInterface, ...]:
    """List what the libraries beside a libmpi offer besides C: mpif.h, the modules mpi and mpi_f08,
    and C++; none where they cannot be read. The answer is cached by the state of the files."""
    try:
        first = read_elf(libmpi)
    except (OSError, ElfError):
        return ()
    files = [
        (path, facts) for path, facts in binding_files(abi, libmpi, first) if _is_binding(path, abi)
    ]
    key = digest(
        [own_state(), abi, [(str(path), file_fingerprint(str(path))) for path, _ in files]]
    )
    cached = cache.get(KIND, key)
    if isinstance(cached, list):
        return tuple(revive(MpiInterface, row) for row in cached)
    offers = tuple(_all(files))
    cache.put(KIND, key, plain(offers))
    return offers


def _is_binding(path: Path, abi: Abi) -> bool:
    """Return whether a library may have one of the interfaces. 64-bit INTEGER is not another
    one."""
    binding = binding_of(path.name)
    return (
        binding is not None
        and binding.abi == abi
        and binding.language in ("fortran", "cxx")
        and binding.part != "ilp64"
    )


def _all(files: Sequence[tuple[Path, Elf]]) -> Iterator[MpiInterface]:
    """Yield each interface once, of the first library that has it, with the compilers of all."""
    offers: dict[str, tuple[str, set[str]]] = {}
    for path, facts in files:
        names = {symbol.name for symbol in facts.exported}
        runtime = compilers_of_libraries(facts.needed)
        for name, compilers in _offered(path.name, names):
            _, known = offers.setdefault(name, (path.name, set()))
            known.update(compilers or runtime)
    for name in NAMES:
        if name in offers:
            library, known = offers[name]
            yield MpiInterface(name, library, tuple(sorted(known)))


def _offered(library: str, names: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield interfaces by a library's symbols, and the compilers of its modules. Most routines of
    Open MPI's module mpi are those of mpif.h, so its library is recognised by name."""
    modules = modules_of_symbols(names)
    modern = {compiler for compiler, module in modules if MPI_F08_MODULE.match(module)}
    older = {compiler for compiler, module in modules if _is_plain(module)}
    binding = binding_of(library)
    if not names.isdisjoint(MPIF_H):
        yield "mpif.h", set()
    if older or (names and binding is not None and binding.part == "usempi"):
        yield "use mpi", older
    if modern or any(map(MPI_F08_ROUTINE.match, names)):
        yield "use mpi_f08", modern
    if any(name.startswith(CXX) for name in names):
        yield "C++", set()


def _is_plain(module: str) -> bool:
    return module.startswith("mpi") and not MPI_F08_MODULE.match(module)


# ------------------------------------------------------------------ the files


def binding_files(abi: Abi, libmpi: Path, first: Elf) -> Iterator[tuple[Path, Elf]]:
    """Yield the other bindings of this install, beside its libmpi.

    In a folder that packages share only those count that are of this ABI and need no other libmpi:
    the MPI-5 library there may belong to another MPI.
    """
    own = {first.soname or libmpi.name, libmpi.name}
    shared = _is_shared(libmpi.parent)
    for path in regular_files(libmpi.parent):
        binding = binding_of(path.name)
        if binding is None or path.name in own or binding.abi not in (abi, Abi.MPI_ABI):
            continue
        facts = read_for_machine(path, first.machine)
        if facts is None or (facts.soname or path.name) != path.name:
            continue  # a link with another name: the file is listed under its own name too
        others = set(filter(is_libmpi, facts.needed)) - own
        if binding.abi == Abi.MPI_ABI and shared and not own & set(facts.needed):
            continue
        if others and not (binding.abi == Abi.MPI_ABI and not shared):
            continue
        yield path, facts


def _is_shared(folder: Path) -> bool:
    real = os.path.realpath(folder)
    roots = {os.path.realpath(name) for name in SHARED}
    return real in roots or (
        str(Path(real).parent) in roots and real.endswith(("-linux-gnu", "-linux-gnueabihf"))
    )


def regular_files(folder: Path) -> list[Path]:
    """List regular files of a folder, through links, by name; none where it cannot be read."""
    file_dependencies.folder(folder)
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if _is_file(entry))
    except OSError:
        return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    file_dependencies.file(entry.path)
    try:
        return entry.is_file()
    except OSError:
        return False


def read_for_machine(path: Path, machine: str) -> Elf | None:
    """Read a library for this machine; None for linker scripts and other machines' libraries."""
    try:
        facts = read_elf(path)
    except ElfError:
        return None
    return facts if facts.machine == machine else None
