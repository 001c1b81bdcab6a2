"""Looks of a campaign whose jobs ran on unlike nodes, or lost launches there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.bench.schedule.extension import extend_campaign
from mpigraft.core.model import Shard
from mpigraft.store import Store
from tests.builders.looks import BASE, FAST, TWIN, Killed, Made, planned, run
from tests.unit.bench.test_stopping import WON, killed_at, stored


def test_a_chain_of_jobs_on_other_nodes_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first job is killed after the look that ends FAST, in the eleventh round. Rounds that
    lack what a look has ended are done, wherever they were measured."""
    asked = planned(monkeypatch)
    first = Made({FAST: 0.5}, before=killed_at(40))
    with pytest.raises(Killed):
        run(monkeypatch, first, tmp_path, asked, node="n1")
    second, third = Made({FAST: 0.5}), Made({FAST: 0.5})
    run(monkeypatch, second, tmp_path, asked, resume=stored(tmp_path), node="n2")
    assert second.rounds(FAST) == []
    assert second.rounds(TWIN) == list(range(10, 20))  # the round of the kill is not over there
    run(monkeypatch, third, tmp_path, asked, resume=stored(tmp_path), node="n3")
    assert third.announced == [0]


def test_a_campaign_that_a_look_has_ended_is_over_on_other_nodes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = planned(monkeypatch)
    run(monkeypatch, Made(WON), tmp_path, asked, node="n1")
    longer = extend_campaign(stored(tmp_path), 24, 9)
    more = Made(WON)
    wider = planned(monkeypatch, rounds=24, looks=())
    run(monkeypatch, more, tmp_path, wider, resume=longer, node="n2")
    assert more.steps == []


def test_what_fails_on_the_nodes_of_one_share_is_measured_on_by_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TWIN fails in the rounds of the second share, among them the last before a look."""
    asked = planned(monkeypatch)
    lost = frozenset((TWIN, number) for number in range(1, 20, 2))
    second = Made({FAST: 0.5}, failing=lost)

    def meanwhile(made: int) -> None:
        if made == 1:
            run(monkeypatch, second, tmp_path, asked, Shard(2, 2), stored(tmp_path))

    first = Made({FAST: 0.5}, before=meanwhile)
    run(monkeypatch, first, tmp_path, asked, Shard(1, 2))
    assert first.rounds(TWIN) == first.rounds(BASE) == list(range(0, 20, 2))
    assert Store(tmp_path).launches(stored(tmp_path).id)
