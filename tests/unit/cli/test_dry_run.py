"""`bench --dry-run` in one screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.bench.schedule.campaign import Campaign
from mpigraft.report import campaign_plan_screen
from tests.builders.messages import shows
from tests.builders.outputs import screen_lines


def test_a_dry_run_is_one_screen(planned: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    many = tuple(
        replace(planned.configurations[0], id=f"{mpi}@{version}/transport-{number}")
        for mpi in ("openmpi", "mpich", "intel")
        for version in range(9)
        for number in range(9)
    )
    reasons = [f"reason {number % 9}{' and its long cause' * 9}" for number in range(200)]
    skipped = tuple((f"mpich@5/no-{n}", why) for n, why in enumerate(reasons))
    alone = ("mpich@5/other", "it is for mpich >=6")
    lines = screen_lines(
        campaign_plan_screen(replace(planned, configurations=many, skipped=(alone, *skipped)))
    )
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    left = lines[next(n for n, line in enumerate(lines) if line.startswith("left out: 201")) :]
    assert [line.split()[0] for line in left[1:8]] == ["23:", "23:", *["22:"] * 4, "67:"]
    few = campaign_plan_screen(replace(planned, skipped=(alone,)))
    assert shows(screen_lines(few), "mpich@5/other: it is for mpich >=6")


def test_what_is_measured_alone_is_named(planned: Campaign) -> None:
    only = replace(planned, configurations=planned.configurations[:1])
    (first, *_), (more, *_) = (campaign_plan_screen(one).answer for one in (only, planned))
    assert shows(first, "12 launches", planned.baseline.id, "alone")
    assert shows(more, "18 launches", "2 configurations", planned.baseline.id)
    assert shows(campaign_plan_screen(planned, 5).answer[0], "5", "before")
