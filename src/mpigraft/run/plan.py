"""One job of a user: which MPI and transport, what the ranks get, what proves it.

`plan_job` decides, and names the source of each decision; `prove_job` sees to the evidence
for the transport; `prepare_job` makes the launch. `run.cached` keeps a job for its next start.
"""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError
from mpigraft.core.model import (
    NOWHERE,
    Allocation,
    Bind,
    Configuration,
    Finding,
    GraftPlan,
    Group,
    GuestKind,
    Launch,
    LaunchedBy,
    Layout,
    Machine,
    MpiInstall,
    Placement,
)
from mpigraft.evidence import launch_limits, preloadable_natives, records_folder, short_limits
from mpigraft.graft import (
    ACCEPTED,
    RANKS_FOLDER,
    Guest,
    GuestCommand,
    examine_guest,
    graft_folder,
    materialize,
    own_mpi_of,
    paths_in_guest,
    stack_of_program,
)
from mpigraft.knowledge import Facts, Spawn, spawn_facts
from mpigraft.launch import (
    IN_GUEST,
    THIS_HOST,
    LaunchRequest,
    engine_context,
    find_allocation,
    launchers_for,
    placement_for,
    prepare_launch,
    split_reason,
)
from mpigraft.native import Natives, choose_natives
from mpigraft.request import (
    STDIN,
    JobSubject,
    RunSpec,
    UserEnvironment,
    decide_layout,
    filter_environment,
    job_subject,
    parse_bind,
    program_of,
    settings_of,
    suggest_programs,
    without_host_mpi,
)
from mpigraft.selection import (
    MpiSelection,
    UserChoice,
    fetchable_mpis,
    first_mpi,
    fitting_mpis,
    make_configuration,
    mpi_for_guest,
    mpi_for_programs,
    select_mpis,
    suggest_mpis,
    with_setting,
)

NO_LIMIT_S = 1e9  # what the guard takes at most: 31 years
GRACE_S = 30.0  # for a job that is asked to end: as long as Slurm gives one by default
NOT_KNOWN = ("programs-not-known", "imports-not-known", "mpi-named")  # codes of graft.check
NOTHING_FORCED = "the MPI's own choice; nothing is forced, and nothing of it proven"


@dataclass(frozen=True, slots=True)
class DecisionLine:
    """One decision, for `--explain`."""

    what: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was decided; `document` renders it."""

    spec: RunSpec
    configuration: Configuration
    layout: Layout
    natives: Natives
    passed: UserEnvironment
    program: Path | None  # as a file of this machine; None: it is in a guest
    binds: tuple[Bind, ...]
    choice: MpiSelection
    command: GuestCommand
    allocation: Allocation = THIS_HOST
    placement: Placement = NOWHERE
    others: tuple[Group, ...] = ()  # programs besides the first
    sources: tuple[str, ...] = ()  # files of this machine that say what a script imports
    tracing: tuple[str, ...] | None = None
    limits: tuple[Finding, ...] = ()  # of this node that are short


# ------------------------------------------------------------------ deciding


def plan_job(
    spec: RunSpec,
    machine: Machine,
    environ: Mapping[str, str],
    subject: JobSubject | None = None,
    tracing: tuple[str, ...] | None = None,
) -> Job:
    """Decide all of a job; for a guest its graft folder is made. `subject` is what
    `job_subject` returned, where that is known already. Raises MissingError for an MPI,
    a transport or an engine that is not here, CheckFailed for a pair that would not run,
    UsageError for bad words."""
    passed = filter_environment(environ)
    binds = tuple(bind for word in spec.binds for bind in parse_bind(word, spec.optional))
    program = None
    subject = subject or job_subject(spec, environ)
    if spec.stack or subject.guest:
        spec = without_host_mpi(spec)
    if spec.stack:
        program = program_of(spec.program[0], environ)
        choice = _in_stack(spec, machine, (program, subject.command), passed)
    elif subject.guest:
        passed = passed.for_guest()
        choice = _in_guest(spec, machine, subject.guest, passed)
    else:
        program = program_of(spec.program[0], environ)
        more = (program_of(one.words[0], environ) for one in spec.where.others)
        every = ((program, subject.command), *zip(more, subject.others, strict=True))
        choice = _on_host(spec, machine, every, passed)
    where = spec.where
    nodes = find_allocation(
        environ, hosts=where.hosts, hostfile=where.hostfile, ssh_command=where.ssh_command
    )
    layout, others = decide_layout(where, machine.cpu.cores, nodes, environ)
    places = placement_for(layout, machine, nodes)
    plan = choice.plan
    if plan:
        environment = dict(passed.environment)
        seat = engine_context(plan, 1, Path.cwd(), environ=environment, extra=binds)
        own, passed = passed.into(plan, seat)
        choice = replace(choice, plan=replace(plan, passed=(*plan.passed, *own)))
    by = _launcher(spec, machine, choice)
    configuration = _configuration(spec, machine, choice, passed, layout.nodes, by)
    limits = launch_limits(choice.mpi, layout, machine, configuration.rows)
    programs = choose_natives(choice.mpi, machine.cpu.architecture)
    if plan:
        materialize(plan)
        programs = paths_in_guest(plan, programs)
    return Job(
        spec=spec, configuration=configuration, layout=layout,
        natives=preloadable_natives(programs), passed=passed, program=program, binds=binds,
        choice=choice, command=subject.command, allocation=nodes, placement=places,
        others=others, sources=subject.sources, tracing=tracing,
        limits=short_limits(limits, nodes),
    )  # fmt: skip


def _in_guest(
    spec: RunSpec, machine: Machine, guest: Guest, passed: UserEnvironment
) -> MpiSelection:
    """Choose the MPI under a guest."""
    wanted = spec.graft_options
    choose = partial(mpi_for_guest, machine=machine, guest=guest, wanted=wanted)
    try:
        return first_mpi(spec.mpi_names, choose)
    except CheckFailed as no:
        own = own_mpi_of(guest)
        wheels = fetchable_mpis(guest, own, machine, wanted.replace, wanted.engine)
        _suggest_other_mpis(no, spec, machine, passed, choose, wheels)
        raise suggest_programs(no, spec, guest) from no


def _in_stack(
    spec: RunSpec, machine: Machine, started: tuple[Path, GuestCommand], passed: UserEnvironment
) -> MpiSelection:
    """Choose the MPI for a program of a stack: what is injected, or the stack's own."""
    wanted = spec.graft_options
    program, command = started
    opened = tuple(filter(None, (command.program, *command.certain)))
    guest = stack_of_program(spec.stack, program, opened)
    choose = partial(mpi_for_guest, machine=machine, guest=guest, wanted=wanted)
    return first_mpi(spec.mpi_names, choose).with_user(passed)


def _on_host(
    spec: RunSpec,
    machine: Machine,
    programs: Sequence[tuple[Path, GuestCommand]],
    passed: UserEnvironment,
) -> MpiSelection:
    """Choose the MPI for the programs of a job of this machine."""
    passed = passed.with_preload(spec.settings)
    choose = partial(mpi_for_programs, machine=machine, programs=programs, passed=passed)
    try:
        return first_mpi(spec.mpi_names, choose)
    except CheckFailed as no:
        if no.code == "program-other-libmpi" and len(programs) == 1 and not no.fix:
            no.fix = _suggest_graft(spec, machine, programs[0][0]) or no.fix
        _suggest_other_mpis(no, spec, machine, passed, choose)
        raise


def unknown_parts(job: Job) -> Iterator[str]:
    """List what the choice of the MPI could not take into account."""
    spec, command, choice, facts = job.spec, job.command, job.choice, _spawn_facts(job)
    ranks, image = job.layout.ranks, bool(spec.image)
    yield from command.unknown_facts(ranks, image=image) if spec.proof else ()
    if facts and facts.once and command.starts > 1:
        again = Finding.of("starts-again", count=command.starts, mpi=choice.mpi.id)
        yield f"{again.message}: {again.why}; {again.fix}"
    if choice.doubt:
        yield choice.doubt
    for part in choice.plan.parts if choice.plan and (spec.image or spec.stack) else ():
        for finding in part.findings:
            fix = f"; {finding.fix}" if finding.fix else ""
            if finding.code in NOT_KNOWN:
                yield f"not known: {finding.message}: {finding.why}{fix}"
            elif part.name in ("folders", ACCEPTED):
                yield f"{finding.message}: {finding.why}{fix}"


def _suggest_other_mpis(
    no: CheckFailed,
    spec: RunSpec,
    machine: Machine,
    passed: UserEnvironment,
    choose: Callable[[str], MpiSelection],
    wheels: Sequence[str] = (),
) -> None:
    """Name in a refusal which other MPIs do for the job, launcher and transport included, or what
    can be fetched; nothing where a site's profile has fixed the MPI."""
    if "mpi" in dict(spec.fixed):
        return

    def check(mpi: MpiInstall) -> None:
        choice = choose(mpi.id)
        by = _launcher(spec, machine, choice)
        _configuration(spec, machine, choice, passed, 1, by)

    tried: set[str] = set()
    for mpi_name in spec.mpi_names:
        with contextlib.suppress(MissingError):
            chosen = select_mpis((mpi_name,) if mpi_name else (), machine.mpis)
            tried.update(mpi.id for mpi in chosen)
    suggest_mpis(no, fitting_mpis(machine, tried, check), wheels)


def _suggest_graft(spec: RunSpec, machine: Machine, program: Path) -> str:
    """Return the way of putting the MPI under a program of this machine, where that would do."""
    try:
        guest = examine_guest(str(program))
        mpi_for_guest(spec.mpi_names[0], machine, guest, replace(spec, replace="").graft_options)
    except MpigraftError:
        return ""
    return f"--image {program} puts it under the program, which was checked"


def decision_lines(job: Job) -> Iterator[DecisionLine]:
    """List what was decided, and by whom."""
    spec, layout, choice, graft = job.spec, job.layout, job.choice, job.choice.plan
    transport = job.configuration.transport
    name = transport.name if transport else ""
    yield DecisionLine("program", str(job.program or spec.program[0]), "command line")
    yield from (DecisionLine("program", other.words[0], "command line") for other in job.others)
    yield DecisionLine("mpi", f"{choice.mpi.id} ({choice.mpi.libmpi})", spec.mpi_source(choice.why))
    yield from (DecisionLine("not taken", one, "check") for one in choice.passed_over)
    yield DecisionLine("transport", name or NOTHING_FORCED, spec.source("transport"))
    by = job.configuration.launcher
    if by:
        text = f"{by.kind} {by.version}" + (f", PMI by {by.pmi}" if by.pmi else "")
        yield DecisionLine(
            "launcher", text, spec.source("launcher", default="the MPI has none of its own")
        )
    if known := _spawn_facts(job):
        places = [_place_of_children(graft, choice.mpi, by)] if known.works else []
        yield DecisionLine("spawn", "; ".join([known.summary, *places]), "knowledge")
    where = spec.where
    typed = where.ranks_per_node or where.nodes or where.threads or where.places
    yield DecisionLine("ranks", _ranks_text(job), "command line" if typed else spec.source("ranks"))
    if not job.allocation.here:
        hosts = ", ".join(job.allocation.hosts[: layout.nodes])
        yield DecisionLine("nodes", f"{layout.nodes}: {hosts}", job.allocation.source)
    if graft:
        if graft.guest.kind is GuestKind.STACK:
            yield DecisionLine("stack", graft.guest.source, "command line")
        else:
            yield DecisionLine(
                "image", f"{graft.guest.source} ({graft.guest.os})", spec.source("image")
            )
        yield DecisionLine("engine", graft.engine, spec.source("engine"))
        if graft.options:
            by_whom = spec.source("engine_option", default="environment")
            yield DecisionLine("engine options", shlex.join(graft.options), by_whom)
        yield DecisionLine("replaced", graft.replace, spec.source("replace"))
        yield DecisionLine("graft", str(graft_folder(graft)), "plan")
    here = {bind.source for bind in job.binds}
    for word in spec.binds:
        note = "" if word.partition(":")[0] in here else " (left out: not here)"
        yield DecisionLine("bind", word + note, spec.source("bind"))
    if spec.stdin != "0":
        yield DecisionLine("stdin", STDIN[spec.stdin], "command line")
    yield from (DecisionLine("set", word, spec.source("env")) for word in spec.settings)
    yield from (DecisionLine("setting", str(one), "command line") for one in spec.setting)
    yield from (DecisionLine("dropped", " ".join(names), why) for why, names in job.passed.why())
    yield from (DecisionLine("passed on", word, "environment") for word in job.passed.settings)


def _spawn_facts(job: Job) -> Spawn | None:
    mpi, by = job.choice.mpi, job.configuration.launcher
    kind, pmi = (by.kind, by.pmi) if by else (mpi.launcher_kind, "")
    return spawn_facts(kind, mpi.family, mpi.version, pmi)


def _place_of_children(graft: GraftPlan | None, mpi: MpiInstall, by: LaunchedBy | None) -> str:
    """Return where MPI_Comm_spawn starts what it names."""
    if graft is None:
        return "children have the variables of the ranks"
    if mpi.source == IN_GUEST and by is None:
        return "children start in the image, whose launcher it is"
    engine = "" if graft.engine == "none" else f", under {graft.engine}"
    return f"children start in {graft.guest.name} too{engine}, with the variables of the ranks"


def _ranks_text(job: Job) -> str:
    """`8, 4 on each node, bound to core, 2 threads each`."""
    layout = job.layout
    spread = f", {layout.ranks_per_node} on each node" if layout.nodes > 1 else ""
    dealt = "" if layout.map_by == "core" else f", dealt over {layout.map_by}"
    gpus = ", each with the nearest GPU" if layout.gpus else ""
    threads = f", {layout.threads} threads each" if layout.threads > 1 else ""
    return f"{layout.ranks}{spread}{dealt}, bound to {layout.bind}{threads}{gpus}"


def _launcher(spec: RunSpec, machine: Machine, choice: MpiSelection) -> LaunchedBy | None:
    """Choose the launcher that was named, else the MPI's own, else the scheduler's. Raises
    MissingError for one under which the ranks would not find each other, as `bench` does."""
    wanted = (spec.launcher,) if spec.launcher else ()
    launchers, refused = launchers_for(choice.mpi, machine, wanted)
    if not launchers:
        reasons = [split_reason(reason) for _, reason in refused]
        raise MissingError.of(
            "launcher-unfit",
            mpi=choice.mpi.id,
            launcher=spec.launcher or "anything",
            why="; ".join(why for why, _ in reasons),
            fix=reasons[0][1],
        )
    return launchers[0]


def _configuration(
    spec: RunSpec,
    machine: Machine,
    choice: MpiSelection,
    passed: UserEnvironment,
    nodes: int,
    by: LaunchedBy | None,
) -> Configuration:
    """Make the configuration. What the user's environment says is set first, so that --env wins."""
    user = UserChoice(settings_of((*passed.settings, *spec.settings)))
    plain = make_configuration(choice, Facts.of(machine, nodes), spec.transport, user, by)
    return with_setting(spec.setting, plain)


def prepare_job(job: Job, witness: Path, stdin: str = "") -> Launch:
    """Make the launch of this job; ranks write their records into `witness`. `stdin`: who reads
    standard input; empty: those to whom the launcher gives it."""
    request = LaunchRequest(
        job.configuration,
        job.layout,
        job.spec.program,
        natives=job.natives,
        witness=witness,
        limit_s=NO_LIMIT_S,
        grace_s=GRACE_S,
        cwd=Path.cwd(),
        inherited=dict(job.passed.environment),
        binds=job.binds,
        allocation=job.allocation,
        placement=job.placement,
        other_programs=job.others,
        folder=witness,
        stdin=stdin,
        tracing=job.tracing,
    )
    return prepare_launch(request)


def job_records(job: Job, environ: Mapping[str, str]) -> str:
    """Return where the folder of a job's records is made: in the graft's own, which ranks in a
    guest can write; where all nodes see it, if there are several; else on a local disk, as a
    rule."""
    if job.configuration.graft:
        return str(graft_folder(job.configuration.graft) / RANKS_FOLDER)
    if not job.allocation.here:
        return str(records_folder(job.allocation))
    return environ.get("TMPDIR") or tempfile.gettempdir()
