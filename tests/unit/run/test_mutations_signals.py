"""Every small change of what passes signals on is noticed by the tests of it."""

from __future__ import annotations

import pytest

from mpigraft.run import foreground
from tests.mutation.checks import checks
from tests.mutation.mutator import survivors
from tests.unit.run import test_attached_signals


@pytest.mark.covering
@pytest.mark.long
def test_every_change_is_noticed() -> None:
    only = ("OF_TERMINAL", "AGAIN_S", "Signals.__init__", "Signals.take")
    assert survivors(foreground, only, checks(test_attached_signals)) == []
