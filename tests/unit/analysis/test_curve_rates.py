"""How often a campaign's curves are called, with seeded launches of which the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaluation.verdicts_curves import NOISY, QUIET, alarms, judge, synthetic
from mpigraft.core.model import CampaignRecord, Origin, ValueRow, Verdict
from tests.builders.campaigns import arms
from tests.builders.comparisons import compare


@pytest.mark.parametrize(("configurations", "most"), [(1, 0.02), (10, 0.05)])
def test_few_campaigns_of_identical_things_have_a_slower_curve(
    configurations: int, most: float
) -> None:
    """300 campaigns of ten rounds; evaluation/verdicts_curves.py has thousands."""
    alarm_rates = alarms(synthetic(NOISY, "normal"), configurations, 10, campaigns=300)
    assert alarm_rates.false <= most
    assert alarm_rates.false <= alarm_rates.uncorrected


def test_without_the_correction_ten_configurations_are_blamed_too_often() -> None:
    assert alarms(synthetic(NOISY, "normal"), 10, 10, campaigns=300).uncorrected > 0.05


@pytest.mark.parametrize(
    ("configurations", "rounds", "ratio", "caught"),
    [(1, 6, 1.2, 0.85), (1, 10, 1.1, 0.95), (10, 10, 1.2, 0.95), (10, 6, 1.4, 0.9)],
)
def test_what_is_slower_is_caught(
    configurations: int, rounds: int, ratio: float, caught: float
) -> None:
    launches = synthetic(QUIET, "normal")
    alarm_rates = alarms(launches, configurations, rounds, ratio=ratio, effect="one", campaigns=40)
    assert alarm_rates.caught >= caught


@pytest.mark.parametrize("rounds", [6, 13])
def test_a_campaign_is_judged_as_compare_judges_it(rounds: int) -> None:
    """Of each campaign the same curves are slower; some are, and some are not."""
    rng = np.random.default_rng(rounds)
    verdicts: list[bool] = []
    for seed in range(3):
        logs = synthetic((0.08, 0.08), "normal")(rng, 4, rounds)[:, :, :3, :5]
        logs[2:, :, 1] += math.log(1.2)
        logs[2, :, 2, 3:] += math.log(1.5)
        names = (("base", 0), ("base", 1), ("k0", 0), ("k1", 0))
        rows = [
            ValueRow(
                name, "1x2", "a0", turn, replica, f"native:b{benchmark}", "latency", 1 << size,
                math.exp(logs[place, turn, benchmark, size]), "host",
            )
            for place, (name, replica) in enumerate(names)
            for turn in range(rounds) for benchmark in range(3) for size in range(5)
        ]  # fmt: skip
        record = CampaignRecord("c1", "", "", Origin.RUN, seed, rounds, "base", "{}", "")
        curves = {
            (g.configuration, g.benchmark): g.curve is Verdict.SLOWER
            for g in compare(record, arms("k0", "k1"), rows).groups
        }
        slower, _, _ = judge(logs, seed)
        expected = {
            (f"mpi@k{place}", f"native:b{benchmark}"): bool(slower[place, benchmark])
            for place in range(2) for benchmark in range(3)
        }  # fmt: skip
        assert expected == curves
        verdicts += expected.values()
    assert 0 < sum(verdicts) < len(verdicts)
