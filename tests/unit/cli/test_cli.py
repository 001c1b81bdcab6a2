"""The command line itself: what it shows, what it never shows, and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from mpigraft.bench.measurement import LaunchOutcome
from mpigraft.bench.schedule import benchmarks, campaign, times
from mpigraft.bench.schedule.campaign import Campaign, schedule_launches
from mpigraft.cli import main
from mpigraft.cli.progress import Progress
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Evidence, LaunchState
from mpigraft.native.programs import benchmarks as native_benchmarks
from mpigraft.report import campaign_plan_lines, campaign_plan_screen
from tests.builders.messages import matches, shows
from tests.builders.outputs import screen_lines
from tests.builders.records import SECRET

STORES = Path(__file__).parents[2] / "data/store"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)


def outcome(state: LaunchState = LaunchState.OK) -> LaunchOutcome:
    return LaunchOutcome(state, (), ())


# ------------------------------------------------------------------ secrets


@pytest.mark.usefixtures("secret")
def test_progress_strikes_secrets_out(
    planned: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    telling = replace(planned, baseline=planned.configurations[1])
    step = next(s for s in schedule_launches(telling) if SECRET in s.configuration.id)
    progress = Progress()
    with progress.bar:
        progress.began(telling, 18)
        progress.proved(telling.baseline, telling.layouts[0], Evidence("a", "a", (), (), ()))
        progress.launched(step, outcome(LaunchState.FAILED), 1.0)
    told = capsys.readouterr().err
    assert SECRET not in told
    assert told.count("+X=[struck out]") == 3


@pytest.mark.usefixtures("secret")
def test_a_plan_strikes_secrets_out(planned: Campaign) -> None:
    told = "\n".join(campaign_plan_lines(planned))
    assert SECRET not in told
    assert told.count("+X=[struck out]") == 3  # as configuration, as left out, in the order
    screen = "\n".join(screen_lines(campaign_plan_screen(planned)))
    assert SECRET not in screen
    assert screen.count("+X=[struck out]") == 2


@pytest.mark.usefixtures("secret")
def test_errors_strike_secrets_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise MissingError(f"+X={SECRET} is lost", fix=f"find {SECRET}")

    monkeypatch.setattr(main, "load", lambda _: lambda *_, **__: fail())
    with pytest.raises(SystemExit) as ended:
        main.main(["bench"])
    assert ended.value.code == 3
    shown = capsys.readouterr().err
    assert SECRET not in shown
    assert [line.count("[struck out]") for line in shown.splitlines()] == [1, 1]


# ------------------------------------------------------------------ time left


def test_the_time_left_counts_launches_and_not_proofs(
    planned: Campaign, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = schedule_launches(planned)
    progress = Progress()
    with progress.bar:
        progress.began(planned, len(steps))
        for step in steps[:4]:
            progress.launched(step, outcome(), 60.0)
    first, second = (line for line in capsys.readouterr().err.splitlines() if "left" in line)
    assert shows(first, "1/6", "17 min")  # 18 launches, a minute each
    assert shows(second, "2/6", "14 min")


def test_a_plan_says_about_how_long_it_takes(planned: Campaign) -> None:
    line = campaign_plan_lines(planned)[1]
    assert shows(campaign_plan_screen(planned).answer[1], "55 s", "0.015 node-hours")
    # 18 launches and 2 proofs; 3 benchmarks x 21 sizes x 8 ms, and half as much again
    assert shows(line, "55", "0.015 node-hours", "2.8 s")
    longer = replace(planned, spec=replace(planned.spec, rounds=600))
    assert shows(campaign_plan_lines(longer)[1], "83 min")


# ------------------------------------------------------------------ streams


def program(*words: str, **pipes: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.main", *words]
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    return subprocess.run(argv, text=True, timeout=60, **more)  # type: ignore[call-overload,no-any-return]


def closed_pipe() -> int:
    """The end to write to of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


# help comes from typer, the list from common.out, the comparison from Rich
COMMANDS = {
    "--help": ("--help",),
    "list": ("results", "list"),
    "compare": ("compare",),
    "export": ("export",),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one campaign of two configurations."""
    folder = tmp_path_factory.mktemp("store")
    for name in ("one", "other"):
        table = "# OSU MPI Latency Test v7.5\n# Size          Latency (us)\n1 1.5\n2 1.6\n"
        (folder / name).write_text(table)
        words = ("import", str(folder / name), "--configuration", name, "--nodes", "1")
        done = program("--store", str(folder), *words, "--ranks-per-node", "2")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(params=list(COMMANDS))
def printing(request: pytest.FixtureRequest, store: Path) -> tuple[str, ...]:
    """A command that prints."""
    return ("--store", str(store), *COMMANDS[request.param])


def test_a_reader_that_left_is_no_answer(printing: tuple[str, ...]) -> None:
    writer = closed_pipe()
    done = program(*printing, stdout=writer)
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE
    assert done.stderr == ""


def test_a_full_disk_exits_3(printing: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = program(*printing, stdout=full)
    assert done.returncode == 3
    assert shows(done.stderr, "standard output", "No space left on device")


def test_a_closed_stderr_changes_nothing(printing: tuple[str, ...]) -> None:
    plain = program(*printing)
    assert plain.returncode == 0, plain.stderr
    writer = closed_pipe()
    done = program("-v", *printing, stderr=writer)
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    wrong = program("results", "lost", stderr=writer)
    os.close(writer)
    assert wrong.returncode == 2


def test_progress_continues_without_a_reader() -> None:
    writer = closed_pipe()
    done = program_code(
        """
        from mpigraft.cli import streams
        streams.guard()
        from mpigraft.cli.progress import Progress
        progress = Progress()
        with progress.bar:
            for number in range(3):
                progress._say("line")
        print("stored")
        """,
        stderr=writer,
    )
    os.close(writer)
    assert (done.returncode, done.stdout) == (0, "stored\n")


def test_messages_go_out_before_what_a_job_writes_after_them() -> None:
    done = program_code(
        """
        import os
        from mpigraft.cli import streams
        from mpigraft.cli.common import tell
        streams.guard()
        tell("a note")
        os.write(2, b"of the job\\n")
        """
    )
    assert done.stderr.splitlines() == ["a note", "of the job"]


def test_streams_that_came_closed_are_no_files_of_ours() -> None:
    done = program_code(
        """
        import os
        from mpigraft.cli import streams
        streams.guard()
        opened = os.open("/", os.O_RDONLY)
        print("nobody hears this", flush=True)
        os.write(3, str(opened > 2).encode())
        """,
        before="import os; os.dup2(1, 3); os.close(1); os.close(0)",
    )
    assert (done.returncode, done.stdout) == (0, "True")


def program_code(code: str, before: str = "", **pipes: object) -> subprocess.CompletedProcess[str]:
    """Python code in a process of its own, which starts with the streams that `before` left."""
    argv = [sys.executable, "-c", textwrap.dedent(code)]
    if before:
        argv = [sys.executable, "-c", f"{before}; os.execv({argv[0]!r}, {argv!r})"]
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    return subprocess.run(argv, text=True, timeout=60, **more)  # type: ignore[call-overload,no-any-return]


# ------------------------------------------------------------------ help


@pytest.mark.parametrize("words", [(), ("results",)])
def test_no_command_gives_plain_help(words: tuple[str, ...]) -> None:
    done = program(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Usage: ")
    assert "what to do" not in done.stderr


def test_the_help_of_bench_says_what_is_measured() -> None:
    text = " ".join(program("bench", "--help-all").stdout.split())
    for word in ("--mpi NAME", "--layout NODESxRANKS", "--env NAME=VALUE", "--list prints all"):
        assert word in text
    every = program("bench", "--list").stdout.splitlines()
    assert {f"native:{name}" for name in native_benchmarks()} <= set(every)
    names = [key.removeprefix("native:") for key in benchmarks.DEFAULT_BENCHMARKS]
    assert f"({', '.join(names)})" in text
    first = [key.removeprefix("native:") for key in benchmarks.QUICK_BENCHMARKS]
    most = campaign.QUICK_ROUNDS + campaign.QUICK_SPARE_ROUNDS
    rounds = f"{campaign.QUICK_ROUNDS} to {most} rounds"
    look = f"{rounds} of {', '.join(first)}, to"
    assert shows(text, f"{look} {times.QUICK_MAX_SIZE >> 20} MiB")
    assert shows(text, f"with --quick {campaign.QUICK_BUDGET_MS:g}")
    assert shows(text, campaign.DEFAULT_ROUNDS, f"--quick {campaign.QUICK_ROUNDS}")
    budgets = f"{campaign.DEFAULT_BUDGET_MS:g}, with --quick {campaign.QUICK_BUDGET_MS:g}"
    assert budgets in text


@pytest.mark.parametrize("flag", ["--min", "--max", "--rounds", "--ms-per-size", "--limit"])
def test_a_flag_of_0_is_refused_and_not_ignored(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["bench", flag, "0", "--dry-run"])
    assert ended.value.code == 2
    assert shows(capsys.readouterr().err, flag, 0, "[value-range]")


@pytest.mark.parametrize("flags", [("--min", "1"), ("--validate",), ("--quick",)])
def test_resume_refuses_even_default_options(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["bench", "--resume", *flags])
    assert ended.value.code == 2
    assert matches(capsys.readouterr().err, "resume-excludes")


def test_an_interrupt_exits_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def machine() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mpigraft.discovery.inventory.discover_machine", machine)
    with pytest.raises(SystemExit) as ended:
        main.main(["discover"])
    assert ended.value.code == 130
    assert capsys.readouterr().err.split() == ["mpigraft:", "interrupted"]  # of no campaign


@pytest.mark.parametrize(
    "words",
    [
        "--store {} compare", "compare --store {}", "compare --store={} night",
        "--store /elsewhere compare --store {}", "results show --store {}", "status --store {}",
        "results --store {} show",
    ],
)  # fmt: skip
def test_the_store_is_named_before_and_after_the_command(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "empty"
    assert main.run_command(words.format(store).split()) == MissingError.exit_code
    assert str(store) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "due"),
    [
        ("-v compare", True), ("compare -v", True), ("results list --verbose", True),
        ("compare", False), ("run --dry-run --no-proof -- true -v", False),
    ],
)  # fmt: skip
def test_started_commands_are_shown_by_an_option_before_and_after_the_command(
    words: str, due: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []
    monkeypatch.setattr("mpigraft.core.process.echo_to", shown.append)
    main.run_command(words.split())
    assert bool(shown) == due


def test_no_command_has_an_option_of_the_tool_for_itself() -> None:
    group: Any = typer.main.get_command(main.load(main.COMMANDS))
    pending = list(group.commands.values())
    for command in pending:
        names = [name for one in command.params for name in one.opts]
        assert [names.count(name) for name in ("--store", "--verbose", "-v")] == [1, 1, 1]
        pending += getattr(command, "commands", {}).values()


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("compare", "--stor"), "--store"),
        (("compare", "--unknown"), "mpigraft compare --help"),
    ],
)
def test_an_option_that_is_not_there_is_refused(
    words: tuple[str, ...], fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run_command([*words]) == UsageError.exit_code
    assert shows(capsys.readouterr().err, fix)


def test_a_campaign_of_which_no_request_is_stored_does_not_continue(tmp_path: Path) -> None:
    shutil.copy(STORES / "version5.sqlite", tmp_path)
    done = program("--store", str(tmp_path), "bench", "--resume")
    assert (done.returncode, "campaign-imported" in done.stderr) == (2, True)
