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

from mpigraft import fast, job, job_ask, kept_jobs, starting
from mpigraft.cli import main
from mpigraft.cli.run import rendered, told_by_site
from mpigraft.errors import (
    AnswerIsNo,
    LaunchFailed,
    MissingError,
    MpigraftError,
    TransportMismatch,
    UsageError,
)
from mpigraft.job_ask import Ask
from mpigraft.job_layout import Where
from mpigraft.model import (
    Allocation,
    Finding,
    Group,
    LaunchedBy,
    LauncherInfo,
    Layout,
    Level,
)
from mpigraft.natives import Natives
from mpigraft.passing import sort_out
from mpigraft.which_mpi import Choice
from tests.unit.builders import a_machine
from tests.unit.probes import configuration

HELLO = ("/opt/app/hello",)


def wished(mpi: str, replace: str) -> Ask:
    return Ask(HELLO, mpi="openmpi", sources=(("mpi", mpi), ("replace", replace)))


def test_a_guest_as_it_is_takes_no_mpi_of_the_users_choice() -> None:
    with pytest.raises(UsageError, match="--mpi openmpi with --replace nothing"):
        job_ask.without_host(wished("command line", "command line"))


def test_a_sites_mpi_gives_way_to_a_guest_as_it_is() -> None:
    found = job_ask.without_host(wished("site.toml:2", "command line"))
    assert (found.mpi, found.source("mpi")) == ("", "default")


def test_what_a_profile_asked_for_is_told_in_errors() -> None:
    sources = (("engine", "site.toml:4"), ("mpi", "command line"))
    told = told_by_site(UsageError("no engine 'docker'"), sources)
    assert told.why == "the site's profile asked for engine (site.toml:4)"
    assert told_by_site(UsageError("x", why="y"), (("mpi", "command line"),)).why == "y"


def test_a_working_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert main.run_command(["run", "--", "true"]) == 2
    assert "the working folder is gone" in capfd.readouterr().err


# ------------------------------------------------------------------ what is kept

STEP = LaunchedBy("srun", Path("/usr/bin/srun"), "22.05.8", "pmix")
NODES = Allocation(("n1", "n2"), "Slurm job 7", "slurm", "7")


def a_job(by: LaunchedBy | None, **changes: Any) -> job.Job:
    """Two ranks on each of two nodes, the second of them another program."""
    asked = configuration("openmpi@5.0.11", "ob1-tcp")
    assert asked.mpi is not None
    an_elf = replace(asked.mpi, libmpi=Path(sys.executable).resolve())
    asked = replace(asked, launcher=by, mpi=an_elf)
    given = sort_out({"PATH": "/bin", "SLURM_OVERLAP": "1"})
    programs = Natives(Path("/n/bench"), Path("/n/witness.so"), Path("/n/guard"), "digest")
    values: dict[str, Any] = {"allocation": NODES, "others": (Group(1, ("/n/io",)),)}
    return job.Job(
        Ask(("/n/ocean",)), asked, Layout(2, 2), programs, given, Path("/n/ocean"), (), (),
        **{**values, **changes},
    )  # fmt: skip


def kept(made: job.Job, environ: dict[str, str]) -> dict[str, Any]:
    return kept_jobs.document(made, "k", environ)


def test_another_job_of_the_same_nodes_cannot_change_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its variables are not in the key of what is kept: a second run meets other ones."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    environ = {"PATH": "/bin", "SLURM_OVERLAP": "1"}
    assert {"SLURM_CPUS_PER_TASK", "SLURM_LABELIO"} <= set(kept(a_job(STEP), environ)["drop"])
    own = kept(a_job(None), environ)
    assert own["set"]["SLURM_OVERLAP"] == "1"
    assert own["drop"] == []
    assert "PATH" not in own["set"]


def test_files_of_a_launcher_name_each_other_in_the_folder_of_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """srun's list of programs names a script for each of them."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    document = kept(a_job(STEP), {"PATH": "/bin"})
    names = [Path(path).name for path, _ in document["files"]]
    assert names == ["programs", "program0", "program1"]
    folder = f"{document['home']}/{fast.RECORDS}"
    look = 'case $(cat programs program1) in *0-records*) exit 8;; *"$PWD"*) exit 9;; esac'
    told = {**document, "argv": ["/bin/sh", "-c", f"cd {folder}; {look}", "PID"], "parent": 3}
    assert fast.start(told, dict(os.environ), lambda *_: False) == 9


# ------------------------------------------------------------------ what is shown


def test_what_is_shown_makes_the_files_that_the_launcher_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    words = ("/n/io", "it's", '"$HOME"')
    *lines, start = rendered(a_job(STEP, others=(Group(1, words),)))
    listed = Path(shlex.split(start)[-1])
    subprocess.run(["/bin/sh", "-c", "\n".join(lines)], check=True)
    own, theirs = (line.split(" /bin/sh ") for line in listed.read_text().splitlines())
    assert (own[0], theirs[0]) == ("0-0,2-2", "1-1,3-3")
    script = Path(theirs[1]).read_text()
    assert tuple(shlex.split(script)[-3:]) == words
    assert "witness" not in script
    one = a_job(None, others=())
    assert not any(line.startswith("mkdir") for line in rendered(one))


def test_where_the_ranks_come_from_is_said() -> None:
    asked = Ask(("/n/ocean",), where=Where(ranks_per_node=1))
    typed = replace(a_job(None), ask=asked)
    for made, due in ((typed, "command line"), (a_job(None), "default")):
        mpi = made.configuration.mpi
        assert mpi is not None
        told = list(job._lines(made, Choice(mpi, "the first")))
        assert [line.source for line in told if line.what == "ranks"] == [due]


@pytest.mark.parametrize(
    ("launchers", "kind", "why", "mend"),
    [
        ((), MissingError, "no srun in PATH", "--launcher"),
        ((STEP,), AnswerIsNo, "this is none", "get nodes first"),
    ],
)
def test_a_launcher_that_cannot_is_refused_with_the_way_out(
    launchers: tuple[LaunchedBy, ...], kind: type[MpigraftError], why: str, mend: str
) -> None:
    here = [LauncherInfo("srun", one.path, one.version, (), "") for one in launchers]
    mpi = configuration("openmpi@5.0.11", "ob1-tcp").mpi
    assert mpi is not None
    machine = replace(a_machine(mpi), launchers=tuple(here))
    with pytest.raises(kind) as caught:
        job._launcher(Ask(("/n/ocean",), launcher="srun"), machine, Choice(mpi, "the first"))
    assert why in caught.value.why
    assert mend in caught.value.mend


@pytest.mark.parametrize(
    ("code", "kind"), [("LCH-01", TransportMismatch), ("launcher-fails", LaunchFailed)]
)
def test_two_ranks_that_do_not_start_are_another_error_than_two_worlds(
    code: str, kind: type[MpigraftError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    finding = Finding(Level.ERROR, code, "seen", "why", "mend")
    monkeypatch.setattr(starting, "believed", lambda *_, **__: (finding,))
    made = a_job(STEP)
    assert made.configuration.transport is not None
    free = replace(made.configuration.transport, name="")  # nothing is forced
    asked = replace(made, configuration=replace(made.configuration, transport=free))
    with pytest.raises(kind, match="seen"):
        job.prove(asked)
