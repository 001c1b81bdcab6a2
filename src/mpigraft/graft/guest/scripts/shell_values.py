"""Expand words of a shell script as far as reading shows their values.

A text that reading does not show is UNKNOWN in the fields. A word has several values where a
variable was set in branches.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from mpigraft.graft.guest.scripts.shell_syntax import Chain, Command, parse_shell
from mpigraft.graft.guest.scripts.shell_tokens import ShellSyntaxError, part_end, word_end

UNKNOWN = "\0"
MOST = 16  # values of one variable, or of the words of one command
PARAMETER = re.compile(r"(\w+|[@*#?$!-])(?:(:?[-=+?])(.*))?", re.DOTALL)
VARIABLE = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
ARRAY = re.compile(r"(\w+)\[[@*]\]")
LOOKUPS = frozenset({"which", "command", "type", "readlink", "realpath"})  # answer with a path
Fields = tuple[str, ...]


@dataclass(slots=True)
class Variables:
    """What a script knows. `values` of a variable are all that branches may have set."""

    values: dict[str, tuple[str, ...]]
    arguments: Fields | None  # None: not known
    name: str = ""  # $0
    cwd: str = "/"

    def copy(self) -> Variables:
        return Variables(dict(self.values), self.arguments, self.name, self.cwd)

    def merge(self, others: Sequence[Variables]) -> None:
        """Take what any of these may have set."""
        for name in dict.fromkeys(name for one in others for name in one.values):
            several = [v for one in others for v in one.values.get(name, (UNKNOWN,))]
            self.values[name] = tuple(dict.fromkeys(several))[:MOST]
        if any(one.arguments != self.arguments for one in others):
            self.arguments = None
        if any(one.cwd != self.cwd for one in others):
            self.cwd = UNKNOWN

    def of(self, name: str) -> tuple[str, ...]:
        """Give the values of a parameter; those of a name that nothing set are unknown."""
        if name == "0":
            return (self.name or UNKNOWN,)
        if name.isdigit():
            if self.arguments is None:
                return (UNKNOWN,)
            return (self.arguments[int(name) - 1],) if int(name) <= len(self.arguments) else ("",)
        if name == "#":
            return (UNKNOWN if self.arguments is None else str(len(self.arguments)),)
        return self.values.get(name, (UNKNOWN,))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a word: its alternatives, and how it is taken."""

    alternatives: tuple[str, ...]
    quoted: bool
    several: Fields | None = None  # fields of their own: "$@"


def expand(words: Sequence[str], variables: Variables) -> tuple[Fields, ...]:
    """Give the fields of these words, one tuple for each of the values that they may have."""
    parts = [tuple(_parts(word, variables)) for word in words]
    several = [_fields_of(word_parts) for word_parts in parts]
    found: dict[Fields, None] = {}
    for chosen in product(*several):
        found[tuple(field for fields in chosen for field in fields)] = None
        if len(found) >= MOST:
            break
    return tuple(found)


def expand_text(word: str, variables: Variables) -> tuple[str, ...]:
    """Give the values of a word that stays one field: what is behind `=`."""
    parts = tuple(_parts(word, variables))
    texts = (
        "".join(" ".join(p.several) if p.several is not None else text for p, text in chosen)
        for chosen in _choices(parts)
    )
    return tuple(dict.fromkeys(texts))


def _choices(parts: Sequence[Part]) -> Iterator[tuple[tuple[Part, str], ...]]:
    """Yield the combinations of the parts' values; MOST of them."""
    for number, chosen in enumerate(product(*(part.alternatives for part in parts))):
        if number >= MOST:
            return
        yield tuple(zip(parts, chosen, strict=True))


def _fields_of(parts: Sequence[Part]) -> tuple[Fields, ...]:
    return tuple(dict.fromkeys(tuple(_split(chosen)) for chosen in _choices(parts)))


def _split(chosen: Sequence[tuple[Part, str]]) -> Iterator[str]:
    """Split a word into fields, as a shell does behind unquoted parameters."""
    current: str | None = None
    for part, text in chosen:
        if part.several is not None:
            for place, one in enumerate(part.several):
                if place:
                    yield current or ""
                    current = ""
                current = (current or "") + one
        elif part.quoted:
            current = (current or "") + text
        else:
            pieces = re.split(r"[ \t\n]+", text)
            for place, piece in enumerate(pieces):
                if place and current is not None:
                    yield current
                    current = None
                if piece:
                    current = (current or "") + piece
    if current is not None:
        yield current


def _parts(word: str, variables: Variables, depth: int = 0) -> Iterator[Part]:
    place = 0
    while place < len(word):
        end = part_end(word, place, depth)
        text = word[place:end]
        place = end
        if text.startswith("\\"):
            yield Part((text[1:].removeprefix("\n"),), quoted=True)
        elif text.startswith("'"):
            yield Part((text[1:-1],), quoted=True)
        elif text.startswith("$'"):
            yield Part((text[2:-1],), quoted=True)
        elif text.startswith('"'):
            yield from _quoted(text[1:-1], variables, depth + 1)
        elif text == "$":
            part, place = _named(word, place, variables)
            yield part
        elif text.startswith(("$", "`")):
            yield _substitution(text, variables)
        elif text == "~" and word.startswith("~/") and place == 1:
            yield Part(variables.of("HOME"), quoted=True)
        else:
            yield Part((text,), quoted=True)


def _quoted(text: str, variables: Variables, depth: int) -> Iterator[Part]:
    """Expand what is between double quotes: it stays one field, but for "$@"."""
    place = 0
    if text != "$@":
        yield Part(("",), quoted=True)
    while place < len(text):
        character = text[place]
        if character == "\\":
            escaped = text[place + 1 : place + 2]
            yield Part((escaped if escaped in '$`"\\' else f"\\{escaped}",), quoted=True)
            place += 2
        elif character in "$`" and not text.startswith("$'", place):
            end = part_end(text, place, depth)
            if text[place:end] == "$":
                part, place = _named(text, end, variables)
            else:
                part, place = _substitution(text[place:end], variables), end
            yield Part(part.alternatives, True, part.several)
        else:
            yield Part((character,), quoted=True)
            place += 1


def _named(text: str, place: int, variables: Variables) -> tuple[Part, int]:
    """Expand the parameter whose name begins at `place`, behind its `$`: (part, its end)."""
    name = VARIABLE.match(text, place)
    if name is None:
        return Part(("$",), quoted=True), place
    return _parameter(name[0], variables), name.end()


def _parameter(name: str, variables: Variables) -> Part:
    if name in "@*":
        known = variables.arguments
        return Part(("",), False, known) if known is not None else Part((UNKNOWN,), False)
    return Part(variables.of(name), quoted=False)


def _substitution(text: str, variables: Variables) -> Part:
    """Expand `${...}`, `$(...)`, `$((...))` or backquotes."""
    if text.startswith("${"):
        return _braces(text[2:-1], variables)
    if text.startswith("$(("):
        return Part((UNKNOWN,), quoted=False)
    inner = text[2:-1] if text.startswith("$(") else re.sub(r"\\([`$\\])", r"\1", text[1:-1])
    return Part((_output(inner, variables),), quoted=False)


def _braces(inner: str, variables: Variables) -> Part:
    if array := ARRAY.fullmatch(inner):
        values = variables.of(f"{array[1]}[@]")
        if len(values) == 1 and UNKNOWN not in values[0]:
            return Part(("",), False, tuple(_of_list(values[0], variables)))
        return Part((UNKNOWN,), quoted=False)
    match = PARAMETER.fullmatch(inner)
    if match is None:
        return Part((UNKNOWN,), quoted=False)
    name, operator, word = match[1], match[2] or "", match[3] or ""
    plain = _parameter(name, variables)
    unset = plain.alternatives == (UNKNOWN,) and plain.several is None
    empty = plain.alternatives == ("",) and not plain.several
    if not operator or operator.endswith("?"):
        return plain
    if operator.endswith("+"):
        return Part(("", *expand_text(word, variables)), quoted=False)
    if unset or empty:
        return Part(expand_text(word, variables), quoted=False)
    return plain


def _of_list(text: str, variables: Variables) -> Iterator[str]:
    for fields in expand(tuple(split_words(text)), variables)[:1]:
        yield from fields


def split_words(text: str) -> Iterator[str]:
    """Split words as they are written, with their quotations."""
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        try:
            end = word_end(text, place)
        except ShellSyntaxError:
            return
        if end == place:
            return
        yield text[place:end]
        place = end


# ------------------------------------------------------------------ outputs


def _output(script: str, variables: Variables) -> str:
    """Give what a command substitution prints, where it prints what it was given, or a path."""
    nodes, whole = parse_shell(script)
    commands = [node for node in _flat(nodes) if isinstance(node, Command)]
    if not whole or not commands:
        return UNKNOWN
    found = [expand(command.words, variables)[:1] for command in commands]
    if not all(found):
        return UNKNOWN
    return _printed([fields[0] for fields in found], variables)


def _flat(nodes: Sequence[object]) -> Iterator[object]:
    for node in nodes:
        if isinstance(node, Chain):
            yield from _flat(node.first)
            yield from _flat(node.second)
        else:
            yield node


def _printed(commands: Sequence[Fields], variables: Variables) -> str:
    match commands:
        case [("echo", *words)]:
            return " ".join(words)
        case [("basename", path, *suffix)] if UNKNOWN not in path:
            return posixpath.basename(path.rstrip("/")).removesuffix("".join(suffix[:1]))
        case [("dirname", path)] if UNKNOWN not in path:
            return posixpath.dirname(path) or "."
        case [("pwd", *_)]:
            return variables.cwd
        case [("cd", folder), ("pwd", *_)] if UNKNOWN not in folder + variables.cwd:
            return posixpath.normpath(posixpath.join(variables.cwd, folder))
        case [(name, *options, path), *rest] if name in LOOKUPS:
            if len(rest) < 2 and all(option.startswith("-") for option in options):
                return path
    return UNKNOWN
