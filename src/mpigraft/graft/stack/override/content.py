"""Decide what goes into an override: which files, under which names, searching where.

Programs of a stack find by its folders what they need by name: the MPI's bindings, and nothing
else. All else that the MPI brings is in a folder of the generation that no program searches,
under names and with symbols of its own, so that no program gets another library than before. The
launcher of these programs is not ours, so each copy needs a small library, which answers in place
of getenv() what the MPI's environment has to be (native/preload/settings.c). Compiled-in paths were
rejected: they lead to the host's own plugins, which need the host's own libraries beside the
copies. Setting the process's environment was rejected: what the program starts inherited it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from mpigraft.binary import Elf, read_elf
from mpigraft.core.cache import file_digest
from mpigraft.core.errors import CheckFailed
from mpigraft.core.model import AbiObject, Copy, MpiAbi, MpiInstall, Role
from mpigraft.core.serialize import digest, plain
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.injection.private_names import PrivateNames
from mpigraft.graft.stack.override.launcher import launcher_scripts
from mpigraft.graft.stack.values import Slot
from mpigraft.knowledge import binding_of, is_network_library, network_library_of

FORM = 5  # of a generation: what this module makes of one MPI and one override
GENERATION = "{generation}"  # for the folder of a generation, as programs spell it
PRIVATE_FOLDER = "mpi"  # the copies' prefix: lib, share, etc
LIB = f"{PRIVATE_FOLDER}/lib"
ENVIRONMENT_FILE = f"{PRIVATE_FOLDER}/environment"
SETTINGS = "libmpigraft-settings-"  # begins the name of our library in a generation
ANSWERED = {
    "getenv": "mpigraft_getenv",
    "secure_getenv": "mpigraft_getenv",
    "setenv": "mpigraft_setenv",
}  # what our library defines for copies; each generation's by a name of its own
# The kernel's driver belongs to them: two copies in one process are two drivers.
OF_GPU = re.compile(
    r"lib(cuda|cudart|nvidia-\w+|nvcuvid|amdhip64|hsa-runtime64|hsakmt|rocm_smi64|rocprofiler\S*"
    r"|ze_loader|drm\w*)\.so(\.[\d.]+)?"
)
# A Fortran or C++ binding shares these with its callers, in whose stack they are.
OF_COMPILER = re.compile(
    r"lib(gcc_s|stdc\+\+|gfortran|quadmath|gomp|atomic|flang\w*|nvf|pgf90\w*|ifcore\w*|ifport"
    r"|imf|svml|intlc|irng|craymath|f|fi|u)\.so\.\d+"
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that has a copy in a generation."""

    path: str
    digest: str  # SHA-256 when it was copied


@dataclass(frozen=True, slots=True)
class OverridePlan:
    """The host MPI in an override, as plain data. Names are below the folder of a generation."""

    key: str  # SHA-256 over contents
    mpi: str  # id
    slot: Slot
    public: str  # folder in which programs search, empty: the generation's own
    copies: tuple[Copy, ...]  # `{generation}` in a search path
    links: tuple[tuple[str, str], ...]  # (name, what it points to)
    environment: tuple[tuple[str, str | None], ...]  # as copies see it; None: unset
    libraries: tuple[tuple[str, AbiObject], ...] = field(repr=False, default=())
    scripts: tuple[tuple[str, str], ...] = ()  # (name, text) of the launcher
    launcher: SourceFile | None = None  # that they start
    accepted: tuple[str, ...] = ()  # paths of programs that need not fit; no part of the key

    @property
    def twins(self) -> dict[str, str]:
        """Give {name: name before it} of copies that are equal. They have to be one file: then the
        loader sees one."""
        first: dict[tuple[object, ...], str] = {}
        twins: dict[str, str] = {}
        for c in self.copies:
            if c.edit:
                key = (c.digest, c.rpath, c.soname, c.renamed, c.symbols, c.added)
                if first.setdefault(key, c.name) != c.name:
                    twins[c.name] = first[key]
        return twins

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The files of the host."""
        copied = (SourceFile(copy.source, copy.digest) for copy in self.copies)
        return tuple(dict.fromkeys((*copied, *([self.launcher] if self.launcher else []))))

    @property
    def bindings(self) -> tuple[str, ...]:
        """Names under which programs find the MPI."""
        own = [c.name for c in self.copies] + [name for name, _ in self.links]
        folder = self.public
        return tuple(
            sorted(
                posixpath.basename(name)
                for name in own
                if posixpath.dirname(name) == folder and ".so" in posixpath.basename(name)
            )
        )


def settings_name(key: str) -> str:
    """Name our library of a generation. The key is a part of it: every process that runs on the
    generation maps this file, so its name separates two of the same number, on two nodes."""
    return f"{SETTINGS}{key[:16]}.so"


def plan_override(abi: MpiAbi, slot: Slot, needed: Collection[str], settings: Path) -> OverridePlan:
    """Plan `abi` for the programs that search `slot`, which need these sonames of MPI. `settings`
    is our library that answers for the environment. Raises CheckFailed where the MPI has none."""
    if holds := network_library_of(abi.objects[0].soname):
        needed = [o.soname for o in abi.objects if is_network_library(o.soname, holds)]
    chosen = _Chosen(abi, needed)
    if not chosen.public:
        raise CheckFailed.of(
            "override-no-binding", mpi=abi.mpi.id, slot=slot.path, needed=", ".join(sorted(needed))
        )
    public = slot.names[0]
    rpath = f"{posixpath.join(GENERATION, public)}:{GENERATION}/{LIB}"
    libraries = dict(chosen.libraries(public))
    copies = [chosen.copy(name, one, rpath) for name, one in libraries.items()]
    copies += [Copy(d.path, f"{PRIVATE_FOLDER}/{d.place}", d.digest) for d in abi.data]
    links = [*chosen.links(public)]
    links += [(name, posixpath.relpath(public or ".", posixpath.dirname(name) or "."))
              for name in slot.names[1:]]  # fmt: skip
    place = f"{GENERATION}/{PRIVATE_FOLDER}"
    environment = tuple(
        (row.name, row.value and row.value.replace("{graft}", place)) for row in abi.environment
    )
    copies.sort(key=lambda copy: copy.name)
    own = file_digest(settings)
    launcher = None if holds else _launcher(abi.mpi)
    scripts = () if holds else launcher_scripts(abi.mpi)
    content = [
        FORM, slot.path, slot.names, links, environment, own, scripts, launcher,
        [[c.name, c.digest, c.edit, c.rpath, c.soname, c.renamed, c.symbols] for c in copies],
    ]  # fmt: skip
    key = digest(plain(content))
    answering = Copy(str(settings), f"{LIB}/{settings_name(key)}", own)
    return OverridePlan(
        key=key,
        mpi=abi.mpi.id,
        slot=slot,
        public=public,
        copies=(*_marked(answering, copies, key),),
        links=tuple(links),
        environment=environment,
        libraries=tuple(libraries.items()),
        scripts=scripts,
        launcher=launcher,
    )


def _marked(settings: Copy, copies: Iterable[Copy], key: str) -> Iterator[Copy]:
    """Yield our library and the copies, which need it. What it defines has the key in its name: a
    process may have libfabric and UCX of two generations, and each asks its own library."""
    own = {name: f"{name}_{key[:16]}" for name in ANSWERED.values()}
    yield replace(settings, edit=True, symbols=tuple(own.items()))
    for copy in copies:
        symbols = tuple((old, own.get(new, new)) for old, new in copy.symbols)
        added = (PurePosixPath(settings.name).name,)
        yield replace(copy, added=added, symbols=symbols) if copy.edit else copy


def _launcher(mpi: MpiInstall) -> SourceFile | None:
    try:
        return SourceFile(str(mpi.launcher), file_digest(mpi.launcher)) if mpi.launcher else None
    except OSError:  # of another machine
        return None


class _Chosen:
    """The libraries of a host MPI that go in: `public` by the name that programs ask for."""

    def __init__(self, abi: MpiAbi, needed: Collection[str]) -> None:
        self.offered = {o.soname: o for o in abi.objects if not (o.opened and o.place)}
        self.naming = PrivateNames(abi.objects, self.offered)
        self.plugins = [o for o in abi.objects if o.opened and o.place]
        self.programs = abi.programs
        self.aliases: dict[str, str] = {}
        self.public = self._public(abi, needed)
        inside = self._closure()
        self.linked = {name: o for name, o in inside.items() if OF_GPU.fullmatch(name)}
        kept = {name for name, o in inside.items() if o.opened}  # Intel MPI opens it by this name
        self.private = [n for n in inside if n not in self.linked and n not in kept]
        self.kept = kept
        self.naming.chosen += self.private

    def _public(self, abi: MpiAbi, needed: Collection[str]) -> dict[str, AbiObject]:
        public: dict[str, AbiObject] = {}
        for name in sorted(needed):
            if (library := self.naming.library_for(name)) is not None:
                public[library.soname] = library
                if name != library.soname:
                    self.aliases[name] = library.soname
        if public:
            public.setdefault(abi.objects[0].soname, abi.objects[0])
        names = [*public]
        for name in names:  # grows: a Fortran binding needs another
            more = [n for n in public[name].needed if binding_of(n) and n in self.offered]
            names += [n for n in more if n not in public]
            public |= {n: self.offered[n] for n in more}
        return public

    def _closure(self) -> dict[str, AbiObject]:
        """Give what the public libraries and the plugins need, without glibc and what is public."""
        inside: dict[str, AbiObject] = {}
        rest: list[AbiObject] = [*self.public.values(), *self.plugins]
        rest += [*self.programs, *(o for o in self.offered.values() if o.opened)]
        for library in rest:  # grows while it is walked
            own = [library.soname] if library.opened and not library.place else []
            for name in (*own, *self.needs(library)):
                other = self.offered.get(name)
                known = name in inside or name in self.public
                if other and not known and other.role is not Role.LIBC:
                    inside[name] = other
                    rest.append(other)
        return inside

    def needs(self, library: AbiObject) -> tuple[str, ...]:
        """List what a library needs of the host, where its callers do not have it of the stack."""
        return tuple(n for n in library.needed if not _shared(library, n))

    def libraries(self, public: str) -> Iterator[tuple[str, AbiObject]]:
        """Give (name below the generation, library) of every copy."""
        for name, library in self.public.items():
            yield posixpath.join(public, name), library
        for name in self.private:
            yield f"{LIB}/{self.naming.file_name(name)}", self.offered[name]
        for name in self.kept:
            yield f"{LIB}/{name}", self.offered[name]
        for plugin in self.plugins:
            yield f"{LIB}/{plugin.place}/{PurePosixPath(plugin.path).name}", plugin
        for program in self.programs:  # by the host's own loader
            yield f"{PRIVATE_FOLDER}/{program.place}/{PurePosixPath(program.path).name}", program

    def links(self, public: str) -> Iterator[tuple[str, str]]:
        for alias, name in self.aliases.items():
            yield posixpath.join(public, alias), name
        for name, library in self.linked.items():
            yield f"{LIB}/{name}", library.path

    def copy(self, name: str, library: AbiObject, rpath: str) -> Copy:
        naming, own = self.naming, set(self.needs(library))
        shared = [name for name in self.private if _shared(library, name)]
        imported = {symbol.partition("@")[0] for symbol in library.imported}
        answered = ((old, new) for old, new in ANSWERED.items() if old in imported)
        return Copy(
            source=library.path,
            name=name,
            digest=library.digest,
            edit=True,
            rpath=rpath,
            soname=naming.soname(library) if naming.private(library.soname) else "",
            renamed=tuple(pair for pair in naming.renamed(library) if pair[0] in own),
            symbols=(*naming.symbols(library, shared), *answered),
        )


def _shared(library: AbiObject, name: str) -> bool:
    """Return whether a binding takes a library of the compiler from its callers, whose objects it
    handles. A plugin of the same MPI may need a private copy of it."""
    binding = binding_of(library.soname)
    return bool(binding and binding.language != "c" and OF_COMPILER.fullmatch(name))


def override_files(plan: OverridePlan, generation: str) -> dict[str, Elf]:
    """Give the ELF facts of an override by the paths at which programs find its files, as if the
    generation at path `generation` were switched on. Nothing has to be made for that."""
    copies = {copy.name: copy for copy in plan.copies}
    files = {f"{generation}/{name}": _elf(copies[name], library, generation)
             for name, library in plan.libraries}  # fmt: skip
    settings = plan.copies[0]
    files[f"{generation}/{settings.name}"] = _renamed(settings)
    for name, target in plan.links:
        to = posixpath.normpath(posixpath.join(generation, posixpath.dirname(name), target))
        if to in files:
            files[f"{generation}/{name}"] = files[to]
    seen = {}
    for folder in plan.slot.folders:
        for path, facts in files.items():
            if posixpath.dirname(path) == posixpath.normpath(f"{generation}/{plan.public}"):
                seen[posixpath.join(folder, posixpath.basename(path))] = facts
    return files | seen


def _renamed(settings: Copy) -> Elf:
    """Give the facts of our library with the names that it has in a generation."""
    facts, names = replace(read_elf(settings.source)), dict(settings.symbols)
    own = (s._replace(name=names.get(s.name, s.name)) for s in facts.exported)
    facts.__dict__["exported"] = tuple(own)
    return facts


def _elf(copy: Copy, library: AbiObject, generation: str) -> Elf:
    return as_elf(
        replace(library, needed=(*copy.added, *library.needed)),
        name=f"{generation}/{copy.name}",
        rpath=copy.rpath.replace(GENERATION, generation),
        soname=copy.soname,
        renamed=dict(copy.renamed),
        symbols=dict(copy.symbols),
    )
