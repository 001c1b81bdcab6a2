"""What is decided of a job, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft import job_ask
from mpigraft.cli import main
from mpigraft.cli.run import told_by_site
from mpigraft.errors import UsageError
from mpigraft.job_ask import Ask

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
