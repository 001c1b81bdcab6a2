"""MPIs whose launcher or compiler wrapper is in PATH: what a user gets by typing `mpirun`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mpigraft.model import EnvRow, Family, Scope
from mpigraft.sources import look, probe
from mpigraft.sources.candidate import Candidate, Here, find_libmpi

NAMES = ("mpirun", "mpiexec", "mpiexec.hydra", "mpicc")
SAYS = (
    (Family.OPENMPI, re.compile(r"\((?:Open MPI|OpenRTE)\) (\d\S*)")),
    (Family.INTEL, re.compile(r"Intel\(R\) MPI Library.*? Version (\d\S*)")),
    (Family.MPICH, re.compile(r"HYDRA build details:\s+Version:\s+(\d\S*)")),
)


def find(here: Here) -> Iterator[Candidate]:
    """In PATH's order, so that the first row of this source is the machine's `mpirun`."""
    folders = [Path(p) for p in here.environ.get("PATH", "").split(":") if p.startswith("/")]
    seen: set[tuple[Path, str]] = set()
    for folder in dict.fromkeys(folders):
        for name in NAMES:
            program = folder / name
            if not (look.is_file(program) and os.access(program, os.X_OK)):
                continue
            suffix = _suffix(program, name)
            place = (Path(os.path.realpath(folder)), suffix)  # /bin is /usr/bin nowadays
            if place in seen:
                continue
            seen.add(place)
            if candidate := _candidate(here, program, suffix):
                yield candidate


def _suffix(program: Path, name: str) -> str:
    """`.openmpi` where `mpirun` is a link to `mpirun.openmpi`, as Debian's alternatives make it."""
    real = Path(os.path.realpath(program)).name
    return real.removeprefix(name) if real.startswith(f"{name}.") else ""


def _candidate(here: Here, program: Path, suffix: str) -> Candidate | None:
    logical = program.parent.parent
    real = Path(os.path.realpath(program)).parent.parent
    family, version = None, ""
    shared = logical in {here.at("/usr"), here.at("/usr/local"), Path("/")}
    libmpi = None if shared else find_libmpi(logical) or find_libmpi(real)
    if libmpi is None:
        # Several MPIs may share these folders, or none is here: the launcher knows whose it is.
        family, version = identify(here, program)
        if family is None:
            return None  # another launcher (PALS, a site's script): shown among the launchers
        libmpi = find_libmpi(logical, family) or find_libmpi(real, family)
    prefix = real if libmpi and libmpi.is_relative_to(real) else logical
    return Candidate(
        source="path",
        found=f"{program.name} in PATH: {program}",
        prefix=prefix,
        libmpi=libmpi,
        bins=tuple(dict.fromkeys((program.parent, prefix / "bin"))),
        family=family,
        version=version,
        environment=_environment(here, libmpi),
        suffix=suffix,
    )


def identify(here: Here, program: Path) -> tuple[Family | None, str]:
    """Family and version by what the launcher says of itself; a wrapper says nothing."""
    if program.name == "mpicc":
        return None, ""
    said = probe.tool([program, "--version"], here.asking())
    for family, pattern in SAYS:
        if found := pattern.search(said):
            return family, found[1]
    return None, ""


def _environment(here: Here, libmpi: Path | None) -> tuple[EnvRow, ...]:
    """Who has an MPI in PATH has set LD_LIBRARY_PATH for it too, its own libraries included."""
    given = here.environ.get("LD_LIBRARY_PATH", "")
    if libmpi is None or not given:
        return ()
    value = ":".join(dict.fromkeys((str(libmpi.parent), *filter(None, given.split(":")))))
    return tuple(
        EnvRow("LD_LIBRARY_PATH", value, scope, "user") for scope in (Scope.LAUNCHER, Scope.RANK)
    )
