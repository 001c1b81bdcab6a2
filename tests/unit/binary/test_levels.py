"""Other CPUs than this one: each level that the real loader can be made to take."""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpigraft.binary.architecture import levels
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.loader import dependencies
from mpigraft.binary.loader.files import RootFiles
from mpigraft.core.process.command import run_command
from tests.builders.elf import program
from tests.oracles.guest_loader import LOADER, small_root, told_in
from tests.oracles.loader import library, runpath

LDCONFIG = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin") or ""
# glibc.cpu.hwcaps hides features from a loader of 2.33 and newer.
HIDDEN = {
    "x86-64-v4": "", "x86-64-v3": "-AVX512F", "x86-64-v2": "-AVX2", "x86-64-v1": "-SSSE3",
}  # fmt: skip
FLAGS = {"x86-64-v4": levels.V4, "x86-64-v3": levels.V3, "x86-64-v2": levels.V2}
PLACES = [
    f"{folder}/{sub}".rstrip("/")
    for folder in ("opt/a", "opt/b", "opt/c")
    for sub in (*(f"glibc-hwcaps/x86-64-v{n}" for n in (4, 3, 2)), "")
]
needs_loader = pytest.mark.skipif(
    not Path(LOADER).exists() or platform.machine() != "x86_64", reason="needs glibc of x86-64"
)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """p searches /opt/a and /opt/b for one.so and two.so, and the cache has /opt/c."""
    folder = small_root(tmp_path_factory.mktemp("levels"))
    two = library(folder / "built/two.so")
    library(folder / "built/one.so", two)
    needs = [folder / "built/one.so", two]
    program(folder / "p", needs=needs, flags=runpath("/opt/a", "/opt/b"))
    (folder / "etc/ld.so.conf").write_text("/opt/c\n")
    return folder


def level_here() -> list[str]:
    """The levels that the loader takes on this CPU, or can be made to take."""
    own = levels.cpu_flags("x86_64")
    return [level for level in HIDDEN if own >= FLAGS.get(level, frozenset())]


def forced(level: str) -> dict[str, str]:
    return {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={HIDDEN[level]}"}


@pytest.mark.root
@needs_loader
@settings(max_examples=8, deadline=None)
@given(
    places=st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(["one.so", "two.so"])),
                    unique=True, max_size=8),
    cached=st.booleans(),
)  # fmt: skip
def test_each_level_maps_what_the_real_loader_maps_there(
    guest: Path, places: list[tuple[str, str]], cached: bool
) -> None:
    shutil.rmtree(guest / "opt", ignore_errors=True)
    for folder, name in places:
        (guest / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(guest / "built" / name, guest / folder / name)
    (guest / "etc/ld.so.cache").unlink(missing_ok=True)
    (guest / "opt/c").mkdir(parents=True, exist_ok=True)
    if cached:
        assert run_command([LDCONFIG, "-r", guest]).ok
    by_level = dependencies.closures("/p", environment={}, root=FolderRoot(guest))
    for level in level_here():
        found = [os.path.normpath(r.path) if r.path else r.name for r in by_level[level]]
        told = told_in(guest, "/p", forced(level)).maps
        assert [m for m in found if m != LOADER] == [m for m in told if m != LOADER], level


@pytest.mark.root
@needs_loader
def test_masked_capabilities_are_a_level(guest: Path) -> None:
    """glibc.cpu.hwcap_mask hides the older folders for capabilities, until glibc 2.36. The
    platform of an Intel CPU with AVX2 is haswell, whatever is masked."""
    shutil.rmtree(guest / "opt", ignore_errors=True)
    text = run_command(
        [LOADER, "--list", "/bin/true"],
        env={"LD_DEBUG": "libs", "LD_LIBRARY_PATH": "/x", "LD_PRELOAD": "none.so",
             "LD_HWCAP_MASK": "0", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-SSSE3,-AVX2"},
    ).text()  # fmt: skip
    told = re.search(r"search path=(\S*)\s+\(LD_LIBRARY_PATH\)", text)
    assert told
    root = FolderRoot(guest)
    main = root.elf("/p")
    flags = levels.LEVELS["x86_64"]["x86-64-v1 masked"]
    searched = RootFiles(root).loader_on(main, flags).subfolders
    assert [*(f"/x/{sub}" for sub in searched), "/x"] == told[1].split(":")


def test_levels_share_a_closure_where_no_file_is_for_some_cpus(guest: Path) -> None:
    shutil.rmtree(guest / "opt", ignore_errors=True)
    by_level = dependencies.closures(
        "/usr/bin/env", environment={}, root=FolderRoot(guest), flags=frozenset()
    )
    assert levels.HERE in by_level
    assert len({id(rows) for rows in by_level.values()}) == 1
    assert by_level[levels.HERE] == dependencies.closure(
        "/usr/bin/env", environment={}, root=FolderRoot(guest)
    )


def test_a_platform_in_a_path_differs_between_cpus(guest: Path) -> None:
    """Until 2.36 $PLATFORM is haswell on Intel's, x86_64 on others."""
    root = FolderRoot(guest)
    main = root.elf("/p")
    words = {
        RootFiles(root).loader_on(main, flags).platform
        for flags in levels.LEVELS["x86_64"].values()
    }
    shutil.rmtree(guest / "opt", ignore_errors=True)
    for word in words:
        (guest / "opt" / word).mkdir(parents=True)
        for name in ("one.so", "two.so"):
            shutil.copy(guest / "built" / name, guest / "opt" / word / name)
    by_level = dependencies.closures(
        "/p", environment={"LD_LIBRARY_PATH": "/opt/$PLATFORM"}, root=root
    )
    folders = {r.path.parent.name for rows in by_level.values() for r in rows[:1] if r.path}
    assert folders == words


def test_what_is_copied_from_this_machine_runs_on_any_cpu(tmp_path: Path) -> None:
    """A v3 copy of the host's would end with SIGILL on a node that lacks it."""
    (level, *_), name = level_here(), "b.so"
    b = library(tmp_path / name)
    main = library(tmp_path / "a.so", b, flags=runpath(str(tmp_path)))
    only = library(tmp_path / "only.so")
    both = library(tmp_path / "both.so", b, only, flags=runpath(str(tmp_path)))
    fast = tmp_path / "glibc-hwcaps" / level
    fast.mkdir(parents=True)
    shutil.copy(b, fast / name)
    only.rename(fast / "only.so")
    plain = {r.name: r.path for r in dependencies.closure(main, environment={}, portable=True)}
    assert plain[name] == b
    if level != "x86-64-v1":
        here = {r.name: r.path for r in dependencies.closure(main, environment={})}
        assert here[name] == fast / name
        rows = {r.name: r.path for r in dependencies.closure(both, environment={}, portable=True)}
        assert (rows[name], rows["only.so"]) == (b, fast / "only.so")


def test_flags_of_another_kernel() -> None:
    text = "vendor_id\t: GenuineIntel\nflags\t\t: fpu avx2 bmi1 masked\n\nflags : avx512f\n"
    assert levels.parse_flags(text) == {"GenuineIntel", "avx2", "bmi1"}
    assert levels.parse_flags("Features\t: fp asimd atomics\n") == {"atomics"}
    assert levels.parse_flags("") == frozenset()
