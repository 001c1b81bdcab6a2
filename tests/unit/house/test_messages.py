"""The two ways in which tests look at messages can fail."""

from __future__ import annotations

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.text import fold
from tests.builders.messages import matches, shows

ERROR = UsageError.of("plan-unknown", key="zz", problem="matches no graft here")


def test_a_message_is_known_by_its_code_and_its_values() -> None:
    for found in (ERROR, str(ERROR), "\n".join(fold(str(ERROR), width=24))):
        assert matches(found, "plan-unknown", key="zz", problem=("no graft", "here"))
        assert not matches(found, "plan-unknown", key="z")  # a value is no part of a word
        assert not matches(found, "plan-unknown", problem="zz")  # nor in another field
        assert not matches(found, "plan-in-use", key="zz")
    assert not matches("another text", "plan-unknown")
    with pytest.raises(AssertionError, match="plan-unknown has key, problem"):
        matches(ERROR, "plan-unknown", kee="zz")


def test_a_text_shows_values_in_their_order() -> None:
    text = f"launch 17 of 20 was\n    slow, on n1{' ' * 9}{'x' * 99} the end"
    assert shows(text, "17 of 20", "n1")
    assert shows([text, "another"], "another")
    for other in (("n1", "17 of 20"), ("7 of 20",), ("n1", "end"), ("17 of 2",)):
        assert not shows(text, *other)
