"""Every small change of the code that finds phases and exchanges of a record, makes steps of these
and says which of them moves a ratio is noticed by the tests of it."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.analysis import ratio_attribution
from mpigraft.trace.record import exchanges, ladder, phases
from tests.mutation.checks import checks
from tests.mutation.mutator import assert_noticed, every
from tests.unit.analysis import test_steps
from tests.unit.trace.record import test_exchanges, test_phases

CLOSE = "no case is so close to it"
BUT_PHASES = {"WORLD": "any number that no communicator has", "LEAST_SHARE": CLOSE}
BUT_STEPS = {"LEVEL": CLOSE, "MARGIN": CLOSE}
BUT_LADDER = dict.fromkeys(("TICKS_PER_S", "_rank"), "how a made record is written")
# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME_PHASES = {
    "Borders.of: if known is None: -> if True": "what is known is counted again",
    "Borders.of: self._sum(node.items, after)[1] if node.count > 1 else 0 -> if True":
        "times no rounds",
    "Borders.of: node.count > 1 -> node.count >=": "times no rounds",
    "Borders.of: 0 -> 1 in later": "times no rounds",
    "_marks: _ticks(node) >= least -> _ticks(node) >": "nothing is exactly there",
    "_marks: isinstance(node, Loop) and long and (border > before) -> isinstance(node, Loop) and "
    "long and True": "a border twice is one",
    "_marks: border > before -> border >=": "a border twice is one",
    "_time: 2 -> 3 in middle": "marks are borders of nodes: any part of a node says where it lies",
}  # fmt: skip
SAME_EXCHANGES = {
    "Exchange.zeros: 1 -> 2": "nothing of no blocks",
    "Exchange.silent: len(rows) or 1 -> len(rows) or None": "an exchange has ranks",
    "Exchange.silent: 1 -> 2": "an exchange has ranks",
    "Exchange.skew: 1 -> 2": "nothing of no bytes",
    "Exchange.block: -1 -> +1": "rounding alone leads there",
    "_sends: 0 -> 1 in SELF": "a group of one has one row, whatever its number",
    "_note_group: number and members -> True and members": "without a number there are no members",
    "_sent: values[4:6] if in_place else values[1:3] -> if True":
        "as many bytes come as are sent",
}  # fmt: skip
SAME_LADDER = {
    "sparse: 0 -> 1 in filled": "a block has a byte or more",
}  # fmt: skip
SAME_STEPS = {
    "judge_steps: np.median -> np.mean": "one metric has one margin",
    "_bounds: np.median -> np.mean": "of values without outliers",
    "_ratio: math.isnan(low) or math.isnan(high) -> ": "both bounds are there, or none",
    "_ratio: low -> high in if": "both bounds are there, or none",
    "_ratio: high -> low in if": "both bounds are there, or none",
    "_moves: change is None or change.low is None or change.high is None or (p > LEVEL) -> ":
        "both bounds are there, or none",
    "_moves: change.low -> change.high in if": "both bounds are there, or none",
    "_moves: change.high -> change.low in if": "both bounds are there, or none",
    "_moves: p > LEVEL -> p >=": "no p is exactly there",
    "_moves: change.low > 1 + limit -> change.low >=": "no bound is exactly there",
    "_moves: change.high < 1 / (1 + limit) -> change.high <=": "no bound is exactly there",
}  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "tests", "but", "same"),
    [
        (phases, test_phases, BUT_PHASES, SAME_PHASES),
        (exchanges, test_exchanges, {}, SAME_EXCHANGES),
        (ladder, test_exchanges, BUT_LADDER, SAME_LADDER),
        (ratio_attribution, test_steps, BUT_STEPS, SAME_STEPS),
    ],
    ids=["phases", "exchanges", "ladder", "steps"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: ModuleType, but: dict[str, str], same: dict[str, str]
) -> None:
    assert_noticed(module, every(module, but), checks(tests), same)
