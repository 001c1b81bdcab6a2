"""`mpigraft profile`, `record` and `replay` over two nodes, under Slurm, and in a container."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster
from testbed.images import Images
from testbed.nodes import User
from testbed.slurm import Slurm
from tests.native.native_world import compile_c

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


def on_both(user: User, *words: object) -> subprocess.CompletedProcess[str]:
    """mpigraft on the first node, inside of an allocation of both."""
    argv = ["salloc", "-Q", "-N2", "-n2", *user.words(*words)]
    return user.cluster.run("n1", argv, env=user.environ, cwd=user.folder, timeout=LIMIT_S)


def profile(user: User, *words: object) -> tuple[subprocess.CompletedProcess[str], Any]:
    """`mpigraft profile` on both nodes; the document too."""
    kept = user.folder / "kept.json"
    done = on_both(user, "profile", "-o", kept, "--ranks-per-node", 1, *words)
    found = json.loads(kept.read_text())["profile"] if kept.exists() else None
    kept.unlink(missing_ok=True)
    return done, found


def phases(user: User, mpis: Mpis, family: Family) -> Path:
    prefix = mpis[family]
    library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    source = Path(__file__).parents[1] / "mpi/phases.c"
    return compile_c(source, user.folder / "phases", "-isystem", prefix / "include", library)


@pytest.mark.parametrize(("family", "launcher"), [
    (Family.MPICH, "srun"), pytest.param(Family.OPENMPI, "own", marks=LONG),
])  # fmt: skip
@pytest.mark.parametrize("how", ["fine", pytest.param("abort", marks=LONG)])
def test_counts_of_both_nodes_are_one_profile(
    user: User, mpis: Mpis, family: Family, launcher: str, how: str
) -> None:
    program = phases(user, mpis, family)
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


@pytest.mark.parametrize(
    ("family", "other"),
    [("mpich@5", "openmpi@5"), pytest.param("openmpi@5", "mpich@5", marks=LONG)],
)
def test_what_both_nodes_recorded_is_replayed_on_them(
    user: User, mpis: Mpis, family: str, other: str
) -> None:
    program = phases(user, mpis, Family(family.partition("@")[0]))
    kept, each = user.folder / "both.record", ("--ranks-per-node", 1)
    done = on_both(user, "record", "-o", kept, "--mpi", family, *each, "--", program, "fine")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 2
    nodes = ("--nodes", 2, *each)
    again = on_both(user, "replay", kept, "--mpi", other, *nodes, "--check", "--json")
    assert again.returncode == 0, again.stderr
    rows = [json.loads(line) for line in again.stdout.splitlines()]
    calls = {row.get("benchmark"): row.get("iterations") for row in rows}
    assert calls["replay,routine=Alltoallv"] == 2 * 10
    assert calls["replay,routine=Allreduce"] == 2 * 20
    assert all(row["valid"] for row in rows if row["mpigraft"] == "value")


def test_what_a_container_recorded_is_replayed_without_it(user: User, images: Images) -> None:
    """By the host's MPI, on both nodes."""
    kept, each = user.folder / "image.record", ("--ranks-per-node", 1)
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "--mpi", "openmpi@5")
    done = on_both(user, "record", "-o", kept, *of, *each, "--", "/opt/app/hello")
    assert done.returncode == 0, done.stderr
    again = on_both(user, "replay", kept, "--nodes", 2, *each)
    assert again.returncode == 0, again.stderr
    assert "Sendrecv" in again.stdout


@LONG
@pytest.mark.parametrize("command", ["profile", "record"])
def test_a_home_of_one_node_alone_is_named(user: User, mpis: Mpis, command: str) -> None:
    """The program runs, on an MPI that both nodes see."""
    program, kept = phases(user, mpis, Family.MPICH), user.folder / f"private.{command}"
    path = f"{mpis[Family.MPICH].resolve() / 'bin'}:{user.environ['PATH']}"
    environ = {**user.environ, "MPIGRAFT_HOME": "/tmp/private", "PATH": path}
    words = (command, "-o", kept, "--mpi", "mpich@5", "--ranks-per-node", 1, "--", program, "fine")
    argv = ["salloc", "-Q", "-N2", "-n2", *user.words(*words)]
    done = user.cluster.run("n1", argv, env=environ, cwd=user.folder, timeout=LIMIT_S)
    assert done.returncode == 5, done.stderr
    assert done.stdout.count("done") == 2
    assert "set MPIGRAFT_HOME to a folder that every node sees" in done.stderr
    assert kept.exists() == (command == "profile")
    assert command == "profile" or "does not see MPIGRAFT_HOME" in done.stderr
