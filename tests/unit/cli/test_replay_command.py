"""`mpigraft replay`, `record` and `profile` before anything starts: words, places, files."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from mpigraft.cli.main import run_command
from mpigraft.trace import make_ladder
from tests.unit.trace.record.test_exchanges import an_exchange

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("a solver.record")
    path.write_bytes(make_ladder(an_exchange(random.Random(3), 4))[-1].data)
    return path


def run(*words: object) -> int:
    return run_command([str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--gaps", "abc"), "replay-gaps"),
        (("--gaps", "nan"), "replay-gaps"),
        (("--gaps", "-1"), "replay-gaps"),
        (("--gaps", ""), "value-empty"),
        (("--only", "Alltoall"), "replay-only"),
        (("--only", "Alltoallv,Foo"), "replay-only"),
        (("--only", ""), "value-empty"),
        (("--phase", "99"), "phase-unknown"),
    ],
)
def test_words_are_checked_before_ranks_start(
    solver: Path, words: tuple[str, ...], code: str, capsys: Captured
) -> None:
    assert run("replay", solver, *words) == 2
    assert f"[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["replay", "analyse"])
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda _: b"", "record-foreign"),
        (lambda _: os.urandom(500), "record-foreign"),
        (lambda data: data[: len(data) // 2], "record-damaged"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "record-damaged"),
        (None, "record-unreadable"),
    ],
)
def test_a_file_that_is_no_record_is_refused(
    solver: Path, command: str, spoil: object, code: str, capsys: Captured
) -> None:
    if callable(spoil):
        solver.write_bytes(spoil(solver.read_bytes()))
    else:
        solver.unlink()
    assert run(command, solver) == 2
    assert f"[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["record", "profile"])
@pytest.mark.parametrize(
    ("place", "code", "error"),
    [
        ("no folder/a", 2, "folder-missing"),
        (".", 2, "output-is-folder"),
        ("a file/a", 2, "folder-missing"),
        ("/proc/a", 3, "profile-unwritable"),
    ],
)
def test_a_place_for_output_is_tried_before_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, place: str, code: int,
    error: str, capsys: Captured,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    assert run(command, "-o", place, "--", "touch", "started") == code
    assert f"[{error}]" in capsys.readouterr().err
    assert not Path("started").exists()


def test_routines_are_named_as_people_name_them(solver: Path) -> None:
    from mpigraft.trace import read_record_file

    file = read_record_file(solver)
    for words in ("Alltoallv", "MPI_Alltoallv", "mpi_alltoallv,", " alltoallv "):
        assert file.match_routines(words, solver) == "Alltoallv"
    assert file.match_routines("p2p Alltoallv", solver) == "p2p,Alltoallv"


@pytest.mark.parametrize(
    "words", [("replay", "/dev/zero"), ("analyse", "/dev/zero"), ("profile", "--show", "/dev/null")]
)
def test_a_device_is_no_file_of_ours(words: tuple[str, ...], capsys: Captured) -> None:
    assert run(*words) == 2
    assert "-foreign]" in capsys.readouterr().err
