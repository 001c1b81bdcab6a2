"""`mpigraft import`: published tables and old outputs, compared like one's own results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.importing import Added

LONGEST_NAME = 100


def command(
    ctx: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Outputs of OSU, IMB, mpigraft-bench.")
    ],
    configuration: Annotated[
        str, typer.Option("--configuration", metavar="NAME", help="What was measured in them.")
    ],
    campaign: Annotated[
        str,
        typer.Option(metavar="NAME", help="Campaign to add to.", show_default="machine or import"),
    ] = "",
    machine: Annotated[str, typer.Option(metavar="M", help="Machine they come from.")] = "",
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes.")] = None,
    ranks_per_node: Annotated[int | None, typer.Option(min=1, help="Ranks on each node.")] = None,
    allocation: Annotated[
        str,
        typer.Option(metavar="A", help="Set of nodes and day; tables are paired within one."),
    ] = "",
) -> None:
    """Add benchmark outputs to an imported campaign, for `compare` and `report`.

    The first configuration is the baseline; the same benchmark again is the next round; a file
    that is there already is not stored twice.

    Example: mpigraft import bibw.txt --configuration cray-mpich@9.1.0 --machine olivia
    """
    from mpigraft import importing
    from mpigraft.store import Store

    told = importing.Told(
        configuration=name("--configuration", configuration),
        campaign=name("--campaign", campaign) if campaign else "",
        machine=name("--machine", machine) if machine else "",
        nodes=nodes or 0,
        ranks_per_node=ranks_per_node or 0,
        allocation=name("--allocation", allocation) if allocation else "",
    )
    tables = [importing.read(path, told) for path in files]  # all, before anything is written
    record, added = importing.add(Store(common.settings(ctx).store), tables, told)
    for one in added:
        common.out("\n".join(lines(one)))
    common.out(f"campaign {record.name} ({record.id[:8]}): mpigraft compare {record.name}")


def name(flag: str, text: str) -> str:
    """A name that can be shown in a table and given again on a command line."""
    if not text.strip() or not text.isprintable() or len(text) > LONGEST_NAME:
        raise UsageError(
            f"{flag} {text[:40]!r} is no name",
            mend=f"give 1 to {LONGEST_NAME} printable characters",
        )
    return text.strip()


def lines(added: Added) -> list[str]:
    """What became of one file, with all that was noticed in it."""
    table = added.table
    if added.rounds:
        number = len(table.parsed.measurements)
        values = "1 value" if number == 1 else f"{number} values"
        rounds = ", ".join(str(n + 1) for n in added.rounds)
        head = f"{table.name}: {values}, round {rounds}, layout {table.layout}"
    else:
        head = f"{table.name}: there already, not stored again"
    told = [head, *(f"  {key}" for key in table.benchmarks)]
    told += [f"  warning: {note}" for note in added.notes]
    return told + [f"  {f.level}: {f.seen}" for f in table.parsed.findings]
