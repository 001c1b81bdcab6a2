"""Find out what the words of a job start: a program with MPI, one without, or an unknown one.

Files are read, nothing is run. The closure of an ELF program shows whether it needs MPI, and the
imports of a Python script show it. For a shell, a profiler or another interpreter, the words that
follow may name the program.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mpigraft.binary.elf import Elf, ElfError
from mpigraft.binary.image import Entry, Root, RootError
from mpigraft.graft.guest import own_mpi, python_words
from mpigraft.graft.guest.python_imports import follow
from mpigraft.graft.guest.python_search import is_python, python_of

MAX_HEAD = 4096  # bytes of a script's first lines
MAX_DEPTH = 8  # of programs that start programs
MANY = 3  # of a kind are named to a person
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A program that calls none of these neither starts another one nor opens a library later.
LEADS_ON = frozenset({
    "execl", "execle", "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "fexecve",
    "posix_spawn", "posix_spawnp", "system", "popen", "dlopen", "dlmopen", "syscall",
})  # fmt: skip
# Libraries of the system that open others, none of which is an MPI.
SYSTEM = ("libc.so.", "ld-linux", "libpthread.so.", "libdl.so.", "libselinux.so.", "libcrypto.so.",
          "libaudit.so.", "libsystemd.so.", "libpam")  # fmt: skip
STATIC = "it is linked statically: no MPI library can be put under it"
STARTERS = frozenset({  # start others, also where they are one static program (busybox)
    "sh", "ash", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "fish", "busybox", "toybox", "env",
    "nice", "ionice", "nohup", "time", "timeout", "xargs", "setsid", "stdbuf", "chroot", "tini",
    "dumb-init", "gosu", "su-exec",
})  # fmt: skip


class CommandKind(StrEnum):
    """Whether a command needs MPI."""

    MPI = "mpi"  # it needs MPI
    NONE = "none"  # it cannot
    UNKNOWN = "unknown"  # it may start or open something that does


@dataclass(frozen=True, slots=True)
class GuestCommand:
    """What a command starts. Paths are inside, canonical."""

    kind: CommandKind
    program: str = ""  # that is judged: an ELF file; empty: nothing that is known
    certain: tuple[str, ...] = ()  # extension modules that it opens in any case
    possible: tuple[str, ...] = ()  # the same, on a condition
    notes: tuple[str, ...] = ()  # what is not known, for a person
    why: str = ""  # of CommandKind.NONE: "it needs no MPI library"
    sources: tuple[str, ...] = ()  # files of the user's own that this was read from
    interpreted: bool = False  # by Python


def command_of(
    root: Root, words: Sequence[str], environment: Mapping[str, str], cwd: str
) -> GuestCommand:
    """Find out what `words` start, in a process with this environment and working folder."""
    return _command(root, list(words), dict(environment), cwd, 0)


def _command(
    root: Root, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> GuestCommand:
    words = _behind_env(words, environment)
    if not words or depth > MAX_DEPTH:
        return GuestCommand(CommandKind.UNKNOWN)
    spelled, entry = locate(root, words[0], environment, cwd)
    if entry is None or entry.kind != "file":
        return GuestCommand(CommandKind.UNKNOWN)
    try:
        head = root.read(entry.path, MAX_HEAD)
    except RootError:
        return GuestCommand(CommandKind.UNKNOWN)
    if head.startswith(b"#!"):
        return _script(root, head, [spelled, *words[1:]], environment, cwd, depth)
    if not head.startswith(b"\x7fELF"):  # execvp's fallback: a script for sh
        return _opaque(root, words, environment, cwd, depth)
    if is_python(spelled) or is_python(entry.path):
        return _python(root, spelled, words[1:], environment, cwd)
    if own_mpi.needs(root, entry.path):
        return GuestCommand(CommandKind.MPI, entry.path)
    starts = spelled.rpartition("/")[2] in STARTERS
    why = "" if starts else _cannot(root, entry.path)
    if why and why != STATIC:
        return GuestCommand(CommandKind.NONE, entry.path, why=why)
    behind = _opaque(root, words, environment, cwd, depth)
    # Wrappers are often static, without imported symbols that show whether they start others. So
    # the words that follow decide.
    if why and not behind.program:
        return GuestCommand(CommandKind.NONE, entry.path, why=why)
    return behind


def locate(
    root: Root, word: str, environment: Mapping[str, str], cwd: str
) -> tuple[str, Entry | None]:
    """Find a program as execvp does: (path as it is spelled, entry)."""
    if "/" in word:
        path = word if word.startswith("/") else f"{cwd.rstrip('/')}/{word}"
        return path, root.find(path)
    for folder in (environment.get("PATH") or PATH).split(":"):
        path = f"{folder or cwd}/{word}"
        entry = root.find(path) if path.startswith("/") else None
        if entry is not None and entry.kind == "file" and entry.mode & 0o111:
            return path, entry
    return word, None


def _behind_env(words: list[str], environment: dict[str, str]) -> list[str]:
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


def _script(
    root: Root, head: bytes, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> GuestCommand:
    """Follow a file that begins with #!: its interpreter starts with the file's path."""
    lines = head.decode("utf-8", "replace").splitlines()
    interpreter, _, argument = lines[0][2:].strip().partition(" ")
    if len(lines) > 1 and lines[1].startswith("'''exec' "):  # pip's, for a path that is too long
        python = _split(lines[1].removeprefix("'''exec' "))
        interpreter, argument = (python[0] if python else interpreter), ""
    command = [interpreter, *([argument.strip()] if argument.strip() else []), *words]
    if interpreter.rpartition("/")[2] == "env":  # the kernel gives it one argument
        command = [interpreter, *argument.split(), *words]
    target = _behind_env(command, dict(environment))
    if target and is_python(target[0]):
        return _command(root, command, environment, cwd, depth + 1)
    return _opaque(root, words, environment, cwd, depth)


def _opaque(
    root: Root, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> GuestCommand:
    """Judge a program that starts others by the first word behind it that names an MPI program."""
    for place, word in enumerate(words[1:], 1):
        _, entry = locate(root, word, environment, cwd) if "=" not in word else ("", None)
        if entry is None or entry.kind != "file" or not entry.mode & 0o111:
            continue
        command = _command(root, words[place:], dict(environment), cwd, depth + 1)
        if command.kind is CommandKind.MPI or command.interpreted:
            return command
    name = words[0].rpartition("/")[2]
    return GuestCommand(CommandKind.UNKNOWN, notes=(f"which programs {name} starts",))


def _python(
    root: Root, spelled: str, rest: Sequence[str], environment: dict[str, str], cwd: str
) -> GuestCommand:
    """Judge a Python program by what it imports."""
    entry = root.find(spelled)
    assert entry is not None
    line = python_words.parse_words(rest)
    python = python_of(root, spelled, environment, line.options)
    starts, notes = python_words.entry_points(root, line, cwd)
    bare = GuestCommand(CommandKind.UNKNOWN, entry.path, interpreted=True)
    if python is None:
        return replace(bare, notes=(f"where {spelled} finds its modules",))
    if not starts:
        return replace(bare, notes=notes or (f"what {spelled} is to run",))
    imports = follow(root, python, starts, _machine(root, entry.path))
    notes = (*notes, *_some(imports.unknown))
    if imports.certain or imports.possible or own_mpi.needs(root, entry.path):
        return GuestCommand(
            CommandKind.MPI, entry.path, imports.certain, imports.possible, notes,
            sources=imports.sources, interpreted=True,
        )  # fmt: skip
    if notes or imports.beyond:
        notes = notes or _some(imports.beyond)
        return replace(bare, notes=notes, sources=imports.sources)
    why = "nothing that it imports needs an MPI library"
    return GuestCommand(
        CommandKind.NONE, entry.path, why=why, sources=imports.sources, interpreted=True
    )


def _some(notes: Sequence[str]) -> tuple[str, ...]:
    more = len(notes) - MANY
    return (*notes[:MANY], *([f"{more} more of the kind"] if more > 0 else []))


def _machine(root: Root, path: str) -> str:
    try:
        return root.elf(path).machine
    except (ElfError, RootError):
        return ""


def _cannot(root: Root, path: str) -> str:
    """Say why an ELF program cannot use an MPI library; empty: it may."""
    try:
        main = root.elf(path)
    except (ElfError, RootError):
        return ""
    if not main.dynamic or main.interpreter is None:
        return STATIC
    closure = own_mpi.loaded_objects(root, path, {})
    if not closure or any(r.elf is None for r in closure):
        return ""
    users = [main, *(r.elf for r in closure if r.elf and not r.soname.startswith(SYSTEM))]
    if any(_leads_on(user) for user in users):
        return ""
    return "neither it nor a library of it needs an MPI library, and it starts no other program"


def _leads_on(user: Elf) -> bool:
    try:
        return any(symbol.name in LEADS_ON for symbol in user.imported)
    except ElfError:
        return True
