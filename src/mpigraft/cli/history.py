"""`mpigraft history`: the campaigns of a machine over time, and when they changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpigraft.cli import common
from mpigraft.cli.common import Json, option, out, refuse_unknown_gate, store_of, tell
from mpigraft.core.text import printable

GATES = ("slower",)


def command(
    ctx: typer.Context,
    machine: Annotated[
        str, option("WORD", "Show machines whose name or CPU contains this word.", "all")
    ] = "",
    layout: Annotated[str, option("NODESxRANKS", "Show this layout.", "all")] = "",
    last: Annotated[int, option("N", "Read the last N campaigns.", "all", "--last", min=0)] = 0,
    output: Annotated[
        Path | None, option("FILE", "Write a page.", False, "--output", "-o", panel="Output")
    ] = None,
    junit: Annotated[
        Path | None,
        option("FILE", "Write the lines as JUnit XML, for a pipeline.", False, panel="Output"),
    ] = None,
    json: Json = False,
    full: common.Full = False,
    accept: Annotated[
        str, option("CAMPAIGN", "Call a campaign a good state, and print nothing else.", False)
    ] = "",
    fail_on: Annotated[
        str | None,
        option("|".join(GATES), "Exit 1 when a line is slower than before, and not accepted."),
    ] = None,
) -> None:
    """Show the campaigns of a machine over time: a line for each configuration, with its changes.

    A line keeps its configuration while versions change. Each change says what changed then.

    \b
    Examples:
      mpigraft history
      mpigraft history -o history.html --last 90
      mpigraft history --accept 1f2e3d4c
      mpigraft history --fail-on slower --junit history.xml
    """
    from mpigraft.cli.report import check, write
    from mpigraft.report import History, render_history

    refuse_unknown_gate(fail_on, GATES)
    for path in filter(None, (output, junit)):
        check(path)
    store = store_of(ctx)
    if accept:
        record = store.campaign(accept)
        store.accept(record.id)
        out(f"campaign {record.id[:8]} ({printable(record.name)}) is a good state from now on")
        return
    data = History.load(store, last=last, machine=machine, layout=layout)
    if json:
        out(data.json())
    else:
        data.show(common.console(), full=full)
    if output:
        write(output, render_history(data))
        tell(f"wrote {output}")
    if junit:
        write(junit, data.junit().decode())
    if fail_on:
        data.refuse_worse()
