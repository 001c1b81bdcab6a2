"""Scripts and interpreters as guests: which names are words of a job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mpigraft.binary import FolderRoot, Root, RootError
from mpigraft.core.errors import UsageError
from mpigraft.graft.guest.commands import is_interpreter
from mpigraft.graft.guest.examination import (
    PODMAN_PREFIX,
    Guest,
    is_elf_file,
    reading_guest,
)
from mpigraft.graft.guest.python_search import is_python
from mpigraft.graft.guest.scripts.launches import launch_of
from mpigraft.graft.guest.scripts.reading import interpreter_of
from mpigraft.graft.guest.starting import (
    ELF,
    MAX_HEAD,
    is_executable,
    is_text,
    locate,
    refuse_no_script,
)


def job_words(
    spec: str, programs: Sequence[str], words: Sequence[str]
) -> tuple[tuple[str, ...], bool]:
    """Give the words of a job that a guest's name, its programs or `words` mean: (words,
    whether they are of this machine); no words where programs alone are meant.

    A script, an interpreter or a launcher says nothing of the programs that it starts. Raises as
    `examine_guest` does.
    """
    if _is_host_command(spec, words):
        if programs:
            raise UsageError.of("guest-is-program", path=spec)
        return (spec if "/" in spec else f"./{spec}", *words), True
    if not words and len(programs) == 1 and _is_command(spec, programs[0]):
        return tuple(programs), False
    return tuple(words), False


def _is_host_command(spec: str, words: Sequence[str]) -> bool:
    path = Path(spec)
    if spec.startswith(PODMAN_PREFIX) or not path.is_file():
        return False
    here = FolderRoot(Path("/"))
    return bool(words and is_elf_file(path)) or _runs_scripts(here, str(path.absolute()))


def _is_command(spec: str, program: str) -> bool:
    """Return whether a program of a guest, or of the current folder, is no program by itself."""
    guest = Guest.opened(spec)
    environment = dict(guest.root.config().environment)
    path = locate(guest.root, program, environment, "/")[0]
    with reading_guest(spec):
        if guest.root.find(path) is not None:
            return _runs_scripts(guest.root, path)
        return _runs_scripts(FolderRoot(Path("/")), str(Path(program).absolute()))


def _runs_scripts(root: Root, path: str) -> bool:
    entry = root.find(path)
    if entry is None or entry.kind != "file":
        return False
    if is_python(path) or is_python(entry.path) or is_interpreter(path) or launch_of([path]):
        return True
    try:
        head = root.read(entry.path, MAX_HEAD)
    except RootError:
        return False
    if interpreter_of(head):
        return True
    if head.startswith(ELF) or (head and not is_text(head)):
        return False
    refuse_no_script(path, head)
    return is_executable(entry)
