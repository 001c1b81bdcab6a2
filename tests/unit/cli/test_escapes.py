"""Other people's texts reach a terminal without commands to it, and forge no line."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.cli import common
from mpigraft.cli.console import Console
from mpigraft.core.errors import UsageError
from mpigraft.core.messages import Lines, message_of
from mpigraft.core.model import Finding, Level
from mpigraft.core.text import terminal_safe

EVIL = "\x1b[2J\x1b]0;title\x07\x9b31mx\u202e\nmpigraft: fits: yes\r"
OBEYED = set("\x1b\x07\x9b\r\u202e")


@pytest.mark.parametrize(
    "one",
    [
        UsageError.of("file-unusable", path=EVIL, reason=OSError(EVIL)),
        Finding.of("file-unusable", path=EVIL, reason=EVIL, level=Level.ERROR),
    ],
    ids=["error", "finding"],
)
def test_no_value_of_a_message_forges_a_line(one: UsageError | Finding) -> None:
    assert "\n" not in one.message
    assert not OBEYED & set(one.message)
    assert r"\x1b[2J" in one.message


def test_lines_of_a_launch_stay_lines() -> None:
    row = message_of("file-unusable").fill({"path": "x", "reason": Lines(f"one\ntwo{EVIL}")})
    assert "one\ntwo" in row.message
    assert not OBEYED & set(row.message)


@pytest.mark.parametrize("door", [common.out, common.tell], ids=["out", "tell"])
def test_what_is_printed_commands_no_terminal(
    door: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(door)
    door(f"a\tb\n{EVIL}")
    printed = "".join(capsys.readouterr())
    assert printed.startswith("a\tb\n")
    assert not OBEYED & set(printed)


def test_a_console_passes_on_its_own_controls_alone() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, markup=False, color_system="standard")
    console.print(EVIL, style="bold")
    printed = stream.getvalue()
    assert "\x1b[1m" in printed
    assert "\x1b[2J" not in printed
    assert not {"\x07", "\x9b", "\u202e"} & set(printed)


def test_every_console_is_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert type(common.console()) is Console


@given(st.text())
def test_safe_text_is_safe_and_stays_so(text: str) -> None:
    safe = terminal_safe(text)
    assert not OBEYED & set(safe)
    assert terminal_safe(safe) == safe
    if text.isprintable():
        assert safe == text


def test_a_script_is_exact_but_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common.out("A='\x1b'", exact=True)
    assert capsys.readouterr().out == "A='\x1b'\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    common.out("A='\x1b'", exact=True)
    assert "\x1b" not in capsys.readouterr().out
