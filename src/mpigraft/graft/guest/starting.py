"""Find the file that words start, and refuse what the kernel or the loader cannot start.

The kernel takes ELF files, for which the loader has to exist, and scripts, for which the
interpreter of their first line has to. Any other file it refuses (ENOEXEC), and execvp gives it to
/bin/sh.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence

from mpigraft.binary import Elf, ElfError, ForeignLoader, Root, RootEntry, RootError, closure
from mpigraft.core.env import GUEST_PATH
from mpigraft.core.errors import CheckFailed, UsageError

ELF = b"\x7fELF"
MAX_HEAD = 4096  # bytes of a script's first lines
SUFFIXES = {"py": "python3", "pl": "perl", "R": "Rscript", "r": "Rscript", "jl": "julia"}


def locate(
    root: Root, word: str, environment: Mapping[str, str], cwd: str
) -> tuple[str, RootEntry | None]:
    """Find a program as execvp does: (path as it is spelled, entry)."""
    if "/" in word:
        path = word if word.startswith("/") else f"{cwd.rstrip('/')}/{word}"
        return path, root.find(path)
    for folder in (environment.get("PATH") or GUEST_PATH).split(":"):
        path = f"{folder or cwd}/{word}"
        entry = root.find(path) if path.startswith("/") else None
        if is_executable(entry):
            return path, entry
    return word, None


def is_executable(entry: RootEntry | None) -> bool:
    return entry is not None and entry.kind == "file" and bool(entry.mode & 0o111)


def behind_env(words: list[str], environment: dict[str, str]) -> list[str]:
    """Strip `env` and its settings, which go into `environment`."""
    while words and words[0].rpartition("/")[2] == "env":
        rest = words[1:]
        while rest:
            word = rest[0]
            if word in ("-i", "-", "--ignore-environment"):
                environment.clear()
            elif word in ("-u", "--unset", "-C", "--chdir"):
                if word in ("-u", "--unset") and len(rest) > 1:
                    environment.pop(rest[1], None)
                rest = rest[1:]
            elif word.startswith("-S") or word.startswith("--split-string="):
                text = word[2:] if word.startswith("-S") else word.partition("=")[2]
                if not text and len(rest) > 1:
                    text, rest = rest[1], rest[1:]
                rest = ["", *_split(text), *rest[1:]]
            elif "=" in word and not word.startswith("-"):
                name, _, environment[name] = (*word.partition("=")[:2], word.partition("=")[2])
            elif not word.startswith("-"):
                break
            rest = rest[1:]
        words = rest
    return words


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def first_line(head: bytes) -> list[str]:
    """Give the interpreter of a script, and its argument: the kernel passes the rest as one."""
    lines = head.decode("utf-8", "replace").splitlines()
    interpreter, _, argument = lines[0][2:].strip().partition(" ")
    if len(lines) > 1 and lines[1].startswith("'''exec' "):  # pip's, for a path that is too long
        python = _split(lines[1].removeprefix("'''exec' "))
        return python[:1] or [interpreter]
    return [interpreter, *([argument.strip()] if argument.strip() else [])]


# ------------------------------------------------------------------ what cannot be started


def refuse_unstartable(
    root: Root, words: Sequence[str], environment: Mapping[str, str], cwd: str
) -> None:
    """Refuse words whose program cannot be started: as `refuse_program` for an ELF file and for the
    interpreter of a script, as `refuse_no_script` for another file. Raises CheckFailed for a script
    without its interpreter."""
    given = dict(environment)
    own = behind_env(list(words), given)
    spelled, entry = locate(root, own[0], given, cwd) if own else ("", None)
    spelled = posixpath.normpath(spelled)
    try:
        head = root.read(entry.path, MAX_HEAD) if entry else b"#!"
    except RootError:
        return
    if entry is None:
        return
    if head.startswith(ELF):
        refuse_program(root, entry.path)
    elif not head.startswith(b"#!"):
        refuse_no_script(spelled, head)
    else:
        line = first_line(head)
        for word in dict.fromkeys((line[0], *behind_env([*line, spelled], given)[:1])):
            interpreter = locate(root, word, given, cwd)[1]
            if interpreter is None:
                raise CheckFailed.of(
                    "interpreter-missing", program=spelled, kind="interpreter", path=word
                )
            refuse_program(root, interpreter.path)


def refuse_program(root: Root, program: str) -> None:
    """Raise UsageError for an ELF file that is damaged, CheckFailed for one whose loader is not
    there, or else as `refuse_foreign`."""
    refuse_foreign(root, program)
    try:
        if not root.read(program, len(ELF)).startswith(ELF):
            return
        main = root.elf(program)
    except ElfError as error:
        raise UsageError.of("guest-elf-invalid", spec=root.name, error=error) from error
    except RootError:  # it may be executed and not read
        return
    if loader := absent_loader(root, main):
        raise CheckFailed.of("interpreter-missing", program=program, kind="loader", path=loader)


def refuse_foreign(root: Root, program: str) -> None:
    """Raise CheckFailed for a program whose loader is not glibc's, such as one of Alpine: neither a
    graft nor our preloaded libraries can be loaded by it."""
    try:
        closure(program, environment={}, root=root)
    except ForeignLoader as error:
        raise CheckFailed.of("guest-not-glibc", error=str(error), libc=error.libc) from error
    except (ElfError, RootError):
        return


def absent_loader(root: Root, main: Elf) -> str:
    """Give the loader that a program names and its root lacks; empty: there is none such."""
    loader = main.interpreter or ""
    return loader if loader.startswith("/") and root.find(loader) is None else ""


def is_text(head: bytes) -> bool:
    """Return whether a file without a first line that names its interpreter may be a script: shells
    refuse one with a zero byte."""
    return bool(head) and b"\0" not in head


def refuse_no_script(path: str, head: bytes) -> None:
    """Raise UsageError for a file, neither ELF nor with `#!`, that begins with `head` and that
    /bin/sh does not run as what it is."""
    if not head:
        raise UsageError.of("program-empty", path=path)
    if not is_text(head):
        raise UsageError.of("program-no-format", path=path)
    if name := SUFFIXES.get(path.rpartition("/")[2].rpartition(".")[2], ""):
        raise UsageError.of("script-without-interpreter", path=path, name=name)
