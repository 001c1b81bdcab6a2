"""`mpigraft layout`: where the ranks of a layout would run, and the options of each launcher."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from mpigraft.cli.common import Json, console, examine_machine, find_nodes, option, out
from mpigraft.cli.options import Gpus, Hosts, layout_option
from mpigraft.core.errors import UsageError

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


def command(
    layout: Annotated[
        str | None,
        typer.Argument(
            metavar="LAYOUT",
            help="NODESxRANKS[xTHREADS][:MAP][-BIND][+gpus]: 2x8, 2x8x7:l3cache-numa+gpus.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[int, layout_option("nodes", "1")] = 1,
    per_node: Annotated[int | None, layout_option("ranks_per_node", "no ranks")] = None,
    threads: Annotated[int, layout_option("threads", "1")] = 1,
    map_by: Annotated[str | None, layout_option("map_by")] = None,
    bind_to: Annotated[str | None, layout_option("bind_to")] = None,
    gpus: Gpus = False,
    hosts: Hosts = "",
    machine: Annotated[
        Path | None, option("FILE", "Use another machine: its `discover --json`.")
    ] = None,
    launcher: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Launcher to show: prrte, orte, hydra, srun, flux, pals, aprun; repeatable.",
            "those of this machine",
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

    flags = (nodes, threads, map_by, bind_to, gpus) != (1, 1, None, None, False)
    if layout and (flags or per_node is not None):
        raise UsageError.of("layout-given-twice", layout=layout)
    if flags and per_node is None:
        raise UsageError.of("ranks-per-node-missing")
    here = examine_machine(machine)
    if per_node is not None:
        layout = layout_key(nodes, per_node, threads, map_by or "", bind_to or "", gpus)
    asked = parse_layout(layout, here.cpu.cores) if layout else None
    placed = assign_cpus(asked, here.cpu, here.gpus) if asked else Placement()
    commands: list[RenderedCommand] = []
    if asked:
        kinds = launcher or launchers_here(here)
        allocation = _nodes(asked, hosts)
        placement = placement_for(asked, here, allocation)
        commands = list(render_launchers(kinds, here, asked, placement, allocation))
    if as_json:
        out(_document(here, asked, placed, commands))
    else:
        print_layout(console(), here, asked, placed, commands)
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
