"""MPIs that EasyBuild installed: loaded ones by EBROOT*, the others by their `easybuild` folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mpigraft.core.model import Family
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Candidate, Host, whole_prefix

SOFTWARE = {
    "OpenMPI": Family.OPENMPI,
    "MPICH": Family.MPICH,
    "impi": Family.INTEL,
    "psmpi": Family.MPICH,
    "MVAPICH2": Family.MVAPICH,
}


def find(host: Host) -> Iterator[Candidate]:
    for name, family in SOFTWARE.items():
        if root := host.environ.get(f"EBROOT{name.upper()}"):
            version = host.environ.get(f"EBVERSION{name.upper()}", "")
            yield _candidate(family, Path(root), version, f"EBROOT{name.upper()}: {root}")
    for folder in _software(host):
        for name, family in SOFTWARE.items():
            for prefix in files.entries(folder / name):
                if files.is_folder(prefix / "easybuild"):
                    version = prefix.name.partition("-")[0]
                    yield _candidate(family, prefix, version, f"EasyBuild: {prefix}")


def _software(host: Host) -> list[Path]:
    """List folders of installed software: by EasyBuild's settings, its default, and EESSI's."""
    given = host.environ.get
    folders = [
        given("EASYBUILD_INSTALLPATH_SOFTWARE", ""),
        *(f"{base}/software" for n in ("EASYBUILD_INSTALLPATH", "EASYBUILD_PREFIX")
          if (base := given(n, ""))),
        f"{given('EESSI_SOFTWARE_PATH')}/software" if given("EESSI_SOFTWARE_PATH") else "",
        f"{given('HOME', '')}/.local/easybuild/software",
        f"{given('HOME', '')}/.local/mpigraft/software",  # of `mpigraft build`
    ]  # fmt: skip
    return [Path(f) for f in dict.fromkeys(folders) if f and files.is_folder(Path(f))]


def _candidate(family: Family, prefix: Path, version: str, origin: str) -> Candidate:
    inner = next((f for f in files.entries(prefix / "mpi") if files.is_folder(f / "lib")), prefix)
    return whole_prefix("easybuild", origin, inner, family, version)
