"""Start what `launch` prepared, and prove it: the effects that campaigns and single jobs share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from mpigraft.core import cache
from mpigraft.core.errors import LaunchFailed, MissingError, MpigraftError, TransportMismatch
from mpigraft.core.fingerprint import boot_id
from mpigraft.core.model import (
    NOWHERE,
    Allocation,
    Configuration,
    Evidence,
    Finding,
    GraftPlan,
    Launch,
    Layout,
    Level,
    Placement,
)
from mpigraft.core.noexec import refuse_noexec
from mpigraft.core.process import Completed, Listener, run_command
from mpigraft.core.write import make_folder, write_whole
from mpigraft.evidence import judge, keys
from mpigraft.evidence.causes import ends_launch, is_cause, named_causes
from mpigraft.evidence.files.config import OWN_SURROUNDINGS, Surroundings, mpi_config_files
from mpigraft.evidence.world.failures import explain_failure
from mpigraft.evidence.world.networks import due_networks
from mpigraft.evidence.world.witness import due_library
from mpigraft.graft import RANKS_FOLDER, materialize
from mpigraft.launch import (
    IN_GUEST,
    THIS_HOST,
    LaunchRequest,
    LaunchResult,
    Nodes,
    compare_nodes,
    prepare_launch,
)
from mpigraft.native import NOW, Natives
from mpigraft.store import flatten_evidence, revive_evidence

PROBE_LIMIT_S = 60.0
START_LIMIT_S = 20.0  # of one that finds out why a job did not start
PER_RANK_S = 0.05  # of a probe's limit more: thousands of ranks take minutes to start
# Ranks start here: a folder that a node lacks would end the launch without a reason.
EVERYWHERE = Path("/")
SCRATCH = "mpigraft-"  # then host, whose processes, process id: folders of witness records
OLD_S = 7 * 86400  # longer than a job
TO_BLAME = ("setting-overrides", "config-files")  # findings of what a user or a site set
WIRE = "wire-contradiction"  # the counters looked where the settings said
NOT_RUN = Completed((), 1, b"", b"", 0.0)
MEMORY = ("shm-full", "step-memory", "rank-killed")  # no setting is the cause
NODES = ("node-lacks", "node-lost")  # nor of these
# Another MPI ran, with any transport.
OTHER_MPI = ("override-differs", "generations-mixed", "node-build")

Start = Callable[[Configuration, Layout, tuple[str, ...], float, bool], LaunchResult]
PlacementOf = Callable[[Layout], Placement]


def _no_placement(_: Layout) -> Placement:
    return NOWHERE


@contextmanager
def make_starter(
    programs: dict[str, Natives],
    allocation: Allocation = THIS_HOST,
    placement_of: PlacementOf = _no_placement,
    surroundings: Surroundings = OWN_SURROUNDINGS,
) -> Iterator[Start]:
    """Make a function that starts a configuration's program, waits, and reads the witness.

    `programs` are ours by the configuration's key, as its ranks see them; `surroundings` is where
    and with what a user's job will run, as its probe has to.
    """
    hosts = () if allocation.here else allocation.hosts
    nodes = Nodes(hosts if len(hosts) > 1 else ())
    with tempfile.TemporaryDirectory(prefix=_prefix(), dir=_swept_folder(allocation)) as scratch:
        count = iter(range(1 << 30))
        programs = {key: _preloadable(here, Path(scratch)) for key, here in programs.items()}

        def start(
            configuration: Configuration,
            layout: Layout,
            words: tuple[str, ...],
            limit_s: float,
            probe: bool,
        ) -> LaunchResult:
            plan, placement = configuration.graft, placement_of(layout)
            unlike = _compare_once(allocation, layout.nodes if probe else 1, configuration)
            if any(f.level is Level.ERROR for f in unlike):  # a launcher would wait for a minute
                return LaunchResult(NOT_RUN, (), placement, hosts, unlike, started=False)
            witness = _make_records(plan, Path(scratch), next(count))
            request = LaunchRequest(
                configuration,
                layout,
                words,
                natives=programs[configuration.key],
                witness=witness,
                limit_s=limit_s,
                probe=probe,
                allocation=allocation,
                placement=placement,
                cwd=surroundings.cwd or (Path(scratch) if allocation.here else EVERYWHERE),
                inherited=surroundings.inherited,
                binds=surroundings.binds,
                folder=Path(scratch),
                stdin="" if programs[configuration.key].has_program(words) else "none",
            )
            try:
                prepared = prepare_launch(request)  # first: other hosts are not queried in vain
                if layout.nodes > 1:
                    nodes.query(wait=not probe)
                ended = _wait(prepared, limit_s + 15)
                ranks = judge.read_witness(witness, layout.ranks)
                # PRRTE ends with code 0 when it loses a node whose ranks are still in MPI_Init.
                wrong = (came := sum(r.of_launch for r in ranks)) < layout.ranks or not ended.ok
                why = _causes(request, ended, came, nodes) if wrong else ()
                return LaunchResult(ended, ranks, placement, hosts, (*unlike, *why))
            finally:
                shutil.rmtree(witness, ignore_errors=True)

        yield start


def _make_records(plan: GraftPlan | None, scratch: Path, number: int) -> Path:
    """Make the folder for a launch's records, where its ranks can write."""
    records = materialize(plan) / RANKS_FOLDER if plan else scratch
    witness = records / f"{_prefix()}{number}"
    make_folder(witness)
    return witness


def _causes(
    request: LaunchRequest, ended: Completed, came: int, nodes: Nodes
) -> tuple[Finding, ...]:
    """Return why a launch went wrong, as far as it printed or recorded, and its nodes answer;
    `came`: ranks that were in MPI."""
    allocation, layout = request.allocation, request.layout
    hosts = () if allocation.here else allocation.hosts[: layout.nodes]
    slurm = allocation.scheduler == "slurm"
    printed = (
        () if ended.ok else named_causes(ended, hosts, whole=came == layout.ranks, slurm=slurm)
    )
    silent = nodes.unreachable(hosts if layout.nodes > 1 else ())
    return (*printed, *explain_failure(request.configuration, request.witness, came), *silent)


def _compare(
    allocation: Allocation, nodes: int, configuration: Configuration
) -> tuple[Finding, ...]:
    """Compare the nodes of a job, if it has several: the launcher of the MPI, libmpi, libfabric
    and UCX, and what else of a node ends launches."""
    if nodes == 1:
        return ()
    due, mpi = due_library(configuration), configuration.mpi
    files = [] if isinstance(due, str) or not due.inode else [due.path]
    files += [one.path for own in due_networks(configuration).values() for one in own]
    if configuration.launcher is None and mpi and mpi.source != IN_GUEST and mpi.launcher:
        files.append(str(mpi.launcher))
    return compare_nodes(allocation, nodes, tuple(dict.fromkeys(files)))


_compare_once = lru_cache(_compare)


def _wait(launch: Launch, limit_s: float) -> Completed:
    write_files(launch)
    env = dict(launch.env)
    argv = stamped(launch.argv)
    return run_command(
        argv, env=env, cwd=launch.cwd, limit_s=limit_s, listener=Listener(ends=ends_launch)
    )


def stamped(argv: Sequence[str]) -> list[str]:
    """Return `argv` with the time of its start where a program needs it."""
    return [f"{time.time():.6f}" if word == NOW else word for word in argv]


def write_files(launch: Launch) -> None:
    """Write the files that the launcher reads: lists of ranks, of programs; and what it starts for
    ranks that spawn others."""
    for path, text in (*launch.files, *launch.children):
        path.write_text(text, encoding="utf-8", errors="surrogateescape")


def records_folder(allocation: Allocation) -> Path:
    """Return where folders of records are made: on a local disk for this host alone, else in the
    cache, which all hosts usually see in the home folder."""
    if allocation.here:
        return Path(tempfile.gettempdir())
    home = cache.folders().cache / RANKS_FOLDER
    make_folder(home)
    return home


def _prefix() -> str:
    """Return the prefix of this process's folders: other hosts reuse process numbers."""
    return f"{_host_prefix()}{os.getpid()}-"


def _host_prefix() -> str:
    """Return the host whose process numbers they are: two clusters that share a home folder may
    both have an n1, and a container may have its host's name and processes of its own."""
    counted = boot_id()
    with contextlib.suppress(OSError):
        counted += str(Path("/proc/self/ns/pid").readlink())
    return f"{SCRATCH}{os.uname().nodename}-{hashlib.sha256(counted.encode()).hexdigest()[:8]}-"


def _preloadable(programs: Natives, scratch: Path) -> Natives:
    """Copy a witness whose path LD_PRELOAD does not take: one with a blank or a colon in it."""
    if not BLANK.search(str(programs.witness)):
        return programs
    witness = _copied(programs.witness, scratch / f"{programs.digest[:16]}.so")
    if programs.trace is None:
        return replace(programs, witness=witness)
    trace = _copied(programs.trace, scratch / f"{cache.file_digest(programs.trace)[:16]}.so")
    return replace(programs, witness=witness, trace=trace)


def _copied(library: Path, copy: Path) -> Path:
    """Copy a library, unless it is there: another job's ranks may have it mapped, so it is never
    written to again."""
    refuse_noexec(copy.parent, "the library that records ranks", TMPDIR_FIX)
    if not copy.exists():
        write_whole(copy, library.read_bytes(), 0o755, links=False)
    return copy


BLANK = re.compile(r"[\s:]")
TMPDIR_FIX = "set TMPDIR and MPIGRAFT_HOME to folders of another file system"


def preloadable_natives(programs: Natives) -> Natives:
    """Return programs whose witness can be preloaded as often as a kept job is started: a copy in
    the cache where mpigraft's path has a blank or a colon. Raises MissingError where the cache's
    has one too."""
    if not BLANK.search(str(programs.witness)):
        return programs
    folder = cache.folders().cache / "native"
    if BLANK.search(str(folder)):
        raise MissingError.of("witness-not-preloadable", path=programs.witness)
    make_folder(folder)
    return _preloadable(programs, folder)


def _swept_folder(allocation: Allocation) -> Path:
    base = records_folder(allocation)
    _sweep(base)
    return base


def _sweep(home: Path) -> None:
    """Remove the folders of this user's campaigns that were killed on this host: at once those of
    processes that have ended, after OLD_S those of an earlier boot."""
    here = _host_prefix()
    for folder in home.glob(f"{SCRATCH}{os.uname().nodename}-*-*"):
        with contextlib.suppress(OSError):
            status = folder.stat()
            if folder.name.startswith(here):
                pid = folder.name.removeprefix(here).partition("-")[0]
                gone = pid.isdecimal() and not Path("/proc", pid).exists()
            else:
                gone = time.time() - status.st_mtime > OLD_S
            if gone and status.st_uid == os.getuid():
                shutil.rmtree(folder)


def outlives_job(nodes: Allocation) -> bool:
    """Return whether evidence of these nodes may be kept: of this host, or for as long as a job."""
    return nodes.here or bool(nodes.job)


def evidence_of(
    configuration: Configuration,
    layout: Layout,
    programs: Natives,
    start: Start,
    nodes: Allocation = THIS_HOST,
    surroundings: Surroundings = OWN_SURROUNDINGS,
) -> Evidence:
    """Return the evidence of an earlier probe, else of one that is started now, and repeated where
    it may have failed by chance. Nodes that no scheduler allocated may have booted since, or have
    other networks now: evidence of those holds for this run only."""

    def current_key() -> str:
        return keys.evidence_key(configuration, layout, programs, nodes, surroundings)

    key = current_key()
    cached = cache.get("evidence", key) if outlives_job(nodes) else None
    with contextlib.suppress(ValueError, TypeError, KeyError):  # kept by another version
        if cached is not None:
            return revive_evidence(cached)
    words = judge.probe_program(programs, configuration.buffers)
    limit_s = PROBE_LIMIT_S + PER_RANK_S * layout.ranks
    for _ in range(2):
        launched = start(configuration, layout, words, limit_s, True)
        evidence = judge.judge_evidence(configuration, layout, launched)
        if not launched.started:  # the rest would be of a probe that ran
            evidence = replace(evidence, findings=launched.nodes)
        if not judge.worth_repeating(evidence):
            break
    if not evidence.ok:
        evidence = replace(
            evidence, findings=(*evidence.findings, *_config_files(configuration, surroundings))
        )
    clear = evidence.ok and all(f.code != "wire-unclear" for f in evidence.findings)
    if clear and outlives_job(nodes) and current_key() == key:  # else a file changed while it ran
        cache.put("evidence", key, flatten_evidence(evidence))
    return evidence


def _config_files(configuration: Configuration, surroundings: Surroundings) -> Iterator[Finding]:
    """Yield what may be the cause and is in no command line."""
    if files := mpi_config_files(configuration, surroundings).with_settings():
        yield Finding.of("config-files", files=", ".join(files))


def explain_start(
    configuration: Configuration,
    nodes: int,
    programs: Natives,
    allocation: Allocation,
    *,
    launch: bool = True,
) -> tuple[Finding, ...]:
    """Say what may keep a job on several nodes from starting: what its nodes lack, else what a
    launch of one rank on each prints, where one may be made. A job has its user's own streams,
    which nothing else reads: a pipe in front of them was rejected, since it changes the order of
    what launchers write."""
    compare = _compare if launch else _compare_once
    unlike = compare(allocation, nodes, configuration)
    if not launch or any(f.level is Level.ERROR for f in unlike):
        return unlike
    words = judge.probe_program(programs, configuration.buffers)
    limit_s = START_LIMIT_S + PER_RANK_S * nodes
    with make_starter({configuration.key: programs}, allocation) as start:
        launched = start(configuration, Layout(nodes, 1, bind="none"), words, limit_s, False)
    errors = tuple(f for f in launched.nodes if f.level is Level.ERROR)
    return errors or unlike


def refused_evidence(configuration: Configuration, evidence: Evidence) -> MpigraftError:
    """Make the error for a named configuration whose probe failed: 5 when something else ran than
    was requested, 4 when nothing ran."""
    other = any(finding.code in OTHER_MPI for finding in evidence.findings)
    kind = TransportMismatch if evidence.ran or other else LaunchFailed
    return error_from_findings(
        kind, f"{configuration.id}: {evidence.ran or 'nothing'} ran", evidence.findings
    )


def error_from_findings(
    kind: type[MpigraftError], what: str, findings: tuple[Finding, ...]
) -> MpigraftError:
    """Make an error of the worst finding, with the settings that may be its cause."""
    worst = [f for f in findings if f.level is Level.ERROR] or [*findings]
    if not worst:
        return kind(what)
    known = worst[0].code in (WIRE, *MEMORY, *NODES, *OTHER_MPI) or is_cause(worst[0].code)
    blamed = [f for f in findings if f.code in TO_BLAME and not known]
    fix = "; ".join(f"{f.message}: {f.fix}" for f in blamed) or worst[0].fix
    return kind(f"{what}: {worst[0].message}", why=worst[0].why, fix=fix)
