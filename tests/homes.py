"""Homes of users with the real MPIs in them: fresh, but for what this machine was found to be."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mpigraft.core.model import Family

PARAMETERS = "etc/openmpi-mca-params.conf"
YIELD = "mpi_yield_when_idle = 1"


def let_ranks_yield(prefix: Path) -> None:
    """Have ranks of this Open MPI give up their turns while they wait. They outnumber the
    processors of a machine that tests run on, and one that polls keeps the rank that it waits for
    from running: a message then takes a tick of the kernel's clock, and not microseconds."""
    file = prefix / PARAMETERS
    text = file.read_text(encoding="utf-8")
    if YIELD not in text.splitlines():
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(f"{text}{YIELD}\n", encoding="utf-8")
        new.rename(file)


def make_home(home: Path, mpis: Mapping[Family, Path], *, always_here: bool = False) -> Path:
    """A home at `home`. To look at every library of every MPI takes two seconds and is the same for
    all, so it is done once a session and copied. What is kept of a file is kept by its path: of
    homes that stand one after the other at one path, `always_here`, nothing is looked at again."""
    prefixes = next(iter(mpis.values())).parent
    discovered = _discovered(prefixes, home if always_here else None)
    home.mkdir(parents=True)
    (home / "mpi").symlink_to(prefixes)
    shutil.copytree(discovered, home / "cache")
    return home


@cache
def _discovered(prefixes: Path, home: Path | None) -> Path:
    """The cache of a home, at that path if it matters, from which this machine was looked at."""
    kept = Path(tempfile.mkdtemp(prefix="mpigraft-discovered-"))
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    home = home or kept / "home"
    home.mkdir(parents=True)
    (home / "mpi").symlink_to(prefixes)
    look = "from mpigraft.discovery import discover_machine; discover_machine()"
    environ = {**os.environ, "MPIGRAFT_HOME": str(home)}
    subprocess.run([sys.executable, "-c", look], env=environ, check=True)
    shutil.move(home / "cache", kept / "cache")
    shutil.rmtree(home)
    return kept / "cache"
