"""Make man pages and completions from the commands.

`make dist` puts them into an archive of a `share` folder, which goes beside the `bin` of an
installation: man and bash look there for programs in PATH.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from typer.main import get_command

from mpigraft import __version__
from mpigraft.cli.complete import BASH
from mpigraft.cli.main import COMMANDS, PANELS, load
from mpigraft.core.errors import MpigraftError

EXAMPLES = "\b\nExamples:\n"


def share() -> dict[str, str]:
    """Give the text of each file below `share/`."""
    app: Any = get_command(load(COMMANDS))
    pages = {"mpigraft": _page("mpigraft", app, _groups())}
    for name, command in app.commands.items():
        below = getattr(command, "commands", {})
        parts = [
            part for one in below.values() for part in _body(f"mpigraft {name} {one.name}", one)
        ]
        pages[f"mpigraft-{name}"] = _page(f"mpigraft {name}", command, parts)
    files = {f"man/man1/{name}.1": text for name, text in pages.items()}
    return {**files, "bash-completion/completions/mpigraft": BASH}


def _page(name: str, command: Any, more: Iterable[str]) -> str:
    title = name.replace(" ", "-")
    first, _, _ = _text(command).partition("\n")
    summary = first.rstrip(".")
    head = [
        f'.TH {title.upper()} 1 "" "mpigraft {__version__}" "mpigraft"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(summary[:1].lower() + summary[1:])}",
    ]
    others = ["mpigraft"] if title != "mpigraft" else [f"mpigraft-{one}" for one in COMMANDS]
    links = ", ".join(rf"\fB{_escaped(one)}\fR(1)" for one in others)
    codes = [line for code, text in _exit_codes() for line in _item(code, text)]
    tail = [".SH EXIT STATUS", *codes, ".SH SEE ALSO", links]
    return "\n".join([*head, *_body(name, command), *more, *tail]) + "\n"


def _body(name: str, command: Any) -> Iterator[str]:
    """Yield usage, text, options and examples of a command."""
    text, _, examples = _text(command).partition(EXAMPLES)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (".SH SYNOPSIS", rf"\fB{_escaped(name)}\fR {_escaped(usage)}".rstrip())
    yield ".SH DESCRIPTION"
    for paragraph in text.strip().split("\n\n"):
        yield from (".PP", _escaped(" ".join(paragraph.split())))
    panels: dict[str, list[str]] = {}
    for one in command.get_params(context):
        record = None if one.param_type_name == "argument" else one.get_help_record(context)
        if record:
            panels.setdefault(one.rich_help_panel or "Options", []).extend(_item(*record))
    for panel, lines in panels.items():
        yield from (".SH OPTIONS" if panel == "Options" else f".SH {panel.upper()}", *lines)
    if examples:
        yield from (".SH EXAMPLES", ".nf", _escaped(inspect.cleandoc(examples)), ".fi")


def _text(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _exit_codes() -> Iterator[tuple[str, str]]:
    yield "0", "All is well."
    for kind in sorted(MpigraftError.__subclasses__(), key=lambda one: one.exit_code):
        yield str(kind.exit_code), (inspect.getdoc(kind) or "").partition("\n\n")[0]


def _groups() -> Iterator[str]:
    for panel, commands in PANELS.items():
        yield f".SH {panel.upper()}"
        for name, text in commands.items():
            yield from _item(f"mpigraft-{name}(1)", text)


def _item(name: str, text: str) -> tuple[str, str, str]:
    return (".TP", rf"\fB{_escaped(name)}\fR", _escaped(" ".join(text.split())))


def _escaped(text: str) -> str:
    """Escape what groff takes for a request or a character of its own."""
    safe = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", safe, flags=re.MULTILINE)
