"""Debian's and Ubuntu's packages, which are side by side in one folder.

Their alternatives decide which one `mpirun` is; the others are found here. MPICH's library is
libmpich.so.12 there: programs linked to libmpi.so.12 do not find it by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.core.model import Family
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import TRIPLETS, Candidate, Host

PACKAGES = (
    (Family.OPENMPI, "openmpi", ("libmpi.so.40",)),
    (Family.MPICH, "mpich", ("libmpich.so.12", "libmpi.so.12")),
)


def find(host: Host) -> Iterator[Candidate]:
    programs = host.path("/usr/bin")
    for triplet in TRIPLETS:
        folder = host.path(f"/usr/lib/{triplet}")
        for family, package, names in PACKAGES:
            library = next((folder / n for n in names if files.exists(folder / n)), None)
            if library is None:
                continue
            yield Candidate(
                source="debian",
                origin=f"Debian's {package}: {library}",
                prefix=host.path("/usr"),
                libmpi=library,
                bins=(programs,),
                family=family,
                suffix=f".{package}" if files.exists(programs / f"mpirun.{package}") else "",
            )
