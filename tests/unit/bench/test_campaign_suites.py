"""Campaigns with programs of other suites: what a round starts, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from mpigraft.bench.measurement import native_words
from mpigraft.bench.schedule.benchmarks import benchmark_names
from mpigraft.bench.schedule.campaign import (
    Step,
    completed_spec,
    resume_campaign,
    schedule_launches,
)
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.model import Family, MpiInstall
from mpigraft.report import campaign_plan_lines
from mpigraft.request.apps import App
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import MpiSelection
from tests.builders.messages import matches, shows
from tests.builders.two_mpis import MACHINE, contents, make_up_transports, planned


@pytest.fixture(autouse=True)
def knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_transports(monkeypatch)


def a_build(folder: Path, *names: str) -> str:
    """Scripts that stand for programs of OSU: what the loader maps for them is not known."""
    for name in names:
        path = folder / name
        path.write_text('#!/bin/sh\n# "+:hvm:x:i:c::z::"\n')
        path.chmod(0o755)
    return str(folder)


BOTH = ("openmpi", "mpich")


def test_a_round_mixes_suites(tmp_path: Path) -> None:
    build = a_build(tmp_path, "osu_latency", "osu_mbw_mr")
    names = ("latency", "osu:latency", "osu:mbw_mr")
    made = planned(benchmark=names, osu=(build,), layout=("1x2", "1x4"), mpi=("mpich",), rounds=2)
    steps = schedule_launches(made)
    places = Counter((s.configuration.id, s.layout.key, s.replica, s.program) for s in steps)
    assert {*places.values()} == {2}
    assert {s.program for s in steps if s.layout.key == "1x2"} == {"", *names[1:]}
    assert {s.program for s in steps if s.layout.ranks == 4} == {"", "osu:mbw_mr"}
    (why,) = (why for what, why in made.skipped if shows(what, "osu:latency", "1x4"))
    assert shows(why, "2 ranks")
    assert len({s.place for s in steps}) == len(steps)
    (own,) = made.benchmarks_of(Step(0, 0, made.baseline, made.layouts[0]))
    assert (own.suite, own.name) == ("native", "latency")
    again = resume_campaign(made.plan, MACHINE, contents)
    assert [s.place for s in schedule_launches(again)] == [s.place for s in steps]


def test_native_launches_keep_their_order_beside_nothing_else() -> None:
    """A campaign that an older version began goes on in the same order."""
    made = planned(seed=7, rounds=1)
    order = random.Random(7)
    order.shuffle([*made.layouts])
    arms = [(c.id, 0) for c in made.configurations] + [(made.baseline.id, 1)]
    order.shuffle(arms)
    assert [(s.configuration.id, s.replica) for s in schedule_launches(made)] == arms


def test_an_application_alone_needs_no_benchmark_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "lj").write_text("#!/bin/sh\n")
    (tmp_path / "lj").chmod(0o755)
    app = App(("./lj",), "x(.)", better="lower", name="lj", folder=str(tmp_path))
    made = planned(app=(app,), layout=("1x1",))
    assert [b.key for b in made.benchmarks] == ["app:lj"]
    assert made.spec.limit_s == 600
    again = resume_campaign(made.plan, MACHINE, contents)
    assert again.spec == made.spec


def test_secrets_of_a_command_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2hunter2")
    app = App(("./lj", "--key", "hunter2hunter2"), "x(.)", better="lower", name="lj")
    with pytest.raises(UsageError, match="secret"):
        planned(app=(app,))


def test_a_benchmark_that_fits_no_layout_is_refused(tmp_path: Path) -> None:
    build = a_build(tmp_path, "osu_latency")
    with pytest.raises(UsageError, match="needs exactly 2 ranks, and the layouts are 1x4"):
        planned(benchmark=("osu:latency", "latency"), layout=("1x4",), osu=(build,))


def test_an_mpi_that_was_named_has_to_run_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason that holds for every transport of an MPI stands once."""

    def under(mpi: MpiInstall, _: object, program: Path, *_rest: object) -> MpiSelection:
        if mpi.family is Family.MPICH:
            raise CheckFailed("it is for another MPI", why=f"{program.name} needs libmpi.so.40")
        return MpiSelection(mpi)

    monkeypatch.setattr("mpigraft.bench.schedule.places.mpi_under_program", under)
    build = (a_build(tmp_path, "osu_latency"),)
    both = planned(benchmark=("osu:latency",), osu=build)
    assert {c.mpi.family for c in both.configurations if c.mpi} == {Family.OPENMPI}
    with pytest.raises(CheckFailed, match="mpich can run none of the benchmarks") as no:
        planned(benchmark=("osu:latency",), osu=build, mpi=BOTH)
    assert matches(
        no.value, "configuration-fits-nothing",
        reasons="it is for another MPI: osu_latency needs libmpi.so.40",
    )  # fmt: skip
    mixed = planned(benchmark=("osu:latency", "latency"), osu=build, mpi=BOTH)
    families = [c.baseline.mpi and c.baseline.mpi.family for c in (planned(mpi=BOTH), mixed)]
    assert families == [Family.MPICH, Family.OPENMPI]  # all that it measures can be compared
    asked = "mpich@5.0.2/ucx"
    named = planned(benchmark=("osu:latency", "latency"), osu=build, baseline=asked)
    assert named.baseline.id == asked
    assert {c.mpi.family for c in mixed.configurations if c.mpi} == {Family.MPICH, Family.OPENMPI}


def test_a_build_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="--osu /nowhere: no such folder"):
        planned(benchmark=("osu:latency",), osu=("/nowhere",))
    with pytest.raises(MissingError, match="no osu_latency here; name a build with --osu PATH"):
        planned(benchmark=("osu:latency",))


def test_a_dry_run_shows_each_command_and_what_is_left_out(tmp_path: Path) -> None:
    build = a_build(tmp_path, "osu_latency")
    names = ("latency", "osu:latency")
    made = planned(benchmark=names, osu=(build,), layout=("1x2", "1x4"), mpi=("mpich",))
    lines = campaign_plan_lines(made)
    command = f"osu:latency: {tmp_path}/osu_latency -m 1:4194304 -c -z"
    assert sum(command in line for line in lines) == len(made.configurations)
    assert shows(lines, "left out", "osu:latency on 1x4")
    assert shows(lines, "other suites", "not known")
    first = next(line for line in lines if line.startswith("first round: "))
    assert first.count("osu:latency") == len(made.configurations) + 1


def test_every_name_is_listed(tmp_path: Path) -> None:
    (tmp_path / "lj").touch()
    app = App(("./lj",), "x(.)", better="lower", name="lj", folder=str(tmp_path))
    lines = benchmark_names(CampaignSpec(app=(app,)))
    assert len(lines) == len({*lines})
    assert {"native:latency", "osu:ineighbor_alltoallw", "imb:Unidir_put", "app:lj"} <= {*lines}


def test_a_launch_of_ours_does_not_wait_as_long_as_one_of_others(tmp_path: Path) -> None:
    build = a_build(tmp_path, "osu_latency")
    words: dict[str, object] = {"benchmark": ("latency", "osu:latency"), "osu": (build,)}
    spec = planned(**words).spec
    assert spec.limit_s == 600.0
    (own,) = spec.limits
    assert own.startswith("native=")
    assert 30 < float(own.partition("=")[2]) < 120
    assert planned(**words, limits=("native=9", "osu:latency=7")).spec.limits[0] == "native=9"
    assert planned(**words, limit_s=50.0).spec.limits == ()
    assert planned(benchmark=("latency",)).spec.limits == ()


@pytest.mark.parametrize("name", ["osu:bw", "imb", "native:latency", "ous"])
def test_a_limit_of_nothing_is_refused(tmp_path: Path, name: str) -> None:
    build = a_build(tmp_path, "osu_latency")
    with pytest.raises(UsageError, match="starts nothing to which the limit of") as no:
        planned(benchmark=("latency", "osu:latency"), osu=(build,), limits=(f"{name}=9",))
    assert "osu:latency" in no.value.fix


@pytest.mark.parametrize(
    ("asked", "largest"),
    [
        ({}, 4 << 20),
        ({"quick": True}, 1 << 20),
        ({"quick": True, "min_size": 1 << 20}, 1 << 20),
        ({"quick": True, "min_size": (1 << 20) + 1}, 4 << 20),
        ({"quick": True, "max_size": 4 << 20}, 4 << 20),
    ],
)
def test_a_quick_campaign_ends_at_a_smaller_size(asked: dict[str, int], largest: int) -> None:
    spec = completed_spec(CampaignSpec(seed=1, **asked))  # type: ignore[arg-type]
    words = native_words(spec, ["bw"])
    assert spec.max_size == largest
    assert ("--max" in words) is (largest != 4 << 20)  # mpigraft-bench's own is not repeated
