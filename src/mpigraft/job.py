"""One job of a user: which MPI and transport, what the ranks are given, what proves it.

`plan` decides, and says of each decision where it came from; `prove` sees to the evidence for the
transport; `document` is the finished command line as `fast` keeps and starts it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpigraft import cache, configure, engines, fast, grafts, launch, starter
from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, UsageError
from mpigraft.graft import Wanted
from mpigraft.guest import Guest, examine
from mpigraft.guests import own_mpi
from mpigraft.jsonout import digest, plain, revive
from mpigraft.model import (
    Bind,
    BindKind,
    Configuration,
    EnvRow,
    Evidence,
    Finding,
    GuestKind,
    Launch,
    Layout,
    Level,
    Machine,
    MappedLibrary,
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
class Ask:
    """What a person and a site ask of a job. Empty: nobody said, and a default is taken."""

    program: tuple[str, ...]
    image: str = ""
    programs: tuple[str, ...] = ()  # in it, that need MPI: what a script starts
    mpi: str = ""
    transport: str = ""
    engine: str = ""
    replace: str = ""
    binds: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # of these, what a site binds where it is
    ranks: int = 0
    settings: tuple[str, ...] = ()  # NAME=VALUE
    proof: bool = True
    site: Path | None = None  # the profile that was asked, there or not
    sources: tuple[tuple[str, str], ...] = ()  # (what, who asked): ("mpi", "site.toml:3")

    def source(self, what: str, *, default: str = "default") -> str:
        return dict(self.sources).get(what, default)


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


# ------------------------------------------------------------------ deciding


def plan(ask: Ask, machine: Machine, environ: Mapping[str, str]) -> Job:
    """Decide all of a job; for a guest its graft folder is made. Raises MissingError for an MPI,
    a transport or an engine that is not here, AnswerIsNo for a pair that would not run,
    UsageError for bad words."""
    passed = sort_out(environ)
    binds = tuple(bind for word in ask.binds for bind in _bind(word, ask.optional))
    program = None
    if ask.image:
        passed = passed.for_guest()
        wanted = Wanted(_replaced(ask.replace), ask.engine)
        ask = _without_host(ask) if wanted.replace is Replace.NOTHING else ask
        guest = _guest(ask, environ)
        try:
            choice = for_guest(ask.mpi, machine, guest, wanted)
        except AnswerIsNo as no:
            raise _narrowed(no, ask, guest) from no
    else:
        program = _program(ask.program[0], environ)
        choice = for_program(ask.mpi, machine, program, passed)
    layout = _layout(ask, machine, environ)
    configuration = _configuration(ask, machine, choice, passed)
    programs = natives(choice.mpi, machine.cpu.architecture)
    if choice.plan:
        grafts.make(choice.plan)
        programs = grafts.seen(choice.plan, programs)
        own = passed.reaching(name for name, _ in choice.plan.guest.environment)
        told = replace(choice.plan, passed=(*choice.plan.passed, *own))
        configuration = replace(configuration, graft=told)
    job = Job(ask, configuration, layout, programs, passed, program, binds, ())
    return replace(job, lines=tuple(_lines(job, choice)))


def _lines(job: Job, choice: Choice) -> Iterator[Line]:
    """What was decided, and by whom."""
    ask, layout, graft = job.ask, job.layout, choice.plan
    transport = job.configuration.transport
    name = transport.name if transport else ""
    threads = f", {layout.threads} threads each" if layout.threads > 1 else ""
    yield Line("program", str(job.program or ask.program[0]), "command line")
    yield Line(
        "mpi", f"{choice.mpi.id} ({choice.mpi.libmpi})", ask.source("mpi", default=choice.why)
    )
    yield Line("transport", name or NOTHING_FORCED, ask.source("transport"))
    yield Line("ranks", f"{layout.ranks}, bound to {layout.bind}{threads}", ask.source("ranks"))
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


def _replaced(word: str) -> Replace:
    try:
        return Replace(word or Replace.MPI)
    except ValueError:
        known = ", ".join(Replace)
        raise UsageError(f"--replace {word!r} is unknown", mend=f"one of {known}") from None


def _narrowed(no: AnswerIsNo, ask: Ask, guest: Guest) -> AnswerIsNo:
    """The same answer, with a way out where a script was judged by all programs of the image."""
    if ask.programs or len(guest.label.programs) < 2:
        return no
    way = f"--program PATH, if {ask.program[0]} starts only some of what needs MPI in the image"
    return AnswerIsNo(no.seen, why=no.why, mend=f"{no.mend}; or {way}" if no.mend else way)


def _without_host(ask: Ask) -> Ask:
    """A job of which a guest brings the MPI: a site's choice gives way to the user's, and two
    wishes of one user contradict each other."""
    if ask.mpi and ask.source("mpi") == ask.source("replace"):
        raise UsageError(
            f"--mpi {ask.mpi} with --replace nothing",
            why="then nothing of this machine's goes in: the guest's own MPI and launcher run",
            mend="leave one of the two out",
        )
    sources = tuple(pair for pair in ask.sources if pair[0] != "mpi")
    return replace(ask, mpi="", sources=sources)


def _bind(word: str, optional: Sequence[str]) -> Iterator[Bind]:
    """`/scratch`, `/scratch:/data` or `/scratch:/data:ro`. What a site's profile binds need not
    be on every one of its machines."""
    source, *rest = word.split(":")
    target = rest[0] if rest and rest[0] else source
    mode = rest[1] if len(rest) > 1 else "rw"
    if len(rest) > 2 or mode not in ("ro", "rw") or not (source[:1] == target[:1] == "/"):
        raise UsageError(
            f"--bind {word!r} is not SOURCE[:TARGET[:ro]]",
            mend="give absolute paths: /scratch:/data",
        )
    path = Path(source)
    if path.exists():
        kind = BindKind.FOLDER if path.is_dir() else BindKind.FILE
        yield Bind(source, target, kind, writable=mode == "rw", why="asked for")
    elif word not in optional:
        raise UsageError(f"--bind {word!r}: {source} is not here")


def _guest(ask: Ask, environ: Mapping[str, str]) -> Guest:
    """The guest as far as this program is concerned. Of a script, a shell or an interpreter that
    starts something else, all that needs MPI in the image is meant."""
    itself = shutil.which(ask.program[0], path=environ.get("PATH"))
    if itself and Path(ask.image).is_file() and Path(ask.image).samefile(itself):
        return examine(ask.image)
    if ask.programs:
        return examine(ask.image, ask.programs)
    try:
        named = examine(ask.image, ask.program[:1])
    except UsageError as error:
        if not isinstance(error.__cause__, ElfError):
            raise
    else:
        if all(own_mpi.needs(named.root, program) for program in named.label.programs):
            return named
    return examine(ask.image)


def _program(word: str, environ: Mapping[str, str]) -> Path:
    found = shutil.which(word, path=environ.get("PATH", os.defpath))
    if found is None:
        raise UsageError(
            f"{word}: no such program",
            mend="give the path of a program that may be executed, or a name that is in PATH",
        )
    return Path(found).absolute()


def _layout(ask: Ask, machine: Machine, environ: Mapping[str, str]) -> Layout:
    """On this host; as many threads per rank as OMP_NUM_THREADS says, and never more ranks bound
    than there are cores."""
    first = environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    threads = int(first) if first.isdecimal() and 0 < int(first) < 10_000 else 1
    ranks = ask.ranks or max(1, machine.cpu.cores // threads)
    bind = "core" if ranks * threads <= machine.cpu.cores else "none"
    return Layout(ranks_per_node=ranks, threads=threads, bind=bind)


def _configuration(ask: Ask, machine: Machine, choice: Choice, passed: Passed) -> Configuration:
    """With a transport as `bench` would have it, or with none forced. What the user's environment
    says is set first, so that --set wins."""
    wish = Wish(
        transport=(ask.transport,) if ask.transport else (),
        set=(*passed.settings, *ask.settings),
    )
    if ask.transport:
        one = configure.chosen(wish, choice.mpi, machine, choice.plan)
    else:
        rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in wish.settings)
        one = Configuration(
            key=digest({"mpi": choice.mpi.libmpi, "settings": wish.settings}),
            id=choice.mpi.id,
            mpi=choice.mpi,
            transport=replace(OWN_CHOICE, env=rows),
            settings=wish.settings,
            graft=choice.plan,
        )
    assert one.transport is not None
    return replace(one, transport=replace(one.transport, env=(*choice.rows, *one.transport.env)))


# ------------------------------------------------------------------ proving


def prove(job: Job) -> Evidence | None:
    """The evidence for the transport that was asked for: kept from an earlier probe of the same
    contents, else of one that is started now. None where nothing was asked, or one rank has
    nobody to send to. Raises LaunchFailed or TransportMismatch when it is not as asked."""
    one = job.configuration
    if not (one.transport and one.transport.name and job.ask.proof and job.layout.ranks > 1):
        return None
    with starter.starter({one.key: job.natives}) as start:
        evidence = starter.evidence_of(one, job.layout, job.natives, start)
    if not evidence.ok:
        raise starter.refusal(one, evidence)
    return evidence


def findings(key: str, folder: Path) -> tuple[Finding, ...]:
    """What is wrong with the world of a job that was kept under `key`, by the records that its
    ranks left in `folder`. Errors alone: the rest is no reason to refuse what ran."""
    what = cache.get(KIND, key)
    if what is None:
        return (
            Finding(Level.ERROR, "job-unknown", "what this job was to be is not known any more"),
        )
    configuration = revive(Configuration, what["configuration"])
    layout = revive(Layout, what["layout"])
    found = check_witness(configuration, layout, read_witness(folder))
    return tuple(f for f in found if f.level is Level.ERROR)


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
    )


def records_home(job: Job, environ: Mapping[str, str]) -> str:
    """Where the folder of a job's records is made: in the graft's own, which ranks in a guest
    can write, else on a local disk, as a rule."""
    if job.configuration.graft:
        return str(grafts.folder(job.configuration.graft) / grafts.RANKS)
    return environ.get("TMPDIR") or tempfile.gettempdir()


def document(job: Job, key: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The job as `fast` keeps and starts it; what it was to be is kept beside it."""
    home = records_home(job, environ)
    made = prepare(job, Path(home) / fast.RECORDS)
    given = dict(made.env)
    due = due_library(job.configuration)
    cache.put(KIND, key, plain({"configuration": job.configuration, "layout": job.layout}))
    return {
        "key": key,
        "argv": list(made.argv),
        "parent": made.argv.index("--parent") + 1,
        "home": home,
        "drop": sorted(environ.keys() - given.keys()),
        "set": {name: value for name, value in given.items() if environ.get(name) != value},
        "ranks": job.layout.ranks,
        "nodes": job.layout.nodes,
        "libmpi": [due.path, due.device, due.inode]
        if isinstance(due, MappedLibrary)
        else ["", 0, 0],
        "libmpi_name": LIBMPI.pattern,
        "proof": job.ask.proof,
        "stamps": [[path, *fast.stamp(path)] for path in _inputs(job)],
        "listed": [[*place, fast.listed(*place)] for place in places_that_steer(job.configuration)],
    }


def may_be_kept(job: Job) -> bool:
    """Whether the command line is the same next time: a witness whose path LD_PRELOAD cannot
    take is copied into a folder of this process."""
    return not re.search(r"[\s:]", str(job.natives.witness))


def _inputs(job: Job) -> list[str]:
    """Files that the decisions were made from."""
    mpi, graft = job.configuration.mpi, job.configuration.graft
    assert mpi is not None
    found = [job.natives.guard, Path(__file__), job.ask.site]
    if graft:
        folder = grafts.folder(graft)
        found += [folder / copy.name for copy in graft.copies] + [folder / grafts.PLAN]
        found += [Path(one.path) for one in graft.inputs]
        found += _storage() if graft.guest.kind is GuestKind.PODMAN else []
        found += [Path(engines.find(graft.engine, os.environ)[0])]
    if mpi.source != launch.IN_GUEST:
        found += [mpi.launcher, *configure.files(mpi)]
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
