"""Prove an injection: start one program of the stack on two ranks, and judge what it mapped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.core import env
from mpigraft.core.errors import LaunchFailed, MissingError, TransportMismatch, UsageError
from mpigraft.core.model import (
    EnvRow,
    Evidence,
    Finding,
    Level,
    Machine,
    MpiInstall,
    NetLibrary,
    Replace,
    Scope,
)
from mpigraft.evidence import LIBMPI, check_launched, error_from_findings, make_starter
from mpigraft.graft import LIB, PRIVATE, GenerationRecord, InstalledOverride, StackGuest
from mpigraft.request import JobPlacement, RunSpec
from mpigraft.run.injection.alone import is_current, start_alone, start_spawning
from mpigraft.run.injection.imports import PythonImport
from mpigraft.run.plan import Job, plan_job
from mpigraft.run.proof import prove_job, surroundings

LIMIT_S = 60.0
RANKS = 2
SEARCH = "LD_LIBRARY_PATH"
FIRST = "the first program; name another with --program"
# Programs that end by themselves, without input: benchmarks first, then what is named like a test.
SMALL = (
    re.compile(r"osu_(init|hello|latency|bw)"),
    re.compile(r"IMB-MPI1|mpigraft-bench"),
    re.compile(r".*(hello|ring|cpi|bench).*"),
)


@dataclass(frozen=True, slots=True)
class InjectionProof:
    """What two ranks of one program really ran on."""

    program: str
    mpi: str  # id
    generation: int
    libmpi: str  # mapped
    library_version: str
    transport: str  # that was requested and proven; empty: the MPI's own choice
    findings: tuple[Finding, ...]
    spawns: tuple[str, ...] = ()  # how MPI_Comm_spawn was started, where it worked
    imported: tuple[str, ...] = ()  # modules or installations whose mpi4py was imported
    alone: bool = True  # the program started without a launcher too


def injected_mpi(mpi: MpiInstall, override: InstalledOverride) -> MpiInstall:
    """Give an MPI as programs of the stack have it: its copies, started by its own launcher."""
    folder = override.folder(override.current)
    active = override.active
    names = active.bindings if active else ()
    libmpi = next((n for n in names if LIBMPI.fullmatch(n)), mpi.soname)

    def copied(library: NetLibrary | None) -> NetLibrary | None:
        if library is None or library.path is None:
            return library
        soname = {"libfabric": "libfabric.so.1", "ucx": "libucp.so.0"}.get(library.name, "")
        own = (folder / LIB / f"{PRIVATE}{soname}", folder / LIB / soname)
        return replace(library, path=next((p for p in own if p.is_file()), library.path))

    # Programs find it by themselves: a search path would hide one that does not.
    rows = tuple(r for r in mpi.environment if r.name != SEARCH or r.scope is not Scope.RANK)
    return replace(
        mpi,
        environment=rows,
        libmpi=Path(override.slot.folders[0]) / libmpi,
        libfabric=copied(mpi.libfabric),
        ucx=copied(mpi.ucx),
        found=(f"generation {override.current} of {override.link}",),
    )


def source_places(record: GenerationRecord) -> list[str]:
    """List the libmpis that a generation was made of and that are there: of an MPI that `--mpi`
    named by its path, `discover` knows nothing."""
    paths = [Path(source.path) for source in record.sources]
    return [str(path) for path in paths if LIBMPI.fullmatch(path.name) and path.is_file()]


def choose_program(programs: Sequence[str]) -> tuple[str, str]:
    """Choose the program of a stack that proves an injection, and say why. Raises UsageError where
    there is none."""
    for pattern in SMALL:
        for program in programs:
            if pattern.fullmatch(Path(program).name):
                return program, "a small program that needs no input"
    if not programs:
        raise UsageError.of("verify-no-program")
    return programs[0], "the only one" if len(programs) == 1 else FIRST


def prove_injection(
    override: InstalledOverride,
    program: str,
    imports: Sequence[PythonImport],
    request: tuple[str, StackGuest],
    machine: Machine,
    environ: Mapping[str, str],
) -> InjectionProof:
    """Start a program on two ranks with the generation that is on, and without a launcher; then
    what imports mpi4py, and our own program that calls MPI_Comm_spawn. Judge what they mapped.

    `request`: a transport, and the stack with a program that has its MPI from this override.
    libfabric or UCX alone is proven with the stack's own MPI. Raises UsageError where none is
    on, MissingError where the MPI that it was made of is not here, LaunchFailed or
    TransportMismatch where another MPI, world or transport ran.
    """
    active, (transport, guest) = override.active, request
    if active is None:
        raise UsageError.of("override-not-injected", path=override.link)
    below = not any(map(LIBMPI.fullmatch, active.bindings))
    own = None if below else _own(active, override, machine)
    spec = RunSpec(
        (program,),
        stack="" if own else guest.stack.root,
        mpi=own.id if own else "",
        transport=transport,
        where=JobPlacement(ranks=RANKS),
        replace="" if own else Replace.LIBFABRIC,
    )
    job = plan_job(spec, replace(machine, mpis=(own,)) if own else machine, environ)
    evidence = prove_job(_for_bench(job) if own else job) if transport else None
    proof = _proof(job, override, evidence)
    proof = _alone(proof, job, imports, override, None if own else guest)
    if own is None:  # how children start is the matter of the stack's own MPI
        return proof
    spawns = start_spawning(own, guest, override)
    wrong = tuple(filter(None, spawns.values()))
    if any(f.level is Level.ERROR for f in wrong):
        raise error_from_findings(LaunchFailed, program, wrong)
    ran = tuple(way for way, finding in spawns.items() if finding is None)
    return replace(proof, spawns=ran, findings=(*proof.findings, *wrong))


def _alone(
    proof: InjectionProof,
    job: Job,
    imports: Sequence[PythonImport],
    override: InstalledOverride,
    below: StackGuest | None,
) -> InjectionProof:
    """Start the program, and what imports mpi4py, without a launcher. `below`: the stack, where its
    own MPI runs on what is injected. Raises LaunchFailed."""
    own = below.preloads() if below else None
    starts: dict[str, tuple[Sequence[str], Mapping[str, str]]]
    starts = {proof.program: ((proof.program,), env.base())}
    starts |= {one.module: (one.words, one.environment) for one in imports}
    findings: dict[str, Finding] = {}
    for name, (words, given) in starts.items():
        if lone := start_alone(words, given, job.natives.witness, override, own):
            if lone.level is Level.ERROR:
                raise error_from_findings(LaunchFailed, words[0], (lone,))
            findings[name] = lone
    return replace(
        proof,
        imported=tuple(one.module for one in imports if one.module not in findings),
        alone=proof.program not in findings,
        findings=(*proof.findings, *findings.values()),
    )


def _own(active: GenerationRecord, override: InstalledOverride, machine: Machine) -> MpiInstall:
    """Find the MPI that a generation was made of, as the stack has it. Raises MissingError."""
    mpi = active.made_of(machine.mpis)
    if mpi is None:
        raise MissingError.of("verify-mpi-gone", mpi=active.mpi, number=active.number)
    if not mpi.usable:
        raise MissingError.of("verify-mpi-broken", problem=mpi.problem, number=active.number)
    return injected_mpi(mpi, override)


def _proof(job: Job, override: InstalledOverride, evidence: Evidence | None) -> InjectionProof:
    ran = evidence.ran if evidence else ""
    active, program = override.active, job.spec.program
    assert active is not None  # of an override that was asked for it before
    findings, libmpi, version = _started(job, override)
    if wrong := [f for f in findings if f.level is Level.ERROR]:
        kind = TransportMismatch if libmpi else LaunchFailed
        raise error_from_findings(kind, program[0], tuple(wrong))
    return InjectionProof(
        program[0], active.content, active.number, libmpi, version, ran, tuple(findings)
    )


def _for_bench(job: Job) -> Job:
    """Return the same job for our own benchmark, which searches no override: it is given its
    folder."""
    mpi = job.configuration.mpi
    if mpi is None or mpi.libmpi is None:
        return job
    row = EnvRow(SEARCH, str(mpi.libmpi.parent), Scope.RANK, "override")
    own = replace(mpi, environment=(*mpi.environment, row))
    return replace(job, configuration=replace(job.configuration, mpi=own))


def _started(job: Job, override: InstalledOverride) -> tuple[list[Finding], str, str]:
    one, where = job.configuration, surroundings(job)
    natives = {one.key: job.natives}
    with make_starter(natives, job.allocation, lambda _: job.placement, where) as start:
        launched = start(one, job.layout, job.spec.program, LIMIT_S, False)
    findings = [*launched.nodes, *check_launched(one, job.layout, launched)]
    rank = next(iter(launched.ranks), None)
    if rank is None:
        return findings, "", ""
    names = override.active.bindings if override.active else ()
    own = [m.path for m in rank.libraries if Path(m.path).name in names]
    libmpi = next((path for path in own if LIBMPI.fullmatch(Path(path).name)), "".join(own[:1]))
    if not is_current(rank.libraries, override):
        findings.append(
            Finding.of("verify-other", program=job.spec.program[0], path=libmpi or "no libmpi")
        )
    if not launched.completed.ok:
        code = launched.completed.code
        findings.append(Finding.of("verify-exit", program=job.spec.program[0], code=code))
    return findings, libmpi, rank.library_version
