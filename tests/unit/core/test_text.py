"""Lists in findings, lines of a terminal, and what a terminal must not obey."""

from __future__ import annotations

import pytest

from mpigraft.core.text import fold, join_some, labelled, printable, printable_document


@pytest.mark.parametrize(
    ("count", "separator", "text"),
    [
        (1, "; ", "a"), (2, "; ", "a; b"), (3, "; ", "a; b; and 1 more"),
        (4, "; ", "a; b; and 2 more"), (2, ", ", "a, b"), (4, ", ", "a, b and 2 more"),
    ],
)  # fmt: skip
def test_what_is_too_much_is_counted(count: int, separator: str, text: str) -> None:
    assert join_some("abcd"[:count], 2, separator) == text


def test_what_a_terminal_obeys_is_escaped() -> None:
    plain = "\x1b\nc"
    assert printable(plain) == r"\x1b\x0ac"
    assert printable(plain, "\n") == "\\x1b\nc"
    assert printable("é a") == "é a"
    found = printable_document({"a": ["x\n", 3], "b": "x\n", "c": {"b": "x\n"}}, ["b"])
    assert found == {"a": [r"x\x0a", 3], "b": "x\n", "c": {"b": "x\n"}}
    assert printable_document({"a": "x\n", "b": ["x\n"]}, "b") == {
        "a": r"x\x0a", "b": [r"x\x0a"],
    }  # fmt: skip


def test_lines_are_folded_between_words_which_stay_whole() -> None:
    assert fold("ab cd-ef\ngh", "- ", width=7) == ["- ab", "  cd-ef", "  gh"]
    assert fold("ab cd-ef", width=5) == ["ab", "  cd-ef"]
    assert fold("abcdefgh", width=5) == ["abcdefgh"]
    assert fold("abcdefgh", width=5, whole=False) == ["abcde", "  fgh"]
    assert fold("ab cde-fg", width=8, whole=False) == ["ab cde-", "  fg"]
    assert labelled("x", "ab cd", 8, 4) == ["x   ab", "    cd"]
    assert labelled("x", "abcde", 8) == [f"x{' ' * 11}abcde"]
    assert labelled("x", "abcde", 6, 4, whole=False) == ["x   ab", "    cd", "    e"]
