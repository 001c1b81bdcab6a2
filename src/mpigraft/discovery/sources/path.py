"""MPIs whose launcher or compiler wrapper is in PATH: what a user gets by typing `mpirun`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mpigraft.core.model import EnvRow, Family, Scope
from mpigraft.discovery.sources import files, probe
from mpigraft.discovery.sources.candidate import Candidate, Host, find_libmpi

NAMES = ("mpirun", "mpiexec", "mpiexec.hydra", "mpicc")
LAUNCHER_OUTPUT = (
    (Family.OPENMPI, re.compile(r"\((?:Open MPI|OpenRTE)\) (\d\S*)")),
    (Family.INTEL, re.compile(r"Intel\(R\) MPI Library.*? Version (\d\S*)")),
    (Family.MPICH, re.compile(r"HYDRA build details:\s+Version:\s+(\d\S*)")),
)


def find(host: Host) -> Iterator[Candidate]:
    """Search in PATH's order, so that the first row of this source is the machine's `mpirun`."""
    folders = [Path(p) for p in host.environ.get("PATH", "").split(":") if p.startswith("/")]
    examined: set[tuple[Path, str]] = set()
    for folder in dict.fromkeys(folders):
        for name in NAMES:
            program = folder / name
            if not (files.is_file(program) and os.access(program, os.X_OK)):
                continue
            place = (Path(os.path.realpath(folder)), _suffix(program, name))  # /bin is /usr/bin
            if place in examined:
                continue
            examined.add(place)
            if candidate := candidate_of(host, program):
                yield candidate


def _suffix(program: Path, name: str) -> str:
    """Give `.openmpi` where `mpirun` links to `mpirun.openmpi`, as Debian's alternatives do."""
    real = Path(os.path.realpath(program)).name
    return real.removeprefix(name) if real.startswith(f"{name}.") else ""


def candidate_of(host: Host, program: Path) -> Candidate | None:
    """Make the candidate of a launcher or compiler wrapper; None for another program."""
    name = next((one for one in NAMES[::-1] if program.name.startswith(one)), "")
    if not name:
        return None
    suffix = _suffix(program, name)
    logical = program.parent.parent
    real = Path(os.path.realpath(program)).parent.parent
    family, version = None, ""
    shared = logical in {host.path("/usr"), host.path("/usr/local"), Path("/")}
    libmpi = None if shared else find_libmpi(logical) or find_libmpi(real)
    if libmpi is None:
        # Several MPIs may share these folders, or none is here: ask the launcher for its family.
        family, version = identify(host, program)
        if family is None:
            return None  # another launcher (PALS, a site's script): shown among the launchers
        libmpi = find_libmpi(logical, family) or find_libmpi(real, family)
    prefix = real if libmpi and libmpi.is_relative_to(real) else logical
    return Candidate(
        source="path",
        origin=f"{program.name} in PATH: {program}",
        prefix=prefix,
        libmpi=libmpi,
        bins=tuple(dict.fromkeys((program.parent, prefix / "bin"))),
        family=family,
        version=version,
        environment=_environment(host, libmpi),
        suffix=suffix,
    )


def identify(host: Host, program: Path) -> tuple[Family | None, str]:
    """Identify family and version by what the launcher prints; a wrapper prints nothing."""
    if program.name == "mpicc":
        return None, ""
    output = probe.tool_output([program, "--version"], host.query_environment())
    for family, pattern in LAUNCHER_OUTPUT:
        if match := pattern.search(output):
            return family, match[1]
    return None, ""


def _environment(host: Host, libmpi: Path | None) -> tuple[EnvRow, ...]:
    """Keep the user's LD_LIBRARY_PATH, which belongs to the MPI in PATH, behind its own folder."""
    given = host.environ.get("LD_LIBRARY_PATH", "")
    if libmpi is None or not given:
        return ()
    value = ":".join(dict.fromkeys((str(libmpi.parent), *filter(None, given.split(":")))))
    return tuple(
        EnvRow("LD_LIBRARY_PATH", value, scope, "user") for scope in (Scope.LAUNCHER, Scope.RANK)
    )
