"""The programs of a root that need MPI: one walk over its files, then a look at who needs whom.

Names decide here, not the loader: a program is a candidate when something that it needs, or that
this needs in turn, has the name of an MPI library. What the loader makes of it comes later.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mpigraft import cache
from mpigraft.elf import Elf, ElfError
from mpigraft.jsonout import digest, plain, revive
from mpigraft.knowledge.sonames import binding_of, names, role_of
from mpigraft.model import Role
from mpigraft.roots import Entry, Root

# An MPI's own tools need it too, and nobody grafts them.
TOOLS = re.compile(
    r"ompi_info|ompi-(clean|dvm|info|ps|server|submit|top)|(ompi|oshmem|orte|opal)_wrapper|"
    r"oshmem_info|shmem_info|orterun|orted|orte-(clean|dvm|info|ps|server|submit|top)|"
    r"mpi(run|exec)(\.(openmpi|mpich|hydra|gforker|remshell))?|mpichversion(\.mpich)?|mpivars|"
    r"hydra_(pmi_proxy|nameserver|persist)|parkill|impi_(info|cpuinfo)|mpitune(_fast)?"
)
EXECUTABLE = 0o111
KIND = "searched-1"  # in the cache; the number is that of these rules


@dataclass(frozen=True, slots=True)
class Searched:
    """What a walk found. Paths are canonical, inside the root, sorted."""

    programs: tuple[str, ...]  # executables that need MPI, directly or through libraries
    libraries: tuple[str, ...]  # need MPI themselves, and no file names them: opened at run time
    machines: tuple[str, ...]  # architectures of its executables, most frequent first


@dataclass(frozen=True, slots=True)
class _Seen:
    path: str
    names: tuple[str, ...]  # file name and soname
    needed: tuple[str, ...]
    program: bool


def search(root: Root, number: str = "") -> Searched:
    """The MPI programs of a root. Raises RootError for one without end.

    With the digest of its content the answer is remembered: a walk through a SIF takes seconds.
    """
    key = f"{number} {digest([p.pattern for p, _ in (*names().bindings, *names().roles)])}"
    if number and (known := cache.get(KIND, key)) is not None:
        with contextlib.suppress(ValueError, TypeError, KeyError):
            found: Searched = revive(Searched, known)
            return found
    found = _search(root)
    if number:
        cache.put(KIND, key, plain(found))
    return found


def _search(root: Root) -> Searched:
    machines: dict[str, int] = {}
    seen: list[_Seen] = []
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
            seen.append(_Seen(entry.path, names, facts.needed, program))
    carriers = _carriers(seen)
    return Searched(
        tuple(sorted(_programs(seen, carriers))),
        tuple(sorted(_opened(seen))),
        tuple(sorted(machines, key=lambda m: -machines[m])),
    )


def _facts(root: Root, entry: Entry) -> Elf | None:
    if not entry.mode & EXECUTABLE and ".so" not in entry.path.rpartition("/")[2]:
        return None
    if entry.size < 64:  # no ELF header fits
        return None
    try:
        facts = root.elf(entry.path)
    except ElfError:
        return None
    return facts if facts.type in ("exec", "dyn") else None


def _is_program(entry: Entry, facts: Elf, name: str) -> bool:
    """Libraries may have an interpreter too: libc prints its version when it is run."""
    library = facts.soname is not None and ".so" in name
    return bool(facts.interpreter and entry.mode & EXECUTABLE) and not library


def _carriers(seen: Sequence[_Seen]) -> frozenset[str]:
    """Names of libraries that bring an MPI library with them."""
    users: dict[str, list[_Seen]] = {}
    for one in seen:
        for needed in one.needed:
            users.setdefault(needed, []).append(one)
    found = {name for name in users if binding_of(name)}
    fresh = list(found)
    while fresh:
        for user in users.get(fresh.pop(), ()):
            new = set(user.names) - found if not user.program else set()
            found |= new
            fresh += new
    return frozenset(found)


def _programs(seen: Sequence[_Seen], carriers: frozenset[str]) -> Iterator[str]:
    for one in seen:
        if one.program and not TOOLS.fullmatch(one.names[0]) and carriers & set(one.needed):
            yield one.path


def _opened(seen: Sequence[_Seen]) -> Iterator[str]:
    """Extension modules and the like; parts of an MPI itself are none."""
    named = {needed for one in seen for needed in one.needed}
    for one in seen:
        if one.program or named & set(one.names) or not any(map(binding_of, one.needed)):
            continue
        if all(role_of(name) is Role.OTHER for name in one.names):
            yield one.path
