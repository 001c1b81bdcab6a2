"""Parse a command line of Python: its script, module or code, and the search options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.binary import Root, RootError
from mpigraft.graft.guest.python_imports import MAX_SOURCE, EntryPoint
from mpigraft.graft.guest.python_search import Options

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
class CommandLine:
    """A command line of Python, taken apart."""

    options: Options
    kind: str = ""  # script, module, code; empty: none of these
    value: str = ""
    rest: tuple[str, ...] = ()  # the program's own arguments
    safe: bool = False  # -P, -I: the script's folder is not searched


def parse_words(words: Sequence[str]) -> CommandLine:
    """Parse the words behind the interpreter's name."""
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
                    return CommandLine(options, kind, value, tuple(rest), safe)
                break
            environment = environment and letter not in "EI"
            user = user and letter not in "sI"
            site = site and letter != "S"
            safe = safe or letter in "PI"
    options = Options(environment, site, user)
    if rest and rest[0] != "-":
        return CommandLine(options, "script", rest[0], tuple(rest[1:]), safe)
    return CommandLine(options)


def entry_points(
    root: Root, line: CommandLine, cwd: str
) -> tuple[tuple[EntryPoint, ...], tuple[str, ...]]:
    """Give what the interpreter starts with, and what of it is unknown."""
    match line.kind:
        case "script":
            return _of_script(root, line.value, cwd, safe=line.safe)
        case "code":
            code = line.value.encode("utf-8", "surrogateescape")
            return (EntryPoint("__main__", "" if line.safe else cwd, code),), ()
        case "module":
            starts = [EntryPoint(line.value, "" if line.safe else cwd)]
            notes: tuple[str, ...] = ()
            top = line.value.partition(".")[0]
            if line.value in RUNNERS:
                more, notes = entry_points(root, parse_words(_behind_options(line.rest)), cwd)
                starts += more
            elif top in COLLECTORS:
                notes = (f"which files {top} runs",)
            return tuple(starts), notes
    return (), (STDIN,)


def _behind_options(words: Sequence[str]) -> list[str]:
    """Give the words from the script, -m or -c on."""
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
) -> tuple[tuple[EntryPoint, ...], tuple[str, ...]]:
    path = word if word.startswith("/") else f"{cwd.rstrip('/')}/{word}"
    entry = root.find(path)
    if entry is None:
        return (), (f"{word}, which is not in the guest",)
    if entry.kind == "folder":
        return (EntryPoint("__main__", entry.path),), ()
    try:
        data = root.read(entry.path, MAX_SOURCE)
    except RootError as error:
        return (), (str(error),)
    if data.startswith(b"PK\x03\x04") or b"PK\x05\x06" in data[-65558:]:  # an archive: .pyz
        return (EntryPoint("__main__", entry.path),), ()
    folder = "" if safe else entry.path.rpartition("/")[0] or "/"
    return (EntryPoint("__main__", folder, data, entry.path),), ()
