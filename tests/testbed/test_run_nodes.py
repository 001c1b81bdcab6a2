"""`mpigraft run` in jobs of Slurm and on named nodes: several programs, a second start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.slurm import Slurm
from tests.mpi.test_run import compiled
from tests.mpi.test_worlds import ALONE

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

RUN = (sys.executable, "-m", "mpigraft.cli.entry", "run", "--mpi", "openmpi@5")


@pytest.fixture
def job(slurm: Slurm) -> Slurm:
    return slurm


@pytest.fixture
def program(job: Slurm, mpis: Mapping[Family, Path]) -> Path:
    return compiled(mpis[Family.OPENMPI], job.cluster.shared)


def said(slurm: Slurm, home: Path, *words: str, inside: tuple[str, ...] = ()) -> list[str]:
    """What the ranks of a run from the first node print, sorted."""
    env = {**os.environ, **slurm.environ, "MPIGRAFT_HOME": str(home)}
    done = slurm.cluster.run("n1", [*inside, *RUN, *words], env=env, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(line for line in done.stdout.splitlines() if "slurmstepd" not in line)


def several(program: Path, *flags: str) -> list[str]:
    """Two oceans and a server on each node, which say what they are told of their program."""
    ocean = ["/usr/bin/env", "PART=ocean", str(program), "env", "PART"]
    server = ["/usr/bin/env", "PART=its server", str(program), "env", "PART"]
    return [*flags, "--ranks-per-node", "2", "--", *ocean, ":", "--ranks-per-node", "1", *server]


@pytest.mark.parametrize("flags", [("--launcher", "own"), ("--launcher", "srun")], ids="-".join)
def test_every_node_of_a_job_gets_all_programs_twice(
    job: Slurm, program: Path, fresh_home: Path, flags: tuple[str, ...]
) -> None:
    """The second time from what was kept, in another job, whose script sets what srun heeds."""
    due = sorted(
        [*(f"rank {n} of 6" for n in range(6)), *["PART=ocean"] * 4, *["PART=its server"] * 2]
    )
    salloc = ("salloc", "-Q", "-N2", "-n2")
    for more in ((), ("env", "SLURM_LABELIO=1", "SLURM_CPUS_PER_TASK=2")):
        words = several(program, *flags)
        assert said(job, fresh_home, *words, inside=(*salloc, *more)) == due
    kept = list((fresh_home / "cache/run").glob("*.json"))
    assert len(kept) == 1, "the second start was not the first one's"


def test_a_node_with_other_cpus_gets_its_own(job: Slurm, program: Path, fresh_home: Path) -> None:
    """One rank on the second node only, from the first: Open MPI would bind by the first's CPUs."""
    assert said(job, fresh_home, "--hosts", "n2", "-n", "1", "--", str(program)) == ["rank 0 of 1"]


@pytest.mark.long
@pytest.mark.parametrize("launcher", ["own", "srun"])
def test_what_ranks_of_several_nodes_start_is_no_part_of_the_job(
    job: Slurm, program: Path, fresh_home: Path, launcher: str
) -> None:
    """Singletons before MPI_Init on each node, and a step of rank 0 alone."""
    alone = job.cluster.shared / "alone"
    alone.write_text(ALONE)
    alone.chmod(0o755)
    flags = ("--launcher", launcher, "--ranks-per-node", "1", "--", str(program))
    salloc = ("salloc", "-Q", "-N2", "-n2", "--overcommit")
    due = ["rank 0 of 2", "rank 1 of 2"]
    single = said(job, fresh_home, *flags, "before", f"{alone} {program}", inside=salloc)
    assert single == sorted([*due, *["rank 0 of 1"] * 2])
    # srun 22.05 cannot read what it sets itself of the binding.
    unset = "unset $(env | sed -n 's/^\\(SLURM_CPU_BIND[^=]*\\)=.*/\\1/p')"
    step = f"{unset}; srun --overlap --mpi=pmix -N2 -n2 {program}"
    assert said(job, fresh_home, *flags, "after", step, inside=salloc) == sorted(due * 2)
