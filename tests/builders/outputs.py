"""What commands print, as tests/data/outputs keeps it: one file an output."""

from __future__ import annotations

import difflib
import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from mpigraft.report import print_screen

FOLDER = Path(__file__).parents[1] / "data/outputs"
COLUMNS = 80
RECORD = "MPIGRAFT_RECORD"  # set it to write the files again, and read what git shows


def assert_output(name: str, text: str, **varying: object) -> None:
    """Fail with the difference unless the file NAME.txt has this text. A value of `varying` is
    <its name> in the file, whose lines are not folded then: a value's length moves the folds."""
    for word, value in varying.items():
        text = re.sub(r"\n +", " ", text).replace(str(value), f"<{word}>")
    file = FOLDER / f"{name}.txt"
    if RECORD in os.environ:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    kept, found = file.read_text(encoding="utf-8").splitlines(), text.splitlines()
    if found != kept:
        pytest.fail("\n".join(difflib.unified_diff(kept, found, str(file), "now", lineterm="")))


def screen_lines(screen: object) -> list[str]:
    """What a terminal of 80 columns shows of a screen."""
    printed = io.StringIO()
    print_screen(screen, Console(file=printed, width=COLUMNS))  # type: ignore[arg-type]
    return printed.getvalue().splitlines()
