"""What the words of a job start, by their files: MPI, surely none, or nobody knows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.graft.guest.command import CommandKind, GuestCommand
from mpigraft.graft.guest.commands import command_of
from mpigraft.graft.guest.examination import Guest, examine_command, examine_guest
from mpigraft.graft.guest.visible import nothing_shown
from mpigraft.request.job.spec import RunSpec
from mpigraft.request.job.subject import job_subject
from tests.builders.elf import compiled, program
from tests.builders.messages import shows
from tests.builders.python_installs import SITE, TAG, parts, put, tree

MPI = f"/{SITE}/mpi4py/MPI.{TAG}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("parts")
    found = parts(folder)
    libc = compiled(folder / "libc.so.6", "int execvp(void) {return 0;}", soname="libc.so.6")
    calls = "int execvp(void); int go(void) { return execvp(); }"
    return found | {
        "libc": libc,
        "app": program(folder / "app", needs=[found["libmpi"]]),
        "hostname": program(folder / "hostname", needs=[libc]),
        "starter": program(folder / "starter", calls, needs=[libc]),
        "static": program(folder / "static", flags=["-static"]),
    }


@pytest.fixture
def image(tmp_path: Path, built: Mapping[str, Path]) -> Path:
    scripts = {
        "job/a.py": "from mpi4py import MPI\n", "job/none.py": "import os\n",
        "job/dynamic.py": "import ctypes\nctypes.CDLL('libmpi.so.40')\n",
        "opt/bin/tool": "#!/usr/bin/env -S python3 -u\nfrom mpi4py import MPI\n",
        "opt/bin/long": "#!/bin/sh\n'''exec' /usr/bin/python3 \"$0\"\n' '''\nimport mpi4py.MPI\n",
        "opt/bin/job": "#!/bin/sh\nexec $APP\n", "opt/bin/bare": "exec app\n",
        "opt/bin/sure": "#!/bin/sh\ncd /tmp\nnumactl -l app in >out\n",
        "opt/bin/py": "#!/bin/bash\nexec python3 /job/a.py\n",
        "opt/bin/pick": "#!/bin/sh\nif bash -n; then app-avx; exit; fi\napp\n",
        "opt/bin/second": "#!/bin/sh\ntest $X && app-avx\napp\n",
        "opt/bin/open": "#!/bin/sh\nif bash -n; then app-avx; exit; fi\napp\n$OTHER\n",
        "opt/bin/more": "#!/bin/sh\nif bash -n; then python3 /job/dynamic.py; else app; fi\n",
        "opt/bin/two": "#!/bin/sh\napp\napp-avx\n", "opt/bin/opens": "#!/bin/sh\n$X libmpi.so.12\n",
        "opt/bin/either": "#!/bin/sh\nif test $MODE; then app; else python3 /job/a.py; fi\n",
    }  # fmt: skip
    names = {"app": "app", "app-avx": "app", "app-sse": "app", "hostname": "hostname",
             "numactl": "starter", "static": "static", "sh": "static",
             "bash": "starter"}  # fmt: skip
    top = tree(tmp_path / "image", built, {
        f"{SITE}/mpi4py/__init__.py": "", f"{SITE}/mpi4py/MPI.{TAG}": "*mpi", **scripts,
        **{f"usr/bin/{name}": f"*{part}" for name, part in names.items()},
        "usr/lib/libc.so.6": "*libc",
    })  # fmt: skip
    for name in scripts:
        (top / name).chmod(0o755)
    return top


def of(image: Path, words: str, **environment: str) -> GuestCommand:
    given = {"PATH": "/usr/bin:/opt/bin", **environment}
    return command_of(FolderRoot(image), words.split(), given, "/job")


@pytest.mark.parametrize(
    ("words", "kind", "program"),
    [
        ("app input", CommandKind.MPI, "/usr/bin/app"),
        ("/usr/bin/app", CommandKind.MPI, "/usr/bin/app"),
        ("env A=1 app", CommandKind.MPI, "/usr/bin/app"),
        ("numactl -l app", CommandKind.MPI, "/usr/bin/app"),
        ("bash wrapper.sh app", CommandKind.MPI, "/usr/bin/app"),
        ("numactl env A=1 app", CommandKind.MPI, "/usr/bin/app"),
        ("hostname", CommandKind.NONE, "/usr/bin/hostname"),
        ("env hostname -f", CommandKind.NONE, "/usr/bin/hostname"),
        ("hostname app", CommandKind.NONE, "/usr/bin/hostname"),
        ("static", CommandKind.NONE, "/usr/bin/static"),
        ("static hostname", CommandKind.NONE, "/usr/bin/static"),
        ("static -x app", CommandKind.MPI, "/usr/bin/app"),
        ("static python3 a.py", CommandKind.MPI, "/usr/bin/python3.11"),
        ("static python3 dynamic.py", CommandKind.UNKNOWN, "/usr/bin/python3.11"),
        ("sh -c app-of-its-own", CommandKind.UNKNOWN, ""),  # busybox: static, and starts others
        ("numactl -l hostname", CommandKind.UNKNOWN, ""),
        ("job", CommandKind.UNKNOWN, ""),
        ("bare", CommandKind.MPI, "/usr/bin/app"),
        ("sure", CommandKind.MPI, "/usr/bin/app"),
        ("py", CommandKind.MPI, "/usr/bin/python3.11"),
        ("either", CommandKind.UNKNOWN, ""),
        ("no-such-program", CommandKind.UNKNOWN, ""),
        ("python3 a.py", CommandKind.MPI, "/usr/bin/python3.11"),
        ("python3 none.py", CommandKind.NONE, "/usr/bin/python3.11"),
        ("python3 dynamic.py", CommandKind.UNKNOWN, "/usr/bin/python3.11"),
        ("python3", CommandKind.UNKNOWN, "/usr/bin/python3.11"),
        ("tool", CommandKind.MPI, "/usr/bin/python3.11"),
        ("long", CommandKind.MPI, "/usr/bin/python3.11"),
        ("numactl python3 -u a.py", CommandKind.MPI, "/usr/bin/python3.11"),
    ],
)
def test_what_words_start(image: Path, words: str, kind: CommandKind, program: str) -> None:
    found = of(image, words)
    assert (found.kind, found.program) == (kind, program)
    if kind is CommandKind.MPI and program.endswith("3.11"):
        assert found.certain == (MPI,)


def in_bin(*names: str) -> tuple[str, ...]:
    return tuple(f"/usr/bin/{name}" for name in names)


def test_reasons_and_notes(image: Path) -> None:
    assert shows(of(image, "hostname").why, "no other program")
    assert shows(of(image, "static").why, "statically")
    for words, values in (
        ("job", ("which programs", "job")),
        ("python3 dynamic.py", ("dynamic.py", "line 2", "CDLL")),
        ("python3 gone.py", ("gone.py", "not in the guest")),
    ):
        (note,) = of(image, words).notes
        assert shows(note, *values)
    assert "--stdin all" in of(image, "python3 -").notes[0]  # else rank 0 waits for the others
    sources = of(image, "python3 a.py").sources
    assert sources == ("/job/a.py", f"/{SITE}")


def test_scripts_that_start_each_other_end(image: Path) -> None:
    put(image, {"opt/bin/loop": "#!/opt/bin/loop\n", "opt/bin/env": "#!/opt/bin/env\n"})
    for name in ("loop", "env"):
        (image / "opt/bin" / name).chmod(0o755)
    assert of(image, "loop loop loop").kind is CommandKind.UNKNOWN
    assert of(image, "/opt/bin/env " * 30).kind is CommandKind.UNKNOWN


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_script_of_this_host_in_an_image(image: Path, here: Path) -> None:
    (here / "mine.py").write_text("from mpi4py import MPI\n")
    folders = {str(here): here}
    guest, command = examine_command(str(image), ["python3", "mine.py"], {}, lambda _: folders)
    assert guest.libraries == (MPI,)
    assert [Path(one).name for one in guest.label.programs] == ["python3.11"]
    assert not guest.loose
    assert command.sources[0] == str(here / "mine.py") or str(here / "mine.py") in command.sources


def test_of_a_shell_all_programs_are_meant_and_none_for_sure(image: Path, here: Path) -> None:
    guest, _ = examine_command(str(image), ["job"], {"PATH": "/opt/bin"}, nothing_shown)
    assert guest.loose
    assert guest.label.programs == in_bin("app", "app-avx", "app-sse")


@pytest.mark.parametrize(
    ("words", "programs"),
    [
        ("pick", ["app-avx", "app"]),
        ("open", ["app", "app-avx", "app-sse"]),
        ("more", ["app", "app-avx", "app-sse"]),
        ("either", ["app", "app-avx", "app-sse"]),
    ],
)
def test_of_a_script_the_programs_that_it_may_start_are_meant(
    words: str, programs: Sequence[str], image: Path, here: Path
) -> None:
    settings = {"PATH": "/usr/bin:/opt/bin"}
    guest, _ = examine_command(str(image), [words], settings, nothing_shown)
    assert guest.loose
    assert guest.label.programs == in_bin(*programs)


def test_all_programs_that_a_script_surely_starts_have_to_fit(image: Path, here: Path) -> None:
    guest, command = examine_command(str(image), ["/opt/bin/two"], {}, nothing_shown)
    assert not guest.loose
    assert guest.label.programs == command.programs == in_bin("app", "app-avx")
    assert [one.program for (one,) in command.groups()] == list(command.programs)
    assert command.starts == 2


def test_on_this_machine_a_script_means_the_same_programs(image: Path) -> None:
    command = of(image, "pick")
    (group,) = command.groups()
    assert tuple(one.program for one in group) == in_bin("app-avx", "app")
    here = Guest.on_host(image, replace(command, candidates=("/bin/true", "/bin/sh")))
    assert here.loose
    assert here.label.programs == ("/bin/true", "/bin/sh")
    assert of(image, "second").candidates == in_bin("app", "app-avx")  # the sure one


@pytest.mark.parametrize(
    ("script", "starts"),
    [
        ("app; app", 2),
        ("app && app-avx & wait", 2),
        ("for i in 1 2 3; do app $i; done", 3),
        ("test -f x && app; app", 1),
        ("app || app", 1),
        ("if test $A; then app; else app-avx; fi", 0),
        ("bash -c 'app; app'; hostname", 2),
    ],
)
def test_how_often_each_rank_surely_starts_mpi_programs(
    script: str, starts: int, image: Path
) -> None:
    put(image, {"opt/bin/again": f"#!/bin/sh\n{script}\n"})
    (image / "opt/bin/again").chmod(0o755)
    assert of(image, "again").starts == starts


def test_a_script_that_is_not_there_yet_is_a_source_in_an_image_too(
    image: Path, here: Path
) -> None:
    (here / "run.sh").write_text("#!/bin/sh\napp\nsh ./later.sh\nsh ./new/later.sh\n")
    (here / "run.sh").chmod(0o755)
    subject = job_subject(RunSpec(("./run.sh",), image=str(image)), {})
    assert {str(here / "later.sh"), str(here / "new/later.sh")} < {*subject.sources}


def test_libraries_that_unknown_files_name(image: Path) -> None:
    assert of(image, "opens").opened == ("libmpi.so.12",)
    assert of(image, "python3 dynamic.py").opened == ("libmpi.so.40",)
    assert of(image, "app").opened == of(image, "job").opened == ()
    (alone,) = of(image, "job").unknown_facts(2, image=False)
    assert shows(alone, "MPI", "2 ranks")


def test_a_script_of_what_is_not_known_has_no_programs(image: Path, here: Path) -> None:
    words = ["python3", "/job/dynamic.py"]
    guest, command = examine_command(str(image), words, {}, nothing_shown)
    assert (guest.label.programs, guest.libraries, guest.loose) == ((), (), False)
    assert guest.label.architecture == os.uname().machine
    assert guest.unknown == command.notes
    assert shows(command.notes, "dynamic.py", "line 2", "CDLL")
    assert guest.named == ("libmpi.so.40",)


def test_a_program_that_is_not_there(image: Path, here: Path) -> None:
    with pytest.raises(UsageError, match="no program nothing in its PATH"):
        examine_command(str(image), ["nothing"], {}, nothing_shown)


HIDDEN = "ranks would see this machine's /usr/bin there"


def test_a_program_that_a_folder_of_this_machine_covers_is_refused(
    image: Path, here: Path, tmp_path: Path
) -> None:
    """Whether it is named by its path, by its name, by the words of a job, or found."""
    (tmp_path / "empty").mkdir()
    shown = {"/usr/bin": tmp_path / "empty"}
    for named in ("/usr/bin/app", "app"):
        with pytest.raises(CheckFailed, match=HIDDEN):
            examine_guest(str(image), [named], lambda _: shown)
        with pytest.raises(CheckFailed, match=HIDDEN):
            examine_command(str(image), [named], {}, lambda _: shown)
    with pytest.raises(CheckFailed, match=HIDDEN):
        examine_guest(str(image), (), lambda _: shown)
    found = examine_guest(str(image), (), lambda _: {f"/{SITE}/mpi4py": tmp_path / "empty"})
    assert found.label.programs == in_bin("app", "app-avx", "app-sse")
    assert not found.libraries
    assert found.covers.programs == (MPI,)


def test_a_working_folder_that_covers_files_of_the_image_is_named(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused where a program or a library of the image is below it, though this machine has
    one there too."""
    folder = tmp_path / "both"
    inside = image / str(folder)[1:]
    for place in (folder, inside):
        place.mkdir(parents=True)
        shutil.copy2(image / "usr/bin/app", place / "app")
    monkeypatch.chdir(folder)
    found = examine_guest(str(image), ["/usr/bin/app"], lambda _: {str(folder): folder})
    assert (found.covers.folder, found.covers.names) == (str(folder), 1)
    with pytest.raises(CheckFailed, match="ranks would see this machine's"):
        examine_guest(str(image), [str(folder / "app")], lambda _: {str(folder): folder})
    for place in (inside / "app", image / "usr/bin/app"):
        place.unlink()
    (inside / ".hidden").write_text("")
    found = examine_guest(str(image), ["./app"], lambda _: {str(folder): folder})
    assert not found.covers.folder
    assert found.label.of_host == found.label.programs == (str(folder / "app"),)


def test_no_mpi_program_is_refused_before_anything_starts(image: Path, here: Path) -> None:
    spec = RunSpec(("hostname",), image=str(image))
    with pytest.raises(CheckFailed, match="hostname is no MPI program: neither it") as refused:
        job_subject(spec, {})
    assert "--no-proof" in refused.value.fix
    unproven = RunSpec(("hostname",), image=str(image), proof=False)
    assert job_subject(unproven, {}).command.kind is CommandKind.NONE
    named = RunSpec(("hostname",), image=str(image), programs=("/usr/bin/app",))
    assert job_subject(named, {}).command.kind is CommandKind.MPI


def test_the_same_on_this_machine(here: Path) -> None:
    word = shutil.which("true") or "true"
    with pytest.raises(CheckFailed, match="is no MPI program"):
        job_subject(RunSpec((word,)), {"PATH": os.defpath})
    assert job_subject(RunSpec((word,), proof=False), {}).guest is None
