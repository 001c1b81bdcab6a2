"""Debian's and Ubuntu's packages, which lie side by side in one folder.

Their alternatives decide which one `mpirun` is; the others are found here. MPICH's library is
libmpich.so.12 there: programs linked to libmpi.so.12 do not find it by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.model import Family
from mpigraft.sources import look
from mpigraft.sources.candidate import TRIPLETS, Candidate, Here

PACKAGES = (
    (Family.OPENMPI, "openmpi", ("libmpi.so.40",)),
    (Family.MPICH, "mpich", ("libmpich.so.12", "libmpi.so.12")),
)


def find(here: Here) -> Iterator[Candidate]:
    programs = here.at("/usr/bin")
    for triplet in TRIPLETS:
        folder = here.at(f"/usr/lib/{triplet}")
        for family, package, names in PACKAGES:
            library = next((folder / n for n in names if look.exists(folder / n)), None)
            if library is None:
                continue
            yield Candidate(
                source="debian",
                found=f"Debian's {package}: {library}",
                prefix=here.at("/usr"),
                libmpi=library,
                bins=(programs,),
                family=family,
                suffix=f".{package}" if look.exists(programs / f"mpirun.{package}") else "",
            )
