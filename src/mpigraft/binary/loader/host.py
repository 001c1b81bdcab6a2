"""Query a host's dynamic loader for its folders, hwcaps, $LIB, $PLATFORM and its cache.

Tables of these would be wrong on the next distribution, on the next CPU, and for a software stack
with its own loader.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mpigraft.binary.architecture.interpreters import INTERPRETERS
from mpigraft.binary.elf.reader import Elf
from mpigraft.core import file_dependencies
from mpigraft.core.process import run_command

LOADER_VARIABLES = ("GLIBC_TUNABLES", "LD_HWCAP_MASK", "LD_ASSUME_KERNEL")  # change its choice


@dataclass(frozen=True, slots=True)
class Loader:
    """The settings of a loader. Folders are absolute, best first."""

    path: str
    lib: str  # $LIB
    platform: str  # $PLATFORM
    subfolders: tuple[str, ...]  # hwcaps, searched under every folder before the folder itself
    defaults: tuple[str, ...]  # with their subfolders
    cache: str
    preload: str = "/etc/ld.so.preload"

    @property
    def plain_defaults(self) -> tuple[str, ...]:
        subfolders = tuple(f"/{sub}" for sub in self.subfolders)
        return tuple(d for d in self.defaults if not (subfolders and d.endswith(subfolders)))


def loader_of(main: Elf, environment: Mapping[str, str]) -> Loader:
    """Query the loader that would load `main`: its interpreter, else the host's for its machine.
    Only the host's own is started: an interpreter that a program brings is the program's code."""
    path = main.interpreter or INTERPRETERS.get(main.machine, "")
    file_dependencies.file(path)
    if not is_own(path, main.machine):
        return default_loader(path, main)
    settings = tuple((k, environment[k]) for k in LOADER_VARIABLES if k in environment)
    return _query_loader(path, settings) or default_loader(path, main)


def is_own(path: str, machine: str) -> bool:
    """Return whether a loader is this host's for programs of a machine, by any of its names."""
    own = INTERPRETERS.get(machine, "")
    return os.path.realpath(path) == os.path.realpath(own) if path and own else False


@lru_cache(maxsize=16)
def _query_loader(path: str, settings: tuple[tuple[str, str], ...]) -> Loader | None:
    """Query a loader for its folders: let it search a library that does not exist, with LD_DEBUG.

    `--list-diagnostics` prints most of this too, but only since glibc 2.33.
    """
    if not path.startswith("/"):
        return None
    settings_env = {
        **dict(settings),
        "LD_DEBUG": "libs",
        "LD_LIBRARY_PATH": "/mpigraft-none/lib=$LIB/platform=$PLATFORM",
        "LD_PRELOAD": "libmpigraft-none.so",
    }
    output = run_command([path, "--list", sys.executable], env=settings_env, limit_s=10.0).text()
    lines = re.findall(r"\ssearch path=(.*?)\s*\(([^()]*)\)", output)
    # The first of each: afterwards the loader leaves out folders that it knows to be absent.
    folders = {rule: text.split(":") for text, rule in reversed(lines)}
    own, defaults = folders.get("LD_LIBRARY_PATH"), folders.get("system search path")
    expanded = own and re.fullmatch(r"/mpigraft-none/lib=(.*)/platform=(.*)", own[-1])
    if not (own and expanded and defaults):
        return None
    match = re.search(r"search cache=(.*)", output)
    return Loader(
        path=path,
        lib=expanded[1],
        platform=expanded[2],
        subfolders=tuple(p.removeprefix(f"{own[-1]}/") for p in own[:-1]),
        defaults=tuple(defaults),
        cache=match[1] if match else "/etc/ld.so.cache",
    )


def default_loader(path: str, main: Elf) -> Loader:
    """Give the usual folders, for a loader that cannot be queried (another machine's)."""
    lib = "lib64" if main.bits == 64 else "lib"
    triplet = f"{main.machine}-linux-gnu"
    folders = (f"/lib/{triplet}", f"/usr/lib/{triplet}", f"/{lib}", f"/usr/{lib}")
    defaults = tuple(dict.fromkeys((*folders, "/lib", "/usr/lib")))
    return Loader(path, lib, main.machine, (), defaults, "/etc/ld.so.cache")
