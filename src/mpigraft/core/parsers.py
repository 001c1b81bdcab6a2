"""Parse Python and TOML of others, within bounds that the parsers of the standard library lack.

A node of a tree takes a microsecond and some hundred bytes, so a megabyte of short statements takes
600 MB. `tomllib` copies the tables before each part of a dotted key.
"""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from typing import Any

MAX_MARKS = 1 << 17  # of a source: the largest modules in use have 92,000
MARKS = b"=,()[]{}+-*/.:;\n<>%&|^@~"  # what separates the nodes of a tree
# The parser joins a dotted name anew for each of its parts.
LONG_NAME = re.compile(rb"(?<![\w\x80-\xff])(?:[\w\x80-\xff]++[\s\\]*+\.[\s\\]*+){64}")
MAX_TOML = 1 << 20  # bytes
MAX_PARTS = 32  # of a dotted key
DOTTED = re.compile(
    rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MAX_PARTS}}}"""
)


class TooMuch(ValueError):
    """A text that would take too much time or memory."""


def parse_python(data: bytes) -> ast.Module:
    """Parse a source. Raises SyntaxError, and ValueError for one with too much."""
    marks = len(data) - len(data.translate(None, MARKS))
    if marks > MAX_MARKS:
        raise TooMuch(f"more than {MAX_MARKS:,} operators, commas and lines")
    if LONG_NAME.search(data):
        raise TooMuch("a name of more than 64 parts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in strings: not our source
        try:
            return ast.parse(data)
        except (RecursionError, MemoryError) as error:
            raise TooMuch(str(error) or type(error).__name__) from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError, and TooMuch for a text with too much."""
    if len(text) > MAX_TOML:
        raise TooMuch(f"more than {MAX_TOML:,} bytes of TOML")
    if deep := DOTTED.search(text):
        line = text.count("\n", 0, deep.start()) + 1
        raise TooMuch(f"a key of more than {MAX_PARTS} parts on line {line}")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("tables or lists that are too deep") from error
