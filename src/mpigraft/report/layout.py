"""What `layout` shows: a node with the ranks of a layout, and each launcher's command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpigraft.report.node_drawing import print_node

if TYPE_CHECKING:
    from rich.console import Console

    from mpigraft.core.model import Layout, Machine, Placement, RenderedCommand

LONG = 60  # a word of more characters is cut; --json has it whole
SHOWN_LINES = 3  # of a file
WIDE = 76  # of a line of a command


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
        yield f"  cannot: {command.refused}"
        return
    for name, value in command.environment:
        yield "  export " + _cut(f"{name}={shlex.quote(value)}")
    line = "  "
    for word in map(_cut, map(shlex.quote, command.words)):
        if len(line) + len(word) > WIDE and line.strip():
            yield f"{line}\\"
            line = "      "
        line += f"{word} "
    yield line.rstrip()
    for name, text in command.files:
        lines = text.splitlines()
        yield f"  file {name}:"
        yield from (f"      {_cut(line)}" for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield f"      ... {len(lines)} lines"


def _cut(word: str) -> str:
    return word if len(word) <= LONG else f"{word[: LONG - 3]}..."
