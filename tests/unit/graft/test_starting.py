"""What the kernel or the loader cannot start is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core.errors import MpigraftError, UsageError
from mpigraft.core.model import Level
from mpigraft.graft.guest.command import CommandKind
from mpigraft.graft.guest.commands import command_of
from mpigraft.graft.guest.host_commands import job_words
from mpigraft.request import GraftSpec
from mpigraft.request.job.spec import RunSpec
from mpigraft.request.job.subject import job_subject
from mpigraft.selection.subject import examine_subject
from tests.builders.elf import program
from tests.builders.fits import finding, own, verdict
from tests.builders.guests import OPENMPI, a_guest, a_program, an_abi
from tests.builders.messages import matches
from tests.builders.python_installs import LOADER, parts, put

GONE = "/opt/gone/ld.so"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image with an MPI program, and files that are none."""
    built = parts(tmp_path / "parts")
    top = tmp_path / "image"
    app = program(top / "usr/bin/app", needs=[built["libmpi"]])
    program(top / "usr/bin/lost", needs=[built["libmpi"]], flags=[f"-Wl,--dynamic-linker={GONE}"])
    program(top / "usr/bin/serial", flags=[f"-Wl,--dynamic-linker={GONE}"])
    scripts: dict[str, str | bytes] = {
        "by-env": "#!/usr/bin/env -S A=1 app\n", "argument": "#!/usr/bin/app -v -w\n",
        "plain": "app\n", "minus-e": "#!/bin/sh -e\napp\n", "solver.py": "import mpi4py\n",
        "gone": "#!/opt/gone/sh\napp\n", "two": "#!/usr/bin/env app -v\n", "empty": "",
        "by-lost": "#!/usr/bin/lost\n", "data": b"\x00\x01app\n", "cut": app.read_bytes()[:-8000],
    }  # fmt: skip
    put(top, {
        LOADER: "", "usr/lib/libmpi.so.40": "*libmpi", "usr/bin/env": "*program",
        "usr/bin/sh": "*program", **{f"usr/bin/{name}": text for name, text in scripts.items()},
    }, built)  # fmt: skip
    (top / "lib").symlink_to("usr/lib")
    (top / "bin").symlink_to("usr/bin")
    for name in (*scripts, "env", "sh"):
        (top / "usr/bin" / name).chmod(0o755)
    return top


@pytest.mark.parametrize("name", ["by-env", "argument", "plain", "minus-e"])
def test_a_script_is_judged_by_the_program_that_its_first_line_starts(
    name: str, image: Path
) -> None:
    command = command_of(FolderRoot(image), [name], {"PATH": "/usr/bin"}, "/")
    assert (command.kind, command.program) == (CommandKind.MPI, "/usr/bin/app")


UNSTARTABLE = [
    ("lost", "interpreter-missing", f"loader, {GONE}, does not exist"),
    ("serial", "interpreter-missing", f"loader, {GONE}, does not exist"),
    ("gone", "interpreter-missing", "interpreter, /opt/gone/sh, does not exist"),
    ("two", "interpreter-missing", "interpreter, app -v, does not exist"),
    ("by-lost", "interpreter-missing", f"loader, {GONE}, does not exist"),
    ("cut", "guest-elf-invalid", "it is cut short"),
    ("empty", "program-empty", "/usr/bin/empty is empty"),
    ("data", "program-no-format", "neither an ELF program nor a script"),
    ("solver.py", "script-without-interpreter", "names no interpreter"),
]


@pytest.mark.parametrize(("name", "code", "message"), UNSTARTABLE)
def test_what_cannot_start_is_refused_by_run(
    name: str, code: str, message: str, image: Path
) -> None:
    """With and without a proof: they ended with 127, or by a signal, or ran as a shell's script."""
    for proof in (True, False):
        with pytest.raises(MpigraftError, match=message) as no:
            job_subject(RunSpec((name,), image=str(image), proof=proof), {})
        assert no.value.code == code


@pytest.mark.parametrize(("name", "code", "message"), UNSTARTABLE)
def test_check_says_the_same_of_a_job_and_of_a_program_of_this_machine(
    name: str, code: str, message: str, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{image}/usr/bin:/usr/bin:/bin")
    with pytest.raises(MpigraftError, match=message) as no:
        examine_subject(GraftSpec(str(image), (name,)))
    assert no.value.code == code
    if name not in ("lost", "serial", "data", "two", "by-lost"):  # judged, or named by their place
        with pytest.raises(MpigraftError) as no:
            examine_subject(GraftSpec(str(image / "usr/bin" / name)))
        assert no.value.code == code


def test_a_program_whose_loader_is_missing_does_not_fit() -> None:
    """Whether it was named, or found in an image."""
    assert verdict(a_guest(a_program(), OPENMPI), an_abi("openmpi@5.0.11"), own=own()).ok
    guest = a_guest(a_program(), OPENMPI, loader=False)
    found = finding(verdict(guest, an_abi("openmpi@5.0.11"), own=own()), "loader-missing")
    assert found.level is Level.ERROR
    assert matches(found, "loader-missing", loader="/lib64/ld-linux-x86-64.so.2")


def test_an_archive_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "image.tar").write_bytes(b"usr/\0\0\0\0")
    (tmp_path / "image.tar").chmod(0o755)
    assert job_words(str(tmp_path / "image.tar"), (), ()) == ((), False)
    (tmp_path / "notes").write_text("an image?\n")
    assert job_words(str(tmp_path / "notes"), (), ()) == ((), False)
    (tmp_path / "notes.py").write_text("import mpi4py\n")
    with pytest.raises(UsageError, match="names no interpreter"):
        job_words(str(tmp_path / "notes.py"), (), ())
