"""What a source finds: a place where an MPI seems to be, and what is known of it there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpigraft.core import env
from mpigraft.core.model import EnvRow, Family, MpiInstall
from mpigraft.discovery.sources import files


@dataclass(frozen=True, slots=True)
class Host:
    """The machine to examine: this one, or a recorded tree under `root` in tests. `root` applies
    to well-known paths; paths in `environ` are taken as they are."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    root: Path = Path("/")

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def query_environment(self, *, loader: bool = True) -> dict[str, str]:
        """Make the environment of a program that is asked for its version. A job's variables are
        left out: with them some launchers look for their daemon, and answers differ by job."""
        of_job, kept_too = env.BASE_PREFIXES, env.SCHEDULER_CONFIGURATION
        kept = {k: v for k, v in env.base(self.environ).items()
                if k in kept_too or not k.startswith(of_job)}  # fmt: skip
        kept.setdefault("HOME", "/")  # without one ompi_info of Open MPI 5 lists nothing
        if loader and (path := self.environ.get("LD_LIBRARY_PATH")):
            kept["LD_LIBRARY_PATH"] = path
        return kept


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place where an MPI seems to be. `family` and `version` are what the place claims: they
    name the row when the library itself cannot be queried."""

    source: str  # a key of SOURCES
    origin: str  # as text: "mpirun in PATH: /opt/mpi/bin/mpirun"
    prefix: Path
    libmpi: Path | None
    bins: tuple[Path, ...]  # folders of its launcher and wrappers
    family: Family | None = None
    version: str = ""
    environment: tuple[EnvRow, ...] = ()  # what the place sets (a module); wins over the rules
    suffix: str = ""  # of program names, where MPIs share a folder: mpirun.openmpi
    reason: str = ""  # why it cannot be used, where that is clear from the place alone

    def install(self, family: Family, version: str, soname: str, **facts: Any) -> MpiInstall:
        """Describe it as an installed MPI, by its place and these facts."""
        return MpiInstall(
            id=f"{family}@{version}", family=family, version=version, abi=family.abi(soname),
            soname=soname, prefix=self.prefix, libmpi=self.libmpi, source=self.source,
            found=(self.origin,), **facts,
        )  # fmt: skip


# Names of the library that programs are linked to. libmpi_abi is left out: an MPI that has it
# has one of these too. Open MPI: 20 since 2.0, 40 since 3.0; MPICH's 12 since 3.2.
LIBRARY_NAMES = {
    Family.OPENMPI: re.compile(r"libmpi\.so\.(?:20|40)"),
    Family.MPICH: re.compile(r"libmpi(?:ch)?\.so\.12"),
    Family.INTEL: re.compile(r"libmpi\.so\.12"),
    Family.CRAY_MPICH: re.compile(
        r"libmpi_(?:cray|gnu|intel|amd|aocc|nvidia|pgi)(?:_\d+)?\.so\.12"
    ),
    Family.MVAPICH: re.compile(r"libmpi(?:ch)?\.so\.12"),
}
LIBRARY_FOLDERS = ("lib", "lib64", "lib/release", "intel64/lib/release", "intel64/lib")
TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu", "powerpc64le-linux-gnu")


def library_folders(prefix: Path) -> Iterator[Path]:
    """Yield the folders of a prefix that may hold its libraries."""
    for name in (*LIBRARY_FOLDERS, *(f"lib/{triplet}" for triplet in TRIPLETS)):
        if files.is_folder(folder := prefix / name):
            yield folder


def find_libmpi(prefix: Path, family: Family | None = None) -> Path | None:
    """Find the libmpi of a prefix by the family's names for it; None when there is none.

    A dangling link counts: it is a broken MPI, which gets a row that says so.
    """
    patterns = [LIBRARY_NAMES[family]] if family else list(LIBRARY_NAMES.values())
    for folder in library_folders(prefix):
        names = [entry.name for entry in files.entries(folder)]
        for pattern in patterns:
            if hit := next((n for n in names if pattern.fullmatch(n)), None):
                return folder / hit
    return None


def whole_prefix(source: str, origin: str, prefix: Path, family: Family, version: str) -> Candidate:
    """Make the candidate of a prefix that has one MPI alone, as packagers install it."""
    libmpi = find_libmpi(prefix, family)
    return Candidate(source, origin, prefix, libmpi, (prefix / "bin",), family, version)
