"""`mpigraft recheck`: is this machine slower than it was when it was good?"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.cli.common import DryRun, Json, flag, option, out, store_of, tell
from mpigraft.cli.options import Here, Hostfile, Hosts, SshCommand
from mpigraft.core.errors import (
    CheckFailed,
    LaunchFailed,
    MissingError,
    MpigraftError,
    NotJudged,
    TransportMismatch,
)

if TYPE_CHECKING:
    from mpigraft.cli.bench import Task
    from mpigraft.core.model import CampaignRecord, Machine
    from mpigraft.request import CampaignSpec
    from mpigraft.store import Store

NAME = "recheck"
MINUTES = "Time to use; it sets the number of rounds, and nothing is started after it."
ACCEPT = "Make what is measured now the good state, even if it is slower."


def command(
    ctx: typer.Context,
    good: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN",
            help="Good state: an id or a name.",
            show_default="the campaign that was accepted last",
        ),
    ] = "",
    minutes: Annotated[float, option("N", MINUTES, panel="How long")] = 10.0,
    accept: Annotated[bool, flag(ACCEPT, "--accept", panel="Output")] = False,
    hosts: Hosts = "",
    hostfile: Hostfile = "",
    ssh_command: SshCommand = "",
    here: Here = False,
    junit: Annotated[
        Path | None,
        option("FILE", "Write the curves as JUnit XML, for a pipeline.", False, panel="Output"),
    ] = None,
    json: Json = False,
    full: common.Full = False,
    dry_run: DryRun = False,
    wait: common.Wait = False,
    ignore_lock: common.IgnoreLock = False,
) -> None:
    """Measure for ten minutes and compare with the last good state; exit 1 if it is slower.

    The good state is the campaign that was accepted last. What was requested of it is measured
    again, in as many rounds as fit. A recheck that passes does not become the good state;
    `history --accept` makes any campaign one.

    \b
    Examples:
      mpigraft recheck --accept          # now it is good
      mpigraft recheck                   # after maintenance, or every night
      mpigraft recheck --minutes 20 --junit recheck.xml
    """
    from mpigraft.bench import JobPart
    from mpigraft.cli.bench import Task
    from mpigraft.cli.report import check

    deadline = time.monotonic() + 60 * minutes
    if junit:
        check(junit)
    store = store_of(ctx)
    machine = common.examine_machine()
    reference = _reference(store, good, machine, accept)
    task = Task(
        spec=_spec(store, reference, machine, minutes),
        part=JobPart(
            common.find_nodes(hosts, hostfile, ssh_command),
            deadline=deadline,
            locked=not ignore_lock,
            apart=bool(reference),
        ),
        here=here or bool(hosts or hostfile),
        dry_run=dry_run,
        full=full,
        repeats=reference.id if reference else "",
        wait=wait,
    )
    form = Form(json, full, accept, junit, minutes)
    if reference is None:
        _first(store, task, form)
    else:
        _compare(store, task, reference, form)


@dataclass(frozen=True, slots=True)
class Form:
    """What to print, what to accept, and the time that there was."""

    json: bool
    full: bool
    accept: bool
    junit: Path | None
    minutes: float


def _first(store: Store, task: Task, form: Form) -> None:
    """Measure the first good state. Raises NotJudged where the time was too short for one."""
    from mpigraft.cli.bench import measure

    if identity := measure(store, task):
        _refuse_unfinished(store, identity, form)
        store.accept(identity)
        out(f"campaign {identity[:8]} is the good state from now on")


def _compare(store: Store, task: Task, reference: CampaignRecord, form: Form) -> None:
    """Measure, and compare what there is. Raises what `measure` does, after the comparison where
    anything was measured, CheckFailed where something is worse, NotJudged without a verdict."""
    from mpigraft.analysis import RECHECK
    from mpigraft.core.write import write_whole
    from mpigraft.report import Across

    identity, failure = _measured(store, task)
    if not identity:
        return
    try:
        data = Across.load((store, store), (reference.id, identity), RECHECK)
    except MissingError as error:  # no value of what the good state has
        raise failure or error from error
    if form.json:
        out(data.json())
    else:
        data.show(common.console(), full=form.full)
    if form.junit:
        write_whole(form.junit, data.junit())
    if failure:
        try:
            data.refuse_worse()
        except (CheckFailed, NotJudged) as worse:
            tell(f"mpigraft: {worse}")
        raise failure
    if form.accept:
        _refuse_unfinished(store, identity, form)
        store.accept(identity)
        tell(f"campaign {identity[:8]} is the good state from now on")
        return
    try:
        data.refuse_worse()
    except NotJudged:
        _refuse_unfinished(store, identity, form)
        raise


def _measured(store: Store, task: Task) -> tuple[str, MpigraftError | None]:
    """Measure; the campaign's id, and why an MPI that was named did not run as it should. Raises
    that where no campaign began."""
    from mpigraft.cli.bench import measure

    before = {record.id for record in store.campaigns()}
    try:
        return measure(store, task), None
    except (LaunchFailed, TransportMismatch) as error:
        begun = [record.id for record in store.campaigns() if record.id not in before]
        if not begun:
            raise
        return begun[-1], error


def _refuse_unfinished(store: Store, identity: str, form: Form) -> None:
    """Raise NotJudged where the time ended before there were enough rounds for a verdict."""
    from mpigraft.analysis import MIN_ROUNDS

    rounds = len({launch.round for launch in store.launches(identity)})
    if rounds < MIN_ROUNDS:
        raise NotJudged.of(
            "recheck-unfinished",
            rounds=rounds,
            least=MIN_ROUNDS,
            minutes=f"{form.minutes:g}",
            campaign=identity[:8],
        )


def _reference(store: Store, name: str, machine: Machine, accept: bool) -> CampaignRecord | None:
    """Return the good state. None where there is none yet and this run is to become it."""
    if name:
        return store.campaign(name)
    from mpigraft.analysis import last_good

    record = last_good(store.campaigns(), store.accepted(), machine)
    common.tell_unread(store)
    if record is None and not accept:
        raise MissingError.of("good-none", folder=store.folder)
    return record


def _spec(
    store: Store, reference: CampaignRecord | None, machine: Machine, minutes: float
) -> CampaignSpec:
    """Return the request: that of the good state in as many rounds as fit, or a quick campaign."""
    from mpigraft.analysis import recheck_rounds
    from mpigraft.bench import repeated_spec
    from mpigraft.request import CampaignSpec

    if reference is None:
        return CampaignSpec(quick=True, rounds=recheck_rounds(None, minutes, ""), name=NAME)
    title = f"{reference.name} {reference.id[:8]}"
    rounds = recheck_rounds(store.launches(reference.id), minutes, title)
    spec = _without_absent(repeated_spec(reference, checks=True), machine)
    return replace(spec, rounds=rounds, name=NAME)


def _without_absent(spec: CampaignSpec, machine: Machine) -> CampaignSpec:
    """Return the same without MPIs that are not here any more, and print their names. Raises
    MissingError where none is left."""
    from mpigraft.discovery import module_mpis, with_places
    from mpigraft.selection import select_mpis

    mpis = module_mpis(with_places(machine, spec.mpi), spec.modules).mpis
    absent: dict[str, MissingError] = {}
    for name in spec.mpi:
        try:
            select_mpis((name,), mpis)
        except MissingError as error:
            absent[name] = error
    if absent and len(absent) == len(spec.mpi):
        raise next(iter(absent.values()))
    for name in absent:
        tell(f"{name} is not here any more; the others are compared")
    return replace(spec, mpi=tuple(name for name in spec.mpi if name not in absent))
