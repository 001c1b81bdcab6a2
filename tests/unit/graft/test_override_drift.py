"""What of an injection is not what it was, and jobs that mixed two generations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from mpigraft.core.cache import file_digest
from mpigraft.core.model import Level, MappedLibrary
from mpigraft.graft.stack.differences import incomplete, launcher_changes
from mpigraft.graft.stack.generations import drift, reading
from mpigraft.graft.stack.generations import switching as generations
from mpigraft.graft.stack.generations.commands import render_commands
from mpigraft.graft.stack.override.content import SourceFile, plan_override
from mpigraft.graft.stack.override.launcher import launcher_scripts
from mpigraft.report import absent_names
from tests.builders.configuration import an_mpi
from tests.builders.elf import compiled
from tests.builders.messages import matches, shows
from tests.builders.overrides import LIBMPI, a_plan, a_slot, injected
from tests.builders.stacks import host


def test_drift_names_what_changed(site: Path, libraries: tuple[Path, Path], tmp_path: Path) -> None:
    own = tmp_path / "libmpi.so.40", tmp_path / "libnet.so.1"
    for path, source in zip(own, libraries, strict=True):
        shutil.copy(source, path)
    record = generations.switch_on(a_plan(site, own))
    override = reading.read_override(a_slot(site))
    assert not drift.find_drift(override, record)
    assert not drift.newer_content(record, a_plan(site, own), site)
    own[0].write_bytes(b"updated")
    own[1].unlink()
    injected(site).write_bytes(b"damaged")
    codes = {f.code: f.evidence for f in drift.find_drift(override, record)}
    assert codes == {
        "drift-sources": (str(own[0]),),
        "drift-gone": (str(own[1]),),
        "drift-copies": (LIBMPI,),
    }
    (found,) = drift.newer_content(record, a_plan(site, libraries, key="other"), site)
    assert found.code == "drift-plan"
    assert set(found.evidence) == {str(path) for path in (*own, *libraries)}


def test_what_commands_made_is_compared_with_the_plan(
    site: Path, libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    """Its record lists no digests, for nobody could know them when the script was written."""
    libmpi = libraries[0]
    settings = compiled(tmp_path / "libsettings.so")
    plan = plan_override(host(libmpi), a_slot(site), [libmpi.name], settings)
    script = tmp_path / "inject.sh"
    script.write_text(render_commands(plan, reading.read_override(a_slot(site))))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", script], env={"PATH": path}, check=True, capture_output=True)
    override = reading.read_override(a_slot(site))
    assert override.active is not None
    folder = override.folder(1)
    assert drift.newer_content(override.active, plan, folder) == ()
    shutil.copy(libraries[1], folder / LIBMPI)
    (found,) = drift.newer_content(override.active, plan, folder)
    assert (found.code, found.evidence) == ("drift-copies", (LIBMPI,))
    assert not reading.damaged(override, override.active)
    gone = folder / "mpi/environment"
    gone.unlink()
    (found,) = drift.find_drift(override, override.active)
    assert (found.code, found.evidence) == ("drift-copies", ("mpi/environment",))
    (found,) = incomplete(a_slot(site))
    assert (found.code, found.evidence) == ("generation-incomplete", (str(gone),))
    assert generations.switch_on(plan).number == 2


def test_a_launcher_that_was_updated_is_drift(
    site: Path, libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("old")
    mpirun.chmod(0o755)
    launcher = SourceFile(str(mpirun), file_digest(mpirun))
    plan = replace(a_plan(site, libraries), launcher=launcher, scripts=(("bin/mpirun", "#!\n"),))
    record = generations.switch_on(plan)
    assert os.access(Path(a_slot(site).path) / "bin/mpirun", os.X_OK)
    override = reading.read_override(a_slot(site))
    assert not drift.find_drift(override, record)
    assert not [*launcher_changes(record)]
    mpirun.write_text("new")
    assert [f.evidence for f in drift.find_drift(override, record)] == [(str(mpirun),)]
    (found,) = launcher_changes(record)
    assert (found.code, found.level) == ("generation-launcher", Level.WARNING)
    assert matches(found, "generation-launcher", what="is another file now")
    mpirun.unlink()
    (found,) = launcher_changes(record)
    assert matches(found, "generation-launcher", what="is not on this host")


def test_a_launcher_that_was_updated_says_so(tmp_path: Path) -> None:
    """Each rank was a world of its own, in silence: the launcher was of another release by then."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho started $*\n")
    mpirun.chmod(0o755)
    (_, text), *_ = launcher_scripts(an_mpi("openmpi@5.0.11", launcher=mpirun))

    def start() -> tuple[str, str]:
        done = subprocess.run(
            ["sh", "-c", text, "mpirun", "-n", "2"], env={}, capture_output=True, text=True
        )
        return done.stdout, done.stderr

    assert start() == ("started -n 2\n", "")
    mpirun.write_text("#!/bin/sh\necho other $*\n")
    output, errors = start()
    assert output == "other -n 2\n"
    assert shows(errors, "mpirun", "changed", "since", "openmpi@5.0.11", "injected")


def test_what_an_override_no_longer_has_is_named(site: Path, libraries: tuple[Path, Path]) -> None:
    """libfabric, where UCX is injected into its override."""
    plan = a_plan(site, libraries)
    record = replace(generations.switch_on(plan), bindings=("libfabric.so.1",))
    assert absent_names(record, plan) == "libfabric.so.1"
    assert absent_names(generations.switch_on(plan), plan) == absent_names(None, plan) == ""
    gone = replace(record, sources=(SourceFile("/gone", "0" * 64),), files=())
    (found,) = drift.find_drift(reading.read_override(a_slot(site)), gone)
    assert matches(
        found, "drift-gone", request="--mpi SPEC --replace libfabric",
        mpi=f"libfabric of {record.mpi}",
    )  # fmt: skip


def test_the_mpi_of_a_generation_is_known_by_its_content(
    site: Path, libraries: tuple[Path, Path]
) -> None:
    """Its id changes when another of its version comes, such as a broken one in PATH."""
    record = generations.switch_on(a_plan(site, libraries))
    same = an_mpi("openmpi@5.0.11", id="openmpi@5.0.11+wheel", libmpi=libraries[0])
    other = an_mpi("openmpi@5.0.11", id="openmpi@5.0.11+path")
    broken = replace(same, id=record.mpi, usable=False, reason="libpmix.so.2 is missing")
    assert record.made_of([other, broken, same]) == same
    assert record.made_of([other, broken]) == broken
    assert record.made_of([other]) is None


def test_files_of_two_generations_in_one_rank_are_named() -> None:
    place = "/opt/eessi/OpenMPI/.mpigraft-system/generations"
    libraries = [
        MappedLibrary(f"{place}/{name}", 1, number)
        for number, name in enumerate(["3/lib/libmpi.so.40", "3/mpi/lib/mpigraft-libfabric.so.1"])
    ]
    assert drift.mapped_generations(libraries) == {place.removesuffix("/generations"): (3,)}
    assert not drift.mixed_generations(libraries)
    other = MappedLibrary(f"{place}/12/lib/libmpi_mpifh.so.40", 1, 9)
    (finding,) = drift.mixed_generations([*libraries, other])
    assert finding.code == "generations-mixed"
    assert "3 and 12" in finding.message
    elsewhere = MappedLibrary("/x/.mpigraft-system/generations/4/lib/libmpi.so.40", 1, 8)
    assert not drift.mixed_generations([*libraries, elsewhere])
