"""Real ranks, on the CPUs and with the GPUs that were chosen for them, and with others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft import axes, bindings, job, layouts, seating
from mpigraft.cli.run import asked
from mpigraft.knowledge.loader import Facts, resolve
from mpigraft.model import Configuration, Family, Layout, Machine, MpiInstall, Placement, RankRecord
from mpigraft.natives import natives
from mpigraft.prove import probe_program
from mpigraft.records import read_witness
from mpigraft.run import run
from mpigraft.starter import starter
from mpigraft.wish import Wish, merged

pytestmark = pytest.mark.mpi

TRANSPORTS = {Family.OPENMPI: "ob1-sm", Family.MPICH: "shm-ofi-tcp", Family.INTEL: "shm"}
CROSSED = Placement(((1,), (0,)), (1, 0), "nvidia")  # no launcher would do that by itself


def wheel(machine: Machine, family: Family) -> MpiInstall:
    return next(mpi for mpi in machine.mpis if mpi.family is family and mpi.usable)


def started(
    machine: Machine, family: Family, placement: Placement, layout: Layout
) -> tuple[RankRecord, ...]:
    mpi = wheel(machine, family)
    one = Configuration("k", mpi.id, mpi, resolve(TRANSPORTS[family], mpi, Facts.of(machine)))
    programs = natives(mpi, machine.cpu.architecture)
    with starter({"k": programs}, place=lambda _: placement) as start:
        launched = start(one, layout, probe_program(programs), 60.0, True)
    ended, records = launched[0], launched[1]
    assert ended.ok, ended.text()
    return records


@pytest.mark.parametrize("family", TRANSPORTS)
def test_ranks_are_where_they_were_put(machine: Machine, family: Family) -> None:
    if machine.cpu.cores != 2:
        pytest.skip("the placement is for two cores")
    layout = Layout(map_by="numa", gpus=True)
    ranks = started(machine, family, CROSSED, layout)
    assert [rank.cores for rank in ranks] == [(1,), (0,)]
    assert [seating.shown(CROSSED, n) in rank.gpus for n, rank in enumerate(ranks)] == [True] * 2
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
    program = str(natives(mpi, machine.cpu.architecture).bench)
    probing = [program, "--probe"]
    words = [*probing, ":", "--ranks-per-node", "1", *probing]
    where = {"ranks_per_node": 1, "map_by": "core"}
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    planned = job.plan(asked(words, {"mpi": mpi.id, "proof": True}, where), machine, environ)
    witness = tmp_path / "witness"
    witness.mkdir()
    launch = job.prepare(planned, witness)
    for path, text in launch.files:
        path.write_text(text)
    ended = run(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=60)
    assert ended.ok, ended.text()
    assert (planned.layout.ranks, len(planned.others)) == (2, 1)
    ranks = read_witness(witness)
    assert [(rank.rank, rank.size) for rank in ranks] == [(0, 2), (1, 2)]
    assert not set(ranks[0].cores) & set(ranks[1].cores)


def test_run_and_bench_tell_launchers_the_same(machine: Machine, tmp_path: Path) -> None:
    """What was said of places is CPUs in both; what was not is left to the launcher in both."""
    mpi = wheel(machine, Family.MPICH)
    words = [str(natives(mpi, machine.cpu.architecture).bench)]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for said, told in (
        ({}, False), ({"bind_to": "none"}, False), ({"map_by": "core"}, True),
        ({"bind_to": "core"}, True), ({"map_by": "node"}, True), ({"bind_to": "numa"}, True),
    ):  # fmt: skip
        where = {"ranks_per_node": 2, **said}
        planned = job.plan(asked(words, {"mpi": mpi.id}, where), machine, environ)
        wish = merged(Wish(), {name: [word] for name, word in where.items()})
        (layout,) = axes.layouts(wish, machine)
        assert planned.layout == layout
        assert planned.placement == layouts.told(layout, machine)
        assert bool(planned.placement.masks) is told
