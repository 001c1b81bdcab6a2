"""Cray MPICH of the HPE Cray programming environment.

Each version is installed once per compiler: /opt/cray/pe/mpich/VERSION/ofi/gnu/9.1. Its library
is libmpi_gnu_91.so.12; libmpi.so.12, which programs built elsewhere need, is in lib-abi-mpich.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mpigraft.core.model import EnvRow, Family, Scope
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Candidate, Host, find_libmpi

ROOT = "/opt/cray/pe/mpich"
# A C program runs on any of them; gnu's library needs no runtime of a proprietary compiler.
COMPILERS = ("gnu", "cray", "crayclang", "aocc", "amd", "intel", "nvidia")


def find(host: Host) -> Iterator[Candidate]:
    """Yield the loaded MPI, then one of each version and network that is installed."""
    if loaded := host.environ.get("CRAY_MPICH_DIR"):
        version = host.environ.get("CRAY_MPICH_VERSION", "")
        yield _candidate(host, Path(loaded), version, f"CRAY_MPICH_DIR: {loaded}")
    for folder in files.entries(host.path(ROOT)):
        if not folder.name[:1].isdigit() or folder.is_symlink():
            continue  # `default` is a link to one of the others
        for network in ("ofi", "ucx"):
            if prefix := _preferred(folder / network):
                yield _candidate(host, prefix, folder.name, f"Cray PE: {prefix}")


def _preferred(folder: Path) -> Path | None:
    for compiler in COMPILERS:
        for version in reversed(files.entries(folder / compiler)):
            if files.is_folder(version / "lib"):
                return version
    return None


def _candidate(host: Host, prefix: Path, version: str, origin: str) -> Candidate:
    libmpi = find_libmpi(prefix, Family.CRAY_MPICH) or find_libmpi(prefix, Family.MPICH)
    return Candidate(
        source="cray",
        origin=origin,
        prefix=prefix,
        libmpi=libmpi,
        bins=(prefix / "bin",),
        family=Family.CRAY_MPICH,
        version=version,
        environment=_environment(host, prefix),
    )


def _environment(host: Host, prefix: Path) -> tuple[EnvRow, ...]:
    """Set LD_LIBRARY_PATH: without it the loader takes the system's default version. Cray's manual
    says to copy CRAY_LD_LIBRARY_PATH into it, which modules set and no loader reads."""
    own = [
        str(prefix / name) for name in ("lib-abi-mpich", "lib") if files.is_folder(prefix / name)
    ]
    given = [host.environ.get(n, "") for n in ("CRAY_LD_LIBRARY_PATH", "LD_LIBRARY_PATH")]
    words = [*own, *(w for words in given for w in words.split(os.pathsep) if w)]
    value = ":".join(dict.fromkeys(words))
    return tuple(
        EnvRow("LD_LIBRARY_PATH", value, scope, "module") for scope in (Scope.LAUNCHER, Scope.RANK)
    )
