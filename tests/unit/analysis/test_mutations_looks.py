"""Every small change of the code that decides when a curve is called, and what ends, is noticed."""

from __future__ import annotations

import pytest

from mpigraft.analysis import interim as looks
from mpigraft.bench import stopping
from tests.mutation.checks import checks
from tests.mutation.mutator import assert_noticed, every
from tests.unit.analysis import test_looks
from tests.unit.bench import test_stopping

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME_LOOKS = {
    "_smallest_if_above: look.level < smallest": "no level is exactly a power of two",
    "rounds_over: 1 -> 2 in if number < max(rounds)": "no job has a number below 0",
}


OF_CAMPAIGNS = (  # each change would be tried on whole campaigns: their own tests hold these
    "Stops.__init__", "Stops.ended", "Stops.remaining_steps", "Stops.take_looks", "_groups",
    "_launched",
)  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
def test_every_change_of_looks_is_noticed() -> None:
    only = every(looks, ["_reason"])  # which writes why a curve is open, for people
    assert_noticed(looks, only, checks(test_looks), SAME_LOOKS)


@pytest.mark.covering
@pytest.mark.long
def test_every_change_of_what_ends_is_noticed() -> None:
    test = test_stopping.test_what_failed_keeps_nothing_open
    assert_noticed(stopping, every(stopping, OF_CAMPAIGNS), [test], {})
