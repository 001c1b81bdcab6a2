"""Campaigns that are extended: `--resume --rounds N`, here and as jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.analysis.interim import campaign_looks
from mpigraft.bench import submission as jobs
from mpigraft.bench.schedule import campaign
from mpigraft.bench.schedule.campaign import plan_campaign, resume_campaign, schedule_launches
from mpigraft.bench.schedule.extension import (
    extend_campaign,
    extended_rounds,
)
from mpigraft.bench.submission import submission_status
from mpigraft.cli.main import run_command
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    Family,
    JobRecord,
    JobState,
    JobStatus,
    Look,
    Shard,
    SubmissionRecord,
)
from mpigraft.core.serialize import canonical
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import configurations
from mpigraft.store import Store, agree_on_plan
from tests.builders import looks
from tests.builders.configuration import a_machine, a_transport, an_mpi, an_offer
from tests.builders.messages import matches
from tests.builders.records import CAMPAIGN, launch, measured

MACHINE = a_machine(an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2"))
PLANNED = replace(CAMPAIGN, rounds=10, plan=canonical({"wish": {"rounds": 10, "seed": 7}}))
SUBMITTED = SubmissionRecord(
    PLANNED.id, "nightly", "2026-01-02T00:00:00+00:00", "slurm", "{}", 2, 600, 2
)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> CampaignRecord:
    offers = {Family.OPENMPI: (an_offer("ob1-sm"),), Family.MPICH: (an_offer("ucx"),)}
    monkeypatch.setattr(configurations, "transport_offers", lambda mpi, _facts: offers[mpi.family])
    monkeypatch.setattr(
        configurations, "resolve_transport", lambda name, _mpi, _facts: a_transport(name)
    )
    return campaign.campaign_record(
        plan_campaign(CampaignSpec(rounds=10, seed=7), MACHINE, _contents)
    )


def _contents(mpi: object) -> tuple[tuple[str, str], ...]:
    return (("libmpi", str(mpi)),)


def test_rounds_that_are_added_change_none_before(stored: CampaignRecord) -> None:
    before = schedule_launches(resume_campaign(stored.plan, MACHINE, _contents))
    after = schedule_launches(
        resume_campaign(extend_campaign(stored, 24, 10).plan, MACHINE, _contents)
    )
    assert after[: len(before)] == before
    assert {step.round for step in after} == set(range(24))


def test_an_extension_is_kept_with_its_time_and_what_was_planned() -> None:
    twice = extend_campaign(extend_campaign(PLANNED, 24, 10), 40, 24)
    steps = json.loads(twice.plan)["extensions"]
    assert [(s["planned"], s["rounds"]) for s in steps] == [(10, 24), (24, 40)]
    assert all(s["at"] for s in steps)
    assert (twice.rounds, json.loads(twice.plan)["wish"]["rounds"]) == (40, 40)
    assert extended_rounds(twice) == 24
    assert extended_rounds(PLANNED) == 0
    assert replace(twice, rounds=10, plan=PLANNED.plan) == PLANNED


def test_the_same_number_again_goes_on_and_is_no_other_extension() -> None:
    once = extend_campaign(PLANNED, 24, 10)
    assert extend_campaign(once, 24, 17) == once
    assert extend_campaign(PLANNED, 10, 4) == PLANNED


@pytest.mark.parametrize(("rounds", "measured"), [(9, 10), (8, 4), (1, 0)])
def test_fewer_rounds_than_planned_are_refused_with_the_reason(rounds: int, measured: int) -> None:
    with pytest.raises(UsageError) as refused:
        extend_campaign(PLANNED, rounds, measured)
    assert matches(refused.value, "rounds-fewer", measured=measured, rounds=10, requested=rounds)


def test_the_store_takes_the_longest_plan_whichever_file_has_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    longer = extend_campaign(PLANNED, 24, 10)
    for record in (PLANNED, *[longer, PLANNED] * 5):  # files have names without an order
        with store.writer() as writer:
            writer.add_campaign(record)
    assert store.campaigns() == (longer,)


# ------------------------------------------------------------------ spare rounds


def test_a_quick_campaign_has_three_spare_rounds_and_others_what_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spare(**spec: Any) -> tuple[int, int]:
        made = looks.planned(monkeypatch, **{"rounds": 0, "looks": (), **spec}).spec
        return made.rounds, made.spare_rounds

    assert (spare(quick=True), spare(quick=True, rounds=6), spare()) == ((6, 3), (6, 0), (10, 0))
    assert spare(rounds=8, spare_rounds=2) == (8, 2)
    assert spare(quick=True, looks=(9, 14)) == (14, 0)
    with pytest.raises(UsageError) as refused:
        spare(looks=(9, 14), spare_rounds=1)
    assert matches(refused.value, "spare-rounds-looks")


@pytest.mark.parametrize(
    ("disturbed", "rounds"), [((), 6), ((2,), 7), ((0, 3), 8), ((0, 1, 2, 3, 4, 5), 9), ((7,), 6)]
)
def test_each_disturbed_round_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturbed: tuple[int, ...], rounds: int
) -> None:
    """Rounds that are added get none themselves, and who goes on later measures none again."""
    asked = looks.planned(monkeypatch, rounds=6, spare_rounds=3, looks=())
    made = looks.Made(disturbed=frozenset((*disturbed, 6)))
    identity = looks.run(monkeypatch, made, tmp_path, asked)
    assert made.announced == [24, *([4 * (rounds - 6)] if rounds > 6 else [])]
    assert made.rounds(looks.BASE) == list(range(rounds))
    (record,) = Store(tmp_path).campaigns()
    plan = json.loads(record.plan)
    wish, spare = plan["wish"], plan.get("spare", {})
    assert spare.get("planned", rounds) == 6
    assert spare.get("rounds", 6) == rounds
    assert (record.rounds, wish["rounds"]) == (rounds, rounds)
    assert wish["spare_rounds"] == (0 if rounds > 6 else 3)
    assert campaign_looks(record) == (Look(rounds, 0.04),)
    again = looks.Made(disturbed=made.disturbed)
    looks.run(monkeypatch, again, tmp_path, asked, resume=replace(record, id=identity))
    assert again.steps == []


def test_a_kill_in_a_spare_round_loses_no_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = looks.planned(monkeypatch, rounds=6, spare_rounds=3, looks=())

    def kill(launches: int) -> None:
        if launches == 26:
            raise looks.Killed

    first = looks.Made(disturbed=frozenset({1, 2}), before=kill)
    with pytest.raises(looks.Killed):
        looks.run(monkeypatch, first, tmp_path, asked)
    (record,) = Store(tmp_path).campaigns()
    assert record.rounds == 8
    rest = looks.Made(disturbed=first.disturbed)
    longer = replace(asked, spec=replace(asked.spec, rounds=8, spare_rounds=0))
    looks.run(monkeypatch, rest, tmp_path, longer, resume=record)
    places = [step.place for step in (*first.steps, *rest.steps)]
    assert sorted(places) == sorted(step.place for step in schedule_launches(longer))


def test_jobs_that_share_the_rounds_have_no_spare_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = looks.planned(monkeypatch, rounds=6, spare_rounds=3, looks=())
    made = looks.Made(disturbed=frozenset(range(6)))
    looks.run(monkeypatch, made, tmp_path, asked, Shard(1, 2))
    assert set(made.rounds(looks.BASE)) == {0, 2, 4}


def test_a_submission_of_several_jobs_has_no_spare_rounds() -> None:
    def spare(number: int, **spec: Any) -> int:
        record = jobs.plan_submission(CampaignSpec(quick=True, **spec), 2, 600, number, "slurm")
        return int(json.loads(record.wish)["spare_rounds"])

    assert (spare(1), spare(2), spare(1, spare_rounds=2)) == (3, 0, 2)
    with pytest.raises(UsageError) as refused:
        spare(2, spare_rounds=1)
    assert matches(refused.value, "spare-rounds-shares", jobs=2)


def test_an_extension_by_hand_ends_the_spare_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = looks.planned(monkeypatch, rounds=6, spare_rounds=3, looks=())
    longer = extend_campaign(campaign.campaign_record(asked), 20, 6)
    assert json.loads(longer.plan)["wish"]["spare_rounds"] == 0


# ------------------------------------------------------------------ as jobs


def _submitted(folder: Path, *ended: str, plan: CampaignRecord = PLANNED) -> Store:
    """A submission of two shares; `ended` are those whose job came to its end as planned."""
    store = Store(folder)
    with store.writer() as writer:
        writer.add_submission(SUBMITTED)
        writer.add_campaign(plan)
        for number, share in enumerate(ended):
            writer.add_job(JobRecord(PLANNED.id, number + 1, f"4{share[0]}", share, "#!"))
            writer.add_allocation(_allocation(f"a{share[0]}", share))
            for done in range(number, 10, 2):
                writer.add_launch(launch(done, allocation=f"a{share[0]}"), measured(1.0), {})
    agree_on_plan(store.folder, PLANNED)
    return store


def _allocation(name: str, share: str, steps: int = 5, ended: str = "x") -> AllocationRecord:
    return AllocationRecord(name, PLANNED.id, "2026", "n1", "{}", ("n1",), "4", share, steps, ended)


ENDED: Mapping[str, JobStatus] = {job: JobStatus(JobState.ENDED) for job in ("41", "42")}


def test_a_submission_that_is_done_can_be_extended(tmp_path: Path) -> None:
    store = _submitted(tmp_path, "1/2", "2/2")
    assert submission_status(store, SUBMITTED, ENDED).open == ()
    longer = jobs.extend_submission(store, SUBMITTED, 24)
    assert submission_status(store, SUBMITTED, ENDED, longer).open == (1, 2)
    assert submission_status(store, SUBMITTED, ENDED).open == ()  # nothing is written by asking
    with store.writer() as writer:
        writer.add_campaign(longer)
    assert jobs.planned_of(store, PLANNED.id) == longer
    assert not jobs.share_done(store, PLANNED.id, Shard(1, 2))
    with store.writer() as writer:  # a job of the old plan that ended late knew nothing of it
        writer.add_allocation(_allocation("old", "1/2"))
    assert not jobs.share_done(store, PLANNED.id, Shard(1, 2))
    with store.writer() as writer:
        writer.add_allocation(_allocation("new", "1/2"))
        writer.add_launch(launch(10, allocation="new"), measured(1.0), {})
        writer.add_allocation(_allocation("idle", "2/2", steps=0))
    assert jobs.share_done(store, PLANNED.id, Shard(1, 2))
    assert jobs.share_done(store, PLANNED.id, Shard(2, 2))


def test_what_no_job_has_planned_cannot_be_extended(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writer() as writer:
        writer.add_submission(SUBMITTED)
    with pytest.raises(UsageError, match="no job has planned it yet"):
        jobs.extend_submission(store, SUBMITTED, 24)


# ------------------------------------------------------------------ the commands


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (
            "bench --resume --rounds 24 --seed 3",
            "--resume takes no other option than --rounds",
        ),
        ("bench --resume nightly --share 1/2 --rounds 24", "submit --resume CAMPAIGN --rounds N"),
        ("bench --resume --rounds 0", "--rounds is 0"),
        ("submit night.toml --rounds 24", "write rounds = N into the file"),
        ("submit --resume nightly --rounds 100000", "at most 10,000"),
        ("submit --resume nightly --rounds 8", "--rounds 8 is fewer"),
    ],
)
def test_what_cannot_be_extended_is_refused(
    words: str, refusal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _submitted(tmp_path, "1/2", "2/2")
    assert run_command(["--store", str(tmp_path), *words.split()]) == UsageError.exit_code
    assert refusal in capsys.readouterr().err
