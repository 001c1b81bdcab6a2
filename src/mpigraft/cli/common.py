"""What every command shares: settings of the whole tool, and the two ways to print."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


# Options that several commands have, in one wording.
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="C",
        help="Configuration to hold the others against: an id or its beginning.",
        show_default="the campaign's",
    ),
]
Margin = Annotated[str, typer.Option(metavar="P", help="What counts as equivalent: 3% or 0.03.")]
Program = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="A program inside the guest.", show_default="all"),
]
Replaced = Annotated[
    str, typer.Option(metavar="WHAT", help="mpi: the whole MPI; libfabric: that or UCX only.")
]
NoGlibc = Annotated[
    bool, typer.Option("--no-glibc", help="Refuse where the host's glibc would have to go in.")
]

# What a layout is said with: metavar, help, and what is without it.
PLACES = {
    "nodes": ("N", "Nodes.", "the allocation's"),
    "ranks-per-node": ("K", "Ranks on each node.", "one for every T cores"),
    "threads": ("T", "Cores of each rank.", "1"),
    "map-by": ("LEVEL", "Deal ranks over core, l3cache, numa, socket or node.", "core"),
    "bind-to": ("LEVEL", "Keep each on its core, l3cache, numa, socket, or none.", "core"),
}
Gpus = Annotated[
    bool, typer.Option("--gpus", help="Show each rank the GPU nearest to its cores alone.")
]


def image_of(word: str) -> str:
    """A guest as a person named it, or what a site's profile means by an alias."""
    import os

    from mpigraft import site

    return site.read(os.environ).image(word)[0]


def place(name: str, usual: str = "", *, again: bool = False) -> Any:
    """The option of PLACES, the same for every command: `usual` says what another default is,
    `again` that it is an axis."""
    metavar, text, default = PLACES[name]
    text = text.replace(".", "; may be given again.") if again else text
    return typer.Option(f"--{name}", metavar=metavar, help=text, show_default=usual or default)


@dataclass(frozen=True, slots=True)
class Settings:
    store: Path
    verbose: bool


def default_store() -> Path:
    """Where results live unless --store says otherwise: $MPIGRAFT_HOME/results, else XDG's."""
    if home := os.environ.get("MPIGRAFT_HOME"):
        return Path(home) / "results"
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(data) / "mpigraft" / "results"


def settings(ctx: typer.Context) -> Settings:
    """The settings that `main` put into the context."""
    found = ctx.find_root().obj
    if not isinstance(found, Settings):
        raise TypeError("the context carries no Settings: start commands through cli.main")
    return found


def program() -> tuple[str, ...]:
    """How a job starts mpigraft: as this one was, by its path."""
    own = Path(sys.argv[0])
    if own.name == "mpigraft" and os.access(own, os.X_OK):
        return (str(own.absolute()),)
    return (sys.executable, "-m", "mpigraft.cli.main")


def console(*, stderr: bool = False) -> Console:
    """A Rich console: colour only on a terminal and without NO_COLOR, text never read as markup."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else max(80, int(os.environ.get("COLUMNS", "80") or 80))
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def out(text: str) -> None:
    """Print a document or a line to stdout as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def tell(text: str) -> None:
    """Print a line or a message to stderr. Values of secrets are struck out: what is told may
    quote a setting, and a setting may repeat one."""
    from mpigraft import env

    print(env.redact(text), file=sys.stderr)
