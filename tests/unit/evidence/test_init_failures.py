"""Jobs that fail inside of MPI_Init: what was loaded there, what was due, and what led to it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpigraft.core.model import Configuration, Finding, GuestKind, Level
from mpigraft.evidence.world import failures
from mpigraft.evidence.world.failures import explain_failure, used_up_memory
from mpigraft.evidence.world.records import read_entered
from tests.builders import plans
from tests.builders.elf import compiled, program
from tests.builders.messages import matches
from tests.builders.probes import configuration


def note(folder: Path, libmpi: Path, program: Path | str, **changes: Any) -> None:
    seen = libmpi.stat()
    value = {
        "id": "1", "pid": 7, "host": "n0", "program": str(program), "search": "",
        "libraries": [[str(libmpi), seen.st_dev, seen.st_ino]], **changes,
    }  # fmt: skip
    with (folder / "n0-1.entered").open("a") as file:
        file.write(f"\n{json.dumps(value)}\n")


def made(top: Path) -> tuple[Path, Path, Path]:
    """A folder for records, the libmpi that is due, and another one."""
    (top / "records").mkdir()
    due = compiled(top / "due/libmpi.so.40", soname="libmpi.so.40")
    other = compiled(top / "own/lib/libmpi.so.40", "int other;", soname="libmpi.so.40")
    return top / "records", due, other


def asked(due: Path) -> Configuration:
    one = configuration("openmpi@5.0.11", "ob1-sm")
    assert one.mpi is not None
    return replace(one, mpi=replace(one.mpi, libmpi=due))


def only(found: tuple[Finding, ...]) -> Finding:
    (one,) = found
    return one


def test_another_libmpi_by_the_programs_own_path(tmp_path: Path) -> None:
    folder, due, own = made(tmp_path)
    app = program(
        tmp_path / "app", flags=[f"-Wl,-rpath,{own.parent},--enable-new-dtags"], needs=[own]
    )
    note(folder, own, app)
    note(folder, own, app, id="2")
    found = only(explain_failure(asked(due), folder, ranks=0))
    assert (found.level, found.code) == (Level.ERROR, "init-other-libmpi")
    assert matches(
        found, "init-other-libmpi", loaded=own, processes="2 processes", due=due,
        mpi="openmpi@5.0.11", reason=f"by RUNPATH {own.parent} of {app}",
        advice=f"put the MPI under the program: --image {app}",
    )  # fmt: skip
    assert explain_failure(asked(due), folder, ranks=1) == (found,)


def test_another_libmpi_by_the_environment(tmp_path: Path) -> None:
    folder, due, own = made(tmp_path)
    app = program(tmp_path / "app", needs=[own])
    note(folder, own, app, search=str(own.parent))
    found = only(explain_failure(asked(due), folder, ranks=0))
    assert matches(
        found, "init-other-libmpi", reason=f"by LD_LIBRARY_PATH {own.parent}",
        advice=f"LD_LIBRARY_PATH={own.parent}",
    )  # fmt: skip
    assert matches(found, "init-other-libmpi", processes="a process")


def test_another_libmpi_that_nothing_names(tmp_path: Path) -> None:
    folder, due, own = made(tmp_path)
    note(folder, own, program(tmp_path / "python"))
    assert matches(
        only(explain_failure(asked(due), folder, ranks=0)), "init-other-libmpi",
        reason="opened while the program ran",
    )  # fmt: skip
    (folder / "n0-1.entered").unlink()
    note(folder, own, "/none/such")
    assert "opened while" in only(explain_failure(asked(due), folder, ranks=0)).why


@pytest.mark.parametrize(
    ("engine", "named", "fix"),
    [
        ("none", True, "--engine bwrap"),
        ("none", False, "--program /opt/app"),
        ("bwrap", True, "mpigraft check"),  # it lays files over, but has none of this ABI
    ],
)
def test_in_a_guest_the_mend_can_work(tmp_path: Path, engine: str, named: bool, fix: str) -> None:
    folder, due, _ = made(tmp_path)
    top = tmp_path / "image"
    inside = compiled(top / "opt/own/libmpi.so.40", soname="libmpi.so.40")
    program(top / "opt/app", flags=["-Wl,-rpath,/opt/own,--disable-new-dtags"], needs=[inside])
    programs = ("/opt/app",) if named else ("/usr/bin/other",)
    label = plans.label(str(top), GuestKind.FOLDER, programs=programs)
    plan = plans.plan(label, engine, libmpi="/.mpigraft/lib/libmpi.so.40", libmpi_copy="", binds=())
    seen = inside.stat()
    libraries = [["/opt/own/libmpi.so.40", seen.st_dev, seen.st_ino]]
    note(folder, inside, "/opt/app", libraries=libraries)
    found = only(explain_failure(replace(asked(due), graft=plan), folder, ranks=0))
    assert matches(found, "init-other-libmpi", reason="by RPATH /opt/own of /opt/app")
    assert fix in found.fix
    assert ("--engine" in found.fix) == (fix == "--engine bwrap")


def test_the_libmpi_that_was_due(tmp_path: Path) -> None:
    folder, due, _ = made(tmp_path)
    note(folder, due, "/bin/app")
    found = only(explain_failure(asked(due), folder, ranks=0))
    assert (found.level, found.code) == (Level.WARNING, "init-unfinished")
    assert str(due) in found.why
    assert matches(found, "init-unfinished")
    assert explain_failure(asked(due), folder, ranks=1) == ()  # another failure ended it


def test_nothing_to_say(tmp_path: Path) -> None:
    folder, due, own = made(tmp_path)
    assert explain_failure(asked(due), folder, ranks=0) == ()
    assert explain_failure(asked(due), tmp_path / "none", ranks=0) == ()
    note(folder, own, "/bin/app", libraries=[])
    assert explain_failure(asked(due), folder, ranks=0) == ()
    note(folder, own, "/bin/app")
    assert explain_failure(asked(tmp_path / "gone"), folder, ranks=0) == ()


def test_those_that_came_back_are_left_out(tmp_path: Path) -> None:
    folder, _, own = made(tmp_path)
    for number in ("1", "2"):
        note(folder, own, "/bin/app", id=number, pid=int(number))
    (folder / "n0-1.ranks").write_text('\n{"rank":0,"id":"2"}\n{"id":')
    assert [one.pid for one in read_entered(folder)] == [1]


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    folder, _, own = made(tmp_path)
    (folder / "n0-1.entered").write_bytes(b'\xff\n[]\n{"id":"x"}\n{"id":"y","pid":true}\n')
    (folder / "dir.entered").mkdir()
    note(folder, own, "/bin/app")
    (one,) = read_entered(folder)
    assert (one.host, one.pid, one.program) == ("n0", 7, "/bin/app")
    assert one.libraries[0].inode == own.stat().st_ino


@pytest.mark.parametrize(
    ("code", "out", "job", "hosts", "found"),
    [
        (137, True, True, {"n1"}, "Slurm ended ranks on n1, which used more"),
        (9, True, True, {"n1", "n2"}, "Slurm ended ranks on n1, which used more"),
        (255, True, True, {"n1"}, "Slurm ended ranks on n1, which used more"),
        (137, False, True, {"n1"}, "a rank on n1 was ended by SIGKILL"),
        (137, True, True, {"n2", "n3"}, "a rank on one of n2,n3 was ended by SIGKILL"),
        (9, False, True, {"n1"}, ""),  # it may be the program's own
        (1, True, True, {"n1"}, ""),
        (137, True, False, {"n1"}, ""),
        (137, True, True, set(), ""),
    ],
)
def test_a_job_that_ran_out_of_memory_has_the_cause_named(
    code: int, out: bool, job: bool, hosts: set[str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Slurm prints of it is in the user's own streams."""
    monkeypatch.setattr(failures, "scarce_memory", lambda _: None)
    monkeypatch.setattr(failures, "is_out_of_memory", lambda: out)
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(nodename="n1"))
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", "7")
    messages = [f.message for f in used_up_memory(hosts, code)]
    assert len(messages) == bool(found)
    assert all(message.startswith(found) for message in messages)
