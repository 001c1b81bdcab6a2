"""The command `mpigraft`: its commands, its global options, and the way errors end it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Sequence
from copy import copy
from importlib import import_module
from itertools import pairwise
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import typer

from mpigraft import __version__
from mpigraft.cli import streams
from mpigraft.cli.common import default_store, flag, lacking_module, option, tell, tell_error
from mpigraft.cli.help import EVERY, CommandGroup, ScreenCommand, show_every_option
from mpigraft.core.errors import MissingError, MpigraftError, UsageError

ALL = "Show every option, in groups, and end."
INTERRUPTED = 128 + signal.SIGINT

# Panels of `mpigraft --help`, and what it says about each command.
PANELS = {
    "This machine": {
        "doctor": "Check what of this installation works here, with the fixes.",
        "completion": "Print what a shell reads to complete command lines.",
        "discover": "Show every MPI here, how it was found, what it can run over.",
        "get": "Fetch an MPI that runs without being installed.",
        "build": "Build an MPI for this machine, with all that it needs.",
        "vars": "Show the variables of MPIs, what set them, how two differ.",
        "layout": "Draw where ranks would run, and the options of launchers.",
    },
    "Program or container": {
        "run": "Start a program on this machine's MPI, with proof.",
        "check": "Check whether a host MPI fits under a container's program.",
        "plan": "Plan how a host MPI goes under a guest: data or a script.",
    },
    "Software stack": {
        "inject": "Put a host MPI under every program of a software stack.",
        "undo": "Switch a stack back to what it had before an injection.",
    },
    "Measure": {
        "bench": "Measure MPIs and transports side by side, with proof.",
        "case": "Print a campaign file for a known application.",
        "submit": "Run a campaign as jobs of a scheduler.",
        "status": "Show the progress of a campaign's jobs.",
        "recheck": "Compare ten minutes of today with the last good state.",
    },
    "Results": {
        "compare": "Compare the configurations of a campaign with its baseline.",
        "diagnose": "Name the known issues that explain what is slow or failed.",
        "report": "Write a campaign as one HTML file that opens offline.",
        "history": "Show campaigns over time, and what changed when.",
        "results": "Show stored results and the evidence behind them.",
        "bundle": "Write a campaign as an archive for a paper or a ticket.",
        "import": "Import results of OSU, IMB or ReFrame, to compare them too.",
        "export": "Export a campaign as CSV, JSON or Parquet.",
    },
    "Application": {
        "profile": "Run a program, and show where its MPI time goes.",
        "record": "Run a program, and write what it calls of MPI for replays.",
        "replay": "Make the MPI calls of a record on an MPI of this machine.",
        "analyse": "Show how an application's all-to-alls differ from a benchmark's.",
    },
}
COMMANDS = {name: panel for panel, commands in PANELS.items() for name in commands}


def named_command(words: Sequence[str]) -> str:
    """Return the command among the words, or "": the folder of --store may have such a name."""
    pairs = pairwise(("", *words))
    return next((one for before, one in pairs if one in COMMANDS and before != "--store"), "")


class Commands(CommandGroup):
    """All commands. Each has the options of the whole tool too; what comes after the command
    counts."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        own: list[Any] = self.params
        for one in own:
            one.rare = one.name == "help_all"
        tool = [one for one in own if one.name != "version"]
        pending: list[Any] = [*self.commands.values()]
        for command in pending:
            for one in command.params:  # a hidden option is shown by --help-all alone
                one.rare, one.hidden = getattr(one, "hidden", False), False
            for taken in map(copy, tool):
                taken.rare, taken.rich_help_panel, taken.expose_value = True, EVERY, False
                taken.default = taken.envvar = None
                if taken.name != "help_all":
                    taken.callback = _take_option
                command.params.append(taken)
            pending += getattr(command, "commands", {}).values()


def load(words: Iterable[str]) -> typer.Typer:
    """Return the application with those commands in full that `words` name. To read the options of
    every command takes longer than all else that --help does, so the others have their line
    only."""
    app = typer.Typer(
        name="mpigraft",
        cls=Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        add_completion=False,  # `mpigraft completion`, which completes values too
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
    )
    app.callback()(settings)
    asked = set(words)
    for name, panel in COMMANDS.items():
        summary = PANELS[panel][name]
        own: Any = {"short_help": summary, "rich_help_panel": panel}
        if name not in asked:
            app.command(name, **own)(_unread)
            continue
        module = import_module("mpigraft.cli." + (f"{name}_" if iskeyword(name) else name))
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, **own)
        else:
            context = getattr(module, "CONTEXT", None)
            app.command(name, cls=ScreenCommand, context_settings=context, **own)(module.command)
    return app


def _take_option(ctx: typer.Context, option: Any, value: Any) -> None:
    root = ctx.find_root()
    if value and option.name == "store":
        root.obj = Path(value)
    elif value:
        root.params["verbose"] = True
        _echo_commands()


def _echo_commands() -> None:
    from mpigraft.core.process import echo_to

    echo_to(lambda line: tell(f"+ {line}", whole=True))


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
        # What cannot be read is named by the store, which says what to do.
        option("FOLDER", "Folder of results.", "XDG data", envvar="MPIGRAFT_STORE", readable=False),
    ] = None,
    verbose: Annotated[bool, flag("Show each command that is started.", "--verbose", "-v")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    help_all: Annotated[
        bool, typer.Option("--help-all", callback=show_every_option, is_eager=True, help=ALL)
    ] = False,
) -> None:
    """Graft this machine's own MPI onto software built elsewhere, and prove how it runs.

    Start with `mpigraft discover`, then `mpigraft bench --quick` and `mpigraft report`. Each
    command has --help, with examples, and --help-all, with every option.
    """
    if verbose:
        _echo_commands()
    del version, help_all  # their callbacks have answered
    ctx.obj = store or default_store()


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
    except streams.OutputLost as error:
        streams.discard(sys.stdout.fileno())
        if error.reader_closed:
            streams.end_by_sigpipe()
        tell(f"mpigraft: cannot write standard output: {error}")
        tell("what to do: make room, or redirect the output; what was measured is stored")
        code = MissingError.exit_code
    sys.exit(code)


def run_command(words: list[str]) -> int:
    """Return the exit code of one command; says on stderr what went wrong."""
    try:
        code = load(words)(words, standalone_mode=False) or 0
    except MpigraftError as error:
        return tell_error(str(error), error.code, error.exit_code)
    except typer.TyperException as error:  # typer has a click of its own: never import click
        if type(error).__name__ == "NoArgsIsHelpError":
            tell(error.format_message())
        else:
            name = _command_of(getattr(error, "ctx", None)) or f" {named_command(words)}".rstrip()
            tell(f"mpigraft: {error.format_message()}\nwhat to do: mpigraft{name} --help")
        return UsageError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except _of_files() as error:
        if "--verbose" in words:
            raise
        return _tell_unforeseen(error)
    except ImportError as error:
        if error.name not in sys.stdlib_module_names or "--verbose" in words:
            raise
        lacking = lacking_module(error)
        return tell_error(str(lacking), lacking.code, lacking.exit_code)
    if code == INTERRUPTED:  # typer makes a code of most interrupts
        kept = "; what was measured is stored" if named_command(words) == "bench" else ""
        tell(f"mpigraft: interrupted{kept}")
    return int(code)


def _of_files() -> tuple[type[Exception], ...]:
    """Name what a file may raise that nobody foresaw; asked only once there is an exception."""
    from mpigraft.binary import ElfError

    return OSError, ElfError


def _tell_unforeseen(error: Exception) -> int:
    path, reason = getattr(error, "filename", None), getattr(error, "strerror", None)
    text = f"{path}: {reason}" if path and reason else str(error)
    lost = MissingError.of("file-lost", error=text or type(error).__name__)
    if isinstance(error, PermissionError):
        lost = MissingError.of("file-forbidden", error=text)
    return tell_error(str(lost), lost.code, lost.exit_code)


def _command_of(ctx: Any) -> str:
    """Name the command whose words were not understood, after a blank; empty: none was."""
    names = []
    while ctx is not None and ctx.parent is not None:
        names.append(f" {ctx.command.name}")
        ctx = ctx.parent
    return "".join(reversed(names))


if __name__ == "__main__":
    main()
