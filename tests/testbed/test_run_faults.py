"""Jobs on two nodes that go wrong, that print without end, or that run in a container."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster, until
from testbed.images import Images
from testbed.nodes import User
from testbed.slurm import Slurm
from tests.mpi.test_run import compiled
from tests.native.native_world import compile_c

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

LINES = 1_000_000
LIMIT_S = 120.0
LONG = pytest.mark.long
# srun for every day: under mpirun and mpiexec such jobs of one node run every day too.
LAUNCHERS = [pytest.param("own", marks=LONG), "srun"]
Mpis = Mapping[Family, Path]
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def user(
    clusters: Callable[..., Cluster], slurms_here: None, mpis: Mpis, images: Images
) -> Iterator[User]:
    """A user in a job of Slurm on both nodes; images are seen there."""
    folder = images.folder("bookworm")
    with Slurm(clusters(2, binds=[folder])) as slurm:
        yield User(slurm.cluster, mpis, slurm)


def run(user: User, *words: object) -> Done:
    """`mpigraft run` on the first node, inside of an allocation of both."""
    argv = ["salloc", "-Q", "-N2", "-n2", *user.words("run", *words)]
    return user.cluster.run("n1", argv, env=user.environ, cwd=user.folder, timeout=LIMIT_S)


def left(user: User, name: str) -> list[str]:
    """Processes of the program that are still on a node."""
    return [
        line
        for node in user.cluster.nodes
        for line in user.cluster.processes(node)
        if name in line and "mpigraft" not in line
    ]


@pytest.mark.parametrize(("family", "launcher"), [
    (Family.OPENMPI, "own"), (Family.MPICH, "srun"),
    pytest.param(Family.OPENMPI, "srun", marks=LONG), pytest.param(Family.MPICH, "own", marks=LONG),
])  # fmt: skip
def test_a_rank_that_dies_on_the_other_node_ends_the_job(
    user: User, mpis: Mpis, family: Family, launcher: str
) -> None:
    program = compiled(mpis[family], user.folder)
    of = ("--mpi", f"{family}@5", "--launcher", launcher)
    done = run(user, *of, "--ranks-per-node", 1, "--", program, "die", 1)
    assert done.returncode not in (0, 5), done.stderr
    until(lambda: not left(user, str(program)), "nodes without ranks")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_million_lines_of_the_other_node_arrive_in_order(
    user: User, mpis: Mpis, launcher: str
) -> None:
    source = Path(__file__).parents[1] / "mpi/loud.c"
    prefix = mpis[Family.MPICH]
    library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    program = compile_c(source, user.folder / "loud", "-isystem", prefix / "include", library)
    of = ("--mpi", "mpich@5", "--launcher", launcher)
    done = run(user, *of, "--ranks-per-node", 1, "--", program, LINES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(n) for n in range(LINES)]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_grafted_container_runs_on_both_nodes(user: User, images: Images, launcher: str) -> None:
    """The host's Open MPI 5 under an image whose programs were built for 4.1, over LNX."""
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "--mpi", "openmpi@5")
    over = ("--transport", "ofi-lnx", "--launcher", launcher, "--ranks-per-node", 1)
    done = run(user, *of, *over, "--", "/opt/app/hello")
    assert done.returncode == 0, done.stderr
    told = sorted(line.partition(",")[0] for line in done.stdout.splitlines())
    assert told == [f"RANK {n} of SIZE 2 LIBRARY Open MPI v5.0.11" for n in range(2)]
