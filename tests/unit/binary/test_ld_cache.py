"""ld.so.cache: what ldconfig writes is read, what nobody writes is an empty cache."""

from __future__ import annotations

import platform
import re
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.loader import ld_cache
from mpigraft.binary.loader.ld_cache import ABI, EXTENSION_MAGIC, MAGIC, NAMED, OLD_MAGIC, LdCache
from mpigraft.core.process import command
from tests.builders.elf import compiled

LDCONFIG = shutil.which("ldconfig", path="/sbin:/usr/sbin:/bin:/usr/bin")
X86 = ABI["x86_64"]
Row = tuple[str, str, int, int]  # soname, path, flags, hwcap


def built(rows: list[Row], *, names: tuple[str, ...] = (), order: str = "<") -> bytes:
    """A cache as ldconfig of glibc 2.33 writes it."""
    strings, table = b"", b""
    start = 48 + 24 * len(rows)

    def place(text: str) -> int:
        nonlocal strings
        strings += text.encode() + b"\0"
        return start + len(strings) - len(text) - 1

    for soname, path, flags, hwcap in rows:
        table += struct.pack(f"{order}iIIIQ", flags, place(soname), place(path), 0, hwcap)
    offsets = [place(name) for name in names]
    at = start + len(strings) + 3 & ~3
    body = (table + strings).ljust(at - 48, b"\0")
    tail = struct.pack(f"{order}II4I", EXTENSION_MAGIC, 1, 1, 0, at + 24, 4 * len(names))
    tail += struct.pack(f"{order}{len(names)}I", *offsets)
    flags = 2 if order == "<" else 3
    head = MAGIC + struct.pack(
        f"{order}IIB3xI12x", len(rows), len(strings), flags, at * bool(names)
    )
    return head + body + (tail if names else b"")


def found(data: bytes, soname: str, subfolders: tuple[str, ...] = ()) -> str | None:
    return ld_cache.parse(data).find(soname, "x86_64", subfolders)


@pytest.mark.parametrize("order", ["<", ">"])
def test_entries_of_the_machine_are_found_in_either_byte_order(order: str) -> None:
    rows = [("a.so", "/32/a.so", 0x0003, 0), ("a.so", "/64/a.so", X86, 0)]
    data = built(rows, order=order)
    assert found(data, "a.so") == "/64/a.so"
    assert found(data, "b.so") is None
    assert ld_cache.parse(data).find("a.so", "i386", ()) == "/32/a.so"
    assert ld_cache.parse(data).find("a.so", "vax", ()) is None


def test_the_first_of_equals_is_taken() -> None:
    assert found(built([("a.so", f"/{n}/a.so", X86, 0) for n in (1, 2)]), "a.so") == "/1/a.so"


def test_the_best_folder_that_is_searched_wins() -> None:
    rows = [
        ("a.so", "/l/glibc-hwcaps/v2/a.so", X86, NAMED | 0),
        ("a.so", "/l/glibc-hwcaps/v4/a.so", X86, NAMED | 1),
        ("a.so", "/l/glibc-hwcaps/v3/a.so", X86, NAMED | 2),
        ("a.so", "/l/glibc-hwcaps/none/a.so", X86, NAMED | 77),
        ("a.so", "/l/a.so", X86, 0),
    ]
    data = built(rows, names=("v2", "v4", "v3"))
    all_of_them = ("glibc-hwcaps/v4", "glibc-hwcaps/v3", "glibc-hwcaps/v2")
    assert found(data, "a.so", all_of_them) == "/l/glibc-hwcaps/v4/a.so"
    assert found(data, "a.so", all_of_them[1:]) == "/l/glibc-hwcaps/v3/a.so"
    assert found(data, "a.so") == "/l/a.so"


def test_an_old_hwcap_counts_in_a_folder_that_is_searched() -> None:
    rows = [("a.so", "/l/tls/haswell/a.so", X86, 1 << 63), ("a.so", "/l/a.so", X86, 0)]
    assert found(built(rows), "a.so", ("tls/haswell", "tls")) == "/l/tls/haswell/a.so"
    assert found(built(rows), "a.so", ("tls",)) == "/l/a.so"
    named = built([("a.so", "/l/tls/a.so", X86, NAMED)], names=("v9",))
    assert found(named, "a.so", ("tls",)) is None


@pytest.mark.parametrize("entries", [0, 1, 2, 3])
def test_a_file_with_the_old_format_in_front(entries: int) -> None:
    data = built([("a.so", "/l/a.so", X86, 0)])
    old = (OLD_MAGIC.ljust(12, b"\0") + struct.pack("=I", entries)).ljust(16 + 12 * entries, b"\0")
    old += bytes(-len(old) % 8)
    assert found(old + data, "a.so") == "/l/a.so"


def test_before_2_33_the_header_names_no_byte_order() -> None:
    data = bytearray(built([("a.so", "/l/a.so", X86, 0)], order="<" if _little() else ">"))
    data[28] = 0
    assert found(bytes(data), "a.so") == "/l/a.so"


def _little() -> bool:
    return struct.pack("=H", 1) == b"\1\0"


@pytest.mark.parametrize(
    ("at", "value"),
    [(20, 0xFFFFFFFF), (20, 2), (52, 0xFFFFFFF0), (56, 0xFFFFFFF0), (0, 0)],
)
def test_a_malformed_cache_is_empty(at: int, value: int) -> None:
    data = bytearray(built([("a.so", "/l/a.so", X86, 0)], names=("v2",)))
    struct.pack_into("<I", data, at, value)
    assert ld_cache.parse(bytes(data)) == LdCache({})


def test_a_malformed_extension_costs_its_own_entries_alone() -> None:
    rows = [("a.so", "/l/v2/a.so", X86, NAMED), ("a.so", "/l/a.so", X86, 0)]
    data = bytearray(built(rows, names=("v2",)))
    assert found(bytes(data), "a.so", ("glibc-hwcaps/v2",)) == "/l/v2/a.so"
    struct.pack_into("<I", data, 32, 0xFFFFFFF0)
    assert found(bytes(data), "a.so", ("glibc-hwcaps/v2",)) == "/l/a.so"


@pytest.mark.skipif(LDCONFIG is None, reason="needs ldconfig")
def test_ldconfig_prints_what_was_read(tmp_path: Path) -> None:
    """The oracle: a cache made and printed by ldconfig, hwcaps folders included."""
    for sub in ("", "glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "other"):
        compiled(tmp_path / "lib" / sub / "libone.so.1", soname="libone.so.1")
    (tmp_path / "conf").write_text(f"{tmp_path}/lib\n")
    cache = tmp_path / "cache"
    made = command.run_command([LDCONFIG or "", "-X", "-C", cache, "-f", tmp_path / "conf"])
    assert made.ok, made.text()
    printed = command.run_command([LDCONFIG or "", "-p", "-C", cache]).text()
    expected = re.findall(r"^\t(\S+) \(.*\) => (/.*)$", printed, re.MULTILINE)
    assert len(expected) > 10
    entries = ld_cache.parse(cache.read_bytes()).entries
    assert sorted((s, e.path) for s, rows in entries.items() for e in rows) == sorted(expected)
    for soname, rows in entries.items():
        for entry in rows:
            shown = re.search(
                rf"\t{re.escape(soname)} \((.*)\) => {re.escape(entry.path)}$", printed, re.M
            )
            assert shown
            assert (f'hwcap: "{entry.name}"' in shown[1]) == bool(entry.name)
    if platform.machine() == "x86_64":
        names = {entry.name for entry in entries["libone.so.1"]}
        assert names == {"", "x86-64-v2", "x86-64-v3"}


GOOD = built(
    [(f"lib{n}.so", f"/l/lib{n}.so", X86, n % 3 and NAMED) for n in range(6)], names=("v2",)
)


@given(
    cut=st.integers(0, len(GOOD)), changes=st.dictionaries(st.integers(0, 120), st.integers(0, 255))
)
def test_any_damage_is_a_cache_and_never_an_exception(cut: int, changes: dict[int, int]) -> None:
    data = bytearray(GOOD)
    for at, value in changes.items():
        data[at] = value
    assert isinstance(found(bytes(data[:cut]), "lib1.so"), str | None)


@given(data=st.binary(max_size=200), magic=st.sampled_from([b"", MAGIC, OLD_MAGIC]))
def test_any_bytes_are_a_cache(data: bytes, magic: bytes) -> None:
    assert isinstance(ld_cache.parse(magic + data), LdCache)


def test_the_old_format_counts_from_the_end_of_its_table() -> None:
    strings = b"libold.so.1\0/opt/libold.so.1\0"
    table = struct.pack("=iII", X86, 0, 12) + struct.pack("=iII", ABI["i386"], 0, 12)
    data = (OLD_MAGIC + b"\0" + struct.pack("=I", 2)).ljust(16, b"\0") + table + strings
    found = ld_cache.parse(data)
    assert found.find("libold.so.1", "x86_64", ()) == "/opt/libold.so.1"
    assert found.find("libold.so.1", "aarch64", ()) is None
    assert ld_cache.parse(data[:30]) == LdCache({})


@given(st.binary(max_size=120))
def test_any_bytes_after_the_old_magic(data: bytes) -> None:
    assert isinstance(ld_cache.parse(OLD_MAGIC + data), LdCache)
