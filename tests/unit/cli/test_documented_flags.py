"""Every command line in the documentation uses commands and flags that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from mpigraft.cli.main import COMMANDS, load

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
APP = get_command(load(COMMANDS))


def flags_of(command: object) -> set[str]:
    """Every spelling of a command's options, and of those of its subcommands."""
    found = {"--help"}
    for parameter in getattr(command, "params", ()):
        found.update((*parameter.opts, *parameter.secondary_opts))
    for below in getattr(command, "commands", {}).values():
        found |= flags_of(below)
    return found


KNOWN = {name: flags_of(command) for name, command in APP.commands.items()}  # type: ignore[attr-defined]


def unknown_flags(text: str) -> Iterator[str]:
    """Flags behind `mpigraft COMMAND`, up to a comment or the program, that it does not have."""
    joined = text.replace("\\\n", " ")
    for command, words in re.findall(r"mpigraft ([a-z]+)([^`|#\n]*)", joined):
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", words.split(" -- ")[0]):
            if flag not in KNOWN.get(command, {flag}):
                yield f"{command} {flag}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_flags_exist(page: Path) -> None:
    assert not list(unknown_flags(page.read_text(encoding="utf-8")))


def test_unknown_flag_is_noticed() -> None:
    assert KNOWN.keys() == COMMANDS.keys()
    line = "mpigraft run --image a.sif --sett A=1 \\\n    --explain -- app --sett\nmpigraft get --x"
    assert list(unknown_flags(line)) == ["run --sett", "get --x"]


@pytest.mark.parametrize("name", APP.commands)  # type: ignore[attr-defined]
def test_a_flag_is_not_taken_for_the_default_of_another(name: str) -> None:
    """`--except` stood where help shows a default, and the option was called `--exceptions`."""
    for parameter in APP.commands[name].params:  # type: ignore[attr-defined]
        assert not str(getattr(parameter, "show_default", "")).startswith("-"), parameter.opts
