"""Read all that `check` and `plan` know of a host MPI: its libraries as a linker sees them, what
they open while they run, the files that they read, and the environment that makes them search the
graft folder instead of the folder of their installation.

Nothing is started but the loader, once, for its folders; the rest is read. What an MPI opens by
name is knowledge (opened.toml), checked against traces of strace.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from mpigraft.binary import Elf, ElfError, closure, read_elf
from mpigraft.core import cache, env, file_dependencies
from mpigraft.core.errors import MissingError
from mpigraft.core.model import AbiObject, DataFile, EnvRow, MpiAbi, MpiInstall, Role, Scope
from mpigraft.discovery import binding_files, read_for_machine, regular_files
from mpigraft.graft.abi.kept import keep_abi, kept_abi
from mpigraft.graft.injection.simulation import PRIVATE
from mpigraft.knowledge import (
    Opened,
    OpenedFiles,
    Started,
    expand_folder,
    opened_by,
    role_of,
    started_by,
)

MAX_LIBC = 1 << 24  # bytes read of libc for its version
PLAN = "plan.json"  # beside the prefix of the copies in an override
SYSTEM = ("/usr/", "/lib")  # below them what is installed has its configuration in /etc
GLIBC = re.compile(rb"GNU C Library [^\n]*? version (\d+\.\d+)")


def read_abi(mpi: MpiInstall) -> MpiAbi:
    """Read the facts of an MPI of this machine, or take them from an earlier time.

    Raises MissingError for one that is not usable, or that is removed while it is read.
    """
    if mpi.libmpi is None or not mpi.usable:
        raise MissingError.of("mpi-unusable", id=mpi.id, reason=mpi.reason)
    reader = _AbiReader(mpi)
    if known := kept_abi(mpi, reader.loader):
        return known
    try:
        with file_dependencies.recorded() as noted:
            reader.gather(mpi.libmpi)
            abi = MpiAbi(
                mpi=mpi,
                objects=(*reader.libraries.values(), *reader.plugins),
                data=tuple(reader.data.values()),
                glibc=reader.glibc(),
                environment=tuple(reader.environment.values()),
                programs=tuple(reader.programs),
            )
    except (OSError, ElfError) as error:
        raise MissingError.of("mpi-unreadable", id=mpi.id, error=error) from error
    keep_abi(abi, reader.loader, noted)
    return abi


# ------------------------------------------------------------------ one MPI of this machine


class _AbiReader:
    """Reads an MPI. Libraries are keyed by soname: a process maps one of each name, and the graft
    has one folder for them."""

    def __init__(self, mpi: MpiInstall) -> None:
        self.mpi = mpi
        self.loader = env.apply(env.base(), mpi.environment, Scope.RANK)
        self.libraries: dict[str, AbiObject] = {}
        self.plugins: list[AbiObject] = []
        self.programs: list[AbiObject] = []
        self.data: dict[str, DataFile] = {}
        self.environment: dict[str, EnvRow] = {}
        self.machine = ""
        self._openers: list[AbiObject] = []
        self._done_rows: set[str] = set()

    def gather(self, libmpi: Path) -> None:
        first = read_elf(libmpi)
        self.machine = first.machine
        bindings = tuple(binding_files(self.mpi.abi, libmpi, first))
        for path, facts in ((libmpi, first), *bindings):
            self._keep(path, facts)
        for path, _ in ((libmpi, first), *bindings):
            self._closure(path)
        self._libc()
        for opener in self._openers:  # grows while it is walked: plugins open others in their turn
            name = opener.soname.removeprefix(PRIVATE)  # copies open what the originals do
            for row in opened_by(name, self.mpi.family):
                self._row(row, opener)
            for started in started_by(name, self.mpi.family):
                self._started(started, opener)

    def glibc(self) -> str:
        """Give the version of the libc that this MPI uses: 2.36."""
        libc = next((x for x in self.libraries.values() if x.soname.startswith("libc.so.")), None)
        if libc is None:
            return ""
        with Path(libc.path).open("rb") as file:
            match = GLIBC.search(file.read(MAX_LIBC))
        return match[1].decode() if match else ""

    def _keep(self, path: Path, facts: Elf, place: str | None = None) -> None:
        library = _object(path, facts, place)
        if place:
            self.plugins.append(library)
        elif library.soname in self.libraries:
            return
        else:
            self.libraries[library.soname] = library
        self._openers.append(library)

    def _closure(self, path: Path) -> None:
        """Add what `path` needs and is not yet here.

        A library that is here already satisfies every need for its name, wherever its own search
        would have led, so what such a search found is not followed.
        """
        resolved = {
            r.name: r
            for r in closure(path, environment=self.loader, portable=True)
            if r.path is not None and r.elf is not None
        }
        names = list(read_elf(path).needed)
        for name in names:  # grows while it is walked
            hit = resolved.pop(name, None)
            if hit is None or hit.path is None or hit.elf is None:
                continue
            if name not in self.libraries and hit.soname not in self.libraries:
                self._keep(hit.path, hit.elf)
                names += hit.elf.needed

    def _libc(self) -> None:
        """Add the rest of glibc's set: a graft takes all of it or nothing."""
        libc = next((x for x in self.libraries.values() if x.soname.startswith("libc.so.")), None)
        if libc is None:
            return
        for path in regular_files(Path(libc.path).parent):
            if role_of(path.name) is Role.LIBC and path.name not in self.libraries:
                facts = read_for_machine(path, self.machine)
                if facts is not None and facts.soname == path.name:
                    self._keep(path, facts)

    # -------------------------------------------------------------- what is opened by name

    def _row(self, row: Opened, opener: AbiObject) -> None:
        if row.id in self._done_rows:
            return
        self._done_rows.add(row.id)
        facts = self._facts(opener)
        names = []
        for path in _first_files(row.plugins, facts):
            elf_facts = read_for_machine(path, self.machine)
            if elf_facts is None:
                continue
            names.append(path.name)
            if row.plugins.place or (elf_facts.soname or path.name) not in self.libraries:
                self._keep(path, elf_facts, row.plugins.place)
                self._closure(path)
        pairs = dict(row.env)
        for files in row.data:
            hits = _first_files(files, facts)
            for path in hits:
                place = f"{files.place}/{path.name}"
                file = DataFile(str(path), place, cache.file_digest(path))
                self.data.setdefault(place, file)
            pairs |= files.env if hits else ()
        self._set_environment(row.id, {**pairs, **row.list_of(names)})

    def _started(self, row: Started, opener: AbiObject) -> None:
        """Add a program, which needs what its libraries need."""
        facts = self._facts(opener)
        folders = [folder for one in row.folders for folder in expand_folder(one, facts)]
        for path in (Path(folder, row.name) for folder in dict.fromkeys(folders)):
            file_dependencies.file(path)
            if os.access(path, os.X_OK) and (elf_facts := read_for_machine(path, self.machine)):
                self.programs.append(_object(path, elf_facts, row.place))
                self._closure(path)
                break
        self._set_environment(row.id, dict(row.env))

    def _facts(self, opener: AbiObject) -> Mapping[str, tuple[str, ...]]:
        """Give the values of the names in folder templates."""
        path = Path(opener.path)
        copies = self.mpi.prefix  # of a generation, whose public libraries are elsewhere
        libc = [x.path for x in self.libraries.values() if x.soname.startswith("libc.so.")]
        return {
            "dir": tuple(dict.fromkeys((str(path.parent), str(path.resolve().parent)))),
            "prefix": (str(self.mpi.prefix),),
            "bin": (str(self.mpi.launcher.parent),) if self.mpi.launcher else (),
            "system": tuple(str(Path(p).parent) for p in libc),
            "copies": (f"{copies}/lib",) if copies.with_name(PLAN).is_file() else (),
            "etc": ("/etc",) if str(path.resolve()).startswith(SYSTEM) else (),
        }

    def _set_environment(self, row: str, pairs: Mapping[str, str]) -> None:
        for name, value in pairs.items():
            source = f"opened.toml, {row}"
            self.environment.setdefault(name, EnvRow(name, value, Scope.RANK, source))


def _object(path: Path, facts: Elf, place: str | None) -> AbiObject:
    """Describe a library. `place` None: it is needed, not opened by name."""
    soname = facts.soname or path.name
    return AbiObject(
        soname=soname,
        path=str(path),
        digest=cache.file_digest(path),
        role=role_of(soname) if role_of(soname) is not Role.OTHER else role_of(path.name),
        machine=facts.machine,
        needed=facts.needed,
        needs=tuple((n.library, n.node, n.weak) for n in facts.needs),
        defines=facts.version_defs,
        exported=tuple(sorted({str(s) for s in facts.exported})),
        imported=tuple(sorted({str(s) for s in facts.imported if not s.weak})),
        rpath=facts.rpath or "",
        runpath=facts.runpath or "",
        opened=place is not None,
        place=place or "",
    )


def _first_files(files: OpenedFiles, facts: Mapping[str, tuple[str, ...]]) -> list[Path]:
    """List the files of the first folder that has some."""
    for template in files.folders:
        for folder in expand_folder(template, facts):
            file_dependencies.file(folder)
            place = Path(folder).resolve()
            if hits := [path for path in regular_files(place) if files.names.fullmatch(path.name)]:
                return hits
    return []
