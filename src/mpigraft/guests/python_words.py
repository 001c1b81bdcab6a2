"""What a command line of Python names: a script, a module or code, and what decides the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.guests.python_imports import MAX_SOURCE, Entered
from mpigraft.guests.python_search import Options
from mpigraft.roots import Root, RootError

TAKE_ONE = "WX"  # options with a value of their own, beside -c and -m
# Modules whose arguments are a program of Python in their turn.
RUNNERS = frozenset({
    "mpi4py", "mpi4py.run", "mpi4py.futures", "mpi4py.futures.__main__", "cProfile", "profile",
    "pdb", "trace", "coverage", "kernprof", "runpy", "memory_profiler", "line_profiler",
    "viztracer", "scalene", "debugpy", "faulthandler",
})  # fmt: skip
RUNNERS_TAKE_ONE = frozenset({"-o", "-s", "-rc", "--rc", "-p", "--profile", "--rcfile", "-prof"})
STDIN = "what it reads from its standard input, which rank 0 alone gets without --stdin all"
COLLECTORS = frozenset({"pytest", "unittest", "nose", "nose2"})  # run what they find


@dataclass(frozen=True, slots=True)
class Line:
    """A command line of Python, taken apart."""

    options: Options
    kind: str = ""  # script, module, code; empty: none of these
    value: str = ""
    rest: tuple[str, ...] = ()  # the program's own arguments
    safe: bool = False  # -P, -I: the script's folder is not searched


def parsed(words: Sequence[str]) -> Line:
    """The words behind the interpreter's name."""
    environment = site = user = True
    safe = False
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            if word == "--check-hash-based-pycs" and rest:
                rest.pop(0)
            continue
        for place, letter in enumerate(word[1:], 1):
            value = word[place + 1 :]
            if letter in "cm" or letter in TAKE_ONE:
                if not value and rest:
                    value = rest.pop(0)
                if letter in "cm":
                    options = Options(environment, site, user)
                    kind = {"c": "code", "m": "module"}[letter]
                    return Line(options, kind, value, tuple(rest), safe)
                break
            environment = environment and letter not in "EI"
            user = user and letter not in "sI"
            site = site and letter != "S"
            safe = safe or letter in "PI"
    options = Options(environment, site, user)
    if rest and rest[0] != "-":
        return Line(options, "script", rest[0], tuple(rest[1:]), safe)
    return Line(options)


def entered(root: Root, line: Line, cwd: str) -> tuple[tuple[Entered, ...], tuple[str, ...]]:
    """What the interpreter starts with, and what of it is not known."""
    match line.kind:
        case "script":
            return _of_script(root, line.value, cwd, safe=line.safe)
        case "code":
            code = line.value.encode("utf-8", "surrogateescape")
            return (Entered("__main__", "" if line.safe else cwd, code),), ()
        case "module":
            found = [Entered(line.value, "" if line.safe else cwd)]
            notes: tuple[str, ...] = ()
            top = line.value.partition(".")[0]
            if line.value in RUNNERS:
                more, notes = entered(root, parsed(_behind_options(line.rest)), cwd)
                found += more
            elif top in COLLECTORS:
                notes = (f"which files {top} runs",)
            return tuple(found), notes
    return (), (STDIN,)


def _behind_options(words: Sequence[str]) -> list[str]:
    """The words from the script, -m or -c on."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        word = rest.pop(0)
        if word in RUNNERS_TAKE_ONE and rest:
            rest.pop(0)
    if rest and rest[0] == "run":  # coverage run
        return _behind_options(rest[1:])
    return rest


def _of_script(
    root: Root, word: str, cwd: str, *, safe: bool
) -> tuple[tuple[Entered, ...], tuple[str, ...]]:
    path = word if word.startswith("/") else f"{cwd.rstrip('/')}/{word}"
    entry = root.find(path)
    if entry is None:
        return (), (f"{word}, which is not in the guest",)
    if entry.kind == "folder":
        return (Entered("__main__", entry.path),), ()
    try:
        data = root.read(entry.path, MAX_SOURCE)
    except RootError as error:
        return (), (str(error),)
    if data.startswith(b"PK\x03\x04") or b"PK\x05\x06" in data[-65558:]:  # an archive: .pyz
        return (Entered("__main__", entry.path),), ()
    folder = "" if safe else entry.path.rpartition("/")[0] or "/"
    return (Entered("__main__", folder, data, entry.path),), ()
