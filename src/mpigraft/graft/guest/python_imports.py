"""Follow the imports of a Python program to the modules that need MPI, without running any.

Each import is found as the interpreter of the guest would find it, and its source is parsed in
turn. Modules of the standard library import no others and are left out. What depends on the run
(an import by a computed name, a library opened with ctypes) is listed as such: a check reports it
as unknown and never refuses for it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mpigraft.binary import ElfError, Root, RootError
from mpigraft.graft.guest import own_mpi
from mpigraft.graft.guest.python_search import Finder, Python, PythonModule
from mpigraft.graft.guest.python_source import Import, PythonSource, read_source, skim_source
from mpigraft.knowledge import binding_of

MAX_SOURCE = 1 << 23  # bytes of one file
MAX_BYTES = 1 << 28  # of all that is parsed
MAX_MODULES = 20_000
MAX_FILES = 50_000  # of a package whose extensions are opened by computed names
MAX_EXTENSION = 1 << 26
MAX_DOTS = 64  # of a module's name: folders in folders
MANY = 4  # of a kind that a message names
# Libraries that never need an MPI: most extension modules need no others.
PLAIN = ("libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "libgcc_s.so.",
         "libstdc++.so.", "libpython3", "ld-linux", "libgfortran.so.", "libquadmath.so.",
         "libutil.so.", "libz.so.", "linux-vdso.so.")  # fmt: skip


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """The start of an interpreter: a script, a module, or code of the command line."""

    name: str  # __main__, or the module of -m
    folder: str  # its sys.path[0]; empty: none
    data: bytes = b""  # of a script or of -c
    file: str = ""  # path inside of a script


@dataclass(frozen=True, slots=True)
class Imports:
    """The result of following imports. Paths are inside, sorted."""

    certain: tuple[str, ...] = ()  # extension modules that need MPI, imported in any case
    possible: tuple[str, ...] = ()  # the same, imported on a condition
    unknown: tuple[str, ...] = ()  # what the user's own modules do that cannot be followed
    beyond: tuple[str, ...] = ()  # what else decides and is not followed: of packages
    sources: tuple[
        str, ...
    ] = ()  # the user's own files that were read, and the folders of packages


@dataclass(slots=True)
class _Follower:
    root: Root
    python: Python
    finder: Finder
    top: tuple[str, ...]  # sys.path
    script: str = "-c"
    modules: dict[str, PythonModule | None] = field(default_factory=dict)
    sources: dict[tuple[str, bool], PythonSource] = field(default_factory=dict)  # module, skimmed
    reached: dict[str, bool] = field(default_factory=dict)  # module: certain
    queue: deque[str] = field(default_factory=deque)
    left: int = MAX_BYTES
    unknown: dict[str, None] = field(default_factory=dict)
    beyond: dict[str, None] = field(default_factory=dict)
    owned: dict[str, None] = field(default_factory=dict)
    loose: dict[str, None] = field(default_factory=dict)  # packages that open by computed names
    needing: dict[str, bool] = field(default_factory=dict)

    def start(self, program: EntryPoint) -> None:
        if program.data or program.file:
            self.script = program.file.rpartition("/")[2] or "-c"
            source = read_source(program.data, main=True)
            self._take("__main__", "", program.file or "-c", source, certain=True, own=True)
            if program.file:
                self.owned[program.file] = None
        else:
            self.reach(program.name, certain=True)
            module = self._module(program.name)
            if module is None:
                self.unknown[f"module {program.name} is not found"] = None
            elif module.folders:
                self.reach(f"{program.name}.__main__", certain=True)

    def follow_all(self) -> None:
        while self.queue:
            if len(self.reached) > MAX_MODULES:
                self.beyond[f"more than {MAX_MODULES} modules"] = None
                return
            name = self.queue.popleft()
            self._visit(name, certain=self.reached[name])

    def _visit(self, name: str, *, certain: bool) -> None:
        module = self._module(name)
        if module is None or module.kind in ("namespace", "other"):
            return
        if module.kind == "extension":
            self._extension(module)
            return
        package = name if module.folders else name.rpartition(".")[0]
        own = not (self._in_site(module.files[0]) or self._below_stdlib(module.files[0]))
        source = self._source(module, skim=not (own or certain))
        if own:
            self.owned[module.files[0]] = None
        self._take(name, package, module.files[0], source, certain=certain, own=own)

    def _take(
        self, name: str, package: str, file: str, source: PythonSource, *, certain: bool, own: bool
    ) -> None:
        """Follow the imports of a source, and note what cannot be followed."""
        notes = self.unknown if own else self.beyond
        short = file.rpartition("/")[2]
        if source.unparsed:
            notes[f"{short} cannot be parsed: {source.unparsed}"] = None
        for place in source.opens[:MANY]:
            notes[f"{short}, {place}"] = None
        if source.opens and not own:
            self.loose[name.partition(".")[0]] = None
        for place in source.starts[:MANY]:
            self.beyond[f"{short}, {place}"] = None
        for statement in source.imports:
            self._import(statement, name, package, certain=certain and statement.certain)

    def _import(self, statement: Import, by: str, package: str, *, certain: bool) -> None:
        base = _absolute(statement, package)
        if not base:
            return
        if not self.reach(base, certain=certain):
            if certain and not statement.level:
                self.beyond[f"{self._short(by)} imports {base}, which is not found"] = None
            return
        module = self._module(base)
        if module is None or not module.folders:
            return
        source = (
            self._source(module, skim=False)
            if module.kind == "source" and statement.names
            else None
        )
        names = (
            *statement.names,
            *(source.everything if source and "*" in statement.names else ()),
        )
        for name in names:
            if name != "*" and self._module(f"{base}.{name}") is not None:
                others = int(base == by)  # this very import binds it too
                bound = source is not None and (
                    source.binds.count(name) > others or self._binds_by_star(base, source, name)
                )
                self.reach(f"{base}.{name}", certain=certain and not bound)

    def _binds_by_star(self, package: str, source: PythonSource, name: str) -> bool:
        """Return whether a star import in a package may bind a name: then `from` imports no
        submodule."""
        seen = {package}
        rest = [(package, source)]
        while rest:
            whence, one = rest.pop()
            for statement in one.imports:
                other = _absolute(statement, whence) if "*" in statement.names else ""
                module = self._module(other) if other and other not in seen else None
                if module is None:
                    continue
                seen.add(other)
                inner = self._source(module, skim=False) if module.kind == "source" else None
                if inner is None or self._module(f"{other}.{name}") is not None:
                    return True
                if name in inner.binds:
                    return True
                rest.append((other if module.folders else other.rpartition(".")[0], inner))
        return False

    def reach(self, name: str, *, certain: bool) -> bool:
        """Queue a module and its packages; False where there is none. A module is visited once as
        uncertain, and again when it turns out to be certain."""
        parts = name.split(".")
        if self._standard(parts[0]):
            return True
        for count in range(1, len(parts) + 1):
            whole = ".".join(parts[:count])
            if self._module(whole) is None:
                return False
            if self.reached.get(whole, False) < certain or whole not in self.reached:
                self.reached[whole] = certain
                self.queue.append(whole)
        return True

    def _short(self, name: str) -> str:
        module = self.modules.get(name)
        return module.files[0].rpartition("/")[2] if module and module.files else self.script

    def _standard(self, top: str) -> bool:
        """Return whether a top-level module is the standard library's: built in, or found there
        first."""
        if top in sys.builtin_module_names:
            return True
        module = self._module(top)
        if module is None:
            return top in sys.stdlib_module_names
        files = (*module.files, *module.folders)
        return any(self._below_stdlib(f) and not self._in_site(f) for f in files)

    def _module(self, name: str) -> PythonModule | None:
        if name not in self.modules:
            deep = name.count(".") > MAX_DOTS
            self.modules[name] = None if deep else self._find_module(name)
        return self.modules[name]

    def _find_module(self, name: str) -> PythonModule | None:
        package, _, _ = name.rpartition(".")
        if not package:
            place = dict(self.python.mapped).get(name)
            if place and (module := self.finder.find(name, (place.rpartition("/")[0],))):
                return module
            return self.finder.find(name, self.top)
        parent = self._module(package)
        return self.finder.find(name, parent.folders) if parent and parent.folders else None

    def _in_site(self, file: str) -> bool:
        return any(file.startswith(f"{site}/") for site in self.python.sites)

    def _below_stdlib(self, file: str) -> bool:
        return file.startswith((f"{self.python.stdlib}/", f"{self._wide}/"))

    @property
    def _wide(self) -> str:
        """The folder where Fedora and SUSE have the compiled part of the standard library."""
        return self.python.stdlib.replace("/lib/", "/lib64/")

    def _source(self, module: PythonModule, *, skim: bool) -> PythonSource:
        """Parse a module, or skim its lines: a package's module whose import is uncertain cannot
        refuse, and setuptools behind NumPy has a thousand of those."""
        key = module.name, skim
        if key not in self.sources:
            self.sources[key] = self._read(module, skim=skim)
        return self.sources[key]

    def _read(self, module: PythonModule, *, skim: bool) -> PythonSource:
        try:
            data = self.finder.source(module, min(MAX_SOURCE, self.left + 1))
        except RootError as error:
            return PythonSource(unparsed=str(error))
        self.left -= len(data)
        if self.left < 0:
            return PythonSource(unparsed=f"more than {MAX_BYTES >> 20} MiB of sources are not read")
        if skim:
            return skim_source(data)
        return read_source(data, main=module.name.endswith(".__main__"))

    def _extension(self, module: PythonModule) -> None:
        """Follow the imports of a compiled module: those that need MPI mostly import mpi4py."""
        for file in module.files:
            if self.needs(file) and not module.name.startswith("mpi4py"):
                try:
                    data = self.root.read(file, MAX_EXTENSION)
                except RootError:
                    continue
                if b"mpi4py" in data:
                    self.reach("mpi4py.MPI", certain=False)

    def needs(self, file: str) -> bool:
        if file not in self.needing:
            self.needing[file] = self._needs(file)
        return self.needing[file]

    def _needs(self, file: str) -> bool:
        try:
            needed = self.root.elf(file).needed
        except (ElfError, RootError):
            return False
        if any(binding_of(name) for name in needed):
            return True
        return not all(name.startswith(PLAIN) for name in needed) and own_mpi.needs(self.root, file)

    def extensions(self) -> dict[str, bool]:
        """Give {extension module that needs MPI: whether its import is certain}."""
        certainty: dict[str, bool] = {}
        for name, certain in self.reached.items():
            module = self._module(name)
            if module is not None and module.kind == "extension":
                for file in module.files:
                    if self.needs(file):
                        certainty[file] = certainty.get(file, False) or certain
        for file in self._computed():
            certainty.setdefault(file, False)
        return certainty

    def _computed(self) -> Iterator[str]:
        """Yield libraries of packages that open them by computed names (petsc4py)."""
        for top in self.loose:
            module = self._module(top)
            count = 0
            for folder in module.folders if module else ():
                for entry in self.root.files(folder):
                    count += 1
                    if count > MAX_FILES:
                        break
                    if ".so" in entry.path.rpartition("/")[2] and self.needs(entry.path):
                        yield entry.path


def _absolute(statement: Import, package: str) -> str:
    """Name the module of an import; "" for one beyond the top, which is an ImportError."""
    if not statement.level:
        return statement.module
    parts = package.split(".") if package else []
    if statement.level - 1 > len(parts) or not parts:
        return ""
    parts = parts[: len(parts) - statement.level + 1]
    return ".".join([*parts, *([statement.module] if statement.module else [])])


def follow(root: Root, python: Python, starts: Sequence[EntryPoint], machine: str) -> Imports:
    """Follow what `starts` import to all that needs MPI. `machine` is as `uname -m`."""
    follower = _walked(root, python, starts, machine)
    extensions = follower.extensions()
    return Imports(
        tuple(sorted(f for f, certain in extensions.items() if certain)),
        tuple(sorted(f for f, certain in extensions.items() if not certain)),
        tuple(follower.unknown),
        tuple(follower.beyond),
        tuple(sorted({*follower.owned, *python.sites})),
    )


def _walked(root: Root, python: Python, starts: Sequence[EntryPoint], machine: str) -> _Follower:
    folders = tuple(dict.fromkeys(start.folder for start in starts if start.folder))
    finder = Finder(root, python.version, machine)
    follower = _Follower(root, python, finder, (*folders, *python.path))
    for start in starts:
        follower.start(start)
    for name in ("sitecustomize", "usercustomize") if python.sites else ():
        follower.reach(name, certain=True)
    follower.follow_all()
    for hook in python.hooks:
        if not hook.endswith("/distutils-precedence.pth"):
            follower.beyond[f"{hook.rpartition('/')[2]} runs code at the start"] = None
    return follower
