"""What a campaign shows of its rounds while it measures."""

from __future__ import annotations

import pytest

from mpigraft.bench.measurement import LaunchOutcome
from mpigraft.bench.schedule.campaign import plan_campaign, schedule_launches
from mpigraft.cli.progress import Progress
from mpigraft.core.model import LaunchState, Measurement
from mpigraft.report import Provisional
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import configurations
from tests.builders.configuration import a_machine, a_transport, an_mpi, an_offer
from tests.builders.messages import shows
from tests.builders.records import LATENCY


@pytest.mark.parametrize("terminal", [True, False])
def test_rounds_show_provisional_factors_on_a_terminal_alone(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        configurations, "transport_offers", lambda *_: (an_offer("ob1-sm"), an_offer("ucx"))
    )
    monkeypatch.setattr(configurations, "resolve_transport", lambda name, *_: a_transport(name))
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    planned = plan_campaign(
        CampaignSpec(quick=True, seed=3), a_machine(an_mpi()), lambda _: (("libmpi", "5"),)
    )
    steps = [step for step in schedule_launches(planned) if step.round < 3]
    progress = Progress()
    with progress.bar:
        progress.began(planned, len(steps))
        for step in steps:
            slow = 1.0 if step.configuration.key == planned.baseline.key else 2.0 + step.round
            values = tuple(Measurement(LATENCY, "latency", size, slow * size) for size in (1, 8))
            progress.launched(step, LaunchOutcome(LaunchState.OK, values, ()), 1.0)
        progress.grew(8, 6, 20)
    head, *rows = progress.bar.provisional or ("",)
    shown = capsys.readouterr().err
    assert bool(head) == ("provisional" in shown) == terminal
    more = shown.replace("\x1b[2K", " ")  # the bar is erased before each line
    assert shows(more, "2 spare rounds", "first 6")
    assert (progress.rounds, progress.launches) == (8, len(steps) + 20)
    if terminal:
        assert shows(head, "provisional", "2 of 6", "4 more")
        (row,) = rows[1:]
        assert shows(row, "2.45x slower")  # of rounds with 2 and 3; the third goes on


@pytest.mark.parametrize(
    ("ratios", "row"),
    [
        ((2.0, 2.0), "2.00x slower"),
        ((2.0, 2.0, 2.0), "2.00x slower ±0 %"),
        ((2.0, 2.1, 1.9, 2.0), "2.00x slower ±7 %"),
        ((1e-9, 1e9, 1.0), "equal ±900 %"),
        ((1e-300, 1e300), "equal"),
        ((1e-300, 1e300, 1.0), "equal ±900 %"),
    ],
)
def test_a_provisional_factor_says_how_sure_it_is(ratios: tuple[float, ...], row: str) -> None:
    """Student's t of four rounds: 3.182 times a spread of 0.0409 over 2 is 6.7 %."""
    provisional = Provisional("base")
    for number, ratio in enumerate(ratios):
        for name, factor in (("base", 1.0), ("other", ratio)):
            values = [Measurement(LATENCY, "latency", size, factor * size) for size in (1, 8)]
            provisional.add(name, "1x2", number, values)
    head, _, shown, *_ = [*provisional.lines(len(ratios), 6, 120), ""]
    assert shows(shown, row)
    assert shows(head, "95 % interval") is (len(ratios) > 2)
