"""What every command shares: settings of the whole tool, common options, how to print."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.text import columns, fold_message, terminal_safe

if TYPE_CHECKING:
    from mpigraft.cli.console import Console
    from mpigraft.core.model import Allocation, MpiInstall
    from mpigraft.core.model import Machine as MachineFacts
    from mpigraft.evidence import Limit
    from mpigraft.store import Store


def option(
    metavar: str,
    text: str,
    usual: str | bool = True,
    *names: str,
    panel: str = "",
    rare: bool = False,
    **others: Any,
) -> Any:
    """Make an option with a value. `usual` is what help shows as its default: a text, or whether
    to show the value; `panel` and `rare` are those of `Rules`; `others` typer's, as min and max.
    Without `names` it has the parameter's."""
    return typer.Option(
        *names,
        metavar=metavar or None,
        help=text,
        show_default=usual,
        rich_help_panel=panel or None,
        hidden=rare,
        **others,
    )


def flag(text: str, *names: str, panel: str = "", rare: bool = False) -> Any:
    """Make an option without a value."""
    return typer.Option(*names, help=text, rich_help_panel=panel or None, hidden=rare)


# Options that several commands have, in one wording.
Json = Annotated[bool, flag("Print a JSON document.", "--json", panel="Output")]
Full = Annotated[
    bool, flag("Print all: every table, every size, every finding.", "--full", panel="Output")
]
Campaign = Annotated[
    str | None,
    typer.Argument(help="Id, its beginning, or name of a campaign.", show_default="the latest"),
]
Baseline = Annotated[
    str | None,
    option(
        "C", "Configuration to compare the others with. An id, or its beginning.", "the campaign's"
    ),
]
Margin = Annotated[str, option("P", "Largest difference that is equivalent: 3% or 0.03.")]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- WORDS]",
        help="Words of a job in the guest: they are examined as those of `run`.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool, flag("Print what would be started; start nothing.", "--dry-run", panel="Output")
]
Wait = Annotated[
    bool,
    flag(
        "Wait until no other campaign runs on these nodes.", "--wait", panel="How long", rare=True
    ),
]
IgnoreLock = Annotated[
    bool,
    flag(
        "Measure beside another campaign: values of both may be wrong.",
        "--ignore-lock",
        panel="How long",
        rare=True,
    ),
]


def refuse_alone(other: str, **given: object) -> None:
    """Refuse the options that were `given`, by key: without `other` they change nothing. Raises
    UsageError."""
    for key, value in given.items():
        if value:
            flag = f"--{key.replace('_', '-')}"
            raise UsageError.of("option-alone", flag=flag, other=other)


def lacking_module(error: ImportError) -> MissingError:
    """Return the error for a module that Python itself should have."""
    name = (error.name or "").lstrip("_")
    return MissingError.of("python-module", name=name, python=sys.executable, reason=error)


def chosen_form(form: str, as_json: bool, forms: Sequence[str]) -> str:
    """Return what --as or --json asks for. Raises UsageError for a form that is none of `forms`."""
    if form not in forms:
        raise UsageError.unknown("word-unknown", form, forms, what="--as")
    return "json" if as_json else form


def refuse_unknown_gate(word: str | None, gates: Sequence[str]) -> None:
    """Refuse what --fail-on is given, if it is none of `gates`. Raises UsageError."""
    if word is not None and word not in gates:
        raise UsageError.unknown("word-unknown", word, gates, what="--fail-on")


def refuse_unknown_engine(name: str) -> None:
    """Refuse an engine that nobody knows, also where no guest needs one. Raises UsageError."""
    from mpigraft.graft import engine_named

    if name:
        engine_named(name)


def guest_and_words(
    image: str, guest: str, words: Sequence[str] | None
) -> tuple[str, tuple[str, ...]]:
    """Return the guest and the words of a job in it: where --image names the guest, the first word
    is one of the job's. Raises UsageError for two images."""
    if image and guest and (Path(guest) == Path(image) or guest.endswith(".sif")):
        raise UsageError.of("image-given-twice", word=guest, image=image)
    of_job = tuple(words or ())
    return (image, (guest, *of_job) if guest else of_job) if image else (guest, of_job)


def tell_image(verb: str, guest: str) -> None:
    """Tell how to name a guest that was given without --image."""
    tell(f"mpigraft: name the guest as in `run`: mpigraft {verb} --image {shlex.quote(guest)}")


def image_of(word: str) -> str:
    """Resolve an alias of the site's profile; every other word names a guest by itself."""
    from mpigraft.request import read_site

    return read_site(os.environ).image(word)[0]


def examine_machine(path: Path | None = None, mpis: Sequence[str] = ()) -> MachineFacts:
    """Find out what this machine has, the MPIs that were named by a path with it, or read what
    `discover --json` wrote of another."""
    from mpigraft.discovery import discover_machine, with_places
    from mpigraft.graft import read_machine

    if path:
        return read_machine(path)
    with console(stderr=True).status("looking at this machine"):
        here = with_places(discover_machine(), mpis)
    tell_step(here)
    return here


def chosen_mpis(spec: str, here: MachineFacts) -> list[str]:
    """Return the id of the MPI that was named, or all. Of several that a family names, the first
    that works."""
    from mpigraft.selection import select_mpis

    hits = select_mpis([spec] if spec else [], here.mpis)
    if not spec:
        return [mpi.id for mpi in hits]
    return [first_usable(hits).id]


def first_usable(hits: Sequence[MpiInstall]) -> MpiInstall:
    """Choose the first that works, else the first, and name those before it, which do not."""
    broken = [*takewhile(lambda m: not m.usable, hits)]
    if len(broken) == len(hits):
        return hits[0]
    for one in broken:
        tell(f"{one.problem}; {hits[len(broken)].id} is taken instead")
    return hits[len(broken)]


def tell_step(machine: MachineFacts) -> None:
    """Say that the job has more CPUs than this step: layouts are planned on the step's."""
    for finding in machine.findings:
        if finding.code == "step-cpus":
            tell(f"{finding.level}: {finding.message}: {finding.why}; {finding.fix}")


def default_store() -> Path:
    """Name the folder of results without --store: $MPIGRAFT_HOME/results, else XDG's. Raises
    MissingError for a user without a home folder."""
    from mpigraft.core.cache import folders

    return folders().data / "results"


def store_of(ctx: typer.Context) -> Store:
    """Open the folder of results that `main` put into the context."""
    from mpigraft.store import Store

    return Store(ctx.find_root().obj)


def program() -> tuple[str, ...]:
    """Name the words that start mpigraft in a job: as this one was started, by its path."""
    own = Path(sys.argv[0])
    if own.name == "mpigraft" and os.access(own, os.X_OK):
        return (str(own.absolute()),)
    if own.suffix == ".pyz":
        return (sys.executable, str(own.absolute()))
    return (sys.executable, "-m", "mpigraft.cli.main")


def console(*, stderr: bool = False) -> Console:
    """Make a Rich console: colours on a terminal without NO_COLOR, no markup in text, and no
    command to the terminal but Rich's own."""
    from mpigraft.cli.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else columns(sys.maxsize)
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def out(text: str, *, exact: bool = False) -> None:
    """Print a document or lines to stdout; nothing in it reaches a terminal as a command. What a
    shell is to run is `exact` in a file or a pipe: it may quote any character."""
    text = text if exact and not sys.stdout.isatty() else terminal_safe(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def find_nodes(hosts: str = "", hostfile: str = "", ssh_command: str = "") -> Allocation:
    """Find the nodes to use as `find_allocation` does, and tell if they are a part of the job."""
    from mpigraft.launch import find_allocation

    allocation = find_allocation(
        os.environ, hosts=hosts, hostfile=hostfile, ssh_command=ssh_command
    )
    tell_component(allocation)
    return allocation


def tell_component(allocation: Allocation) -> None:
    """Tell which component of a heterogeneous job is used: a launcher sees one alone."""
    from mpigraft.core.hostlist import fold_hosts

    if allocation.component:
        where = fold_hosts(allocation.hosts, 5)
        tell(f"{allocation.source} is heterogeneous: {allocation.component} is used, {where}")


def tell_unread(store: Store) -> None:
    """Tell which files of a store could not be read: what they hold is missing in the answer."""
    for finding in store.findings:
        tell(f"{finding.level}: {finding.message}")


def tell_error(text: str, code: str, exit_code: int) -> int:
    """Print an error with the code of its row; its exit code."""
    first, *others = text.split("\n")
    label = f" [{code}]" if code else ""
    tell("\n".join([f"mpigraft: {first}{label}", *others]))
    return exit_code


def tell(text: str, *, whole: bool = False) -> None:
    """Print a message to stderr, folded on a terminal, unless it is to be copied as a `whole`.
    Values of secrets are struck out: a message may quote a setting, and a setting may repeat a
    secret."""
    from mpigraft.core import env

    safe = terminal_safe(env.redact(text))
    print(safe if whole or not sys.stderr.isatty() else fold_message(safe), file=sys.stderr)


def tell_limits(limits: Iterable[Limit], nodes: Allocation | None = None) -> None:
    """Report which of them are short, each for the MPI that needs most of it."""
    from mpigraft.evidence import short_limits
    from mpigraft.report import finding_text

    for one in short_limits(limits, nodes):
        tell(finding_text(one))


def tell_machine_limits(machine: MachineFacts, mpis: Iterable[MpiInstall]) -> None:
    """Report the limits of this machine that are short for these MPIs with a rank on each core."""
    from mpigraft.core.model import Layout
    from mpigraft.evidence import launch_limits

    layout = Layout(1, max(2, machine.cpu.cores))
    tell_limits(
        limit for one in mpis if one.usable for limit in launch_limits(one, layout, machine)
    )


def wait_for_others(nodes: Allocation) -> float:
    """Wait until no campaign runs on these nodes; the seconds that it took."""
    from mpigraft.core.lock import nodes_lock, wait_for_release

    began = time.monotonic()
    while True:
        try:
            with nodes_lock(nodes):
                return time.monotonic() - began
        except MissingError as error:
            if error.code != "campaign-running":
                raise
            tell(f"{error.message}; waiting for its end")
        wait_for_release(nodes)
