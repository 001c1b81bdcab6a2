"""`mpigraft results`: what the store holds, and what really ran behind each figure."""

from __future__ import annotations

import typer

from mpigraft.cli import common
from mpigraft.cli.help import CommandGroup, ScreenCommand
from mpigraft.core.errors import NotJudged

app = typer.Typer(
    cls=CommandGroup,
    help="Show stored results.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("list", cls=ScreenCommand)
def list_(ctx: typer.Context, as_json: common.Json = False) -> None:
    """List the campaigns of the store, oldest first.

    \b
    Examples:
      mpigraft results list
    """
    from mpigraft.report import render_stored

    common.out(render_stored(common.store_of(ctx), as_json=as_json))


@app.command("show", cls=ScreenCommand)
def show(
    ctx: typer.Context,
    campaign: common.Campaign = None,
    as_json: common.Json = False,
    full: common.Full = False,
) -> None:
    """Show for each configuration what was requested, what ran, and how that is known.

    The exit code is 6 where no configuration of a campaign that was run has evidence.

    \b
    Examples:
      mpigraft results show nightly --json
    """
    from mpigraft.core.model import Origin
    from mpigraft.report import print_screen, render_stored, stored_screen

    store = common.store_of(ctx)
    record = store.campaign(campaign)
    if full or as_json:
        common.out(render_stored(store, record, as_json=as_json))
    else:
        print_screen(stored_screen(store, record), common.console())
    evidence = store.evidence(record.id)
    if record.origin is Origin.RUN and not any(e.evidence.ran for e in evidence):
        raise NotJudged.of("nothing-proven", name=record.name, campaign=record.id[:8])
