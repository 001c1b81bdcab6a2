"""The answer of a campaign in a sentence: who is faster, who slower, and why curves are open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.analysis import too_noisy
from mpigraft.core.model import NoiseKind, NoVerdict, Verdict
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
    first, second, third = headline.headline(data)
    assert shows(first, "Largest gain", BASELINE, "b", "4.00x")
    assert "a (2.00x)" in second
    assert shows(third, "Slower", "c", "1 of 1 curves")


def over_layouts(*verdicts: tuple[Verdict, float, NoVerdict | None]) -> ReportData:
    """One configuration on a layout for each verdict, with the reason why it has none."""
    template = small_data().comparison
    groups = (
        replace(template.groups[0], layout=f"1x{n}", curve=curve, pooled=pooled, no_verdict=why)
        for n, (curve, pooled, why) in enumerate(verdicts, 1)
    )
    return report_of(replace(template, groups=tuple(groups)))


@pytest.mark.parametrize(
    ("lost", "said"), [(4.0, "1.26x slower over"), (1.0, "1.26x faster over"), (2.0, "equal over")]
)
def test_a_winner_of_some_curves_is_no_gain_where_it_is_slower_over_all(
    lost: float, said: str
) -> None:
    first, *_ = headline.headline(
        over_layouts((UP, 0.5, None), (DOWN, lost, None), (OPEN, 1.0, None))
    )
    assert shows(first, "Most often faster", BASELINE, "1 of 3 curves", "slower on 1", said)


def test_one_cause_is_given_once_with_the_range_of_its_figures() -> None:
    busy = [too_noisy(NoiseKind.BUSY, [count], [6]) for count in (6, 5, 4)]
    some = [too_noisy(NoiseKind.RESTS, [count], [6]) for count in (1, 2)]
    other = too_noisy(NoiseKind.CONTROL, [8])
    every = ((OPEN, 1.0, reason) for reason in (*busy, *some, other))
    (*_, line) = headline.headline(over_layouts((UP, 0.5, None), *every))
    assert shows(line, "1 of 7 curves is decided", "On 3", "4 to 6 of 6 rounds")
    assert shows(line, "on 2", "the 1 to 2 rounds", "on 1, noise")
    (line,) = headline.headline(over_layouts(*((OPEN, 1.0, busy[0]) for _ in range(2))))
    assert shows(line, "No curve is decided", "0 of 2 curves", "On 2", busy[0].text)


def test_a_reason_has_the_grammar_of_its_figures() -> None:
    assert shows(too_noisy(NoiseKind.RESTS, [1], [6]).text, "the round in which")
    assert shows(too_noisy(NoiseKind.BUSY, [6, 8], [6, 8]).text, "in every round")
    assert shows(too_noisy(NoiseKind.BUSY, [5, 5, 8], [5, 8, 8]).text, "5 to 8 of 5 to 8 rounds")
    assert shows(too_noisy(NoiseKind.SIZES, [2, 3], [9, 9]).text, "at 2 to 3 of 9 sizes")


def test_the_headline_says_to_stay_when_nothing_is_faster() -> None:
    data = curves(("a", Verdict.SLOWER, 2.0), ("b", Verdict.INCONCLUSIVE, 0.5))
    assert headline.headline(data)[0].startswith(f"Stay with {BASELINE}")
    (line,) = headline.headline(curves(("a", Verdict.INCONCLUSIVE, 0.5)))
    assert shows(line, "No curve", "0 of 1")
