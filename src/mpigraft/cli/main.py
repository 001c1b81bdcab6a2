"""The command `mpigraft`: its commands, its global options, and the way errors end it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from mpigraft import __version__
from mpigraft.cli import bench, compare, discover, get, import_, report, results
from mpigraft.cli.common import Settings, default_store
from mpigraft.errors import MpigraftError

app = typer.Typer(
    name="mpigraft",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)

app.command("discover")(discover.command)
app.command("get")(get.command)
app.command("bench")(bench.command)
app.command("compare")(compare.command)
app.command("report")(report.command)
app.command("import")(import_.command)
app.add_typer(results.app, name="results")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"mpigraft {__version__}\n")
        raise typer.Exit


@app.callback()
def settings(
    ctx: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder of results.", envvar="MPIGRAFT_STORE", show_default="XDG data"),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each command that is started.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Graft this machine's own MPI onto software built elsewhere, and prove how it runs.

    Start with `mpigraft discover`, then `mpigraft bench --quick` and `mpigraft report`.
    """
    if verbose:
        from mpigraft import env, run

        run.verbose = lambda line: print(f"+ {env.redact(line)}", file=sys.stderr)
    del version  # _version has answered
    ctx.obj = Settings(store=store or default_store(), verbose=verbose)


def main(argv: list[str] | None = None) -> None:
    """Run one command and end the process with its exit code."""
    try:
        code = app(argv, standalone_mode=False) or 0
    except MpigraftError as error:
        code = error.code
        print(f"mpigraft: {error}", file=sys.stderr)
    except typer.TyperException as error:  # typer has a click of its own: never import click
        code = 2
        print(f"mpigraft: {error.format_message()}", file=sys.stderr)
        print("what to do: mpigraft COMMAND --help", file=sys.stderr)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
        print("mpigraft: interrupted; what was measured is stored", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


if __name__ == "__main__":
    main()
