"""Lists in findings, lines of a terminal, and what a terminal must not obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.text import (
    columns,
    did_you_mean,
    fold,
    fold_message,
    join_some,
    labelled,
    printable,
    printable_document,
)


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


@pytest.mark.parametrize(
    ("value", "most", "width"),
    [
        ("60", 80, 60), ("60", 50, 50), ("100", 80, 80), ("100", 999, 100), ("9", 80, 40),
        ("", 99, 80), ("many", 99, 80),
    ],
)  # fmt: skip
def test_lines_are_as_wide_as_columns(
    value: str, most: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.__stdout__", None)  # tests may run on a terminal of any width
    monkeypatch.setenv("COLUMNS", value)
    assert columns(most) == width
    assert max(map(len, fold("a " * 99))) == columns() - 1


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("latancy", ["latency"]), ("LATENCY", ["latency"]), ("pingpong", ["PingPong"]),
        ("bww", ["bw"]), ("xyzzy", []), ("", []),
    ],
)  # fmt: skip
def test_a_misspelt_word_is_answered_with_the_nearest(word: str, near: list[str]) -> None:
    asked = did_you_mean(word, ["latency", "bw", "allreduce", "PingPong"])
    assert asked.removeprefix("did you mean ").removesuffix("? ").split(" or ") == (near or [""])


def test_nearest_words_are_listed() -> None:
    asked = did_you_mean("lat", ["lat1", "lat2", "lat3", "bw"])
    assert asked.split() == ["did", "you", "mean", "lat3,", "lat2", "or", "lat1?"]
    assert not did_you_mean("xyzzy", ["lat1", "bw"])


@given(st.sampled_from(["latency", "allreduce", "openmpi@5.0.11", "ob1-sm"]), st.data())
def test_a_word_that_lacks_a_letter_is_found(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    others = ["bcast", "mpich@5.0.2", "ucx"]
    assert word in did_you_mean(word[:at] + word[at + 1 :], [*others, word])


@given(st.text(max_size=8), st.lists(st.text(max_size=8), max_size=5))
def test_at_most_three_words_are_asked_for_and_none_moves_the_cursor(
    word: str, known: list[str]
) -> None:
    asked = did_you_mean(word, known)
    assert printable(asked) == asked
    assert not asked or asked.endswith("? ")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("one two " * 8, ["one two " * 4 + "one two", "  " + " ".join(["one two"] * 3)]),
        (
            "what to do: type `mpigraft bench --resume 2c78c76a --rounds 122` and wait",
            ["what to do: type", "  `mpigraft bench --resume 2c78c76a --rounds 122`", "  and wait"],
        ),
        ("a" * 70, ["a" * 70]),
        (
            "first\n\n  an indented part of a list that goes on",
            ["first", "", "  an indented part of a list that goes", "    on"],
        ),
        ("", [""]),
    ],
)
def test_a_message_is_folded_at_words_and_its_commands_stay_whole(
    text: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert fold_message(text).split("\n") == lines


def test_a_wide_letter_has_two_columns_and_a_name_keeps_its_blanks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    wide = "\u65e5" * 15
    assert fold_message(f"of {wide} {wide}").split("\n") == [f"of {wide}", f"  {wide}"]
    assert fold_message("a\xa0b `c d`") == "a\xa0b `c d`"


@pytest.mark.parametrize(
    ("columns_there", "lines"),
    [("60", ["it ends before this-long-word-with-many-hyphens"]),
     ("40", ["it ends before", "  this-long-word-with-many-hyphens"]),
     ("20", ["it ends before", "  this-long-word-with-many-hyphens"])],
)  # fmt: skip
def test_a_message_is_as_wide_as_its_terminal_and_breaks_no_word(
    columns_there: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns_there)
    assert fold_message("it ends before this-long-word-with-many-hyphens").split("\n") == lines
