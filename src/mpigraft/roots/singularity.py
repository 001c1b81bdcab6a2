"""The environment of an Apptainer or SingularityCE image, as far as it can be read unrun.

It stands in shell scripts, /.singularity.d/env/*.sh, sourced in the order of their names. Read
are assignments of words that hold no more than quotes and variables; every other line is told.
Source: Apptainer's internal/pkg/runtime/engine/apptainer/action_scripts, "sylog" to "source".
"""

from __future__ import annotations

import re

from mpigraft.roots import ImageConfig, Root, RootError

FOLDER = "/.singularity.d/env"
ENGINES_OWN = {  # the engine's, which say nothing of the image
    "01-base.sh", "94-appsbase.sh", "95-apps.sh", "99-base.sh", "99-runtimevars.sh",
}  # fmt: skip
MAX_SCRIPT = 1 << 18  # bytes
MAX_VALUE = 1 << 17  # characters: the kernel takes no longer ones
MAX_TOLD = 100  # lines
DEFAULTS = {  # where the engine starts from; it clears all else
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LD_LIBRARY_PATH": "",
}
OPENERS, CLOSERS = {"if", "case", "for", "while", "until"}, {"fi", "esac", "done"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PLAIN = re.compile(r"[^\s\"'\\$`;&|<>()*?\[\]{}~#!]+|(?<=\S)[#!]")
FOLD = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")  # a line that goes on in the next
QUOTED = re.compile(r"[^\"\\$`]+")


def config_of(root: Root, architecture: str = "", told: tuple[str, ...] = ()) -> ImageConfig:
    """What the scripts set. `told`: what else of the image could not be read."""
    shell = _Shell()
    for name in root.names(FOLDER):
        if name.endswith(".sh") and name not in ENGINES_OWN:
            try:
                data = root.read(f"{FOLDER}/{name}", MAX_SCRIPT + 1)
            except RootError as error:
                shell.tell(str(error))
                continue
            if len(data) > MAX_SCRIPT or b"\0" in data:
                shell.tell(f"{name}: no script that can be read")
            else:
                shell.source(name, data.decode("utf-8", "surrogateescape"))
    return ImageConfig(shell.environment(), architecture, (), (*told, *shell.told))


class _NotPlain(Exception):
    """It takes a shell to read this."""


class _Shell:
    """The assignments of some scripts, one after the other."""

    def __init__(self) -> None:
        self.variables = dict(DEFAULTS)
        self.exported: dict[str, None] = {}  # in order
        self.told: list[str] = []

    def environment(self) -> tuple[tuple[str, str], ...]:
        return tuple((n, self.variables[n]) for n in self.exported if n in self.variables)

    def tell(self, line: str) -> None:
        if len(self.told) < MAX_TOLD:
            self.told.append(line[:200])

    def source(self, name: str, text: str) -> None:
        depth = 0
        for folded in FOLD.sub("\\1\0", text).split("\n"):
            line = folded.replace("\0", "")
            words = re.split(r"[\s;]+", line.strip())
            was = depth
            depth += sum(w in OPENERS for w in words) + words[-1].endswith("{")
            depth -= sum(w in CLOSERS for w in words) + (words[0] == "}")
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            try:
                if depth or was:
                    raise _NotPlain  # perhaps never reached
                if line != folded and ("#" in line or "'" in line):
                    raise _NotPlain  # neither in a comment nor in quotes does it go on
                self._assign(line.lstrip())
            except _NotPlain:
                self.tell(f"{name}: {line.strip()}")

    def _assign(self, line: str) -> None:
        """export NAME=WORD NAME ..., or NAME=WORD; nothing of it where one is not plain."""
        export = bool(re.match(r"export\s", line))
        rest = line[6:].lstrip() if export else line
        found: list[tuple[str, str | None]] = []
        while rest and not rest.startswith("#"):
            name = NAME.match(rest)
            if not name:
                raise _NotPlain
            rest = rest[name.end() :]
            value = None
            if rest.startswith("="):
                value, end = _Word(rest, 1, self.variables).value()
                rest = rest[end:]
            elif not export:
                raise _NotPlain
            found.append((name[0], value))
            if rest and not re.match(r"\s|;\s*$", rest):
                raise _NotPlain
            rest = rest.lstrip().removeprefix(";").lstrip()
        for known, value in found:
            if value is not None:
                self.variables[known] = value
            if export:
                self.exported[known] = None


class _Word:
    """One word of a shell: text, quotes, $NAME, ${NAME}, ${NAME:-WORD}, ${NAME:+WORD}."""

    def __init__(self, text: str, at: int, variables: dict[str, str]) -> None:
        self.text = text
        self.at = at
        self.variables = variables

    def value(self, stop: str = "", depth: int = 0) -> tuple[str, int]:
        """(value, where it ends): at a blank, a ";", the end, or before `stop`."""
        found = ""
        while self.at < len(self.text) and depth < 8:
            char = self.text[self.at]
            if char == stop or char.isspace() or char == ";":
                break
            if char == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    raise _NotPlain
                found += self.text[self.at + 1 : end]
                self.at = end + 1
            elif char == '"':
                self.at += 1
                found += self._quoted(depth)
            elif char == "\\":
                found += self.text[self.at + 1 : self.at + 2]
                self.at += 2
            elif char == "$":
                found += self._variable(depth)
            elif plain := PLAIN.match(self.text, self.at):
                end = plain.end()
                if stop and stop in plain[0]:
                    end = plain.start() + plain[0].index(stop)
                found += self.text[self.at : end]
                self.at = end
            else:
                raise _NotPlain
        if depth >= 8 or len(found) > MAX_VALUE:
            raise _NotPlain
        return found, self.at

    def _quoted(self, depth: int) -> str:
        """After a double quote, to the one that ends it."""
        found = ""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return found
            if char == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                found += escaped if escaped in '"\\$`' else "\\" + escaped
                self.at += 2
            elif char == "$":
                found += self._variable(depth)
            elif plain := QUOTED.match(self.text, self.at):
                found += plain[0]
                self.at = plain.end()
            else:
                break
        raise _NotPlain

    def _variable(self, depth: int) -> str:
        """After a "$". One that nobody set is no plain text: the engine may pass it on."""
        braces = self.text.startswith("{", self.at + 1)
        name = NAME.match(self.text, self.at + 1 + braces)
        if not name:
            raise _NotPlain
        self.at = name.end()
        known = self.variables.get(name[0])
        if not braces:
            return self._known(known)
        sign = self.text[self.at : self.at + 2]
        if sign in (":-", ":+"):
            self.at += 2
            other, _ = self.value("}", depth + 1)
            known = other if (sign == ":-") is not bool(known) else (known or "")
            if sign == ":+" and name[0] not in self.variables:
                known = ""
        if not self.text.startswith("}", self.at):
            raise _NotPlain
        self.at += 1
        return self._known(known)

    @staticmethod
    def _known(value: str | None) -> str:
        if value is None:
            raise _NotPlain
        return value
