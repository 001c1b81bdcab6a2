"""Read glibc's ld.so.cache: the format of glibc 2.2 and later, with the extension of 2.33, and
the old one, which `ldconfig -c old` still writes and the loader still takes.

A malformed file counts as an empty cache, as for the loader itself.
Source: glibc sysdeps/generic/dl-cache.h (the layout) and elf/dl-cache.c (the choice).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

MAGIC = b"glibc-ld.so.cache1.1"
OLD_MAGIC = b"ld.so-1.7.0"  # before the new format in one file, where ldconfig writes both
OLD_HEADER, OLD_ENTRY, HEADER, ENTRY = 16, 12, 48, 24
EXTENSION_MAGIC, HWCAPS_SECTION = 0xEAA42174, 1
MAX_ENTRIES = 1 << 18
NAMED = 1 << 62  # in an entry's hwcap: its low half is the number of a glibc-hwcaps name

# flags of the entries that a machine's loader takes: FLAG_ELF_LIBC6 and the ABI
ABI = {
    "x86_64": 0x0303, "i386": 0x0003, "aarch64": 0x0A03, "arm": 0x0903, "ppc64": 0x0503,
    "ppc64le": 0x0503, "s390x": 0x0403, "riscv64": 0x1003, "loongarch64": 0x1203,
}  # fmt: skip


class CacheEntry(NamedTuple):
    """One library of the cache. `name` is the glibc-hwcaps folder that it is for, or empty."""

    path: str
    flags: int
    hwcap: int
    name: str


@dataclass(frozen=True, slots=True)
class LdCache:
    """{soname: entries in the order of the file}."""

    entries: dict[str, list[CacheEntry]]

    def has_levels(self, soname: str, machine: str) -> bool:
        """Return whether the entries of a name differ between CPUs."""
        wanted = (e for e in self.entries.get(soname, ()) if e.flags == ABI.get(machine))
        return any(e.hwcap for e in wanted)

    def find(self, soname: str, machine: str, subfolders: tuple[str, ...]) -> str | None:
        """Find the path that the loader takes. `subfolders`: those that it searches, best first.

        Entries for glibc-hwcaps win, best folder first; then the first in the file. An entry
        with an old-style hwcap is taken when it is in a folder that the loader searches: the
        masks say the same, but have to be known for each CPU and version.
        """
        entries = [e for e in self.entries.get(soname, ()) if e.flags == ABI.get(machine)]
        named = [e for e in entries if e.name and f"glibc-hwcaps/{e.name}" in subfolders]
        if named:
            return min(named, key=lambda e: subfolders.index(f"glibc-hwcaps/{e.name}")).path
        for entry in entries:
            folder = entry.path.rpartition("/")[0]
            if entry.hwcap == 0 or (
                not entry.hwcap & NAMED and any(folder.endswith(f"/{s}") for s in subfolders)
            ):
                return entry.path
        return None


def parse(data: bytes) -> LdCache:
    """Parse the cache in `data`; an empty one when it is malformed. Raises nothing."""
    try:
        if not data.startswith(OLD_MAGIC):
            return LdCache(_entries(data))
        (count,) = struct.unpack_from("=I", data, OLD_HEADER - 4)
        end = OLD_HEADER + int(count) * OLD_ENTRY
        new = data[end + 7 & ~7 :]
        # Where both are in one file the loader reads the new one alone.
        return LdCache(_entries(new) if new.startswith(MAGIC) else _old_entries(data, end))
    except (struct.error, ValueError):
        return LdCache({})


def _old_entries(data: bytes, end: int) -> dict[str, list[CacheEntry]]:
    """Offsets count from `end`, the end of the table."""
    if end > len(data) or end > OLD_HEADER + MAX_ENTRIES * OLD_ENTRY:
        raise ValueError("more entries than the file can hold")
    entries: dict[str, list[CacheEntry]] = {}
    for flags, key, value in struct.iter_unpack("=iII", data[OLD_HEADER:end]):
        entry = CacheEntry(_string(data, end + value), flags, 0, "")
        entries.setdefault(_string(data, end + key), []).append(entry)
    return entries


def _entries(data: bytes) -> dict[str, list[CacheEntry]]:
    if not data.startswith(MAGIC) or len(data) < HEADER:
        raise ValueError("not a cache of the new format")
    # Flags: 0 unset (before 2.33), 2 little, 3 big endian.
    order = ">" if data[28] & 3 == 3 else "<" if data[28] & 3 == 2 else "="
    (count,) = struct.unpack_from(f"{order}I", data, 20)
    (extension,) = struct.unpack_from(f"{order}I", data, 32)
    if count > min(MAX_ENTRIES, len(data) // ENTRY):
        raise ValueError("more entries than the file can hold")
    try:
        names = _hwcaps(data, order, extension) if extension else ()
    except (struct.error, ValueError):
        names = ()  # the loader goes on without them too
    table = struct.Struct(f"{order}iIIIQ")
    entries: dict[str, list[CacheEntry]] = {}
    for flags, key, value, _, hwcap in table.iter_unpack(data[HEADER : HEADER + count * ENTRY]):
        name = ""
        if hwcap & NAMED:
            number = hwcap & 0xFFFFFFFF
            if number >= len(names):
                continue
            name = names[number]
        entry = CacheEntry(_string(data, value), flags, hwcap, name)
        entries.setdefault(_string(data, key), []).append(entry)
    return entries


def _hwcaps(data: bytes, order: str, at: int) -> tuple[str, ...]:
    """Return the names of glibc-hwcaps folders, by number."""
    magic, count = struct.unpack_from(f"{order}II", data, at)
    if magic != EXTENSION_MAGIC:
        return ()
    for index in range(min(count, 64)):
        tag, _, offset, size = struct.unpack_from(f"{order}4I", data, at + 8 + 16 * index)
        if tag == HWCAPS_SECTION:
            count = min(size, len(data)) // 4
            offsets = struct.unpack_from(f"{order}{count}I", data, offset)
            return tuple(_string(data, o) for o in offsets[:MAX_ENTRIES])
    return ()


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)  # PATH_MAX: nothing longer can be opened
    if end < 0:
        raise ValueError("a string has no end")
    return data[at:end].decode("utf-8", "surrogateescape")
