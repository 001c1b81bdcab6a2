"""Parsers of others' text, and sources that mean harm."""

from __future__ import annotations

import ast
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core import parsers
from mpigraft.core.parsers import TooMuch, parse_python, parse_toml

MANY = b"a=1\n" * (parsers.MAX_MARKS // 2)


def test_a_source_has_no_more_nodes_than_memory_can_hold() -> None:
    assert len(parse_python(MANY).body) == parsers.MAX_MARKS // 2
    with pytest.raises(TooMuch, match="operators, commas and lines"):
        parse_python(MANY + b"\n")


@pytest.mark.parametrize(
    "source",
    [
        b"import " + b"." * 100_000,
        b"a" + b".a" * 100,
        b"-" * 100_000 + b"1",
        b"a" + b" if a else a" * 50_000,
        b"not " * 100_000 + b"1",
        b"lambda: " * 20_000 + b"1",
        b"(" * 150 + b")" * 150,
        b"\0",
        b"# coding: no-such\n",
    ],
    ids=lambda source: source[:12],
)
def test_python_that_means_harm_is_refused_or_parsed(source: bytes) -> None:
    with contextlib.suppress(SyntaxError, ValueError):
        assert isinstance(parse_python(source), ast.Module)


@given(st.text(alphabet="ab.=[]{}(),:\n'\"#\\ \t1", max_size=80))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    for parse in (lambda: parse_python(text.encode()), lambda: parse_toml(text)):
        with contextlib.suppress(SyntaxError, ValueError):
            parse()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".".join("a" * 40) + "=1", "more than 32 parts on line 1"),
        ("#" * (parsers.MAX_TOML + 1), "bytes of TOML"),
    ],
    ids=("dotted", "long"),
)
def test_toml_that_means_harm_is_refused(text: str, why: str) -> None:
    with pytest.raises(TooMuch, match=why):
        parse_toml(text)


def test_toml_of_deep_lists_is_refused() -> None:
    with pytest.raises(ValueError, match="too deep"):
        parse_toml("a = " + "[" * 100_000)
