"""What commands of a shell print, and whether its tests hold, by their words alone."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from enum import Enum
from fnmatch import fnmatchcase

from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.graft.guest.scripts.shell_values import MOST, Fields, compared

LOOKUPS = frozenset({"which", "command", "type", "readlink", "realpath"})  # answer with a path


class ShellOutcome(Enum):
    """How a command ends."""

    YES = 1
    NO = 2
    OPEN = 3  # a condition that reading does not decide
    LIKELY = 4  # it succeeds, unless there is an error


def outcome_of(decided: bool | None) -> ShellOutcome:
    return (
        ShellOutcome.OPEN if decided is None else ShellOutcome.YES if decided else ShellOutcome.NO
    )


def printed(words: Fields, cwd: str) -> str | None:
    """Give what a command prints, as far as it prints what it was given; a path for one that looks
    a program up. None: nothing."""
    match words:
        case ("echo", *rest):
            rest = rest[1:] if rest[:1] in (["-n"], ["-e"]) else rest
            return " ".join(rest) + "\n"
        case ("printf", text, *rest) if not rest and "%" not in text:
            return text.replace("\\n", "\n")
        case ("printf", "%s\\n" | "%s", *rest):
            return "\n".join(rest) + "\n"
        case ("basename", path, *suffix) if UNKNOWN not in path:
            return posixpath.basename(path.rstrip("/")).removesuffix("".join(suffix[:1]))
        case ("dirname", path) if UNKNOWN not in path:
            return posixpath.dirname(path) or "."
        case ("pwd", *_):
            return cwd
        case ("seq", *ends) if len(ends) in (1, 2) and all(
            re.fullmatch(r"\d{1,4}", e) for e in ends
        ):
            first, last = (1, *map(int, ends))[-2:]
            return "\n".join(map(str, range(first, min(last, first + MOST) + 1)))
        case (name, *options, path) if name in LOOKUPS:
            return path if all(option.startswith("-") for option in options) else UNKNOWN
        case ("cd" | "pushd" | "exit" | "set" | "shift" | "test" | "true" | ":" | "chmod", *_):
            return None
    return UNKNOWN


def holds(words: Sequence[str], *, double: bool = False) -> bool | None:
    """Evaluate the words of `test`, or with `double` of `[[`; None: reading does not decide it."""
    if len(words) > MOST:
        return None
    for either in ("||", "-o") if len(words) > 3 else ():
        if either in words:
            place = words.index(either)
            return _either(*(holds(w, double=double) for w in (words[:place], words[place + 1 :])))
    for both in ("&&", "-a") if len(words) > 3 else ():
        if both in words:
            place = words.index(both)
            several = [holds(w, double=double) for w in (words[:place], words[place + 1 :])]
            return False if False in several else None if None in several else True
    match words:
        case ():
            return False
        case ("!", *rest) if rest:
            inner = holds(tuple(rest), double=double)
            return None if inner is None else not inner
        case (word,):
            return None if word.strip(UNKNOWN) != word or word == UNKNOWN else bool(word)
        case ("-n" | "-z" as operator, word) if not word or word.strip(UNKNOWN):
            return bool(word) is (operator == "-n")
        case (left, operator, right) if UNKNOWN not in left + right:
            return _compare(left, operator, right, double)
    return None


def _either(left: bool | None, right: bool | None) -> bool | None:
    return True if True in (left, right) else None if None in (left, right) else False


def _compare(left: str, operator: str, right: str, double: bool) -> bool | None:
    if operator in ("=", "==", "!="):
        same = fnmatchcase(left, right) if double else left == right
        return same is (operator != "!=")
    numbers = re.fullmatch(r"-?\d{1,18} -?\d{1,18}", f"{left} {right}")
    if operator in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge") and numbers:
        return compared(int(left), operator, int(right))
    return None
