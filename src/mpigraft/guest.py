"""What was built elsewhere: which programs of it need MPI, and what is known of their place.

A guest is read, never run, and not trusted. It may be of another architecture than this machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft import cache, elf, reads
from mpigraft.elf import ElfError
from mpigraft.errors import UsageError
from mpigraft.guest_loader import glibc_version
from mpigraft.guests import own_mpi, podman, registry
from mpigraft.guests.commands import Command, Kind, command_of, locate
from mpigraft.guests.own_mpi import GuestMpi
from mpigraft.guests.search import Searched, search
from mpigraft.jsonout import digest
from mpigraft.model import GuestKind, GuestLabel
from mpigraft.root import Bound, FolderRoot, Over, Root, RootError, open_root
from mpigraft.roots.squashfs import SquashRoot

__all__ = ["Guest", "GuestMpi", "examine", "examine_command", "mpi_of", "mpis_of", "usual_mpi"]

PODMAN = "podman:"
MAX_PROGRAMS = 1000  # each is loaded on paper, with and without the graft
MAX_OS_RELEASE = 1 << 16  # bytes
MAX_FILE = 1 << 30  # bytes of one file of an image that has no file on this host
MAX_LOADED = 1 << 34  # bytes of all that programs load; a file with holes claims any size
ENV_PROGRAMS = ("/usr/bin/env", "/bin/env")
NOTHING = Searched((), (), ())
READ_WHOLE = "a guest is read as a whole before anything starts"


@dataclass(frozen=True, slots=True)
class Guest:
    """A guest, opened for reading. `libraries`: files that need MPI and that no program names,
    such as extension modules of Python; paths inside."""

    label: GuestLabel
    root: Root
    libraries: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()  # of these, what is opened on a condition only
    loose: bool = False  # which of the programs are started is not known


def examine(spec: str, programs: Sequence[str] = ()) -> Guest:
    """The guest that a person named: the path of a program of this host, of a folder, a SIF, an
    OCI or docker archive; or `podman:IMAGE`.

    `programs` are paths inside of it, or files of this host below the current folder, which
    engines bind; without any, all that need MPI are looked for.
    Raises UsageError for what cannot be a guest or has no such program, MissingError where
    podman or a reader of the image is not here.
    """
    try:
        return _examine(spec, programs)
    except RootError as error:
        raise UsageError(str(error), why=READ_WHOLE) from error
    except ElfError as error:
        raise UsageError(f"{spec}: {error}") from error


def mpi_of(guest: Guest) -> GuestMpi | None:
    """The guest's own MPI; None where its programs find none."""
    subjects = (*guest.label.programs, *guest.libraries)
    return own_mpi.find(guest.root, subjects, dict(guest.label.environment))


def usual_mpi(guest: Guest) -> GuestMpi | None:
    """The MPI of the folders that every loader searches: what a program would open by name."""
    return own_mpi.usual(guest.root, guest.label.architecture)


def mpis_of(guest: Guest) -> Iterator[GuestMpi]:
    """Every MPI on which some program of the guest runs, the first as of `mpi_of`."""
    subjects = (*guest.label.programs, *guest.libraries)
    yield from own_mpi.every(guest.root, subjects, dict(guest.label.environment))


def _examine(spec: str, programs: Sequence[str]) -> Guest:
    path = Path(spec)
    if not spec.startswith(PODMAN) and not path.is_dir() and _is_elf(path):
        return _program(path, programs)
    kind, name, source, root, number = _opened(spec)
    return _image(kind, name, source, root, programs, number)


def _opened(spec: str) -> tuple[GuestKind, str, str, Root, str]:
    """(kind, name, source, root, digest) of a whole file system; an empty digest: that of its
    files is to be taken."""
    if registry.is_name(spec):
        spec = registry.fetched(spec)
    if spec.startswith(PODMAN):
        image = spec.removeprefix(PODMAN)
        archive, number = podman.saved(image)
        return GuestKind.PODMAN, image, image, open_root(archive), number
    path = Path(registry.plain_path(spec))
    if path.is_dir():
        source = str(path.resolve())
        return GuestKind.FOLDER, Path(source).name or "/", source, open_root(path), ""
    root = open_root(path)
    kind = GuestKind.SIF if isinstance(root, SquashRoot) else GuestKind.OCI
    return kind, path.name, str(path.absolute()), root, cache.file_digest(path)


def examine_command(
    spec: str, words: Sequence[str], settings: Mapping[str, str], folders: Mapping[str, Path]
) -> tuple[Guest, Command]:
    """The guest as far as the words of a job are concerned, and what is known of these.

    `settings` are variables of the job beside the image's own, `folders` those of this host that
    ranks see, {path inside: folder}. Of a shell, or whatever else may start any program, all that
    needs MPI in the image is meant, and `loose` says so. Raises as `examine` does.
    """
    try:
        return _examine_command(spec, words, settings, folders)
    except RootError as error:
        raise UsageError(str(error), why=READ_WHOLE) from error
    except ElfError as error:
        raise UsageError(f"{spec}: {error}") from error


def _examine_command(
    spec: str, words: Sequence[str], settings: Mapping[str, str], folders: Mapping[str, Path]
) -> tuple[Guest, Command]:
    path = Path(spec)
    if not spec.startswith(PODMAN) and not path.is_dir() and _is_elf(path):
        return _program(path, words[:1]), Command(Kind.MPI)
    kind, name, source, base, number = _opened(spec)
    root = Bound(base, folders)
    environment = {**dict(base.config().environment), **settings}
    found = command_of(root, words, environment, str(Path.cwd()))
    if found.kind is Kind.UNKNOWN and not found.interpreted:
        if locate(root, words[0], environment, str(Path.cwd()))[1] is None:
            _named(root, name, words[:1])  # raises the error for a program that is not there
        whole = _image(kind, name, source, base, (), number)
        return replace(whole, loose=True), found
    libraries = (*found.certain, *found.possible)
    searched = Searched((), libraries, ())
    label = _label(kind, name, source, root, (found.program,), number, searched)
    if found.kind is not Kind.MPI:  # what is judged in its place is a program of ours
        label = replace(label, programs=())
    return Guest(label, root, libraries, found.possible), found


def _is_elf(path: Path) -> bool:
    """Looked at before it is opened: a fifo would wait."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', error)}") from error


# ------------------------------------------------------------------ the kinds


def _program(path: Path, programs: Sequence[str]) -> Guest:
    """A program of this host; or of an unpacked image, where this host has not its loader."""
    if programs:
        raise UsageError(
            f"{path} is a program itself", mend="--program is for those of a folder or an image"
        )
    real = path.resolve()
    facts = elf.read(real)
    if facts.interpreter is None:
        raise UsageError(
            f"{path} has no dynamic loader: a library, or linked statically",
            why="a graft works through the loader",
        )
    below = facts.interpreter.lstrip("/")
    for folder in real.parents:
        reads.file(folder / below)
    home = next((f for f in real.parents if (f / below).exists()), Path("/"))
    own = Path("/") if (Path("/") / below).exists() else home
    inside = f"/{real.relative_to(own)}"
    if own == Path("/"):
        root: Root = FolderRoot(own)
        label = _label(GuestKind.PROGRAM, path.name, str(real), root, (inside,), "", NOTHING)
        return Guest(label, root)
    return _image(GuestKind.FOLDER, path.name, str(own), open_root(own), (inside,), "")


def _image(
    kind: GuestKind, name: str, source: str, root: Root, programs: Sequence[str], number: str
) -> Guest:
    """A whole file system. `number` is its digest, empty where that of its files is to be taken."""
    named, root = _named(root, name, programs)
    found = NOTHING if named and _need_mpi(root, named) else search(root, number)
    chosen = named or found.programs
    if len(chosen) > MAX_PROGRAMS:
        raise UsageError(
            f"{name} has {len(chosen)} programs that need MPI",
            why=f"more than {MAX_PROGRAMS} are not checked at once",
            mend="name those that matter: --program PATH",
        )
    label = _label(kind, name, source, root, chosen, number, found)
    return Guest(label, root, found.libraries)


def _named(root: Root, name: str, programs: Sequence[str]) -> tuple[tuple[str, ...], Root]:
    """The programs that a person named, and the root in which they all are."""
    inside: list[str] = []
    added: dict[str, Path] = {}
    for program in programs:
        if "/" not in program:
            inside.append(_in_path(root, name, program))
            continue
        entry = root.find(program) if program.startswith("/") else None
        if entry is not None and entry.kind == "file":
            inside.append(entry.path)
            continue
        own = Path(program).resolve()
        if not own.is_file() or not own.is_relative_to(Path.cwd()):
            raise UsageError(
                f"{name} has no program {program}",
                mend="give its path inside the guest, or that of a file below the current folder",
            )
        added[str(own)] = own
        inside.append(str(own))
    if added:
        root = Over(root, {path: elf.read(own) for path, own in added.items()}, added)
    return tuple(dict.fromkeys(inside)), root


def _in_path(root: Root, name: str, program: str) -> str:
    """As a shell in the image would find it."""
    paths = dict(root.config().environment).get("PATH", "")
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    for folder in (paths or usual).split(":"):
        entry = root.find(f"{folder}/{program}") if folder.startswith("/") else None
        if entry is not None and entry.kind == "file" and entry.mode & 0o111:
            return entry.path
    raise UsageError(
        f"{name} has no program {program} in its PATH",
        mend="give its path inside the guest: /opt/app/bin/solver",
    )


def _need_mpi(root: Root, programs: Sequence[str]) -> bool:
    """Whether each of these finds an MPI by itself; else something that is opened may need it."""
    return all(own_mpi.needs(root, program) for program in programs)


# ------------------------------------------------------------------ the label


def _label(
    kind: GuestKind,
    name: str,
    source: str,
    root: Root,
    programs: tuple[str, ...],
    number: str,
    found: Searched,
) -> GuestLabel:
    config = root.config()
    machines = [root.elf(program).machine for program in programs]
    libc = glibc_version(root)
    return GuestLabel(
        name=name,
        kind=kind,
        source=source,
        digest=number or _digest(root, (*programs, *found.libraries), config.environment),
        architecture=next(iter((*machines, config.architecture, *found.machines)), ""),
        os=_os(root),
        glibc=libc,
        programs=programs,
        environment=config.environment,
        env_program=next((p for p in ENV_PROGRAMS if _is_program(root, p)), ""),
    )


def _is_program(root: Root, path: str) -> bool:
    entry = root.find(path)
    return entry is not None and entry.kind == "file" and bool(entry.mode & 0o111)


def _digest(root: Root, subjects: Sequence[str], environment: tuple[tuple[str, str], ...]) -> str:
    """Over the paths and contents of the files that decide on what is loaded. RootError for more
    than can be read in a minute."""
    paths = set(subjects)
    for subject in subjects:
        found = own_mpi.loaded(root, subject, dict(environment))
        paths |= {str(r.path) for r in found if r.path is not None}
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


def _os(root: Root) -> str:
    """PRETTY_NAME, without what a terminal would take for a command. Source: os-release(5)."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            text = root.read(path, MAX_OS_RELEASE).decode("utf-8", "replace")
        except RootError:
            continue
        for line in _values(text, "PRETTY_NAME"):
            return "".join(c for c in line if c.isprintable())[:80]
    return ""


def _values(text: str, name: str) -> Iterator[str]:
    for found in re.findall(rf"^{name}=(.*)$", text, re.MULTILINE):
        value = found.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        yield re.sub(r"\\([\"'`$\\])", r"\1", value)
