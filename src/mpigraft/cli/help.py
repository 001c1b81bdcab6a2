"""Help of commands: what most people need on one screen, and every option in panels."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from mpigraft.core.errors import UsageError

SCREEN = 23  # lines: of 24, the prompt takes one
FEWEST = 2  # examples, where the screen is too small
EVERY = "Every command"
LIMIT = "Input should be "  # how typer begins its reason
OF_PROGRAM = ("program", "words")  # words of what a command starts: they may be empty
EXAMPLES = "\b\nExamples:\n"
WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^ ])+""")  # of a shell, with its quotes


class ScreenCommand(TyperCommand):
    """A command whose help fits a screen, and which refuses empty values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an empty value, as of a variable that is not set, and name a value of another
        type."""
        words = self.make_parser(ctx).parse_args(args=list(args))[0]
        for one in self.get_params(ctx):
            given = words.get(one.name)
            if one.param_type_name == "argument" and one.name in OF_PROGRAM:
                continue
            if "" in (given if isinstance(given, list | tuple) else [given]):
                raise UsageError.of("value-empty", place=_named(one))
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            wanted = error.message.removeprefix(LIMIT).partition(",")[0]
            given = words.get(error.param.name) if error.param else None
            if isinstance(given, list):  # the first that is no number, as typer reads them
                given = next((one for one in given if not _is_number(one)), given[-1])
            if wanted == error.message or not isinstance(given, str):
                raise
            raise UsageError.of(
                "value-type",
                place=_named(error.param),
                wanted=wanted,
                value=repr(given),
                advice=f"mpigraft {ctx.command.name} --help shows what it takes",
            ) from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the longest text that leaves room for the options that most people need."""
        below = ctx.make_formatter()
        _write_options(below, ctx, every=False)
        for text in _shorter(inspect.cleandoc(self.help or "")):
            above = ctx.make_formatter()
            _write_text(above, ctx, text)
            screen = f"{above.getvalue()}\n{below.getvalue()}"
            if screen.count("\n") <= SCREEN:
                break
        formatter.write(screen)


class CommandGroup(TyperGroup):
    """A command with others below it, in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_text(formatter, ctx, inspect.cleandoc(self.help or ""))
        _write_options(formatter, ctx, every=False)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a line for each command, in one column over all panels."""
        below: list[Any] = [self.commands[name] for name in self.list_commands(ctx)]
        width = max(len(one.name) for one in below)
        panels = dict.fromkeys(one.rich_help_panel or "Commands" for one in below)
        for panel in panels:
            commands = (one for one in below if (one.rich_help_panel or "Commands") == panel)
            rows = [(f"{one.name:{width}}", one.get_short_help_str(200)) for one in commands]
            with formatter.section(panel):
                formatter.write_dl(rows)


def _is_number(word: str) -> bool:
    return word.lstrip("+-").isdecimal()


def _named(param: Any) -> str:
    """Name a parameter as it is typed."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    return max(map(str, param.opts), key=len)


def show_every_option(ctx: typer.Context, wanted: bool) -> None:
    """Print the whole help, and end: the callback of --help-all."""
    if wanted and not ctx.resilient_parsing:
        formatter: Any = ctx.make_formatter()
        _write_text(formatter, ctx, inspect.cleandoc(ctx.command.help or ""))
        _write_options(formatter, ctx, every=True)
        typer.echo(formatter.getvalue().rstrip("\n"))
        raise typer.Exit


def _shorter(text: str) -> Iterator[str]:
    """Yield the text of a command, then its first paragraph with fewer and fewer examples."""
    yield text
    first, examples = text.partition("\n\n")[0], text.partition(EXAMPLES)[2].splitlines()
    for count in range(len(examples), min(len(examples), FEWEST) - 1, -1):
        yield "\n".join([first, "", EXAMPLES + "\n".join(examples[:count])])


def _write_text(formatter: Any, ctx: Any, text: str) -> None:
    ctx.command.format_usage(ctx, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(_folded(text, formatter.width - formatter.current_indent + 2))


def _write_options(formatter: Any, ctx: Any, *, every: bool) -> None:
    """Write the options that most people need in one list, or every one in its panel."""
    command: Any = ctx.command
    params = [one for one in command.get_params(ctx) if not one.hidden]
    arguments = [one for one in params if one.param_type_name == "argument"]
    options = [one for one in params if one not in arguments]
    if every:
        panels = {"Arguments": arguments}
        for one in options:
            panels.setdefault(_panel(one, ctx), []).append(one)
    else:
        usual = [one for one in options if not getattr(one, "rare", True)]
        panels = {"Arguments and options" if arguments else "Options": [*arguments, *usual]}
    for panel, shown in panels.items():
        if not shown:
            continue
        table = [_row(one, ctx) for one in shown]
        names = min(30 if formatter.width >= 70 else 20, max(len(one) for one, _ in table))
        if not every:
            room = formatter.width - names - 4
            table = [_brief(*row, one.help, room) for row, one in zip(table, shown, strict=True)]
        with formatter.section(panel):
            formatter.write_dl(table, names)
    if isinstance(command, CommandGroup):
        command.format_commands(ctx, formatter)
    if not every:
        formatter.write_paragraph()
        formatter.write(f"--help-all shows all {len(options)} options.\n")


def _panel(option: Any, ctx: typer.Context) -> str:
    """Name the panel of an option; every command has that of its --help."""
    own = option.name != "help" or ctx.parent is None
    return option.rich_help_panel or ("Options" if own else EVERY)


def _row(param: Any, ctx: typer.Context) -> tuple[str, str]:
    """Give the name of a parameter and its help; of an argument without a type of Python."""
    name, text = param.get_help_record(ctx)
    return name.partition(" <")[0] if param.param_type_name == "argument" else name, text


def _brief(name: str, whole: str, text: str, width: int) -> tuple[str, str]:
    """Keep what fits in one line: the text with the default, the text, or its first sentence."""
    first, more, _ = text.partition(". ")
    short = f"{first}." if more else text
    return name, next((one for one in (whole, text) if len(one) <= width), short)


def _folded(text: str, width: int) -> str:
    """Fold the examples that are wider than the terminal, as a shell takes them."""
    before, block, examples = text.partition(EXAMPLES)
    return before + block + "\n".join(_fold(line, width) for line in examples.splitlines())


def _fold(line: str, width: int) -> str:
    indent = " " * 2
    lines = [""]
    if len(line) <= width:
        return line
    for word in WORD.findall(line):
        if lines[-1] and len(f"{indent}{lines[-1]} {word} \\") > width:
            lines[-1] += " \\"
            lines.append(indent + word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(indent + one for one in lines)
