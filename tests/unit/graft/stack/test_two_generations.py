"""libfabric and UCX of two generations in one process: each has an environment of its own."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import EnvRow, Family, MpiInstall, Scope
from mpigraft.graft import Slot, override_files, plan_override, read_abi, switch_on
from mpigraft.native import settings_library
from tests.builders.elf import compiled

PARTS = {"libfabric": "libfabric.so.1", "ucx": "libucp.so.0"}
ASKS = """
extern char *getenv(const char *name);
const char *path_of_{part}(void) {{ return getenv("OWN_PATH"); }}
"""
LOADED = """
import ctypes, sys
for word in sys.argv[1:]:
    path, _, part = word.partition("=")
    asked = getattr(ctypes.CDLL(path, ctypes.RTLD_GLOBAL), f"path_of_{part}")
    asked.restype = ctypes.c_char_p
    print(asked().decode())
"""


def injected(part: str, host: Path, site: Path) -> Path:
    """Inject a library that asks for a variable; the folder of its generation."""
    soname = PARTS[part]
    own = compiled(host / "lib" / soname, ASKS.format(part=part), soname=soname)
    mpi = MpiInstall(part, Family.OPENMPI, "", Family.OPENMPI.abi(""), soname, host, own)
    abi = replace(read_abi(mpi), environment=(EnvRow("OWN_PATH", "{graft}", Scope.RANK, "mpi"),))
    slot = Slot(f"{site}/{part}/system", (f"{site}/{part}/system/lib",), Family.OPENMPI)
    plan = plan_override(abi, slot, (), settings_library(mpi, platform.machine()))
    planned = override_files(plan, slot.path).values()
    asked = {s.name for elf in planned for s in elf.imported if "getenv" in s.name}
    assert asked - {"getenv"} <= {s.name for elf in planned for s in elf.exported}
    switch_on(plan)
    return Path(f"{site}/{part}/.mpigraft-system/generations/1")


@pytest.mark.parametrize("order", [("libfabric", "ucx"), ("ucx", "libfabric")])
def test_each_generation_asks_its_own_settings(tmp_path: Path, order: tuple[str, ...]) -> None:
    """Both had a mpigraft_getenv(), and the second got the answers of the first: libfabric opened
    the providers of the stack's own, or none."""
    folders = {part: injected(part, tmp_path / f"host-{part}", tmp_path / "site") for part in order}
    words = [f"{folders[part]}/lib/{PARTS[part]}={part}" for part in order]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"{folders[part]}/mpi" for part in order]
