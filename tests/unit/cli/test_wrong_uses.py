"""Wrong uses of each command: an exit code of the documentation, what was seen, and what to do."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from mpigraft.binary import ElfError
from mpigraft.cli import main
from mpigraft.discovery import inventory
from tests.builders.commands import Run
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.forged import command, honest_store
from tests.builders.messages import shows
from tests.unit.store.test_store_users import HONEST, as_user, shared

__all__ = ("shared",)  # a fixture
BAD, MISSING = 2, 3
ENTRY = (sys.executable, "-m", "mpigraft.cli.entry")
LIMIT_S = 60.0

# A command line, its exit code, what of it the message names, and a part of what to do.
WRONG = [
    ("bench --hosts= --dry-run", BAD, "--hosts is empty", "give a value"),
    ("bench --hostfile= --dry-run", BAD, "--hostfile is empty", "give a value"),
    ("bench --ssh-command= --dry-run", BAD, "--ssh-command is empty", "give a value"),
    ("bench --hosts a,,b --dry-run", BAD, "'' is not a host name", "commas"),
    ("bench --hostfile nothere --dry-run", BAD, "nothere: No such file", "check the path"),
    ("bench --max 4XB --dry-run", BAD, "'4XB'", "--max 4MiB"),
    ("bench --rounds 0 --dry-run", BAD, "--rounds is 0", "above 0"),
    ("bench --rounds few --dry-run", BAD, "'few'", "bench --help"),
    ("bench --benchmark latancy --dry-run", BAD, "'latancy'", "latency"),
    ("bench --mpi nosuch --dry-run", MISSING, "'nosuch'", "one of those"),
    ("doctor --nope", BAD, "--nope", "mpigraft doctor --help"),
    ("bench --share 3/2 --resume", BAD, "'3/2'", "K/J"),
    ("bench nothere.toml", BAD, "nothere.toml", "check the path"),
    ("bench junk", BAD, "junk: not a TOML file", "correct the file"),
    ("compare --baseline ''", BAD, "--baseline is empty", "leave it out"),
    ("compare ''", BAD, "CAMPAIGN is empty", "leave it out"),
    ("compare --margin abc", BAD, "'abc'", "3%"),
    ("compare --fail-on never", BAD, "'never'", "slower-cell"),
    ("compare a b c", BAD, "(c)", "compare --help"),
    ("report -o nothere/x.html", BAD, "no folder", "create it"),
    ("report nosuch", BAD, "'nosuch' names no campaign", "give one of"),
    ("results show nosuch", BAD, "'nosuch' names no campaign", "give one of"),
    ("results shwo", BAD, "'shwo'", "mpigraft results --help"),
    ("export --format xml", BAD, "'xml'", "--format csv"),
    ("bundle nosuch", BAD, "'nosuch' names no campaign", "give one of"),
    ("history nosuch", BAD, "nosuch", "mpigraft history --help"),
    ("status nosuch", BAD, "'nosuch'", "one of"),
    ("recheck", MISSING, "good state", "--accept"),
    ("recheck --minutes soon", BAD, "'soon'", "recheck --help"),
    ("submit camp.toml --nodes two", BAD, "'two'", "submit --help"),
    ("submit camp.toml --time 0", BAD, "'0'", "30m"),
    ("submit camp.toml --chain 101", BAD, "100, not '101'", "submit --help"),
    ("submit camp.toml --scheduler lsf --dry-run", BAD, "lsf", "slurm"),
    ("check --image nope.sif", BAD, "no file or folder nope.sif", "give the path"),
    ("check --image junk", BAD, "neither a folder nor an image", "unpack"),
    ("check ''", BAD, "is empty", "give a value"),
    ("plan --image nope.sif --mpi openmpi@5", BAD, "no file or folder nope.sif", "give the path"),
    ("run --image nope.sif -- /opt/app", BAD, "no file or folder nope.sif", "give the path"),
    ("run -n 0 -- /bin/ls", BAD, "-n 0", "a number"),
    ("run -n x -- /bin/ls", BAD, "'x'", "run --help"),
    ("run -n 2", BAD, "PROGRAM", "mpigraft run --help"),
    ("run -- ./nothere", BAD, "./nothere: no such program", "give the path"),
    ("run -- -n 2 ./nothere", BAD, "-n is no program", "options of mpigraft come before it"),
    ("run --no-proof --env X -- /bin/ls", BAD, "'X'", "NAME=VALUE"),
    ("profile --show junk", BAD, "junk", "name such a file"),
    ("record -n 2", BAD, "PROGRAM", "mpigraft record --help"),
    ("replay junk", BAD, "junk is no record", "mpigraft record"),
    ("analyse junk", BAD, "junk is no record", "mpigraft record"),
    ("layout 0x0", BAD, "'0x0'", "2x8"),
    ("vars --mpi nosuch", MISSING, "'nosuch'", "one of those"),
    ("case nosuch", BAD, "nosuch", "give one of"),
    ("get nosuch", BAD, "'nosuch'", "one of"),
    ("get openmpi --version ''", BAD, "--version is empty", "give a value"),
    ("build nosuch", BAD, "'nosuch'", "give one of"),
    ("import junk", BAD, "junk", "whole stdout"),
    ("inject nothere --mpi openmpi@5", BAD, "nothere", "check the path"),
    ("undo nothere", BAD, "nothere", "check the path"),
    ("discover --partition ''", BAD, "--partition is empty", "give a value"),
    ("frobnicate", BAD, "'frobnicate'", "mpigraft --help"),
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, replace_everywhere: Callable[[ModuleType, str, object], None]) -> Path:
    """A folder with a store, a campaign file and a file of nothing, on a machine with one MPI."""
    machine = a_machine(an_mpi("openmpi@5.0.11"))
    replace_everywhere(inventory, "discover_machine", lambda: machine)
    honest_store(tmp_path / "store")
    (tmp_path / "junk").write_text("garbage\n")
    (tmp_path / "camp.toml").write_text('benchmark = ["latency"]\n')
    return tmp_path


@pytest.mark.parametrize(("line", "code", "seen", "advice"), WRONG, ids=[row[0] for row in WRONG])
@pytest.mark.usefixtures("here")
def test_a_wrong_use(run: Run, line: str, code: int, seen: str, advice: str) -> None:
    ended = run(*shlex.split(line))
    assert ended.code == code, ended
    assert ended.err.startswith("mpigraft: ")
    assert "Traceback" not in ended.err
    assert seen in ended.err.partition("what to do: ")[0]
    assert advice in ended.err
    assert "what to do: " in ended.err


@pytest.mark.usefixtures("here")
def test_an_empty_word_of_a_program_is_its_own(run: Run) -> None:
    assert "is empty" not in run("run", "-n", "1", "--dry-run", "--", "/bin/ls", "").err


@pytest.mark.parametrize(
    ("error", "named", "code"),
    [
        (
            OSError(5, "Input/output error", "/site/file"),
            "/site/file: Input/output error",
            "file-lost",
        ),
        (OSError("odd"), "odd", "file-lost"),
        (OSError(), "OSError", "file-lost"),
        (ElfError("libmpi.so.40: cut short"), "libmpi.so.40: cut short", "file-lost"),
        (PermissionError(13, "Permission denied", "/home"), "/home: Permission", "file-forbidden"),
    ],
)
def test_a_file_that_goes_in_the_middle_is_no_traceback(
    run: Run,
    replace_everywhere: Callable[[ModuleType, str, object], None],
    error: Exception,
    named: str,
    code: str,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    replace_everywhere(inventory, "discover_machine", fails)
    ended = run("discover")
    assert ended.code == MISSING
    assert shows(ended.err, named, code)
    with pytest.raises(type(error)):
        main.run_command(["--verbose", "discover"])


@pytest.mark.parametrize("verb", [("check",), ("plan", "--mpi", "openmpi")])
@pytest.mark.parametrize("other", ["app.sif", "./app.sif", "b.sif"])
def test_two_images_are_refused(run: Run, verb: tuple[str, ...], other: str) -> None:
    ended = run(*verb, other, "--image", "app.sif")
    assert ended.code == BAD
    assert shows(ended.err, "--image app.sif", "image-given-twice")


@pytest.mark.parametrize("words", [("history",), ("results", "list"), ("compare",), ("status",)])
def test_a_store_that_is_no_folder_is_named_as_that(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", "/dev/null"):
        ended = run("--store", place, *words)
        assert ended.code == MISSING
        assert shows(ended.err, f"the store {place}", f"{place} is no folder", "store-no-folder")


@pytest.mark.parametrize("words", [("history",), ("results", "list"), ("compare",), ("status",)])
def test_a_store_that_is_closed_to_this_user_is_named_as_that(
    run: Run, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = os.listdir

    def refuse(path: Path) -> list[str]:
        if path == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return names(path)

    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(os, "listdir", refuse)
    ended = run("--store", tmp_path, *words)
    assert ended.code == MISSING
    assert shows(ended.err, f"the store {tmp_path}", "Permission denied", "store-unreadable")


# ------------------------------------------------------------------ its streams and its home


def started(
    *words: object, environ: dict[str, str] | None = None, shell: str = ""
) -> subprocess.CompletedProcess[bytes]:
    line = [*ENTRY, *map(str, words)]
    argv = ["bash", "-c", f"{shlex.join(line)} {shell}"] if shell else line
    return subprocess.run(
        argv, env={**os.environ, **(environ or {})}, stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip


ON_STORE = ("compare", "compare --full", "results show", "history", "export")


@pytest.mark.parametrize("line", [*ON_STORE, "bench --list", "layout 1x2", "run --help-all"])
def test_output_of_ascii_alone(here: Path, line: str) -> None:
    ascii_ = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
              "PYTHONIOENCODING": "ascii:strict"}  # fmt: skip
    done = started("--store", here / "store", *line.split(), environ=ascii_)
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).isascii()


@pytest.mark.parametrize("line", [*ON_STORE, "bench --list", "layout 1x2", "run --help-all"])
def test_a_closed_pipe(here: Path, line: str) -> None:
    done = started(
        "--store", here / "store", *line.split(), shell="| head -1; exit ${PIPESTATUS[0]}"
    )
    assert done.returncode in (0, 141), done.stderr
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    "line", ["compare", "bench --dry-run", "submit camp.toml --scheduler slurm --dry-run"]
)
@pytest.mark.parametrize("name", ["MPIGRAFT_HOME", "MPIGRAFT_STORE"])
def test_a_home_that_is_a_file(here: Path, line: str, name: str) -> None:
    """As one that cannot be read or written, for root too."""
    done = started(*line.split(), environ={name: str(here / "junk/home")})
    assert b"Traceback" not in done.stderr
    assert done.returncode in (BAD, MISSING), done
    assert b"what to do: " in done.stderr


@pytest.mark.root
@pytest.mark.parametrize(
    "line", ["compare", "history", "export", "recheck --dry-run", "submit camp.toml --dry-run"]
)
def test_a_home_that_may_not_be_read(
    shared: Path, here: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (shared / "home").mkdir(mode=0o700)
    (shared / "camp.toml").write_text((here / "camp.toml").read_text())
    monkeypatch.setenv("HOME", str(shared / "home"))
    monkeypatch.setenv("MPIGRAFT_HOME", str(shared / "home/mpigraft"))
    monkeypatch.chdir(shared)

    command("--store", shared / "store", *line.split())  # imports what users may not read

    def use() -> None:
        ended = command(*line.split())
        assert ended.code == MISSING, ended
        assert "Traceback" not in ended.err
        assert "what to do: " in ended.err

    as_user(HONEST, 0o022, use)


def test_a_dry_run_refuses_a_store_that_cannot_be_written(run: Run, here: Path) -> None:
    """As the real command does, which had measured or submitted nothing then."""
    for line in ("bench --dry-run", "recheck --accept --dry-run",
                 "submit camp.toml --scheduler slurm --dry-run"):  # fmt: skip
        ended = run("--store", here / "junk/store", *line.split())
        assert ended.code == MISSING, ended
        assert shows(ended.err, "junk is no folder", "store-no-folder")
        assert ended.out == ""
