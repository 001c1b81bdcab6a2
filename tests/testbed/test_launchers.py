"""Each launcher's words tried on two nodes: the CPUs of each rank, its program, its world."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import (
    Allocation,
    Family,
    Group,
    Layout,
    MpiInstall,
    Order,
    Scheduler,
    Scope,
)
from mpigraft.discovery.sources import schedulers
from mpigraft.discovery.sources.candidate import Host
from mpigraft.launch.launchers.registry import LAUNCHERS
from testbed.cluster import HOST, Cluster
from testbed.nodes import User
from testbed.slurm import Slurm
from tests.builders.configuration import an_mpi

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

KINDS = ("openmpi", "openmpi-4", "mpich", "intel", "srun")
MASKS = ((1,), (0, 1))
SHOW = """\
local=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-$SLURM_LOCALID}}
echo "seen $(hostname) $local $1 $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)"
"""
Seen = set[tuple[str, str, str, str]]  # host, local rank, what the program was told, CPUs


@pytest.fixture(scope="module")
def job(clusters: Callable[..., Cluster], slurms_here: None) -> Iterator[Slurm]:
    """Nodes with two CPUs each, and a Slurm that binds."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("two CPUs are needed to tell one from the other")
    with Slurm(clusters(2, pin=False), task="affinity") as slurm:
        (slurm.cluster.shared / "show").write_text(SHOW)
        yield slurm


def an_order(slurm: Slurm, mpis: Mapping[Family, Path], kind: str, hosts: bool) -> Order:
    """Two ranks of `show` on each node, in a job or on named hosts."""
    cluster = slurm.cluster
    mpi: MpiInstall
    if kind == "openmpi-4":
        mpi = an_mpi("openmpi@4.1.4", launcher=Path("/usr/bin/mpirun.openmpi"),
                     launcher_kind="orte")  # fmt: skip
        if not Path("/usr/bin/mpirun.openmpi").exists():
            pytest.skip("Debian's Open MPI is not here")
    else:
        family = Family.OPENMPI if kind == "srun" else Family(kind)
        prefix = mpis[family]
        name = "mpirun" if family is Family.OPENMPI else "mpiexec.hydra"
        mpi = an_mpi(f"{family}@5", prefix=prefix, launcher=prefix / "bin" / name)
    launcher = Path("/usr/bin/srun") if kind == "srun" else mpi.launcher
    assert launcher is not None
    allocation = (
        Allocation(cluster.nodes, "--hosts", agent=str(cluster.remote))
        if hosts
        else Allocation(cluster.nodes, "Slurm job", "slurm", "1")
    )
    groups = (Group(2, ("/bin/sh", str(cluster.shared / "show"), "one")),)
    return Order(launcher, mpi, Layout(2, 2), allocation, groups, MASKS, root=True,
                 version="22.05", folder=cluster.shared)  # fmt: skip


WIDE = ("-N2", "-n2", "-c4")
NARROW = ("-N2", "-n2")  # one CPU of the job, and so one slot, on each node


def ran(slurm: Slurm, order: Order, kind: str, *, hosts: bool, job: tuple[str, ...] = WIDE) -> Seen:
    """What the ranks of an order said of themselves."""
    launcher = LAUNCHERS["srun" if kind == "srun" else order.mpi.launcher_kind]
    found = launcher.command(order)
    for path, text in found.files:
        path.write_text(text)
    rows = [row for row in launcher.rows(order) if row.scope is Scope.LAUNCHER]
    env = {**os.environ, **slurm.environ}
    env |= {row.name: row.value for row in rows if row.value is not None}
    if kind == "intel":
        env["I_MPI_ROOT"] = str(order.mpi.prefix)
    in_job = () if hosts else ("salloc", "-Q", *job)
    done = slurm.cluster.run("n1", [*in_job, *found.words], env=env, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("seen ")]
    return {(host, local, told, cpus) for _, host, local, told, cpus in lines}


def test_slurm_is_asked_for_its_version_with_its_own_configuration(job: Slurm) -> None:
    """Here no file below /etc configures it: SLURM_CONF does, as for every user of such a site."""
    host = Host(environ=job.environ)
    (srun,) = (one for one in schedulers.launchers(host) if one.name == "srun")
    assert (srun.version[:1].isdecimal(), srun.reason) == (True, "")
    assert schedulers.scheduler(host) == Scheduler("slurm", srun.version, False, "")


@pytest.mark.long
@pytest.mark.covering
def test_a_partition_has_every_core_where_slurm_binds(
    job: Slurm, mpis: Mapping[Family, Path]
) -> None:
    user = User(job.cluster, mpis, job)
    done = user.on(HOST, "discover", "--partition", "all", "--json")
    assert json.loads(done.stdout)["cpu"]["threads"] == os.cpu_count()


def test_a_step_that_slurm_binds_is_named_with_the_option_that_widens_it(
    job: Slurm, mpis: Mapping[Family, Path]
) -> None:
    """Slurm believes in four CPUs; a node has all of this machine's."""
    user, most = User(job.cluster, mpis, job), min(4, os.cpu_count() or 1)
    for options, named in (((), True), ((f"--cpus-per-task={most}",), False)):
        words = ["srun", "-n1", "--exclusive", *options, *user.words("layout", "--json")]
        done = job.cluster.run("n1", words, env=user.environ, cwd=user.folder)
        assert (f"srun --cpus-per-task={most}" in done.stderr) is named, done.stderr
        assert json.loads(done.stdout)["cpu"]["threads"] == (1 if named else most)


@pytest.mark.parametrize("hosts", [False, True], ids=["job", "hosts"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_rank_gets_its_mask(
    job: Slurm, mpis: Mapping[Family, Path], kind: str, hosts: bool
) -> None:
    """The second rank's mask holds the first's: launchers that refuse shared CPUs are told."""
    if hosts and kind == "srun":
        pytest.skip("srun has no hosts but a job's")
    order = an_order(job, mpis, kind, hosts)
    due = {(h, n, "one", cpus) for h in ("n1", "n2") for n, cpus in (("0", "1"), ("1", "0-1"))}
    assert ran(job, order, kind, hosts=hosts) == due


@pytest.mark.parametrize("where", [WIDE, NARROW, ()], ids=["wide", "narrow", "hosts"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_node_gets_all_programs(
    job: Slurm, mpis: Mapping[Family, Path], kind: str, where: tuple[str, ...]
) -> None:
    """Words that a shell, or srun's list of programs, would change; ranks that share CPUs where
    the job has fewer."""
    if kind == "srun" and not where:
        pytest.skip("srun has no hosts but a job's")
    show = str(job.cluster.shared / "show")
    groups = tuple(Group(1, ("/bin/sh", show, word)) for word in ("it's%t", '"$HOME"'))
    order = replace(an_order(job, mpis, kind, not where), groups=groups, masks=(),
                    layout=Layout(2, 2, bind="none"), crowded=where == NARROW)  # fmt: skip
    due = {(h, n, told) for h in ("n1", "n2") for n, told in (("0", "it's%t"), ("1", '"$HOME"'))}
    seen = ran(job, order, kind, hosts=not where, job=where)
    assert {(host, local, told) for host, local, told, _ in seen} == due
    if where != NARROW:  # nothing is bound
        assert {cpus for *_, cpus in seen} == {"0-1"}


def test_a_part_of_a_job_is_its_first_nodes(job: Slurm, mpis: Mapping[Family, Path]) -> None:
    for kind in ("openmpi", "mpich", "srun"):
        order = replace(an_order(job, mpis, kind, False), layout=Layout(1, 2))
        assert {host for host, *_ in ran(job, order, kind, hosts=False)} == {"n1"}


# ------------------------------------------------------------------ worlds

BELIEVED = """\
import json, os, sys
from dataclasses import replace
from mpigraft.core.model import LaunchedBy, Layout
from mpigraft.discovery import discover_machine
from mpigraft.evidence import make_starter, verify_wireup
from mpigraft.knowledge import Facts
from mpigraft.launch import find_allocation, launchers_for
from mpigraft.launch.launchers.select import supported_pmi
from mpigraft.native import choose_natives
from mpigraft.selection import (MpiSelection, make_configuration, select_mpis)

machine = discover_machine()
(mpi,) = select_mpis([sys.argv[1]], [m for m in machine.mpis if m.source == "wheel"])
srun = next(one for one in machine.launchers if one.name == "srun")
asked = make_configuration(MpiSelection(mpi), Facts.of(machine), sys.argv[2])
programs = choose_natives(mpi, machine.cpu.architecture)
told = {"spoken": supported_pmi(mpi)}
(by,), left = launchers_for(mpi, machine, ("srun",))
told["chosen"] = by.pmi
with make_starter({asked.key: programs}, find_allocation(os.environ)) as start:
    for pmi in ("own", "pmix", "pmi2", "none"):
        by = None if pmi == "own" else LaunchedBy("srun", srun.path, srun.version, pmi)
        one = replace(asked, launcher=by)
        found = verify_wireup(one, programs, start, Layout(2, 1, bind="none"))
        told[pmi] = [finding.code for finding in found]
print("told", json.dumps(told))
"""


@pytest.mark.parametrize(
    ("mpi", "transport", "due"),
    [
        ("openmpi", "ob1-tcp", {
            "spoken": ["pmix"], "chosen": "pmix",
            "own": [], "pmix": [], "pmi2": ["LCH-01"], "none": ["LCH-01"],
        }),
        ("mpich", "ofi-tcp", {
            "spoken": ["pmi2", "pmi1"], "chosen": "pmi2",
            "own": [], "pmix": ["init-unfinished", "launcher-fails"], "pmi2": [],
                "none": ["LCH-01"],
        }),
    ],
    ids=["openmpi", "mpich"],
)  # fmt: skip
def test_a_launcher_is_believed_after_two_ranks_were_one_world(
    job: Slurm, fresh_home: Path, mpi: str, transport: str, due: dict[str, object]
) -> None:
    """Plain srun of Open MPI 5 gives worlds of one in silence, and so does its pmi2."""
    program = job.cluster.shared / "believed.py"
    program.write_text(BELIEVED)
    env = {**os.environ, **job.environ, "MPIGRAFT_HOME": str(fresh_home)}
    argv = ["salloc", "-Q", "-N2", "-n2", "-c4", sys.executable, str(program), mpi, transport]
    done = job.cluster.run("n1", argv, env=env, timeout=300)
    told = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    assert told, done.stdout + done.stderr
    assert json.loads(told[0].removeprefix("told ")) == due
