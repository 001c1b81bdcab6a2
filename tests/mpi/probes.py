"""Probe launches of real MPIs. Those of healthy transports are launched once, for all tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from mpigraft.core.model import (
    Configuration,
    Evidence,
    Family,
    Layout,
    Machine,
    MpiInstall,
    Transport,
)
from mpigraft.core.process.command import run_command
from mpigraft.discovery import inventory
from mpigraft.evidence import judge
from mpigraft.knowledge.transports.match import Facts, resolve_transport, transport_offers
from mpigraft.launch import LaunchRequest, LaunchResult, prepare_launch
from mpigraft.native.programs import choose_natives

PAIR = Layout()


@cache
def this_machine() -> Machine:
    """This machine as the tests' own home has it."""
    return inventory.discover_machine()


def wheel(machine: Machine, family: Family) -> MpiInstall:
    return next(m for m in machine.mpis if m.family is family and m.source == "wheel" and m.usable)


@cache
def healthy(family: Family) -> dict[str, Evidence]:
    """The evidence of each transport that the wheel offers here."""
    machine = this_machine()
    mpi, here = wheel(machine, family), Facts.of(machine)
    offered = sorted(offer.name for offer in transport_offers(mpi, here) if offer.usable)
    return {name: probe(machine, mpi, resolve_transport(name, mpi, here)) for name in offered}


def probe(
    machine: Machine,
    mpi: MpiInstall,
    transport: Transport,
    layout: Layout = PAIR,
    program: tuple[str, ...] = (),
) -> Evidence:
    """The evidence of one probe launch, or of a second where chance may have spoilt the first."""
    return probe_and_output(machine, mpi, transport, layout, program)[0]


def probe_and_output(
    machine: Machine,
    mpi: MpiInstall,
    transport: Transport,
    layout: Layout = PAIR,
    program: tuple[str, ...] = (),
) -> tuple[Evidence, str]:
    asked = Configuration("key", f"{mpi.id}/{transport.name}", mpi, transport)
    programs = choose_natives(mpi, machine.cpu.architecture)
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            witness = Path(folder) / "witness"
            witness.mkdir()
            request = LaunchRequest(
                asked,
                layout,
                program or judge.probe_program(programs),
                natives=programs,
                witness=witness,
                limit_s=60.0,
                cwd=Path(folder),
                probe=True,
            )
            launch = prepare_launch(request)
            ended = run_command(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=90.0)
            evidence = judge.judge_evidence(
                asked, layout, LaunchResult(ended, judge.read_witness(witness))
            )
        if not judge.worth_repeating(evidence):
            break
    return evidence, ended.text()
