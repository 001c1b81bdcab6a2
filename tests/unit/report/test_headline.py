"""The answer of a campaign in a sentence: who is faster, who slower, and why curves are open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.core.model import Comparison, Verdict
from mpigraft.report import headline
from mpigraft.report.contents import ReportData
from tests.builders.messages import shows
from tests.builders.reports import BASELINE, report_of, small_data
from tests.unit.report.test_report_text import DOWN, OPEN, UP


def curves(*verdicts: tuple[str, Verdict, float]) -> ReportData:
    data = small_data()
    template = data.comparison.groups[0]
    groups = tuple(
        replace(template, configuration=name, curve=verdict, pooled=pooled)
        for name, verdict, pooled in verdicts
    )
    return report_of(replace(data.comparison, groups=groups))


def test_the_headline_names_the_largest_gain_and_who_is_slower() -> None:
    data = curves(
        ("a", Verdict.FASTER, 0.5),
        ("b", Verdict.FASTER, 0.25),
        ("c", Verdict.SLOWER, 2.0),
    )
    first, second, third = headline.headline(data.comparison)
    assert shows(first, "Largest gain", BASELINE, "b", "4.00x")
    assert "a (2.00x)" in second
    assert shows(third, "Slower", "c", "1 of 1 curves")


def over_layouts(*verdicts: tuple[Verdict, float, str]) -> Comparison:
    """One configuration on a layout for each verdict, with the reason that withheld it."""
    template = small_data().comparison
    groups = (
        replace(template.groups[0], layout=f"1x{n}", curve=curve, pooled=pooled, withheld=why)
        for n, (curve, pooled, why) in enumerate(verdicts, 1)
    )
    return replace(template, groups=tuple(groups))


@pytest.mark.parametrize(
    ("lost", "said"), [(4.0, "1.26x slower over"), (1.0, "1.26x faster over"), (2.0, "equal over")]
)
def test_a_winner_of_some_curves_is_no_gain_where_it_is_slower_over_all(
    lost: float, said: str
) -> None:
    first, *_ = headline.headline(over_layouts((UP, 0.5, ""), (DOWN, lost, ""), (OPEN, 1.0, "")))
    assert shows(first, "Most often faster", BASELINE, "1 of 3 curves", "slower on 1", said)


def test_one_cause_is_given_once_with_the_range_of_its_figures() -> None:
    taken = "other processes used the CPU in"
    every = [f"{taken} every round", f"{taken} 5 of 6 rounds", f"{taken} 4 of 6 rounds"]
    (*_, line) = headline.headline(over_layouts((UP, 0.5, ""), *((OPEN, 1.0, t) for t in every)))
    assert shows(line, "1 of 4 curves is decided", "On 3", taken, "4 to 6 of 6 rounds")
    (line,) = headline.headline(over_layouts(*((OPEN, 1.0, every[0]) for _ in range(2))))
    assert shows(line, "No curve is decided", "0 of 2 curves", "On 2", every[0])


def test_the_headline_says_to_stay_when_nothing_is_faster() -> None:
    data = curves(("a", Verdict.SLOWER, 2.0), ("b", Verdict.INCONCLUSIVE, 0.5))
    assert headline.headline(data.comparison)[0].startswith(f"Stay with {BASELINE}")
    (line,) = headline.headline(curves(("a", Verdict.INCONCLUSIVE, 0.5)).comparison)
    assert shows(line, "No curve", "0 of 1")
