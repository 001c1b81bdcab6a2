"""One job of a user: which MPI and transport, what the ranks are given, what proves it.

`plan` decides, and says of each decision where it came from; `prove` sees to the evidence for the
transport; `document` is the finished command line as `fast` keeps and starts it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpigraft import cache, configure, env, fast, launch, starter
from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, MissingError, UsageError
from mpigraft.jsonout import digest, plain, revive
from mpigraft.model import (
    Configuration,
    EnvRow,
    Evidence,
    Family,
    Finding,
    Launch,
    Layout,
    Level,
    Machine,
    MappedLibrary,
    MpiInstall,
    Scope,
    Transport,
)
from mpigraft.natives import Natives, natives
from mpigraft.passing import Passed, sort_out
from mpigraft.resolve import Resolved, closure
from mpigraft.steering import places_that_steer
from mpigraft.wish import Wish
from mpigraft.witness import LIBMPI, check_witness, due_library, read_witness

NO_LIMIT_S = 1e9  # what the guard takes at most: 31 years
GRACE_S = 30.0  # for a job that is asked to end: as long as Slurm gives one by default
OWN_CHOICE = Transport("", "", (), (), (), (), (), (), ())  # nothing is forced
KIND = "job"  # of documents that say what a kept job was to be


@dataclass(frozen=True, slots=True)
class Ask:
    """What a person and a site ask of a job. Empty: nobody said, and a default is taken."""

    program: tuple[str, ...]
    mpi: str = ""
    transport: str = ""
    ranks: int = 0
    settings: tuple[str, ...] = ()  # NAME=VALUE
    proof: bool = True
    site: Path | None = None  # the profile that was asked, there or not
    sources: tuple[tuple[str, str], ...] = ()  # (what, who asked): ("mpi", "site.toml:3")

    def source(self, what: str) -> str:
        return dict(self.sources).get(what, "default")


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
    program: Path | None  # as a file of this machine; None: it is found by the ranks
    lines: tuple[Line, ...]


# ------------------------------------------------------------------ deciding


def plan(ask: Ask, machine: Machine, environ: Mapping[str, str]) -> Job:
    """Decide all of a job. Raises MissingError for an MPI or a transport that is not here,
    AnswerIsNo for a program that would not run on the chosen MPI, UsageError for bad words."""
    program = _program(ask.program[0], environ)
    passed = sort_out(environ)
    mpi, why, rows = _mpi(ask, machine, program, passed)
    layout = _layout(ask, machine, environ)
    configuration = _configuration(ask, machine, mpi, layout, passed)
    assert configuration.transport is not None
    transport = replace(configuration.transport, env=(*rows, *configuration.transport.env))
    configuration = replace(configuration, transport=transport)
    asked_for = transport.name or "the MPI's own choice; nothing is forced or proven of it"
    ranks = f"{layout.ranks}, bound to {layout.bind}" + (
        f", {layout.threads} threads each" if layout.threads > 1 else ""
    )
    lines = [
        Line("program", str(program or ask.program[0]), "command line"),
        Line("mpi", f"{mpi.id} ({mpi.libmpi})", why),
        Line("transport", asked_for, ask.source("transport")),
        Line("ranks", ranks, ask.source("ranks")),
        *(Line("dropped", name, reason) for name, reason in passed.dropped),
        *(Line("passed on", word, "environment") for word in passed.settings),
    ]
    programs = natives(mpi, machine.cpu.architecture)
    return Job(ask, configuration, layout, programs, passed, program, tuple(lines))


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


def _configuration(
    ask: Ask, machine: Machine, mpi: MpiInstall, layout: Layout, passed: Passed
) -> Configuration:
    """With a transport as `bench` would have it; what the user's environment says is set first,
    so that --set wins."""
    wish = Wish(
        transport=(ask.transport,) if ask.transport else (),
        set=(*passed.settings, *ask.settings),
    )
    if ask.transport:
        here = replace(machine, mpis=(mpi,))
        found, skipped = configure.configurations(wish, here, (layout,), configure.contents)
        if not found:
            raise MissingError("; ".join(f"{who}: {why}" for who, why in skipped))
        return found[0]
    rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in wish.settings)
    return Configuration(
        key=digest({"mpi": mpi.id, "libmpi": mpi.libmpi, "settings": wish.settings}),
        id=mpi.id,
        mpi=mpi,
        transport=replace(OWN_CHOICE, env=rows),
        settings=wish.settings,
    )


# ------------------------------------------------------------------ which MPI


def _mpi(
    ask: Ask, machine: Machine, program: Path, passed: Passed
) -> tuple[MpiInstall, str, tuple[EnvRow, ...]]:
    """The MPI, why that one, and what its ranks need to find it. Of several that the program can
    run on: the one that it finds by itself, else Cray's, else the first in PATH, else by id."""
    wanted = (ask.mpi,) if ask.mpi else ()
    chosen = configure.select_mpis(wanted, machine.mpis)
    usable = [m for m in chosen if m.usable and m.launcher]
    if not usable:
        reasons = "; ".join(f"{m.id}: {m.reason or 'it has no launcher'}" for m in chosen)
        raise MissingError(
            f"no MPI to start it with ({reasons or 'none was found'})",
            mend="`mpigraft discover` shows what is here, `mpigraft get openmpi` fetches one",
        )
    own = _libmpis(program, dict(passed.environment) | {r.name: r.value or "" for r in passed.rows})
    mine = [m for m in usable if own and _same(own[0].path, m.libmpi)]
    ranked = sorted(usable, key=lambda m: (m.family is not Family.CRAY_MPICH, m.source != "path"))
    refused: list[str] = []
    for mpi in dict.fromkeys((*mine, *ranked)):
        for rows in _ways(mpi, passed):
            problem = _problem(mpi, program, passed, rows)
            if not problem:
                return mpi, _why(ask, mpi, mine, own), rows
        refused.append(f"{mpi.id}: {problem}")
    raise AnswerIsNo(
        f"{program} does not run on {ask.mpi or 'any MPI that is here'}",
        why="; ".join(refused),
        mend="name another MPI with --mpi, or build the program with this one's mpicc",
    )


def _why(ask: Ask, mpi: MpiInstall, mine: Sequence[MpiInstall], own: Sequence[Resolved]) -> str:
    if ask.mpi:
        return ask.source("mpi")
    if mpi in mine:
        return f"the program finds it by itself: {own[0].how}"
    return "default: Cray MPICH, the first in PATH, the first by id"


def _ways(mpi: MpiInstall, passed: Passed) -> list[tuple[EnvRow, ...]]:
    """Rows for the ranks: the MPI's own search path before the user's, then also the folder of
    its libmpi before both."""
    own = [r.value for r in mpi.environment if r.name == fast.SEARCH and r.scope is Scope.RANK]
    user = [r.value for r in passed.rows if r.name == fast.SEARCH]
    other = tuple(row for row in passed.rows if row.name != fast.SEARCH)
    usual = [*own[-1:], *user]
    found = []
    for folders in (usual, [str(mpi.libmpi.parent if mpi.libmpi else ""), *usual]):
        value = ":".join(filter(None, folders))
        row = [EnvRow(fast.SEARCH, value, Scope.RANK, "mpi, user")] if value else []
        found.append((*row, *other))
    return found


def _problem(mpi: MpiInstall, program: Path, passed: Passed, rows: Sequence[EnvRow]) -> str:
    """Why the program's ranks would not run on this libmpi; empty where they do, and for what is
    no program that says which libraries it needs: a script, or one that opens MPI later."""
    start = env.apply(dict(passed.environment), mpi.environment, Scope.LAUNCHER, Scope.RANK)
    found = _libmpis(program, env.apply(start, rows, Scope.RANK))
    for one in found:
        if one.path is None:
            return f"{one.name} is not found: {one.how}"
        if not _same(one.path, mpi.libmpi):
            return f"it would take {one.path} ({one.how}) instead of {mpi.libmpi}"
    return ""


def _libmpis(program: Path, environment: Mapping[str, str]) -> list[Resolved]:
    try:
        found = closure(program, environment=environment)
    except ElfError:
        return []
    return [one for one in found if LIBMPI.fullmatch(one.name.rpartition("/")[2])]


def _same(one: Path | None, other: Path | None) -> bool:
    try:
        return one is not None and other is not None and one.samefile(other)
    except OSError:
        return False


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
    )


def records_home(environ: Mapping[str, str]) -> str:
    """Where the folder of a job's records is made: a local disk, as a rule."""
    return environ.get("TMPDIR") or tempfile.gettempdir()


def document(job: Job, key: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The job as `fast` keeps and starts it; what it was to be is kept beside it."""
    home = records_home(environ)
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
        "libmpi": [due.path, due.device, due.inode]
        if isinstance(due, MappedLibrary)
        else ["", 0, 0],
        "libmpi_name": LIBMPI.pattern,
        "proof": job.ask.proof,
        "stamps": [[str(path), *fast.stamp(str(path))] for path in _inputs(job)],
        "listed": [[*place, fast.listed(*place)] for place in places_that_steer(job.configuration)],
    }


def may_be_kept(job: Job) -> bool:
    """Whether the command line is the same next time: a witness whose path LD_PRELOAD cannot
    take is copied into a folder of this process."""
    return not re.search(r"[\s:]", str(job.natives.witness))


def _inputs(job: Job) -> list[Path]:
    """Files that the decisions were made from."""
    mpi = job.configuration.mpi
    assert mpi is not None
    found = [job.natives.witness, job.natives.guard, job.natives.bench, Path(__file__)]
    found += [path for path in (mpi.launcher, job.ask.site) if path]
    found += configure.files(mpi)
    if job.program is not None:
        found.append(job.program)
        environment = dict(job.passed.environment)
        with_libraries = _closure_paths(job.program, environment)
        found += with_libraries
    return list(dict.fromkeys(found))


def _closure_paths(program: Path, environment: Mapping[str, str]) -> list[Path]:
    try:
        return [one.path for one in closure(program, environment=environment) if one.path]
    except ElfError:
        return []
