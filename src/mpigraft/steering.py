"""What can turn a transport into another one and is in no environment: files and namespaces.

Evidence is kept only as long as all of this stays the same.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from mpigraft.cache import file_digest
from mpigraft.model import Configuration

OF_A_USER = ("ucx.conf", ".openmpi/*.conf", ".prte/*.conf", ".pmix/*.conf", ".mpiexec*.conf")
OF_A_PREFIX = ("etc/*.conf", "etc/ucx/*.conf")
OF_A_SITE = ("openmpi/*.conf", "ucx/*.conf", "libfabric.conf", "mpich.conf")


def network_namespace() -> str:
    """Which network this process sees; other interfaces are other lanes."""
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115  it links to no path
    except OSError:
        return ""


def places_that_steer(configuration: Configuration) -> tuple[tuple[str, str, str], ...]:
    """(folder, beginning, end) of the names of those files that are looked for by a pattern, here
    or not: one that appears later steers too."""
    roots: list[tuple[Path, tuple[str, ...]]] = [(Path("/etc"), OF_A_SITE)]
    if configuration.mpi is not None:
        roots.append((configuration.mpi.prefix, OF_A_PREFIX))
    with contextlib.suppress(RuntimeError):
        roots.append((Path("~").expanduser(), OF_A_USER))
    found = []
    for root, patterns in roots:
        for pattern in patterns:
            place = root / pattern
            begin, _, end = place.name.partition("*")
            found.append((str(place.parent), begin, end))
    return tuple(dict.fromkeys(found))


def files_that_steer(configuration: Configuration) -> tuple[tuple[str, str], ...]:
    """(file, SHA-256) of what an MPI, libfabric or UCX read unasked, a site's and a user's, and of
    what settings name. They can turn a transport into another as well as the environment can."""
    paths: set[Path] = set()
    mpi, transport = configuration.mpi, configuration.transport
    with contextlib.suppress(RuntimeError):  # no HOME, and no such user
        home = Path("~").expanduser()
        paths.update(path for pattern in OF_A_USER for path in home.glob(pattern))
    if mpi is not None:
        paths.update(path for pattern in OF_A_PREFIX for path in mpi.prefix.glob(pattern))
    paths.update(path for pattern in OF_A_SITE for path in Path("/etc").glob(pattern))
    for row in transport.env if transport else ():
        if row.source == "user" and row.value:
            named = [Path(word) for word in re.split("[:,]", row.value) if word.startswith("/")]
            paths.update(named)
            paths.update(inside for path in named if path.is_dir() for inside in path.iterdir())
    found = []
    for path in sorted(paths):
        with contextlib.suppress(OSError):  # what we cannot read, a rank cannot
            if path.is_file():
                found.append((path.name, file_digest(path)))
    return tuple(found)
