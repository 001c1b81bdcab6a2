"""Find the overrides of a stack in what its programs search first.

A stack that leaves room for a site's MPI is built with folders outside of itself that come first
in each DT_RPATH (EasyBuild's --rpath-override-dirs; EESSI's host_injections). DT_RUNPATH is no
such room: the loader searches LD_LIBRARY_PATH, which modules set, before it, and never for what a
library of the program needs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from os.path import normpath

from mpigraft.core.model import Family, MpiAbi
from mpigraft.graft.stack.places import OF_SYSTEM, below, is_installation, slot_path
from mpigraft.graft.stack.values import Slot, Stack, StackProgram
from mpigraft.knowledge import LIBRARIES, binding_of, library_of_override, network_library_of

FAMILIES = {"ompi": Family.OPENMPI, "mpich": Family.MPICH}  # by ABI; any of MPICH's will do
FEWEST = 2  # programs that share an override: a folder of one alone is somebody's slip

EESSI = "rpath_overrides"  # its name for overrides: an accelerator may have one program

Searcher = tuple[Sequence[str], str, Sequence[str]]  # leading folders, module, sonames of MPI


def leading_folders(rpath: str, inside: Sequence[str]) -> tuple[str, ...]:
    """Give the entries of a DT_RPATH up to the first that is a part of the stack.

    `inside`: folders that the stack's own files are in. Folders of the system do not count.
    """
    return tuple(_leading(rpath, inside))


def _leading(rpath: str, inside: Sequence[str]) -> Iterator[str]:
    for entry in rpath.split(":"):
        folder = normpath(entry)
        own = not entry.startswith("/") or "$" in entry or below(folder, inside)
        if own or is_installation(folder):
            return
        if folder not in OF_SYSTEM and slot_path(folder) not in OF_SYSTEM:
            yield entry


def find_slots(searchers: Sequence[Searcher]) -> tuple[Slot, ...]:
    """Find the overrides that programs share, in the order in which they are searched."""
    folders: dict[str, dict[str, str]] = {}  # by path of the override: {folder: its spelling}
    users: dict[str, dict[int, Searcher]] = {}
    order: dict[str, int] = {}
    for number, searcher in enumerate(searchers):
        for place, entry in enumerate(searcher[0]):
            path = slot_path(normpath(entry))
            folders.setdefault(path, {}).setdefault(normpath(entry), entry)
            users.setdefault(path, {})[number] = searcher
            order[path] = max(order.get(path, 0), place)
    fewest = min(FEWEST, len(searchers))
    shared = [path for path in folders if len(users[path]) >= fewest or EESSI in path.split("/")]
    return tuple(
        Slot(
            path=path,
            folders=tuple(folders[path].values()),
            family=_family(tuple(users[path].values())),
            programs=len(users[path]),
            modules=len({module for _, module, _ in users[path].values()}),
            holds=library_of_override(path),
        )
        for path in sorted(shared, key=lambda path: (order[path], path))
    )


def _family(users: Sequence[Searcher]) -> Family | None:
    """Name the MPI that most of these programs need."""
    abis = Counter(b.abi for _, _, mpi in users for b in map(binding_of, mpi) if b)
    return FAMILIES.get(next(iter(abis.most_common(1)), ("", 0))[0])


def family_of_abi(soname: str) -> Family:
    """Name a family of the ABI of a libmpi whose bytes do not say more."""
    binding = binding_of(soname)
    return FAMILIES.get(binding.abi if binding else "", Family.MPICH)


def slots_of(leading: Sequence[str], slots: Sequence[Slot]) -> tuple[str, ...]:
    """Give the paths of the overrides among a program's leading folders, in its own order."""
    known = {slot.path for slot in slots}
    paths = (slot_path(normpath(entry)) for entry in leading)
    return tuple(dict.fromkeys(path for path in paths if path in known))


def override_with_mpi(program: StackProgram, slots: Sequence[Slot]) -> str:
    """Give the path of the first override of a program that has an MPI in it; empty: none."""
    folders = {slot.path: slot.folders for slot in slots}
    return next((path for path in program.slots if any(map(_has_mpi, folders[path]))), "")


def _has_mpi(folder: str) -> bool:
    try:
        return any(map(binding_of, os.listdir(folder)))  # noqa: PTH208  names alone
    except OSError:
        return False


def offered_abis(abi: MpiAbi) -> frozenset[str]:
    """Give the ABIs that a host MPI offers; of libfabric or UCX alone, that name."""
    abis = frozenset(b.abi for o in abi.objects if (b := binding_of(o.soname)))
    return abis or frozenset([network_library_of(abi.objects[0].soname)])


def fits_abi(program: StackProgram, abi: MpiAbi) -> bool:
    """Return whether a program has the architecture and an ABI of what is injected."""
    needed = {binding.abi for name in program.mpi if (binding := binding_of(name))}
    offered = offered_abis(abi)
    return program.machine == abi.objects[0].machine and (
        bool(needed & offered) or not offered.isdisjoint(LIBRARIES)
    )


def chosen_slots(stack: Stack, abi: MpiAbi) -> tuple[Slot, ...]:
    """Choose the overrides that an MPI goes into: as few as reach every program that one reaches.

    What an override is called decides first: one that is named for another family, or for
    libfabric, gets no MPI. Of several that reach as many programs, the first that they search:
    nothing precedes it.
    """
    abis = offered_abis(abi)
    rest = [_named(p.slots, stack.slots, abis) for p in stack.programs if fits_abi(p, abi)]
    chosen: list[Slot] = []
    while rest := [slots for slots in rest if slots]:
        reach = Counter(path for slots in rest for path in slots)
        best = max(stack.slots, key=lambda slot: reach[slot.path])  # the first of equals
        chosen.append(best)
        rest = [slots for slots in rest if best.path not in slots]
    return tuple(slot for slot in stack.slots if slot in chosen)


def _named(paths: Sequence[str], slots: Sequence[Slot], abis: frozenset[str]) -> tuple[str, ...]:
    """Give those of a program's overrides that are named for an MPI of these ABIs; if none is,
    those whose names say nothing. A network library may go into one for an MPI, too."""
    own = [slot for slot in slots if slot.path in paths]
    named = [slot.path for slot in own if slot.holds in abis]
    unnamed = [slot.path for slot in own if not slot.holds]
    others = [s.path for s in own if not abis.isdisjoint(LIBRARIES) and s.holds not in LIBRARIES]
    return tuple(named or unnamed or others)
