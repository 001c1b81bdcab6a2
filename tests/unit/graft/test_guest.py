"""Guests: what of them needs MPI, whose MPI they have, and that they cannot do harm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.model import Family, GuestKind
from mpigraft.graft.guest import examination, own_mpi, search
from mpigraft.graft.guest.mpi_sonames import MPI_TOOLS
from tests.builders.elf import compiled, program
from tests.builders.images import oci
from tests.builders.layers import file

DIRECT, THROUGH = "/opt/app/direct", "/opt/app/through"  # their need of MPI
TOOL, LAUNCHER = "/usr/bin/ompi_info", "/usr/bin/mpirun.openmpi"
MODULE = "/usr/lib/python3/mpi4py/MPI.cpython-311.so"
OMPI = (
    'const char *x[] = {"Open MPI v%%d.%%d.%%d", "%s"};'
    'const char y[] __attribute__((used)) = "\\0v%s\\0Open MPI\\0%%s:version:repo\\0\\0%s";'
)


@pytest.fixture(autouse=True)
def _elsewhere(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A root with a libmpi, programs that need it in three ways, and some that do not."""
    top = tmp_path / "image"
    lib = top / "usr/lib"
    said = OMPI % ("", "4.1.4", "4.1.4")
    libmpi = compiled(lib / "libmpi.so.40", said, soname="libmpi.so.40")
    pal = compiled(lib / "libopen-pal.so.40", soname="libopen-pal.so.40")
    compiled(lib / "openmpi/mca_pmix_s2.so", needs=[libmpi])
    compiled(lib / "openmpi/mca_btl_sm.so", needs=[pal])
    wrapped = compiled(lib / "libsolver.so.2", soname="libsolver.so.2", needs=[libmpi])
    deep = compiled(lib / "libdeep.so.1", soname="libdeep.so.1", needs=[wrapped])
    program(top / DIRECT[1:], needs=[libmpi, pal])
    program(top / THROUGH[1:], needs=[deep])
    program(top / "opt/app/alone")
    program(top / TOOL[1:], needs=[libmpi])
    program(top / LAUNCHER[1:])
    program(top / "usr/bin/env")
    compiled(top / MODULE[1:], needs=[libmpi])
    shutil.copy2(top / "opt/app/direct", top / "opt/app/data")
    (top / "opt/app/data").chmod(0o644)
    (top / "opt/app/script").write_text("#!/bin/sh\nexec direct\n")
    (top / "opt/app/script").chmod(0o755)
    (top / "lib").symlink_to("usr/lib")
    (top / "lib64").symlink_to("usr/lib")
    (top / "etc").mkdir()
    (top / "etc/os-release").write_text('ID=x\nPRETTY_NAME="A \\"B\\"\x1b[31m 1"\n')
    return top


def test_programs_and_libraries_of_a_folder(image: Path) -> None:
    found = examination.examine_guest(str(image))
    assert found.label.programs == (DIRECT, THROUGH)
    assert found.libraries == (MODULE,)
    assert (found.label.kind, found.label.name) == (GuestKind.FOLDER, "image")
    assert found.label.source == str(image.resolve())
    assert found.label.os == 'A "B"[31m 1'
    assert found.label.env_program == "/usr/bin/env"
    assert found.label.architecture == os.uname().machine
    assert found.label.glibc == ""


def test_its_own_mpi(image: Path) -> None:
    found = examination.examine_guest(str(image))
    own = examination.own_mpi_of(found)
    assert own is not None
    assert (own.family, own.version, own.soname) == (Family.OPENMPI, "4.1.4", "libmpi.so.40")
    entry = found.root.find(own.libmpi)
    assert entry is not None
    assert image / entry.path[1:] == next(image.rglob(own.soname))
    assert own.launcher == LAUNCHER
    assert own.pmi == ("pmi2",)
    (opener, paths), *_ = own.plugins
    assert opener == next(image.rglob("libopen-pal*")).name
    assert {Path(path).name for path in paths} == {p.name for p in image.rglob("mca_*.so")}


def test_a_guest_without_an_mpi(image: Path) -> None:
    (image / "usr/lib/libmpi.so.40").unlink()
    found = examination.examine_guest(str(image))
    assert found.label.programs == (DIRECT, THROUGH)
    assert examination.own_mpi_of(found) is None


def test_named_programs(image: Path, tmp_path: Path) -> None:
    found = examination.examine_guest(str(image), [DIRECT, "ompi_info", f"/opt/..{DIRECT}"])
    assert found.label.programs == (DIRECT, TOOL)
    assert found.libraries == ()
    alone = ["/opt/app/alone"]
    python = examination.examine_guest(str(image), alone)  # it may open a module that needs MPI
    assert [*python.label.programs] == alone
    assert len(python.libraries) == 1
    for wrong in ("/opt/app/none", "nothing", "../image/opt/app/direct", "/usr/lib"):
        with pytest.raises(UsageError, match="has no program"):
            examination.examine_guest(str(image), [wrong])


def test_a_program_of_the_current_folder_under_an_image(image: Path) -> None:
    libmpi = image / "usr/lib/libmpi.so.40"
    own = program(Path.cwd() / "solver", needs=[libmpi])
    found = examination.examine_guest(str(image), ["./solver"])
    assert found.label.programs == (str(own),)
    assert found.root.elf(str(own)).needed == ("libmpi.so.40",)
    assert examination.own_mpi_of(found) is not None
    assert not (image / str(own).lstrip("/")).exists()


def test_the_digest_follows_what_is_loaded(image: Path) -> None:
    before = examination.examine_guest(str(image)).label.digest
    (image / "opt/app/readme").write_text("not loaded")
    assert examination.examine_guest(str(image)).label.digest == before
    lib = image / "usr/lib/libdeep.so.1"
    compiled(lib, "int new;", soname="libdeep.so.1", needs=[image / "usr/lib/libsolver.so.2"])
    assert examination.examine_guest(str(image)).label.digest != before
    assert len(before) == 64


def test_a_library_that_claims_terabytes(image: Path) -> None:
    """A file with holes: to read it would take an hour, to look at it takes nothing."""
    libmpi = next(image.rglob("libmpi.so.40")).resolve()
    os.truncate(libmpi, 1 << 43)
    with pytest.raises(UsageError, match=r"more than 16 GiB.*libmpi.* with 8192 GiB"):
        examination.examine_guest(str(image))


def test_a_program_of_this_host(image: Path) -> None:
    path = program(Path.cwd() / "hello")
    found = examination.examine_guest(str(path))
    assert (found.label.kind, found.label.programs) == (GuestKind.PROGRAM, (str(path),))
    assert found.root.find("/etc") is not None
    with pytest.raises(UsageError, match="is itself a program"):
        examination.examine_guest(str(path), ["/bin/true"])
    with pytest.raises(CheckFailed, match="no dynamic loader"):  # exit 1, as `run`
        examination.examine_guest(str(image / "usr/lib/libmpi.so.40"))


def test_a_program_of_an_unpacked_image(image: Path) -> None:
    """Its loader is not this host's: it is looked at below the folder that has it."""
    loader = "/lib/ld-strange.so.9"
    (image / loader.lstrip("/")).write_bytes(b"\x7fELF strange")
    flags = (f"-Wl,--dynamic-linker={loader}",)
    name = "/opt/app/strange"
    path = program(image / name[1:], flags=flags, needs=[image / "usr/lib/libmpi.so.40"])
    found = examination.examine_guest(str(path))
    assert (found.label.kind, found.label.source) == (GuestKind.FOLDER, str(image.resolve()))
    assert (found.label.name, found.label.programs) == ("strange", (name,))


def test_an_archive_and_its_environment(image: Path, tmp_path: Path) -> None:
    names = ("opt/app/direct", "usr/lib/libmpi.so.40", "usr/lib/libopen-pal.so.40")
    path = oci(tmp_path / "app.tar", [[file(n, (image / n).read_bytes(), 0o755) for n in names]])
    found = examination.examine_guest(str(path))
    assert (found.label.kind, found.label.name) == (GuestKind.OCI, "app.tar")
    assert found.label.programs == (DIRECT,)
    assert found.label.environment == found.root.config().environment
    assert len(found.label.digest) == 64


def test_a_second_look_at_an_archive_walks_no_more(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [file("opt/app/direct", (image / "opt/app/direct").read_bytes(), 0o755)]
    path = oci(tmp_path / "app.tar", [items])
    first = examination.examine_guest(str(path))
    with monkeypatch.context() as patch:
        patch.setattr(search, "_search", lambda _: pytest.fail("walked"))
        again = examination.examine_guest(str(path))
    assert (again.label, again.libraries) == (first.label, first.libraries)
    second = "opt/app/second"
    oci(path, [[*items, file(second, items[0][1], 0o755)]])
    assert examination.examine_guest(str(path)).label.programs == (DIRECT, f"/{second}")


@pytest.mark.parametrize("name", ["nothing", "text", "fifo", "\0"])
def test_what_is_no_guest(tmp_path: Path, name: str) -> None:
    (tmp_path / "text").write_text("hello")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError):
        examination.examine_guest(str(tmp_path / name))


def test_musl_is_looked_at_and_left_for_the_check_to_refuse(image: Path) -> None:
    loader = "/lib/ld-musl-x86_64.so.1"
    (image / loader.lstrip("/")).write_bytes(b"\x7fELF musl libc")
    flags = (f"-Wl,--dynamic-linker={loader}",)
    asked = ["/opt/app/alpine"]
    program(image / asked[0][1:], flags=flags, needs=[image / "usr/lib/libmpi.so.40"])
    found = examination.examine_guest(str(image), asked)
    assert [*found.label.programs] == asked
    assert own_mpi.find_own_mpi(found.root, found.label.programs, {}) is None


def test_too_many_programs(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "MAX_PROGRAMS", 1)
    with pytest.raises(UsageError, match="2 programs that need MPI"):
        examination.examine_guest(str(image))
    assert examination.examine_guest(str(image), ["direct", "/opt/app/direct"][1:]).label.programs


# ------------------------------------------------------------------ hostile


def test_a_hostile_folder(image: Path, tmp_path: Path) -> None:
    """Loops, links that lead out, a fifo and a sparse file for libraries, odd names, cut files."""
    secret = program(tmp_path / "secret/outside", needs=[image / "usr/lib/libmpi.so.40"])
    lib = image / "usr/lib"
    (lib / "loop.so").symlink_to("loop.so")
    (image / "opt/out").symlink_to(secret.parent)
    (image / "opt/up").symlink_to("../../secret/outside")
    os.mkfifo(lib / "libdeep.so.2")
    odd = image / "opt/app/a\nb"
    shutil.copy(image / DIRECT[1:], odd)
    os.truncate(lib / "libsolver.so.2", 100)
    with (lib / "libhuge.so.1").open("wb") as huge:
        huge.truncate(10 << 30)
    (lib / "libmpi.so.40").unlink()
    os.mkfifo(lib / "libmpi.so.40")
    found = examination.examine_guest(str(image))
    assert found.label.programs == (f"/{odd.relative_to(image)}", DIRECT)
    assert examination.own_mpi_of(found) is None


def test_os_release_as_a_fifo_or_a_link_out(image: Path, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text("PRETTY_NAME=outside\n")
    release = image / "etc/os-release"
    release.unlink()
    release.symlink_to("../../etc/os-release")
    assert examination.examine_guest(str(image)).label.os == ""
    release.unlink()
    os.mkfifo(release)
    assert examination.examine_guest(str(image)).label.os == ""


@given(st.binary(max_size=400) | st.lists(st.sampled_from([
    b"Open MPI v%d.%d.%d", b"\0v5.0.7\0", b"Open MPI\0%s:version:repo\0", b"MPICH Version:", b"\0",
    b"Fri Sep 25 20:45:26 UTC 2026", b"5.0.2", b"Intel(R) MPI Library", b"\x002021.18.1\0",
    b"CRAY MPICH version 8.1.29", b"MVAPICH",
])).map(b"".join))  # fmt: skip
def test_any_bytes_are_an_mpi_or_none(data: bytes) -> None:
    family, version = own_mpi.identify(data)
    assert version == "" or version[0].isdigit()
    assert family is None or any(sign in data for f, sign, _ in own_mpi.SIGNS if f is family)


@pytest.mark.parametrize(
    ("data", "family", "version"),
    [
        (b"Open MPI v%d.%d.%d\0v5.0.11rc1\0Open MPI\0%s:version:repo\0 5.0.11\0\x005.0.11\0",
         Family.OPENMPI, "5.0.11"),
        (b"Open MPI v%d.%d.%d\0v4.1.0\0Open MPI\0%s:version:repo\0", Family.OPENMPI, "4.1.0"),
        (b"MPICH Version:\t%s\n\x0014:2:2\0Thu Apr  7 12:34:45 CDT 2022\x004.0.2\0x",
         Family.MPICH, "4.0.2"),
        (b"MPICH Version:\x000.13.99\x005.0.2\0\0Fri Sep 25 20:45:26 UTC 2026\0x",
         Family.MPICH, "5.0.2"),
        (b"MPICH Version:\0Intel(R) MPI Library %s\0\x002021.18.1\0", Family.INTEL, "2021.18.1"),
        (b"MPICH Version:\0CRAY MPICH version 8.1.28.29 (ANL base 3.4a2)", Family.CRAY_MPICH,
         "8.1.28"),
        (b"MPICH Version:\t%s\n", Family.MPICH, ""),
        (b"libfoo", None, ""),
    ],
)  # fmt: skip
def test_versions(data: bytes, family: Family | None, version: str) -> None:
    assert own_mpi.identify(data) == (family, version)


@given(st.lists(st.sampled_from(["/lib", "/usr", "/x", "/lib64", "/.."]), max_size=40))
def test_prefixes_of_odd_places(parts: Sequence[str]) -> None:
    root = FolderRoot(Path("/usr/share"))
    for prefix in own_mpi._prefixes(root, "".join(parts) + "/libmpi.so.40"):
        assert prefix.startswith("/")


@pytest.mark.parametrize(
    ("name", "tool"),
    [("ompi_info", True), ("mpirun.openmpi", True), ("mpiexec", True), ("orted", True),
     ("mpi_app", False), ("ompi_solver", False), ("mpirun_app", False), ("hello", False)],
)  # fmt: skip
def test_tools_of_an_mpi(name: str, tool: bool) -> None:
    assert bool(MPI_TOOLS.fullmatch(name)) is tool


# ------------------------------------------------------------------ podman


FAKE = """#!/bin/sh
echo "$@" >> {log}
case "$1 $2" in
"image inspect") test "$5" = app && echo {id} || {{ echo "no such image" >&2; exit 125; }};;
*) while test "$1" != --output; do shift; done; cp {archive} "$2";;
esac
"""


def test_an_image_of_podman(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("opt/app/direct", "usr/lib/libmpi.so.40")
    made = oci(tmp_path / "a.tar", [[file(n, (image / n).read_bytes(), 0o755) for n in names]])
    tool, log = tmp_path / "bin/podman", tmp_path / "log"
    tool.parent.mkdir()
    tool.write_text(FAKE.format(log=log, id="ab" * 32, archive=made))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    for _ in range(2):
        found = examination.examine_guest("podman:app")
        label = found.label
        assert (label.kind, label.source, label.digest) == (GuestKind.PODMAN, "app", "ab" * 32)
        assert label.programs == (DIRECT,)
    assert sum(line.startswith("save") for line in log.read_text().splitlines()) == 1
    with pytest.raises(UsageError, match="no such image"):
        examination.examine_guest("podman:other")
    for odd in ("podman:", "podman:--help"):
        with pytest.raises(UsageError, match="invalid image name"):
            examination.examine_guest(odd)


def test_podman_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingError, match="podman is not in PATH"):
        examination.examine_guest("podman:app")
