"""`mpigraft inject` and `undo` as commands, on small stacks: which MPI, and which override."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.cli.main import run_command
from mpigraft.core.model import Family
from mpigraft.discovery import inventory
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.stacks import StackFiles, libmpi


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackFiles:
    """Three programs search one override, two another; the machine has two Open MPIs."""
    mpis = []
    for version in ("5.0.11", "5.0.7"):
        mpi = an_mpi(f"openmpi@{version}")
        library = libmpi(tmp_path / version)
        mpis.append(replace(mpi, version=version, libmpi=library, family=Family.OPENMPI))
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(*mpis))
    files = StackFiles(tmp_path / "a stack", [tmp_path / "b site/lib"])
    for name in ("Four/1", "Five/1"):
        files.program(name, overrides=[tmp_path / "a site/lib"])
    for name in ("One/1", "Two/1", "Three/1"):
        files.program(name)
    return files


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = run_command(list(map(str, words)))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_family_with_several_names_the_one_that_is_used(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("inject", stack.root, "--dry-run", "--mpi")
    code, page, notes = run(capsys, *words, "openmpi")
    assert code == 0, page + notes
    assert "openmpi: openmpi@5.0.11 is used; this machine also has openmpi@5.0.7" in notes
    code, _, notes = run(capsys, *words, "openmpi@5.0.7")
    assert code == 0
    assert "is used" not in notes


def test_undo_names_the_override_that_most_search_and_what_is_still_on(
    stack: StackFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page, _ = run(capsys, "undo", stack.root, "--list")
    assert page.startswith(f"{tmp_path}/b site: the stack's own MPI")
    code, page, notes = run(capsys, "inject", stack.root, "--mpi", "openmpi@5.0.11")
    assert code == 0, page + notes
    assert page.count("generation 1 is on") == 2
    code, page, _ = run(capsys, "undo", stack.root)
    assert code == 0
    assert page.startswith(f"{tmp_path}/b site: the stack's own MPI")
    assert f"also on, and not changed: {tmp_path}/a site; --slot names it" in page
    code, page, _ = run(capsys, "undo", stack.root)
    assert page.startswith(f"{tmp_path}/a site: the stack's own MPI")
    assert "also on" not in page


def test_verify_with_a_program_without_mpi_names_its_own_flags(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "inject", stack.root, "--mpi", "openmpi@5.0.11")[0] == 0
    words = ("inject", stack.root, "--verify", "--program", "/bin/true")
    code, _, notes = run(capsys, *words)
    assert code == 2
    assert "/bin/true needs no MPI [verify-not-mpi]" in notes
    assert "--no-proof" not in notes
