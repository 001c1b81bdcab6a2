"""What is decided of a job, and what is said of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.cli import main
from mpigraft.cli.job import blame_site
from mpigraft.core.errors import (
    LaunchFailed,
    MissingError,
    MpigraftError,
    TransportMismatch,
    UsageError,
)
from mpigraft.core.model import (
    Allocation,
    Evidence,
    Finding,
    Group,
    LaunchedBy,
    LauncherInfo,
    Layout,
    Level,
)
from mpigraft.graft import GuestCommand
from mpigraft.native.programs import Natives
from mpigraft.request.environment import filter_environment
from mpigraft.request.job import spec
from mpigraft.request.job.spec import JobPlacement, RunSpec
from mpigraft.run import job_script, plan, proof
from mpigraft.run.cached import document as kept_jobs
from mpigraft.run.cached import start as fast
from mpigraft.selection.mpi import MpiSelection
from tests.builders.configuration import a_machine
from tests.builders.messages import matches, shows
from tests.builders.probes import configuration

HELLO = ("/opt/app/hello",)


def wished(mpi: str, replace: str) -> RunSpec:
    return RunSpec(
        HELLO, mpi="openmpi", replace="nothing", sources=(("mpi", mpi), ("replace", replace))
    )


def test_a_guest_as_it_is_takes_no_mpi_of_the_users_choice() -> None:
    with pytest.raises(UsageError, match="--mpi openmpi with --replace nothing"):
        spec.without_host_mpi(wished("command line", "command line"))


def test_a_sites_mpi_gives_way_to_a_guest_as_it_is() -> None:
    found = spec.without_host_mpi(wished("site.toml:2", "command line"))
    assert (found.mpi, found.source("mpi")) == ("", "default")


def test_errors_name_the_line_of_a_profile() -> None:
    sources = (("engine", "site.toml:4"), ("mpi", "command line"))
    told = blame_site(UsageError("no engine 'docker'"), sources)
    assert shows(told.why, "engine", "site.toml:4")
    assert blame_site(UsageError("x", why="y"), (("mpi", "command line"),)).why == "y"


def test_a_removed_working_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    for words in (["run", "--", "true"], ["check", "/", "--program", "/bin/true"]):
        assert main.run_command(words) == 2
        assert matches(capfd.readouterr().err, "cwd-gone")


# ------------------------------------------------------------------ what is kept

STEP = LaunchedBy("srun", Path("/usr/bin/srun"), "22.05.8", "pmix")
NODES = Allocation(("n1", "n2"), "Slurm job 7", "slurm", "7")


def a_job(by: LaunchedBy | None, **changes: Any) -> plan.Job:
    """Two ranks on each of two nodes, the second of them another program."""
    asked = configuration("openmpi@5.0.11", "ob1-tcp")
    assert asked.mpi is not None
    an_elf = replace(asked.mpi, libmpi=Path(sys.executable).resolve())
    asked = replace(asked, launcher=by, mpi=an_elf)
    given = filter_environment({"PATH": "/bin", "SLURM_OVERLAP": "1"})
    programs = Natives(Path("/n/bench"), Path("/n/witness.so"), Path("/n/guard"), "digest")
    values: dict[str, Any] = {"allocation": NODES, "others": (Group(1, ("/n/io",)),)}
    return plan.Job(
        RunSpec(("/n/ocean",)), asked, Layout(2, 2), programs, given, Path("/n/ocean"), (),
        MpiSelection(an_elf, "the first"), GuestCommand(), **{**values, **changes},
    )  # fmt: skip


def kept(made: plan.Job, environ: dict[str, str]) -> dict[str, Any]:
    return kept_jobs.start_document(made, "k", environ)


def test_another_job_of_the_same_nodes_cannot_change_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its variables are not in the key of what is kept: a second run meets other ones."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    environ = {"PATH": "/bin", "SLURM_OVERLAP": "1"}
    assert {"SLURM_CPUS_PER_TASK", "SLURM_LABELIO"} <= set(kept(a_job(STEP), environ)["drop"])
    own = kept(a_job(None), environ)
    assert own["set"]["SLURM_OVERLAP"] == "1"
    assert "SLURM_CPUS_PER_TASK" in own["drop"]  # the launcher's daemons are a step too
    assert not {"SLURM_OVERLAP", "PATH"} & {*own["drop"]}
    assert "PATH" not in own["set"]


def test_files_of_a_launcher_name_each_other_in_the_folder_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """srun's list of programs names a script for each of them."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    document = kept(a_job(STEP), {"PATH": "/bin"})
    names = [Path(path).name for path, _ in document["files"]]
    assert names == ["programs", "program0", "program1", "children.sh"]
    folder = f"{document['home']}/{fast.RECORDS}"
    look = 'case $(cat programs program1) in *0-records*) exit 8;; *"$PWD"*) exit 9;; esac'
    told = {**document, "argv": ["/bin/sh", "-c", f"cd {folder}; {look}", "PID"], "parent": 3}
    assert fast.start_job(told, dict(os.environ), lambda *_: False) == 9


def test_what_ranks_wrote_is_collected_before_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    document = kept(a_job(STEP), {"PATH": "/bin"})
    script = f"echo counts >{document['home']}/{fast.RECORDS}/n1-0.trace; exit 3"
    started = {**document, "argv": ["/bin/sh", "-c", script, "PID"], "parent": 3, "files": []}
    collected: list[tuple[str, int]] = []

    def collect(folder: str, code: int) -> None:
        collected.append((Path(folder, "n1-0.trace").read_text(), code))

    assert fast.start_job(started, dict(os.environ), lambda *_: False, collect) == 3
    assert collected == [("counts\n", 3)]
    assert not [*Path(document["home"]).iterdir()]


# ------------------------------------------------------------------ what is shown


def test_what_is_shown_makes_the_files_that_the_launcher_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    words = ("/n/io", "it's", '"$HOME"')
    *lines, start = job_script(a_job(STEP, others=(Group(1, words),)), os.environ).split("\n")
    listed = Path(shlex.split(start)[-1])
    subprocess.run(["/bin/sh", "-c", "\n".join(lines)], check=True)
    own, theirs = (line.split(" /bin/sh ") for line in listed.read_text().splitlines())
    assert (own[0], theirs[0]) == ("0-0,2-2", "1-1,3-3")
    script = Path(theirs[1]).read_text()
    assert tuple(shlex.split(script)[-3:]) == words
    assert "witness" not in script
    one = a_job(None, others=())
    assert "mkdir " not in job_script(one, os.environ)


def test_explain_names_the_source_of_the_ranks_and_of_settings() -> None:
    sources = (("env", "site.toml:7"),)
    where = JobPlacement(ranks_per_node=1)
    asked = RunSpec(("/n/ocean",), where=where, settings=("A=1",), sources=sources)
    typed = replace(a_job(None), spec=asked)
    due = {"ranks": "command line", "set": "site.toml:7"}
    for made, expected in ((typed, due), (a_job(None), {"ranks": "default"})):
        told = list(plan.decision_lines(made))
        assert {line.what: line.source for line in told if line.what in due} == expected


@pytest.mark.parametrize(
    ("launchers", "why", "fix"),
    [((), "no srun in PATH", "--launcher"), ((STEP,), "this is not one", "allocate nodes first")],
)
def test_a_launcher_that_cannot_is_refused_with_the_way_out(
    launchers: tuple[LaunchedBy, ...], why: str, fix: str
) -> None:
    here = [LauncherInfo("srun", one.path, one.version, (), "") for one in launchers]
    mpi = configuration("openmpi@5.0.11", "ob1-tcp").mpi
    assert mpi is not None
    machine = replace(a_machine(mpi), launchers=tuple(here))
    with pytest.raises(MissingError) as caught:  # as `bench` does
        plan._launcher(
            RunSpec(("/n/ocean",), launcher="srun"), machine, MpiSelection(mpi, "the first")
        )
    assert why in caught.value.why
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("code", "kind"), [("LCH-01", TransportMismatch), ("launcher-fails", LaunchFailed)]
)
def test_two_ranks_that_do_not_start_are_another_error_than_two_worlds(
    code: str, kind: type[MpigraftError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    finding = Finding(Level.ERROR, code, "seen", "why", "mend")
    monkeypatch.setattr(proof, "verify_wireup", lambda *_, **__: (finding,))
    made = a_job(STEP)
    asked = replace(made, configuration=replace(made.configuration, transport=None))
    with pytest.raises(kind, match="seen"):
        proof.prove_job(asked)


def test_a_start_that_tells_of_a_part_of_its_job_is_not_kept() -> None:
    """A kept one would use one component of a heterogeneous job without a word."""
    part = replace(NODES, component="component 0 of 2")
    assert [kept_jobs.may_be_kept(a_job(STEP, allocation=one)) for one in (NODES, part)] == [
        True,
        False,
    ]


LACKS, BUILD, UNLIKE = (
    Finding.of(code, nodes="n2", others="n1", libraries="/opt/libmpi.so")
    for code in ("node-lacks", "node-build", "node-unlike")
)
SILENT = Finding.of("nodes-not-compared", count=1, nodes=2, reason="no answer")


def compared(monkeypatch: pytest.MonkeyPatch, *found: Finding) -> list[object]:
    asked: list[object] = []

    def explain(*words: object, **options: object) -> tuple[Finding, ...]:
        asked.append((*words[1:], options))
        return found

    monkeypatch.setattr(proof, "explain_start", explain)
    return asked


def test_the_nodes_of_a_job_are_compared_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its own choice of transport too, and by a launcher that was proven before."""
    for by in (None, STEP):
        made = a_job(by)
        asked = compared(monkeypatch, UNLIKE, SILENT)
        monkeypatch.setattr(proof, "verify_wireup", lambda *_, **__: ())
        made = replace(made, configuration=replace(made.configuration, transport=None))
        assert proof.prove_job(made).findings == (UNLIKE,)
        assert asked == [(2, made.natives, made.allocation, {"launch": False})]


@pytest.mark.parametrize(
    ("found", "kind"), [(LACKS, LaunchFailed), (BUILD, TransportMismatch)], ids=["lacks", "build"]
)
def test_a_node_that_cannot_run_a_job_keeps_it_from_starting(
    found: Finding, kind: type[MpigraftError], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = a_job(None)
    compared(monkeypatch, UNLIKE, found)
    made = replace(made, configuration=replace(made.configuration, transport=None))
    with pytest.raises(kind, match="n2"):
        proof.prove_job(made)


def test_nodes_are_not_compared_for_a_job_on_one_or_without_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = compared(monkeypatch)
    monkeypatch.setattr(proof, "verify_wireup", lambda *_, **__: ())
    made = a_job(STEP)
    plain = replace(made, configuration=replace(made.configuration, transport=None))
    for one in (
        replace(plain, layout=Layout(1, 4)),
        replace(plain, spec=replace(plain.spec, proof=False)),
    ):
        assert proof.prove_job(one).findings == ()
    assert not asked


def test_evidence_that_was_kept_has_the_differences_of_today(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = replace(UNLIKE, message="of the night before")
    evidence = Evidence("ob1-tcp", "ob1-tcp", (), (old, SILENT), ())
    monkeypatch.setattr(proof, "evidence_of", lambda *_: evidence)
    compared(monkeypatch, UNLIKE)
    found = proof.prove_job(a_job(None))
    assert found == replace(evidence, findings=(UNLIKE, SILENT))
