"""The command line itself: what it shows, what it never shows, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.campaign import Campaign, schedule
from mpigraft.cli import bench, main
from mpigraft.cli.progress import Progress
from mpigraft.errors import MissingError
from mpigraft.measure import Outcome
from mpigraft.model import Benchmark, Evidence, LaunchState, Layout
from mpigraft.wish import Wish
from tests.unit.builders import a_configuration, an_mpi

SECRET = "planted-value-0"


@pytest.fixture
def planned() -> Campaign:
    """Two configurations, one of which has a secret in its id."""
    plain = a_configuration(an_mpi())
    telling = replace(plain, key="other", id=f"{plain.id}+X={SECRET}")
    wish = Wish(rounds=6, seed=3, budget_ms=8.0, limit_s=60.0, quick=True)
    native = tuple(Benchmark.parse(f"native:{n}") for n in ("latency", "bibw", "allreduce"))
    return Campaign(wish, (plain, telling), plain, (Layout(1, 2),), native, ((telling.id, "why"),))


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)


def outcome(state: LaunchState = LaunchState.OK) -> Outcome:
    return Outcome(state, (), ())


# ------------------------------------------------------------------ secrets


@pytest.mark.usefixtures("secret")
def test_progress_strikes_secrets_out(
    planned: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    telling = replace(planned, baseline=planned.configurations[1])
    step = next(s for s in schedule(telling) if SECRET in s.configuration.id)
    with Progress() as progress:
        progress.began(telling, 18)
        progress.proved(telling.baseline, telling.layouts[0], Evidence("a", "a", (), (), ()))
        progress.launched(step, outcome(LaunchState.FAILED), 1.0)
    told = capsys.readouterr().err
    assert SECRET not in told
    assert told.count("+X=[struck out]") == 3


@pytest.mark.usefixtures("secret")
def test_a_plan_strikes_secrets_out(planned: Campaign) -> None:
    told = "\n".join(bench.plan_lines(planned))
    assert SECRET not in told
    assert told.count("+X=[struck out]") == 3  # as configuration, as left out, in the order


@pytest.mark.usefixtures("secret")
def test_errors_strike_secrets_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise MissingError(f"+X={SECRET} is lost", mend=f"find {SECRET}")

    monkeypatch.setattr(main, "load", lambda _: lambda *_, **__: fail())
    with pytest.raises(SystemExit) as ended:
        main.main(["bench"])
    assert ended.value.code == 3
    assert capsys.readouterr().err == (
        "mpigraft: +X=[struck out] is lost\nwhat to do: find [struck out]\n"
    )


# ------------------------------------------------------------------ time left


def test_the_time_left_counts_launches_and_not_proofs(
    planned: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = schedule(planned)
    with Progress() as progress:
        progress.began(planned, len(steps))
        for step in steps[:4]:
            progress.launched(step, outcome(), 60.0)
    lines = [line for line in capsys.readouterr().err.splitlines() if "left" in line]
    assert lines == [
        "round 1/6, about 17.0 minutes left",  # 18 launches, a minute each
        "round 2/6, about 14.0 minutes left",
    ]


def test_a_plan_says_about_how_long_it_takes(planned: Campaign) -> None:
    line = bench.plan_lines(planned)[1]
    # 18 launches and 2 proofs; 3 benchmarks x 23 sizes x 8 ms, and half as much again
    assert line.startswith("estimate: about 57 seconds, at 2.8 s a launch")
    longer = replace(planned, wish=replace(planned.wish, rounds=600))
    assert "about 85 minutes" in bench.plan_lines(longer)[1]
