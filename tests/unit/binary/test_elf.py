"""The ELF reader against pyelftools, against linkers, and against files made to break it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.elf import tables as elf_tables
from mpigraft.binary.elf.tables import ElfError
from mpigraft.core.model import Family
from tests.builders.elf import (
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    NODES,
    VERSIONED,
    Rows,
    compiled,
    crafted,
    program,
)
from tests.oracles import elf as elf_oracle


def everything(path: Path | str) -> dict[str, Any]:
    """All facts of a file as one value, symbols included."""
    return of(reader.read_elf(path))


def of(facts: reader.Elf) -> dict[str, Any]:
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
    loader = reader.read_elf(sys.executable).interpreter or reader.read_elf("/bin/sh").interpreter
    for path in (Path(libc), Path(loader or "")):
        assert everything(path) == elf_oracle.facts(path)


@pytest.mark.mpi
def test_pyelftools_reads_the_same_of_real_mpis(mpis: Mapping[Family, Path]) -> None:
    for prefix in mpis.values():
        path = next(prefix.glob("lib/libmpi.so.[0-9]*")).resolve()
        assert everything(path) == elf_oracle.facts(path), path


# ------------------------------------------------------------------ what linkers make


def test_versions_weakness_visibility_kinds_and_sizes(versioned: Path) -> None:
    facts = reader.read_elf(versioned)
    assert facts.soname == f"{versioned.name}.3"
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
    facts = reader.read_elf(path)
    assert facts.interpreter
    assert facts.interpreter.startswith("/lib")
    assert facts.type == "exec"
    assert facts.needed == (f"{versioned.name}.3",)
    assert sorted(facts.version_needs[f"{versioned.name}.3"]) == ["V_1", "V_2"]
    (second,) = facts.imported
    assert str(second) == "second@V_2"
    assert second.library == f"{versioned.name}.3"
    copied = next(s for s in facts.exported if s.name == "data")
    assert (copied.library, copied.size) == (f"{versioned.name}.3", 28)
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
    facts = reader.read_elf(path)
    assert {symbol.name for symbol in facts.imported} == {"one", "two"}
    assert facts.exported == ()


def test_rpath_and_runpath_stand_as_written(tmp_path: Path) -> None:
    way = "$ORIGIN/../lib:/opt/x"
    flags = [f"-Wl,-rpath,{way}"]
    old = reader.read_elf(compiled(tmp_path / "a.so", flags=[*flags, "-Wl,--disable-new-dtags"]))
    new = reader.read_elf(compiled(tmp_path / "b.so", flags=[*flags, "-Wl,--enable-new-dtags"]))
    assert (old.rpath, old.runpath) == (way, None)
    assert (new.rpath, new.runpath) == (None, way)


def test_static_programs_and_objects_have_no_dynamic_section(tmp_path: Path) -> None:
    static = program(tmp_path / "static", flags=["-static"])
    assert reader.read_elf(static).type == "exec"
    facts = reader.read_elf(static)
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
    facts = reader.read_elf(path)
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
    assert of(reader.parse(versioned.read_bytes(), "archive member")) == everything(versioned)


def test_symbols_are_decoded_only_when_asked(versioned: Path) -> None:
    facts = reader.read_elf(versioned)
    assert "_decoded" not in vars(facts)
    assert facts.exported is facts.exported
    assert facts == reader.read_elf(versioned)
    assert len({facts, reader.read_elf(versioned)}) == 1


# ------------------------------------------------------------------ what is no ELF file


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("#!/bin/sh\n")
    paths = [tmp_path / name for name in ("fifo", "loop", "empty", "text", "absent", ".")]
    for path in (*paths, Path("/dev/zero"), Path("/proc/self/mem")):
        with pytest.raises(ElfError, match=path.name):
            reader.read_elf(path)
    with pytest.raises(ElfError, match="null"):
        reader.read_elf("a\0b")


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(ElfError, match="No such file") as caught:
        reader.read_elf(tmp_path / "absent")
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
        reader.read_elf(path)


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
    with pytest.raises(ElfError, match="shortened"):
        reader.read_elf(path)
    assert len(calls) > 1
