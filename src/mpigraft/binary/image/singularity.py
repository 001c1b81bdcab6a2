"""Read the environment of an Apptainer or SingularityCE image, without running its scripts.

Shell scripts set it, /.singularity.d/env/*.sh, sourced in the order of their names. This module
reads assignments whose words have only quotes and variables, and reports every other line.
Source: Apptainer's internal/pkg/runtime/engine/apptainer/action_scripts, "sylog" to "source".
"""

from __future__ import annotations

import re

from mpigraft.binary.image.root import ImageConfig, Root, RootError
from mpigraft.core.budget import Budget

FOLDER = "/.singularity.d/env"
ENGINES_OWN = {  # scripts of the engine, the same in every image
    "01-base.sh", "94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh",
}  # fmt: skip
MAX_SCRIPT = 1 << 18  # bytes
MAX_VALUE = 1 << 17  # characters: the kernel takes no longer ones
MAX_UNREAD_LINES = 100  # lines
DEFAULTS = {  # the engine's initial environment; it clears all else
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LD_LIBRARY_PATH": "",
}
OPENERS, CLOSERS = {"if", "case", "for", "while", "until"}, {"fi", "esac", "done"}
NAME = "[A-Za-z_][A-Za-z0-9_]*"
CHAR = r"[^\s\"'\\$`;&|<>()*?\[\]{}~#!]"
SIMPLE = rf"\$(?:{NAME}|\{{{NAME}\}})"  # $NAME, ${NAME}
# ${NAME:-WORD} and ${NAME:+WORD} too, whose words have no braces with words again. No repetition
# gives back what it took: the time for a line is proportional to its length.
VARIABLE = rf'(?:{SIMPLE}|\$\{{{NAME}:[-+](?:{CHAR}|"[^"\\$`]*+"|{SIMPLE})*+\}})'
VARIABLE_PARTS = re.compile(rf"\$\{{?({NAME})(?:(:[-+])(.*?))?\}}?", re.DOTALL)
WORD = rf"""(?:'[^']*+'|"(?:[^"\\$`]|\\.|{VARIABLE})*+"|\\.|{VARIABLE}|{CHAR}|(?<=\S)[#!])"""
PIECE = re.compile(rf"(?:{CHAR})++|{WORD}")
QUOTED = re.compile(rf'\\.|{VARIABLE}|[^"\\$`]++')
ASSIGNMENT = re.compile(rf"(?P<name>{NAME})(?:=(?P<word>{WORD}*+))?(?:\s*;?\s*$|\s+)")
FOLD = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")  # a line that goes on in the next


def config_of(root: Root, architecture: str = "", unread: tuple[str, ...] = ()) -> ImageConfig:
    """Read what the scripts set. `unread`: what else of the image could not be read."""
    shell = _Shell(Budget(root.name, 0))
    for name in root.names(FOLDER):
        if name.endswith(".sh") and name not in ENGINES_OWN:
            try:
                data = root.read(f"{FOLDER}/{name}", MAX_SCRIPT + 1)
            except RootError as error:
                shell.report(str(error))
                continue
            if len(data) > MAX_SCRIPT or b"\0" in data:
                shell.report(f"{name}: not a readable script")
            else:
                shell.source(name, data.decode("utf-8", "surrogateescape"))
    return ImageConfig(shell.environment(), architecture, (), (*unread, *shell.unread))


class _NotPlain(Exception):
    """Only a shell can read this."""


class _Shell:
    """The assignments of some scripts, one after the other."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget  # of all scripts: each line may double what the one before it set
        self.variables = dict(DEFAULTS)
        self.exported: dict[str, None] = {}  # in order
        self.unread: list[str] = []

    def environment(self) -> tuple[tuple[str, str], ...]:
        return tuple((n, self.variables[n]) for n in self.exported if n in self.variables)

    def report(self, line: str) -> None:
        if len(self.unread) < MAX_UNREAD_LINES:
            self.unread.append(line[:200])

    def source(self, name: str, text: str) -> None:
        depth = 0
        for folded in FOLD.sub("\\1\0", text).split("\n"):
            self._budget.take(items=1)
            line = folded.replace("\0", "")
            words = re.split(r"[\s;]+", line.strip())
            was = depth
            depth += sum(w in OPENERS for w in words) + words[-1].endswith("{")
            depth -= sum(w in CLOSERS for w in words) + (words[0] == "}")
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                if depth or was:
                    raise _NotPlain  # may not run
                if line != folded and ("#" in line or "'" in line):
                    raise _NotPlain  # a comment or quotes may end it
                self._assign(line.lstrip())
            except _NotPlain:
                self.report(f"{name}: {line.strip()}")

    def _assign(self, line: str) -> None:
        """Take export NAME=WORD NAME ..., or NAME=WORD; nothing of it where a word is not plain."""
        export = bool(re.match(r"export\s", line))
        rest = line[6:].lstrip() if export else line
        assignments: list[tuple[str, str | None]] = []
        at = 0
        while at < len(rest) and rest[at] != "#":
            match = ASSIGNMENT.match(rest, at)
            if not match or not (export or match["word"] is not None):
                raise _NotPlain
            value = None if match["word"] is None else self._value(match["word"], PIECE)
            assignments.append((match["name"], value))
            at = match.end()
        for known, value in assignments:
            if value is not None:
                self.variables[known] = value
            if export:
                self.exported[known] = None

    def _value(self, text: str, pieces: re.Pattern[str]) -> str:
        """Return the value of a word, or of text in double quotes. Raises _NotPlain."""
        value, at = "", 0
        while at < len(text) and (piece := pieces.match(text, at)):
            part = self._piece(piece[0], quoted=pieces is QUOTED)
            self._budget.take(unpacked=len(part), items=1)
            value += part
            if len(value) > MAX_VALUE:
                raise _NotPlain
            at = piece.end()
        if at < len(text):
            raise _NotPlain
        return value

    def _piece(self, piece: str, *, quoted: bool) -> str:
        if piece[0] == "$":
            return self._variable(piece)
        if piece[0] == "\\":
            return piece[1:] if not quoted or piece[1] in '"\\$`' else piece
        if quoted or piece[0] not in "'\"":
            return piece
        return piece[1:-1] if piece[0] == "'" else self._value(piece[1:-1], QUOTED)

    def _variable(self, piece: str) -> str:
        """Expand a variable. Raises _NotPlain for an unset variable: the engine may pass it on."""
        name, sign, word = VARIABLE_PARTS.fullmatch(piece).groups()  # type: ignore[union-attr]
        value = self.variables.get(name)
        if sign:
            other = self._value(word, PIECE)
            return other if (sign == ":-") is not bool(value) else value or ""
        if value is None:
            raise _NotPlain
        return value
