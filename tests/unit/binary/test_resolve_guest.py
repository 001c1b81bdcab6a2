"""Guests, whose loader is not run, against that very loader, which a test may run by chroot."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.architecture import levels
from mpigraft.binary.elf import reader
from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.over import OverlayRoot
from mpigraft.binary.loader import dependencies
from mpigraft.binary.loader import guest as guest_loader
from mpigraft.binary.loader.guest import ForeignLoader
from mpigraft.binary.loader.search import Rule
from mpigraft.core.process import command
from tests.builders.elf import compiled, program
from tests.builders.messages import shows
from tests.oracles.guest_loader import (
    LOADER,
    agree_in,
    libraries_of,
    loader_here,
    patched,
    small_root,
)
from tests.oracles.loader import library, rpath, runpath

needs_loader = pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader")
LDCONFIG = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin") or ""


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    """A small root of its own for each test."""
    return small_root(tmp_path / "guest")


# ------------------------------------------------------------------ asked by chroot


@pytest.mark.root
@needs_loader
@pytest.mark.parametrize("make", [rpath, runpath])
def test_paths_are_those_inside(
    make: Callable[..., tuple[str, str]], guest: Path, tmp_path: Path
) -> None:
    """The host has another library at the very same place, and nothing leads there."""
    b = library(guest / "opt/lib/b.so")
    a = library(guest / "opt/lib/a.so", b, flags=make("/opt/lib"))
    program(guest / "opt/bin/p", needs=[a], flags=make(f"{tmp_path}/lib", "/opt/lib"))
    library(tmp_path / "lib/a.so")
    found = agree_in(guest, "/opt/bin/p")
    assert found["a.so"].path == Path("/opt/lib/a.so")
    assert found["b.so"].needed_by == Path("/opt/lib/a.so")
    assert found["a.so"].rule in (Rule.RPATH, Rule.RUNPATH)


@pytest.mark.root
@needs_loader
def test_rpath_and_runpath_with_the_environment_between(guest: Path) -> None:
    for folder in ("old", "env", "new"):
        library(guest / folder / "a.so")
        library(guest / folder / "b.so")
    needs = [guest / "old/a.so", guest / "old/b.so"]
    program(guest / "p", needs=needs, flags=runpath("/new"))
    program(guest / "q", needs=needs, flags=rpath("/old"))
    for name in ("/p", "/q"):
        agree_in(guest, name)
    found = agree_in(guest, "/p", {"LD_LIBRARY_PATH": "/env"})
    assert found["a.so"].path == Path("/env/a.so")
    found = agree_in(guest, "/q", {"LD_LIBRARY_PATH": "/env", "LD_PRELOAD": "/new/b.so"})
    assert [found["a.so"].path, found["/new/b.so"].path] == [Path("/old/a.so"), Path("/new/b.so")]


@pytest.mark.root
@needs_loader
def test_origin_through_links_that_lead_around_inside(guest: Path) -> None:
    """An absolute link counts from the guest's own top, for programs as for libraries."""
    b = library(guest / "opt/app/lib/b.so")
    a = library(guest / "opt/app/lib/a.so", b, flags=runpath("$ORIGIN/../deep"))
    library(guest / "opt/app/deep/b.so")
    program(guest / "opt/app/bin/p", needs=[a], flags=runpath("$ORIGIN/../lib"))
    (guest / "usr/local").mkdir(parents=True, exist_ok=True)
    (guest / "usr/local/bin").symlink_to("/opt/app/bin")
    (guest / "usr/local/p").symlink_to("../../../../usr/local/bin/p")
    found = agree_in(guest, "/usr/local/p")
    assert shows(found["a.so"].where, "$ORIGIN/../lib", "/opt/app/bin/p")
    assert found["b.so"].path == Path("/opt/app/bin/../lib/../deep/b.so")


@pytest.mark.root
@needs_loader
def test_a_loader_of_its_own_with_folders_and_cache_of_its_own(guest: Path) -> None:
    """A software stack's: what stands in its bytes counts, not what is usual."""
    own = guest / "stack/ld.so"
    own.parent.mkdir()
    shutil.copy2(guest / LOADER.lstrip("/"), own)
    usual = guest_loader.loader_in(own.read_bytes(), LOADER, reader.read_elf(own), frozenset())
    first = next(d for d in usual.defaults if not d.endswith(usual.subfolders)) + "/"
    mine = "/stack/" + "x" * (len(first) - 8) + "/"
    patched(
        own, (first.encode() + b"\0", mine.encode() + b"\0"), (b"/etc/ld.so.c", b"/stk/ld.so.c")
    )
    flags = (f"-Wl,--dynamic-linker=/{own.relative_to(guest)}",)
    shutil.copytree(libraries_of(guest), guest / mine.strip("/"), dirs_exist_ok=True)
    a = library(guest / mine.strip("/") / "a.so")
    b = library(guest / first.strip("/") / "b.so")
    program(guest / "p", needs=[a, b], flags=flags)
    found = agree_in(guest, "/p")
    assert found["a.so"].rule is Rule.DEFAULT
    assert found["b.so"].path is None
    loader = loader_here(FolderRoot(guest), "/p")
    assert (loader.path, loader.cache) == ("/stack/ld.so", "/stk/ld.so.cache")


@pytest.mark.root
@needs_loader
@pytest.mark.parametrize("form", ["new", "compat", "old"])
def test_caches_of_all_formats(form: str, guest: Path) -> None:
    a = library(guest / "opt/lib/liba.so.1")
    for sub in ("glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v9"):
        library(guest / "opt/lib" / sub / "liba.so.1")
    program(guest / "p", needs=[a])
    (guest / "etc/ld.so.conf").write_text("/opt/lib\n")
    if not command.run_command([LDCONFIG, "-r", guest, "-c", form]).ok:
        pytest.skip(f"this ldconfig does not write the {form} format")
    assert agree_in(guest, "/p")["liba.so.1"].rule is Rule.LD_CACHE
    (guest / "etc/ld.so.cache").write_bytes(b"ld.so-1.7.0 and no more")
    assert agree_in(guest, "/p")["liba.so.1"].path is None


@pytest.mark.root
@needs_loader
def test_no_cache_at_all(guest: Path) -> None:
    a = library(guest / "usr/lib/a.so")
    program(guest / "p", needs=[a])
    assert agree_in(guest, "/p")["a.so"].rule is Rule.DEFAULT
    agree_in(guest, "/usr/bin/env")


@pytest.mark.root
@needs_loader
def test_every_hwcaps_folder_in_its_turn(guest: Path) -> None:
    """Those of glibc 2.33 and later and, until 2.36, the older ones too."""
    path = program(guest / "p", needs=[library(guest / "opt/a.so")])
    environment = {"LD_LIBRARY_PATH": "/opt"}
    loader = loader_here(FolderRoot(guest), f"/{path.name}")
    assert agree_in(guest, "/p", environment)["a.so"].path == Path("/opt/a.so")
    for sub in reversed(loader.subfolders):
        library(guest / "opt" / sub / "a.so")
        assert agree_in(guest, "/p", environment)["a.so"].path == Path("/opt", sub, "a.so")


@pytest.mark.root
@needs_loader
@pytest.mark.parametrize("entry", ["/opt/$LIB", "/opt/${PLATFORM}/x", "$ORIGIN/opt"])
def test_tokens(entry: str, guest: Path) -> None:
    loader = loader_here(FolderRoot(guest), "/usr/bin/env")
    for folder in (f"opt/{loader.lib}", f"opt/{loader.platform}/x", "opt"):
        a = library(guest / folder / "a.so")
    program(guest / "p", needs=[a], flags=runpath(entry))
    assert agree_in(guest, "/p")["a.so"].path


@pytest.mark.root
@needs_loader
def test_links_in_a_circle_and_out_of_the_root(guest: Path, tmp_path: Path) -> None:
    a = library(guest / "good/a.so")
    library(tmp_path / "outside/a.so")
    (guest / "round").symlink_to("round")
    (guest / "out").symlink_to(f"../../../../../..{tmp_path}/outside")
    program(guest / "p", needs=[a], flags=runpath("/round", "/out", "/../../good"))
    assert agree_in(guest, "/p")["a.so"].path == Path("/../../good/a.so")


# ------------------------------------------------------------------ what dlopen adds

OPENER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
static int tell(struct dl_phdr_info *info, size_t size, void *nothing)
{ (void)size; (void)nothing; return printf("%s\\n", info->dlpi_name) < 0; }
void open_all(int count, char **names)
{
    for (int i = 1; i < count; i++)
        if (!dlopen(names[i], RTLD_NOW))
            printf("! %s\\n", dlerror());
    dl_iterate_phdr(tell, 0);
}
"""
STARTER = """
void open_all(int count, char **names);
int main(int count, char **names) { open_all(count, names); return 0; }
"""


@needs_loader
@pytest.mark.parametrize("main", [rpath, runpath])
def test_what_is_opened_comes_after(
    main: Callable[[Path], tuple[str, str]], tmp_path: Path
) -> None:
    """Compared with a process that opens. A library opens plugins along its own RPATH, which does
    not serve what they need; the program's does. One plugin lacks something: what it needs besides
    stays unloaded, so that the next one brings it again."""
    deep = library(tmp_path / "deep/deep.so")
    gone = library(tmp_path / "stub/gone.so")
    library(tmp_path / "plugins/broken.so", deep, gone, flags=runpath("$ORIGIN/../deep"))
    library(tmp_path / "plugins/own.so", deep, flags=rpath("$ORIGIN/../deep"))
    library(tmp_path / "plugins/poor.so", library(tmp_path / "plugins/other.so"))
    library(tmp_path / "plugins/main.so", library(tmp_path / "lib/beside.so"))
    opener = tmp_path / "lib/opener.so"
    flags = ("-lc", *rpath(tmp_path / "plugins"))
    compiled(opener, OPENER, soname="opener.so", flags=flags)
    (tmp_path / "p.c").write_text(STARTER)
    started = tmp_path / "p"
    argv: list[str | Path] = ["gcc", "-o", started, tmp_path / "p.c", opener]
    done = command.run_command([*argv, *main(opener.parent)])
    assert done.ok, done.text()
    names = ["broken.so", "poor.so", "main.so", "own.so", "absent.so", f"{tmp_path}/stub/gone.so"]
    told = command.run_command([started, *names], env={}).text().splitlines()
    real = [line for line in told if line.startswith("/") and "ld-linux" not in line]
    rows = dependencies.closure(
        started, environment={}, root=FolderRoot(Path("/")), opened={"opener.so": names}
    )
    mapped = [str(r.path) for r in rows if r.elf and "ld-linux" not in str(r.path)]
    assert [os.path.realpath(m) for m in mapped] == [os.path.realpath(r) for r in real]
    refused = {r.name: r.problem for r in rows if r.name in names and not r.elf}
    assert len(refused) == sum(line.startswith("!") for line in told)
    assert shows(refused["broken.so"], "gone.so")
    assert ("main.so" in refused) == (main is runpath)
    assert {r.how for r in rows if r.name == "own.so"} == {"opened by opener.so"}
    lost = next(r for r in rows if not r.path)
    assert (lost.name, lost.needed_by) == ("gone.so", tmp_path / "plugins/broken.so")


# ------------------------------------------------------------------ without asking


def test_a_guest_of_another_machine(tmp_path: Path) -> None:
    """By the usual folders, as there is no loader; of the loader's bytes otherwise."""
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    pytest.importorskip("ziglang")
    compiler = (sys.executable, "-m", "ziglang", "cc", "-target", f"{other}-linux-gnu")
    folder = f"usr/lib/{other}-linux-gnu"
    a = compiled(tmp_path / folder / "a.so", soname="a.so", compiler=compiler)
    compiled(tmp_path / "lib/b.so", soname="b.so", compiler=compiler)
    main = tmp_path / "lib/main.so"
    compiled(main, needs=[a, tmp_path / "lib/b.so"], compiler=compiler, soname="main.so")
    rows = dependencies.closure("/lib/main.so", environment={}, root=FolderRoot(tmp_path))
    assert [str(r.path) for r in rows] == [f"/{folder}/a.so", "/lib/b.so"]
    assert levels.cpu_flags(other) == frozenset()


def test_musl_is_refused(tmp_path: Path) -> None:
    for interpreter in ("/lib/ld-musl-x86_64.so.1", "/lib/libc.so"):
        path = program(tmp_path / "p", flags=[f"-Wl,--dynamic-linker={interpreter}"])
        (tmp_path / "lib").mkdir(exist_ok=True)
        (tmp_path / "lib/libc.so").write_bytes(b"\x7fELF" + b"\0musl libc (x86_64)\0")
        with pytest.raises(ForeignLoader, match="musl"):
            dependencies.closure(f"/{path.name}", environment={}, root=FolderRoot(tmp_path))


@needs_loader
def test_the_version_of_glibc(guest: Path, tmp_path: Path) -> None:
    told = os.confstr("CS_GNU_LIBC_VERSION") or ""
    assert guest_loader.glibc_version(FolderRoot(guest)) == told.removeprefix("glibc ")
    empty = tmp_path / "empty"
    (empty / "lib").mkdir(parents=True)
    assert guest_loader.glibc_version(FolderRoot(empty)) == ""
    (empty / "lib/libc.so.6").write_bytes(b"no C library at all")
    assert guest_loader.glibc_version(FolderRoot(empty)) == ""


# ------------------------------------------------------------------ hostile


@pytest.mark.parametrize("interpreter", ["/dev/zero", "/fifo", "/folder", "/round", "relative"])
def test_interpreters_that_are_none(interpreter: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dev").mkdir()
    (tmp_path / "round").symlink_to("round")
    a = library(tmp_path / "usr/lib/a.so")
    program(tmp_path / "p", needs=[a], flags=[f"-Wl,--dynamic-linker={interpreter}"])
    (row,) = dependencies.closure("/p", environment={}, root=FolderRoot(tmp_path))
    assert row.path == Path("/usr/lib/a.so")


NAMES = ["a.so", "b.so", "c.so", "d.so"]
FOLDERS = ["/x", "/y", "$ORIGIN", "$ORIGIN/../y", "", "/x/../y/", "relative", "${LIB}"]


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Elf]:
    """Libraries that need one another in any way, some of them broken for the loader."""
    paths = [f"{folder}/{name}" for folder in ("/x", "/y") for name in NAMES]
    found = {}
    for path in ["/p", *draw(st.lists(st.sampled_from(paths), unique=True))]:
        search = st.none() | st.lists(st.sampled_from(FOLDERS), max_size=4).map(":".join)
        found[path] = Elf(
            name=path,
            machine=draw(st.sampled_from(["x86_64"] * 9 + ["i386"])),
            bits=64,
            endian="little",
            type="dyn",
            osabi=draw(st.sampled_from([0] * 9 + [9])),
            soname=draw(st.none() | st.sampled_from(NAMES)),
            needed=tuple(draw(st.lists(st.sampled_from([*NAMES, "/y/a.so"]), max_size=4))),
            rpath=draw(search),
            runpath=draw(search),
        )
    return found


@given(tree=trees(), plugins=st.lists(st.sampled_from([*NAMES, "/x/d.so"]), max_size=3))
def test_any_tree_ends_and_maps_each_file_once(
    empty: FolderRoot, tree: dict[str, Elf], plugins: list[str]
) -> None:
    root = OverlayRoot(empty, tree)
    opened = dict.fromkeys(NAMES, plugins)
    rows = dependencies.closure(
        "/p", environment={"LD_LIBRARY_PATH": "/y"}, root=root, opened=opened
    )
    files = [found.identity for r in rows if r.elf and (found := root.find(str(r.path)))]
    assert len(files) == len(set(files)) == sum(r.elf is not None for r in rows)
    assert all(r.elf or r.problem or r.tried for r in rows)
    mapped = {"/p", *(os.path.normpath(r.path) for r in rows if r.path)}
    assert {os.path.normpath(r.needed_by) for r in rows} <= mapped
    plain = dependencies.closure("/p", environment={"LD_LIBRARY_PATH": "/y"}, root=root)
    assert rows[: len(plain)] == plain


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> FolderRoot:
    return FolderRoot(tmp_path_factory.mktemp("empty"))


def test_search_paths_without_end(tmp_path: Path) -> None:
    program(tmp_path / "p", needs=[library(tmp_path / "a.so")], flags=rpath(":".join("x" * 5000)))
    with pytest.raises(ElfError, match="more than 4096 folders"):
        dependencies.closure("/p", environment={}, root=FolderRoot(tmp_path))


def test_more_looks_than_anyone_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").mkdir()
    program(tmp_path / "p", needs=[library(tmp_path / "a.so")], flags=rpath(*["/x"] * 300))
    monkeypatch.setattr("mpigraft.binary.loader.search.MAX_PROBES", 200)
    with pytest.raises(ElfError, match="more than 200 files"):
        dependencies.closure("/p", environment={}, root=FolderRoot(tmp_path))


def test_things_that_are_no_libraries(tmp_path: Path) -> None:
    a = library(tmp_path / "good/a.so")
    os.mkfifo(tmp_path / "a.so")
    program(tmp_path / "p", needs=[a], flags=runpath("/", "/good"))
    (row,) = dependencies.closure("/p", environment={}, root=FolderRoot(tmp_path))
    assert re.search("not a regular file", row.problem)
