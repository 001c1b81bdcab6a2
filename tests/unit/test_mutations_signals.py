"""Every small change of what passes signals on is noticed by the tests of it."""

from __future__ import annotations

from mpigraft import attached
from tests.unit import test_attached_signals
from tests.unit.mutator import survivors
from tests.unit.mutator_checks import checks


def test_every_change_is_noticed() -> None:
    only = ("OF_TERMINAL", "AGAIN_S", "Signals.__init__", "Signals.take")
    assert survivors(attached, only, checks(test_attached_signals)) == []
