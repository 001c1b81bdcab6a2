"""Sizes as people write them: one reader for all options and files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.numbers import read_size, short_size

UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@given(
    count=st.integers(0, 10**18 - 1),
    unit=st.sampled_from(sorted(UNITS)),
    end=st.sampled_from(("", "B", "iB")),
    blank=st.sampled_from(("", " ")),
    lower=st.booleans(),
)
def test_every_way_to_write_a_size_is_read(
    count: int, unit: str, end: str, blank: str, lower: bool
) -> None:
    word = unit + (end if unit else end.removeprefix("i"))
    text = f"{count}{blank if word else ''}{word.lower() if lower else word}"
    assert read_size(text) == count * 1024 ** UNITS[unit]


@given(st.integers(1, 1 << 45))
def test_a_size_that_a_table_shows_is_read_again(count: int) -> None:
    assert read_size(short_size(count)) == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "M",
        "-1",
        "+1",
        "1.5M",
        "1e6",
        "4 X",
        "4MiBB",
        "4iB",
        "4  MiB",
        "4M ",
        "\u0664K",
        "4\n",
    ],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read_size(text)


@given(st.text(max_size=8))
def test_any_text_is_a_size_or_refused(text: str) -> None:
    try:
        assert read_size(text) >= 0
    except ValueError:
        assert not text.isdecimal() or not text.isascii()
