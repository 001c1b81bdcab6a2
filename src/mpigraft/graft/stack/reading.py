"""Read a software stack: every ELF file once, and of these the ones that need MPI.

Files are distinguished by device and inode, so that hard links are one file. Links are not followed
below the root: what a tree of links shows is read in its place.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mpigraft.binary import Elf, ElfError, read_elf
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Role
from mpigraft.graft.guest.mpi_sonames import MPI_TOOLS, LinkedFile, mpi_carriers
from mpigraft.graft.stack.overrides import find_slots, leading_folders, slots_of
from mpigraft.graft.stack.places import below, layer_root, module_of, tree_of, trees_of
from mpigraft.graft.stack.targets import cpu_target
from mpigraft.graft.stack.values import Stack, StackLoader, StackProgram
from mpigraft.knowledge import binding_of, is_libmpi, role_of

LIBMPI = re.compile(rb"(?<![\w/.+-])(libmpi[\w+-]{0,40}\.so\.\d{1,3})\0")
LOADED, NOT_ELF = ("exec", "dyn"), "not an ELF file"
SMALLEST = 64  # bytes: no ELF header fits in less
MAX_UNREAD = 1000
# Ends of names that no linker writes, nine tenths of a stack's files: they are not opened.
OTHER_FILES = frozenset([
    "py", "pyc", "pyi", "h", "hh", "hpp", "hxx", "inc", "c", "cc", "cpp", "cxx", "f", "f90", "mod",
    "a", "la", "o", "pc", "cmake", "txt", "md", "rst", "html", "css", "js", "json", "xml", "yaml",
    "yml", "toml", "png", "svg", "jpg", "gif", "pdf", "gz", "bz2", "xz", "zip", "tar", "eb", "lua",
    "log", "sh", "pl", "pm", "rb", "R", "Rd", "rda", "tcl", "csv", "dat", "npy", "mat", "ui", "po",
])  # fmt: skip

Counted = Callable[[int], None]  # how many ELF files have been read


class ElfFacts(NamedTuple):
    """What of an ELF file decides whether it needs MPI, and where it searches."""

    path: str
    soname: str
    needed: tuple[str, ...]
    program: bool
    machine: str
    interpreter: str
    rpath: str  # DT_RPATH, where it counts: empty beside a DT_RUNPATH
    runpath: bool
    opens: tuple[str, ...]  # names of libmpi that a program has in its text, to open one

    @property
    def linked(self) -> LinkedFile:
        name = self.path.rpartition("/")[2]
        return LinkedFile(self.path, (name, self.soname or name), self.needed, self.program)


def read_stack(path: Path | str, counted: Counted = lambda _: None) -> Stack:
    """Read the stack at `path`: a folder, or one program of a stack.

    `counted` is called with the number of ELF files at times, for progress. Raises UsageError for
    a path that is no folder and no program, a loop of links, or a folder that may not be read.
    """
    given = Path(os.path.abspath(path))  # noqa: PTH100  links stay as they are given
    real = _real(given)
    only = ""
    if real.is_dir():
        given = cpu_target(given)
        real = _real(given)
    else:
        only, given = str(real), tree_of(real)
        real = given
    unread: list[str] = []
    facts = [_facts_of(only)] if only else []
    if not only:
        for one in _elf_files(str(real), unread):
            facts.append(one)
            if len(facts) % 100 == 0:
                counted(len(facts))
    counted(len(facts))
    return _stack(str(given), str(real), facts, unread, only)


def _real(path: Path) -> Path:
    try:
        real = path.resolve(strict=True)
        if real.is_dir():
            os.scandir(real).close()
    except RuntimeError as error:  # of a loop, by Python before 3.13
        raise UsageError.of("stack-link-loop", path=path) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UsageError.of("stack-link-loop", path=path) from error
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error
    except ValueError as error:  # a NUL
        raise UsageError.of("file-unusable", path=repr(path), reason=error) from error
    return real


def _facts_of(program: str) -> ElfFacts:
    try:
        elf = read_elf(program)
        if elf.type not in LOADED:
            raise ElfError(f"{program}: no program and no library")
    except ElfError as error:
        raise UsageError.of("stack-no-elf", error=error) from error
    return _facts(elf, program, executable=os.access(program, os.X_OK))


# ------------------------------------------------------------------ files


def _elf_files(root: str, unread: list[str]) -> Iterator[ElfFacts]:
    """Yield the facts of each ELF file below `root`."""
    known: set[tuple[int, int]] = set()
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                names = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            _note(unread, folder)
            continue
        later = []
        for entry in names:
            if entry.is_dir(follow_symlinks=False):
                later.append(entry.path)
            elif _may_be_elf(entry.name) and entry.is_file(follow_symlinks=False):
                facts = _read(entry, known, unread)
                if facts is not None:
                    yield facts
        folders += reversed(later)


def _may_be_elf(name: str) -> bool:
    stem, _, end = name.rpartition(".")
    return not stem or end not in OTHER_FILES or ".so" in name


def _read(
    entry: os.DirEntry[str], known: set[tuple[int, int]], unread: list[str]
) -> ElfFacts | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # removed meanwhile
        return None
    executable = bool(status.st_mode & 0o111)
    if status.st_size < SMALLEST or not (executable or ".so" in entry.name):
        return None
    if status.st_nlink > 1:
        identity = (status.st_dev, status.st_ino)
        if identity in known:
            return None
        known.add(identity)
    try:
        elf = read_elf(entry.path)
    except ElfError as error:
        if isinstance(error.__cause__, OSError) or NOT_ELF not in str(error):
            _note(unread, entry.path)
        return None
    return _facts(elf, entry.path, executable=executable) if elf.type in LOADED else None


def _facts(elf: Elf, path: str, *, executable: bool) -> ElfFacts:
    name = path.rpartition("/")[2]
    library = elf.soname is not None and ".so" in name  # some have an interpreter, as libc does
    return ElfFacts(
        path=path,
        soname=elf.soname or "",
        needed=elf.needed,
        program=bool(elf.interpreter and executable) and not library,
        machine=elf.machine,
        interpreter=elf.interpreter or "",
        rpath="" if elf.runpath is not None else elf.rpath or "",
        runpath=elf.runpath is not None,
        opens=_opened(elf, path) if elf.interpreter and executable and not library else (),
    )


def _opened(elf: Elf, path: str) -> tuple[str, ...]:
    """Give the names of libmpi that a program opens: it calls dlopen and has them in its text."""
    if any(map(binding_of, elf.needed)) or MPI_TOOLS.fullmatch(path.rpartition("/")[2]):
        return ()
    try:
        if not any(symbol.name in ("dlopen", "dlmopen") for symbol in elf.imported):
            return ()
        with open(path, "rb") as file:  # noqa: PTH123  mmap needs it
            text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, ElfError):
        return ()
    with text:
        names = dict.fromkeys(hit[1].decode() for hit in LIBMPI.finditer(text))
    return tuple(filter(is_libmpi, names))


def _note(unread: list[str], path: str) -> None:
    if len(unread) < MAX_UNREAD:
        unread.append(path)


# ------------------------------------------------------------------ what they make together


def _stack(
    root: str, real: str, facts: Sequence[ElfFacts], unread: Sequence[str], only: str
) -> Stack:
    trees = trees_of([one.path for one in facts], real) | ({root} if only else frozenset())
    chosen = [(one, mpi) for one, mpi in _needing(facts) if mpi]
    layers = {layer_root(one.interpreter) for one, _ in chosen if one.interpreter} - {"/"}
    inside = (*trees, *layers)
    leading = {one.path: leading_folders(one.rpath, inside) for one, _ in chosen}
    modules = {one.path: module_of(one.path, real) for one, _ in chosen}
    slots = find_slots([(leading[one.path], modules[one.path], mpi) for one, mpi in chosen])
    known = [slot.path for slot in slots]
    programs = [
        StackProgram(
            path=one.path,
            module=modules[one.path],
            executable=one.program,
            slots=slots_of(leading[one.path], slots),
            mpi=mpi,
            machine=one.machine,
            interpreter=one.interpreter if one.program else "",
            runpath=one.runpath,
            opens=bool(one.opens) and mpi[0] in one.opens,
        )
        for one, mpi in sorted(chosen)
        if not below(one.path, known)  # what somebody put into an override is no program of it
    ]
    return Stack(
        root=root,
        real=real,
        programs=tuple(programs),
        slots=slots,
        loader=_loader(facts),
        elf_files=len(facts),
        unread=tuple(unread),
        only=only,
    )


def _loader(facts: Sequence[ElfFacts]) -> StackLoader | None:
    most = Counter(one.interpreter for one in facts if one.program).most_common(1)
    return StackLoader(most[0][0], layer_root(most[0][0])) if most else None


def _needing(facts: Sequence[ElfFacts]) -> Iterator[tuple[ElfFacts, tuple[str, ...]]]:
    """Yield the files that a user starts or opens, with the sonames of MPI that they need.

    Of libraries these are those that no file names, or that have one name with another: which of
    them is loaded, only a program tells. The parts of an MPI itself are left out.
    """
    files = [one.linked for one in facts]
    carriers = mpi_carriers(files)
    sonames = _mpi_of_carriers(files, carriers)
    named = {needed for file in files for needed in file.needed}
    every = {name for file in files for name in file.names}
    same_name = Counter(file.names[1] for file in files if not file.program)
    for one, file in zip(facts, files, strict=True):
        direct = tuple(name for name in file.needed if binding_of(name))
        if file.program:
            if carriers & set(file.needed) and not MPI_TOOLS.fullmatch(file.names[0]):
                through = (m for n in file.needed for m in sorted(sonames.get(n, ())))
                yield one, tuple(dict.fromkeys((*direct, *through)))
            elif there := [name for name in one.opens if name in every or len(files) == 1]:
                yield one, (there[0],)  # it takes the first that it can open
        elif direct and all(role_of(name) is Role.OTHER for name in file.names):
            alone = not named & set(file.names)
            if alone or same_name[file.names[1]] > 1:
                yield one, direct


def _mpi_of_carriers(
    files: Sequence[LinkedFile], carriers: frozenset[str]
) -> dict[str, frozenset[str]]:
    """Give {library that carries MPI: sonames of MPI that it needs}, by names."""
    sonames = {name: frozenset([name]) for name in carriers if binding_of(name)}
    libraries = [f for f in files if not f.program and carriers & set(f.needed)]
    grown = True
    while grown:
        grown = False
        for file in libraries:
            needed = frozenset().union(*(sonames.get(n, ()) for n in file.needed))
            for name in file.names:
                if not binding_of(name) and not needed <= sonames.get(name, frozenset()):
                    sonames[name] = sonames.get(name, frozenset()) | needed
                    grown = True
    return sonames
