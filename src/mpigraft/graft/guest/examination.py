"""Examine what was built elsewhere: which of its programs need MPI, and where they are.

A guest is read, never run, and not trusted. Its architecture may differ from this machine's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from mpigraft.binary import (
    BoundRoot,
    Elf,
    ElfError,
    FolderRoot,
    Root,
    RootError,
    SquashRoot,
    glibc_version,
    open_root,
    read_elf,
)
from mpigraft.core import cache, file_dependencies
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.model import GuestKind, GuestLabel
from mpigraft.core.serialize import digest
from mpigraft.graft.guest import own_mpi, podman, registry
from mpigraft.graft.guest.command import CommandKind, GuestCommand
from mpigraft.graft.guest.commands import command_of, is_interpreter
from mpigraft.graft.guest.mpi_free import without_mpi
from mpigraft.graft.guest.opened import named_libraries
from mpigraft.graft.guest.os_release import os_name
from mpigraft.graft.guest.own_mpi import GuestMpi
from mpigraft.graft.guest.python_search import is_python
from mpigraft.graft.guest.search import Searched, search
from mpigraft.graft.guest.starting import absent_loader, is_executable, locate, refuse_foreign
from mpigraft.graft.guest.visible import (
    NO_COVERS,
    Covers,
    Shown,
    bound_root,
    covers_of,
    find_named,
    nothing_shown,
    refuse_hidden,
    visible_of,
)

PODMAN_PREFIX = "podman:"
MAX_PROGRAMS = 1000  # each is loaded on paper, with and without the graft
MAX_FILE = 1 << 30  # bytes of one file of an image that has no file on this host
MAX_LOADED = 1 << 34  # bytes of all that programs load; a file with holes claims any size
ENV_PROGRAMS = ("/usr/bin/env", "/bin/env")
SHELLS = ("/bin/sh", *ENV_PROGRAMS)
NOTHING = Searched((), (), ())


class OpenedGuest(NamedTuple):
    """The file system of a guest, and what it is called."""

    kind: GuestKind
    name: str
    source: str
    root: Root
    number: str = ""  # its digest; empty: that of its files counts


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest, opened for reading. `libraries`: files that need MPI and that no program names,
    such as extension modules of Python; paths inside."""

    label: GuestLabel
    root: Root
    libraries: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()  # of these, what is opened on a condition only
    loose: bool = False  # which of the programs are started is not known
    covers: Covers = NO_COVERS
    unknown: tuple[str, ...] = ()  # what is not known of the words that it was examined for
    named: tuple[str, ...] = ()  # MPI libraries that the files of such words name

    @classmethod
    def opened(cls, spec: str) -> Guest:
        """Open an image by its name without a search for its programs. Raises as `examine_guest`,
        and UsageError for a program of this host."""
        path = Path(spec)
        if not (spec.startswith(PODMAN_PREFIX) or path.is_dir()) and is_elf_file(path):
            raise UsageError.of("guest-is-program", path=spec)
        with reading_guest(spec):
            return _open(spec)

    @classmethod
    def on_host(cls, path: Path, command: GuestCommand) -> Guest:
        """Make a guest of what a command of this machine starts, for which the whole machine is
        the image; `path` is what was named."""
        libraries = (*command.certain, *command.possible)
        root = FolderRoot(Path("/"))
        programs = command.programs if command.needs_mpi else command.candidates
        with reading_guest(str(path)):
            searched = Searched((), libraries, (os.uname().machine,))
            opened = OpenedGuest(GuestKind.PROGRAM, path.name, str(path.resolve()), root)
            label = label_of(opened, programs, searched)
        guest = cls(label, root, libraries, command.possible, loose=bool(command.candidates))
        return guest.with_unknown(command)

    def with_unknown(self, command: GuestCommand) -> Guest:
        """Give it what is not known of a command that may start or open any program."""
        if command.kind is not CommandKind.UNKNOWN:
            return self
        return replace(self, unknown=command.notes, named=command.opened)

    def leads_on(self, program: str) -> bool:
        """Return whether a program without MPI may start another or open a library."""
        return not self.interprets(program) and not without_mpi(self.root, program)

    def named_in(self, program: str) -> tuple[str, ...]:
        """List the MPI libraries that a program names in its own bytes."""
        return named_libraries(self.root, [program])

    def interprets(self, program: str) -> bool:
        """Return whether a program runs scripts, whose modules may need MPI."""
        return is_python(program) or is_interpreter(program)

    def absent_loader(self, main: Elf) -> str:
        """Give the loader that a program of the guest names and that is not there."""
        return absent_loader(self.root, main)

    def for_words(
        self, words: Sequence[str], folders: Mapping[str, Path], cwd: str
    ) -> tuple[Guest, GuestCommand]:
        """Examine this guest for the words that a rank starts in folder `cwd`, with no variable but
        the image's own; else as `examine_command`."""
        with reading_guest(self.label.name):
            return _examine_words(self, words, {}, folders, cwd)

    def command_of(self, words: Sequence[str], settings: Mapping[str, str]) -> GuestCommand:
        """Find out what `words` start in this guest; else as `examine_command`."""
        environment = {**dict(self.root.config().environment), **settings}
        with reading_guest(self.label.name):
            return command_of(self.root, words, environment, str(Path.cwd()))


@contextmanager
def reading_guest(spec: str) -> Iterator[None]:
    """Turn what cannot be read of a guest into an error that names it."""
    try:
        yield
    except RootError as error:
        raise UsageError.of("guest-not-whole", error=str(error)) from error
    except ElfError as error:
        raise UsageError.of("guest-elf-invalid", spec=spec, error=error) from error


def examine_guest(spec: str, programs: Sequence[str] = (), shown: Shown = nothing_shown) -> Guest:
    """Examine a guest by its name: the path of a program of this host, of a folder, a SIF, an OCI
    or docker archive; or `podman:IMAGE`. `shown`: the folders of this host that ranks see.

    `programs` are paths inside of it, or files of this host below the current folder, which
    engines bind; without any, it searches all that need MPI.
    Raises UsageError for what cannot be a guest or has no such program, MissingError where
    podman or a reader of the image is missing.
    """
    with reading_guest(spec):
        return _examine(spec, programs, shown)


def own_mpi_of(guest: Guest) -> GuestMpi | None:
    """Find the guest's own MPI; None where its programs find none."""
    subjects = (*guest.label.programs, *guest.libraries)
    return own_mpi.find_own_mpi(guest.root, subjects, dict(guest.label.environment))


def default_mpi(guest: Guest) -> GuestMpi | None:
    """Find the MPI in the folders that every loader searches, which a program may open by name."""
    return own_mpi.usual(guest.root, guest.label.architecture)


def own_mpis_of(guest: Guest) -> Iterator[GuestMpi]:
    """Yield every MPI on which a program of the guest runs, that of `own_mpi_of` first."""
    subjects = (*guest.label.programs, *guest.libraries)
    yield from own_mpi.every(guest.root, subjects, dict(guest.label.environment))


def _examine(spec: str, programs: Sequence[str], shown: Shown) -> Guest:
    path = Path(spec)
    if not spec.startswith(PODMAN_PREFIX) and not path.is_dir() and is_elf_file(path):
        return _program(path, programs)
    opened = _opened(spec)
    root = bound_root(opened.root, shown(opened.kind))
    return _image(opened._replace(root=root), programs)


def _opened(spec: str) -> OpenedGuest:
    if registry.is_name(spec):
        spec = registry.fetched(spec)
    if spec.startswith(PODMAN_PREFIX):
        image = spec.removeprefix(PODMAN_PREFIX)
        archive, number = podman.saved(image)
        return OpenedGuest(GuestKind.PODMAN, image, image, open_root(archive), number)
    path = Path(registry.plain_path(spec))
    if path.is_dir():
        source = str(path.resolve())
        return OpenedGuest(GuestKind.FOLDER, Path(source).name or "/", source, open_root(path))
    root = open_root(path)
    kind = GuestKind.SIF if isinstance(root, SquashRoot) else GuestKind.OCI
    return OpenedGuest(kind, path.name, str(path.absolute()), root, cache.file_digest(path))


def examine_command(
    spec: str, words: Sequence[str], settings: Mapping[str, str], shown: Shown
) -> tuple[Guest, GuestCommand]:
    """Examine the guest for the words of a job, and what these start.

    `settings` are variables of the job besides the image's own, `shown` the folders of this host
    that ranks see. For a script that may start one of several programs the guest has these, and for
    a program that may start any other it has all that need MPI; it is `loose` then. Raises as
    `examine_guest` does.
    """
    with reading_guest(spec):
        return _examine_command(spec, words, settings, shown)


def _examine_command(
    spec: str, words: Sequence[str], settings: Mapping[str, str], shown: Shown
) -> tuple[Guest, GuestCommand]:
    path = Path(spec)
    if not spec.startswith(PODMAN_PREFIX) and not path.is_dir() and is_elf_file(path):
        return _program(path, words[:1]), GuestCommand(CommandKind.MPI)
    guest = _open(spec)
    return _examine_words(guest, words, settings, shown(guest.label.kind), str(Path.cwd()))


def _open(spec: str) -> Guest:
    opened = _opened(spec)
    return Guest(label_of(opened, (), NOTHING), opened.root)


def _examine_words(
    guest: Guest,
    words: Sequence[str],
    settings: Mapping[str, str],
    folders: Mapping[str, Path],
    cwd: str,
) -> tuple[Guest, GuestCommand]:
    known, root = guest.label, bound_root(guest.root, folders)
    number = "" if known.kind is GuestKind.FOLDER else known.digest
    opened = OpenedGuest(known.kind, known.name, known.source, root, number)
    environment = {**dict(guest.root.config().environment), **settings}
    command = command_of(root, words, environment, cwd)
    if command.kind is CommandKind.LAUNCHER:
        return replace(guest, root=root), command
    if command.kind is CommandKind.UNKNOWN and not command.interpreted:
        if locate(root, words[0], environment, cwd)[1] is None:
            find_named(root, known.name, words[:1])  # raises where it is not there
        whole = _image(opened, command.candidates)
        return replace(whole, loose=True), command
    libraries = (*command.certain, *command.possible)
    searched = Searched((), libraries, ())
    label = label_of(opened, command.programs, searched)
    if command.kind is not CommandKind.MPI:  # our own program is checked in its place
        label = replace(label, programs=())
    covers = covers_of(root, label, (*command.programs, *libraries, *command.sources))
    guest = Guest(label, root, libraries, command.possible, covers=covers)
    return guest.with_unknown(command), command


def is_elf_file(path: Path) -> bool:
    """Test the type before opening: opening a fifo waits."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except (OSError, ValueError) as error:
        raise UsageError.of(
            "file-unusable", path=path, reason=getattr(error, "strerror", error)
        ) from error


# ------------------------------------------------------------------ the kinds


def _program(path: Path, programs: Sequence[str]) -> Guest:
    """Examine a program of this host; or of an unpacked image, where this host lacks its loader."""
    if programs:
        raise UsageError.of("guest-is-program", path=path)
    real = path.resolve()
    facts = read_elf(real)
    if facts.interpreter is None:
        raise CheckFailed.of("program-no-loader", path=path)
    below = facts.interpreter.lstrip("/")
    for folder in real.parents:
        file_dependencies.file(folder / below)
    home = next((f for f in real.parents if (f / below).exists()), Path("/"))
    own = Path("/") if (Path("/") / below).exists() else home
    inside = f"/{real.relative_to(own)}"
    if own == Path("/"):
        root: Root = FolderRoot(own)
        opened = OpenedGuest(GuestKind.PROGRAM, path.name, str(real), root)
        return Guest(label_of(opened, (inside,), NOTHING), root)
    return _image(OpenedGuest(GuestKind.FOLDER, path.name, str(own), open_root(own)), (inside,))


def _image(opened: OpenedGuest, programs: Sequence[str]) -> Guest:
    """Examine a file system."""
    name, root = opened.name, opened.root
    own = root.base if isinstance(root, BoundRoot) else root
    named, root = find_named(root, name, programs)
    searched, hidden = visible_of(NOTHING, root)
    if not named or not _need_mpi(root, named):
        searched, hidden = visible_of(search(own, opened.number), root)
    chosen = named or searched.programs
    if not (chosen or searched.libraries):  # then its own programs say what it is
        for program in SHELLS:
            refuse_foreign(root, program)
    if hidden and not chosen:
        refuse_hidden(root, name, hidden[0])
    if len(chosen) > MAX_PROGRAMS:
        raise UsageError.of(
            "programs-too-many", name=name, count=len(chosen), max_programs=MAX_PROGRAMS
        )
    label = label_of(opened._replace(root=root), chosen, searched)
    covers = replace(covers_of(root, label, named), programs=hidden)
    return Guest(label, root, searched.libraries, covers=covers)


def _need_mpi(root: Root, programs: Sequence[str]) -> bool:
    """Return whether each of these programs needs an MPI by itself, not through a plugin, or
    cannot."""
    return all(own_mpi.needs(root, one) or without_mpi(root, one) for one in programs)


# ------------------------------------------------------------------ the label


def label_of(opened: OpenedGuest, programs: tuple[str, ...], searched: Searched) -> GuestLabel:
    root, config = opened.root, opened.root.config()
    machines = [root.elf(program).machine for program in programs]
    libc = glibc_version(root)
    return GuestLabel(
        name=opened.name,
        kind=opened.kind,
        source=opened.source,
        digest=opened.number or _digest(root, (*programs, *searched.libraries), config.environment),
        architecture=next(filter(None, (*machines, config.architecture, *searched.machines)), ""),
        os=os_name(root),
        glibc=libc,
        programs=programs,
        environment=config.environment,
        env_program=next((p for p in ENV_PROGRAMS if is_executable(root.find(p))), ""),
        of_host=tuple(program for program in programs if _is_of_host(root, program)),
    )


def _is_of_host(root: Root, path: str) -> bool:
    """Return whether ranks find a file of this machine there, at a path that leads to it here
    too."""
    entry, own = root.find(path), Path(path)
    return bool(entry and entry.source and own.exists() and entry.source.samefile(own))


def _digest(root: Root, subjects: Sequence[str], environment: tuple[tuple[str, str], ...]) -> str:
    """Digest the paths and contents of the files that programs load. Raises RootError for more than
    can be read in a minute."""
    paths = set(subjects)
    for subject in subjects:
        levels = own_mpi.loaded_levels(root, subject, dict(environment))
        paths |= {str(r.path) for rows in levels for r in rows if r.path is not None}
    sizes = {e.identity: e for path in paths if (e := root.find(path)) is not None}
    largest = max(sizes.values(), key=lambda entry: entry.size, default=None)
    if largest and sum(entry.size for entry in sizes.values()) > MAX_LOADED:
        raise RootError(
            f"{root.name}: programs load more than {MAX_LOADED >> 30} GiB; the largest file is "
            f"{largest.path} with {largest.size >> 30} GiB"
        )
    rows = [(path, _content(root, path)) for path in sorted(paths)]
    return digest([rows, environment])


def _content(root: Root, path: str) -> str:
    entry = root.find(path)
    if entry is not None and entry.source is not None:
        try:
            return cache.file_digest(entry.source)
        except OSError as error:
            raise RootError(f"{path}: {error.strerror}") from error
    return hashlib.sha256(root.read(path, MAX_FILE)).hexdigest()
