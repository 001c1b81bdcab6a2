"""Parse shell scripts with tree-sitter's grammar of bash, which keeps what it can of a broken one.

The grammar does not know `for NAME; do` and some words between brackets. The text is completed
before it is parsed, on the same lines.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN = "\0"
MARK = "\ue000"  # UNKNOWN in a text that is parsed: \0 ends one for the grammar
MAX_TEXT = 1 << 18  # characters of a script
MAX_PIPES = 1500  # time grows with the third power of those in one pipeline
MAX_CPU_S = 1.0  # some broken texts take a time that grows with the square of their length
CHUNK = 256
OVER_ARGUMENTS = re.compile(r"(?m)^([ \t]*for[ \t]+\w+)(?:[ \t]*;|[ \t]|(?=\n))(?=\s*do\b)")
BRACKET = "\ue001"  # [ where that is a command, which has words like those of others
BRACKETS = re.compile(r"(?<![^\s;&|(!`])\[(?=\s)")


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def parse_shell(text: str) -> Node | None:
    """Parse a script; None: it is too large, or would take too long."""
    text = OVER_ARGUMENTS.sub(r'\1 in "$@";', text.replace(UNKNOWN, MARK))
    text = BRACKETS.sub(BRACKET, text)
    if len(text) > MAX_TEXT or text.count("|") - 2 * text.count("||") > MAX_PIPES:
        return None
    data = text.encode("utf-8", "surrogateescape")
    end = time.thread_time() + MAX_CPU_S
    late = False

    def read(offset: int, _point: object) -> bytes:
        nonlocal late
        late = late or time.thread_time() > end
        return b"" if late else data[offset : offset + CHUNK]

    tree = _parser().parse(read)
    end = float("inf")  # the nodes' texts are read by it, too
    return None if late or tree is None else tree.root_node


def text_of(node: Node) -> str:
    """Give the text of a node."""
    return _decoded(node.text or b"")


def pieces(node: Node) -> Iterator[tuple[Node | None, str]]:
    """Yield the children of a node with their texts, and the texts between them."""
    data, start = node.text or b"", node.start_byte
    place = start
    for child in node.children:
        if child.start_byte > place:
            yield None, _decoded(data[place - start : child.start_byte - start])
        yield child, text_of(child)
        place = child.end_byte
    if node.end_byte > place:
        yield None, _decoded(data[place - start :])


def leaves(node: Node, inner: Collection[str]) -> Iterator[Node]:
    """Yield the nodes below that are not of the types `inner`."""
    rest = [node]
    while rest:
        one = rest.pop()
        if one.type in inner or one is node:
            rest += reversed(one.children)
        else:
            yield one


def _decoded(data: bytes) -> str:
    text = data.decode("utf-8", "surrogateescape")
    return text.replace(MARK, UNKNOWN).replace(BRACKET, "[")
