"""Every small change of what passes signals on is noticed by the tests of it."""

from __future__ import annotations

import pytest

from mpigraft.run import foreground
from tests.mutation.checks import checks
from tests.mutation.mutator import every, survivors
from tests.unit.run import test_attached_signals

STARTING = (  # which start, watch and end processes: tests of attached jobs hold them
    "FIRST_LOOK_S, LAST_LOOK_S", "GO_ON, DONE, END", "GRACE_S", "HELPER_S", "IDLE_S", "_spawn",
    "_wait", "kill_below", "run_attached",
)  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
def test_every_change_is_noticed() -> None:
    only = every(foreground, STARTING)
    assert survivors(foreground, only, checks(test_attached_signals)) == []
