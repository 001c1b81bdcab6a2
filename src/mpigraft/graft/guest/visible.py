"""What ranks see of an image: all of it but what folders of this machine cover.

Engines put folders of this machine over the image's own: /tmp, TMPDIR, the working folder, what a
user or a site binds. So an image is read with these in place, by every command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.binary import BoundRoot, OverlayRoot, Root, read_elf
from mpigraft.core.env import GUEST_PATH
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.model import GuestKind, GuestLabel
from mpigraft.graft.guest import own_mpi
from mpigraft.graft.guest.search import Searched
from mpigraft.graft.guest.starting import is_executable

Shown = Callable[[GuestKind], Mapping[str, Path]]  # {path inside: folder of this machine}


@dataclass(frozen=True, slots=True)
class Covers:
    """What this machine covers of an image: programs and libraries that need MPI, and how much of
    its folder at the path of the working folder."""

    programs: tuple[str, ...] = ()
    folder: str = ""  # the working folder, where the image has one with files in it
    names: int = 0


NO_COVERS = Covers()


def nothing_shown(kind: GuestKind) -> Mapping[str, Path]:
    """Show no folder: the image alone is read."""
    del kind
    return {}


def bound_root(root: Root, folders: Mapping[str, Path]) -> Root:
    """Give the root as ranks see it."""
    return BoundRoot(root, folders) if folders else root


def hidden_by(root: Root, path: str) -> str:
    """Give the folder of this machine that covers a file of the image; empty: none does."""
    root = root.base if isinstance(root, OverlayRoot) else root
    if not isinstance(root, BoundRoot) or not path.startswith("/"):
        return ""
    entry = root.base.find(path)
    return root.cover(entry.path) if entry is not None and entry.kind == "file" else ""


def refuse_hidden(root: Root, name: str, path: str) -> None:
    """Raise CheckFailed for a file of the image that a folder of this machine covers."""
    if folder := hidden_by(root, path):
        raise CheckFailed.of("guest-file-hidden", name=name, path=path, folder=folder)


def visible_of(searched: Searched, root: Root) -> tuple[Searched, tuple[str, ...]]:
    """Split what an image has into what ranks see and paths of what they do not."""
    hidden = {p for p in (*searched.programs, *searched.libraries) if hidden_by(root, p)}
    programs = tuple(path for path in searched.programs if path not in hidden)
    libraries = tuple(path for path in searched.libraries if path not in hidden)
    return Searched(programs, libraries, searched.machines), tuple(sorted(hidden))


def covers_of(root: Root, label: GuestLabel, needed: Iterable[str]) -> Covers:
    """Describe what the working folder covers of an image. Raises CheckFailed where the image has
    a file of its own there that the job needs: a program, or a library that it loads."""
    bound = root.base if isinstance(root, OverlayRoot) else root
    cwd = str(Path.cwd())
    if not isinstance(bound, BoundRoot) or bound.cover(cwd) != cwd:
        return NO_COVERS
    own = bound.base.find(cwd)
    names = bound.base.names(own.path) if own is not None and own.kind == "folder" else []
    visible = [name for name in names if not name.startswith(".")]
    if not visible:
        return NO_COVERS
    given = dict(label.environment)
    loaded = [
        str(one.path)
        for program in label.programs
        for one in own_mpi.loaded_objects(root, program, given)
        if one.path
    ]
    for path in (*label.programs, label.env_program, *needed, *loaded):
        if hidden_by(root, path) == cwd:
            refuse_hidden(root, label.name, path)
    return Covers(folder=cwd, names=len(visible))


def find_named(root: Root, name: str, programs: Sequence[str]) -> tuple[tuple[str, ...], Root]:
    """Locate the programs that a user named, and give the root that has them all."""
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
            refuse_hidden(root, name, program)
            raise UsageError.of("guest-no-program", name=name, program=program)
        added[str(own)] = own
        inside.append(str(own))
    if added:
        root = OverlayRoot(root, {path: read_elf(own) for path, own in added.items()}, added)
    return tuple(dict.fromkeys(inside)), root


def _in_path(root: Root, name: str, program: str) -> str:
    """Find a program in the image's PATH."""
    paths = dict(root.config().environment).get("PATH", "")
    for folder in (paths or GUEST_PATH).split(":"):
        entry = root.find(f"{folder}/{program}") if folder.startswith("/") else None
        if entry is not None and is_executable(entry):
            return entry.path
        refuse_hidden(root, name, f"{folder}/{program}")
    if program.startswith("-"):
        raise UsageError.of("program-is-option", program=program)
    raise UsageError.of("guest-no-program-in-path", name=name, program=program)
