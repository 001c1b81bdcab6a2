"""What a host's dynamic loader says of itself: its folders, hwcaps, $LIB, $PLATFORM, its cache.

It is asked, not known: tables of all this would be wrong on the next distribution, on the next
CPU, and for a software stack that brings its own loader.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mpigraft import run
from mpigraft.elf import Elf

INTERPRETERS = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "i386": "/lib/ld-linux.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
    "arm": "/lib/ld-linux-armhf.so.3",
    "ppc64le": "/lib64/ld64.so.2",
    "s390x": "/lib/ld64.so.1",
    "riscv64": "/lib/ld-linux-riscv64-lp64d.so.1",
    "loongarch64": "/lib64/ld-linux-loongarch-lp64d.so.1",
}
LOADER_VARIABLES = ("GLIBC_TUNABLES", "LD_HWCAP_MASK", "LD_ASSUME_KERNEL")  # change its choice


@dataclass(frozen=True, slots=True)
class Loader:
    """What a host's loader says of itself. Folders are absolute, best first."""

    path: str
    lib: str  # $LIB
    platform: str  # $PLATFORM
    subfolders: tuple[str, ...]  # hwcaps, searched under every folder before the folder itself
    defaults: tuple[str, ...]  # with their subfolders
    cache: str


def loader_of(main: Elf, environment: Mapping[str, str]) -> Loader:
    """The loader that would load `main`: its own interpreter, else the host's for its machine."""
    path = main.interpreter or INTERPRETERS.get(main.machine, "")
    settings = tuple((k, environment[k]) for k in LOADER_VARIABLES if k in environment)
    return _ask(path, settings) or guess(path, main)


@lru_cache(maxsize=16)
def _ask(path: str, settings: tuple[tuple[str, str], ...]) -> Loader | None:
    """Ask a loader for its folders: let it look for a library that is nowhere, and listen.

    `--list-diagnostics` says most of this too, but only since glibc 2.33.
    """
    if not path.startswith("/"):
        return None
    asked = {
        **dict(settings),
        "LD_DEBUG": "libs",
        "LD_LIBRARY_PATH": "/mpigraft-none/lib=$LIB/platform=$PLATFORM",
        "LD_PRELOAD": "libmpigraft-none.so",
    }
    said = run.run([path, "--list", sys.executable], env=asked, limit_s=10.0).text()
    lines = re.findall(r"\ssearch path=(.*?)\s*\(([^()]*)\)", said)
    # The first of each: afterwards the loader leaves out folders that it knows to be absent.
    folders = {rule: text.split(":") for text, rule in reversed(lines)}
    own, defaults = folders.get("LD_LIBRARY_PATH"), folders.get("system search path")
    expanded = own and re.fullmatch(r"/mpigraft-none/lib=(.*)/platform=(.*)", own[-1])
    if not (own and expanded and defaults):
        return None
    found = re.search(r"search cache=(.*)", said)
    return Loader(
        path=path,
        lib=expanded[1],
        platform=expanded[2],
        subfolders=tuple(p.removeprefix(f"{own[-1]}/") for p in own[:-1]),
        defaults=tuple(defaults),
        cache=found[1] if found else "/etc/ld.so.cache",
    )


def guess(path: str, main: Elf) -> Loader:
    """For a loader that cannot be asked (another machine's, not glibc): the usual folders."""
    lib = "lib64" if main.bits == 64 else "lib"
    triplet = f"{main.machine}-linux-gnu"
    folders = (f"/lib/{triplet}", f"/usr/lib/{triplet}", f"/{lib}", f"/usr/{lib}")
    defaults = tuple(dict.fromkeys((*folders, "/lib", "/usr/lib")))
    return Loader(path, lib, main.machine, (), defaults, "/etc/ld.so.cache")
