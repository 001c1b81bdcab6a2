"""One job of a user: which MPI and transport, what the ranks are given, what proves it.

`plan` decides, and says of each decision where it came from; `prove` sees to the evidence for the
transport; `document` is the finished command line as `fast` keeps and starts it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpigraft import (
    allocations,
    bindings,
    cache,
    configure,
    engines,
    fast,
    grafts,
    job_ask,
    job_layout,
    launch,
    layouts,
    starter,
    starting,
)
from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, LaunchFailed, MissingError, TransportMismatch
from mpigraft.graft import Wanted
from mpigraft.job_ask import Ask
from mpigraft.jsonout import digest, plain, revive
from mpigraft.knowledge.spawn import spawn
from mpigraft.model import (
    NOWHERE,
    Allocation,
    Bind,
    Configuration,
    EnvRow,
    Evidence,
    Finding,
    Group,
    GuestKind,
    Launch,
    LaunchedBy,
    Layout,
    Level,
    Machine,
    MappedLibrary,
    Placement,
    Replace,
    Scope,
    Transport,
)
from mpigraft.natives import Natives, natives
from mpigraft.passing import Passed, sort_out
from mpigraft.records import read_witness
from mpigraft.resolve import closure
from mpigraft.steering import places_that_steer
from mpigraft.which_mpi import Choice, for_guest, for_program
from mpigraft.wish import Wish
from mpigraft.witness import LIBMPI, check_witness, due_library

NO_LIMIT_S = 1e9  # what the guard takes at most: 31 years
GRACE_S = 30.0  # for a job that is asked to end: as long as Slurm gives one by default
NOTHING_FORCED = "the MPI's own choice; nothing is forced, and nothing of it proven"
OWN_CHOICE = Transport("", "", (), (), (), (), (), (), ())  # nothing is forced
KIND = "job"  # of documents that say what a kept job was to be


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


# ------------------------------------------------------------------ deciding


def plan(ask: Ask, machine: Machine, environ: Mapping[str, str]) -> Job:
    """Decide all of a job; for a guest its graft folder is made. Raises MissingError for an MPI,
    a transport or an engine that is not here, AnswerIsNo for a pair that would not run,
    UsageError for bad words."""
    passed = sort_out(environ)
    binds = tuple(bind for word in ask.binds for bind in job_ask.bind(word, ask.optional))
    program = None
    if ask.image:
        passed = passed.for_guest()
        wanted = Wanted(job_ask.replaced(ask.replace), ask.engine)
        ask = job_ask.without_host(ask) if wanted.replace is Replace.NOTHING else ask
        guest = job_ask.guest(ask, environ)
        try:
            choice = for_guest(ask.mpi, machine, guest, wanted)
        except AnswerIsNo as no:
            raise job_ask.narrowed(no, ask, guest) from no
    else:
        program = job_ask.program(ask.program[0], environ)
        choice = for_program(ask.mpi, machine, program, passed)
    where = ask.where
    nodes = allocations.find(environ, hosts=where.hosts, hostfile=where.hostfile, agent=where.agent)
    layout, others = job_layout.decide(where, machine.cpu.cores, nodes, environ)
    places = layouts.told(layout, machine)
    by = _launcher(ask, machine, choice)
    configuration = _configuration(ask, machine, choice, passed, layout.nodes, by)
    programs = natives(choice.mpi, machine.cpu.architecture)
    if choice.plan:
        grafts.make(choice.plan)
        programs = grafts.seen(choice.plan, programs)
        own = passed.reaching(name for name, _ in choice.plan.guest.environment)
        told = replace(choice.plan, passed=(*choice.plan.passed, *own))
        configuration = replace(configuration, graft=told)
    job = Job(
        ask, configuration, layout, programs, passed, program, binds, (), nodes, places, others
    )  # fmt: skip
    return replace(job, lines=tuple(_lines(job, choice)))


def _lines(job: Job, choice: Choice) -> Iterator[Line]:
    """What was decided, and by whom."""
    ask, layout, graft = job.ask, job.layout, choice.plan
    transport = job.configuration.transport
    name = transport.name if transport else ""
    yield Line("program", str(job.program or ask.program[0]), "command line")
    yield from (Line("program", other.words[0], "command line") for other in job.others)
    yield Line(
        "mpi", f"{choice.mpi.id} ({choice.mpi.libmpi})", ask.source("mpi", default=choice.why)
    )
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
        yield Line("replaced", graft.replace, ask.source("replace"))
        yield Line("graft", str(grafts.folder(graft)), "plan")
    here = {bind.source for bind in job.binds}
    for word in ask.binds:
        lost = "" if word.partition(":")[0] in here else " (left out: not here)"
        yield Line("bind", word + lost, ask.source("bind"))
    yield from (Line("set", word, ask.source("set")) for word in ask.settings)
    yield from (Line("dropped", variable, why) for variable, why in job.passed.dropped)
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
    mine = {one.key: job.natives}
    with starter.starter(mine, job.allocation, lambda _: job.placement) as start:
        if not asked:
            pair = Layout(min(job.layout.nodes, 2), 2 if job.layout.nodes == 1 else 1, bind="none")
            keep = starter.lasting(job.allocation)
            found = starting.believed(one, job.natives, start, pair, keep=keep)
            if found:
                ran = any(finding.code in starting.WORLDS for finding in found)
                raise starter.error_of(TransportMismatch if ran else LaunchFailed, one.id, found)
            return None
        evidence = starter.evidence_of(one, job.layout, job.natives, start, job.allocation)
    if not evidence.ok:
        raise starter.refusal(one, evidence)
    return evidence


def findings(key: str, folder: Path, *, well: bool = True) -> tuple[Finding, ...]:
    """What is wrong with the world of a job that was kept under `key`, by the records that its
    ranks left in `folder`: errors, and where ranks are not on the CPUs that were asked for. `well`:
    the job did not fail by itself."""
    what = cache.get(KIND, key)
    if what is None:
        return (
            Finding(Level.ERROR, "job-unknown", "what this job was to be is not known any more"),
        )
    configuration = revive(Configuration, what["configuration"])
    layout = revive(Layout, what["layout"])
    placement = revive(Placement, what["placement"])
    hosts = tuple(what["hosts"])
    ranks = read_witness(folder)
    found = check_witness(configuration, layout, ranks, placement, hosts, ended=well)
    told = bindings.CODES if placement != NOWHERE else ()
    return tuple(f for f in found if f.level is Level.ERROR or f.code in told)


# ------------------------------------------------------------------ rendering


def prepare(job: Job, witness: Path) -> Launch:
    """The launch of this job; ranks write their records into `witness`."""
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
    )


def records_home(job: Job, environ: Mapping[str, str]) -> str:
    """Where the folder of a job's records is made: in the graft's own, which ranks in a guest
    can write; where all nodes see it, if there are several; else on a local disk, as a rule."""
    if job.configuration.graft:
        return str(grafts.folder(job.configuration.graft) / grafts.RANKS)
    if not job.allocation.here:
        return str(starter.home(job.allocation))
    return environ.get("TMPDIR") or tempfile.gettempdir()


def document(job: Job, key: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The job as `fast` keeps and starts it; what it was to be is kept beside it."""
    home = records_home(job, environ)
    made = prepare(job, Path(home) / fast.RECORDS)
    given, decided = dict(made.env), dict(made.decided)
    due = due_library(job.configuration)
    what = {
        "configuration": job.configuration,
        "layout": job.layout,
        "placement": job.placement,
        "hosts": () if job.allocation.here else job.allocation.hosts,
    }
    cache.put(KIND, key, plain(what))
    return {
        "key": key,
        "argv": list(made.argv),
        "parent": made.argv.index("--parent") + 1,
        "home": home,
        # Another job of the same nodes may have variables that this one has not, and lack others.
        "drop": sorted((environ.keys() | decided.keys()) - given.keys()),
        "set": {n: v for n, v in given.items() if n in decided or environ.get(n) != v},
        "ranks": job.layout.ranks,
        "nodes": job.layout.nodes,
        "libmpi": [due.path, due.device, due.inode]
        if isinstance(due, MappedLibrary)
        else ["", 0, 0],
        "libmpi_name": LIBMPI.pattern,
        "proof": job.ask.proof,
        "placed": job.placement != NOWHERE,
        "files": [[str(path), text] for path, text in made.files],
        "stamps": [[path, *fast.stamp(path)] for path in _inputs(job)],
        "listed": [[*place, fast.listed(*place)] for place in places_that_steer(job.configuration)],
    }


def may_be_kept(job: Job) -> bool:
    """Whether the command line is the same next time: a witness whose path LD_PRELOAD cannot
    take is copied into a folder of this process. Nor is a proof kept that has to come again."""
    transport = job.configuration.transport
    proven = job.ask.proof and bool(transport and transport.name)
    again = proven and not starter.lasting(job.allocation)
    return not again and not re.search(r"[\s:]", str(job.natives.witness))


def _inputs(job: Job) -> list[str]:
    """Files that the decisions were made from."""
    mpi, graft = job.configuration.mpi, job.configuration.graft
    assert mpi is not None
    found = [job.natives.guard, Path(__file__), job.ask.site, Path(job.ask.where.hostfile)]
    found += [job.natives.seat] if job.placement.gpus else []
    if graft:
        folder = grafts.folder(graft)
        found += [folder / copy.name for copy in graft.copies] + [folder / grafts.PLAN]
        found += [Path(one.path) for one in graft.inputs]
        found += _storage() if graft.guest.kind is GuestKind.PODMAN else []
        found += [Path(engines.find(graft.engine, os.environ)[0])]
    if mpi.source != launch.IN_GUEST:
        by = job.configuration.launcher
        found += [by.path if by else mpi.launcher, *configure.files(mpi)]
    if job.program is not None:
        found += [job.natives.witness, job.program, *_mapped(job)]
    return sorted({str(path) for path in found if path and path != Path()})


def _storage() -> list[Path]:
    """Files that podman writes whenever the image of a name changes."""
    names = ("overlay-images/images.json", "vfs-images/images.json")
    homes = (Path("/var/lib/containers/storage"), Path("~/.local/share/containers/storage"))
    return [home.expanduser() / name for home in homes for name in names]


def _mapped(job: Job) -> list[Path]:
    assert job.program is not None
    try:
        found = closure(job.program, environment=dict(job.passed.environment))
    except ElfError:
        return []
    return [one.path for one in found if one.path]
