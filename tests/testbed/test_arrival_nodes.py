"""Arguments and standard input of jobs whose ranks are on other nodes, under Slurm and without."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import IO

import pytest

from mpigraft.core.model import Family
from testbed.slurm import Slurm
from tests.arrival import NOTHING, ODD, RUN, SHOW, content, digest, of_size, parsed

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

LONG = pytest.mark.long


@pytest.fixture
def job(slurm: Slurm) -> Slurm:
    return slurm


def shown(
    slurm: Slurm,
    home: Path,
    words: tuple[str, ...],
    stdin: IO[bytes] | int,
    *arguments: str,
    before: tuple[str, ...] = (),
) -> tuple[list[str], list[str]]:
    """As arrival.shown, from the first node."""
    env = {**os.environ, **slurm.environ, "MPIGRAFT_HOME": str(home)}
    argv = [*before, *RUN, *words, "--no-proof", "--", *SHOW, *arguments]
    with slurm.cluster.popen(
        "n1", argv, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return parsed(out)


MPIS = ["openmpi@5", pytest.param("mpich", marks=LONG), pytest.param("intel", marks=LONG)]


@pytest.mark.parametrize("mpi", MPIS)
def test_rank_0_of_another_node_is_fed(
    job: Slurm, fresh_home: Path, mpi: str, mpis: dict[Family, Path]
) -> None:
    """From a file, from a pipe, and from both ends of a list: what it leaves is put back."""
    words = ("--mpi", mpi, "--hosts", "n2", "-n", "2", "--ssh-command", str(job.cluster.remote))
    for size in (0, 229_000, 64 << 20):
        with of_size(job.cluster.shared, size).open("rb") as file:
            assert shown(job, fresh_home, words, file)[0] == sorted(
                [NOTHING, digest(content(size))]
            )
            assert file.tell() == size
    path = of_size(job.cluster.shared, 229_000)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        assert cat.stdout
        read, arguments = shown(job, fresh_home, words, cat.stdout, *ODD)
    assert (read, arguments) == (sorted([NOTHING, digest(path.read_bytes())]), list(ODD))


def test_what_rank_0_of_another_node_leaves_is_put_back(job: Slurm, fresh_home: Path) -> None:
    listed = job.cluster.shared / "list"
    listed.write_text("".join(f"line {n}\n" for n in range(3000)))
    env = {**os.environ, **job.environ, "MPIGRAFT_HOME": str(fresh_home)}
    words = [*RUN, "--mpi", "openmpi@5", "--hosts", "n2", "-n", "1", "--no-proof"]
    words += [
        "--ssh-command",
        str(job.cluster.remote),
        "--",
        "dd",
        "bs=1",
        "count=7",
        "status=none",
    ]
    with listed.open("rb") as file:
        for due in (b"line 0\n", b"line 1\n"):
            with job.cluster.popen(
                "n1", words, env=env, stdin=file, stdout=subprocess.PIPE
            ) as process:
                assert process.communicate(timeout=120)[0] == due
        assert file.tell() == 14


def test_every_rank_of_two_nodes_reads_all(job: Slurm, fresh_home: Path) -> None:
    nodes = ("--mpi", "openmpi@5", "--hosts", "n1,n2", "-n", "2")
    words = (*nodes, "--ssh-command", str(job.cluster.remote), "--stdin", "all")
    file = of_size(job.cluster.shared, 229_000)
    due = [digest(file.read_bytes())] * 2
    with file.open("rb") as opened:
        assert shown(job, fresh_home, words, opened)[0] == due
    with subprocess.Popen(["cat", file], stdout=subprocess.PIPE) as cat:
        assert cat.stdout
        assert shown(job, fresh_home, words, cat.stdout)[0] == due


@pytest.mark.parametrize("flags", [("--launcher", "own"), ("--launcher", "srun")], ids="-".join)
def test_only_rank_0_of_a_slurm_job_reads(
    job: Slurm, fresh_home: Path, flags: tuple[str, ...]
) -> None:
    """srun by itself hands every rank all of it; here the other one reads nothing."""
    salloc = ("salloc", "-Q", "-N2", "-n2")
    words = ("--mpi", "openmpi@5", *flags, "-n", "2")
    with of_size(job.cluster.shared, 229_000).open("rb") as file:
        read, arguments = shown(job, fresh_home, words, file, *ODD, before=salloc)
    assert read == sorted([NOTHING, digest(content(229_000))])
    assert arguments == list(ODD)
