"""Expand words of a shell script as far as reading shows their values.

A text that reading does not show is UNKNOWN in the fields. A word has several values where a
variable was set in branches.
"""

from __future__ import annotations

import operator as op
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice, product
from typing import TYPE_CHECKING, Protocol

from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN, pieces, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

MOST = 16  # values of one variable, or of the words of one command
MAX_LENGTH = 1 << 16  # characters of a value
MAX_DEPTH = 30  # of expansions in expansions
# They belong to a set-up, and are long.
SEARCHED = frozenset({"PATH", "LD_LIBRARY_PATH", "MANPATH", "PYTHONPATH"})
LIST = re.compile(r'"\$(@|\{@\}|\{\w+\[@\]\})"')  # fields of their own, or none
GLOB = re.compile(r"\\.|[*?]+|\[[^]]+\]", re.DOTALL)
Fields = tuple[str, ...]
Values = tuple[Fields, ...]  # alternatives; of a scalar, each has one field
NOT_KNOWN: Values = ((UNKNOWN,),)
SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": op.add, "-": op.sub, "*": op.mul, "/": op.floordiv, "%": op.mod,
    "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge, "==": op.eq, "!=": op.ne,
}  # fmt: skip


@dataclass(slots=True)
class Variables:
    """What a script knows. `values` of a variable are all that branches may have set."""

    values: dict[str, Values]
    arguments: Fields | None  # None: not known
    name: str = ""  # $0
    cwd: str = "/"
    files: dict[str, str] = field(default_factory=dict)  # that it has written: their texts

    def copy(self) -> Variables:
        return Variables(dict(self.values), self.arguments, self.name, self.cwd, dict(self.files))

    def merge(self, others: Sequence[Variables]) -> None:
        """Take what any of these may have set."""
        for name in dict.fromkeys(name for one in others for name in one.values):
            several = [v for one in others for v in one.values.get(name, NOT_KNOWN)]
            self.values[name] = tuple(dict.fromkeys(several))[:MOST]
        for path in dict.fromkeys(path for one in others for path in one.files):
            texts = {one.files.get(path, UNKNOWN) for one in others}
            self.files[path] = texts.pop() if len(texts) == 1 else UNKNOWN
        if any(one.arguments != self.arguments for one in others):
            self.arguments = None
        if any(one.cwd != self.cwd for one in others):
            self.cwd = UNKNOWN

    def of(self, name: str) -> Values:
        """Give the values of a parameter; those of a name that nothing set are unknown."""
        known = self.arguments
        if name == "0":
            return ((self.name or UNKNOWN,),)
        if name in ("@", "*", "#") or name.isdigit():
            if known is None:
                return NOT_KNOWN
            if name == "#":
                return ((str(len(known)),),)
            return (known,) if name in "@*" else (known[int(name) - 1 : int(name)] or ("",),)
        return self.values.get(name, NOT_KNOWN)

    def exported(self) -> dict[str, str]:
        """Give the variables whose values are known, for a script that this one starts."""
        known = ((name, v[0]) for name, v in self.values.items() if len(v) == 1)
        return {name: fields[0] for name, fields in known if fields}

    def settings(self, names: Collection[str]) -> tuple[str, ...]:
        """Give NAME=VALUE of these variables, as far as they are known."""
        known = ((n, v) for n, v in self.exported().items() if n in names and n not in SEARCHED)
        return tuple(f"{name}={value}" for name, value in known if UNKNOWN not in value)

    def assign(self, name: str, values: Values) -> None:
        short = all(sum(map(len, fields)) < MAX_LENGTH for fields in values)
        self.values[name] = values[:MOST] if short else NOT_KNOWN


class ShellScope(Protocol):
    """What words are expanded in."""

    variables: Variables

    def output(self, node: Node) -> str:
        """Follow a command substitution, and give what it prints."""
        ...


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of a word: its alternatives, and whether they are split no further."""

    alternatives: Values
    quoted: bool = True


def literal(text: str, *, quoted: bool = True) -> TextPart:
    return TextPart(((text,),), quoted)


def expand(nodes: Sequence[Node], scope: ShellScope) -> tuple[Fields, ...]:
    """Give the fields of these words, one tuple for each of the values that they may have."""
    several = [_fields_of(tuple(_parts(node, scope, 0))) for node in nodes]
    values = (tuple(f for fields in chosen for f in fields) for chosen in product(*several))
    return tuple(dict.fromkeys(islice(values, MOST)))


def expand_text(nodes: Sequence[Node], scope: ShellScope, depth: int = 0) -> tuple[str, ...]:
    """Give the values of words that stay one field: what is behind `=`."""
    parts = [part for node in nodes for part in _parts(node, scope, depth, names=False)]
    return joined(parts)


def joined(parts: Sequence[TextPart]) -> tuple[str, ...]:
    """Give the texts of parts that stay one field."""
    texts = ("".join(map(" ".join, chosen)) for chosen in product(*(p.alternatives for p in parts)))
    return tuple(dict.fromkeys(islice(texts, MOST)))


def _fields_of(parts: Sequence[TextPart]) -> tuple[Fields, ...]:
    chosen = product(*(part.alternatives for part in parts))
    fields = (tuple(_split(parts, one)) for one in islice(chosen, MOST))
    return tuple(dict.fromkeys(fields))


def _split(parts: Sequence[TextPart], chosen: Sequence[Fields]) -> Iterator[str]:
    """Split a word into fields, as a shell does behind unquoted parameters."""
    current: str | None = None
    for part, fields in zip(parts, chosen, strict=True):
        for number, text in enumerate(fields):
            if number and current is not None:
                yield current
                current = None
            if part.quoted:
                current = (current or "") + text
                continue
            for place, piece in enumerate(re.split(r"[ \t\n]+", text)):
                if place and current is not None:
                    yield current
                    current = None
                current = (current or "") + piece if piece else current
    if current is not None:
        yield current


def unescape(text: str, escaped: str = r"[\s\S]") -> str:
    return re.sub(rf"\\(\n|{escaped})", lambda m: m[1].strip("\n"), text)


def _parts(node: Node, scope: ShellScope, depth: int, *, names: bool = True) -> Iterator[TextPart]:
    """Expand a word. `names`: patterns in it match names of files."""
    text = text_of(node)
    if depth > MAX_DEPTH or node.is_error or node.is_missing:
        yield literal(UNKNOWN)
        return
    match node.type:
        case "string" | "translated_string" | "heredoc_body":
            if not LIST.fullmatch(text):
                yield literal("")
            yield from _quoted(node, scope, depth)
        case "concatenation" | "command_name":
            if re.search(r"(?<![$\\]){[^}]*(,|\.\.)", text):
                yield literal(UNKNOWN)
                return
            for child in node.children:
                yield from _parts(child, scope, depth + 1, names=names)
        case "simple_expansion":
            yield TextPart(_named(text[1:], scope), quoted=False)
        case "expansion":
            yield _braces(node, scope, depth)
        case "command_substitution":
            yield literal(scope.output(node), quoted=False)
        case _:
            yield from _plain(node, scope, depth, names)


def _plain(node: Node, scope: ShellScope, depth: int, names: bool) -> Iterator[TextPart]:
    """Expand a word without parts."""
    text = text_of(node)
    match node.type:
        case "raw_string":
            yield literal(text[1:-1])
        case "ansi_c_string":
            yield literal(UNKNOWN if "\\" in text else text[2:-1])
        case "process_substitution":
            scope.output(node)
            yield literal(UNKNOWN)
        case "arithmetic_expansion":
            inner = node.named_children[:1]
            value = arithmetic(inner[0], scope, depth + 1) if inner else None
            yield literal(UNKNOWN if value is None else str(value))
        case "brace_expression":
            yield _numbers(text)
        case _:
            if text == "~" or text.startswith("~/"):
                yield TextPart(scope.variables.of("HOME"))
                text = text[1:]
            glob = GLOB.sub(lambda m: m[0] if m[0][0] == "\\" else UNKNOWN, text)
            yield literal(unescape(glob if names else text))


def _quoted(node: Node, scope: ShellScope, depth: int) -> Iterator[TextPart]:
    """Expand what is between double quotes: it stays one field, but for "$@"."""
    for child, text in pieces(node):
        if child is None or child.type in ("string_content", "heredoc_content"):
            yield literal(unescape(text, '[$`"\\\\]'))
        elif child.type == "$":
            yield literal("$")
        elif child.is_named:
            several = text in ("$@", "${@}") or text.endswith("[@]}")
            for part in _parts(child, scope, depth + 1):
                whole = part.alternatives if several else ((t,) for t in joined([part]))
                yield TextPart(tuple(whole))


def _named(name: str, scope: ShellScope) -> Values:
    values = scope.variables.of(name)
    return values if name in ("@", "*") else tuple(fields[:1] or ("",) for fields in values)


def _braces(node: Node, scope: ShellScope, depth: int) -> TextPart:
    """Expand `${...}`."""
    name, *rest = node.named_children or [node]
    tokens = [text_of(child) for child in node.children[1:-1]]
    operator = tokens[1] if len(tokens) > 1 else ""
    if node.named_child_count == 0 or tokens[0] != text_of(name):
        return literal(UNKNOWN, quoted=False)
    if name.type == "subscript":
        variable, _, index = tokens[0][:-1].partition("[")
        plain = scope.variables.of(variable)
        if index.isdigit():
            plain = tuple(f[int(index) : int(index) + 1] or ("",) for f in plain)
        elif index not in ("@", "*"):
            plain = NOT_KNOWN
    else:
        plain = _named(tokens[0], scope)
    missing = plain == NOT_KNOWN or not any(map(any, plain))
    if not operator or operator.endswith("?"):
        return TextPart(plain, quoted=False)
    word = tuple((t,) for t in expand_text(rest, scope, depth + 1)) if rest else (("",),)
    if operator in (":-", "-", ":=", "="):
        return TextPart(word if missing else plain, quoted=False)
    if operator in (":+", "+"):
        sure = not missing and all(UNKNOWN not in f[0] for f in plain if f)
        return TextPart(word if sure else (("",), *word), quoted=False)
    if operator in ("%", "%%", "#", "##") and len(word) == len(plain) == 1 and plain[0]:
        return literal(_trimmed(plain[0][0], operator, word[0][0]), quoted=False)
    return literal(UNKNOWN, quoted=False)


def _trimmed(text: str, operator: str, pattern: str) -> str:
    if UNKNOWN in text + pattern or len(text) > 1000:
        return UNKNOWN
    cuts = range(len(text) + 1)
    for cut in cuts if operator in ("#", "%%") else reversed(cuts):
        part, rest = (text[:cut], text[cut:]) if operator[0] == "#" else (text[cut:], text[:cut])
        if fnmatchcase(part, pattern):
            return rest
    return text


def _numbers(text: str) -> TextPart:
    ends = re.fullmatch(r"\{(\d{1,9})\.\.(\d{1,9})\}", text)
    if ends is None or not 0 <= int(ends[2]) - int(ends[1]) < MOST:
        return literal(UNKNOWN)
    return TextPart((tuple(map(str, range(int(ends[1]), int(ends[2]) + 1))),))


# ------------------------------------------------------------------ arithmetic


def arithmetic(node: Node, scope: ShellScope, depth: int = 0) -> int | None:
    """Give the value of an arithmetic expression; None: reading does not show it."""
    text = text_of(node)
    if depth > MAX_DEPTH or node.is_error:
        return None
    match node.type, [child.type for child in node.children]:
        case "parenthesized_expression", ["(", _, ")"]:
            return arithmetic(node.children[1], scope, depth + 1)
        case "binary_expression", [_, sign, _]:
            left, right = (arithmetic(node.children[n], scope, depth + 1) for n in (0, 2))
            sets = sign.endswith("=") and sign not in ("==", "!=", "<=", ">=")
            value = _computed(left, sign.rstrip("=") if sets else sign, right)
            return _store(node, value, scope) if sets else value
        case "postfix_expression", [_, ("++" | "--") as sign]:
            value = arithmetic(node.children[0], scope, depth + 1)
            _store(node, None if value is None else value + (1 if sign == "++" else -1), scope)
            return value
        case "variable_assignment", [_, "=", _]:
            return _store(node, arithmetic(node.children[2], scope, depth + 1), scope)
    texts: tuple[str, ...] = (text,)
    if node.type in ("simple_expansion", "expansion", "command_substitution"):
        texts = joined(tuple(_parts(node, scope, depth)))
    elif text.isidentifier():
        texts = joined([TextPart(_named(text, scope))])
    number = texts[0] if len(texts) == 1 else ""
    return int(number) if re.fullmatch(r"-?(0|[1-9]\d{0,17})", number) else None


def _store(node: Node, value: int | None, scope: ShellScope) -> int | None:
    text = UNKNOWN if value is None else str(value)
    scope.variables.assign(text_of(node.children[0]), ((text,),))
    return value


def _computed(left: int | None, sign: str, right: int | None) -> int | None:
    if left is None or right is None or (sign in ("/", "%") and not (left >= 0 and right > 0)):
        return None
    return int(SIGNS[sign](left, right)) if sign in SIGNS else None


def compared(left: int, test: str, right: int) -> bool:
    """Compare numbers as `test` does, by -lt and the like."""
    return bool(getattr(op, test[1:])(left, right))
