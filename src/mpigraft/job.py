"""One job of a user: which MPI and transport, what the ranks are given, what proves it.

`plan` decides, and says of each decision where it came from; `prove` sees to the evidence for the
transport; `prepare` makes the launch. `kept_jobs` has what is kept of a job for its next start.
"""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mpigraft import (
    allocations,
    alternatives,
    configure,
    grafts,
    job_ask,
    job_layout,
    launch,
    layouts,
    starter,
    starting,
)
from mpigraft.config_files import Surroundings
from mpigraft.errors import (
    AnswerIsNo,
    LaunchFailed,
    MissingError,
    MpigraftError,
    TransportMismatch,
)
from mpigraft.graft import Wanted
from mpigraft.guest import Guest, examine, mpi_of
from mpigraft.guests.commands import Command
from mpigraft.job_ask import Ask
from mpigraft.jsonout import digest
from mpigraft.knowledge.spawn import spawn
from mpigraft.model import (
    NOWHERE,
    Allocation,
    Bind,
    Configuration,
    EnvRow,
    Evidence,
    Group,
    Launch,
    LaunchedBy,
    Layout,
    Machine,
    MpiInstall,
    Placement,
    Replace,
    Scope,
    Transport,
)
from mpigraft.natives import Natives, natives
from mpigraft.passing import Passed, sort_out
from mpigraft.which_mpi import Choice, first_of, for_guest, for_program
from mpigraft.wish import Wish

NO_LIMIT_S = 1e9  # what the guard takes at most: 31 years
GRACE_S = 30.0  # for a job that is asked to end: as long as Slurm gives one by default
NOTHING_FORCED = "the MPI's own choice; nothing is forced, and nothing of it proven"
OWN_CHOICE = Transport("", "", (), (), (), (), (), (), ())  # nothing is forced


@dataclass(frozen=True, slots=True)
class Line:
    """One decision, for `--explain`."""

    what: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was decided; `document` renders it."""

    ask: Ask
    configuration: Configuration
    layout: Layout
    natives: Natives
    passed: Passed
    program: Path | None  # as a file of this machine; None: it is in a guest
    binds: tuple[Bind, ...]
    lines: tuple[Line, ...]
    allocation: Allocation = launch.HERE
    placement: Placement = NOWHERE
    others: tuple[Group, ...] = ()  # programs besides the first
    sources: tuple[str, ...] = ()  # files of this machine that say what a script imports
    unknown: tuple[str, ...] = ()  # what could not be taken into account, for a person


# ------------------------------------------------------------------ deciding


def plan(
    ask: Ask,
    machine: Machine,
    environ: Mapping[str, str],
    subject: job_ask.Subject | None = None,
) -> Job:
    """Decide all of a job; for a guest its graft folder is made. `subject` is what
    `job_ask.subject` says of it, where that is known already. Raises MissingError for an MPI,
    a transport or an engine that is not here, AnswerIsNo for a pair that would not run,
    UsageError for bad words."""
    passed = sort_out(environ)
    binds = tuple(bind for word in ask.binds for bind in job_ask.bind(word, ask.optional))
    program = None
    subject = subject or job_ask.subject(ask, environ)
    guest, command = subject.guest, subject.command
    if guest is not None:
        passed = passed.for_guest()
        ask, choice = _in_guest(ask, machine, guest, passed)
        choice = choice.with_options(dict(ask.engine_options))
    else:
        program = job_ask.program(ask.program[0], environ)
        choice = _on_host(ask, machine, program, passed, command)
    where = ask.where
    nodes = allocations.find(environ, hosts=where.hosts, hostfile=where.hostfile, agent=where.agent)
    layout, others = job_layout.decide(where, machine.cpu.cores, nodes, environ)
    places = layouts.told(layout, machine)
    by = _launcher(ask, machine, choice)
    configuration = _configuration(ask, machine, choice, passed, layout.nodes, by)
    programs = natives(choice.mpi, machine.cpu.architecture)
    if not choice.plan:
        programs = starter.preloadable(programs)
    else:
        grafts.make(choice.plan)
        programs = grafts.seen(choice.plan, programs)
        environment = dict(passed.environment)
        seat = launch.seat_of(choice.plan, 1, Path.cwd(), environ=environment, extra=binds)
        own, passed = passed.into(choice.plan, seat)
        told = replace(choice.plan, passed=(*choice.plan.passed, *own))
        configuration = replace(configuration, graft=told)
    job = Job(
        ask, configuration, layout, programs, passed, program, binds, (), nodes, places, others,
        subject.sources,
    )  # fmt: skip
    return replace(
        job, lines=tuple(_lines(job, choice)), unknown=tuple(_unknown(ask, command, choice))
    )


def _in_guest(ask: Ask, machine: Machine, guest: Guest, passed: Passed) -> tuple[Ask, Choice]:
    """The MPI under a guest; of what was asked, all that still holds."""
    wanted = Wanted(job_ask.replaced(ask.replace), ask.engine)
    ask = job_ask.without_host(ask) if wanted.replace is Replace.NOTHING else ask
    choose = partial(for_guest, machine=machine, guest=guest, wanted=wanted)
    try:
        return ask, first_of(ask.wishes, choose)
    except AnswerIsNo as no:
        theirs = mpi_of(guest)
        wheels = alternatives.fetchable(guest, theirs, machine, wanted.replace, wanted.engine)
        _name_fitting(no, ask, machine, passed, choose, wheels)
        raise job_ask.narrowed(no, ask, guest) from no


def _on_host(ask: Ask, machine: Machine, program: Path, passed: Passed, command: Command) -> Choice:
    """The MPI for a program of this machine."""
    choose = partial(for_program, machine=machine, program=program, passed=passed, command=command)
    try:
        return first_of(ask.wishes, choose)
    except AnswerIsNo as no:
        no.mend = _under_it(ask, machine, program)
        _name_fitting(no, ask, machine, passed, choose)
        raise


def _unknown(ask: Ask, command: Command, choice: Choice) -> Iterator[str]:
    """What the choice of the MPI could not take into account."""
    if not ask.image:
        return
    if command.notes and ask.proof:
        way = "" if command.interpreted else "; --program PATH names what needs MPI"
        yield f"not known: {'; '.join(command.notes)}{way}"
    for part in choice.plan.parts if choice.plan else ():
        for finding in part.findings:
            if finding.code == "not-known":
                mend = f"; {finding.mend}" if finding.mend else ""
                yield f"not known: {finding.seen}: {finding.why}{mend}"


def _name_fitting(
    no: AnswerIsNo,
    ask: Ask,
    machine: Machine,
    passed: Passed,
    choose: Callable[[str], Choice],
    wheels: Sequence[str] = (),
) -> None:
    """Say in a refusal which other MPIs do for the job, launcher and transport included, or what
    can be fetched; nothing where a site's profile has fixed the MPI."""
    if "mpi" in dict(ask.fixed):
        return

    def check(mpi: MpiInstall) -> None:
        choice = choose(mpi.id)
        by = _launcher(ask, machine, choice)
        _configuration(ask, machine, choice, passed, 1, by)

    tried: set[str] = set()
    for wish in ask.wishes:
        with contextlib.suppress(MissingError):
            chosen = configure.select_mpis((wish,) if wish else (), machine.mpis)
            tried.update(mpi.id for mpi in chosen)
    alternatives.add_way_out(no, alternatives.fitting(machine, tried, check), wheels)


def _under_it(ask: Ask, machine: Machine, program: Path) -> str:
    """The way of putting the MPI under a program of this machine, where that would do."""
    try:
        guest = examine(str(program))
        for_guest(ask.wishes[0], machine, guest, Wanted(Replace.MPI, ask.engine))
    except MpigraftError:
        return ""
    return f"--image {program} puts it under the program, which was checked"


def _lines(job: Job, choice: Choice) -> Iterator[Line]:
    """What was decided, and by whom."""
    ask, layout, graft = job.ask, job.layout, choice.plan
    transport = job.configuration.transport
    name = transport.name if transport else ""
    yield Line("program", str(job.program or ask.program[0]), "command line")
    yield from (Line("program", other.words[0], "command line") for other in job.others)
    yield Line("mpi", f"{choice.mpi.id} ({choice.mpi.libmpi})", ask.mpi_source(choice.why))
    yield Line("transport", name or NOTHING_FORCED, ask.source("transport"))
    by = job.configuration.launcher
    if by:
        told = f"{by.kind} {by.version}" + (f", PMI by {by.pmi}" if by.pmi else "")
        yield Line("launcher", told, ask.source("launcher", default="the MPI has none of its own"))
    kind, pmi = (by.kind, by.pmi) if by else (choice.mpi.launcher_kind, "")
    if known := spawn(kind, choice.mpi.family, choice.mpi.version, pmi):
        yield Line("spawn", known.told, "knowledge")
    where = ask.where
    typed = where.ranks_per_node or where.nodes or where.threads or where.places
    yield Line("ranks", _ranks_told(job), "command line" if typed else ask.source("ranks"))
    if not job.allocation.here:
        hosts = ", ".join(job.allocation.hosts[: layout.nodes])
        yield Line("nodes", f"{layout.nodes}: {hosts}", job.allocation.source)
    if graft:
        yield Line("image", f"{graft.guest.source} ({graft.guest.os})", ask.source("image"))
        yield Line("engine", graft.engine, ask.source("engine"))
        if graft.options:
            yield Line("engine options", shlex.join(graft.options), ask.source("engine_options"))
        yield Line("replaced", graft.replace, ask.source("replace"))
        yield Line("graft", str(grafts.folder(graft)), "plan")
    here = {bind.source for bind in job.binds}
    for word in ask.binds:
        lost = "" if word.partition(":")[0] in here else " (left out: not here)"
        yield Line("bind", word + lost, ask.source("bind"))
    if ask.stdin != "0":
        yield Line("stdin", job_ask.STDIN[ask.stdin], "command line")
    yield from (Line("set", word, ask.source("set")) for word in ask.settings)
    yield from (Line("dropped", " ".join(names), why) for why, names in job.passed.why())
    yield from (Line("passed on", word, "environment") for word in job.passed.settings)


def _ranks_told(job: Job) -> str:
    """`8, 4 on each node, bound to core, 2 threads each`."""
    layout = job.layout
    spread = f", {layout.ranks_per_node} on each node" if layout.nodes > 1 else ""
    dealt = "" if layout.map_by == "core" else f", dealt over {layout.map_by}"
    gpus = ", each with the nearest GPU" if layout.gpus else ""
    threads = f", {layout.threads} threads each" if layout.threads > 1 else ""
    return f"{layout.ranks}{spread}{dealt}, bound to {layout.bind}{threads}{gpus}"


def _launcher(ask: Ask, machine: Machine, choice: Choice) -> LaunchedBy | None:
    """The one that was named, else the MPI's own, else the scheduler's. Raises AnswerIsNo for one
    under which the ranks would not find each other."""
    wanted = (ask.launcher,) if ask.launcher else ()
    found, left = starting.launchers_for(choice.mpi, machine, wanted)
    if not found:
        reasons = [starting.parted(reason) for _, reason in left]
        seen = f"{choice.mpi.id} cannot be started by {ask.launcher or 'anything'}"
        here = {one.name for one in machine.launchers}
        raise (AnswerIsNo if ask.launcher in here else MissingError)(
            seen, why="; ".join(why for why, _ in reasons), mend=reasons[0][1]
        )
    return found[0]


def _configuration(
    ask: Ask,
    machine: Machine,
    choice: Choice,
    passed: Passed,
    nodes: int,
    by: LaunchedBy | None,
) -> Configuration:
    """With a transport as `bench` would have it, or with none forced. What the user's environment
    says is set first, so that --set wins."""
    wish = Wish(
        transport=(ask.transport,) if ask.transport else (),
        set=(*passed.settings, *ask.settings),
    )
    if ask.transport:
        one = configure.chosen(wish, choice.mpi, machine, choice.plan, nodes, by)
    else:
        rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in wish.settings)
        one = Configuration(
            key=digest({"mpi": choice.mpi.libmpi, "settings": wish.settings}),
            id=choice.mpi.id,
            mpi=choice.mpi,
            transport=replace(OWN_CHOICE, env=rows),
            settings=wish.settings,
            graft=choice.plan,
            launcher=by,
        )
    assert one.transport is not None
    return replace(one, transport=replace(one.transport, env=(*choice.rows, *one.transport.env)))


# ------------------------------------------------------------------ proving


def prove(job: Job) -> Evidence | None:
    """The evidence for the transport that was asked for: kept from an earlier probe of the same
    contents, else of one that is started now. None where nothing was asked, or one rank has
    nobody to send to; of another launcher than the MPI's own two ranks are believed to find each
    other only once they did. Raises LaunchFailed or TransportMismatch when it is not as asked."""
    one = job.configuration
    if not job.ask.proof or job.layout.ranks < 2:
        return None
    asked = bool(one.transport and one.transport.name)
    if not asked and one.launcher is None:
        return None
    mine, around = {one.key: job.natives}, surroundings(job)
    with starter.starter(mine, job.allocation, lambda _: job.placement, around) as start:
        if not asked:
            pair = Layout(min(job.layout.nodes, 2), 2 if job.layout.nodes == 1 else 1, bind="none")
            keep = starter.lasting(job.allocation)
            found = starting.believed(one, job.natives, start, pair, keep=keep, around=around)
            if found:
                ran = any(finding.code in starting.WORLDS for finding in found)
                raise starter.error_of(TransportMismatch if ran else LaunchFailed, one.id, found)
            return None
        evidence = starter.evidence_of(one, job.layout, job.natives, start, job.allocation, around)
    if not evidence.ok:
        raise starter.refusal(one, evidence)
    return evidence


def surroundings(job: Job) -> Surroundings:
    """Where and with what this job's ranks are started: its probe is to read the same files."""
    return Surroundings(Path.cwd(), job.passed.environment, job.binds)


# ------------------------------------------------------------------ rendering


def prepare(job: Job, witness: Path, stdin: str = "") -> Launch:
    """The launch of this job; ranks write their records into `witness`. `stdin`: who reads
    standard input; empty: those to whom the launcher gives it."""
    return launch.prepare(
        job.configuration,
        job.layout,
        job.ask.program,
        natives=job.natives,
        witness=witness,
        limit_s=NO_LIMIT_S,
        grace_s=GRACE_S,
        cwd=Path.cwd(),
        inherited=dict(job.passed.environment),
        extra=job.binds,
        allocation=job.allocation,
        placement=job.placement,
        others=job.others,
        folder=witness,
        stdin=stdin,
    )


def records_home(job: Job, environ: Mapping[str, str]) -> str:
    """Where the folder of a job's records is made: in the graft's own, which ranks in a guest
    can write; where all nodes see it, if there are several; else on a local disk, as a rule."""
    if job.configuration.graft:
        return str(grafts.folder(job.configuration.graft) / grafts.RANKS)
    if not job.allocation.here:
        return str(starter.home(job.allocation))
    return environ.get("TMPDIR") or tempfile.gettempdir()
