"""The command `mpigraft`: its commands, its global options, and the way errors end it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from mpigraft import __version__
from mpigraft.cli import streams
from mpigraft.cli.common import Settings, default_store, tell
from mpigraft.errors import MissingError, MpigraftError, UsageError

INTERRUPTED = 128 + signal.SIGINT

# What `mpigraft --help` says of each command.
COMMANDS = {
    "discover": "Show every MPI here, how it was found, what it can run over.",
    "check": "Say whether a host MPI fits under a container's program.",
    "plan": "Put a host MPI under a guest, as data or as a script.",
    "vars": "Show the variables of MPIs, who set which, and how two differ.",
    "get": "Fetch an MPI that runs without being installed.",
    "run": "Start a program on this machine's MPI, with proof.",
    "layout": "Draw where ranks would be, and what launchers are told.",
    "bench": "Measure MPIs and transports side by side, with proof.",
    "submit": "Run a campaign as jobs of a scheduler.",
    "status": "Show how far the jobs of a campaign are.",
    "compare": "Compare the configurations of a campaign with its baseline.",
    "report": "Write a campaign as one HTML file that opens offline.",
    "import": "Add published OSU or IMB outputs, to be compared likewise.",
    "results": "Look at stored results and at the evidence behind them.",
}


def load(words: Iterable[str]) -> typer.Typer:
    """The application with those commands in full that `words` name, or all while a shell asks
    for completions. To read the options of every command takes longer than all else that
    --help does, so the others have their line only."""
    app = typer.Typer(
        name="mpigraft",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
    )
    app.callback()(settings)
    asked = set(COMMANDS) if "_MPIGRAFT_COMPLETE" in os.environ else set(words)
    for name, summary in COMMANDS.items():
        if name not in asked:
            app.command(name, help=summary)(_unread)
            continue
        module = import_module("mpigraft.cli." + (f"{name}_" if iskeyword(name) else name))
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, short_help=summary)
        else:
            context = getattr(module, "CONTEXT", None)
            app.command(name, short_help=summary, context_settings=context)(module.command)
    return app


def _unread() -> None:
    raise AssertionError("a command that was named is read in full")


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"mpigraft {__version__}\n")
        raise typer.Exit


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
        from mpigraft import run

        run.verbose = lambda line: tell(f"+ {line}")
    del version  # _version has answered
    ctx.obj = Settings(store=store or default_store(), verbose=verbose)


def _end(number: int, _: object) -> None:
    sys.exit(128 + number)


def main(argv: list[str] | None = None) -> None:
    """Run one command and end the process with its exit code.

    Without `argv` this is the program mpigraft itself, whose streams and signals it rules.
    """
    words = sys.argv[1:] if argv is None else argv
    if argv is None:
        streams.guard()
    for number in (signal.SIGTERM, signal.SIGHUP):  # a time limit, a lost terminal: end in order
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants the latter ignored
            signal.signal(number, _end)
    try:
        code = run_command(words)
        sys.stdout.flush()
    except streams.OutputLost as lost:
        streams.discard(sys.stdout.fileno())
        if lost.reader_left:
            streams.end_by_sigpipe()
        tell(f"mpigraft: standard output cannot be written: {lost}")
        tell("what to do: make room, or print to another place; what was measured is stored")
        code = MissingError.code
    sys.exit(code)


def run_command(words: list[str]) -> int:
    """The exit code of one command; says on stderr what went wrong."""
    try:
        code = load(words)(words, standalone_mode=False) or 0
    except MpigraftError as error:
        tell(f"mpigraft: {error}")
        return error.code
    except typer.TyperException as error:  # typer has a click of its own: never import click
        if type(error).__name__ == "NoArgsIsHelpError":
            tell(error.format_message())
        else:
            tell(f"mpigraft: {error.format_message()}\nwhat to do: mpigraft COMMAND --help")
        return UsageError.code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer makes a code of most interrupts
        command = next((word for word in words if word in COMMANDS), "")
        kept = "; what was measured is stored" if command == "bench" else ""
        tell(f"mpigraft: interrupted{kept}")
    return int(code)


if __name__ == "__main__":
    main()
