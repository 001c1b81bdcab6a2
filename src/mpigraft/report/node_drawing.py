"""What `layout` shows: a node with its sockets, caches and cores, ranks and GPUs, and the command
of each launcher."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpigraft.core.cpuset import format_cpus
from mpigraft.core.model import (
    Core,
    Cpu,
    Gpu,
    Layout,
    Machine,
    Placement,
    RenderedCommand,
    cores_of,
)
from mpigraft.core.text import columns, fold
from mpigraft.knowledge import nearest_cpus

if TYPE_CHECKING:
    from rich.console import Console

FREE, SHARED, NEXT = ".", "+", "|"
SMALL = 6  # caches of fewer cores are side by side
NODE_LABEL = 17  # columns before the cores: "socket 0  NUMA 3 "
INDENT = " " * 6  # of a command's further lines, and of those of a file
LONG = 60  # a word of a command of more characters is cut; --json has it whole
SHOWN_LINES = 3  # of a file
MARGIN = 4  # columns that a line of a command leaves free
STYLES = ("cyan", "magenta", "yellow", "green", "blue", "red")  # of ranks, in turn


@dataclass(frozen=True, slots=True)
class Cell:
    """One core: the rank that has it alone, `+` for several, `.` for none."""

    text: str
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Cores that share a cache or a domain, or some of them where they do not fit into a line."""

    label: str
    cells: tuple[Cell, ...]
    note: str


def print_node(
    console: Console, machine: Machine, layout: Layout | None, placement: Placement
) -> None:
    """Print a node of `machine` with the ranks of `layout`, then the CPUs of each rank."""
    from rich.text import Text

    for line in node_title(layout, machine.cpu):
        console.print(line, soft_wrap=True)
    console.print()
    for row in node_rows(machine.cpu, machine.gpus, placement):
        text = Text(f"{row.label:{NODE_LABEL}}")
        for cell in row.cells:
            text.append(cell.text, "dim" if cell.rank is None else STYLES[cell.rank % len(STYLES)])
        text.append(f"  {row.note}" if row.note else "")
        text.rstrip()
        console.print(text, soft_wrap=True)
    if ranks := node_ranks(placement):
        console.print("\nCPUs of each rank of a node")
        for line in ranks:
            console.print(f"  {line}".rstrip(), soft_wrap=True)


def node_title(layout: Layout | None, cpu: Cpu) -> list[str]:
    """Describe what is drawn, in words."""
    threads = cpu.threads // cpu.cores if cpu.cores else 1
    smt = f" of {threads} hardware threads" if threads > 1 else ""
    node = fold(f"{cpu.model or cpu.architecture}: {cpu.cores} cores{smt}")
    if layout is None:
        return node
    where = f"{layout.ranks_per_node} on each of {layout.nodes} nodes" if layout.nodes > 1 else ""
    dealt = f"dealt over {layout.map_by}" if layout.map_by != "core" else ""
    bound = "not bound" if layout.bind == "none" else f"bound to {layout.bind}"
    cores = f"{layout.threads} cores each" if layout.threads > 1 else ""
    gpus = "each with a GPU" if layout.gpus else ""
    parts = ", ".join(filter(None, (f"{layout.ranks} ranks", where, cores, dealt, bound, gpus)))
    return [*fold(f"layout {layout.key}: {parts}"), *node]


def node_rows(cpu: Cpu, gpus: Sequence[Gpu], placement: Placement) -> Iterator[Row]:
    """Give the cores, a row for each cache, or for each domain of small ones; numbers are those
    of ranks on their node."""
    owners: dict[int, list[int]] = {}
    for rank, mask in enumerate(placement.masks):
        for cpu_number in mask:
            owners.setdefault(cpu_number, []).append(rank)
    near = nearest_cpus(cpu, gpus)
    width = len(str(max(0, len(placement.masks) - 1))) + 1
    noted: set[int] = set()
    before: tuple[int, ...] = ()
    for place, caches in _lines(cpu):
        cells = [
            cell
            for n, cores in enumerate(caches)
            for cell in (*([Cell(NEXT)] if n else []), *(_cell(core, owners) for core in cores))
        ]
        own = {c for cores in caches for core in cores for c in core}
        near_gpus = [n for n, cpus in enumerate(near) if n not in noted and own & set(cpus)]
        noted.update(near_gpus)
        notes = [f"GPU {gpus[n].index}" for n in near_gpus]
        if sharing := sorted({r for c in own for r in owners.get(c, ()) if len(owners[c]) > 1}):
            notes.append(f"{SHARED} ranks {format_cpus(sharing)}")
        room = max(1, (columns() - NODE_LABEL - len("  " + ", ".join(notes))) // width)
        for start in range(0, len(cells), room):
            label = _label(place, before) if start == 0 else ""
            note = ", ".join(notes) if start == 0 else ""
            shown = (Cell(f"{c.text:>{width}}", c.rank) for c in cells[start : start + room])
            yield Row(label, tuple(shown), note)
        before = place


def _cell(core: Sequence[int], owners: dict[int, list[int]]) -> Cell:
    ranks = sorted({rank for c in core for rank in owners.get(c, ())})
    if len(ranks) > 1:
        return Cell(SHARED)
    return Cell(str(ranks[0]), ranks[0]) if ranks else Cell(FREE)


def _lines(cpu: Cpu) -> Iterator[tuple[tuple[int, int], list[list[Core]]]]:
    """((socket, NUMA domain), the cores of each cache) of each line to be drawn."""
    levels = (cpu.socket_cpus, cpu.numa, cpu.l3)
    caches_of: dict[tuple[int, int], dict[int, list[Core]]] = {}
    for core in cores_of(cpu):
        at = [next((n for n, g in enumerate(groups) if core[0] in g), 0) for groups in levels]
        caches_of.setdefault((at[0], at[1]), {}).setdefault(at[2], []).append(core)
    for place, caches in caches_of.items():
        if max(map(len, caches.values())) < SMALL:
            yield place, [*caches.values()]
        else:
            yield from ((place, [cores]) for cores in caches.values())


def _label(place: tuple[int, ...], before: tuple[int, ...]) -> str:
    """Return only what is another than in the row before."""
    socket = f"socket {place[0]}" if place[:1] != before[:1] else ""
    numa = f"NUMA {place[1]}" if place != before else ""
    return f"{socket:10}{numa}"


def node_ranks(placement: Placement) -> list[str]:
    """CPUs and GPU of each rank of a node, several to a line where they are short."""
    words = [
        f"{rank}: {format_cpus(mask)}" + (f" GPU {placement.gpus[rank]}" if placement.gpus else "")
        for rank, mask in enumerate(placement.masks)
    ] or [f"{rank}: GPU {gpu}" for rank, gpu in enumerate(placement.gpus)]
    if not words:
        return []
    width = max(map(len, words)) + 3
    per_line = max(1, (columns() - 2) // width)
    lines = [words[n : n + per_line] for n in range(0, len(words), per_line)]
    return ["".join(f"{word:{width}}" for word in line).rstrip() for line in lines]


def print_layout(
    console: Console,
    machine: Machine,
    layout: Layout | None,
    placed: Placement,
    commands: Sequence[RenderedCommand],
) -> None:
    """Print a node, then the command of each launcher."""
    print_node(console, machine, layout, placed)
    for one in commands:
        console.print()
        for line in _command_lines(one):
            console.print(line, soft_wrap=True)


def _command_lines(command: RenderedCommand) -> Iterator[str]:
    """Yield a launcher's command, folded where a shell allows it; long words are cut."""
    yield f"{command.launcher} ({command.mpi})" if command.mpi else command.launcher
    if command.refused:
        yield from fold(f"cannot: {command.refused}", "  ", 4)
        return
    for name, value in command.environment:
        yield "  export " + _cut(f"{name}={shlex.quote(value)}")
    line = "  "
    for word in map(_cut, map(shlex.quote, command.words)):
        if len(line) + len(word) > columns() - MARGIN and line.strip():
            yield f"{line}\\"
            line = INDENT
        line += f"{word} "
    yield line.rstrip()
    for name, text in command.files:
        lines = text.splitlines()
        yield f"  file {name}:"
        yield from (f"{INDENT}{_cut(line)}" for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield f"{INDENT}... {len(lines)} lines"


def _cut(word: str) -> str:
    longest = min(LONG, columns() - len(INDENT) - MARGIN)
    return word if len(word) <= longest else f"{word[: longest - 3]}..."
