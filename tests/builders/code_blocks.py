"""Code blocks of the documentation, and the marks that say which test runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARK = re.compile(r"<!-- (not run: (?P<why>\S.*)|run by (?P<test>tests/\S+\.py)) -->")


class Block(NamedTuple):
    page: Path
    line: int
    text: str
    mark: str  # the comment above it; empty: it is run here


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced or indented block, with its mark: a comment above it."""
    lines = ["", *page.read_text(encoding="utf-8").splitlines(), ""]
    mark, number = "", 1
    while number < len(lines):
        begin, line, before = number, lines[number], lines[number - 1]
        number += 1
        if line.startswith("```"):
            number = lines.index("```", number) + 1
        elif line.startswith("    ") and (not before or before.startswith("#")):
            while "".join(lines[number : number + 2]).startswith("    "):  # over an empty line too
                number += 1
        else:
            mark = line if line.startswith("<!-- ") else mark if not line else ""
            continue
        yield Block(page, begin, "\n".join(lines[begin:number]), mark)
        mark = ""


def commands_for(test: str, *pages: str) -> list[str]:
    """Return the command lines of the blocks whose mark names this test file, in page order; of all
    pages, or of these.

    Of a block with prompts these are the lines behind `$ `; the others are output."""
    path = Path(test).resolve().relative_to(ROOT)
    lines = []
    for page in map(ROOT.joinpath, pages) if pages else PAGES:
        for block in blocks(page):
            if (mark := MARK.fullmatch(block.mark)) and mark["test"] == str(path):
                rows = block.text.replace("\\\n", " ").splitlines()
                typed = [row.strip() for row in rows if row.strip() and not row.startswith("`")]
                asked = [row[2:] for row in typed if row.startswith("$ ")]
                lines += asked or typed
    return lines


def shortened(line: str) -> str:
    """Return the line with few rounds of short messages where it measures; of every MPI here, where
    it names none, with one of them."""
    words, mark, comment = line.partition("#")
    if not words.startswith("mpigraft bench") or "--dry-run" in words:
        return line
    words = words.replace("--rounds 20", "").rstrip() + " --rounds 2 --ms-per-size 0.2 --max 64"
    one = "" if "--mpi" in words else "--mpi openmpi@5"
    return f"{words} {one} --wait  {mark}{comment}"


def typed(line: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line of a page in a shell that has `mpigraft`."""
    ours = f'mpigraft() {{ {sys.executable} -m mpigraft.cli.entry "$@"; }}'
    return subprocess.run(
        ["sh", "-c", f"{ours}\n{line}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip
