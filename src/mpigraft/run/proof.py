"""The proof of a job: kept from an earlier probe, or made now."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mpigraft.core.errors import LaunchFailed, TransportMismatch
from mpigraft.core.model import Evidence, Finding, Layout, Level
from mpigraft.evidence import (
    WORLD_CODES,
    Surroundings,
    effect_findings,
    error_from_findings,
    evidence_of,
    explain_start,
    make_starter,
    outlives_job,
    refuse_unknown_names,
    refused_evidence,
    setting_effects,
    verify_wireup,
)
from mpigraft.run.plan import Job

UNLIKE = "node-unlike"


def proof_step(job: Job) -> str:
    """Describe what `prove_job` does for a job; empty: nothing."""
    one = job.configuration
    if not job.spec.proof or job.layout.ranks < 2:
        return ""
    if one.transport is not None:
        return f"proving the transport {one.transport.name}"
    if one.launcher:
        return f"checking that {one.launcher.kind} starts one world"
    return "comparing the nodes" if job.layout.nodes > 1 else ""


def prove_job(job: Job) -> Evidence:
    """Return the evidence for the transport that was asked for: kept from an earlier probe of the
    same contents, else of one that is started now; it reports nodes that are unlike too. It is
    empty where nothing was asked, or one rank has nobody to send to; of another launcher than the
    MPI's own two ranks are believed to find each other only once they did. Raises LaunchFailed or
    TransportMismatch when it is not as asked, or a node lacks the MPI or has another build."""
    one = job.configuration
    nothing = Evidence("", "", (), (), ())
    if not proof_step(job):
        return nothing
    unlike = replace(nothing, findings=_unlike_nodes(job))
    natives, own = {one.key: job.natives}, surroundings(job)
    if one.transport is None and one.launcher is None:
        return unlike
    with make_starter(natives, job.allocation, lambda _: job.placement, own) as start:
        if one.transport is None:
            pair = Layout(min(job.layout.nodes, 2), 2 if job.layout.nodes == 1 else 1, bind="none")
            keep = outlives_job(job.allocation)
            findings = verify_wireup(one, job.natives, start, pair, keep=keep, surroundings=own)
            if findings:
                ran = any(finding.code in WORLD_CODES for finding in findings)
                raise error_from_findings(
                    TransportMismatch if ran else LaunchFailed, one.id, findings
                )
            return unlike
        evidence = evidence_of(one, job.layout, job.natives, start, job.allocation, own)
    if not evidence.ok:
        raise refused_evidence(one, evidence)
    before = (f for f in evidence.findings if f.code != UNLIKE)  # of a kept one: of that time
    return replace(evidence, findings=(*unlike.findings, *before))


def setting_findings(job: Job) -> tuple[Finding, ...]:
    """Report variables of the job's setting that its MPI does not take. Raises UsageError for one
    that this version does not have."""
    one = job.configuration
    if one.setting is None:
        return ()
    effects = setting_effects(one, os.environ)
    refuse_unknown_names(one, effects)
    return effect_findings(effects)


def _unlike_nodes(job: Job) -> tuple[Finding, ...]:
    """Report nodes that are unlike before anything starts on them. Those that do not answer are the
    launcher's to name: it may have a way of its own to them."""
    if job.layout.nodes == 1:
        return ()
    one = job.configuration
    findings = explain_start(one, job.layout.nodes, job.natives, job.allocation, launch=False)
    if any(f.level is Level.ERROR for f in findings):
        raise refused_evidence(one, Evidence("", "", (), findings, (), ok=False))
    return tuple(f for f in findings if f.code == UNLIKE)


def surroundings(job: Job) -> Surroundings:
    """Return where and with what this job's ranks are started: its probe is to read the same
    files."""
    return Surroundings(Path.cwd(), job.passed.environment, job.binds)
