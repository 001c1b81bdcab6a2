"""Every small change of the code that decides when a curve is called, and what ends, is noticed."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.analysis import interim as looks
from mpigraft.bench import stopping
from tests.mutation.checks import Check, checks
from tests.mutation.mutator import assert_noticed
from tests.unit.analysis import test_looks
from tests.unit.bench import test_stopping

LOOKS = (
    "FIRST",
    "ONCE, PLANNED_ONCE",
    "SEVERAL, PLANNED_SEVERAL",
    "FLIPS",
    "settle_looks",
    "campaign_looks",
    "refuse_empty_look",
    "_smallest_if_above",
    "_planned",
    "_smallest_p",
    "looks_taken",
    "rounds_over",
    "called_curves",
    "due_looks",
    "_called",
    "_rounds",
)

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME_LOOKS = {
    "_smallest_if_above: look.level < smallest": "no level is exactly a power of two",
    "rounds_over: 1 -> 2 in if number < max(rounds)": "no job has a number below 0",
}


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "tests", "only", "same"),
    [
        (looks, checks(test_looks), LOOKS, SAME_LOOKS),
        (stopping, [test_stopping.test_what_failed_keeps_nothing_open], ("decide_ends",), {}),
    ],
    ids=["looks", "stopping"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: list[Check], only: tuple[str, ...], same: dict[str, str]
) -> None:
    assert_noticed(module, only, tests, same)
