"""`mpigraft layout`: where the ranks of a layout would be, and what launchers are told of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.cli.common import Gpus, console, out, place
from mpigraft.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from mpigraft.model import Allocation, Layout, Machine, Placement
    from mpigraft.telling import Told

LONG = 60  # a word of more characters is cut; --json has it whole
SHOWN_LINES = 3  # of a file
STYLES = ("cyan", "magenta", "yellow", "green", "blue", "red")


def command(
    layout: Annotated[
        str | None,
        typer.Argument(
            metavar="LAYOUT",
            help="NODESxRANKS[xTHREADS][:MAP][-BIND][+gpus]: 2x8, 2x8x7:l3cache-numa+gpus.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[int, place("nodes", "1")] = 1,
    per_node: Annotated[int | None, place("ranks-per-node", "none: the node alone")] = None,
    threads: Annotated[int, place("threads")] = 1,
    map_by: Annotated[str | None, place("map-by")] = None,
    bind_to: Annotated[str | None, place("bind-to")] = None,
    gpus: Gpus = False,
    hosts: Annotated[
        str, typer.Option(metavar="N1,N2", help="Nodes by name.", show_default="the allocation's")
    ] = "",
    machine: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another machine, by its `discover --json`."),
    ] = None,
    launcher: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="prrte, orte, hydra, srun, flux, pals, aprun.",
            show_default="those here",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A document for other tools.")] = False,
) -> int:
    """Draw a node with the ranks of a layout, and print each launcher's words for it.

    Nothing is started. A layout without a mapping, a binding or GPUs is left to the launchers, in
    words of their own; of others they are told the CPUs. Numbers are those of ranks on their node,
    a dot is a free core, a plus one that several ranks may use.

    \b
    Examples:
      mpigraft layout
      mpigraft layout 2x8x7:l3cache+gpus --machine lumi-g.json
      mpigraft layout --ranks-per-node 4 --map-by numa --launcher srun
    """  # fmt: skip
    from mpigraft import layouts, telling
    from mpigraft.model import Placement

    flags = (nodes, threads, map_by, bind_to, gpus) != (1, 1, None, None, False)
    if layout and (flags or per_node is not None):
        raise UsageError(f"{layout} and flags both say a layout", mend="give one of the two")
    if flags and per_node is None:
        raise UsageError("how many ranks a node has is not said", mend="add --ranks-per-node")
    here = _machine(machine)
    if per_node is not None:
        layout = layouts.from_flags(nodes, per_node, threads, map_by or "", bind_to or "", gpus)
    asked = layouts.parse(layout, here.cpu.cores) if layout else None
    placed = layouts.place(asked, here.cpu, here.gpus) if asked else Placement()
    told: list[Told] = []
    if asked:
        kinds = launcher or telling.here(here)
        said = layouts.told(asked, here)
        told = list(telling.told(kinds, here, asked, said, _nodes(asked, hosts)))
    if as_json:
        out(_document(here, asked, placed, told))
    else:
        _show(console(), here, asked, placed, told)
    return 0


def _machine(path: Path | None) -> Machine:
    from mpigraft import discover
    from mpigraft.check import saved

    if path:
        return saved.machine(path)
    with console(stderr=True).status("looking at this machine"):
        return discover.machine()


def _nodes(layout: Layout, hosts: str) -> Allocation:
    """Those that were named, those of the job, or names that stand for any."""
    from mpigraft import allocations
    from mpigraft.model import Allocation

    found = allocations.find(os.environ, hosts=hosts)
    if hosts or layout.nodes <= len(found.hosts):
        return found
    return Allocation(tuple(f"node{n}" for n in range(1, layout.nodes + 1)), "made up")


def _document(
    machine: Machine, layout: Layout | None, placed: Placement, told: Sequence[Told]
) -> str:
    from mpigraft.jsonout import document, plain
    from mpigraft.knowledge.gpus import nearest

    keys: dict[str, Any] = {
        "cpu": plain(machine.cpu),
        "gpus": [
            {"index": gpu.index, "vendor": gpu.vendor, "name": gpu.name, "cpus": list(cpus)}
            for gpu, cpus in zip(machine.gpus, nearest(machine.cpu, machine.gpus), strict=True)
        ],
        "layout": {"key": layout.key, **plain(layout)} if layout else None,
        "masks": placed.masks,
        "rank_gpus": placed.gpus,
        "launchers": [
            {**plain(one), "environment": dict(one.environment), "files": dict(one.files)}
            for one in told
        ],
    }
    return document(**keys)


# ------------------------------------------------------------------ for a person


def _show(
    console: Console,
    machine: Machine,
    layout: Layout | None,
    placed: Placement,
    told: Sequence[Told],
) -> None:
    from mpigraft.report import node

    for line in node.title(layout, machine.cpu):
        console.print(line)
    console.print()
    _draw(console, machine, placed)
    if lines := node.ranks(placed):
        console.print("\nCPUs of each rank of a node")
        for line in lines:
            console.print(f"  {line}".rstrip(), soft_wrap=True)
    for one in told:
        console.print()
        for line in _words(one):
            console.print(line, soft_wrap=True)


def _draw(console: Console, machine: Machine, placed: Placement) -> None:
    from rich.text import Text

    from mpigraft.report import node

    for row in node.rows(machine.cpu, machine.gpus, placed):
        line = Text(f"{row.label:{node.LABEL}}")
        for cell in row.cells:
            style = "dim" if cell.rank is None else STYLES[cell.rank % len(STYLES)]
            line.append(cell.text, style=style)
        line.append(f"  {row.note}" if row.note else "")
        line.rstrip()
        console.print(line, soft_wrap=True)


def _words(told: Told) -> Iterator[str]:
    """A launcher's words, broken where a shell lets them be; what is long is cut."""
    yield f"{told.launcher} ({told.mpi})" if told.mpi else told.launcher
    if told.refused:
        yield f"  cannot: {told.refused}"
        return
    for name, value in told.environment:
        yield f"  export {name}={_cut(shlex.quote(value))}"
    line = "  "
    for word in map(_cut, map(shlex.quote, told.words)):
        if len(line) + len(word) > 76 and line.strip():
            yield f"{line}\\"
            line = "      "
        line += f"{word} "
    yield line.rstrip()
    for name, text in told.files:
        lines = text.splitlines()
        yield f"  file {name}:"
        yield from (f"      {_cut(line)}" for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield f"      ... {len(lines)} lines"


def _cut(word: str) -> str:
    return word if len(word) <= LONG else f"{word[: LONG - 3]}..."
