"""An MPI that a person names by its path: of its folder, of its launcher or compiler wrapper, or of
its libmpi. It is examined as one that a source finds, and is the same row where one finds it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import MpiInstall
from mpigraft.discovery.sources import files, path
from mpigraft.discovery.sources.candidate import (
    LIBRARY_FOLDERS,
    LIBRARY_NAMES,
    TRIPLETS,
    Candidate,
    Host,
    find_libmpi,
)

SOURCE = "given"
INNER = ("bin", *LIBRARY_FOLDERS, *(f"lib/{triplet}" for triplet in TRIPLETS))


def is_place(spec: str) -> bool:
    """Return whether `--mpi` names a path, and neither an id nor a family."""
    return "/" in spec


def is_at(mpi: MpiInstall, place: str) -> bool:
    """Return whether a row is that of a path: this one was named, or a machine that was described
    elsewhere has an MPI there."""
    own = (mpi.prefix, mpi.libmpi, mpi.launcher)
    return _origin(place) in mpi.found or place.rstrip("/") in [str(one) for one in own if one]


def candidate_at(host: Host, place: str) -> Candidate:
    """Make the candidate of a path. Raises UsageError where no MPI is there, or several are."""
    given = Path(place).absolute()
    if files.is_folder(given):
        candidate = _of_folder(place, given)
    elif not files.is_file(given):
        raise UsageError.of("mpi-path-missing", path=place)
    elif any(pattern.fullmatch(given.name) for pattern in LIBRARY_NAMES.values()):
        prefix = _prefix(given.parent)
        candidate = Candidate(SOURCE, "", prefix, given, (prefix / "bin",))
    else:
        known = path.candidate_of(host, given)
        if known is None or known.libmpi is None:
            raise UsageError.of("mpi-path-none", path=place, reason=f"{given.name} starts none")
        candidate = replace(known, source=SOURCE)
    return replace(candidate, origin=_origin(place))


def _of_folder(place: str, given: Path) -> Candidate:
    prefix = _prefix(given) if find_libmpi(given) is None else given
    here = (find_libmpi(prefix, family) for family in LIBRARY_NAMES)
    libraries = {os.path.realpath(libmpi): libmpi for libmpi in here if libmpi}
    if len(libraries) > 1:
        raise UsageError.of(
            "mpi-path-several", path=place, libraries=", ".join(map(str, libraries.values()))
        )
    if not libraries:
        raise UsageError.of("mpi-path-none", path=place, reason="it has no libmpi")
    return Candidate(SOURCE, "", prefix, next(iter(libraries.values())), (prefix / "bin",))


def _prefix(folder: Path) -> Path:
    """Give the folder above `bin`, `lib` or another inner one."""
    for inner in INNER:
        if str(folder).endswith(f"/{inner}"):
            return Path(str(folder).removesuffix(f"/{inner}") or "/")
    return folder


def _origin(place: str) -> str:
    return f"named by its path: {Path(place).absolute()}"
