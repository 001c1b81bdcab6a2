"""`mpigraft layout`: where the ranks of a layout would run, and the options of each launcher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from mpigraft.cli.common import Json, console, examine_machine, find_nodes, option, out
from mpigraft.cli.options import takes_request
from mpigraft.core.errors import UsageError
from mpigraft.request import Asked, JobPlacement

if TYPE_CHECKING:
    from mpigraft.core.model import Allocation, Cpu, Layout, Machine, Placement, RenderedCommand
    from mpigraft.core.serialize import Keys

    LayoutKeys = Annotated[dict[str, Any], Layout, Keys(key=str)]


class NearGpu(TypedDict):
    """A GPU of the node."""

    index: int
    vendor: str
    name: str
    cpus: list[int]  # nearest to it; empty: not known


class LayoutDocument(TypedDict):
    """Where the ranks of a layout would be on a node, and the options of launchers for it."""

    cpu: Cpu
    gpus: list[NearGpu]
    layout: LayoutKeys | None  # null: none was requested
    masks: Sequence[Sequence[int]]  # CPUs of each rank of a node; empty: nothing is bound
    rank_gpus: Sequence[int]  # index of the GPU of each rank of a node; empty: none is chosen
    launchers: Sequence[RenderedCommand]


@takes_request(
    only=("nodes", "ranks_per_node", "threads", "map_by", "bind_to", "gpus", "hosts"),
    usual={"nodes": "1", "threads": "1", "ranks_per_node": "no ranks"},
)
def command(
    *,
    layout: Annotated[
        str | None,
        typer.Argument(
            metavar="LAYOUT",
            help="NODESxRANKS[xTHREADS][:MAP][-BIND][+gpus]: 2x8, 2x8x7:l3cache-numa+gpus.",
            show_default=False,
        ),
    ] = None,
    asked: Asked[JobPlacement],
    machine: Annotated[
        Path | None, option("FILE", "Use another machine: its `discover --json`.", panel="Where")
    ] = None,
    launcher: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Launcher to show: prrte, orte, hydra, srun, flux, pals, aprun; repeatable.",
            "those of this machine",
            panel="Output",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Draw a node with the ranks of a layout, and print the options that launchers need for it.

    Nothing is started. Without a mapping, a binding or GPUs, launchers place the ranks with options
    of their own; otherwise they get lists of CPUs. A number is a rank on its node, a dot a free
    core, a plus a core that several ranks may use.

    \b
    Examples:
      mpigraft layout
      mpigraft layout 2x8x7:l3cache+gpus --machine lumi-g.json
      mpigraft layout --ranks-per-node 4 --map-by numa --launcher srun
    """  # fmt: skip
    from mpigraft.core.model import Placement, layout_key, parse_layout
    from mpigraft.launch import assign_cpus, launchers_here, placement_for, render_launchers
    from mpigraft.report import print_layout

    where, ranks = asked.value, "ranks_per_node" in asked.given
    nodes, threads = (getattr(where, k) if k in asked.given else 1 for k in ("nodes", "threads"))
    flags = (nodes, threads) != (1, 1) or where.places
    if layout and (flags or ranks):
        raise UsageError.of("layout-given-twice", layout=layout)
    if flags and not ranks:
        raise UsageError.of("ranks-per-node-missing")
    here = examine_machine(machine)
    if ranks:
        layout = layout_key(
            nodes, where.ranks_per_node, threads, where.map_by, where.bind_to, where.gpus
        )
    chosen = parse_layout(layout, here.cpu.cores) if layout else None
    placed = assign_cpus(chosen, here.cpu, here.gpus) if chosen else Placement()
    commands: list[RenderedCommand] = []
    if chosen:
        kinds = launcher or launchers_here(here)
        allocation = _nodes(chosen, where.hosts)
        placement = placement_for(chosen, here, allocation)
        commands = list(render_launchers(kinds, here, chosen, placement, allocation))
    if as_json:
        out(_document(here, chosen, placed, commands))
    else:
        print_layout(console(), here, chosen, placed, commands)
    return 0


def _nodes(layout: Layout, hosts: str) -> Allocation:
    """Return those that were named, those of the job, or placeholders."""
    from mpigraft.core.model import Allocation

    allocation = find_nodes(hosts)
    if hosts or layout.nodes <= len(allocation.hosts):
        return allocation
    return Allocation(tuple(f"node{n}" for n in range(1, layout.nodes + 1)), "made up")


def _document(
    machine: Machine, layout: Layout | None, placed: Placement, commands: Sequence[RenderedCommand]
) -> str:
    from mpigraft.core.serialize import document, plain, row_of
    from mpigraft.knowledge import nearest_cpus

    near = nearest_cpus(machine.cpu, machine.gpus)
    keys = LayoutDocument(
        cpu=machine.cpu,
        gpus=[row_of(NearGpu, g, cpus=list(c)) for g, c in zip(machine.gpus, near, strict=True)],
        layout={"key": layout.key, **plain(layout)} if layout else None,
        masks=placed.masks,
        rank_gpus=placed.gpus,
        launchers=commands,
    )
    return document(**keys)
