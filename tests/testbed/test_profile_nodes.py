"""`mpigraft profile` over two nodes, under Slurm, and in a container."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from tests.native.native_world import compile_c
from tests.testbed.cluster import Cluster
from tests.testbed.images import Images
from tests.testbed.nodes import User
from tests.testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

LIMIT_S = 120.0
LONG = pytest.mark.long
Mpis = Mapping[Family, Path]


@pytest.fixture(scope="module")
def user(
    clusters: Callable[..., Cluster], slurms_here: None, mpis: Mpis, images: Images
) -> Iterator[User]:
    """A user in a job of Slurm on both nodes; images are seen there."""
    with Slurm(clusters(2, binds=[images.folder("bookworm")])) as slurm:
        yield User(slurm.cluster, mpis, slurm)


def profile(user: User, *words: object) -> tuple[subprocess.CompletedProcess[str], Any]:
    """`mpigraft profile` on the first node, inside of an allocation of both; the document too."""
    kept = user.folder / "kept.json"
    asked = user.words("profile", "-o", kept, "--ranks-per-node", 1, *words)
    argv = ["salloc", "-Q", "-N2", "-n2", *asked]
    done = user.cluster.run("n1", argv, env=user.environ, cwd=user.folder, timeout=LIMIT_S)
    found = json.loads(kept.read_text())["profile"] if kept.exists() else None
    kept.unlink(missing_ok=True)
    return done, found


@pytest.mark.parametrize(("family", "launcher"), [
    (Family.MPICH, "srun"), pytest.param(Family.OPENMPI, "own", marks=LONG),
])  # fmt: skip
@pytest.mark.parametrize("how", ["fine", pytest.param("abort", marks=LONG)])
def test_counts_of_both_nodes_are_one_profile(
    user: User, mpis: Mpis, family: Family, launcher: str, how: str
) -> None:
    prefix = mpis[family]
    library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    source = Path(__file__).parents[1] / "mpi/phases.c"
    program = compile_c(source, user.folder / "phases", "-isystem", prefix / "include", library)
    of = ("--mpi", f"{family}@5", "--launcher", launcher)
    done, found = profile(user, *of, "--", program, how)
    assert bool(done.returncode) == (how == "abort"), done.stderr
    assert {one["host"] for one in found["each"]} == {"n1", "n2"}
    assert {one["name"]: one["calls"] for one in found["routines"]}["Alltoallv"] == 20
    assert all(one["finalized"] for one in found["each"]) == (how == "fine")


def test_a_container_on_both_nodes_carries_the_library(user: User, images: Images) -> None:
    """The host's Open MPI 5 under an image whose programs were built for 4.1."""
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "--mpi", "openmpi@5")
    done, found = profile(user, *of, "--", "/opt/app/hello")
    assert done.returncode == 0, done.stderr
    assert found["ranks"] == 2
    assert {"Init", "Comm_rank"} <= {one["name"] for one in found["routines"]}
