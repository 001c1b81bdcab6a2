"""Layouts in the order of their numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Layout, layout_order

COUNTS = st.integers(min_value=1, max_value=999_999)


def test_layouts_are_ordered_as_numbers() -> None:
    keys = ["unknown", "128x128", "2x128", "1x128x2", "16x128", "1x128", "1x2", "2x128:numa"]
    ordered = ["1x2", "1x128", "1x128x2", "2x128", "2x128:numa", "16x128", "128x128", "unknown"]
    assert sorted(keys, key=layout_order) == ordered


def test_what_is_no_layout_is_ordered_by_its_letters() -> None:
    keys = ["mpich@10/ucx", "2xa", "cray-mpich@9/ofi", "1x9999999"]
    assert sorted(keys, key=layout_order) == sorted(keys)


def test_parts_of_a_layout_are_ordered_by_their_number() -> None:
    assert sorted(["16ranks", "4ranks", "2x8"], key=layout_order) == ["2x8", "4ranks", "16ranks"]


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_more_nodes_come_after_fewer(a: int, b: int, c: int, d: int, e: int, f: int) -> None:
    less, more = Layout(a, b, c), Layout(a + d, e, f)
    assert layout_order(less.key) < layout_order(more.key)
    assert layout_order(Layout(a, b, c).key) < layout_order(Layout(a, b + d, e).key)


@given(st.text())
def test_any_text_has_a_place(text: str) -> None:
    assert sorted([text, "1x1"], key=layout_order)
