"""Lists in findings."""

from __future__ import annotations

import pytest

from mpigraft.core.text import join_some


@pytest.mark.parametrize(
    ("count", "separator", "text"),
    [
        (1, "; ", "a"), (2, "; ", "a; b"), (3, "; ", "a; b; and 1 more"),
        (4, "; ", "a; b; and 2 more"), (2, ", ", "a, b"), (4, ", ", "a, b and 2 more"),
    ],
)  # fmt: skip
def test_what_is_too_much_is_counted(count: int, separator: str, text: str) -> None:
    assert join_some("abcd"[:count], 2, separator) == text
