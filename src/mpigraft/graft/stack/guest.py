"""A software stack as a guest: the MPI of its own, and the one that its overrides give it.

Nothing is bound over a stack and no engine starts its programs: the files in
their override folders decide what they load. The simulated loader reads both sides; one of them
does not see the overrides.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from mpigraft.binary import FolderRoot, MaskedRoot, Resolved, Root, read_elf
from mpigraft.core.cache import file_digest
from mpigraft.core.errors import UsageError
from mpigraft.core.model import GuestLabel, MpiInstall
from mpigraft.core.serialize import digest
from mpigraft.graft.guest.own_mpi import GuestMpi, find_own_mpi, loaded_objects
from mpigraft.graft.stack.generations.reading import GenerationRecord, read_override
from mpigraft.graft.stack.places import below
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.simulation import OF_NETWORK
from mpigraft.graft.stack.values import Slot, Stack, StackProgram
from mpigraft.knowledge import binding_of, is_libmpi, network_library_of

VERSIONS = "versions"  # EESSI's folder of them: software.eessi.io/versions/2023.06/software/...


@dataclass(frozen=True)
class StackGuest:
    """A stack, and the program that represents all: our benchmarks search for MPI where it does."""

    stack: Stack
    program: StackProgram
    started: str = ""  # what ranks start, if it is none of our programs
    opened: tuple[str, ...] = ()  # what a script starts or opens: programs, modules of Python
    root: Root = field(default_factory=lambda: FolderRoot(Path("/")), repr=False)

    @property
    def name(self) -> str:
        """`2023.06-zen3` of EESSI's layout, else the name of the folder."""
        parts = PurePosixPath(self.stack.root).parts
        known = parts[parts.index(VERSIONS) + 1] if VERSIONS in parts[:-1] else ""
        return f"{known}-{parts[-1]}" if known and known != parts[-1] else parts[-1]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The overrides that the program searches, in its order."""
        by_path = {slot.path: slot for slot in self.stack.slots}
        return tuple(by_path[path] for path in self.program.slots)

    @property
    def folders(self) -> tuple[str, ...]:
        """The override folders, as they are spelled, in the order in which they are searched."""
        return tuple(folder for slot in self.slots for folder in slot.folders)

    @cached_property
    def bare(self) -> Root:
        """This machine as if nothing were injected."""
        return MaskedRoot(FolderRoot(Path("/")), map(os.path.realpath, self.folders))

    @cached_property
    def own(self) -> GuestMpi | None:
        """The MPI of the stack itself; None where its program finds none."""
        return find_own_mpi(self.bare, (self.program.path,), {})

    @cached_property
    def injected(self) -> GuestMpi | None:
        """The MPI in the override; None where the program takes none from there."""
        mpi = find_own_mpi(self.root, (self.program.path,), {})
        return mpi if mpi and self.in_override(mpi.libmpi) else None

    @cached_property
    def network(self) -> dict[str, str]:
        """The libraries of libfabric or UCX alone that programs find in an override, as {soname:
        path}; those of an injected MPI have names of their own."""
        libraries: dict[str, str] = {}
        for folder in self.folders:
            for name in self.root.names(folder):
                if network_library_of(name):
                    libraries.setdefault(name, f"{folder}/{name}")
        return libraries

    @property
    def generation_folders(self) -> list[str]:
        """The folders of the generations that are on: each changes with the names in it."""
        overrides = map(read_override, self.slots)
        files = (
            o.folder(o.current) / f.path for o in overrides if o.active for f in o.active.files
        )
        return sorted({str(file.parent) for file in files})

    def network_content(self) -> list[tuple[str, str]]:
        """Give (name, digest) of what these were made of, or of themselves."""
        overrides = (read_override(slot) for slot in self.slots if self.network)
        sources = [s for o in overrides if o.active for s in o.active.sources]
        pairs = [(PurePosixPath(one.path).name, one.digest) for one in sources]
        return sorted(pairs or [(name, _digest(path)) for name, path in self.network.items()])

    def own_library(self, soname: str) -> Path | None:
        """Find a network library of the stack's own MPI: what libmpi needs, or a plugin of it."""
        paths = [path for _, some in (self.own.plugins if self.own else ()) for path in some]
        plugins = [path for path in paths if OF_NETWORK.search(PurePosixPath(path).name)]
        closures = [self.loaded(self.program.path, own=True)]
        closures += [loaded_objects(self.bare, path, {}) for path in plugins]
        rows = (r for rows in closures for r in rows if r.soname == soname and r.path)
        named = (path for path in plugins if PurePosixPath(path).name == soname)
        found = next((str(r.path) for r in rows), next(named, None))
        return Path(os.path.realpath(found)) if found else None

    def label(self, content: str) -> GuestLabel:
        """Label what is started of the stack on an MPI whose `content` is known."""
        programs = (self.started or self.program.path,)
        return self.stack.label(self.name, programs, self.program.machine, content)

    @cached_property
    def generation(self) -> tuple[GenerationRecord, str] | None:
        """The generation that the injected MPI is of, and the folder of all; None for what was put
        there without mpigraft."""
        for slot in self.slots if self.injected else ():
            override = read_override(slot)
            store = os.path.realpath(override.store)
            if self.injected and below(os.path.realpath(self.injected.libmpi), [store]):
                return (override.active, store) if override.active else None
        return None

    def has_injected(self, mpi: MpiInstall) -> bool:
        """Return whether the MPI in the override is this one, by what its bytes say and it was made
        of."""
        there = self.injected
        if there is None or (there.family, there.version) != (mpi.family, mpi.version):
            return False
        return self.generation is None or self.generation[0].made_of([mpi]) is not None

    def in_override(self, path: str) -> bool:
        """Return whether a file is in one of the override folders, by any spelling."""
        folders = [*self.folders, *map(os.path.realpath, self.folders)]
        return below(path, folders) or below(os.path.realpath(path), folders)

    def loaded(self, program: str, *, own: bool) -> tuple[Resolved, ...]:
        """Give what the loader maps for a program, with the overrides or as if they were empty."""
        return loaded_objects(self.bare if own else self.root, program, {})

    def libmpis(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """List the paths of every libmpi that the loader would take for what ranks start."""
        rows = loaded_objects(self.root, self.started, environment) if self.started else ()
        return tuple(str(r.path) for r in rows if r.path and is_libmpi(r.soname))

    def preloads(self, *, network: bool = True) -> tuple[str, ...]:
        """List the stack's own libraries to preload for a program to run on the stack's MPI in
        spite of an injected one: the loader takes each name once. `network`: its own libfabric
        and UCX too, where these alone were injected."""
        program = self.started or self.program.path
        if not any(binding_of(r.name) for r in self.loaded(program, own=False)):
            program = self.program.path  # of a script, or what opens its MPI, another one says it
        own = {r.name: str(r.path) for r in self.loaded(program, own=True) if r.path}
        now = self.loaded(program, own=False)
        mpi = [
            own[r.name]
            for r in now
            if r.path and binding_of(r.name) and self.in_override(str(r.path)) and r.name in own
        ]
        below = map(self.own_library, self.network if network else ())
        return (*mpi, *(str(path) for path in below if path))

    def search_path(self, *, own: bool) -> str:
        """Give the DT_RPATH of the program, for one elsewhere; for the stack's own MPI without the
        overrides."""
        folder = self.program.path.rpartition("/")[0]
        entries = (read_elf(self.program.path).rpath or "").split(":")
        overrides = {os.path.normpath(one) for one in self.folders}
        kept = [e for e in entries if not (own and os.path.normpath(e) in overrides)]
        spelled = (e.replace("${ORIGIN}", folder).replace("$ORIGIN", folder) for e in kept)
        return ":".join(dict.fromkeys(filter(None, spelled)))

    def content(self, mpi: GuestMpi, *, own: bool) -> str:
        """Digest what an MPI of this stack consists of, in any place: libmpi, all that it
        needs, its plugins, and the loader. Copies of a generation have its paths in them, so what
        they were made of counts in their place."""
        rows = self.loaded(self.program.path, own=own)
        files = {(r.soname, str(r.path)) for r in _needed_by(mpi, rows) if r.path}
        files |= {(PurePosixPath(p).name, p) for _, paths in mpi.plugins for p in paths}
        files.add((PurePosixPath(self.program.interpreter).name, self.program.interpreter))
        sources: set[tuple[str, str]] = set()
        if not own and self.generation:
            record, store = self.generation
            files = {row for row in files if not below(os.path.realpath(row[1]), [store])}
            sources = {(PurePosixPath(one.path).name, one.digest) for one in record.sources}
        return digest(sorted({*sources, *((name, _digest(path)) for name, path in files)}))


def examine_stack(path: Path | str) -> StackGuest:
    """Examine the stack at `path`: its folder, or one program of it, which then represents all.

    Raises UsageError where no program searches an override, and as `read_stack` does.
    """
    stack = read_stack(path)
    able = [p for p in stack.programs if p.executable and p.interpreter and p.slots]
    able = [p for p in able if not p.opens] or able
    if not able:
        raise UsageError.of("stack-without-override", name=stack.only or stack.root)
    most = Counter(p.slots for p in able).most_common(1)[0][0]
    alike = [p for p in able if p.slots == most]
    direct = [p for p in alike if any(is_libmpi(name) for name in p.mpi)]
    return StackGuest(stack, (direct or alike)[0])


def stack_of_program(path: Path | str, program: Path, opened: Sequence[str] = ()) -> StackGuest:
    """Examine the stack at `path` for a program that is started, and what it `opened`: quick where
    it searches an override itself, for a stack of any size. Raises as `examine_stack`
    does."""
    try:
        os.stat(path)  # noqa: PTH116  of a program that is quick to read nothing else of it is
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError.of("file-unusable", path=path, reason=reason) from error
    guest = None
    with contextlib.suppress(UsageError):
        guest = examine_stack(program)
        stack = replace(guest.stack, root=os.path.abspath(path), only="")  # noqa: PTH100
        # What is opened later is in no closure: another program represents it.
        guest = None if guest.program.opens else replace(guest, stack=stack)
    guest = guest or examine_stack(path)
    return replace(guest, started=str(program), opened=tuple(opened))


def _needed_by(mpi: GuestMpi, rows: Sequence[Resolved]) -> Iterator[Resolved]:
    """Yield the row of a libmpi, and of all that it needs in turn."""
    by_name = {name: row for row in reversed(rows) for name in (row.name, row.soname)}
    pending, known = [mpi.soname], {mpi.soname}
    while pending:
        row = by_name.get(pending.pop())
        if row is None:
            continue
        yield row
        for name in row.elf.needed if row.elf else ():
            if name not in known:
                known.add(name)
                pending.append(name)


def _digest(path: str) -> str:
    try:
        return file_digest(Path(path))
    except OSError:
        return ""
