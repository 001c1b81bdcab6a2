"""Programs that start others: the words of the one behind them, and what a shell is given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpigraft.graft.guest.scripts.launches import launch_of
from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.graft.guest.scripts.shell_values import Fields

SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "rbash"})
# They start the program that follows their options.
STARTERS = frozenset({
    "exec", "command", "builtin", "time", "nohup", "env", "nice", "ionice", "timeout", "setsid",
    "stdbuf", "numactl", "taskset", "strace", "ltrace", "perf", "catchsegv", "unbuffer", "sudo",
    "chrt", "prlimit", "unshare", "setarch", "eatmydata", "xvfb-run", "script", "flock", "coproc",
    "salloc", "xargs", "parallel",
})  # fmt: skip
ADDING = frozenset({"xargs", "parallel"})  # words that they read
SETTING = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A call that starts a program: its words, or the text that a shell runs."""

    line: int
    words: Fields
    text: str = ""
    certain: bool = True  # whenever the script runs
    cwd: str = ""


def behind_starters(fields: Fields) -> tuple[Fields, bool]:
    """Strip programs that start the one behind them: (its words, whether it replaces the shell).
    The launcher counts that is the first word behind their options."""
    words, replaces = fields, False
    while words and words[0].rpartition("/")[2] in STARTERS:
        if words[0] == "command" and words[1:2] in (("-v",), ("-V",)):
            return (), False
        replaces = replaces or words[0] == "exec"
        rest = words[1:]
        if words[0] == "exec" and not rest:
            return (), False  # redirections alone
        options = [n for n, w in enumerate(rest) if w.startswith("-") or SETTING.match(w)]
        start = 0
        while start in options:
            start += 1
        known = [n for n in range(start, len(rest)) if launch_of(rest[n:])]
        # An option of numactl or timeout may have a value, and `timeout 60` has one of its own.
        plain = words[0] in ("exec", "command", "builtin", "nohup", "setsid", "time")
        if known and not plain:
            start = known[0]
        added = words[0].rpartition("/")[2] in ADDING
        words = (*rest[start:], UNKNOWN) if added and rest[start:] else rest[start:]
    return words, replaces


def shell_code(words: Fields) -> tuple[str, Fields] | None:
    """Split `sh -c CODE NAME ARGUMENT...`: (the code, its arguments)."""
    if words[0].rpartition("/")[2] not in SHELLS:
        return None
    for place, word in enumerate(words[1:], 1):
        if not word.startswith("-") or word.startswith("--"):
            return None
        if word.endswith("c") and place + 1 < len(words):
            return words[place + 1], words[place + 3 :]
    return None


def shell_script(words: Fields) -> int:
    """Find the script in `bash [-x] SCRIPT`: its place among the words; 0: none."""
    if words[0].rpartition("/")[2] not in SHELLS or shell_code(words):
        return 0
    for place, word in enumerate(words[1:], 1):
        if not word.startswith("-"):
            return place
    return 0


def is_own(word: str) -> bool:
    """Return whether a program is one of the user's: named by a path, and not of the system."""
    return "/" in word and not word.startswith(("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"))
