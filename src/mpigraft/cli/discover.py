"""`mpigraft discover`: what this machine has, as text or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import (
    Full,
    console,
    flag,
    option,
    out,
    refuse_alone,
    tell,
    tell_machine_limits,
)
from mpigraft.core.errors import UsageError
from mpigraft.core.text import columns
from mpigraft.report import machine_document, machine_lines, machine_screen, print_screen

if TYPE_CHECKING:
    from mpigraft.core.model import Machine


WAIT = "30m"
CONTEXT = {"allow_extra_args": True}  # for the scheduler


def command(
    ctx: typer.Context,
    as_json: Annotated[bool, flag("Print a JSON document.", "--json")] = False,
    abi: Annotated[
        bool, flag("With --json: add what `check --machine` needs of each MPI.", "--abi")
    ] = False,
    partition: Annotated[
        str, option("P", "Examine nodes of this partition or queue, in a job.", "this machine")
    ] = "",
    nodes: Annotated[int, option("N", "With --partition: number of nodes to compare.", min=1)] = 1,
    time: Annotated[
        str, option("T", "With --partition: wait at most so long, queue included.")
    ] = WAIT,
    full: Full = False,
) -> None:
    """Show every MPI here in a line: how it was found, and over how many transports it runs.

    --full adds each transport, or why it cannot run; network devices, GPUs, launchers, the
    scheduler and the CPU. With --partition, options after -- go to the scheduler, and the result
    is stored for `check --machine`.

    \b
    Examples:
      mpigraft discover --json | jq '.mpis[].id'
      mpigraft discover --partition small --nodes 4 -- --account=project_1
    """
    from mpigraft.core.model import refuse_count
    from mpigraft.core.serialize import document
    from mpigraft.discovery import discover_machine

    full = full or ctx.find_root().params["verbose"]
    if partition:
        refuse_count("--nodes", nodes)
        _through(partition, nodes, time, tuple(ctx.args), full=full, as_json=as_json or abi)
        return
    refuse_alone("--partition", nodes=nodes != 1, time=time != WAIT)
    if ctx.args:
        raise UsageError.of("argument-unknown", word=ctx.args[0])
    with console(stderr=True).status("looking at this machine"):
        machine = discover_machine()
        keys = machine_document(machine, abi=abi) if as_json or abi else {}
    if keys:
        out(document(**keys))
    else:
        _show(machine, full=full)
    tell_machine_limits(machine, machine.mpis)


def _show(machine: Machine, *, full: bool) -> None:
    if full:
        out("\n".join(machine_lines(machine, columns(100))))
    else:
        print_screen(machine_screen(machine), console())


def _through(
    partition: str, nodes: int, time: str, extra: tuple[str, ...], *, full: bool, as_json: bool
) -> None:
    """Show the first node of a partition, and how the others differ from it."""
    from mpigraft.bench import parse_duration
    from mpigraft.cli.common import program
    from mpigraft.core.model import JobRequest
    from mpigraft.core.serialize import document
    from mpigraft.graft import read_machine
    from mpigraft.launch import discover_partition, find_scheduler, keep_document, node_differences

    request = JobRequest(
        folder=str(Path.cwd()),
        name="mpigraft-discover",
        nodes=nodes,
        limit_s=parse_duration(time),
        command=(*program(), "discover", "--json", "--abi"),
        partition=partition,
        extra=extra,
    )
    with console(stderr=True).status(f"waiting for {partition}"):
        documents = discover_partition(find_scheduler(), request)
    first = {key: value for key, value in documents[0].items() if key != "schema"}
    stored = keep_document(partition, document(**first))
    others = node_differences(documents)
    if as_json:
        out(document(**first))
    else:
        _show(read_machine(stored), full=full)
    for host, keys in others:
        tell(f"warning: {host} differs from {first['hostname']}: {', '.join(keys)}")
    tell(f"stored in {stored}")
