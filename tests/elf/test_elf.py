"""The ELF reader against pyelftools, against linkers, and against files made to break it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import elf_oracle
import pytest
from elf_builders import (
    DT_GNU_HASH,
    DT_HASH,
    DT_NEEDED,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERDEF,
    DT_VERNEED,
    DT_VERSYM,
    compiled,
    crafted,
    program,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mpigraft import elf, elf_tables
from mpigraft.elf import ElfError
from mpigraft.model import Family

Rows = list[tuple[int, int | str]]

VERSIONED = """
int first(void) { return 1; }
__asm__(".symver second_old, second@V_1");
int second_old(void) { return 1; }
__asm__(".symver second_new, second@@V_2");
int second_new(void) { return 2; }
int data[7];
__thread int local_to_thread;
__attribute__((weak)) int feeble(void) { return 3; }
__attribute__((visibility("hidden"))) int hidden(void) { return 4; }
__attribute__((visibility("protected"))) int guarded(void) { return 5; }
extern int wanted(void);
extern __attribute__((weak)) int welcome(void);
int (*use(void))(void) { return welcome ? wanted : first; }
"""
NODES = "V_1 { global: *; local: private_*; }; V_2 { } V_1;"


def everything(path: Path | str) -> dict[str, Any]:
    """All facts of a file as one value, symbols included."""
    return of(elf.read(path))


def of(facts: elf.Elf) -> dict[str, Any]:
    names = (
        "machine", "bits", "endian", "type", "interpreter", "build_id", "soname", "needed",
        "rpath", "runpath", "version_needs", "version_defs",
    )  # fmt: skip
    return {
        **{name: getattr(facts, name) for name in names},
        "weak": {(need.library, need.node) for need in facts.needs if need.weak},
        "imported": [tuple(symbol) for symbol in facts.imported],
        "exported": [tuple(symbol) for symbol in facts.exported],
    }


@pytest.fixture(scope="session")
def versioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with versions, weak, hidden, protected, data and thread-local symbols."""
    folder = tmp_path_factory.mktemp("versioned")
    script = folder / "nodes"
    script.write_text(NODES)
    return compiled(
        folder / "libversioned.so",
        VERSIONED,
        soname="libversioned.so.3",
        flags=(f"-Wl,--version-script={script}", "-Wl,--build-id=0xabcd"),
    )


# ------------------------------------------------------------------ the oracle


def system_files() -> list[Path]:
    """Libraries and programs of this machine, an unbiased and steady sixty of them."""
    triplet = f"{platform.machine()}-linux-gnu"
    folders = (f"/usr/lib/{triplet}", "/usr/lib64", "/usr/bin")
    found = {
        path.resolve()
        for folder in folders
        if Path(folder).is_dir()
        for path in Path(folder).iterdir()
        if path.is_file() and path.stat().st_size < 400_000
    }
    elves = [p for p in found if os.access(p, os.R_OK) and p.read_bytes()[:4] == b"\x7fELF"]
    return sorted(elves, key=lambda p: hashlib.sha256(p.name.encode()).digest())[:60]


def test_pyelftools_reads_the_same_of_the_systems_files() -> None:
    files = system_files()
    assert len(files) >= 30
    for path in files:
        assert everything(path) == elf_oracle.facts(path), path


def test_pyelftools_reads_the_same_of_libc_and_its_loader() -> None:
    maps = Path("/proc/self/maps").read_text().splitlines()
    libc = next(row.split()[-1] for row in maps if row.endswith("/libc.so.6"))
    loader = elf.read(sys.executable).interpreter or elf.read("/bin/sh").interpreter
    for path in (Path(libc), Path(loader or "")):
        assert everything(path) == elf_oracle.facts(path)


@pytest.mark.mpi
def test_pyelftools_reads_the_same_of_real_mpis(mpis: Mapping[Family, Path]) -> None:
    for prefix in mpis.values():
        path = next(prefix.glob("lib/libmpi.so.[0-9]*")).resolve()
        assert everything(path) == elf_oracle.facts(path), path


# ------------------------------------------------------------------ what linkers make


def test_versions_weakness_visibility_kinds_and_sizes(versioned: Path) -> None:
    facts = elf.read(versioned)
    assert facts.soname == "libversioned.so.3"
    assert facts.version_defs == ("V_1", "V_2")
    assert facts.build_id == "abcd"
    assert facts.dynamic
    assert {str(symbol) for symbol in facts.exported} == {
        "first@@V_1", "second@V_1", "second@@V_2", "data@@V_1", "local_to_thread@@V_1",
        "feeble@@V_1", "guarded@@V_1", "use@@V_1", "second_old@@V_1", "second_new@@V_1",
    }  # fmt: skip
    by_name = {symbol.name: symbol for symbol in facts.exported}
    assert by_name["data"].kind == "object"
    assert by_name["data"].size == 28
    assert by_name["local_to_thread"].kind == "tls"
    assert by_name["feeble"].weak
    assert not by_name["first"].weak
    assert {(s.name, s.weak, s.version) for s in facts.imported} == {
        ("wanted", False, None),
        ("welcome", True, None),
    }
    assert everything(versioned) == elf_oracle.facts(versioned)


def test_needs_of_a_program_name_library_and_node(versioned: Path, tmp_path: Path) -> None:
    source = "int second(void); extern int data[7]; int main2(void) { return second() + data[1]; }"
    path = program(tmp_path / "p", source, needs=[versioned], flags=["-no-pie"])
    facts = elf.read(path)
    assert facts.interpreter
    assert facts.interpreter.startswith("/lib")
    assert facts.type == "exec"
    assert facts.needed == ("libversioned.so.3",)
    assert sorted(facts.version_needs["libversioned.so.3"]) == ["V_1", "V_2"]
    (second,) = facts.imported
    assert str(second) == "second@V_2"
    assert second.library == "libversioned.so.3"
    copied = next(s for s in facts.exported if s.name == "data")
    assert (copied.library, copied.size) == ("libversioned.so.3", 28)
    assert everything(path) == elf_oracle.facts(path)


@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_symbols_are_counted_by_either_hash_table(style: str, tmp_path: Path) -> None:
    script = tmp_path / "nodes"
    script.write_text(NODES)
    flags = [f"-Wl,--hash-style={style}", f"-Wl,--version-script={script}"]
    path = compiled(tmp_path / "l.so", VERSIONED, flags=flags)
    facts = everything(path)
    assert len(facts["exported"]) >= 8
    assert facts == elf_oracle.facts(path)


@pytest.mark.parametrize("linker", ["bfd", "gold"])
def test_imports_of_a_program_that_exports_nothing(linker: str, tmp_path: Path) -> None:
    """Its DT_GNU_HASH is empty and counts nothing: the relocations do."""
    if not shutil.which(f"ld.{linker}"):
        pytest.skip(f"needs ld.{linker}")
    library = compiled(tmp_path / "l.so", "int one(void){return 1;} int two(void){return 2;}")
    source = "int one(void); int two(void); int main2(void) { return one() + two(); }"
    path = program(
        tmp_path / "p",
        source,
        needs=[library],
        flags=[f"-fuse-ld={linker}", "-Wl,--hash-style=gnu", "-fvisibility=hidden", "-s"],
    )
    facts = elf.read(path)
    assert {symbol.name for symbol in facts.imported} == {"one", "two"}
    assert facts.exported == ()


def test_rpath_and_runpath_stand_as_written(tmp_path: Path) -> None:
    flags = ["-Wl,-rpath,$ORIGIN/../lib:/opt/x"]
    old = elf.read(compiled(tmp_path / "a.so", flags=[*flags, "-Wl,--disable-new-dtags"]))
    new = elf.read(compiled(tmp_path / "b.so", flags=[*flags, "-Wl,--enable-new-dtags"]))
    assert (old.rpath, old.runpath) == ("$ORIGIN/../lib:/opt/x", None)
    assert (new.rpath, new.runpath) == (None, "$ORIGIN/../lib:/opt/x")


def test_static_programs_and_objects_have_no_dynamic_section(tmp_path: Path) -> None:
    static = program(tmp_path / "static", flags=["-static"])
    assert elf.read(static).type == "exec"
    facts = elf.read(static)
    assert (facts.dynamic, facts.needed, facts.imported, facts.exported) == (False, (), (), ())


FOREIGN = {
    "aarch64-linux-gnu": ("aarch64", 64, "little"),
    "x86-linux-gnu": ("i386", 32, "little"),
    "s390x-linux-gnu": ("s390x", 64, "big"),
    "powerpc-linux-gnueabihf": ("ppc", 32, "big"),
}


@pytest.mark.parametrize("target", FOREIGN)
def test_other_machines_bits_and_byte_orders(target: str, tmp_path: Path) -> None:
    script = tmp_path / "nodes"
    script.write_text("V_1 { global: *; };")
    path = compiled(
        tmp_path / "l.so",
        "int one(void) { return 1; } int data[3]; int far(void); int go(void) { return far(); }",
        soname="l.so.1",
        compiler=(sys.executable, "-m", "ziglang", "cc", "-target", target),
        flags=[f"-Wl,--version-script={script}", "-Wl,--hash-style=gnu", "-Wl,--build-id"],
    )
    facts = elf.read(path)
    assert (facts.machine, facts.bits, facts.endian) == FOREIGN[target]
    assert {str(s) for s in facts.exported} >= {"one@@V_1", "data@@V_1", "go@@V_1"}
    assert [s.name for s in facts.imported] == ["far"]
    expected = elf_oracle.facts(path)
    assert everything(path) == {**expected, "machine": facts.machine}


def without_section_headers(data: bytes) -> bytes:
    """What `sstrip` does to a 64-bit file, and no section names are left to go by."""
    changed = bytearray(data)
    struct.pack_into("<Q", changed, 40, 0)
    struct.pack_into("<HHH", changed, 58, 0, 0, 0)
    (start,) = struct.unpack_from("<Q", data, 40)
    return bytes(changed[:start])


def test_a_file_without_section_headers_reads_the_same(versioned: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.so"
    bare.write_bytes(without_section_headers(versioned.read_bytes()))
    assert everything(bare) == everything(versioned)


def test_a_file_in_memory_reads_the_same(versioned: Path) -> None:
    assert of(elf.parse(versioned.read_bytes(), "archive member")) == everything(versioned)


def test_symbols_are_decoded_only_when_asked(versioned: Path) -> None:
    facts = elf.read(versioned)
    assert "_decoded" not in vars(facts)
    assert facts.exported is facts.exported
    assert facts == elf.read(versioned)
    assert len({facts, elf.read(versioned)}) == 1


# ------------------------------------------------------------------ what is no ELF file


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("#!/bin/sh\n")
    paths = [tmp_path / name for name in ("fifo", "loop", "empty", "text", "absent", ".")]
    for path in (*paths, Path("/dev/zero"), Path("/proc/self/mem")):
        with pytest.raises(ElfError, match=path.name):
            elf.read(path)
    with pytest.raises(ElfError, match="null"):
        elf.read("a\0b")


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="No such file") as caught:
        elf.read(tmp_path / "absent")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_sparse_file_of_ten_gigabytes(versioned: Path, tmp_path: Path) -> None:
    """Nothing may be read because a header says so, and nothing because a file is large."""
    path = tmp_path / "sparse.so"
    path.write_bytes(versioned.read_bytes())
    os.truncate(path, 10 << 30)
    assert everything(path) == everything(versioned)
    tables = {"strings": b"\0one\0", "symbols": bytes(24)}
    rows: Rows = [(DT_STRTAB, "strings"), (DT_STRSZ, 9 << 30), (DT_SYMTAB, "symbols")]
    data = bytearray(crafted(tables, rows))
    struct.pack_into("<Q", data, 64 + 32, 10 << 30)  # the segment's size in the file
    path.write_bytes(data)
    os.truncate(path, 10 << 30)
    with pytest.raises(ElfError, match="over the bound"):
        elf.read(path)


def test_a_file_that_shrinks_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapped file would end the process with SIGBUS."""
    path = compiled(tmp_path / "l.so", f"const char far[{2 * elf_tables.HEAD}] = {{1}};")
    real, calls = os.pread, []

    def short(handle: int, size: int, at: int) -> bytes:
        calls.append(at)
        return real(handle, size, at) if at == 0 else b""

    monkeypatch.setattr(os, "pread", short)
    with pytest.raises(ElfError, match="shorter"):
        elf.read(path)
    assert len(calls) > 1


# ------------------------------------------------------------------ what no linker makes

STRINGS = b"\0one\0lib.so\0V_1\0"


def symbol(name: int = 1, info: int = 0x12, other: int = 0, section: int = 1) -> bytes:
    return struct.pack("<IBBHQQ", name, info, other, section, 0, 4)


def with_symbols(symbols: bytes, count: int, **tables: bytes) -> bytes:
    rows: Rows = [
        (DT_STRTAB, "strings"), (DT_STRSZ, len(STRINGS)), (DT_SYMTAB, "symbols"),
        (DT_HASH, "hash"),
    ]  # fmt: skip
    tags = {"versym": DT_VERSYM, "verneed": DT_VERNEED, "verdef": DT_VERDEF}
    rows += [(tags[name], name) for name in tables]
    hashes = struct.pack("<II", 1, count)
    return crafted({"strings": STRINGS, "symbols": symbols, "hash": hashes, **tables}, rows)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_crafted_files_of_each_kind_are_read(bits: int, order: str) -> None:
    rows: Rows = [(DT_STRTAB, "s"), (DT_STRSZ, len(STRINGS)), (DT_NEEDED, 5), (DT_SONAME, 1)]
    facts = elf.parse(crafted({"s": STRINGS}, rows, bits=bits, order=order, machine=9), "x")
    assert facts.needed == ("lib.so",)
    assert facts.soname == "one"
    assert facts.machine == "machine-9"


def test_a_symbol_whose_name_is_outside_is_an_error_of_the_symbols_alone() -> None:
    facts = elf.parse(with_symbols(bytes(24) + symbol(name=4000), 2), "crafted")
    assert facts.needed == ()
    with pytest.raises(ElfError, match=r"crafted: .*no end"):
        _ = facts.exported


def test_versions_zero_and_one_are_none_and_still_bind() -> None:
    versym = struct.pack("<3H", 0, 0, 1)
    facts = elf.parse(with_symbols(bytes(24) + symbol() + symbol(), 3, versym=versym), "x")
    assert [str(s) for s in facts.exported] == ["one", "one"]


def test_local_hidden_and_nameless_symbols_do_not_bind() -> None:
    symbols = (
        bytes(24), symbol(info=0x02), symbol(other=2), symbol(other=1), symbol(name=0),
        symbol(info=0xA1), symbol(other=3), symbol(info=0x22, section=0),
    )  # fmt: skip
    facts = elf.parse(with_symbols(b"".join(symbols), len(symbols)), "x")
    assert [s.kind for s in facts.exported] == ["object", "func"]
    assert [s.weak for s in facts.imported] == [True]


@pytest.mark.parametrize("count", [1 << 31, 1 << 24, 1000])
def test_more_symbols_than_the_file_holds(count: int) -> None:
    with pytest.raises(ElfError, match=r"past their segment|over the bound|not among"):
        elf.parse(with_symbols(bytes(24) + symbol(), count), "x")


def test_version_lists_that_lead_outside() -> None:
    for need in (
        struct.pack("<HHIII", 1, 1, 5, 16, 0) + struct.pack("<IHHII", 0, 0, 2, 12, 0xFFFFFFFF),
        struct.pack("<HHIII", 1, 1, 5, 0xFFFFFFF0, 0),
        struct.pack("<HHIII", 1, 1, 5, 16, 0xFFFFFFF0),
    ):
        with pytest.raises(ElfError):
            elf.parse(with_symbols(bytes(24), 1, verneed=need), "x")


def test_more_versions_than_an_index_can_number() -> None:
    need = struct.pack("<HHIII", 1, 1, 5, 16, 0)
    aux = struct.pack("<IHHII", 0, 0, 2, 12, 16) * 40_000
    with pytest.raises(ElfError, match="more than 32768 versions"):
        elf.parse(with_symbols(bytes(24), 1, verneed=need + aux), "x")
    define = struct.pack("<HHHHIII", 1, 1, 1, 1, 0, 20, 20)
    with pytest.raises(ElfError, match="more than 32768 versions"):
        elf.parse(with_symbols(bytes(24), 1, verdef=define * 40_000), "x")


def test_names_that_overlap_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of text and a thousand symbols in it would make a gigabyte of names."""
    monkeypatch.setattr(elf_tables, "MAX_NAMES", 4_000)
    strings = b"\0" + b"x" * 2_000 + b"\0"
    rows: Rows = [
        (DT_STRTAB, "strings"), (DT_STRSZ, len(strings)), (DT_SYMTAB, "symbols"), (DT_HASH, "hash"),
    ]  # fmt: skip
    symbols = bytes(24) + b"".join(symbol(name=n) for n in range(1, 5))
    tables = {"strings": strings, "symbols": symbols, "hash": struct.pack("<II", 1, 5)}
    facts = elf.parse(crafted(tables, rows), "x")
    with pytest.raises(ElfError, match="names have more than"):
        _ = facts.exported


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (struct.pack("<5I", 1, 9, 0, 0, 3), "does not hold"),  # a bucket before the first symbol
        (struct.pack("<5I", 1, 1, 0, 0, 3) + bytes(64), "segment"),  # a chain without an end
        (struct.pack("<5I", 1 << 31, 1, 0, 0, 3), r"bound|segment"),
        (struct.pack("<5I", 1, 1, 1 << 31, 0, 3), r"segment"),
    ],
)
def test_hash_tables_that_lie(table: bytes, says: str) -> None:
    rows: Rows = [
        (DT_STRTAB, "s"), (DT_STRSZ, len(STRINGS)), (DT_SYMTAB, "t"), (DT_GNU_HASH, "h"),
    ]  # fmt: skip
    with pytest.raises(ElfError, match=says):
        elf.parse(crafted({"s": STRINGS, "t": bytes(96), "h": table}, rows), "x")


def test_a_dynamic_section_without_an_end() -> None:
    rows: Rows = [(DT_STRTAB, "s"), (DT_STRSZ, len(STRINGS))]
    data = bytearray(crafted({"s": STRINGS}, rows))
    struct.pack_into("<Q", data, 64 + 56 + 32, 32)  # its size leaves the DT_NULL out
    with pytest.raises(ElfError, match="no end"):
        elf.parse(bytes(data), "x")


# ------------------------------------------------------------------ fuzz


def survives(data: bytes) -> None:
    """The facts of any bytes are facts or an ElfError, now and when symbols are asked for."""
    with contextlib.suppress(ElfError):
        facts = elf.parse(data, "fuzz")
        _ = facts.imported, facts.exported, facts.version_needs


MAX = (1 << 64) - 1
EXTREME = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])


@settings(max_examples=400)
@given(data=st.data())
def test_any_mutation_is_facts_or_an_elf_error(versioned: Path, data: st.DataObject) -> None:
    original = versioned.read_bytes()
    used = 0x1200  # headers and the tables that precede the text
    changed = bytearray(original)
    places = st.one_of(
        st.integers(0, used), st.integers(0, 64 + 56 * 12), st.integers(0, len(original) - 9)
    )
    for at in data.draw(st.lists(places, min_size=1, max_size=12)):
        width = data.draw(st.sampled_from([1, 2, 4, 8]))
        changed[at : at + width] = bytes([data.draw(EXTREME)]) * width
    survives(bytes(changed[: len(original)]))


@settings(max_examples=150)
@given(data=st.data())
def test_any_dynamic_value_is_facts_or_an_elf_error(versioned: Path, data: st.DataObject) -> None:
    """Aimed at the values that tables are found by, which blind mutation seldom hits."""
    changed = bytearray(versioned.read_bytes())
    (phoff,) = struct.unpack_from("<Q", changed, 32)
    (phnum,) = struct.unpack_from("<H", changed, 56)
    rows = [struct.unpack_from("<IIQQQQ", changed, phoff + 56 * n) for n in range(phnum)]
    start, size = next((row[2], row[5]) for row in rows if row[0] == 2)
    for _ in range(data.draw(st.integers(1, 4))):
        at = start + 16 * data.draw(st.integers(0, size // 16 - 1))
        (value,) = struct.unpack_from("<Q", changed, at + 8)
        near = st.integers(max(0, value - 64), min(value + 64, MAX))
        new = data.draw(st.one_of(near, st.integers(0, len(changed)), st.integers(0, MAX)))
        struct.pack_into("<Q", changed, at + 8, new)
    survives(bytes(changed))


@given(length=st.integers(0, 20_000))
def test_any_truncation_is_facts_or_an_elf_error(versioned: Path, length: int) -> None:
    survives(versioned.read_bytes()[:length])


@given(data=st.binary(max_size=400))
def test_any_bytes_after_the_magic(data: bytes) -> None:
    survives(data)
    for ident in (b"\2\1", b"\1\1", b"\2\2", b"\1\2"):
        survives(b"\x7fELF" + ident + data)
