"""`mpigraft plan` as a command: its forms, what it keeps, and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

import mpigraft
from mpigraft.cli.main import run_command
from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.model import (
    Bind,
    BindKind,
    CheckResult,
    GraftPlan,
    GuestKind,
    Level,
    Machine,
    Replace,
)
from mpigraft.discovery import inventory
from mpigraft.graft import assemble
from mpigraft.graft.engines import registry
from mpigraft.graft.folder import folders
from mpigraft.graft.guest import examination, host_commands
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.guests import LIB
from tests.builders.messages import matches
from tests.builders.outputs import assert_output
from tests.builders.plans import a_plan, on_disk
from tests.builders.worlds import a_world, needing

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/plan.json").read_text())
WORDS = ("app.sif", "--mpi", "openmpi@5")


class Made:
    """What a command made: the plan that it gets, and what it asked for."""

    def __init__(self, plan: GraftPlan) -> None:
        self.plan = plan
        self.asked: list[tuple[object, ...]] = []
        self.error: Exception | None = None

    def planned(
        self, on: examination.Guest, mpi: Any, machine: Machine, wanted: assemble.GraftOptions
    ) -> GraftPlan:
        self.asked.append((on.label.name, mpi.id, wanted))
        if self.error:
            raise self.error
        return self.plan


@pytest.fixture
def made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replace_everywhere: Callable[[ModuleType, str, object], None],
) -> Made:
    """A plan for bubblewrap under an empty folder."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    (tmp_path / "host/image").mkdir(parents=True)
    plan = a_plan(
        on_disk(tmp_path / "host"),
        label={"kind": GuestKind.FOLDER, "name": "app"},
        devices=[
            Bind("/dev/cxi0", "/dev/cxi0", BindKind.DEVICE, required=False, why="the network")
        ],
    )
    made = Made(replace(plan, parts=(CheckResult("pmi", Level.WARNING, "it may hang " * 9),)))

    def examine(spec: str, programs: tuple[str, ...], _shown: object) -> examination.Guest:
        found = a_world(needing("libmpi.so.40"))
        return replace(found, label=replace(found.label, name=spec, programs=programs))

    mpis = (an_mpi("openmpi@5.0.7", usable=False), an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2"))
    replace_everywhere(examination, "examine_guest", examine)
    replace_everywhere(host_commands, "job_words", lambda *_: ((), False))
    replace_everywhere(inventory, "discover_machine", lambda: a_machine(*mpis))
    replace_everywhere(assemble, "plan_graft", made.planned)
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # what ranks of a node share depends on it
    replace_everywhere(registry, "find_engine", lambda *_: ("/usr/bin/bwrap", "0.8.0"))
    return made


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run_command(["plan", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What `plan` of the image prints when it succeeds."""
    code, text, _ = run(capsys, *WORDS, *words)
    assert code == 0
    return text


# ------------------------------------------------------------------ forms


def test_the_page_has_what_goes_where(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, text, _ = run(capsys, *WORDS)
    assert code == 0
    folder = folders.graft_folder(made.plan)
    assert_output("plan/page", text, FOLDER=folder, KEY=made.plan.key[:12], TMP=tmp_path)
    for line in text.splitlines():
        assert len(line) <= 80 or len(line.split()) < 4 or " in /" in line, line
    assert folder.is_dir()


def test_a_plan_names_a_replaced_glibc(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made.plan = replace(made.plan, glibc=True, replace=Replace.LIBFABRIC)
    _, text, _ = run(capsys, *WORDS)
    folder = folders.graft_folder(made.plan)
    assert_output("plan/glibc", text, FOLDER=folder, KEY=made.plan.key[:12], TMP=tmp_path)


def test_names_of_a_guest_are_no_commands_for_a_terminal(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    bind = replace(made.plan.binds[0], target="/opt/\x1b[2J\nfits\udcff")
    made.plan = replace(made.plan, binds=(bind,))
    code, text, _ = run(capsys, *WORDS)
    assert code == 0
    assert "  /opt/\\x1b[2J\\x0afits\\xdcff" in text.splitlines()


@pytest.mark.parametrize("words", [("--json",), ("--as", "json")])
def test_as_json_it_is_the_whole_plan(
    words: tuple[str, ...], made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(output(capsys, *words))
    jsonschema.validate(found, SCHEMA)
    assert found["plan"]["key"] == made.plan.key
    assert found["folder"] == str(folders.graft_folder(made.plan))


@pytest.mark.parametrize(
    "change", [{"plan": None}, {"folder": None}, {"schema": 3}, {"plan": {"key": "x"}}]
)
def test_the_schema_refuses_what_is_no_plan(
    change: dict[str, object], made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text, _ = run(capsys, *WORDS, "--json")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(text), **change}, SCHEMA)


def test_as_a_command_it_is_words_for_a_shell(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(output(capsys, "--as", "command"))
    assert words[0] == "/usr/bin/bwrap"
    at = words.index(f"{LIB}/libmpi.so.40")
    assert words[at - 1] == str(folders.graft_folder(made.plan) / "lib/libmpi.so.40")


def test_as_a_shell_script_it_can_be_written_and_started(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "app.sh"
    code, text, told = run(capsys, *WORDS, "--as", "shell", "-o", str(script))
    assert (code, text) == (0, "")
    assert f"written: {script}" in told
    assert script.stat().st_mode & stat.S_IXUSR
    assert script.read_text().startswith("#!/bin/sh")
    assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(".")] == []


def test_as_cdi_it_is_a_document_of_that_form(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    found = json.loads(output(capsys, "--as", "cdi"))
    assert {"cdiVersion", "kind", "devices"} <= set(found)


def test_a_file_that_is_no_program_is_not_executable(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")
    assert run(capsys, *WORDS, "--json", "-o", str(path))[0] == 0
    assert not path.stat().st_mode & stat.S_IXUSR
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)


def test_names_that_are_no_text_go_into_a_file_as_they_are(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bind = replace(made.plan.binds[0], target="/opt/\udcff")
    made.plan = replace(made.plan, binds=(bind,))
    code, text, told = run(capsys, *WORDS, "--as", "command")
    assert (code, text) == (2, "")
    assert "-o FILE" in told
    path = tmp_path / "words"
    assert run(capsys, *WORDS, "--as", "command", "-o", str(path))[0] == 0
    assert b"/opt/\xff" in path.read_bytes()


# ------------------------------------------------------------------ what was asked


def test_options_reach_the_plan(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        capsys, *WORDS, "--engine", "bwrap", "--replace", "libfabric", "--no-glibc", "--force",
        "--program", "/opt/app",
    )  # fmt: skip
    (asked,) = made.asked
    wanted = assemble.GraftOptions(Replace.LIBFABRIC, "bwrap", glibc=False, force=True)
    assert asked == ("app.sif", "openmpi@5.0.11", wanted)  # the usable one of two


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a plan needs a guest and a host MPI"),
        (("app.sif",), "a plan needs a guest and a host MPI"),
        ((*WORDS, "--as", "yaml"), "--as 'yaml' is unknown"),
        ((*WORDS, "--replace", "nothing"), "--replace 'nothing' is unknown"),
        ((*WORDS, "-o", "/not/there/x"), "/not/there/x: No such file"),
        (("--remove", "abc"), "'abc' matches no graft here"),
    ],
)
def test_bad_usage_is_exit_2(
    words: tuple[str, ...], said: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, told = run(capsys, *words)
    assert (code, text) == (2, "")
    assert said in told


@pytest.mark.parametrize(
    ("error", "code"), [(CheckFailed("it does not fit"), 1), (MissingError("no"), 3)]
)
def test_a_plan_that_is_refused_ends_as_the_check_does(
    error: Exception, code: int, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    made.error = error
    assert run(capsys, *WORDS)[0] == code
    assert list(folders.graft_folders()) == []


@pytest.mark.usefixtures("made")
def test_an_mpi_that_is_not_here_is_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = run(capsys, "app.sif", "--mpi", "openmpi@9")
    assert code == 3
    assert "openmpi@9" in told


def test_a_library_that_changed_meanwhile_is_exit_4(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(made.plan.copies[0].source).write_bytes(b"other")
    code, _, told = run(capsys, *WORDS)
    assert code == 4
    assert matches(told, "copy-changed", path=made.plan.copies[0].source)


# ------------------------------------------------------------------ what is kept


def test_plans_are_listed_and_removed(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "--list")
    assert_output("plan/no-plans", text)
    run(capsys, *WORDS)
    foreign = folders.home() / "0123456789abcdef"
    foreign.mkdir()
    (foreign / folders.PLAN_FILE).write_text("{}")
    code, text, _ = run(capsys, "--list")
    assert code == 0
    head, *rows, blank, total = text.splitlines()
    rows.sort(key=lambda row: row.startswith("0123456789ab"))
    assert head.split() == ["plan", "made", "used", "size", "what"]
    assert rows[0].startswith(made.plan.key[:12])
    assert rows[0].split("  ")[1:3] == ["0 min", "0 min"]
    assert_output("plan/listed", "\n".join(row.split("  ")[-1] for row in rows))
    assert (blank, total.split(", ")[0]) == ("", "2 plans")
    code, text, _ = run(capsys, "--list", "--json")
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    assert {one["key"] for one in found["plans"]} == {made.plan.key[:32], foreign.name}
    assert found["disk"] > 1000
    code, text, _ = run(capsys, "--remove", made.plan.key[:12])
    assert (code, text) == (0, f"removed {folders.graft_folder(made.plan)}\n")
    assert not folders.graft_folder(made.plan).exists()
    assert foreign.exists()


def test_plans_that_are_unused_are_pruned(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, *WORDS)
    folder = folders.graft_folder(made.plan)
    code, text, _ = run(capsys, "--prune")
    assert code == 0
    assert_output("plan/nothing-pruned", text)
    code, text, _ = run(capsys, "--prune", "0", "--dry-run")
    assert code == 0
    assert_output("plan/would-prune", text, KEY=made.plan.key[:12])
    assert folder.exists()
    (folder / folders.RANKS_FOLDER / "mpigraft-7-run0").mkdir()
    code, text, _ = run(capsys, "--prune", "0")
    assert_output("plan/busy", text, KEY=made.plan.key[:12])
    assert run(capsys, "--remove", made.plan.key[:12])[0] == 2
    (folder / folders.RANKS_FOLDER / "mpigraft-7-run0").rmdir()
    code, text, _ = run(capsys, "--prune", "0", "--json")
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    assert [one["key"] for one in found["removed"]] == [made.plan.key[:32]]
    assert (found["busy"], found["dry_run"]) == ([], False)
    assert found["freed"] > 1000
    assert not folder.exists()
    for words in (("--prune", "x"), ("--prune", "-1"), ("--prune", "nan"), ("--dry-run", "app")):
        assert run(capsys, *words)[0] == 2


def test_the_kept_plan_is_for_its_user_alone(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """It holds what the image sets, and that may be a secret."""
    run(capsys, *WORDS)
    assert (folders.graft_folder(made.plan) / folders.PLAN_FILE).stat().st_mode & 0o077 == 0
