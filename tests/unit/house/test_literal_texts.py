"""Tests assert codes and values, and seldom the wording of a sentence. Codes of findings and errors
are not counted: they are what a test is to name."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpigraft.core.messages import FOLDER

UNIT = Path(__file__).parents[1]
CODES = {code for file in FOLDER.glob("*.toml") for code in tomllib.loads(file.read_text())}
SHORT = 12  # characters: an id, a number with its unit
# Asserts that compare longer text, and of these sentences: words with blanks between them. Lower
# these when you replace some, by tests.builders.messages or, of a command, by one recorded output
# (tests.builders.outputs).
MOST, MOST_SENTENCES = 321, 78


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    for node in ast.walk(test):
        match node:
            case ast.Compare():
                yield from (node.left, *node.comparators)
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith")):
                yield from node.args


def _texts(node: ast.expr) -> Iterator[str]:
    """The literal text in an operand: alone, in a display, or added to other text."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(_or_blank(part) for part in parts)
        case ast.Tuple(elts=several) | ast.List(elts=several) | ast.Set(elts=several):
            for one in several:
                yield from _texts(one)
        case ast.Dict(values=several):
            for one in several:
                yield from _texts(one)
        case ast.BinOp(left=left, right=right):
            yield from _texts(left)
            yield from _texts(right)
        case ast.Starred(value=one):
            yield from _texts(one)


def _or_blank(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "{}"


def literal_texts(source: str) -> list[list[str]]:
    """Of each assert that compares text longer than SHORT, and no code, that text."""
    asserts = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert))
    found = ([t for o in _operands(one.test) for t in _texts(o)] for one in asserts)
    long = (
        [text for text in texts if len(text) > SHORT and text.strip("[]") not in CODES]
        for texts in found
    )
    return [texts for texts in long if texts]


def test_few_asserts_compare_text() -> None:
    found = [t for path in UNIT.rglob("*.py") for t in literal_texts(path.read_text())]
    sentences = [texts for texts in found if any(len(text.split()) > 1 for text in texts)]
    assert len(found) <= MOST
    assert len(sentences) <= MOST_SENTENCES


@pytest.mark.parametrize(
    "compared",
    [
        "x == 'one long sentence'", "'one long sentence' in x", "x == ('a', 'too long a text')",
        "x.startswith('one long sentence')", "x == f'{y} is a long sentence'",
    ],
)  # fmt: skip
def test_text_is_found_where_it_is_compared(compared: str) -> None:
    assert literal_texts(f"assert {compared}")


@pytest.mark.parametrize(
    "other",
    [
        "f('one long sentence') == 3", "x['one long sentence'] == 3", "x == 'short'",
        "x.code == 'libmpi-several'",
    ],
)  # fmt: skip
def test_text_that_is_given_is_not_compared(other: str) -> None:
    assert not literal_texts(f"assert {other}")
