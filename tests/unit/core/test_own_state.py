"""What is kept of an answer ends with the rules and tables that it was made by."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.core import fingerprint


def state() -> str:
    """Of files as they are now: a process takes them as they were when it began."""
    return fingerprint.own_state.__wrapped__()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge/transports.toml").write_text("a = 1\n")
    (tmp_path / "judge.py").write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "TOP", str(tmp_path))
    return tmp_path


def edited(tree: Path) -> None:
    (tree / "knowledge/transports.toml").write_text("a = 10\n")


def touched(tree: Path) -> None:
    os.utime(tree / "judge.py", (1, 1))


def added(tree: Path) -> None:
    (tree / "knowledge/more.toml").write_text("")


def removed(tree: Path) -> None:
    (tree / "judge.py").unlink()


@pytest.mark.parametrize("change", [edited, touched, added, removed])
def test_a_change_of_a_table_or_a_rule_is_another_state(
    tree: Path, change: Callable[[Path], None]
) -> None:
    before = state()
    change(tree)
    assert state() != before


def test_what_python_writes_beside_them_is_none(tree: Path) -> None:
    before = state()
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__/judge.py").write_text("")
    (tree / "knowledge/transports.toml.lock").write_text("")
    assert state() == before
