"""What is kept of an answer ends with the rules and tables that it was made by."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.core import fingerprint, messages
from mpigraft.knowledge import cases


def state() -> str:
    """Of files as they are now: a process takes them as they were when it began."""
    return fingerprint.own_state.__wrapped__()


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = folder / "src/mpigraft"
    (top / "knowledge/findings").mkdir(parents=True)
    (top / "__init__.py").write_text("")
    (top / "knowledge/transports.toml").write_text("a = 1\n")
    (top / "judge.py").write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "TOP", str(top))
    return top


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return planted(tmp_path, monkeypatch)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that is worked on."""
    (tmp_path / "pyproject.toml").touch()
    return planted(tmp_path, monkeypatch)


def edited(tree: Path) -> None:
    (tree / "knowledge/transports.toml").write_text("a = 10\n")


def touched(tree: Path) -> None:
    os.utime(tree / "judge.py", (1, 1))  # a tool that sets times back


def added(tree: Path) -> None:
    (tree / "knowledge/findings/more.toml").write_text("")


def removed(tree: Path) -> None:
    (tree / "judge.py").unlink()


@pytest.mark.parametrize("change", [edited, touched, added, removed])
def test_a_change_of_a_table_or_a_rule_is_another_state(
    tree: Path, change: Callable[[Path], None]
) -> None:
    before = state()
    change(tree)
    assert state() != before


def replaced(tree: Path) -> None:
    """As pip does it: every file is a new one, and may have the size and time of the old one."""
    (tree / "new").write_text("")
    shutil.copystat(tree / "__init__.py", tree / "new")
    (tree / "new").replace(tree / "__init__.py")


@pytest.mark.parametrize("change", [edited, added, replaced])
def test_what_is_installed_is_known_by_its_tables_and_its_installation(
    installed: Path, change: Callable[[Path], None]
) -> None:
    before = state()
    change(installed)
    assert state() != before


def test_nobody_edits_the_rules_of_an_installation(installed: Path) -> None:
    """So a start takes no time for them."""
    before = state()
    touched(installed)
    assert state() == before


def test_what_python_writes_beside_them_is_none(tree: Path) -> None:
    before = state()
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__/judge.py").write_text("")
    (tree / "knowledge/transports.toml.lock").write_text("")
    assert state() == before


def test_what_an_editor_leaves_beside_a_table_stops_nothing(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emacs makes a link to nothing, and vim a file of bytes."""
    tables = installed / "knowledge"
    monkeypatch.setattr(messages, "FOLDER", tables / "findings")
    monkeypatch.setattr(cases, "files", lambda _: tables)
    for table in (tables / "findings/own.toml", tables / "cases/own.toml"):
        table.parent.mkdir(exist_ok=True)
        table.write_text('\n[own-row]\nmessage = "good"\n')
        (table.parent / ".#own.toml").symlink_to("user@host.1:2")
        (table.parent / ".own.toml.swp").write_bytes(b"\xff")
    assert state()
    assert messages.message_of("own-row").message == "good"
    assert cases.case_names() == ("own",)
