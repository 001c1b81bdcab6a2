"""Grafts under a real loader: each side calls its own libraries, and each is mapped once.

The MPI is a small library of that name: it is the loader that is looked at here.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.loader.dependencies import closure
from mpigraft.core import env
from mpigraft.core.model import MpiAbi, Replace, Role
from mpigraft.core.process.command import Completed, run_command
from mpigraft.graft.abi import libraries as abi
from mpigraft.graft.engines.registry import engine_words
from mpigraft.graft.folder import folders
from mpigraft.graft.guest.examination import examine_guest
from mpigraft.graft.injection.contents import GraftContents, decide_contents
from mpigraft.graft.injection.fixpoint import CopyPolicy, GraftRequest
from mpigraft.graft.injection.plan import PlanInput, plan_folder
from mpigraft.knowledge.sonames import role_of
from mpigraft.launch.command import engine_context
from mpigraft.native.programs import GPU_SELECT, RELAY, Natives
from tests.builders.configuration import an_mpi
from tests.builders.elf import compiled, program
from tests.builders.guests import PLACE
from tests.builders.injections import choices
from tests.oracles.guest_loader import LOADER, libraries_of, patched, small_root

HOST_LIBC = next(
    Path(r.path) for r in closure("/bin/true", environment={}) if r.name == "libc.so.6" and r.path
)
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
int user(void); int MPI_Init(int *, char ***);
int main(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    printf("user %d\nmpi %d\n", user(), MPI_Init(0, 0));
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "/lib")) printf("map %s", line);
    return 0;
}
"""
DEP = "int {name}(void) {{ return {value}; }}"
CALLS = "int {dep}(void); int {name}(void) {{ return {dep}(); }}"


@cache
def _bwrap() -> str:
    found = shutil.which("bwrap")
    if not found:
        return "bubblewrap is not installed"
    done = run_command([found, "--ro-bind", "/", "/", "/bin/true"], limit_s=20)
    return "" if done.ok else f"bubblewrap does not work here: {done.text().strip()}"


@pytest.fixture(autouse=True)
def bwrap(home: Path) -> None:
    if reason := _bwrap():
        if "MPIGRAFT_TEST_ALL" in os.environ and reason.endswith("installed"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@dataclass(frozen=True)
class World:
    """A guest's root and the host's libraries, both real."""

    root: Path
    host: Path

    @property
    def lib(self) -> Path:
        return libraries_of(self.root)

    def guest(self, name: str, source: str, *, at: str = "", **options: Any) -> Path:
        folder = self.root / at.lstrip("/") if at else self.lib
        return _library(folder, name, source, **options)

    def ours(self, name: str, source: str, **options: Any) -> Path:
        return _library(self.host, name, source, **options)

    def app(self, *needs: Path, flags: Sequence[str] = (), source: str = PROGRAM) -> None:
        (self.root / "opt").mkdir(exist_ok=True)
        argv = ["gcc", "-x", "c", "-", "-x", "none", "-Wl,--allow-shlib-undefined"]
        argv += ["-Wl,--no-as-needed", *flags, "-o", str(self.root / "opt/app")]
        done = run_command([*argv, *map(str, needs)], stdin=source.encode(), limit_s=60)
        assert done.ok, done.text()


def _library(
    folder: Path, name: str, source: str, *, nodes: str = "", needs: Sequence[Path] = ()
) -> Path:
    flags: tuple[str, ...] = ()
    if nodes:
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / f"{name}.map"
        script.write_text(nodes)
        flags = (f"-Wl,--version-script={script}",)
    return compiled(folder / name, source, soname=name, needs=needs, flags=flags)


@pytest.fixture
def world(tmp_path: Path) -> World:
    root = small_root(tmp_path / "root")
    (root / "proc").mkdir(exist_ok=True)
    return World(root, tmp_path / "host")


def mpi_of(world: World, libmpi: Path) -> MpiAbi:
    """That library and all beside it, as `abi.of` would have them, with this machine's glibc."""
    files = [libmpi, *(f for f in sorted(world.host.glob("*.so.*")) if f != libmpi)]
    files += [
        HOST_LIBC.parent / f.name for f in world.lib.glob("*") if role_of(f.name) is Role.LIBC
    ]
    files.append(Path(LOADER))
    objects = tuple(abi._object(f, reader.read_elf(f), None) for f in files if f.suffix != ".map")
    identity = "mpich@5.0.2" if libmpi.name.endswith("12") else "openmpi@5.0.11"
    return MpiAbi(an_mpi(identity), objects)


@dataclass(frozen=True)
class Ran:
    user: int
    mpi: int
    maps: Mapping[str, str]  # {path: device and inode}


def grafted(world: World, libmpi: Path) -> tuple[GraftContents, Ran]:
    """What was decided, and what the program then does in bubblewrap."""
    found, done = started(world, libmpi)
    assert done.ok, done.text()
    text = done.text()
    maps = {m[2]: m[1] for m in re.finditer(r"map \S+ \S+ \S+ (\S+ \d+) +(\S+)", text)}
    user, mpi = re.search(r"user (\d+)", text), re.search(r"mpi (\d+)", text)
    assert user
    assert mpi
    return found, Ran(int(user[1]), int(mpi[1]), maps)


def started(world: World, libmpi: Path, *, glibc: bool = True) -> tuple[GraftContents, Completed]:
    guest = examine_guest(str(world.root), ["/opt/app"])
    facts = mpi_of(world, libmpi)
    found = decide_contents(
        guest, facts, GraftRequest(replace=Replace.MPI, place=PLACE, glibc=glibc)
    )
    bench = program(world.host / "bench", needs=[libmpi])
    program(world.host / "mpigraft-probe", needs=[libmpi])
    witness = compiled(world.host / "witness.so")
    for name in (GPU_SELECT, RELAY):  # a plan copies them; nothing here is started by them
        program(world.host / name)
    made = plan_folder(
        PlanInput(
            guest=guest.label,
            mpi=facts.mpi.id,
            abi=facts,
            contents=found,
            engine="bwrap",
            natives=Natives(bench, witness, bench, ""),
        )
    )
    folders.materialize(made)
    seat = engine_context(made, 1, world.host)
    words = engine_words(made, seat)
    inner = env.rank_argv(
        list(folders.graft_environment(made)), ("/opt/app",), made.guest.env_program
    )
    return found, run_command([*words, *inner], limit_s=60)


def named(ran: Ran, name: str) -> list[str]:
    return sorted(path for path in ran.maps if path.endswith(name))


GUEST_ONLY = "D_1 { global: dep; local: *; };"
HOST_ONLY = "D_2 { global: dep; local: *; };"
BOTH = "D_1 { }; D_2 { global: dep; local: *; } D_1;"
OLD_AND_NEW = (
    '__asm__(".symver dep_old, dep@D_1"); __asm__(".symver dep_new, dep@@D_2");'
    "int dep_old(void) { return 2; } int dep_new(void) { return 2; }"
)


def a_stack(world: World, host_dep: str, host_nodes: str, guest_dep: str, guest_nodes: str) -> Path:
    """A program whose library, and an MPI whose libmpi, need one libdep.so.1 each. Returns the
    host's libmpi."""
    theirs = world.guest("libdep.so.1", guest_dep, nodes=guest_nodes)
    user = world.guest("libuser.so.1", CALLS.format(dep="dep", name="user"), needs=[theirs])
    own = world.guest("libmpi.so.40", DEP.format(name="MPI_Init", value=0))
    world.app(own, user)
    ours = world.ours("libdep.so.1", host_dep, nodes=host_nodes)
    return world.ours("libmpi.so.40", CALLS.format(dep="dep", name="MPI_Init"), needs=[ours])


def test_a_private_copy_is_really_separate(world: World) -> None:
    dep = DEP.format(name="dep", value=1), GUEST_ONLY
    libmpi = a_stack(world, DEP.format(name="dep", value=2), HOST_ONLY, *dep)
    found, ran = grafted(world, libmpi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.PRIVATE
    assert (ran.user, ran.mpi) == (1, 2)
    assert named(ran, "libdep.so.1") == sorted(
        [f"{PLACE}/lib/mpigraft-libdep.so.1", f"/{world.lib.relative_to(world.root)}/libdep.so.1"]
    )


def test_the_hosts_serves_both_where_it_can(world: World) -> None:
    libmpi = a_stack(world, OLD_AND_NEW, BOTH, DEP.format(name="dep", value=1), GUEST_ONLY)
    found, ran = grafted(world, libmpi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.HOST
    assert (ran.user, ran.mpi) == (2, 2)
    assert len(named(ran, "libdep.so.1")) == 1


def test_the_guests_serves_both_where_it_can(world: World) -> None:
    libmpi = a_stack(
        world, DEP.format(name="dep", value=2), GUEST_ONLY,
        DEP.format(name="dep", value=1), GUEST_ONLY,
    )  # fmt: skip
    found, ran = grafted(world, libmpi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.GUEST
    assert (ran.user, ran.mpi) == (1, 1)
    assert len(named(ran, "libdep.so.1")) == 1


@pytest.mark.parametrize("flags", ["-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"])
def test_a_program_with_a_search_path_has_the_copy_and_the_copy_its_own(
    world: World, flags: str
) -> None:
    own = world.guest("libmpi.so.40", DEP.format(name="MPI_Init", value=0), at="/opt/mpi/lib")
    user = world.guest("libuser.so.1", DEP.format(name="user", value=1))
    world.app(own, user, flags=[flags, "-Wl,-rpath,/opt/mpi/lib"])
    pal = world.ours("libopen-pal.so.80", DEP.format(name="pal", value=3))
    libmpi = world.ours("libmpi.so.40", CALLS.format(dep="pal", name="MPI_Init"), needs=[pal])
    found, ran = grafted(world, libmpi)
    assert found.libmpi == "/opt/mpi/lib/libmpi.so.40"
    assert ran.mpi == 3
    assert named(ran, "libmpi.so.40") == [found.libmpi]
    assert named(ran, "libopen-pal.so.80") == [f"{PLACE}/lib/libopen-pal.so.80"]


def test_two_names_of_one_library_are_one_mapping(world: World) -> None:
    """A program of Debian's MPICH asks for libmpich.so.12, the host's Fortran for libmpi.so.12."""
    own = world.guest("libmpich.so.12", DEP.format(name="MPI_Init", value=0))
    fortran = world.guest("libmpichfort.so.12", DEP.format(name="user", value=0))
    world.app(own, fortran)
    counted = "static int calls; int MPI_Init(void) { return ++calls; }"
    libmpi = world.ours("libmpi.so.12", counted)
    world.ours("libmpifort.so.12", CALLS.format(dep="MPI_Init", name="user"), needs=[libmpi])
    found, ran = grafted(world, libmpi)
    assert sorted((ran.user, ran.mpi)) == [1, 2]  # both call one library's, whichever first
    mapped = {number for path, number in ran.maps.items() if re.search(r"libmpi(ch)?\.so", path)}
    assert len(mapped) == 1
    assert not found.absent


def test_a_guest_without_an_mpi_finds_it_in_the_graft(world: World) -> None:
    user = world.guest("libuser.so.1", DEP.format(name="user", value=1))
    libmpi = world.ours("libmpi.so.40", DEP.format(name="MPI_Init", value=5))
    world.app(user, libmpi)
    found, ran = grafted(world, libmpi)
    assert not found.binds
    assert (ran.user, ran.mpi) == (1, 5)
    assert named(ran, "libmpi.so.40") == [f"{PLACE}/lib/libmpi.so.40"]


def test_neither_the_guest_nor_the_hosts_libraries_are_written_to(world: World) -> None:
    dep = DEP.format(name="dep", value=1), GUEST_ONLY
    libmpi = a_stack(world, DEP.format(name="dep", value=2), HOST_ONLY, *dep)
    program(world.host / "bench", needs=[libmpi])

    def state(folder: Path) -> dict[str, tuple[object, ...]]:
        rows: dict[str, tuple[object, ...]] = {}
        for file in sorted(folder.rglob("*")):
            seen = file.lstat()
            data = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
            rows[str(file)] = (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_mode, data)
        return rows

    before = state(world.root)
    libraries = {p: s for p, s in state(world.host).items() if ".so." in p}
    _, ran = grafted(world, libmpi)
    assert ran.mpi == 2
    assert state(world.root) == before
    assert {p: s for p, s in state(world.host).items() if ".so." in p} == libraries


def test_unversioned_names_of_a_private_copy_are_its_own(world: World) -> None:
    """Both sides' libraries define `dep`, without versions, and each lacks what the other needs."""
    theirs = world.guest("libdep.so.1", "int dep(void) { return 1; } int old(void) { return 0; }")
    calls = "int dep(void); int {0}(void); int {1}(void) {{ return dep() + {0}(); }}"
    user = world.guest("libuser.so.1", calls.format("old", "user"), needs=[theirs])
    own = world.guest("libmpi.so.40", DEP.format(name="MPI_Init", value=0))
    world.app(own, user)
    ours = world.ours("libdep.so.1", "int dep(void) { return 2; } int new(void) { return 0; }")
    libmpi = world.ours("libmpi.so.40", calls.format("new", "MPI_Init"), needs=[ours])
    found, ran = grafted(world, libmpi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.PRIVATE
    assert (ran.user, ran.mpi) == (1, 2)


@pytest.mark.skipif(
    "GLIBC_2.36" not in reader.read_elf(HOST_LIBC).version_defs,
    reason="this machine's glibc is too old",
)
def test_the_hosts_glibc_goes_in_whole_where_the_guests_is_too_old(world: World) -> None:
    patched(world.lib / "libc.so.6", (b"GLIBC_2.36\0", b"GLIBC_2.xx\0"))
    user = world.guest("libuser.so.1", DEP.format(name="user", value=1))
    own = world.guest("libmpi.so.40", DEP.format(name="MPI_Init", value=0))
    world.app(own, user)
    source = "unsigned arc4random(void); int MPI_Init(void) { return arc4random() ? 7 : 7; }"
    libmpi = world.ours("libmpi.so.40", source, needs=[HOST_LIBC])
    found, ran = grafted(world, libmpi)
    assert found.glibc
    assert found.glibc_lacking == ("GLIBC_2.36",)
    assert (ran.user, ran.mpi) == (1, 7)
    (libc,) = named(ran, "libc.so.6")
    (loader,) = named(ran, LOADER.rpartition("/")[2])
    assert {libc, loader} <= {bind.target for bind in found.binds}
    kept = {str(f.stat().st_ino) for f in folders.home().rglob("glibc/*")}
    assert {ran.maps[libc].split()[1], ran.maps[loader].split()[1]} <= kept
    stays, refused = started(world, libmpi, glibc=False)
    assert not stays.glibc
    assert not refused.ok
    assert "GLIBC_2.36" in refused.text()
