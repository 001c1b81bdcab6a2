"""MPIs that EasyBuild installed: loaded ones by EBROOT*, the others by their `easybuild` folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mpigraft.model import Family
from mpigraft.sources import look
from mpigraft.sources.candidate import Candidate, Here, find_libmpi

SOFTWARE = {
    "OpenMPI": Family.OPENMPI,
    "MPICH": Family.MPICH,
    "impi": Family.INTEL,
    "psmpi": Family.MPICH,
    "MVAPICH2": Family.MVAPICH,
}


def find(here: Here) -> Iterator[Candidate]:
    for name, family in SOFTWARE.items():
        if root := here.environ.get(f"EBROOT{name.upper()}"):
            version = here.environ.get(f"EBVERSION{name.upper()}", "")
            yield _candidate(family, Path(root), version, f"EBROOT{name.upper()}: {root}")
    for folder in _software(here):
        for name, family in SOFTWARE.items():
            for prefix in look.entries(folder / name):
                if look.is_folder(prefix / "easybuild"):
                    version = prefix.name.partition("-")[0]
                    yield _candidate(family, prefix, version, f"EasyBuild: {prefix}")


def _software(here: Here) -> list[Path]:
    """Folders of installed software: EasyBuild's own settings, its default, and EESSI's."""
    given = here.environ.get
    folders = [
        given("EASYBUILD_INSTALLPATH_SOFTWARE", ""),
        *(f"{base}/software" for n in ("EASYBUILD_INSTALLPATH", "EASYBUILD_PREFIX")
          if (base := given(n, ""))),
        f"{given('EESSI_SOFTWARE_PATH')}/software" if given("EESSI_SOFTWARE_PATH") else "",
        f"{given('HOME', '')}/.local/easybuild/software",
    ]  # fmt: skip
    return [Path(f) for f in dict.fromkeys(folders) if f and look.is_folder(Path(f))]


def _candidate(family: Family, prefix: Path, version: str, found: str) -> Candidate:
    inner = next((f for f in look.entries(prefix / "mpi") if look.is_folder(f / "lib")), prefix)
    return Candidate(
        source="easybuild",
        found=found,
        prefix=inner,
        libmpi=find_libmpi(inner, family),
        bins=(inner / "bin",),
        family=family,
        version=version,
    )
