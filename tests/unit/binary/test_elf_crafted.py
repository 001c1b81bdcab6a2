"""The ELF reader against files that no linker makes: crafted, mutated, cut."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.elf import reader
from mpigraft.binary.elf import tables as elf_tables
from mpigraft.binary.elf.tables import ElfError
from tests.builders.elf import (
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
    Rows,
    crafted,
)

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
    facts = reader.parse(crafted({"s": STRINGS}, rows, bits=bits, order=order, machine=9), "x")
    assert facts.needed == ("lib.so",)
    assert facts.soname == "one"
    assert facts.machine == "machine-9"


def test_a_symbol_whose_name_is_outside_is_an_error_of_the_symbols_alone() -> None:
    facts = reader.parse(with_symbols(bytes(24) + symbol(name=4000), 2), "crafted")
    assert facts.needed == ()
    with pytest.raises(ElfError, match=r"crafted: .*no end"):
        _ = facts.exported


def test_versions_zero_and_one_are_none_and_still_bind() -> None:
    versym = struct.pack("<3H", 0, 0, 1)
    facts = reader.parse(with_symbols(bytes(24) + symbol() + symbol(), 3, versym=versym), "x")
    assert [str(s) for s in facts.exported] == ["one", "one"]


def test_local_hidden_and_nameless_symbols_do_not_bind() -> None:
    symbols = (
        bytes(24), symbol(info=0x02), symbol(other=2), symbol(other=1), symbol(name=0),
        symbol(info=0xA1), symbol(other=3), symbol(info=0x22, section=0),
    )  # fmt: skip
    facts = reader.parse(with_symbols(b"".join(symbols), len(symbols)), "x")
    assert [s.kind for s in facts.exported] == ["object", "func"]
    assert [s.weak for s in facts.imported] == [True]


@pytest.mark.parametrize("count", [1 << 31, 1 << 24, 1000])
def test_more_symbols_than_the_file_holds(count: int) -> None:
    with pytest.raises(ElfError, match=r"past their segment|more than"):
        reader.parse(with_symbols(bytes(24) + symbol(), count), "x")


def test_weak_and_strong_needs_are_distinguished() -> None:
    need = struct.pack("<HHIII", 1, 2, 5, 16, 0)
    strong, weak = (struct.pack("<IHHII", 0, flag, 2, 12, 16 * (not flag)) for flag in (0, 2))
    facts = reader.parse(with_symbols(bytes(24), 1, verneed=need + strong + weak), "x")
    assert facts.needs == (("lib.so", "V_1", False), ("lib.so", "V_1", True))
    assert facts.version_needs == {"lib.so": ("V_1", "V_1")}


def test_a_segment_that_claims_more_than_the_file_holds() -> None:
    rows: Rows = [(DT_STRTAB, "s"), (DT_STRSZ, 100_000)]
    data = bytearray(crafted({"s": STRINGS}, rows))
    struct.pack_into("<Q", data, 64 + 32, 1 << 20)
    with pytest.raises(ElfError, match="cut short: 1048576 bytes are loaded, the file has 320"):
        reader.parse(bytes(data), "x")


def test_version_lists_that_lead_outside() -> None:
    for need in (
        struct.pack("<HHIII", 1, 1, 5, 16, 0) + struct.pack("<IHHII", 0, 0, 2, 12, 0xFFFFFFFF),
        struct.pack("<HHIII", 1, 1, 5, 0xFFFFFFF0, 0),
        struct.pack("<HHIII", 1, 1, 5, 16, 0xFFFFFFF0),
    ):
        with pytest.raises(ElfError):
            reader.parse(with_symbols(bytes(24), 1, verneed=need), "x")


def test_more_versions_than_an_index_can_number() -> None:
    need = struct.pack("<HHIII", 1, 1, 5, 16, 0)
    aux = struct.pack("<IHHII", 0, 0, 2, 12, 16) * 40_000
    with pytest.raises(ElfError, match="more than 32768 versions"):
        reader.parse(with_symbols(bytes(24), 1, verneed=need + aux), "x")
    define = struct.pack("<HHHHIII", 1, 1, 1, 1, 0, 20, 20)
    with pytest.raises(ElfError, match="more than 32768 versions"):
        reader.parse(with_symbols(bytes(24), 1, verdef=define * 40_000), "x")


def test_names_that_overlap_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of text and a thousand symbols in it would make a gigabyte of names."""
    monkeypatch.setattr(elf_tables, "MAX_NAMES", 0)
    strings = b"\0" + b"x" * 2_000 + b"\0"
    rows: Rows = [
        (DT_STRTAB, "strings"), (DT_STRSZ, len(strings)), (DT_SYMTAB, "symbols"), (DT_HASH, "hash"),
    ]  # fmt: skip
    symbols = bytes(24) + b"".join(symbol(name=n) for n in range(1, 11))
    tables = {"strings": strings, "symbols": symbols, "hash": struct.pack("<II", 1, 11)}
    facts = reader.parse(crafted(tables, rows), "x")
    with pytest.raises(ElfError, match="x: the names have more than"):
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
        reader.parse(crafted({"s": STRINGS, "t": bytes(96), "h": table}, rows), "x")


def test_a_dynamic_section_without_an_end() -> None:
    rows: Rows = [(DT_STRTAB, "s"), (DT_STRSZ, len(STRINGS))]
    data = bytearray(crafted({"s": STRINGS}, rows))
    struct.pack_into("<Q", data, 64 + 56 + 32, 32)  # its size leaves the DT_NULL out
    with pytest.raises(ElfError, match="no end"):
        reader.parse(bytes(data), "x")


# ------------------------------------------------------------------ fuzz


def survives(data: bytes) -> None:
    """The facts of any bytes are facts or an ElfError, now and when symbols are asked for."""
    with contextlib.suppress(ElfError):
        facts = reader.parse(data, "fuzz")
        _ = facts.imported, facts.exported, facts.copied, facts.version_needs


MAX = (1 << 64) - 1
EXTREME = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])


@given(data=st.data())
def test_any_mutation_is_facts_or_an_elf_error(
    versioned: Path, copying: Path, data: st.DataObject
) -> None:
    original = data.draw(st.sampled_from([versioned, copying])).read_bytes()
    used = 0x1200  # headers and the tables that precede the text
    changed = bytearray(original)
    places = st.one_of(
        st.integers(0, used), st.integers(0, 64 + 56 * 12), st.integers(0, len(original) - 9)
    )
    for at in data.draw(st.lists(places, min_size=1, max_size=12)):
        width = data.draw(st.sampled_from([1, 2, 4, 8]))
        changed[at : at + width] = bytes([data.draw(EXTREME)]) * width
    survives(bytes(changed[: len(original)]))


@given(data=st.data())
def test_any_dynamic_value_is_facts_or_an_elf_error(
    versioned: Path, copying: Path, data: st.DataObject
) -> None:
    """Aimed at the values that tables are found by, which blind mutation seldom hits."""
    changed = bytearray(data.draw(st.sampled_from([versioned, copying])).read_bytes())
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
