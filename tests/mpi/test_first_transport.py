"""The tutorial of a developer's first transport, typed in a copy of the tree that may change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.builders.code_blocks import ROOT, blocks, shortened, typed

pytestmark = [pytest.mark.mpi, pytest.mark.long]

PAGE = ROOT / "docs/tutorials/first-transport.md"
TABLE = "src/mpigraft/knowledge/transports.toml"
NATIVES = "src/mpigraft/native/prebuilt"
Type = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tree(mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path) -> Path:
    """What the tutorial changes and uses of a clone."""
    tree = tmp_path / "clone"
    without = shutil.ignore_patterns("__pycache__", "prebuilt")
    for folder in ("src/mpigraft", "docs/reference", "tools"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=without)
    (tree / NATIVES).symlink_to(ROOT / NATIVES)
    return tree


@pytest.fixture
def type_in(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Type:
    monkeypatch.setenv("PYTHONPATH", str(tree / "src"))
    monkeypatch.setenv("MPIGRAFT_STORE", str(tree / "results"))

    def type_line(line: str) -> subprocess.CompletedProcess[str]:
        words = line.replace(".venv/bin/mpigraft", "mpigraft").replace(
            ".venv/bin/python", sys.executable
        )
        return typed(shortened(words), cwd=tree, timeout=240, env=dict(os.environ))

    return type_line


def commands(mark: str) -> Iterator[str]:
    for block in blocks(PAGE):
        if mark in block.mark and not block.text.startswith("```"):
            yield from (line.strip() for line in block.text.splitlines())


def test_each_step_ends_as_the_page_says(tree: Path, type_in: Type) -> None:
    (row,) = [b.text[7:-3] for b in blocks(PAGE) if b.text.startswith("```toml")]
    discover, measure, document = commands(f"run by {Path(__file__).relative_to(ROOT)}")
    unknown, wrong = commands("it has to fail")

    seen = type_in(discover)
    ours = seen.stdout.partition("\nmpich@5")[2].partition("\n\n")[0]
    assert "sockets" in ours.partition("libfabric")[2].splitlines()[0], seen.stderr
    assert "ofi-sockets" not in seen.stdout

    refused = type_in(unknown)
    assert (refused.returncode, "transport-unknown" in refused.stderr) == (2, True), refused.stderr

    table = tree / TABLE
    before = table.read_text()

    def with_row(*changes: tuple[str, str]) -> None:
        text = row
        for old, new in (('expect = "tcp"', 'expect = "sockets"'), *changes):
            assert text.count(old) == 1
            text = text.replace(old, new)
        table.write_text(before + text)

    table.write_text(f"{before}{row}```")
    unreadable = type_in(wrong)
    assert (unreadable.returncode, "transports.toml: not a TOML" in unreadable.stderr) == (2, True)

    table.write_text(before + row)
    caught = type_in(wrong)
    assert caught.returncode == 5, caught.stderr
    assert "requested ofi-sockets, ran sockets" in caught.stderr

    with_row()
    measured = type_in(measure)
    assert measured.returncode == 0, measured.stderr
    assert "proven: mpich@5.0.2/ofi-sockets 1x2: sockets" in measured.stderr

    for change in (('FI_PROVIDER = "sockets"', 'FI_PROVIDER = "tcp"'), ('"bytes"', '"none"')):
        with_row(change)
        broken = type_in(wrong)
        assert broken.returncode == 5, (change, broken.stderr)

    with_row()
    done = type_in(document)
    assert done.returncode == 0, done.stderr
    assert "ofi-sockets" in (tree / "docs/reference/transports.md").read_text()
