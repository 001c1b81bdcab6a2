"""What the words of a job start: a program that needs MPI, one that does not, or nobody knows.

Files are read, nothing is run. An ELF program says by its closure whether it needs MPI; Python
says it by what the script imports; of a shell, a profiler or another interpreter the words behind
it may name the program that is meant.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mpigraft.elf import Elf, ElfError
from mpigraft.guests import own_mpi, python_words
from mpigraft.guests.python_imports import follow
from mpigraft.guests.python_search import is_python, python_of
from mpigraft.roots import Entry, Root, RootError

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


class Kind(StrEnum):
    """What is known of a command."""

    MPI = "mpi"  # it needs MPI
    NONE = "none"  # it cannot
    UNKNOWN = "unknown"  # it may start or open something that does


@dataclass(frozen=True, slots=True)
class Command:
    """What some words start. Paths are inside, canonical."""

    kind: Kind
    program: str = ""  # that is judged: an ELF file; empty: nothing that is known
    certain: tuple[str, ...] = ()  # extension modules that it opens in any case
    possible: tuple[str, ...] = ()  # the same, on a condition
    notes: tuple[str, ...] = ()  # what is not known, for a person
    why: str = ""  # of Kind.NONE: "it needs no MPI library"
    sources: tuple[str, ...] = ()  # files of the user's own that this was read from
    interpreted: bool = False  # by Python


def command_of(
    root: Root, words: Sequence[str], environment: Mapping[str, str], cwd: str
) -> Command:
    """What a process with this environment and working folder would start for `words`."""
    return _command(root, list(words), dict(environment), cwd, 0)


def _command(
    root: Root, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> Command:
    words = _behind_env(words, environment)
    if not words or depth > MAX_DEPTH:
        return Command(Kind.UNKNOWN)
    spelled, entry = locate(root, words[0], environment, cwd)
    if entry is None or entry.kind != "file":
        return Command(Kind.UNKNOWN)
    try:
        head = root.read(entry.path, MAX_HEAD)
    except RootError:
        return Command(Kind.UNKNOWN)
    if head.startswith(b"#!"):
        return _script(root, head, [spelled, *words[1:]], environment, cwd, depth)
    if not head.startswith(b"\x7fELF"):  # execvp's fallback: a script for sh
        return _opaque(root, words, environment, cwd, depth)
    if is_python(spelled) or is_python(entry.path):
        return _python(root, spelled, words[1:], environment, cwd)
    if own_mpi.needs(root, entry.path):
        return Command(Kind.MPI, entry.path)
    starts = spelled.rpartition("/")[2] in STARTERS
    why = "" if starts else _cannot(root, entry.path)
    if why and why != STATIC:
        return Command(Kind.NONE, entry.path, why=why)
    behind = _opaque(root, words, environment, cwd, depth)
    # Wrappers are often static, and whether one starts others cannot be read from it: it has no
    # imported symbols. So what its words name decides.
    if why and not behind.program:
        return Command(Kind.NONE, entry.path, why=why)
    return behind


def locate(
    root: Root, word: str, environment: Mapping[str, str], cwd: str
) -> tuple[str, Entry | None]:
    """(path as it is spelled, what is there) of a program, as execvp finds it."""
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
    """The words behind `env` and what it sets, which goes into `environment`."""
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
) -> Command:
    """A file that begins with #!: what it names is started with the file's path."""
    lines = head.decode("utf-8", "replace").splitlines()
    interpreter, _, argument = lines[0][2:].strip().partition(" ")
    if len(lines) > 1 and lines[1].startswith("'''exec' "):  # pip's, for a path that is too long
        python = _split(lines[1].removeprefix("'''exec' "))
        interpreter, argument = (python[0] if python else interpreter), ""
    found = [interpreter, *([argument.strip()] if argument.strip() else []), *words]
    if interpreter.rpartition("/")[2] == "env":  # the kernel gives it one argument
        found = [interpreter, *argument.split(), *words]
    target = _behind_env(found, dict(environment))
    if target and is_python(target[0]):
        return _command(root, found, environment, cwd, depth + 1)
    return _opaque(root, words, environment, cwd, depth)


def _opaque(
    root: Root, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> Command:
    """Something that starts others: by the first word behind it that names a program of MPI."""
    for place, word in enumerate(words[1:], 1):
        _, entry = locate(root, word, environment, cwd) if "=" not in word else ("", None)
        if entry is None or entry.kind != "file" or not entry.mode & 0o111:
            continue
        found = _command(root, words[place:], dict(environment), cwd, depth + 1)
        if found.kind is Kind.MPI or found.interpreted:
            return found
    name = words[0].rpartition("/")[2]
    return Command(Kind.UNKNOWN, notes=(f"which programs {name} starts",))


def _python(
    root: Root, spelled: str, rest: Sequence[str], environment: dict[str, str], cwd: str
) -> Command:
    """By what the script imports."""
    entry = root.find(spelled)
    assert entry is not None
    said = python_words.parsed(rest)
    python = python_of(root, spelled, environment, said.options)
    entered, notes = python_words.entered(root, said, cwd)
    bare = Command(Kind.UNKNOWN, entry.path, interpreted=True)
    if python is None:
        return replace(bare, notes=(f"where {spelled} finds its modules",))
    if not entered:
        return replace(bare, notes=notes or (f"what {spelled} is to run",))
    found = follow(root, python, entered, _machine(root, entry.path))
    notes = (*notes, *_some(found.unknown))
    if found.certain or found.possible or own_mpi.needs(root, entry.path):
        return Command(
            Kind.MPI, entry.path, found.certain, found.possible, notes,
            sources=found.sources, interpreted=True,
        )  # fmt: skip
    if notes or found.beyond:
        notes = notes or _some(found.beyond)
        return replace(bare, notes=notes, sources=found.sources)
    why = "nothing that it imports needs an MPI library"
    return Command(Kind.NONE, entry.path, why=why, sources=found.sources, interpreted=True)


def _some(notes: Sequence[str]) -> tuple[str, ...]:
    more = len(notes) - MANY
    return (*notes[:MANY], *([f"{more} more of the kind"] if more > 0 else []))


def _machine(root: Root, path: str) -> str:
    try:
        return root.elf(path).machine
    except (ElfError, RootError):
        return ""


def _cannot(root: Root, path: str) -> str:
    """Why an ELF program cannot come to use an MPI library; empty: it may."""
    try:
        main = root.elf(path)
    except (ElfError, RootError):
        return ""
    if not main.dynamic or main.interpreter is None:
        return STATIC
    found = own_mpi.loaded(root, path, {})
    if not found or any(r.elf is None for r in found):
        return ""
    users = [main, *(r.elf for r in found if r.elf and not r.soname.startswith(SYSTEM))]
    if any(_leads_on(user) for user in users):
        return ""
    return "neither it nor a library of it needs an MPI library, and it starts no other program"


def _leads_on(user: Elf) -> bool:
    try:
        return any(symbol.name in LEADS_ON for symbol in user.imported)
    except ElfError:
        return True
