"""`mpigraft inject --verify`: what is injected, judged for every program and proven by one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpigraft.cli.check_stack import injected_checks
from mpigraft.cli.common import console, examine_machine, out, tell
from mpigraft.core.errors import (
    CheckFailed,
    LaunchFailed,
    MissingError,
    TransportMismatch,
    UsageError,
)
from mpigraft.report import (
    StackCheckRow,
    check_document,
    finding_text,
    fitting_lines,
    proof_lines,
)

if TYPE_CHECKING:
    from mpigraft.core.model import Finding
    from mpigraft.core.model import Machine as MachineFacts
    from mpigraft.graft import (
        GenerationRecord,
        InstalledOverride,
        Slot,
        Stack,
        StackCheck,
        StackGuest,
    )
    from mpigraft.request import InjectSpec
    from mpigraft.run import InjectionProof

EVIDENCE = 8  # lines of a finding


class ProofDocument(TypedDict):
    """The proof of what is injected into a stack (--verify)."""

    proof: InjectionProof | None  # the first of `proofs`; null: its MPI is gone
    proofs: list[InjectionProof | None]  # of every generation that is on
    drift: list[Finding]
    injected: list[StackCheckRow]  # what every program loads now, by override


@dataclass(frozen=True, slots=True)
class _Verified:
    """One override: what started a program of it, and what is not what it was."""

    proof: InjectionProof | None
    why: str  # that program
    drift: tuple[Finding, ...]


def verify_injections(
    stack: Stack, slots: Sequence[Slot], spec: InjectSpec, *, as_json: bool
) -> int:
    """Verify the generations that are on in these overrides. The exit code is 1 where a program
    does not fit, or something drifted."""
    from mpigraft.graft import read_override
    from mpigraft.run import source_places

    on = [one for one in map(read_override, slots) if one.active]
    sources = [place for one in on if one.active for place in source_places(one.active)]
    here = examine_machine(mpis=sources)
    paths = {slot.path for slot in slots}
    verdicts = [v for v in injected_checks(stack, here) if paths & {s.path for s in v.slots}]
    if not on and not verdicts:
        raise UsageError.of("override-not-injected", path=slots[0].path)
    unfit = not all(verdict.ok for verdict in verdicts)
    verified = []
    for one in on:
        programs = _programs(stack, one, verdicts, spec.program)
        fits = _fitting(one, verdicts)
        verified.append(_verify(stack, one, (programs, fits), spec.transport, here, unfit=unfit))
    if as_json:
        from mpigraft.core.serialize import document

        out(document(**_document(verified, verdicts)))
    else:
        _show(verified, verdicts)
    wrong = unfit or any(one.drift for one in verified)
    return CheckFailed.exit_code if wrong else 0


def _programs(
    stack: Stack, override: InstalledOverride, verdicts: Sequence[StackCheck], named: str
) -> list[str]:
    """List what may be started to prove an override: the program that was named, unless that finds
    another one, else those that fit."""
    own = [
        p.path
        for verdict in verdicts
        for module in verdict.modules
        for p in module.programs
        if p.slot == override.slot.path
    ]
    if named:
        elsewhere = {p.path for p in stack.programs} - {*own}
        return [] if os.path.realpath(named) in elsewhere else [named]
    fits = {*_fitting(override, verdicts)}
    return [p.path for p in stack.programs if p.executable and p.path in fits]


def _fitting(override: InstalledOverride, verdicts: Sequence[StackCheck]) -> list[str]:
    """List what fits on the content of an override, modules of Python too."""
    programs = (p for v in verdicts for m in v.modules for p in m.programs)
    return [p.path for p in programs if p.fate == "fits" and p.slot == override.slot.path]


def _verify(
    stack: Stack,
    override: InstalledOverride,
    given: tuple[Sequence[str], Sequence[str]],
    transport: str,
    here: MachineFacts,
    *,
    unfit: bool,
) -> _Verified:
    """Verify one generation. `given`: all that fits; one of its programs is started, and mpi4py is
    imported from its modules of Python. `unfit`: it is known that some do not fit."""
    from mpigraft.graft import find_drift
    from mpigraft.run import PythonImport, choose_program, plan_imports, prove_injection

    assert override.active is not None
    programs, fits = given
    findings = find_drift(override, override.active)
    findings = findings or _newer(stack, override, override.active, here)
    if not programs and unfit:
        return _Verified(None, "", findings)
    program, why = choose_program(programs)
    planned = [*plan_imports(stack, fits)]
    imports = [one for one in planned if isinstance(one, PythonImport)]
    unplanned = tuple(one for one in planned if not isinstance(one, PythonImport))
    proof = None
    try:
        with console(stderr=True).status(f"starting {Path(program).name} on two ranks, and alone"):
            request = transport, _guest(stack, fits)
            proof = prove_injection(override, program, imports, request, here, os.environ)
            proof = replace(proof, findings=(*proof.findings, *unplanned))
    except CheckFailed as error:
        if error.code == "program-not-mpi":  # its fix names flags of `run`
            raise UsageError.of("verify-not-mpi", program=program) from error
        if not unfit:
            raise
        tell(f"mpigraft: not proven: {error.message}")
    except (MissingError, LaunchFailed, TransportMismatch) as error:
        known = findings if isinstance(error, MissingError) else unfit
        if not known:  # else an update took its launcher, or a program was not to run
            raise
        tell(f"mpigraft: not proven: {error.message}; {error.why}")
    return _Verified(proof, why, findings)


def _guest(stack: Stack, fits: Sequence[str]) -> StackGuest:
    """Choose the program that ours searches for libmpi like: one that needs it by name, first."""
    from mpigraft.graft import StackGuest

    own = [p for p in stack.programs if p.executable and p.interpreter and p.path in {*fits}]
    return StackGuest(stack, min(own or stack.programs, key=lambda p: (p.opens, p.runpath)))


def _newer(
    stack: Stack, override: InstalledOverride, active: GenerationRecord, here: MachineFacts
) -> tuple[Finding, ...]:
    """Report that the MPI of a generation would be injected otherwise today, though each file that
    this was made of is as it was: it has another plugin, or needs another library."""
    from mpigraft.graft import network_part, newer_content, plan_override, read_abi
    from mpigraft.knowledge import network_library_of
    from mpigraft.native import settings_library

    mpi = active.made_of(here.mpis)
    if mpi is None or not mpi.usable:
        return ()
    abi = read_abi(mpi)
    if part := "".join({network_library_of(name) for name in active.bindings}):
        abi = network_part(abi, part)
    needed = {name for p in stack.searching(override.slot) for name in p.mpi}
    settings = settings_library(mpi, abi.objects[0].machine)
    plan = plan_override(abi, override.slot, needed, settings)
    return newer_content(active, plan, override.folder(active.number))


def _document(verified: Sequence[_Verified], verdicts: Sequence[StackCheck]) -> ProofDocument:
    """Return the document of what was verified."""
    proofs = [one.proof for one in verified]
    return {
        "proof": next(iter(proofs), None),
        "proofs": proofs,
        "drift": [finding for one in verified for finding in one.drift],
        "injected": [check_document(verdict) for verdict in verdicts],
    }


def _show(verified: Sequence[_Verified], verdicts: Sequence[StackCheck]) -> None:
    for one in verified:
        if one.proof:
            out("\n".join(proof_lines(one.proof, one.why)))
        for finding in (*(one.proof.findings if one.proof else ()), *one.drift):
            tell(finding_text(finding, EVIDENCE))
    if verdicts:
        out("\n".join(fitting_lines(verdicts)))
