"""The help of each command fits a screen, and shows every option where it is asked to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from typer.main import get_command

from mpigraft.cli.help import SCREEN
from mpigraft.cli.main import COMMANDS, PANELS, load, run_command
from tests.builders.messages import shows

APP: Any = get_command(load(COMMANDS))
EVERY: dict[tuple[str, ...], Any] = {
    **{(name,): one for name, one in APP.commands.items()},
    **{("results", name): one for name, one in APP.commands["results"].commands.items()},
}
MOST = 12  # options in a help on one screen
OF_OPTIONS = {
    "What to measure", "What to run", "Container or stack", "Where", "How long", "Output", "Proof",
    "Profile", "Stored plans", "Options", "Every command",
}  # fmt: skip

Help = Callable[..., list[str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Help:
    """The lines that a command prints on a terminal of a width."""

    def lines(*words: str, columns: int = 80) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert run_command([*words]) == 0
        return capsys.readouterr().out.splitlines()

    return lines


def shown(lines: list[str]) -> list[str]:
    """The options of a help, each spelling, below the text."""
    panels = re.split(r"^[A-Z][a-z ]+:$", "\n".join(lines), flags=re.MULTILINE)[1:]
    rows = re.findall(r"^  (-.+?)(?:  |$)", "\n".join(panels), re.MULTILINE)
    return [word for row in rows for word in re.findall(r"(?<!\S)--?[a-z][a-z-]*", row)]


def spellings(options: list[Any]) -> list[str]:
    return [word for one in options for word in (*one.opts, *one.secondary_opts)]


def options_of(words: tuple[str, ...]) -> list[Any]:
    return [one for one in EVERY[words].params if one.param_type_name == "option"]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_fits_a_screen(words: tuple[str, ...], printed: Help) -> None:
    lines, options = printed(*words, "--help"), options_of(words)
    common = [one for one in options if not one.rare]
    assert len(common) <= MOST
    assert sorted(shown(lines)) == sorted(spellings(common))
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80
    assert shows(lines[-1], "--help-all", len(options) + 1)  # -h too
    if words != ("results",):
        assert shows("\n".join(lines).partition("Examples:")[2], " ".join(("mpigraft", *words)))


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_the_whole_help_has_every_option_in_a_panel(words: tuple[str, ...], printed: Help) -> None:
    lines, options = printed(*words, "--help-all"), options_of(words)
    assert sorted(shown(lines)) == sorted([*spellings(options), "-h", "--help"])
    headings = [line[:-1] for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    assert {one.rich_help_panel or "Options" for one in options} == {*headings} & OF_OPTIONS
    assert {*headings} <= OF_OPTIONS | {"Arguments", "Commands"}


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_a_narrow_terminal_is_not_exceeded(
    words: tuple[str, ...], flag: str, printed: Help
) -> None:
    """But by a word of an example that a shell reads as one."""
    for line in printed(*words, flag, columns=60):
        assert len(line) <= 60 or " " not in re.sub(r"'[^']*'", "", line.strip(" \\")), line


def test_every_command_has_a_panel(printed: Help) -> None:
    lines = printed("--help")
    sections = "\n".join(lines).split("\n\n")
    for panel, commands in PANELS.items():
        section = next(one for one in sections if one.startswith(f"{panel}:\n"))
        assert re.findall(r"^  (\w+)  ", section, re.MULTILINE) == [*commands]
    assert sum(map(len, PANELS.values())) == len(COMMANDS) == len(APP.commands)
    assert {one.rich_help_panel for one in APP.commands.values()} == {*PANELS}


def test_the_help_of_the_tool_is_the_same_with_every_command_read(printed: Help) -> None:
    whole = {name: one.get_short_help_str(200) for name, one in APP.commands.items()}
    assert whole == {n: text for commands in PANELS.values() for n, text in commands.items()}
    assert shown(printed("--help")) == ["--store", "-v", "--verbose", "--version"]
    assert {"--help", "--help-all"} <= {*shown(printed("--help-all"))}


def test_an_example_is_folded_as_a_shell_takes_it(printed: Help) -> None:
    text = "\n".join(printed("inject", "--help-all", columns=60))
    assert re.sub(r" \\\n +", " ", text).count("2023.06 --mpi openmpi@5 --dry-run\n") == 1


def test_a_group_of_commands_is_listed_once(printed: Help) -> None:
    """Where a word follows, its command is loaded last."""
    headings = [line for line in printed("--help", "results") if line.endswith(":")]
    assert len(headings) == len({*headings})
