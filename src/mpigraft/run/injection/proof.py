"""Prove an injection: start one program of the stack on two ranks, and judge what it mapped."""

from __future__ import annotations

import os
import re
import tempfile
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
from mpigraft.core.process import run_command
from mpigraft.evidence import error_from_findings, make_starter
from mpigraft.evidence.world import LIBMPI, check_launched, read_witness
from mpigraft.graft.loading import PRIVATE
from mpigraft.graft.stack.generations import GenerationRecord, Override, mapped_generations
from mpigraft.graft.stack.override import LIB
from mpigraft.request.job import JobPlacement, RunSpec
from mpigraft.run import Job, plan_job, prove_job, surroundings

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

MPI4PY = re.compile(r"((.+)/lib(?:64)?/(python3\.\d+)/site-packages)/mpi4py/MPI\.[^/]+\.so")


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


def injected_mpi(mpi: MpiInstall, override: Override) -> MpiInstall:
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


def import_command(modules: Sequence[str]) -> tuple[str, ...]:
    """Give the words that import mpi4py.MPI of a stack by its own Python, which is in the same
    installation or in one of EasyBuild's beside it; () where `modules` have none."""
    for site, prefix, name in (hit.groups() for hit in map(MPI4PY.fullmatch, modules) if hit):
        places = [Path(prefix), *sorted(Path(prefix).parent.parent.glob("Python/*"))]
        for python in (place / "bin" / name for place in places):
            if os.access(python, os.X_OK):
                text = f"import sys; sys.path.insert(0, {site!r}); import mpi4py.MPI"
                return (str(python), "-I", "-c", text)
    return ()


def prove_injection(
    override: Override,
    programs: Sequence[Sequence[str]],
    transport: str,
    machine: Machine,
    environ: Mapping[str, str],
    stack: str = "",
) -> InjectionProof:
    """Start the first program on two ranks with the generation that is on, then each without a
    launcher, and judge what it mapped.

    libfabric or UCX alone is proven with the own MPI of `stack`. Raises UsageError where none is
    on, MissingError where the MPI that it was made of is not here,
    LaunchFailed or TransportMismatch where another MPI, world or transport ran.
    """
    active = override.active
    if active is None:
        raise UsageError.of("override-not-injected", path=override.link)
    if not any(map(LIBMPI.fullmatch, active.bindings)):
        return _prove_below(override, programs[0], transport, machine, environ, stack)
    mpi = active.made_of(machine.mpis)
    if mpi is None:
        raise MissingError.of("verify-mpi-gone", mpi=active.mpi, number=active.number)
    if not mpi.usable:
        raise MissingError.of("verify-mpi-broken", problem=mpi.problem, number=active.number)
    own = injected_mpi(mpi, override)
    spec = RunSpec(
        program=tuple(programs[0]), mpi=own.id, transport=transport, where=JobPlacement(ranks=RANKS)
    )
    job = plan_job(spec, replace(machine, mpis=(own,)), environ)
    proof = _proof(job, override, prove_job(_for_bench(job)) if transport else None)
    for program in programs:
        if lone := _started_alone(program, job, override):
            raise error_from_findings(LaunchFailed, program[0], (lone,))
    return proof


def _prove_below(
    override: Override,
    program: Sequence[str],
    transport: str,
    machine: Machine,
    environ: Mapping[str, str],
    stack: str,
) -> InjectionProof:
    """Prove a libfabric or UCX that the stack's own MPI, started by its own launcher, maps."""
    spec = RunSpec(
        tuple(program), stack=stack, replace=Replace.LIBFABRIC, transport=transport,
        where=JobPlacement(ranks=RANKS),
    )  # fmt: skip
    job = plan_job(spec, machine, environ)
    return _proof(job, override, prove_job(job) if transport else None)


def _proof(job: Job, override: Override, evidence: Evidence | None) -> InjectionProof:
    ran = evidence.ran if evidence else ""
    active, program = override.active, job.spec.program
    assert active is not None  # of an override that was asked for it before
    findings, libmpi, version = _started(job, override)
    if wrong := [f for f in findings if f.level is Level.ERROR]:
        kind = TransportMismatch if libmpi else LaunchFailed
        raise error_from_findings(kind, program[0], tuple(wrong))
    return InjectionProof(
        program[0], active.mpi, active.number, libmpi, version, ran, tuple(findings)
    )


def _for_bench(job: Job) -> Job:
    """The same job for our own benchmark, which searches no override: it is given its folder."""
    mpi = job.configuration.mpi
    if mpi is None or mpi.libmpi is None:
        return job
    row = EnvRow(SEARCH, str(mpi.libmpi.parent), Scope.RANK, "override")
    own = replace(mpi, environment=(*mpi.environment, row))
    return replace(job, configuration=replace(job.configuration, mpi=own))


def _started(job: Job, override: Override) -> tuple[list[Finding], str, str]:
    one, where = job.configuration, surroundings(job)
    natives = {one.key: job.natives}
    with make_starter(natives, job.allocation, lambda _: job.placement, where) as start:
        launched = start(one, job.layout, job.spec.program, LIMIT_S, False)
    findings = [*launched.nodes, *check_launched(one, job.layout, launched)]
    rank = next(iter(launched.ranks), None)
    if rank is None:
        return findings, "", ""
    numbers = {n for own in mapped_generations(rank.libraries).values() for n in own}
    names = override.active.bindings if override.active else ()
    own = [m.path for m in rank.libraries if Path(m.path).name in names]
    libmpi = next((path for path in own if LIBMPI.fullmatch(Path(path).name)), "".join(own[:1]))
    if numbers != {override.current}:
        findings.append(
            Finding.of("verify-other", program=job.spec.program[0], path=libmpi or "no libmpi")
        )
    if not launched.completed.ok:
        code = launched.completed.code
        findings.append(Finding.of("verify-exit", program=job.spec.program[0], code=code))
    return findings, libmpi, rank.library_version


def _started_alone(program: Sequence[str], job: Job, override: Override) -> Finding | None:
    """Start a program without a launcher, as scripts and `python -c` do. Report one that does not
    come through MPI_Init on the generation that is on; how it ends is its own matter."""
    witness = job.natives.witness
    with tempfile.TemporaryDirectory(prefix="mpigraft-alone-") as folder:
        given = env.base() | {"LD_PRELOAD": str(witness), "MPIGRAFT_WITNESS": folder}
        done = run_command(program, env=given, limit_s=LIMIT_S, stdin=b"")
        ranks = [rank for rank in read_witness(Path(folder), 1) if rank.rank >= 0]
    libraries = [library for rank in ranks[:1] for library in rank.libraries]
    numbers = {n for own in mapped_generations(libraries).values() for n in own}
    if numbers == {override.current}:
        return None
    last = next((line for line in reversed(done.text().splitlines()) if line.strip()), "")
    return Finding.of("verify-alone", program=program[0], code=done.code, last=last.strip())
