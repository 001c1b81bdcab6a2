"""An MPI that no source finds, named by a path of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family
from mpigraft.discovery import discover_machine
from mpigraft.request import read_spec
from mpigraft.selection import select_mpis
from tests.mpi.test_run import compiled, ranks_of, run

pytestmark = pytest.mark.mpi


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without MPIs: those of the tests lie outside of it."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_path_of_an_mpi_names_the_same_row(
    mpis: Mapping[Family, Path], empty_home: Path
) -> None:
    prefix = mpis[Family.OPENMPI]
    (empty_home / "mine").symlink_to(prefix)
    places = [str(prefix / part) for part in ("", "bin/mpirun", "lib/libmpi.so.40", "bin", "lib")]
    places.append("./mine")
    machine = discover_machine(places=places)
    (row,) = select_mpis(places, machine.mpis)
    assert (row.usable, row.prefix) == (True, prefix)
    assert row.id.startswith("openmpi@5.0.11+")
    (other,) = select_mpis(["./mine"], discover_machine(places=["./mine"]).mpis)
    assert other.id == row.id  # whatever else is here, and wherever it lies
    assert {m.id for m in machine.mpis} - {row.id} == {m.id for m in discover_machine().mpis}


def test_an_mpi_that_a_source_finds_keeps_its_id(
    mpis: Mapping[Family, Path], fresh_home: Path
) -> None:
    place = str(mpis[Family.MPICH] / "bin/mpiexec")
    (row,) = select_mpis([place], discover_machine(places=[place]).mpis)
    assert row.id == "mpich@5.0.2"


def test_a_path_of_no_mpi_says_what_is_wrong(empty_home: Path) -> None:
    (empty_home / "text").write_text("")
    for place, words in (
        ("/nowhere/mpi", "no such file"),
        (str(empty_home), "it has no libmpi"),
        ("./text", "text starts none"),
    ):
        with pytest.raises(UsageError, match=words):
            discover_machine(places=[place])


def test_a_program_runs_on_an_mpi_by_its_path(
    mpis: Mapping[Family, Path], empty_home: Path
) -> None:
    """By the user's word, and by a site's list, of which one is on other machines."""
    prefix = mpis[Family.MPICH]
    program = compiled(prefix, empty_home)
    site = empty_home / "site.toml"
    site.write_text(f'[run]\nmpi = ["/nowhere/x", "{prefix}"]\n')
    given = {**os.environ, "MPIGRAFT_SITE": str(site)}
    for words, environ in ((("--mpi", prefix / "bin/mpiexec"), dict(os.environ)), ((), given)):
        ended = run(*words, "-n", 2, "--explain", "--", program, env=environ)
        assert ranks_of(ended) == ["rank 0 of 2", "rank 1 of 2"], ended.stderr
        assert f"({prefix}/lib/libmpi.so.12)" in ended.stderr


def test_a_campaign_keeps_the_whole_path(empty_home: Path) -> None:
    file = empty_home / "campaign.toml"
    file.write_text('mpi = ["./mine", "openmpi@5"]\n')
    assert read_spec(file).mpi == (str(empty_home / "mine"), "openmpi@5")
