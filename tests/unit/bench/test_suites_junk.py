"""Readers of benchmarks' output on lines in any order and bytes of any kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import imb, osu
from mpigraft.bench.suites.base import Parsed
from mpigraft.core.errors import UsageError
from tests.unit.bench import test_suites_imb, test_suites_osu

JUNK = st.tuples(st.binary(max_size=30), st.integers(0, 300))  # bytes, and where they go in


@pytest.mark.parametrize(
    ("parse", "lines"),
    [(imb.parse, test_suites_imb.LINES), (osu.parse, test_suites_osu.LINES)],
    ids=["imb", "osu"],
)
@given(data=st.data())
def test_no_file_makes_a_reader_fall_over(
    parse: Callable[..., Parsed], lines: st.SearchStrategy[str], data: st.DataObject
) -> None:
    text = "\n".join(data.draw(st.lists(lines))).encode()
    junk, at = data.draw(JUNK)
    with contextlib.suppress(UsageError):
        parsed = parse(text[:at] + junk + text[at:], source="junk")
        assert all(m.value >= 0 for m in parsed.measurements)
