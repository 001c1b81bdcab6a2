"""A stack on two nodes: by ssh and under Slurm, and where a node's overrides are not the others'.

The overrides lie on a path that both nodes see, as `host_injections` should; a bind mount on one
node stands for a folder of its own disk, as `host_injections` often is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.store import Store
from testbed.cluster import Cluster
from testbed.slurm import Slurm
from testbed.stacks import Stack
from tests.homes import make_home

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

OWN, INJECTED = "library Open MPI v4.1.8", "library Open MPI v5.0.11"
Ended = subprocess.CompletedProcess[str]


class Site:
    """A user of two nodes, which see a stack and its overrides."""

    def __init__(self, cluster: Cluster, stack: Stack, mpis: Mapping[Family, Path]) -> None:
        self.cluster, self.stack, self.mpis = cluster, stack, mpis
        self.home = make_home(cluster.shared / "home", mpis)

    def __call__(
        self,
        *words: object,
        node: str = "n1",
        home: Path | None = None,
        inside: Slurm | None = None,
    ) -> Ended:
        environ = {**(inside or self.cluster).environ, "MPIGRAFT_HOME": str(home or self.home)}
        job = ("salloc", "-Q", "-N2", "-n2") if inside else ()
        argv = [*job, sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
        return self.cluster.run(
            node, argv, env={**os.environ, **environ}, cwd=self.cluster.shared, timeout=120
        )

    def inject(self, node: str = "n1", home: Path | None = None) -> None:
        words = ("inject", self.stack.software, "--mpi", "openmpi@5")
        ended = self(*words, node=node, home=home)
        assert ended.returncode == 0, ended.stderr

    @property
    def nodes(self) -> tuple[object, ...]:
        return ("--hosts", "n1,n2", "--ssh-command", self.cluster.remote)

    def heat(self, *words: object) -> Ended:
        job = ("run", "--stack", self.stack.software, *words, *self.nodes)
        return self(*job, "-n", "2", "--", self.stack.heat, 64, 20)

    def own_overrides(self, node: str) -> None:
        """Give a node overrides of its own, which are empty."""
        place = self.stack.host_injections.resolve()
        own = place.parent / f"{place.name}-{node}"
        own.mkdir()
        self.cluster.run(node, ["mount", "--bind", own, place], check=True)


@pytest.fixture
def site(
    stack: Stack, clusters: Callable[..., Cluster], mpis: Mapping[Family, Path]
) -> Iterator[Site]:
    with clusters(2, binds=[stack.root, stack.site]) as cluster:
        yield Site(cluster, stack, mpis)
    for own in stack.site.glob("*-n?"):
        shutil.rmtree(own)


def test_a_program_of_a_stack_on_two_nodes_before_and_after_an_injection(site: Site) -> None:
    """The witness of each rank says which libmpi it mapped: exit code 5 where it is another."""
    before = site.heat("--mpi", "openmpi@5")
    assert (before.returncode, "nothing is injected" in before.stderr) == (1, True)
    own = site.heat("--replace", "nothing")
    assert (own.returncode, OWN in own.stdout) == (0, True), own.stderr
    site.inject()
    for transport in ("ob1-tcp", "ofi-tcp"):
        ended = site.heat("--mpi", "openmpi@5", "--transport", transport)
        assert (ended.returncode, INJECTED in ended.stdout) == (0, True), ended.stderr
        assert "ranks 2" in ended.stdout


def test_a_node_without_the_injection_is_named(site: Site) -> None:
    """Its rank would join a world of another MPI, or wait for ever."""
    site.inject()
    site.own_overrides("n2")
    for words in ((), ("--transport", "ob1-tcp")):
        ended = site.heat(*words)
        assert ended.returncode == 5, ended.stdout + ended.stderr
        assert f"n2: ranks mapped {site.stack.mpi}/lib/libmpi.so.40" in ended.stderr
        assert "inject on these nodes too" in ended.stderr
    site.inject("n2")
    assert site.heat().returncode == 0


@pytest.mark.long
def test_a_node_with_another_generation_of_the_same_number_is_named(
    site: Site, mpis: Mapping[Family, Path]
) -> None:
    """Its MPI has the same version, and a file that differs."""
    site.inject()
    site.own_overrides("n2")
    other = site.cluster.shared / "other"
    prefix = other / "mpi" / mpis[Family.OPENMPI].name
    shutil.copytree(mpis[Family.OPENMPI], prefix, symlinks=True)
    with (prefix / "etc/openmpi-mca-params.conf").open("a") as file:
        file.write("# of another build\n")
    site.inject("n2", other)
    ended = site.heat()
    assert ended.returncode == 5, ended.stdout + ended.stderr
    assert "n2: ranks mapped another generation at " in ended.stderr


@pytest.mark.long
@pytest.mark.usefixtures("slurms_here")
def test_in_a_job_of_slurm(site: Site) -> None:
    """By the injected MPI's launcher, and by srun; and a proof of the injection there."""
    job = ("run", "--stack", site.stack.software)
    with Slurm(site.cluster) as slurm:
        site.inject()
        for by in ("own", "srun"):
            words = ("--mpi", "openmpi@5", "--transport", "ob1-tcp", "--launcher", by, "-n", "2")
            ended = site(*job, *words, "--", site.stack.heat, 64, 20, inside=slurm)
            assert (ended.returncode, INJECTED in ended.stdout) == (0, True), ended.stderr
            assert "ranks 2" in ended.stdout
        ended = site("inject", site.stack.software, "--verify", inside=slurm)
        assert ended.returncode == 0, ended.stderr
        site.own_overrides("n2")
        ended = site(*job, "-n", "2", "--", site.stack.heat, 64, 20, inside=slurm)
        assert (ended.returncode, "n2: ranks mapped" in ended.stderr) == (5, True), ended.stderr


@pytest.mark.long
def test_a_campaign_on_two_nodes_measures_all_three(site: Site) -> None:
    site.inject()
    store = site.cluster.shared / "store"
    ended = site(
        "--store", store, "bench", "--stack", site.stack.software, "--mpi", "openmpi@5",
        "--transport", "ob1-tcp", "--transport", "ofi-tcp", "--benchmark", "latency",
        "--rounds", "1", "--max", "64", "--quick", *site.nodes,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (campaign,) = Store(store).campaigns()
    proven = {row.configuration: row.evidence for row in Store(store).evidence(campaign.id)}
    assert len(proven) == 6
    for evidence in proven.values():
        assert evidence.ok
        assert {rank.host for rank in evidence.ranks} == {"n1", "n2"}
