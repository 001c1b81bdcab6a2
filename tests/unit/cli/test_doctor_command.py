"""`mpigraft doctor`: what is broken here is named, with its fix; the mounts are real ones."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mpigraft.cli.main import run_command
from mpigraft.core.storage import existing, free_mib
from mpigraft.native import loading
from mpigraft.native.programs import PREBUILT
from mpigraft.trace import make_ladder
from tests.builders.commands import Run
from tests.builders.messages import matches, shows
from tests.unit.trace.record.test_exchanges import an_exchange

MACHINE = os.uname().machine
NODES = "null zero random urandom"
NO_SHM = f"""
mount -t tmpfs none "$1"
for node in {NODES}; do touch "$1/$node"; mount --bind "/dev/$node" "$1/$node"; done
mount --rbind "$1" /dev
"""


def doctor(tmp_path: Path, mounted: str = "", **variables: str) -> tuple[int, dict[str, Any]]:
    """Exit code and document of the command, behind these mounts; $1 is its MPIGRAFT_HOME."""
    home = tmp_path / "home"
    for folder in (home, tmp_path / "tmp"):
        folder.mkdir(exist_ok=True)
    own = {"MPIGRAFT_HOME": str(home), "TMPDIR": str(tmp_path / "tmp")}
    environ = {**os.environ, **own, **variables}
    argv = [sys.executable, "-m", "mpigraft", "doctor", "--json"]
    script = f'set -e; {mounted}\nshift; exec "$@"'
    words = ["unshare", "-m", "sh", "-c", script, "sh", str(home), *argv] if mounted else argv
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout)


def levels(document: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["level"] for one in document["checks"]}


def problem(document: dict[str, Any], name: str) -> dict[str, Any]:
    """The first finding of a check."""
    (check,) = (one for one in document["checks"] if one["name"] == name)
    return dict(check["findings"][0])


@pytest.mark.root
@pytest.mark.parametrize(
    ("mounted", "name", "level", "code", "words"),
    [
        ('mount -t tmpfs -o noexec none "$1"', "home", "error", "folder-noexec", "MPIGRAFT_HOME"),
        ('mount -t tmpfs -o ro none "$1"', "home", "error", "doctor-unwritable", "Read-only"),
        ('mount -t tmpfs -o size=512k none "$1"', "home", "error", "doctor-unwritable", "No space"),
        ('mount -t tmpfs -o size=90m none "$1"', "home", "warning", "doctor-room", " MiB free"),
        ('mount -t tmpfs -o noexec none "$1/../tmp"', "temporary", "warning",
         "folder-noexec", "TMPDIR"),
        ('mount -t tmpfs -o ro none "$1/../tmp"', "temporary", "error", "doctor-unwritable",
         "TMPDIR"),
        (NO_SHM, "memory", "error", "doctor-no-memory", "/dev/shm does not exist"),
        ("mount -t tmpfs -o size=99m none /dev/shm", "memory", "warning", "doctor-small-memory",
         "/dev/shm has 99 MiB"),
        ("mount -t tmpfs -o size=9m none /dev/shm", "memory", "error", "shm-full", "9 of 9 MiB"),
    ],
)  # fmt: skip
def test_a_mount_of_no_use_is_named(
    tmp_path: Path, mounted: str, name: str, level: str, code: str, words: str
) -> None:
    ended, document = doctor(tmp_path, mounted)
    assert (levels(document)[name], problem(document, name)["code"]) == (level, code)
    assert shows(" ".join(map(str, problem(document, name).values())), words)
    assert problem(document, name)["fix"]
    assert ended == (not document["ok"])
    assert document["ok"] == (level == "warning")
    assert shows(document["answer"], name)


def test_the_answer_is_first_and_each_check_a_row(run: Run) -> None:
    ended = run("doctor")
    first, blank, *rows = ended.out.splitlines()
    assert ended.code == 0, ended.out
    assert shows(first, "mpigraft works here")
    assert not blank
    assert [row.split()[1] for row in rows[:3]] == ["python", "packages", "programs"]
    assert max(len(row) for row in rows if "/" not in row) <= 80  # no path is broken
    assert shows(ended.out, f"C programs for {MACHINE} load on glibc")


def test_a_broken_engine_and_a_missing_home_are_rows(tmp_path: Path) -> None:
    podman = tmp_path / "podman"
    podman.write_text("#!/bin/sh\necho no storage >&2; exit 1\n")
    podman.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended, document = doctor(tmp_path, PATH=path)
    assert (ended, levels(document)["engines"]) == (0, "warning")
    assert problem(document, "engines")["code"] == "engine-no-version"
    assert shows(problem(document, "engines")["why"], "no storage")
    ended, document = doctor(tmp_path, MPIGRAFT_HOME="/dev/null/home")
    assert (ended, problem(document, "home")["code"]) == (1, "doctor-unwritable")


def test_a_python_without_one_of_its_own_modules_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As where it was built without the headers of liblzma."""
    record = tmp_path / "some.record"
    record.write_bytes(make_ladder(an_exchange(random.Random(3), 4))[-1].data)
    assert run_command(["analyse", str(record)]) == 0
    capsys.readouterr()
    monkeypatch.delitem(sys.modules, "lzma")
    monkeypatch.setitem(sys.modules, "_lzma", None)
    assert run_command(["analyse", str(record)]) == 3
    assert matches(capsys.readouterr().err, "python-module", name="lzma", python=sys.executable)
    assert run_command(["doctor"]) == 1
    assert matches(capsys.readouterr().out, "python-module", name="lzma")
    with pytest.raises(ImportError):
        run_command(["--verbose", "analyse", str(record)])


def test_a_user_without_a_home_folder_gets_the_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody() -> Path:
        raise RuntimeError

    for name in ("MPIGRAFT_HOME", "MPIGRAFT_STORE", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    for words in (["doctor"], ["results", "list"], ["get", "--list"]):
        assert run_command(words) == 3
        assert matches(capsys.readouterr().err, "home-missing")


def test_a_narrow_terminal_is_not_exceeded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in (["doctor"], ["get", "--list"]):
        assert run_command(words) == 0
        assert max(len(one) for one in capsys.readouterr().out.splitlines() if "/" not in one) <= 60


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the C programs, in a folder with a blank in its name."""
    folder = tmp_path / "a copy"
    shutil.copytree(PREBUILT, folder)
    monkeypatch.setattr(loading, "PREBUILT", folder)
    return folder / MACHINE


def test_each_program_is_started(programs: Path) -> None:
    total, reasons = loading.failing_programs(MACHINE)
    every = [path for path in programs.rglob("*mpigraft-*") if path.is_file()]
    assert (total, reasons) == (len(every), {})


@pytest.mark.parametrize(
    "name", ["mpich/mpigraft-probe", "libmpigraft-witness.so", "mpigraft-relay"]
)
def test_a_program_that_does_not_start_is_named(programs: Path, name: str) -> None:
    path = programs / name
    whole = path.read_bytes()
    path.write_bytes(b"\x7fELF" + bytes(60))
    assert [*loading.failing_programs(MACHINE)[1]] == [path]
    path.unlink()
    assert loading.failing_programs(MACHINE)[1] == {path: "no such file"}
    path.write_bytes(whole)
    path.chmod(0o755)
    assert loading.failing_programs(MACHINE)[1] == {}


@pytest.mark.parametrize("name", ["ompi/mpigraft-bench", "libmpigraft-witness.so"])
def test_a_glibc_that_is_too_old_is_named(programs: Path, name: str) -> None:
    path = programs / name
    version = b"GLIBC_2.17" if MACHINE == "aarch64" else b"GLIBC_2.2.5"
    newer = version.replace(b"2", b"9", 1)
    path.write_bytes(path.read_bytes().replace(version, newer))
    ((failed, reason),) = loading.failing_programs(MACHINE)[1].items()
    assert failed == path
    assert shows(reason, newer.decode(), "not found")


def test_programs_of_another_machine_do_not_start() -> None:
    other = "aarch64" if MACHINE == "x86_64" else "x86_64"
    total, reasons = loading.failing_programs(other)
    assert len(reasons) in (total, 0)  # 0: an emulator is registered


def test_room_is_that_of_the_folder_above(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    assert existing(tmp_path / "a/b") == tmp_path
    assert existing(tmp_path / "gone") == tmp_path / "gone"
    assert free_mib(tmp_path / "a/b") <= shutil.disk_usage(tmp_path).total >> 20
    assert [*tmp_path.iterdir()] == [tmp_path / "gone"]
    with pytest.raises(OSError, match="gone"):
        free_mib(tmp_path / "gone")
