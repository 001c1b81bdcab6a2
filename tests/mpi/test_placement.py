"""Real ranks, on the CPUs and with the GPUs that were chosen for them, and with others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.cli.job import requested_job
from mpigraft.core.model import (
    Configuration,
    Family,
    Layout,
    Machine,
    MpiInstall,
    Placement,
    RankRecord,
)
from mpigraft.core.process.command import run_command
from mpigraft.evidence.judge import probe_program
from mpigraft.evidence.runner import make_starter
from mpigraft.evidence.world import bindings
from mpigraft.evidence.world.records import read_witness
from mpigraft.knowledge.transports.match import Facts, resolve_transport
from mpigraft.launch import gpu_select
from mpigraft.launch import placement as layouts
from mpigraft.native.programs import choose_natives
from mpigraft.request import RunSpec, asked_for
from mpigraft.request.spec import asked_campaign
from mpigraft.run import plan
from mpigraft.selection import layouts as axes
from testbed import cpusets

pytestmark = pytest.mark.mpi

TRANSPORTS = {Family.OPENMPI: "ob1-sm", Family.MPICH: "shm-ofi-tcp", Family.INTEL: "shm"}
CROSSED = Placement(((1,), (0,)), (1, 0), "nvidia")  # no launcher would do that by itself


def wheel(machine: Machine, family: Family) -> MpiInstall:
    return next(mpi for mpi in machine.mpis if mpi.family is family and mpi.usable)


def started(
    machine: Machine, family: Family, placement: Placement, layout: Layout
) -> tuple[RankRecord, ...]:
    mpi = wheel(machine, family)
    one = Configuration(
        "k", mpi.id, mpi, resolve_transport(TRANSPORTS[family], mpi, Facts.of(machine))
    )
    programs = choose_natives(mpi, machine.cpu.architecture)
    with make_starter({"k": programs}, placement_of=lambda _: placement) as start:
        launched = start(one, layout, probe_program(programs), 60.0, True)
    assert launched.completed.ok, launched.completed.text()
    return launched.ranks


@pytest.mark.parametrize("family", TRANSPORTS)
def test_ranks_are_where_they_were_put(machine: Machine, family: Family) -> None:
    if machine.cpu.cores != 2:
        pytest.skip("the placement is for two cores")
    layout = Layout(map_by="numa", gpus=True)
    ranks = started(machine, family, CROSSED, layout)
    assert [rank.cores for rank in ranks] == [(1,), (0,)]
    assert [gpu_select.visible_gpus(CROSSED, n) in rank.gpus for n, rank in enumerate(ranks)] == [
        True
    ] * 2
    assert bindings.check(layout, CROSSED, ranks) == ()
    straight = replace(CROSSED, masks=((0,), (1,)), gpus=(0, 1))
    codes = [found.code for found in bindings.check(layout, straight, ranks)]
    assert codes == ["binding", "gpu"]


@pytest.mark.parametrize("family", TRANSPORTS)
def test_ranks_may_share_a_domain(machine: Machine, family: Family) -> None:
    both = tuple(sorted(cpu for domain in machine.cpu.numa for cpu in domain))
    layout, placement = Layout(bind="numa"), Placement((both, both))
    ranks = started(machine, family, placement, layout)
    assert [rank.cores for rank in ranks] == [both, both]
    assert bindings.check(layout, placement, ranks) == ()


@pytest.mark.parametrize("family", TRANSPORTS)
def test_two_programs_are_one_world(machine: Machine, family: Family, tmp_path: Path) -> None:
    """A server beside each of the others: the same environment, one communicator."""
    mpi = wheel(machine, family)
    program = str(choose_natives(mpi, machine.cpu.architecture).probe)
    words = [program, ":", "--ranks-per-node", "1", program]
    where = {"ranks_per_node": 1, "map_by": "core"}
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    spec = requested_job(asked_for(RunSpec, {"mpi": mpi.id, "proof": True, **where}), words)
    planned = plan.plan_job(spec, machine, environ)
    witness = tmp_path / "witness"
    witness.mkdir()
    launch = plan.prepare_job(planned, witness)
    for path, text in launch.files:
        path.write_text(text)
    ended = run_command(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=60)
    assert ended.ok, ended.text()
    assert (planned.layout.ranks, len(planned.others)) == (2, 1)
    ranks = read_witness(witness)
    assert [(rank.rank, rank.size) for rank in ranks] == [(0, 2), (1, 2)]
    assert not set(ranks[0].cores) & set(ranks[1].cores)


def test_run_and_bench_tell_launchers_the_same(machine: Machine, tmp_path: Path) -> None:
    """What was said of places is CPUs in both; what was not is left to the launcher in both."""
    mpi = wheel(machine, Family.MPICH)
    words = [str(choose_natives(mpi, machine.cpu.architecture).bench)]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for said, told in (
        ({}, False), ({"bind_to": "none"}, False), ({"map_by": "core"}, True),
        ({"bind_to": "core"}, True), ({"map_by": "node"}, True), ({"bind_to": "numa"}, True),
    ):  # fmt: skip
        where = {"ranks_per_node": 2, **said}
        job = requested_job(asked_for(RunSpec, {"mpi": mpi.id, **where}), words)
        planned = plan.plan_job(job, machine, environ)
        spec = asked_campaign({name: [word] for name, word in where.items()}).value
        (layout,) = axes.requested_layouts(spec, machine)
        assert planned.layout == layout
        assert planned.placement == layouts.placement_for(layout, machine, planned.allocation)
        assert bool(planned.placement.masks) is told


SHOW = "sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status"


@pytest.fixture(params=["mask", "cpuset"])
def last_cpu(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """A file whose cpuset has this machine's last CPU alone, or none for an affinity mask."""
    if request.param == "mask":
        yield "", max(os.sched_getaffinity(0))
        return
    if not cpusets.cpus():
        pytest.skip("cpusets cannot be written here")
    cpuset = cpusets.Cpuset(f"mpigraft-placement-{os.getpid()}", cpusets.cpus()[-1])
    try:
        yield str(cpuset.folder / "cgroup.procs"), cpuset.cpu
    finally:
        cpuset.remove()


@pytest.mark.parametrize("family", TRANSPORTS)
def test_ranks_stay_on_the_cpu_of_the_command(
    fresh_home: Path, family: Family, last_cpu: tuple[str, int]
) -> None:
    """Launchers number the CPUs of the cpuset, and take its first ones whatever the mask is."""
    procs, cpu = last_cpu
    confine = f"echo 0 >{procs}" if procs else f"taskset -p -c {cpu} $$ >&2"
    run = [sys.executable, "-m", "mpigraft.cli.entry", "run", "--mpi", str(family), "-n"]
    own = os.uname().nodename.upper()
    bound = ("1", "--bind-to", "core", "--hosts", "127.0.0.1")
    for ranks, *flags in (("1",), bound, ("2", "--hosts", own)):
        words = [*run, ranks, *flags, "--no-proof", "--", "/bin/sh", "-c", SHOW]
        done = subprocess.run(
            ["/bin/sh", "-c", f'{confine} && "$@"', "sh", *words], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, f"{cpu}\n" * int(ranks)), done.stderr
