"""Resolution against the real loader: one small tree of libraries for each of its rules."""

from __future__ import annotations

import os
import platform
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.loader import dependencies, files, host, ld_cache
from mpigraft.binary.loader.search import Rule
from mpigraft.core.process import command
from tests.builders.elf import DT_RPATH, DT_RUNPATH, compiled, program
from tests.builders.messages import shows
from tests.oracles.loader import LOADER, agree, library, rpath, runpath, traced

pytestmark = pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader")


# ------------------------------------------------------------------ one rule each


def test_rpath_serves_the_libraries_of_libraries_too(tmp_path: Path) -> None:
    b = library(tmp_path / "lib/b.so")
    a = library(tmp_path / "lib/a.so", b)
    found = agree(program(tmp_path / "p", needs=[a], flags=rpath("$ORIGIN/lib")))
    assert found["b.so"].rule is Rule.RPATH
    assert shows(found["b.so"].how, "RPATH $ORIGIN/lib", f"{tmp_path}/p")
    assert found["b.so"].needed_by == tmp_path / "lib/a.so"


def test_runpath_serves_its_own_file_alone(tmp_path: Path) -> None:
    b = library(tmp_path / "lib/b.so")
    a = library(tmp_path / "lib/a.so", b)
    found = agree(program(tmp_path / "p", needs=[a], flags=runpath("$ORIGIN/lib")))
    assert found["a.so"].rule is Rule.RUNPATH
    assert found["b.so"].path is None
    assert found["b.so"].rule is Rule.NONE
    assert any(line.startswith("ld.so.cache") for line in found["b.so"].tried)
    assert shows(found["b.so"].tried, "default folders")


@pytest.mark.parametrize(("make", "winner"), [(rpath, "own"), (runpath, "env")])
def test_the_environment_stands_between_rpath_and_runpath(
    make: Callable[[Path], tuple[str, str]], winner: str, tmp_path: Path
) -> None:
    library(tmp_path / "env/a.so")
    a = library(tmp_path / "own/a.so")
    path = program(tmp_path / "p", needs=[a], flags=make(tmp_path / "own"))
    found = agree(path, {"LD_LIBRARY_PATH": str(tmp_path / "env")})
    assert found["a.so"].path == tmp_path / winner / "a.so"


def test_a_runpath_shuts_out_the_rpath_of_ancestors(tmp_path: Path) -> None:
    b = library(tmp_path / "lib/b.so")
    a = library(tmp_path / "lib/a.so", b, flags=runpath(tmp_path / "elsewhere"))
    found = agree(program(tmp_path / "p", needs=[a], flags=rpath(tmp_path / "lib")))
    assert found["b.so"].path is None


def test_the_nearest_rpath_comes_first(tmp_path: Path) -> None:
    library(tmp_path / "main/c.so")
    c = library(tmp_path / "near/c.so")
    b = library(tmp_path / "main/b.so", c, flags=rpath(tmp_path / "near"))
    a = library(tmp_path / "main/a.so", b)
    path = program(tmp_path / "p", needs=[a], flags=rpath(tmp_path / "main"))
    assert agree(path)["c.so"].path == tmp_path / "near/c.so"


def test_an_rpath_beside_a_runpath_does_not_count(tmp_path: Path) -> None:
    """No linker writes both; patchelf and other tools do."""
    b = library(tmp_path / "own/b.so")
    library(tmp_path / "env/a.so", b)
    a = library(tmp_path / "own/a.so", b)
    path = program(tmp_path / "p", needs=[a], flags=runpath(tmp_path / "own"))
    data = bytearray(path.read_bytes())
    (phoff,), (phnum,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    heads = [struct.unpack_from("<IIQ", data, phoff + 56 * n) for n in range(phnum)]
    at = next(offset for kind, _, offset in heads if kind == 2)
    rows = list(struct.iter_unpack("<QQ", data[at : at + 16 * 40]))
    value = dict(rows)[DT_RUNPATH]
    end = next(n for n, (tag, _) in enumerate(rows) if tag == 0)
    struct.pack_into("<QQQ", data, at + 16 * end, DT_RPATH, value, 0)
    path.write_bytes(data)
    assert reader.read_elf(path).rpath == reader.read_elf(path).runpath
    found = agree(path, {"LD_LIBRARY_PATH": str(tmp_path / "env")})
    assert found["a.so"].path == tmp_path / "env/a.so"
    assert found["b.so"].path is None


@pytest.mark.parametrize("token", ["$ORIGIN/$LIB", "${ORIGIN}/${LIB}/$PLATFORM", "$ORIGIN/$LIBX"])
def test_tokens(token: str, tmp_path: Path) -> None:
    loader = host.loader_of(reader.read_elf(sys.executable), {})
    words = {"$ORIGIN": str(tmp_path), "$LIB": loader.lib, "$PLATFORM": loader.platform}
    place = token.replace("{", "").replace("}", "").replace("$LIBX", "/literal")
    for word, value in words.items():
        place = place.replace(word, value)
    a = library(Path(place) / "a.so")
    path = program(tmp_path / "p", needs=[a], flags=runpath(token))
    assert (agree(path)["a.so"].path is None) == ("LIBX" in token)


def test_origin_of_a_linked_program_and_of_a_linked_library(tmp_path: Path) -> None:
    """The kernel resolves a program's links, the loader no library's."""
    b = library(tmp_path / "real/deep/b.so")
    library(tmp_path / "links/deep/b.so")
    a = library(tmp_path / "real/a.so", b, flags=runpath("$ORIGIN/deep"))
    path = program(tmp_path / "bin/p", needs=[a], flags=runpath("$ORIGIN/../links"))
    (tmp_path / "links/a.so").symlink_to(tmp_path / "real/a.so")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere/p"
    link.symlink_to(path)
    found = agree(link)["b.so"].path
    assert found
    assert found.samefile(tmp_path / "links/deep/b.so")


def test_hwcaps_subfolders_come_first_and_the_best_of_them(tmp_path: Path) -> None:
    loader = host.loader_of(reader.read_elf(sys.executable), {})
    a = library(tmp_path / "lib/a.so")
    path = program(tmp_path / "p", needs=[a])
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "lib")}
    assert agree(path, environment)["a.so"].path == a
    for sub in reversed(loader.subfolders):
        better = library(tmp_path / "lib" / sub / "a.so")
        assert agree(path, environment)["a.so"].path == better
    library(tmp_path / "lib/glibc-hwcaps/x86-64-v9/a.so")
    agree(path, environment)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="masks are named for each machine")
def test_settings_of_the_loader_change_what_it_searches(tmp_path: Path) -> None:
    a = library(tmp_path / "lib/a.so")
    library(tmp_path / "lib/glibc-hwcaps/x86-64-v2/a.so")
    path = program(tmp_path / "p", needs=[a])
    masked = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-SSE4_2"}
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "lib"), **masked}
    assert agree(path, environment)["a.so"].path == a


def test_libraries_of_other_machines_are_passed_by(tmp_path: Path) -> None:
    a = library(tmp_path / "good/a.so")
    path = program(tmp_path / "p", needs=[a])
    for target in ("aarch64-linux-gnu", "x86_64-linux-gnu", "x86-linux-gnu", "s390x-linux-gnu"):
        if not target.startswith(f"{platform.machine()}-"):
            zig = (sys.executable, "-m", "ziglang", "cc", "-target", target)
            compiled(tmp_path / target / "a.so", soname="a.so", compiler=zig)
    folders = [*tmp_path.glob("*-linux-gnu"), tmp_path / "good"]
    assert len(folders) == 4
    # The loader ends with an error at another byte order, so that one is for another test.
    folders = [f for f in folders if "s390x" not in f.name]
    found = agree(path, {"LD_LIBRARY_PATH": ":".join(map(str, folders))})
    assert found["a.so"].path == tmp_path / "good/a.so"


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n" * 20, b"\x7fELF\2\1\1" + bytes(57)])
def test_the_loader_ends_at_a_broken_library(content: bytes, tmp_path: Path) -> None:
    a = library(tmp_path / "good/a.so")
    path = program(tmp_path / "p", needs=[a])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/a.so").write_bytes(content)
    environment = {"LD_LIBRARY_PATH": f"{tmp_path}/bad:{tmp_path}/good"}
    real = command.run_command([path], env={**environment, "LD_TRACE_LOADED_OBJECTS": "1"})
    assert not real.ok
    (found,) = dependencies.closure(path, environment=environment)
    assert found.path is None
    assert str(tmp_path / "bad/a.so") in found.problem
    assert found.how == found.problem


def test_the_loader_ends_at_an_object_file(tmp_path: Path) -> None:
    a = library(tmp_path / "good/a.so")
    path = program(tmp_path / "p", needs=[a])
    compiled(tmp_path / "bad/a.so", flags=["-no-pie", "-r"], shared=False)
    environment = {"LD_LIBRARY_PATH": f"{tmp_path}/bad:{tmp_path}/good"}
    assert not command.run_command([path], env={**environment, "LD_TRACE_LOADED_OBJECTS": "1"}).ok
    (found,) = dependencies.closure(path, environment=environment)
    assert shows(found.problem, "not a shared object")


def test_a_library_that_may_not_be_read_is_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For root, who may read all, the answer is made up."""
    library(tmp_path / "secret/a.so").chmod(0)
    a = library(tmp_path / "good/a.so")
    path = program(tmp_path / "p", needs=[a])
    real = reader.read_elf

    def read(name: Path | str) -> reader.Elf:
        if "secret" in str(name):
            raise ElfError(f"{name}: Permission denied") from PermissionError(13, "denied")
        return real(name)

    environment = {"LD_LIBRARY_PATH": f"{tmp_path}/secret:{tmp_path}/good"}
    monkeypatch.setattr(files, "read_elf", read)
    (found,) = dependencies.closure(path, environment=environment)
    assert found.path == a


def test_folders_and_fifos_in_the_way_do_not_hang(tmp_path: Path) -> None:
    a = library(tmp_path / "good/a.so")
    path = program(tmp_path / "p", needs=[a])
    (tmp_path / "folder/a.so").mkdir(parents=True)
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo/a.so")
    for way in ("folder", "fifo"):
        environment = {"LD_LIBRARY_PATH": f"{tmp_path}/{way}:{tmp_path}/good"}
        (found,) = dependencies.closure(path, environment=environment)
        assert shows(found.problem, "not a regular file")


def test_links_that_lead_nowhere_are_passed_by(tmp_path: Path) -> None:
    a = library(tmp_path / "good/a.so")
    path = program(tmp_path / "p", needs=[a])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/a.so").symlink_to("absent.so")
    agree(path, {"LD_LIBRARY_PATH": f"{tmp_path}/bad:{tmp_path}/good"})


@pytest.mark.parametrize("variable", [":/absent", "/absent:", "/absent;", "/absent;:"])
def test_an_empty_entry_is_the_working_folder(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = library(tmp_path / "a.so")
    path = program(tmp_path / "bin/p", needs=[a])
    monkeypatch.chdir(tmp_path)
    assert agree(path, {"LD_LIBRARY_PATH": variable})["a.so"].path == a
    assert agree(path, {"LD_LIBRARY_PATH": ""})["a.so"].path is None


def test_a_name_with_a_slash_is_a_path(tmp_path: Path) -> None:
    a = compiled(tmp_path / "lib/a.so")  # without a soname, its path goes into DT_NEEDED
    found = agree(program(tmp_path / "p", needs=[a]))
    assert found[str(a)].rule is Rule.PATH


def test_a_soname_that_is_loaded_is_not_looked_for(tmp_path: Path) -> None:
    b = library(tmp_path / "lib/b.so")
    other = compiled(tmp_path / "lib/other.so", soname="other.so")
    path = program(tmp_path / "p", needs=[other, b], flags=runpath(tmp_path / "run"))
    compiled(tmp_path / "run/other.so", soname="b.so")
    library(tmp_path / "run/b.so")
    assert list(agree(path)) == ["other.so"]


def test_two_names_of_one_file_are_one_object(tmp_path: Path) -> None:
    for name in ("a.so", "b.so", "c.so"):
        library(tmp_path / "link" / name)
    needs = [tmp_path / "link" / name for name in ("a.so", "b.so", "c.so")]
    path = program(tmp_path / "p", needs=needs, flags=runpath(tmp_path / "run"))
    compiled(tmp_path / "run/a.so")
    (tmp_path / "run/b.so").symlink_to("a.so")
    os.link(tmp_path / "run/a.so", tmp_path / "run/c.so")
    assert list(agree(path)) == ["a.so"]


def test_a_circle_of_libraries_ends(tmp_path: Path) -> None:
    library(tmp_path / "stub/b.so")
    a = library(tmp_path / "lib/a.so", tmp_path / "stub/b.so")
    library(tmp_path / "lib/b.so", a)
    found = agree(program(tmp_path / "p", needs=[a], flags=rpath(tmp_path / "lib")))
    assert list(found) == ["a.so", "b.so"]


def test_preloaded_libraries_come_first(tmp_path: Path) -> None:
    a = library(tmp_path / "lib/a.so")
    extra = library(tmp_path / "lib/extra.so", library(tmp_path / "lib/deep.so"))
    other = library(tmp_path / "elsewhere/other.so")
    path = program(tmp_path / "p", needs=[a], flags=rpath(tmp_path / "lib"))
    found = agree(path, {"LD_PRELOAD": f"extra.so:{other}  "})
    assert [r.rule for r in found.values()] == [Rule.PRELOAD, Rule.PRELOAD, Rule.RPATH, Rule.RPATH]
    assert list(found) == [extra.name, str(other), "a.so", "deep.so"]


def test_no_default_folders_when_the_file_says_so(tmp_path: Path) -> None:
    plain = program(tmp_path / "plain", flags=["-lm"])
    assert agree(plain)["libm.so.6"].rule in (Rule.LD_CACHE, Rule.DEFAULT)
    strict = program(tmp_path / "strict", flags=["-lm", "-Wl,-z,nodefaultlib"])
    assert agree(strict)["libm.so.6"].path is None


def test_default_folders_serve_without_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path / "p", flags=["-lm"])
    monkeypatch.setattr(ld_cache, "parse", lambda _: ld_cache.LdCache({}))
    files._ld_cache.cache_clear()
    found = {r.name: r for r in dependencies.closure(path, environment={})}
    files._ld_cache.cache_clear()
    assert found["libm.so.6"].rule is Rule.DEFAULT
    assert found["libm.so.6"].path
    assert found["libm.so.6"].path.samefile(traced(path, {})[0])


def test_a_missing_library_is_one_row_with_the_places_tried(tmp_path: Path) -> None:
    stub = library(tmp_path / "stub/gone.so")
    a = library(tmp_path / "lib/a.so", stub)
    path = program(tmp_path / "p", needs=[a, stub], flags=rpath("$ORIGIN/lib"))
    found = agree(path, {"LD_LIBRARY_PATH": "/absent/one"})
    assert list(found) == ["a.so", "gone.so"]
    first, second, *_ = found["gone.so"].tried
    assert shows(first, "RPATH $ORIGIN/lib", path)
    assert shows(second, "LD_LIBRARY_PATH /absent/one")
