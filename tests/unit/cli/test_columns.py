"""Nothing that a command prints is wider than COLUMNS, in a pipe too."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from mpigraft.cli.common import tell_error
from mpigraft.store import Store
from tests.builders.commands import Ended, Run
from tests.builders.overtime import MACHINE, campaign, keep

COLUMNS = 60
DATA = Path(__file__).resolve().parents[2] / "data"
STORES = sorted([*DATA.glob("store/*.sqlite"), *DATA.glob("kept/*.sqlite")])
OF_A_STORE = (
    "compare", "compare --full", "history", "history --full", "results list", "results show",
    "results show --full",
)  # fmt: skip
OF_TWO = ("compare night1 night3", "compare night1 night3 --full", "history", "compare night3")
PROFILES = sorted(path for path in DATA.glob("profiles/*") if path.suffix != ".md")


@pytest.fixture
def narrow(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a narrow pipe, and checks its lines."""

    def check(*words: object) -> Ended:
        monkeypatch.setenv("COLUMNS", str(COLUMNS))
        ended = run(*words)
        assert ended.out
        for line in ended.out.splitlines():
            assert len(line) <= COLUMNS or is_word(line), line
        return ended

    return check


def is_word(line: str) -> bool:
    """Whether a line is a word that is not cut, so that it can be copied, behind its label."""
    return len(line.split()) <= 2 or bool(re.search(rf"\S{{{COLUMNS - 24},}}", line))


@pytest.mark.parametrize("words", OF_A_STORE)
@pytest.mark.parametrize("file", STORES, ids=lambda path: path.stem)
def test_a_kept_store(file: Path, words: str, narrow: Run, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    shutil.copy(file, tmp_path / "store")
    narrow(*words.split())


@pytest.mark.parametrize("words", OF_TWO)
def test_campaigns_over_time(words: str, narrow: Run, tmp_path: Path) -> None:
    keep(
        Store(tmp_path / "store"),
        campaign(1),
        campaign(3, level=lambda *_: 1.3, machine={**MACHINE, "kernel": "6.12.1"}),
    )
    narrow(*words.split())


@pytest.mark.parametrize("flags", [(), ("--full",)])
@pytest.mark.parametrize("file", PROFILES, ids=lambda path: path.name)
def test_profiles(file: Path, flags: tuple[str, ...], narrow: Run) -> None:
    narrow("profile", "--show", file, *flags)


@pytest.mark.parametrize("words", ["layout 2x8", "layout 1x2", "get --list", "plan --list", "case"])
def test_this_machine(words: str, narrow: Run) -> None:
    narrow(*words.split())


@pytest.mark.parametrize("terminal", [True, False])
def test_messages_are_folded_on_a_terminal_alone(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    tell_error("a file is not what it was " * 4 + "\nwhat to do:" + " look at it" * 9, "code", 2)
    lines = capsys.readouterr().err.splitlines()
    assert (max(map(len, lines)) <= COLUMNS) is terminal, lines
    assert len(lines) == 2 or terminal
