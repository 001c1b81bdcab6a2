"""Every curve without a verdict has its reason, and the headline's counts add up."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.core.model import Cause, CellGroup, NoVerdict, Origin, Verdict
from mpigraft.report.headline import headline
from mpigraft.report.wording import words
from tests.builders.campaigns import CAMPAIGN, Ratio, arms, around, campaign, lacking
from tests.builders.comparisons import compare, compared, only
from tests.builders.reports import report_of

INCONCLUSIVE = Verdict.INCONCLUSIVE


def reason(*arguments: Ratio, **changes: object) -> NoVerdict | None:
    return only(compared(campaign(*arguments, **changes))).no_verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ratio", "rounds", "expected"),
    [
        (around(1.0), 5, "too few rounds: 5 rounds, where 6 are needed"),
        (around(1.0), 1, "too few rounds: 1 round, where 6 are needed"),
        (around(1.04), 6, "wide intervals: the interval of its ratio [1.01, 1.08] is neither"),
        (
            lambda turn, size: around(1.6 if size < 64 else 0.9)(turn, size),
            6,
            "sizes that differ in direction: slower up to 8 B, faster from 64 B",
        ),
        (around(0.5), 6, ""),
    ],
)
def test_the_reason_is_the_condition_that_fails(ratio: Ratio, rounds: int, expected: str) -> None:
    said = reason(ratio, rounds=rounds)
    text = "" if said is None else f"{said.cause}: {said.text}"
    assert (text.startswith(expected) and bool(text) is bool(expected)) is True, text


def signs(number: int) -> Ratio:
    """1 % up or down in each round, as the bits of a number say."""
    return lambda turn, _: math.exp(0.01 * (-1 if number >> turn & 1 else 1))


def crowded() -> CellGroup:
    """Slower at every size, beside curves of which some is as regular in other signs."""
    wide = (0.3, 0.5, 0.4, 0.6, 0.2, 0.45)
    others = [signs(number) for number in range(1, 6)]
    return compared(campaign(lambda turn, _: math.exp(wide[turn]), *others)).groups[0]


def test_a_curve_that_is_slower_at_every_size_says_that_chance_may_be_why() -> None:
    group = crowded()
    assert {cell.verdict for cell in group.cells} == {Verdict.SLOWER}
    assert group.curve is INCONCLUSIVE
    assert group.curve_p is not None
    assert group.curve_p > PLANNED_ONCE
    assert group.no_verdict is not None
    assert group.no_verdict.cause is Cause.CHANCE
    assert re.fullmatch(
        r"chance gives as much in [\d.]+ % of campaigns, and 4 % is the limit "
        r"\(3.1 % if it were the only curve\)",
        group.no_verdict.text,
    )


def test_rounds_that_lack_sizes_are_not_all_its_rounds() -> None:
    rows = lacking(
        campaign(around(0.5), rounds=8),
        lambda r: r.round < 6 and (1, 8, 64)[r.round // 2] == r.size,
    )
    group = only(compared(rows))
    assert group.no_verdict is not None
    assert "with all sizes, where 6 are needed" in group.no_verdict.text


RATIOS = st.sampled_from((0.5, 0.97, 1.0, 1.04, 1.6))


def shaped(low: float, high: float) -> Ratio:
    return lambda turn, size: around(low if size < 8 else high)(turn, size)


@given(
    st.lists(st.builds(shaped, RATIOS, RATIOS), min_size=1, max_size=4),
    st.sampled_from((1, 2, 5, 6, 7)),
    st.floats(0.8, 1.2),
    st.booleans(),
)
def test_every_curve_has_a_verdict_or_a_reason_and_counts_add_up(
    others: list[Ratio], rounds: int, pair: float, holes: bool
) -> None:
    rows = campaign(*others, rounds=rounds, pair=pair)
    rows = lacking(rows, lambda r: holes and r.round == r.size % 7)
    comparison = compared(rows)
    groups = comparison.groups
    for group in groups:
        assert (group.curve is INCONCLUSIVE) is (group.no_verdict is not None)
        assert bool(words.no_verdict_reason(group)) is (group.curve is INCONCLUSIVE)
    unknown = sum(group.curve is INCONCLUSIVE for group in groups)
    (*_, line) = headline(report_of(comparison)) or ("",)
    if "decided" in line:
        decided, every = map(int, re.findall(r"(\d+) of (\d+) curve", line)[0])
        assert (every - decided, every) == (unknown, len(groups))
        assert sum(map(int, re.findall(r"\b[oO]n (\d+), ", line))) == unknown
    elif unknown:
        assert unknown == len(groups)
        assert groups[0].no_verdict is not None
        assert groups[0].no_verdict.text in comparison.summary[0]


@pytest.mark.parametrize("make", [words.curve_notes])
def test_notes_that_curves_share_stand_once(make: Callable[[list[CellGroup]], list[str]]) -> None:
    every = list(compared(campaign(around(1.0), around(1.0), rounds=2)).groups)
    assert make(every) == ["no verdict: 2 rounds, where 6 are needed"]
    called = only(compared(campaign(around(0.5))))
    assert make([*every, called]) == ["mpi@k0, mpi@k1: no verdict: 2 rounds, where 6 are needed"]


def test_the_pooled_ratio_says_which_sizes_it_is_over() -> None:
    rows = lacking(campaign(around(0.5), rounds=8), lambda r: (r.round, r.size) == (3, 8))
    assert only(compared(rows)).pooled_sizes == (1, 64)
    assert only(compared(campaign(around(0.5)))).pooled_sizes == (1, 8, 64)


def test_imported_runs_did_not_alternate_however_many() -> None:
    record = replace(CAMPAIGN, origin=Origin.IMPORT)
    group = only(compare(record, arms("k0"), campaign(around(0.5))))
    assert group.no_verdict is not None
    assert group.no_verdict.cause is Cause.ORDER
