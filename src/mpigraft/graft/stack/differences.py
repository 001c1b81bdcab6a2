"""Report what an override would change in a stack besides its MPI, in the words of stacks."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from mpigraft.binary import Elf, ElfError, Root, RootError
from mpigraft.core.cache import file_digest
from mpigraft.core.model import Finding, Level, MpiAbi, Role
from mpigraft.core.numbers import counted
from mpigraft.core.text import join_some
from mpigraft.graft.injection.simulation import PRIVATE
from mpigraft.graft.stack.generations.reading import GenerationRecord, read_override
from mpigraft.graft.stack.override.launcher import LAUNCHERS
from mpigraft.graft.stack.simulation import PlannedOverride, StackSimulation
from mpigraft.graft.stack.values import OTHER, ProgramCheck, Slot, Stack
from mpigraft.knowledge import binding_of, role_of, spawns_of_mpi, started_by

STORE = ".mpigraft-"  # begins the name of the folder that an injection switches to
MOST_FILES = 100  # of an override that are named
MAX_LIBC = 1 << 24  # bytes
GLIBC = re.compile(rb"GNU C Library [ -~]{0,200}?version (\d+\.\d+)")
MPI_SYMBOL = re.compile(r"P?MPIX?_|p?mpix?_|QMPI_|_init$|_fini$", re.IGNORECASE)
SPAWN = re.compile(r"mpi_comm_spawn(_multiple)?(_f08)?_{0,2}", re.IGNORECASE)
TWICE = 5  # symbols that two files share by more than chance
NAMED = 3


def advise_stack(finding: Finding, override: PlannedOverride) -> Finding:
    """Give a finding the advice that holds for a stack; one about libfabric or UCX alone has no
    advice on the MPI."""
    finding = finding.for_stack()
    if not override.part or finding.level is not Level.ERROR:
        return finding
    advice = Finding.of("stack-network-unfit", library=override.part, text=finding.message)
    return replace(finding, why=advice.why, fix=advice.fix)


def of_stack(
    stack: Stack, abi: MpiAbi, slots: Sequence[Slot], *, filled: bool = False
) -> Iterator[Finding]:
    """Report what concerns a stack as a whole. `filled`: of overrides as they are."""
    if not stack.programs:
        yield Finding.of(
            "stack-no-program", root=stack.root, files=counted(stack.elf_files, "file")
        )
        return
    if not stack.slots:
        yield Finding.of("stack-overrides-none", root=stack.root)
    elif not slots:
        needed = sorted({name for p in stack.programs for name in p.mpi})
        yield Finding.of("stack-other-abi", mpi=abi.mpi.id, needed=join_some(needed, NAMED, ", "))
    for slot in () if filled else slots:
        yield from occupied(slot)
    for name, lacks in absent_programs(abi) if slots else ():
        yield Finding.of("stack-alone", mpi=abi.mpi.id, name=name, lacks=lacks)
    if runs := tuple(p.path for p in stack.programs if p.runpath):
        programs = counted(len(runs), "program")
        yield Finding.of("stack-runpath", programs=programs, evidence=runs)
    if stack.unread:
        files = counted(len(stack.unread), "path")
        yield Finding.of("stack-unread", files=files, evidence=stack.unread)


def incomplete(slot: Slot) -> Iterator[Finding]:
    """Report files of the generation that is on which are gone. Its launcher is no part of what
    programs map."""
    override = read_override(slot)
    record = override.active
    folder = override.folder(override.current)
    if override.current and record is None:
        yield Finding.of("generation-incomplete", number=override.current, names=folder)
    names = (
        (f.path for f in record.files if not f.path.startswith(f"{LAUNCHERS}/")) if record else ()
    )
    gone = [name for name in names if not (folder / name).exists()]
    if gone:
        named = join_some([PurePosixPath(name).name for name in gone], NAMED, ", ")
        yield Finding.of("generation-incomplete", number=override.current, names=named,
                         evidence=tuple(str(folder / name) for name in gone))  # fmt: skip


def launcher_changes(record: GenerationRecord) -> Iterator[Finding]:
    """Report that the host's launcher, which that of a generation starts, is another file now."""
    names = {PurePosixPath(f.path).name for f in record.files if f.path.startswith(f"{LAUNCHERS}/")}
    for source in (s for s in record.sources if PurePosixPath(s.path).name in names):
        there = os.access(source.path, os.X_OK)
        if not (there and file_digest(source.path) == source.digest):
            yield Finding.of(
                "generation-launcher",
                path=source.path,
                number=record.number,
                mpi=record.mpi,
                what="is another file now" if there else "is not on this host",
            )


def absent_programs(abi: MpiAbi) -> Iterator[tuple[str, str]]:
    """Yield (program that an MPI starts by itself and that is not here, what fails without it)."""
    present = {PurePosixPath(program.path).name for program in abi.programs}
    for library in abi.objects:
        for row in started_by(library.soname.removeprefix(PRIVATE), abi.mpi.family):
            if row.name not in present:
                yield row.name, row.lacks


def occupied(slot: Slot) -> Iterator[Finding]:
    """Report an override that cannot be filled: a loop of links, or somebody's data. One that
    mpigraft switched on is a link to its own store, and may be switched again."""
    path = Path(slot.path)
    if path.is_symlink() and path.readlink().parts[0].startswith(STORE):
        return
    files: list[str] = []
    for folder in slot.folders:
        try:
            with os.scandir(folder) as entries:
                files += sorted(entry.path for entry in islice(entries, MOST_FILES))
        except OSError as error:
            if error.errno == errno.ELOOP:
                yield Finding.of("stack-override-loop", path=slot.path)
                return
    if files:
        names = join_some(sorted({PurePosixPath(file).name for file in files}), NAMED, ", ")
        yield Finding.of(
            "stack-override-foreign", path=slot.path, names=names, evidence=tuple(files)
        )


def of_others(checks: Sequence[ProgramCheck], override: PlannedOverride) -> Iterator[Finding]:
    """Report programs that take their MPI from an override which they search before this one."""
    for path in dict.fromkeys(v.slot for v in checks if v.why == OTHER):
        users = [v.path for v in checks if (v.why, v.slot) == (OTHER, path)]
        yield Finding.of(
            "stack-other-override",
            programs=_names(users),
            path=path,
            slot=override.slot.path,
            mpi=override.abi.mpi.id,
            evidence=tuple(users),
        )


def of_programs(
    group: Sequence[StackSimulation], override: PlannedOverride, duplicates: Duplicates
) -> Iterator[Finding]:
    """Report of programs what the parts of a check do not: where their libraries come from."""
    astray = [one for one in group if not one.injected and one.libmpi]
    for path in dict.fromkeys(one.libmpi for one in astray):
        users = [one.program.path for one in astray if one.libmpi == path]
        yield Finding.of(
            "stack-other-libmpi",
            programs=_names(users),
            path=path,
            slot=override.slot.path,
            evidence=tuple(users),
        )
    changed: dict[tuple[str, str, str], list[str]] = {}
    for one in group:
        for c in one.changes:
            if c.after:  # one that is gone, the part `sonames` reports
                changed.setdefault((c.name, c.before, c.after), []).append(one.program.path)
    for (name, before, after), users in changed.items():
        yield Finding.of(
            "stack-library-changed",
            name=name,
            programs=_names(users),
            before=before,
            after=after,
            evidence=tuple(users),
        )
    broken = {one.program.path: one.broken for one in group if one.broken}
    if broken:
        missing = sorted({name for names in broken.values() for name in names})
        yield Finding.of(
            "stack-broken-before",
            programs=_names(broken),
            missing=join_some(missing, NAMED, ", "),
            evidence=tuple(f"{path} lacks {', '.join(names)}" for path, names in broken.items()),
        )
    yield from _twice(group, override, duplicates)
    yield from _spawning(group, override)


def _spawning(group: Sequence[StackSimulation], override: PlannedOverride) -> Iterator[Finding]:
    """Report what becomes of programs that call MPI_Comm_spawn where no launcher starts them."""
    mpi = override.abi.mpi
    rows = () if override.part else spawns_of_mpi(mpi.family, mpi.version)
    known = next((row for row in rows if row.launcher == "alone" and row.message), None)
    users = [one.program.path for one in group if known and any(map(_spawns, _callers(one)))]
    if known and users:
        yield Finding.of(
            "stack-spawn-alone",
            programs=_names(users),
            mpi=mpi.id,
            what=known.message,
            advice=known.fix,
            folder=f"{override.slot.path}/{LAUNCHERS}",
            evidence=tuple(users),
        )


def _callers(one: StackSimulation) -> Iterator[Elf]:
    """Yield the files of a program that call MPI and are no part of one."""
    yield one.loading.main
    for r in one.loading.after:
        if r.elf and not binding_of(r.soname) and any(map(binding_of, r.elf.needed)):
            yield r.elf


def _spawns(elf: Elf) -> bool:
    return any(SPAWN.fullmatch(symbol.name) for symbol in elf.imported)


def _names(paths: Sequence[str] | dict[str, tuple[str, ...]]) -> str:
    names = dict.fromkeys(PurePosixPath(path).name for path in paths)
    return join_some(list(names), NAMED, ", ")


# ------------------------------------------------------------------ one library twice


class Duplicates:
    """Symbols that libraries of a stack share with the files of an override. Kept by path: many
    programs load the same libraries, and their symbols are not kept."""

    def __init__(self, override: PlannedOverride) -> None:
        self._homes: dict[str, list[str]] = {}
        for elf in {id(elf): elf for elf in override.files.values()}.values():
            for name in _exports(elf):
                self._homes.setdefault(name, []).append(elf.name)
        self._shared: dict[str, dict[str, list[str]]] = {}

    def shared(self, library: Elf) -> dict[str, list[str]]:
        """Give {file of the override: symbols} that a library of the stack defines too."""
        known = self._shared.get(library.name)
        if known is None:
            known = {}
            own = role_of(library.soname or "") in (Role.MPI, Role.LIBC)
            for name in () if own else _exports(library) & self._homes.keys():
                for file in self._homes[name]:
                    known.setdefault(file, []).append(name)
            self._shared[library.name] = known
        return known


def _exports(of: Elf) -> set[str]:
    try:
        names = {s.name for s in of.exported if not s.weak}
    except ElfError:
        return set()
    return {name for name in names if not MPI_SYMBOL.search(name)}


def _twice(
    group: Sequence[StackSimulation], override: PlannedOverride, duplicates: Duplicates
) -> Iterator[Finding]:
    """Report libraries of the stack whose symbols a file of the override has too: built in, or
    copied under its own names. The loader binds all calls to the first of the two.
    """
    pairs: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for one in group:
        mapped = [r.elf for r in one.loading.after if r.elf is not None]
        ours = {elf.name for elf in mapped if override.grafted(elf.name)}
        for elf in mapped:
            for file, symbols in duplicates.shared(elf).items() if elf.name not in ours else ():
                if file in ours and len(symbols) >= TWICE:
                    pairs.setdefault((elf.name, file), ([], symbols))[0].append(one.program.path)
    for (library, file), (users, symbols) in pairs.items():
        yield Finding.of(
            "stack-library-twice",
            library=PurePosixPath(library).name,
            file=PurePosixPath(file).name,
            mpi=override.abi.mpi.id,
            symbols=counted(len(symbols), "symbol"),
            evidence=(f"{library} and {file}: {' '.join(sorted(symbols)[:20])}", *users),
        )


# ------------------------------------------------------------------ glibc


def glibc_of(root: Root, path: str) -> str:
    """Give the release of a libc.so.6: 2.37. Empty where it cannot be read."""
    if not path:
        return ""
    try:
        match = GLIBC.search(root.read(path, MAX_LIBC))
    except RootError:
        return ""
    return match[1].decode() if match else ""
