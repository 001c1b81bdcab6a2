"""What is read in a loader's bytes: those of this host, made up ones, and any bytes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpigraft.binary.architecture import levels
from mpigraft.binary.elf import reader
from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.loader import host
from mpigraft.binary.loader.files import HostFiles
from mpigraft.binary.loader.guest import FOREIGN, ForeignLoader, loader_in
from tests.oracles.guest_loader import LOADER
from tests.oracles.loader import library

BASE = frozenset(["fpu", "cx8", "cmov", "mmx", "fxsr", "sse", "sse2", "GenuineIntel"])
V2 = BASE | frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"])
V3 = V2 | frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])
V4 = V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])
PHI = V3 | frozenset(["avx512f", "avx512cd", "avx512er", "avx512pf"])
AMD = (V4 - {"GenuineIntel"}) | {"AuthenticAMD"}
LEGACY = b"\0".join([b"tls", b"haswell", b"xeon_phi", b"x86_64", b"avx512_1", b"sse2"])
NEW = b"haswell\0xeon_phi\0avx512_1\0--glibc-hwcaps-mask\0x86-64-v4:x86-64-v3:x86-64-v2"
SUSE = b"/lib64/\0/usr/lib64/\0"


def main(machine: str = "x86_64") -> Elf:
    return Elf("p", machine, 64, "little", "dyn", 0)


def made(*parts: bytes) -> bytes:
    return b"\x7fELF\2\1\1" + bytes(9) + b"\0".join([b"noise/", *parts, b"lib64", b""])


@pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader")
def test_this_hosts_loader_says_what_its_bytes_say(tmp_path: Path) -> None:
    facts = reader.read_elf(library(tmp_path / "a.so"))
    asked = host.loader_of(facts, {})
    flags = levels.cpu_flags(facts.machine)
    assert flags
    assert loader_in(Path(LOADER).read_bytes(), LOADER, facts, flags) == asked


@pytest.mark.parametrize(
    ("flags", "levels"),
    [(BASE, ()), (V2, ("v2",)), (V3, ("v3", "v2")), (V4, ("v4", "v3", "v2")),
     (V4 - {"avx2"}, ("v2",)), (AMD, ("v4", "v3", "v2")), (frozenset(), ())],
)  # fmt: skip
def test_levels_of_glibc_2_33_and_later(flags: frozenset[str], levels: tuple[str, ...]) -> None:
    found = loader_in(made(SUSE, NEW), "/ld", main(), flags)
    subs = tuple(f"glibc-hwcaps/x86-64-{level}" for level in levels)
    assert found.subfolders == subs
    assert found.defaults == (
        *(f"/lib64/{sub}" for sub in subs), "/lib64",
        *(f"/usr/lib64/{sub}" for sub in subs), "/usr/lib64",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "platform", "first", "count"),
    [
        (BASE, "x86_64", "tls/x86_64/x86_64", 7),
        (V3, "haswell", "tls/haswell/x86_64", 7),
        (V4, "haswell", "tls/haswell/avx512_1/x86_64", 15),
        (AMD, "x86_64", "tls/x86_64/x86_64", 7),
        (PHI, "xeon_phi", "tls/xeon_phi/x86_64", 7),
    ],
)  # fmt: skip
def test_folders_before_2_33(flags: frozenset[str], platform: str, first: str, count: int) -> None:
    found = loader_in(made(SUSE, LEGACY), "/ld", main(), flags)
    assert found.platform == platform
    assert found.subfolders[0] == first
    assert len(found.subfolders) == count
    assert found.subfolders[-1] == "x86_64"


def test_the_order_before_2_33_is_the_recorded_one() -> None:
    """LD_DEBUG=libs of glibc 2.31, on a CPU with haswell and without AVX-512."""
    found = loader_in(made(SUSE, LEGACY), "/ld", main(), V3)
    assert found.subfolders == (
        "tls/haswell/x86_64", "tls/haswell", "tls/x86_64", "tls",
        "haswell/x86_64", "haswell", "x86_64",
    )  # fmt: skip


def test_both_kinds_from_2_33_to_2_36() -> None:
    found = loader_in(made(SUSE, NEW, LEGACY), "/ld", main(), V2)
    assert found.subfolders[:2] == ("glibc-hwcaps/x86-64-v2", "tls/x86_64/x86_64")


def test_aarch64() -> None:
    data = made(b"/lib/aarch64-linux-gnu/\0/usr/lib/aarch64-linux-gnu/\0/lib/", b"tls", b"atomics")
    found = loader_in(data, "/ld", main("aarch64"), frozenset())
    assert found.subfolders == ("tls/aarch64", "tls", "aarch64")
    assert found.platform == "aarch64"
    found = loader_in(data, "/ld", main("aarch64"), frozenset({"atomics"}))
    assert found.subfolders[0] == "tls/aarch64/atomics"


@pytest.mark.parametrize(
    ("folders", "words", "lib"),
    [
        (SUSE, [b"lib64"], "lib64"),
        (b"/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0", [b"lib/x86_64-linux-gnu"],
         "lib/x86_64-linux-gnu"),
        (b"/usr/lib64/\0/lib64/\0", [], "lib64"),
        (b"/nix/store/abc-glibc-2.40/lib/", [b"lib"], "lib"),
        (b"/cvmfs/stack/compat/linux/lib64/\0/cvmfs/stack/compat/linux/usr/lib64/", [], "lib64"),
    ],
)  # fmt: skip
def test_the_word_for_lib(folders: bytes, words: list[bytes], lib: str) -> None:
    data = b"\0".join([b"\x7fELF", folders, *words, b"other"])
    assert loader_in(data, "/ld", main(), frozenset()).lib == lib


def test_a_cache_of_its_own() -> None:
    cache = b"/nix/store/abc-glibc-2.40/etc/ld.so.cache"
    assert loader_in(made(SUSE, cache), "/ld", main(), BASE).cache == cache.decode()
    assert loader_in(made(SUSE), "/ld", main(), BASE).cache == "/etc/ld.so.cache"


def test_usual_folders_where_the_bytes_say_nothing() -> None:
    found = loader_in(b"\x7fELF", "/ld", main(), V4)
    assert found == host.default_loader("/ld", main())
    assert "/lib64" in found.defaults


@given(
    st.one_of(
        st.binary(max_size=400),
        st.lists(st.sampled_from([b"/lib/", b"/", b"//", b"tls", b"x/", NEW, LEGACY, b"/\xff/"]))
        .map(b"\0".join),
    ),
    st.sampled_from(["x86_64", "aarch64", "machine-7"]),
)  # fmt: skip
@example(b"/" * 4097 + b"\0" + b"musl libc", "x86_64")
@example(b"\0uClibc", "x86_64")
def test_any_bytes(data: bytes, machine: str) -> None:
    try:
        found = loader_in(data, "/ld", main(machine), V4)
    except ForeignLoader:
        assert any(text in data for _, _, text in FOREIGN)
        return
    assert found.defaults
    assert all(folder.startswith("/") for folder in found.defaults)
    assert found.cache.startswith("/")
    assert len(found.defaults) <= 64 * 19


def test_an_interpreter_that_a_program_brings_is_read_and_never_started(tmp_path: Path) -> None:
    """A program's loader is the program's code: `check` and `run --dry-run` start nothing of it."""
    evil = tmp_path / "ld.so"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    evil.chmod(0o755)
    brings = replace(reader.read_elf(library(tmp_path / "a.so")), interpreter=str(evil))
    for loader in (host.loader_of(brings, {}), HostFiles().loader(brings, {})):
        assert loader == host.default_loader(str(evil), brings)
    assert not tmp_path.joinpath("started").exists()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    waits = replace(brings, interpreter=str(pipe))
    assert HostFiles().loader(waits, {}).path == str(pipe)


@pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader")
def test_a_copied_loader_is_read_as_its_original_answers(tmp_path: Path) -> None:
    copied = tmp_path / "ld.so"
    copied.write_bytes(Path(LOADER).read_bytes())
    facts = reader.read_elf(library(tmp_path / "a.so"))
    asked = HostFiles().loader(facts, {})
    assert HostFiles().loader(replace(facts, interpreter=str(copied)), {}) == replace(
        asked, path=str(copied)
    )
