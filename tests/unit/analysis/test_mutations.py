"""Every small change of the code that decides verdicts is noticed by the tests of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from mpigraft.analysis import (
    comparison,
    completion,
    curve_comparison,
    curves,
    disturbance,
    equivalence,
    grouping,
    multiplicity,
    noise,
    verdict_rules,
)
from mpigraft.analysis.statistics import bootstrap, coarseness, serial
from mpigraft.core import text
from mpigraft.core.model import Better, Verdict
from tests.mutation.checks import Check, checks
from tests.mutation.mutator import assert_noticed, every, name_of, survivors
from tests.unit.analysis import (
    test_coarseness,
    test_compare,
    test_compare_curves,
    test_compare_gaps,
    test_compare_looks,
    test_completion,
    test_disturbance_marks,
    test_disturbance_rules,
    test_equivalence,
    test_multiplicity,
    test_reasons,
    test_serial,
    test_stats,
)
from tests.unit.core import test_text

# Functions and constants that the tests below do not hold, and why.
ENOUGH = "any number as great is as good"
BUT: dict[ModuleType, dict[str, str]] = {
    bootstrap: {"RESAMPLES": ENOUGH, "MOST_ROUNDS": ENOUGH},
    comparison: {
        "MARGIN": "a default, which each test gives itself",
        "ANY": ENOUGH,
        "judge_campaign": "tests of stores hold it",
        "_rounds_begun": "tests of stores hold it",
    },
    serial: {"ORDERS": ENOUGH},
    text: {"WIDTH": "as wide as a terminal usually is"},
}
# Of simulations every mutant would run all; what these functions get wrong is noticed without.
EQUIVALENCES = checks(test_equivalence, without=["test_stated_rates_hold"])
DEPENDENCES = checks(
    test_serial, without=["test_stated_rates_hold", "test_chance_alone_makes_one_in_a_hundred"]
)
CELLS = [
    *checks(test_compare), *checks(test_compare_curves), *checks(test_compare_gaps),
    *checks(test_reasons),
]  # fmt: skip
VERDICTS = [
    *CELLS, *checks(test_compare_looks), *checks(test_coarseness), *checks(test_completion),
    *EQUIVALENCES, *DEPENDENCES,
]  # fmt: skip

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME: dict[ModuleType, dict[str, str]] = {
    bootstrap: {
        "rounds_for: gap <= 0 or not math.isfinite(spread) -> gap <= 0 or None":
            "neither NaN nor infinity is within MOST_ROUNDS",
        "interval: 0 -> 1 in def": "one seed is as good as another",
        "median_rank: 2 * (below": "5 % of a power of two is no whole number",
        "medians: np.nanmedian if": "the other branch is only faster",
        "rounds_for: rounds <= MOST_ROUNDS": "nobody plans exactly that many",
    },
    multiplicity: {
        "TIED: ": "any bound is as good that only rounding reaches",
        "sign_patterns: 1 -> 2 in bits = np.arange": "each pattern and its opposite have one |T|",
        "sign_patterns: 0 -> 1 in bits[0] = 0 #2":
            "all signs flipped are the pattern that was seen",
    },
    grouping: {
        "_blocks: if turn == len(earlier): -> if True": "an empty turn is taken as a new one is",
        "_series_of: 2 -> 3 in shape": "a replica that nobody launched has no value",
    },
    comparison: {
        "_select_baseline: 8 -> 9 in planned": "how much of a hash is shown",
    },
    curves: {
        "PairedCurve._pooled: 1 -> 2 in return":
            "without an interval the number of rounds decides nothing",
        "PairedCurve._pooled: 0 -> 1 in return":
            "without an interval the number of rounds decides nothing",
    },
    coarseness: {
        "TIE: ": "any bound is as good that only rounding reaches",
    },
    noise: {
        "noise_of: halves and cells -> True": "where there are cells, there are half widths",
        "noise_of: c.low": "a cell has both bounds or none",
        "noise_of: c.high": "a cell has both bounds or none",
        "noise_of: Better.LOWER -> Better.HIGHER": "a false verdict counts either way",
    },
    completion: {
        "completions:  for p in {x.program for x in launches} if p -> ":
            "a benchmark without a name covers none",
        "judge_completion: p <= CHANCE -> p < CHANCE": "no p of so many launches is exactly that",
        "judge_completion: lost[0] * baseline[1] >= lost[1] * candidate[1] -> "
        "lost[0] * baseline[1] > ":
            "where both lose alike neither is the loser",
        "whole_launches: 1 -> 2 in launches":
            "numpy takes any negative length as the one that is left",
    },
    text: {"printable: if text.isprintable(): -> if False": "it is for speed alone"},
    equivalence: {
        "widest_bound: reach > limit -> reach >=": "no bound is exactly there",
        "widest_bound: np.maximum(low, -high) > edge -> ": "no bound is exactly there",
        "_greatest_t: 0.0 -> 1.0": "times an error of 0",
        "_greatest_t: 1e-12 -> 1.5e-12": "any bound is as good that only rounding reaches",
        "_between: allocations == name -> ":
            "residuals of the other allocations sum to the opposite",
        "widest_bound: reach[worst] < math.log(sys.float_info.max) -> reach[worst] <=":
            "no bound is exactly there",
    },
    serial: {
        "ROUNDING: ": "any bound is as good that only rounding reaches",
        "dependence: roots > ROUNDING -> roots >=": "nothing is exactly there",
        "dependence: sums >= ": "the tolerance has decided ties already",
        "dependence: sums[0] - 1e-12": "only the order that was seen ties: one of 2,000",
        "dependence: 1e-12 -> ": "any bound is as good that only rounding reaches",
        "_orders: ranks + rng": "one order is as random as another",
    },
    disturbance: {
        "noise_reason: 1.0 -> 1.5": "either is above what the test may call",
        "judge_group: group.pooled > 1 -> group.pooled >=": "no winner's ratio is exactly 1",
        "_side: low is None or high is None -> ": "a curve has both bounds or none",
        "_side: low -> high in if low is None": "a curve has both bounds or none",
        "_side: high -> low in if low is None": "a curve has both bounds or none",
        "_side: low > 1 + limit -> low >=": "no bound is exactly there",
        "_side: high < 1 / (1 + limit) -> high <=": "no bound is exactly there",
        '_range: low -> high in return low if low == high else f"{low.removesuffix(\' '
        '%\')} to {high}" #2':
            "they are equal there",
    },
}  # fmt: skip


TESTS: dict[ModuleType, list[Check]] = {
    bootstrap: checks(test_stats),
    multiplicity: checks(test_multiplicity),
    grouping: checks(test_compare_gaps) + checks(test_completion),
    comparison: VERDICTS,
    curves: VERDICTS,
    curve_comparison: VERDICTS,
    coarseness: checks(test_coarseness),
    verdict_rules: CELLS,
    noise: CELLS,
    completion: checks(test_completion),
    equivalence: EQUIVALENCES,
    serial: checks(test_serial),
    disturbance: checks(test_disturbance_rules) + checks(test_disturbance_marks),
    text: checks(test_text),
}


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize("module", TESTS, ids=name_of)
def test_every_change_is_noticed(module: ModuleType) -> None:
    assert_noticed(module, every(module, BUT.get(module, {})), TESTS[module], SAME.get(module, {}))


def test_the_mutator_itself_lets_through_what_is_not_checked() -> None:
    """With checks that see nothing every change survives, so a survivor is reported as one."""
    alive = survivors(verdict_rules, ("decide",), [lambda: None])
    assert len(alive) > 15
    assert len(alive) == len(set(alive))
    wanted = (
        "decide: rounds < MIN_ROUNDS -> rounds <= MIN_ROUNDS",
        "decide: if rounds < MIN_ROUNDS: -> if False",
        "decide: low -> high in if low > math.log1p(limit):",
        "decide: Verdict.FASTER -> Verdict.SLOWER",
        "decide: margin -> limit",
    )
    for name in wanted:
        assert any(survivor.startswith(name) for survivor in alive), name
    assert verdict_rules.decide(1.0, 2.0, Better.LOWER, 6, 0.03, 0.03) is Verdict.SLOWER


def test_each_set_of_parameters_is_a_check_of_its_own() -> None:
    calls = []

    @pytest.mark.parametrize("a", [1, 2])
    @pytest.mark.parametrize(("b", "c"), [(3, 4), pytest.param(5, 6)])
    def test_of_three(a: int, b: int, c: int, tmp_path: Path) -> None:
        assert tmp_path.is_dir()
        calls.append((a, b, c))

    @pytest.mark.skip
    def test_that_may_be_left_out() -> None:
        raise AssertionError

    made = ModuleType("made")
    for test in (test_of_three, test_that_may_be_left_out):
        test.__module__ = made.__name__
        setattr(made, test.__name__, test)
    for check in checks(made):
        check()
    assert sorted(calls) == [(1, 3, 4), (1, 5, 6), (2, 3, 4), (2, 5, 6)]
    assert checks(made, without=["test_of_three"]) == []
