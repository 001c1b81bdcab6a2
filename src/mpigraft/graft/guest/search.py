"""Search a root for the programs that need MPI: walk over its files, then follow their needs.

Names decide here, not the loader: a program is a candidate when one of its needs, direct or
indirect, has the name of an MPI library. The loader is simulated later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mpigraft.binary import Elf, ElfError, Root, RootEntry
from mpigraft.core import cache
from mpigraft.core.fingerprint import own_state
from mpigraft.core.model import Role
from mpigraft.core.serialize import plain, revive
from mpigraft.graft.guest.mpi_sonames import MPI_TOOLS, LinkedFile, mpi_carriers
from mpigraft.knowledge import binding_of, role_of

EXECUTABLE = 0o111
KIND = "searched-1"  # in the cache; the number is that of these rules


@dataclass(frozen=True, slots=True)
class Searched:
    """What a walk found. Paths are canonical, inside the root, sorted."""

    programs: tuple[str, ...]  # executables that need MPI, directly or through libraries
    libraries: tuple[str, ...]  # need MPI themselves, and no file names them: opened at run time
    machines: tuple[str, ...]  # architectures of its executables, most frequent first


def search(root: Root, number: str = "") -> Searched:
    """Search the MPI programs of a root. Raises RootError for one with too many names.

    The answer is cached by `number`, the digest of the content: a SIF takes seconds.
    """
    key = f"{number} {own_state()}"
    if number and (cached := cache.get(KIND, key)) is not None:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            searched: Searched = revive(Searched, cached)
            return searched
    searched = _search(root)
    if number:
        cache.put(KIND, key, plain(searched))
    return searched


def _search(root: Root) -> Searched:
    machines: dict[str, int] = {}
    files: list[LinkedFile] = []
    for entry in root.files():
        facts = _facts(root, entry)
        if facts is None:
            continue
        name = PurePosixPath(entry.path).name
        program = _is_program(entry, facts, name)
        if program:
            machines[facts.machine] = machines.get(facts.machine, 0) + 1
        if facts.needed:
            names = (name, facts.soname or name)
            files.append(LinkedFile(entry.path, names, facts.needed, program))
    carriers = mpi_carriers(files)
    return Searched(
        tuple(sorted(_programs(files, carriers))),
        tuple(sorted(_opened(files))),
        tuple(sorted(machines, key=lambda m: -machines[m])),
    )


def _facts(root: Root, entry: RootEntry) -> Elf | None:
    if not entry.mode & EXECUTABLE and ".so" not in entry.path.rpartition("/")[2]:
        return None
    if entry.size < 64:  # no ELF header fits
        return None
    try:
        facts = root.elf(entry.path)
    except ElfError:
        return None
    return facts if facts.type in ("exec", "dyn") else None


def _is_program(entry: RootEntry, facts: Elf, name: str) -> bool:
    """Return whether a file is a program. Some libraries have an interpreter too, such as libc."""
    library = facts.soname is not None and ".so" in name
    return bool(facts.interpreter and entry.mode & EXECUTABLE) and not library


def _programs(files: Sequence[LinkedFile], carriers: frozenset[str]) -> Iterator[str]:
    for file in files:
        if file.program and not MPI_TOOLS.fullmatch(file.names[0]) and carriers & set(file.needed):
            yield file.path


def _opened(files: Sequence[LinkedFile]) -> Iterator[str]:
    """Yield extension modules and the like, without the parts of an MPI itself."""
    named = {needed for file in files for needed in file.needed}
    for file in files:
        if file.program or named & set(file.names) or not any(map(binding_of, file.needed)):
            continue
        if all(role_of(name) is Role.OTHER for name in file.names):
            yield file.path
