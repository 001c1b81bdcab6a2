"""Every small change of the code that decides when a curve is called, and what ends, is noticed."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft import looks, stopping
from tests.unit import test_looks, test_stopping
from tests.unit.mutator import survivors
from tests.unit.mutator_checks import Check, checks

LOOKS = (
    "FIRST", "ONCE, PLANNED_ONCE", "SEVERAL, PLANNED_SEVERAL", "FLIPS", "settled", "looks_of",
    "_planned", "_smallest_p", "taken", "rounds_over", "called", "due", "_called", "_rounds",
)  # fmt: skip

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME = {
    "settled: look.level < _smallest_p": "no level is exactly a power of two",
    "rounds_over: 1 -> 2 in if number < max(rounds)": "no job has a number below 0",
}


@pytest.mark.parametrize(
    ("module", "tests", "only"),
    [
        (looks, checks(test_looks), LOOKS),
        (stopping, [test_stopping.test_what_failed_keeps_nothing_open], ("decided",)),
    ],
    ids=["looks", "stopping"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: list[Check], only: tuple[str, ...]
) -> None:
    alive = survivors(module, only, tests)
    unexpected = [name for name in alive if not name.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
