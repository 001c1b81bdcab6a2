"""Read what a guest's dynamic loader would search, from its bytes: it is never run.

Its default folders, the path of its cache and the word for $LIB are constants of its read-only
data. Which hwcaps folders it takes depends on the CPU too (`levels`).

Sources: glibc elf/dl-load.c (system_dirs), elf/dl-hwcaps.c of 2.31 and of 2.33 to 2.36;
LD_DEBUG=libs of 2.31, 2.36, 2.41.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from mpigraft.binary.architecture.interpreters import INTERPRETERS
from mpigraft.binary.architecture.levels import (
    ATOMICS,
    AVX512_1,
    HASWELL,
    INTEL,
    MASKED,
    X86_LEVELS,
    XEON_PHI,
)
from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.root import Root, RootError
from mpigraft.binary.loader.host import Loader, default_loader

MAX_LOADER = 1 << 23  # bytes; with debug information a loader has two million
MAX_LIBC = 1 << 24
MAX_FOLDERS = 64
LIBC_FOLDERS = (
    *(f"{top}/lib/{machine}-linux-gnu" for machine in INTERPRETERS for top in ("", "/usr")),
    *("/lib64", "/usr/lib64", "/lib", "/usr/lib"),
)
CACHE, PRELOAD = "/etc/ld.so.cache", "/etc/ld.so.preload"

LEVELS = b"x86-64-v4:x86-64-v3:x86-64-v2"  # as the loader has them
WORDS = frozenset([b"tls", b"haswell", b"xeon_phi", b"avx512_1", b"atomics", LEVELS])


# Other C libraries, by the name of their loader, and by a text in it.
FOREIGN = (
    ("musl", "ld-musl", b"musl libc"),
    ("uClibc", "ld-uClibc", b"\0uClibc"),
    ("Android's bionic", "/system/bin/linker", b"\0libdl_android"),
)


class ForeignLoader(ElfError):
    """The program's loader is not glibc's: its rules differ."""

    def __init__(self, program: str, loader: str, libc: str) -> None:
        super().__init__(f"{program} is built for {libc}: its loader is {loader}")
        self.libc = libc


def loader_of(main: Elf, root: Root, flags: frozenset[str]) -> Loader:
    """Read the loader inside `root` that would load `main` on a CPU with these flags: its
    interpreter, else the usual one.

    Raises ForeignLoader for musl's.
    """
    path = main.interpreter or INTERPRETERS.get(main.machine, "")
    try:
        data = root.read(path, MAX_LOADER) if path.startswith("/") else b""
    except RootError:  # not there, or not readable
        data = b""
    return loader_in(data, path, main, flags)


def loader_in(data: bytes, path: str, main: Elf, flags: frozenset[str]) -> Loader:
    """Read the loader of file content `data`, on a CPU with these flags of /proc/cpuinfo."""
    refuse_foreign(main, path, data)
    folders, cache, preload, lib, known = _constants(data)
    if not folders:
        return default_loader(path, main)
    word = _platform(known, main.machine, flags)
    subfolders = (*_levels(known, main.machine, flags), *_legacy(known, main.machine, word, flags))
    return Loader(path, lib, word, subfolders, _searched(folders, subfolders), cache, preload)


def refuse_foreign(main: Elf, path: str, data: bytes = b"") -> None:
    """Raise ForeignLoader for a program whose loader at `path`, of these bytes, is not glibc's."""
    for libc, name, text in FOREIGN:
        if name in path or text in data:
            raise ForeignLoader(main.name, path, libc)


def widest_loader(loaders: Sequence[Loader]) -> Loader:
    """Make a loader that searches all that any of these searches: one loader, on several CPUs."""
    subfolders = tuple(dict.fromkeys(sub for one in loaders for sub in one.subfolders))
    defaults = _searched(loaders[0].plain_defaults, subfolders)
    return replace(loaders[0], subfolders=subfolders, defaults=defaults)


def _searched(folders: Sequence[str], subfolders: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{f}/{sub}" if sub else f for f in folders for sub in (*subfolders, ""))


def glibc_version(root: Root) -> str:
    """Give the release, 2.36, by the text in libc.so.6 itself; empty without a glibc."""
    for folder in LIBC_FOLDERS:
        try:
            data = root.read(f"{folder}/libc.so.6", MAX_LIBC)
        except RootError:
            continue
        if match := re.search(rb"GNU C Library [ -~]{0,200}?version (\d+\.\d+)", data):
            return match[1].decode()
    return ""


# ------------------------------------------------------------------ from the read-only data


@lru_cache(maxsize=4)
def _constants(data: bytes) -> tuple[tuple[str, ...], str, str, str, frozenset[bytes]]:
    """Read (default folders, cache, list of preloads, $LIB, the WORDS in it) of a loader's file.

    By content: a guest and each graft over it are roots of their own, with the same loader.
    """
    strings = data.split(b"\0")
    folders = _system_folders(strings)
    everything = frozenset(strings)
    lib = _lib(folders, everything) if folders else ""
    cache, preload = (_path(strings, suffix) for suffix in (b"/ld.so.cache", b".so.preload"))
    return folders, cache or CACHE, preload or PRELOAD, lib, everything & WORDS


def _system_folders(strings: Sequence[bytes]) -> tuple[str, ...]:
    """Find SYSTEM_DIRS: the longest run of strings with a slash at both ends."""
    best: list[bytes] = []
    for is_folder, row in groupby(strings, _is_folder):
        candidates = list(row)[:MAX_FOLDERS] if is_folder else []
        if len(candidates) > len(best):
            best = candidates
    return tuple(folder.decode().rstrip("/") for folder in best)


def _is_folder(text: bytes) -> bool:
    return (
        2 < len(text) < 4096
        and text[:1] == b"/" == text[-1:]
        and text[1:2] != b"/"
        and text.isascii()
        and text.decode().isprintable()
    )


def _lib(folders: Sequence[str], known: frozenset[bytes]) -> str:
    """Find $LIB, the tail of a default folder that is also a string: lib64, lib/TRIPLET."""
    first = folders[0].strip("/").removeprefix("usr/")
    tails = [first, first.rpartition("/")[2]]
    return next((t for t in tails if t.encode() in known), tails[not first.startswith("lib")])


def _path(strings: Sequence[bytes], suffix: bytes) -> str:
    """Find the path of a loader's own file. NixOS has ld-nix.so.preload."""
    paths = (s for s in strings if s[:1] == b"/" and s.endswith(suffix) and s.isascii())
    return next(paths, b"").decode()


def _platform(known: frozenset[bytes], machine: str, flags: frozenset[str]) -> str:
    """Give AT_PLATFORM: the architecture's name, unless the loader has a better one."""
    if machine == "x86_64" and INTEL in flags:  # on other CPUs with the same flags: no
        if b"xeon_phi" in known and flags >= XEON_PHI:
            return "xeon_phi"
        if b"haswell" in known and flags >= HASWELL:
            return "haswell"
    return machine


def _levels(known: frozenset[bytes], machine: str, flags: frozenset[str]) -> Iterator[str]:
    """Yield glibc-hwcaps folders, since 2.33, best first."""
    if machine != "x86_64" or LEVELS not in known:
        return
    usable: list[str] = []
    for name, needed in X86_LEVELS:
        if not flags >= needed:
            break
        usable.append(f"glibc-hwcaps/{name}")
    yield from reversed(usable)


def _legacy(
    known: frozenset[bytes], machine: str, word: str, flags: frozenset[str]
) -> Iterator[str]:
    """Yield all subsets of tls, platform and capabilities, until 2.36; the largest first."""
    if b"tls" not in known:
        return
    parts = ["tls", word, *(_capabilities(known, machine, flags) if MASKED not in flags else ())]
    for bits in range((1 << len(parts)) - 1, 0, -1):
        chosen = (p for n, p in enumerate(reversed(parts)) if bits >> n & 1)
        yield "/".join(reversed(list(chosen)))


def _capabilities(known: frozenset[bytes], machine: str, flags: frozenset[str]) -> Iterator[str]:
    if machine == "x86_64" and b"avx512_1" in known:
        if flags >= AVX512_1 and not flags >= XEON_PHI:
            yield "avx512_1"
        yield "x86_64"
    if machine == "aarch64" and b"atomics" in known and ATOMICS in flags:
        yield ATOMICS
