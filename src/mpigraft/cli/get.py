"""`mpigraft get`: fetch an MPI as a wheel into a prefix of its own."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import console, out
from mpigraft.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import TaskID


def command(
    family: Annotated[str, typer.Argument(help="openmpi, mpich or intel.")],
    version: Annotated[
        str, typer.Option(help="For example 5.0.11.", show_default="one known to run")
    ] = "",
) -> None:
    """Fetch an MPI that runs without being installed; prints its prefix.

    Each is unpacked into a prefix of its own, every file checked; one that is there is left as
    it is. MPIGRAFT_HOME says where they live.

    \b
    Example: mpigraft get openmpi --version 5.0.11
    """
    from mpigraft import fetch
    from mpigraft.model import Family

    if family not in set(Family):
        raise UsageError(f"no MPI family {family!r}", mend="one of: " + ", ".join(fetch.OFFERS))
    with _Progress() as progress:
        prefix = fetch.get(Family(family), version or None, progress.step)
    out(str(prefix))


class _Progress:
    """One bar for each step on a terminal, one line for each in a pipe."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        self.console = console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            DownloadColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Progress:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def step(self, step: str, done: int, total: int) -> None:
        if step not in self.tasks:
            self.tasks[step] = self.bar.add_task(step, total=None)
            if not self.console.is_terminal:
                self.console.print(step)
        self.bar.update(self.tasks[step], completed=done, total=total or None)
