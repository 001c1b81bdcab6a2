"""By which rules noise withholds a verdict, each at its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft import disturbance
from mpigraft.model import CellGroup, Noise, Verdict
from tests.unit.handmade import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER
from tests.unit.test_looks import group

MARGIN = 0.03
PAIR = Noise("native:bw", "1x2", 0.1, 0.01, 1, 10)


def curve(
    verdict: Verdict, low: float | None, high: float | None, p: float | None = 0.01
) -> CellGroup:
    pooled = 1.0 if low is None or high is None else (low * high) ** 0.5
    return replace(group(verdict, p), pooled=pooled, pooled_low=low, pooled_high=high)


def reason(
    one: CellGroup,
    again: CellGroup | None = None,
    pair: Noise | None = None,
    rounds: tuple[int, int] = (0, 10),
) -> str:
    """The first words of why a verdict is withheld."""
    return " ".join(disturbance._reason(one, again, pair, rounds, MARGIN).split()[:4])


WON, LOST = curve(FASTER, 0.5, 0.6), curve(SLOWER, 1.5, 1.6)
SAME, OPEN = curve(EQUIVALENT, 0.99, 1.01), curve(INCONCLUSIVE, 1.05, 1.08)


@pytest.mark.parametrize("one", [WON, LOST, SAME])
def test_a_verdict_needs_half_of_its_rounds_undisturbed(one: CellGroup) -> None:
    assert reason(one, one, rounds=(5, 10)) == ""
    assert reason(one, one, rounds=(6, 10)) == "others took the CPU"
    assert reason(replace(one, curve=INCONCLUSIVE), one, rounds=(6, 10)) == ""


def test_a_winner_has_to_win_without_the_disturbed_rounds() -> None:
    assert reason(WON, curve(FASTER, 0.96, 0.96), rounds=(1, 10)) == ""
    assert reason(WON, curve(FASTER, 0.98, 0.98), rounds=(1, 10)) == "nothing is left of"
    assert reason(LOST, curve(SLOWER, 1.04, 1.04), rounds=(1, 10)) == ""
    assert reason(LOST, curve(SLOWER, 1.02, 1.02), rounds=(1, 10)) == "nothing is left of"
    assert reason(LOST, curve(SLOWER, 1.04, 1.04), PAIR, (1, 10)) == "nothing is left of"
    assert reason(WON, None, rounds=(1, 10)) == "nothing is left of"
    assert reason(WON, None) == ""  # none was disturbed
    assert reason(SAME, None, rounds=(1, 10)) == ""


def test_a_pair_that_is_called_at_more_than_a_tenth_of_its_sizes_calls_nothing() -> None:
    assert reason(WON, pair=PAIR) == ""
    many = replace(PAIR, false_verdicts=2)
    assert reason(WON, pair=many) == reason(LOST, pair=many) == "the baseline's two launches"
    assert reason(WON, pair=replace(many, cells=16)) == reason(WON, pair=many)
    assert reason(WON, pair=replace(many, cells=20)) == ""
    assert reason(SAME, pair=many) == ""


def test_a_difference_beyond_the_margin_and_within_the_pairs_is_told() -> None:
    words = "the baseline's two launches"
    assert reason(OPEN, pair=PAIR) == words
    assert reason(curve(INCONCLUSIVE, 0.93, 0.95), pair=PAIR) == words
    assert reason(OPEN) == ""
    assert reason(SAME, pair=PAIR) == ""
    assert reason(curve(SLOWER, 1.05, 1.08), pair=PAIR) == ""
    for low, high in ((1.02, 1.08), (0.93, 0.98), (0.9, 1.1), (1.12, 1.2), (0.8, 0.9)):
        assert reason(curve(INCONCLUSIVE, low, high), pair=PAIR) == "", (low, high)
    assert reason(curve(INCONCLUSIVE, None, None), pair=PAIR) == ""
    assert reason(curve(INCONCLUSIVE, 1.05, 1.08, 0.04), pair=PAIR) == words
    for p in (0.041, None):
        assert reason(curve(INCONCLUSIVE, 1.05, 1.08, p), pair=PAIR) == ""


def test_the_pair_is_that_of_the_layout_or_the_widest_of_the_benchmark() -> None:
    near, wide, far = (
        replace(PAIR, layout=layout, margin=margin)
        for layout, margin in (("1x2", 0.1), ("1x4", 0.3), ("1x8", 0.2))
    )
    other = replace(PAIR, benchmark="native:latency", margin=0.9)
    assert disturbance._pair(WON, [wide, near, far, other]) == near
    assert disturbance._pair(WON, [far, wide, other]) == wide
    assert disturbance._pair(WON, [other]) is None


def test_a_finding_names_twelve_curves_and_counts_the_rest() -> None:
    for count, more in ((1, ""), (12, ""), (13, "; and 1 more")):
        groups = [replace(WON, withheld="why", configuration=f"k{n}") for n in range(count)]
        told = disturbance._withheld(groups)
        assert told.level.name == "WARNING"
        assert told.seen.count(": why") == min(count, 12)
        assert told.seen.endswith(": why" + more)
        assert f"on {count} {'curve' if count == 1 else 'curves'}: " in told.seen
