"""Campaigns that end early: whole ones, killed ones, and shares that run at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.analysis import too_noisy
from mpigraft.bench.schedule.extension import extend_campaign
from mpigraft.bench.stopping import decide_ends
from mpigraft.core.model import CampaignRecord, CellGroup, NoiseKind, Shard, Verdict
from mpigraft.report import looks
from mpigraft.report.contents import load_report
from mpigraft.store import Store
from tests.builders.looks import BASE, FAST, TWIN, Killed, Made, planned, run
from tests.unit.analysis.test_looks import group

WON = {FAST: 0.5, TWIN: 1.6}


def killed_at(number: int) -> Callable[[int], None]:
    def before(made: int) -> None:
        if made == number:
            raise Killed

    return before


def _call(group: CellGroup) -> tuple[object, ...]:
    return group.configuration, group.curve, group.curve_p, group.look


def stored(folder: Path) -> CampaignRecord:
    return Store(folder).campaign()


def test_a_campaign_ends_at_the_first_look_when_every_curve_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(WON)
    run(monkeypatch, made, tmp_path, planned(monkeypatch))
    assert made.looks == [(9, 0)]
    assert len(made.steps) == 9 * 4
    data = load_report(Store(tmp_path))
    curves = {g.configuration: g for g in data.comparison.groups}
    assert (curves[FAST].curve, curves[TWIN].curve) == (Verdict.FASTER, Verdict.SLOWER)
    assert {g.look for g in curves.values()} == {9}
    assert looks.look_lines(data.comparison) == [
        "look after 9 rounds (p up to 0.4 %): 2 of 2 curves called, p at most 0.39 %",
        "every curve is called: 11 rounds fewer than planned",
    ]
    assert not [f for f in data.comparison.findings if f.code == "values-missing"]
    again = Made(WON)
    run(monkeypatch, again, tmp_path, planned(monkeypatch), resume=stored(tmp_path))
    assert (again.steps, again.announced) == ([], [0])


def test_what_is_called_ends_and_what_is_open_goes_on_with_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made({FAST: 0.5})
    run(monkeypatch, made, tmp_path, planned(monkeypatch))
    assert made.looks == [(9, 1), (14, 1)]
    assert made.rounds(FAST) == list(range(9))
    assert made.rounds(TWIN) == made.rounds(BASE) == list(range(20))
    assert sum(step.replica for step in made.steps) == 20
    data = load_report(Store(tmp_path))
    assert {g.configuration: g.look for g in data.comparison.groups} == {FAST: 9, TWIN: None}
    assert not [f for f in data.comparison.findings if f.code == "values-missing"]


def test_a_campaign_without_looks_measures_all_of_its_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(WON)
    run(monkeypatch, made, tmp_path, planned(monkeypatch, rounds=12, looks=()))
    assert (made.looks, len(made.steps)) == ([], 12 * 4)
    data = load_report(Store(tmp_path))
    assert {g.curve for g in data.comparison.groups} == {Verdict.FASTER, Verdict.SLOWER}
    assert looks.look_lines(data.comparison) == []


def test_a_kill_at_any_launch_changes_no_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = planned(monkeypatch)
    whole = Made({FAST: 0.5})
    run(monkeypatch, whole, tmp_path / "whole", asked)
    expected = [_call(g) for g in load_report(Store(tmp_path / "whole")).comparison.groups]
    for number in (0, 17, 35, 36, 40):  # 36 launches are nine rounds
        folder = tmp_path / str(number)
        first, second = Made({FAST: 0.5}, before=killed_at(number)), Made({FAST: 0.5})
        with pytest.raises(Killed):
            run(monkeypatch, first, folder, asked)
        run(monkeypatch, second, folder, asked, resume=stored(folder))
        made = [step.place for step in (*first.steps, *second.steps)]
        assert made == [step.place for step in whole.steps]
        assert [_call(g) for g in load_report(Store(folder)).comparison.groups] == expected


def test_a_look_waits_for_every_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second share runs while the first is at its fourth round, which is the seventh: the
    look belongs to whoever ends the last of the nine."""
    asked = planned(monkeypatch)
    second = Made(WON)

    def meanwhile(made: int) -> None:
        if made == 3 * 4 + 1:
            run(monkeypatch, second, tmp_path, asked, Shard(2, 2), stored(tmp_path))

    first = Made(WON, before=meanwhile)
    run(monkeypatch, first, tmp_path, asked, Shard(1, 2))
    assert second.looks == []  # when it passed its rounds 9 and 14, the first was at its seventh
    assert second.rounds(BASE) == list(range(1, 20, 2))
    assert first.looks == [(9, 0)]
    assert first.rounds(BASE) == [0, 2, 4, 6, 8]
    comparison = load_report(Store(tmp_path)).comparison
    assert comparison.taken == 1
    assert {g.look for g in comparison.groups} == {9}
    assert {g.curve for g in comparison.groups} == {Verdict.FASTER, Verdict.SLOWER}


def test_a_look_of_a_share_that_was_killed_waits_for_the_job_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = planned(monkeypatch)
    with pytest.raises(Killed):
        run(monkeypatch, Made(WON, before=killed_at(4 * 4 + 2)), tmp_path, asked, Shard(1, 2))
    half = Made(WON, before=killed_at(6 * 4))  # its rounds 1 to 11
    with pytest.raises(Killed):
        run(monkeypatch, half, tmp_path, asked, Shard(2, 2), stored(tmp_path))
    assert half.looks == []  # the first share's job was killed in round 8
    assert load_report(Store(tmp_path)).comparison.taken == 0
    first = Made(WON)
    run(monkeypatch, first, tmp_path, asked, Shard(1, 2), stored(tmp_path))
    assert first.rounds(BASE) in ([8], [])
    assert first.looks == [(9, 0)]
    last = Made(WON)
    run(monkeypatch, last, tmp_path, asked, Shard(2, 2), stored(tmp_path))
    assert (last.steps, last.looks) == ([], [(9, 0)])


def test_a_campaign_of_several_looks_can_be_extended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = planned(monkeypatch)
    run(monkeypatch, Made({FAST: 0.5}), tmp_path, asked)
    longer = extend_campaign(stored(tmp_path), 24, 20)
    more = Made({FAST: 0.5})
    run(monkeypatch, more, tmp_path, planned(monkeypatch, rounds=24, looks=()), resume=longer)
    assert more.rounds(FAST) == []  # called after nine rounds
    assert more.rounds(TWIN) == [20, 21, 22, 23]
    comparison = load_report(Store(tmp_path)).comparison
    assert [look.rounds for look in comparison.looks] == [9, 14, 20, 24]
    assert comparison.taken == 4


def test_an_extension_of_a_fixed_campaign_launches_everything_and_spends_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(monkeypatch, Made(WON), tmp_path, planned(monkeypatch, rounds=7, looks=()))
    longer = extend_campaign(stored(tmp_path), 11, 7)
    more = Made(WON)
    asked = planned(monkeypatch, rounds=11, looks=())
    run(monkeypatch, more, tmp_path, asked, resume=longer)
    assert more.rounds(FAST) == more.rounds(TWIN) == [7, 8, 9, 10]
    assert looks.look_lines(load_report(Store(tmp_path)).comparison) == [
        "look after 7 rounds (p up to 4 %): 2 of 2 curves called, p at most 1.6 %",
        "look after 11 rounds (p up to 0.5 %): no more",
    ]


def test_what_failed_keeps_nothing_open() -> None:
    a, b, c = (("a", "1x2"), ("b", "1x2"), ("c", "1x4"))
    called, open_ = group(Verdict.FASTER, look=9), group(Verdict.INCONCLUSIVE)
    every = [(a, called), (b, open_), (c, open_)]
    assert decide_ends("base", every, {a, b, c}) == (frozenset({a}), 2)
    assert decide_ends("base", every, {a, c}) == (frozenset({a, b, ("base", "1x2")}), 1)
    withheld = replace(called, no_verdict=too_noisy(NoiseKind.BUSY, [7], [9]))
    assert decide_ends("base", [(a, withheld)], {a}) == (frozenset(), 1)
    assert decide_ends("base", [(a, called), (a, open_)], {a}) == (frozenset(), 1)
    again = replace(open_, repeats="bandwidth")
    assert decide_ends("base", [(a, called), (a, again)], {a}) == (
        frozenset({a, ("base", "1x2")}),
        0,
    )
    assert decide_ends("base", [(a, called), (a, called)], {a}) == (
        frozenset({a, ("base", "1x2")}),
        0,
    )


def test_where_nothing_is_compared_no_look_ends_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made()
    run(monkeypatch, made, tmp_path, planned(monkeypatch, mpi=("mpich",)))
    assert made.rounds(BASE) == list(range(20))
    assert made.looks == []
