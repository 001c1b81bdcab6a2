"""All that `check` and `plan` know of a host MPI: its libraries as a linker sees them, what they
open while they run, the files that they read, and the environment that makes them look for all
that in the graft folder instead of where they were installed.

Nothing is started: the loader's folders are asked for once (`resolve`), the rest is read. What an
MPI opens by name is knowledge (opened.toml), checked against what strace saw.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpigraft import cache, elf, env, reads, resolve
from mpigraft.elf import Elf, ElfError
from mpigraft.errors import MissingError, UsageError
from mpigraft.jsonout import SCHEMA, revive
from mpigraft.knowledge import opened
from mpigraft.knowledge.opened import Files, Opened
from mpigraft.knowledge.sonames import Binding, binding_of, role_of
from mpigraft.model import AbiObject, DataFile, EnvRow, MpiAbi, MpiInstall, Role, Scope
from mpigraft.sources.interfaces import binding_files, readable, regular_files

__all__ = ["Binding", "binding_of", "from_machine", "of", "role_of"]

MAX_MACHINE = 1 << 28  # bytes of a saved description
MAX_LIBC = 1 << 24  # bytes read of libc for its version
SYSTEM = ("/usr/", "/lib")  # below them what is installed has its configuration in /etc
GLIBC = re.compile(rb"GNU C Library [^\n]*? version (\d+\.\d+)")


def of(mpi: MpiInstall) -> MpiAbi:
    """The facts of an MPI of this machine.

    Raises MissingError for one that is not usable, or that goes away while it is read.
    """
    if mpi.libmpi is None or not mpi.usable:
        raise MissingError(f"{mpi.id} cannot be used", why=mpi.reason)
    try:
        found = _Found(mpi)
        found.gather(mpi.libmpi)
        return MpiAbi(
            mpi=mpi,
            objects=(*found.libraries.values(), *found.plugins),
            data=tuple(found.data.values()),
            glibc=found.glibc(),
            environment=tuple(found.environment.values()),
        )
    except (OSError, ElfError) as error:
        raise MissingError(
            f"{mpi.id} cannot be read: {error}", why="it may be being replaced"
        ) from error


def from_machine(path: Path, spec: str) -> MpiAbi:
    """The facts of one MPI from what `discover --abi --json` wrote on some machine.

    `spec` is an id, its beginning with `@`, or a family; of several that fit, the first.
    Raises UsageError, which names the file and what is wrong with it.
    """
    rows = _rows(path)
    ids = [str(row.get("id", "")) for row in rows]
    hits = [row for row, id_ in zip(rows, ids, strict=True) if id_ == spec] or [
        row
        for row, id_ in zip(rows, ids, strict=True)
        if row.get("family") == spec or ("@" in spec and id_.startswith(spec))
    ]
    if not hits:
        raise UsageError(f"{path}: no MPI {spec!r}; it has {', '.join(ids) or 'none'}")
    row = hits[0]
    if row.get("abi_facts") is None:
        why = row.get("reason") or "it was written without --abi"
        raise UsageError(
            f"{path}: nothing is known of the libraries of {row.get('id')}",
            why=str(why),
            mend="mpigraft discover --abi --json > machine.json",
        )
    try:
        found: MpiAbi = revive(MpiAbi, row["abi_facts"])
        _refuse_odd(found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path}: abi_facts of {row.get('id')}: {error}") from error
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(MAX_MACHINE))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("mpis"), list):
        raise UsageError(
            f"{path}: not what `mpigraft discover --abi --json` writes: no list `mpis`"
        )
    if document.get("schema") != SCHEMA:
        raise UsageError(f"{path}: schema {document.get('schema')!r}, only {SCHEMA} is known")
    return [row for row in document["mpis"] if isinstance(row, dict)]


def _refuse_odd(facts: MpiAbi) -> None:
    """ValueError for values that `revive` lets pass and that later stages would trip over."""
    if not facts.objects:
        raise ValueError("no objects")
    for one in facts.objects:
        if not all(isinstance(text, str) for text in (one.soname, one.path, one.digest)):
            raise ValueError(f"object {one.soname!r}: soname, path and digest must be text")
        if "/" in one.soname or not one.path.startswith("/") or _escapes(one.place):
            raise ValueError(f"object {one.soname!r}: {one.path!r}, {one.place!r}")
    for file in facts.data:
        if not file.path.startswith("/") or _escapes(file.place):
            raise ValueError(f"data file {file.path!r}, {file.place!r}")


def _escapes(place: str) -> bool:
    return place.startswith("/") or ".." in place.split("/")


# ------------------------------------------------------------------ one MPI of this machine


class _Found:
    """What has been found so far. Libraries are by soname: a process maps one of each name, and
    the graft has one folder for them."""

    def __init__(self, mpi: MpiInstall) -> None:
        self.mpi = mpi
        self.loader = env.apply(env.base(), mpi.environment, Scope.RANK)
        self.libraries: dict[str, AbiObject] = {}
        self.plugins: list[AbiObject] = []
        self.data: dict[str, DataFile] = {}
        self.environment: dict[str, EnvRow] = {}
        self.machine = ""
        self._openers: list[AbiObject] = []
        self._seen_rows: set[str] = set()

    def gather(self, libmpi: Path) -> None:
        first = elf.read(libmpi)
        self.machine = first.machine
        bindings = tuple(binding_files(self.mpi.abi, libmpi, first))
        for path, facts in ((libmpi, first), *bindings):
            self._keep(path, facts)
        for path, _ in ((libmpi, first), *bindings):
            self._closure(path)
        self._libc()
        for opener in self._openers:  # grows while it is walked: plugins open others in their turn
            for row in opened.concerning(opener.soname, self.mpi.family):
                self._row(row, opener)

    def glibc(self) -> str:
        """Version of the libc that this MPI uses: 2.36."""
        libc = next((x for x in self.libraries.values() if x.soname.startswith("libc.so.")), None)
        if libc is None:
            return ""
        with Path(libc.path).open("rb") as file:
            said = GLIBC.search(file.read(MAX_LIBC))
        return said[1].decode() if said else ""

    def _keep(self, path: Path, facts: Elf, place: str | None = None) -> None:
        one = _object(path, facts, place)
        if place:
            self.plugins.append(one)
        elif one.soname in self.libraries:
            return
        else:
            self.libraries[one.soname] = one
        self._openers.append(one)

    def _closure(self, path: Path) -> None:
        """What `path` needs and is not here yet.

        A library that is here already satisfies every need for its name, wherever a search of its
        own would have led, so what was found below such a search is not followed.
        """
        found = {
            r.name: r
            for r in resolve.closure(path, environment=self.loader)
            if r.path is not None and r.elf is not None
        }
        wanted = list(elf.read(path).needed)
        for name in wanted:  # grows while it is walked
            hit = found.pop(name, None)
            if hit is None or hit.path is None or hit.elf is None:
                continue
            if name not in self.libraries and hit.soname not in self.libraries:
                self._keep(hit.path, hit.elf)
                wanted += hit.elf.needed

    def _libc(self) -> None:
        """The rest of glibc's set beside libc: where it goes in, it goes in whole."""
        libc = next((x for x in self.libraries.values() if x.soname.startswith("libc.so.")), None)
        if libc is None:
            return
        for path in regular_files(Path(libc.path).parent):
            if role_of(path.name) is Role.LIBC and path.name not in self.libraries:
                facts = readable(path, self.machine)
                if facts is not None and facts.soname == path.name:
                    self._keep(path, facts)

    # -------------------------------------------------------------- what is opened by name

    def _row(self, row: Opened, opener: AbiObject) -> None:
        if row.id in self._seen_rows:
            return
        self._seen_rows.add(row.id)
        facts = self._facts(opener)
        names = []
        for path in _first(row.plugins, facts):
            elf_facts = readable(path, self.machine)
            if elf_facts is None:
                continue
            names.append(path.name)
            if row.plugins.place or (elf_facts.soname or path.name) not in self.libraries:
                self._keep(path, elf_facts, row.plugins.place)
                self._closure(path)
        pairs = dict(row.env)
        for files in row.data:
            hits = _first(files, facts)
            for path in hits:
                place = f"{files.place}/{path.name}"
                file = DataFile(str(path), place, cache.file_digest(path))
                self.data.setdefault(place, file)
            pairs |= files.env if hits else ()
        self._say(row, {**pairs, **row.list_of(names)})

    def _facts(self, opener: AbiObject) -> Mapping[str, tuple[str, ...]]:
        """What folders of the table may name, as they are here."""
        path = Path(opener.path)
        libc = [x.path for x in self.libraries.values() if x.soname.startswith("libc.so.")]
        return {
            "dir": tuple(dict.fromkeys((str(path.parent), str(path.resolve().parent)))),
            "prefix": (str(self.mpi.prefix),),
            "system": tuple(str(Path(p).parent) for p in libc),
            "etc": ("/etc",) if str(path.resolve()).startswith(SYSTEM) else (),
        }

    def _say(self, row: Opened, pairs: Mapping[str, str]) -> None:
        for name, value in pairs.items():
            source = f"opened.toml, {row.id}"
            self.environment.setdefault(name, EnvRow(name, value, Scope.RANK, source))


def _object(path: Path, facts: Elf, place: str | None) -> AbiObject:
    """`place` None: not opened by name but needed."""
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


def _first(files: Files, facts: Mapping[str, tuple[str, ...]]) -> list[Path]:
    """The files of the first folder that has some."""
    for template in files.folders:
        for folder in opened.expanded(template, facts):
            reads.file(folder)
            place = Path(folder).resolve()
            if hits := [path for path in regular_files(place) if files.names.fullmatch(path.name)]:
                return hits
    return []
