"""Every small change of the code that fits laws and finds drift, groups, slow nodes and slow links
is noticed by the tests of it."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft import drift, laws, modes, node_outliers, pairs
from tests.unit import test_drift, test_laws, test_modes, test_node_outliers, test_pairs_rules
from tests.unit.mutator import survivors
from tests.unit.mutator_checks import checks

LAWS = (
    "COUNTED", "REACH", "WITHIN", "FLOOR", "Law.at", "choose", "_apart", "_Data.of",
    "_Data.misfit", "_Data.fit", "_Data._linear", "_Data._aicc", "resampled", "_drawn",
)  # fmt: skip
DRIFT = (
    "LEAST_ROUNDS", "CHANCE", "LEAST", "EXACT", "findings", "curves", "_over_sizes", "slope",
    "kendall", "_orders",
)  # fmt: skip
MODES = (
    "LEAST_ROUNDS", "LEAST_LAUNCHES", "SHARE", "CHANCE", "LEAST", "STEPS", "ALONG", "findings",
    "_beside_each", "_groups", "_moved", "parted", "_beside",
)  # fmt: skip
NODES = (
    "DEVIATIONS", "CLIP", "NORMAL", "MEDIAN", "LEAST", "CHANCE", "slow_nodes", "launch_noise",
    "middles", "_named", "_excess", "deviation", "least_above", "_chance", "_others", "_once",
    "_known", "_lows", "tail",
)  # fmt: skip
PAIRS = (
    "SIX", "BOTH", "LEAST_LAUNCHES", "SHOWN", "matrices", "findings", "in_way", "_apart", "_matrix",
    "_slow_nodes", "_logs", "_parts", "_between", "_joined", "_within", "_without", "_outliers",
    "_times", "between_all",
)  # fmt: skip
# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME_LAWS = {
    "choose: scores[n][0] <= best + WITHIN -> scores[n][0] < ":
        "no score is exactly 2 above another",
    "resampled: scores[name][k] <= least[k] + WITHIN -> scores[name][k] < ":
        "no score is exactly 2 above another",
    "_drawn: data.means[place] + centre + moved[:, place] -> data.means[place] + centre - ":
        "as often up as down",
    "_drawn: 1 -> 2 in every = np.concatenate([x for x in apart if len(x) > 1] or "
    "[np.zeros(1)]) #2": "two zeros are drawn as one",
    "_apart: 0.0 -> 1.0": "a single launch is its mean",
    "_Data.fit: np.abs(fine) > 0.05 -> np.abs(fine) >=": "no step of the grid is there",
    "_Data.fit: 1 -> 2 in CONSTANT": "two laws alike are one",
    "_Data.fit: a + b * ahead > 0 -> a + b * ahead >=": "no cost is exactly nothing",
    "_Data.fit: 2 -> 3 in Law(name": "steps of the grid have two decimals",
}  # fmt: skip
SAME_DRIFT = {
    "findings: kendall(order) * len(every) < CHANCE -> kendall(order) * len(every) <= ":
        "no chance is exactly that",
    "findings: abs(change) > math.log(1 + LEAST) -> abs(change) >=": "no change is exactly that",
    "findings: change > 0 -> change >= 0": "where it is told it is far from 0",
    "kendall: variance <= 0 or score == 0 -> None": "without variance the score is 0 too",
    "kendall: variance <= 0 -> variance < 0": "without variance the score is 0 too",
    "kendall: 0 -> 1 in if variance": "a score of 1 has a chance of 1; no variance is 1 with ties",
    "_orders: len(found) + n - 1": "what is too long ends in zeros",
}  # fmt: skip
SAME_MODES = {
    "_groups: chance * tests >= CHANCE -> chance * tests > ": "no chance is exactly that",
    "_groups: apart > math.log(1 + LEAST) -> apart >=": "no distance is exactly that",
    "_groups: apart > -along -> apart >=": "no distance is exactly that",
    "_groups: along >= ALONG * apart -> along > ": "no distance is exactly that",
    "_groups: x < border -> x <= border": "the border stands between two values",
    "_groups: x > border -> x >= border": "the border stands between two values",
}  # fmt: skip
SAME_NODES = {
    "_named: one.above > one.limit -> one.above >=": "nothing lies exactly at the limit",
    "_named: tests * _chance(one, ways) < CHANCE -> tests * _chance(one, ways) <=":
        "no chance is exactly that",
    "_excess: above <= math.log(1 + LEAST) -> above <": "nothing lies exactly at the limit",
    "_chance: lows > one.limit -> lows >=": "nothing lies exactly at the limit",
    "_chance: median_low(mine) - centre > one.limit -> median_low(mine) - centre >=":
        "nothing lies exactly at the limit",
}  # fmt: skip
SAME_PAIRS = {
    "_logs: 1.0 -> 1.5": "logarithms count by how far apart they are",
    "_joined: if part[a] is not part[b]: -> if True": "joined nodes stay as they are, but slower",
    "_outliers: len(logs) * tail(seen[who], beyond[who], (often - beyond[who] + 1) / "
    "(all_seen - seen[who] + 1)) < CHANCE -> len(logs) * tail(seen[who], beyond[who], "
    "(often - beyond[who] + 1) / (all_seen - seen[who] + 1)) <= ": "no chance is exactly that",
}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "tests", "only", "same"),
    [
        (laws, (test_laws,), LAWS, SAME_LAWS),
        (drift, (test_drift,), DRIFT, SAME_DRIFT),
        (modes, (test_modes,), MODES, SAME_MODES),
        (node_outliers, (test_node_outliers,), NODES, SAME_NODES),
        (pairs, (test_pairs_rules,), PAIRS, SAME_PAIRS),
    ],
    ids=["laws", "drift", "modes", "nodes", "pairs"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: tuple[ModuleType, ...], only: tuple[str, ...], same: dict[str, str]
) -> None:
    alive = survivors(module, only, [check for test in tests for check in checks(test)])
    unexpected = [name for name in alive if not name.startswith(tuple(same))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
    stale = [known for known in same if not any(name.startswith(known) for name in alive)]
    assert not stale, "\n".join(["noticed, so no excuse is needed:", *stale])
