"""Arguments and standard input of jobs on this machine, under each launcher."""

from __future__ import annotations

import base64
import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.arrival import NOTHING, ODD, RUN, SHOW, SIZES, content, digest, of_size, shown

pytestmark = pytest.mark.mpi

LONG = pytest.mark.long
MPIS = ["openmpi@5", "mpich", pytest.param("intel", marks=LONG)]


@pytest.fixture(scope="module")
def place(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to start from, with a home in it: most starts are the kept one."""
    folder = tmp_path_factory.mktemp("arrival")
    (folder / "home").mkdir()
    (folder / "home/mpi").symlink_to(cache_folder / "home/mpi")
    return folder


@pytest.fixture(autouse=True)
def scratch(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all: a job that is given another TMPDIR is another job, and is planned anew."""
    (place / "scratch").mkdir(exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(place / "scratch"))


@pytest.fixture
def words(
    place: Path, mpis: Mapping[Family, Path], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    del mpis  # they are there
    monkeypatch.setenv("MPIGRAFT_HOME", str(place / "home"))
    return ("--mpi", "openmpi@5", "-n", "2")


def job(*words: str, program: tuple[str, ...]) -> list[str]:
    return [*RUN, *words, "--no-proof", "--", *program]


@pytest.mark.parametrize("mpi", MPIS)
def test_arguments_and_input_arrive(words: tuple[str, ...], mpi: str, tmp_path: Path) -> None:
    """Of all sizes, in a folder with odd names; the later starts are the kept one."""
    odd = tmp_path / "a b\nc é :"
    odd.mkdir()
    for size in SIZES:
        with of_size(tmp_path, size).open("rb") as file:
            read, arguments = shown((*words, "--mpi", mpi), ODD, file, cwd=odd)
            assert file.tell() == size
        assert read == sorted([NOTHING, digest(content(size))])
        assert arguments == list(ODD)


def test_several_programs_get_their_own_arguments(words: tuple[str, ...]) -> None:
    """A colon with a count behind it parts programs, as the manual says; no other one does."""
    show = ("sh", "-c", 'echo "$(printf "%s\\0" "$@" | base64 -w 0)"', "sh")
    argv = job(*words[:2], "-n", "1", program=(*show, *ODD, ":", "-n", "1", *show, ":", "c : d"))
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    due = [b"".join(os.fsencode(word) + b"\0" for word in of) for of in (ODD, (":", "c : d"))]
    assert sorted(map(base64.b64decode, done.stdout.split())) == sorted(due)


def test_a_list_in_a_loop_is_kept(words: tuple[str, ...], tmp_path: Path) -> None:
    """Three kinds of jobs: one that does not read, one that takes a line, and one without input."""
    (tmp_path / "list").write_text("".join(f"{n}\n" for n in range(6)))
    run = " ".join(f"'{word}'" for word in (*RUN, *words, "--no-proof"))
    script = f"""
        while read x; do
            echo "shell $x"
            {run} -- true
            {run} -- sh -c 'if read y; then echo "rank $y"; fi'
            {run} --stdin none -- cat
        done <"$1"
    """
    for stdin in ('"$1"', "/dev/stdin"):
        piped = script.replace('done <"$1"', f"done <{stdin}")
        with (tmp_path / "list").open("rb") as file:
            pipe = subprocess.run(["cat"], stdin=file, capture_output=True).stdout
        done = subprocess.run(
            ["bash", "-c", piped, "sh", tmp_path / "list"],
            input=pipe, capture_output=True, timeout=240,
        )  # fmt: skip
        due = "".join(f"{('shell', 'rank')[n % 2]} {n}\n" for n in range(6))
        assert done.stdout.decode() == due, done.stderr


@pytest.mark.parametrize(
    ("script", "due"),
    [
        ('"$@" <<END\nfirst\nlast\nEND', "first\nlast\n"),
        ('"$@" <&-', ""),
        ('printf abc | "$@"', "abc"),
        ('echo x >d; exec 5<d; rm d; "$@" <&5', "x\n"),
        ('yes | head -n 1000 | "$@" | head -n 1', "y\n"),
        ('nohup "$@" 0>/dev/null 2>/dev/null', ""),
        ('setsid "$@" </dev/null', ""),
        ('"$@" & wait', ""),
        ("mkfifo p; (echo late >p) & \"$@\" <p", "late\n"),
        ('exec <d2; read x; "$@"', "2\n3\n"),
    ],
    ids=["here-document", "closed", "pipe", "deleted", "head", "nohup", "cron", "background",
         "fifo", "rest"],
)  # fmt: skip
def test_everyday_inputs(words: tuple[str, ...], place: Path, script: str, due: str) -> None:
    (place / "d2").write_text("1\n2\n3\n")
    argv = job(*words, program=("cat",))
    done = subprocess.run(
        ["bash", "-c", script, "sh", *argv],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, cwd=place,
    )  # fmt: skip
    assert done.stdout == due, done.stderr


def test_a_terminal_is_read_by_rank_0(words: tuple[str, ...]) -> None:
    main, terminal = pty.openpty()
    argv = job(*words, program=("sh", "-c", 'echo "read: $(cat)"'))
    with subprocess.Popen(
        ["setsid", "-c", *argv], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        os.write(main, b"typed\n\x04")
        out, _ = process.communicate(timeout=120)
    assert sorted(out.splitlines()) == [b"read: ", b"read: typed"]
    os.close(main)
    os.close(terminal)


def test_every_rank_may_read_all_of_it(words: tuple[str, ...], tmp_path: Path) -> None:
    path = of_size(tmp_path, 229_000)
    with path.open("rb") as file:
        assert shown((*words, "--stdin", "all"), stdin=file)[0] == [digest(content(229_000))] * 2
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        read, _ = shown((*words, "--stdin", "all"), stdin=cat.stdout or 0)
    assert read == [digest(content(229_000))] * 2


def test_an_unknown_reader_is_refused(words: tuple[str, ...]) -> None:
    argv = job(*words, "--stdin", "1", program=SHOW)
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--stdin '1' is unknown" in done.stderr
