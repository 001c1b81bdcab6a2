"""Every small change of the code that fits laws and finds drift, groups, slow nodes and slow links
is noticed by the tests of it."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.analysis import bimodality, drift
from mpigraft.analysis.pairs import matrices, outliers
from mpigraft.analysis.rank_scaling import laws
from tests.mutation.checks import checks
from tests.mutation.mutator import assert_noticed, every
from tests.unit.analysis import (
    test_drift,
    test_laws,
    test_modes,
    test_node_outliers,
    test_pairs_rules,
)

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME_LAWS = {
    "choose: scores[n][0] <= best + WITHIN -> scores[n][0] < ":
        "no score is exactly 2 above another",
    "resampled: scores[name][k] <= least[k] + WITHIN -> scores[name][k] < ":
        "no score is exactly 2 above another",
    "_resample: data.means[n] + centre + moved[:, n] -> data.means[n] + centre - ":
        "as often up as down",
    "_resample: 1 -> 2 in every = np.concatenate([x for x in distances if len(x) > 1] or "
    "[np.zeros(1)]) #2": "two zeros are drawn as one",
    "_distances: 0.0 -> 1.0": "a single launch is its mean",
    "_Data.fit: np.abs(fine) > 0.05 -> np.abs(fine) >=": "no step of the grid is there",
    "_Data.fit: 1 -> 2 in CONSTANT": "two laws alike are one",
    "_Data.fit: a + b * ahead > 0 -> a + b * ahead >=": "no cost is exactly nothing",
    "_Data.fit: 2 -> 3 in Law(name": "steps of the grid have two decimals",
}  # fmt: skip
SAME_DRIFT = {
    "drift_findings: kendall(order) * len(every) >= CHANCE -> kendall(order) * len(every) > ":
        "no chance is exactly that",
    "drift_findings: abs(change) > math.log(1 + LEAST) -> abs(change) >=":
        "no change is exactly that",
    "drift_findings: change > 0 -> change >= 0": "where it is reported it is far from 0",
    "kendall: variance <= 0 or score == 0 -> None": "without variance the score is 0 too",
    "kendall: variance <= 0 -> variance < 0": "without variance the score is 0 too",
    "kendall: 0 -> 1 in if variance": "a score of 1 has a chance of 1; no variance is 1 with ties",
    "_orders: len(orders) + n - 1": "what is too long ends in zeros",
}  # fmt: skip
SAME_MODES = {
    "_groups: chance * tests >= CHANCE -> chance * tests > ": "no chance is exactly that",
    "_groups: distance > math.log(1 + LEAST) -> distance >=": "no distance is exactly that",
    "_groups: distance > -along -> distance >=": "no distance is exactly that",
    "_groups: along >= ALONG * distance -> along > ": "no distance is exactly that",
    "_groups: x < border -> x <= border": "the border stands between two values",
    "_groups: x > border -> x >= border": "the border stands between two values",
}  # fmt: skip
SAME_NODES = {
    "_excesses: excess.above > excess.limit -> excess.above >=":
        "nothing lies exactly at the limit",
    "_excesses: tests * _chance(excess, ways) < CHANCE -> tests * _chance(excess, ways) <=":
        "no chance is exactly that",
    "_excess: above <= math.log(1 + LEAST) -> above <": "nothing lies exactly at the limit",
    "_chance: lows > excess.limit -> lows >=": "nothing lies exactly at the limit",
    "_chance: median_low(links_of_node) - centre > excess.limit -> "
    "median_low(links_of_node) - centre >=":
        "nothing lies exactly at the limit",
}  # fmt: skip
SAME_PAIRS = {
    "_logs: 1.0 -> 1.5": "logarithms count by how far apart they are",
    "_joined: if part[a] is not part[b]: -> if True": "joined nodes stay as they are, but slower",
    "_outliers: len(logs) * tail(measured[pair], beyond[pair], (all_beyond - beyond[pair] + 1) / "
    "(all_measured - measured[pair] + 1)) < CHANCE -> len(logs) * tail(measured[pair], "
    "beyond[pair], (all_beyond - beyond[pair] + 1) / (all_measured - measured[pair] + 1)) <= ":
        "no chance is exactly that",
}  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "tests", "but", "same"),
    [
        (laws, (test_laws,), (), SAME_LAWS),
        (drift, (test_drift,), ("SHOWN",), SAME_DRIFT),  # how many are shown
        (bimodality, (test_modes,), (), SAME_MODES),
        (outliers, (test_node_outliers,), (), SAME_NODES),
        (matrices, (test_pairs_rules,), (), SAME_PAIRS),
    ],
    ids=["laws", "drift", "modes", "nodes", "pairs"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: tuple[ModuleType, ...], but: tuple[str, ...], same: dict[str, str]
) -> None:
    every_check = [check for test in tests for check in checks(test)]
    assert_noticed(module, every(module, but), every_check, same)
