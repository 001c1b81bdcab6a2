"""What a user is told of a choice: an MPI of another family, a launcher that starts none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.binary import Resolved, Rule
from mpigraft.core.errors import MissingError
from mpigraft.request import CampaignSpec
from mpigraft.selection.configurations import _refuse_unmet
from mpigraft.selection.program import _other_family
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches, shows


def test_a_program_that_finds_an_mpi_of_another_family(tmp_path: Path) -> None:
    """Of one family, of none that is known here, and of none at all, nothing is said."""
    (tmp_path / "libmpi.so.12").touch()
    found = replace(an_mpi("mpich@5.0.2"), libmpi=tmp_path / "libmpi.so.12")
    machine = a_machine(found, an_mpi("intel@2021.18.1"))
    own = Resolved("libmpi.so.12", found.libmpi, Rule.RUNPATH, "of app", Path("/opt/app"))
    line = _other_family(Path("/opt/app"), own, machine.mpis[1], machine)
    assert matches(line, "family-other", own="mpich@5.0.2", mpi="intel@2021.18.1")
    assert "\n" not in line
    assert not _other_family(Path("/opt/app"), own, an_mpi("mpich@4.0.2"), machine)
    assert not _other_family(Path("/opt/app"), own, machine.mpis[1], a_machine(machine.mpis[1]))
    assert not _other_family(Path("/opt/app"), None, machine.mpis[1], machine)


def test_a_launcher_that_starts_no_mpi_has_each_reason_once() -> None:
    outside = "srun starts steps of a job; allocate nodes first (`mpigraft submit`), or use the "
    outside += "MPI's own launcher"
    skipped = [("openmpi@5 by srun", outside), ("mpich@5 by srun", outside)]
    spec = CampaignSpec(launcher=("srun",))
    with pytest.raises(MissingError) as caught:
        _refuse_unmet(spec, (), skipped)
    assert matches(caught.value, "configuration-none", name="srun")
    assert caught.value.message.count("srun starts") == 1
    assert matches(caught.value, "configuration-none", reasons="a job")
    other = "no PMI"
    with pytest.raises(MissingError) as caught:
        _refuse_unmet(spec, (), [*skipped, ("intel@1 by srun", other)])
    assert shows(caught.value.message, "openmpi@5, mpich@5", other, "intel@1")
