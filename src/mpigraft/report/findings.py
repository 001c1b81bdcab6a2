"""Findings of a whole campaign: the comparison's, the evidence's, and launches that failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mpigraft.core import numbers
from mpigraft.core.env import redact
from mpigraft.core.model import Evidence, Finding, LaunchRecord, LaunchState, Level, Origin
from mpigraft.report.contents import ReportData

SHOWN = 4  # configurations that a finding names
ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}


def report_findings(data: ReportData) -> tuple[Finding, ...]:
    """Return all findings, worst first, each once; those of a configuration start with its id."""
    findings = [
        *data.comparison.findings, *_evidence(data), *_no_evidence(data), *_failed(data),
        *_scattered(data),
    ]  # fmt: skip
    clean = (
        replace(f, message=redact(f.message), why=redact(f.why), fix=redact(f.fix))
        for f in findings
    )
    return tuple(sorted(dict.fromkeys(clean), key=lambda f: ORDER[f.level]))


def labels(data: ReportData) -> dict[str, str]:
    """Map keys of configurations to their ids."""
    return {c.key: c.id for c in data.configurations}


def mismatch(evidence: Evidence) -> str:
    return f"requested {evidence.asked or 'nothing'}, ran {evidence.ran or 'unknown'}"


def _evidence(data: ReportData) -> list[Finding]:
    """List findings of the evidence; what several configurations, layouts or allocations have in
    common is said once."""
    names = labels(data)
    sources: dict[Finding, dict[str, dict[str, None]]] = {}
    for record in data.evidence:
        evidence = record.evidence
        findings = list(evidence.findings)
        if not evidence.ok and not any(f.level is Level.ERROR for f in findings):
            findings.append(Finding.of("transport-other", mismatch=mismatch(evidence)))
        for finding in findings:
            name = names.get(record.configuration, record.configuration)
            sources.setdefault(finding, {}).setdefault(name, {})[record.layout] = None
    return [replace(f, message=f"{_listed(places)}: {f.message}") for f, places in sources.items()]


def _listed(places: Mapping[str, Iterable[str]]) -> str:
    """`openmpi@5.0.11/ucx (2x1, 2x8), mpich@5.0.2/ucx (2x1)`."""
    return ", ".join(f"{name} ({', '.join(layouts)})" for name, layouts in places.items())


def _no_evidence(data: ReportData) -> list[Finding]:
    """Name each configuration that was run here and has no evidence: silence is no pass."""
    if data.comparison.origin is Origin.IMPORT:
        return []
    proven = {record.configuration for record in data.evidence}
    lacking = [c.id for c in data.configurations if c.key not in proven]
    if not lacking:
        return []
    return [Finding.of("evidence-missing", configurations=", ".join(lacking))]


def _failed(data: ReportData) -> list[Finding]:
    """List launches that did not end well, counted per configuration and way of failing; the
    first of each tells what was seen."""
    names = labels(data)
    started = Counter(launch.configuration for launch in data.launches)
    failed: dict[tuple[str, LaunchState], list[LaunchRecord]] = {}
    for launch in data.launches:
        if launch.state is not LaunchState.OK:
            failed.setdefault((launch.configuration, launch.state), []).append(launch)
    findings = []
    for (key, state), launches in failed.items():
        first = next((f for launch in launches for f in launch.findings), None)
        message = f"{names.get(key, key)}: {len(launches)} of {started[key]} launches: {state}"
        if first is None:
            findings.append(Finding.of("launches-failed", message=message))
        else:
            message = f"{message}; the first: {first.message}"
            findings.append(replace(first, level=Level.WARNING, message=message))
    return findings


def _scattered(data: ReportData) -> list[Finding]:
    """Return values whose samples lie far apart, in one finding: of each configuration in how many
    of its launches, by benchmark; those that have it most often first."""
    names = labels(data)
    started = Counter(launch.configuration for launch in data.launches)
    counts: dict[tuple[str, Finding], dict[str, Counter[str]]] = {}
    for launch in data.launches:
        for finding in launch.findings:
            if finding.code == "samples-scattered":
                benchmark, _, what = finding.message.partition(": ")
                own = counts.setdefault((what, replace(finding, message="", evidence=())), {})
                own.setdefault(launch.configuration, Counter())[benchmark] += 1
    findings = []
    for (what, finding), own in counts.items():
        most = sorted(own, key=lambda key: (-own[key].total() / started[key], names.get(key, key)))
        parts = [
            f"{names.get(key, key)} (of {started[key]} launches: "
            + ", ".join(f"{benchmark} {n}" for benchmark, n in sorted(own[key].items()))
            + ")"
            for key in most[:SHOWN]
        ]
        if len(most) > SHOWN:
            parts.append(f"and {numbers.counted(len(most) - SHOWN, 'more configuration')}")
        findings.append(replace(finding, message=f"{what}: {', '.join(parts)}"))
    return findings


def left_out(data: ReportData) -> tuple[tuple[str, str], ...]:
    """List (configuration, why) of what the campaign's plan left out; empty where no plan says
    so."""
    try:
        rows = json.loads(data.campaign.plan)["skipped"]
        return tuple((redact(str(name)), redact(str(why))) for name, why in rows)
    except (ValueError, KeyError, TypeError):
        return ()  # an import has no such plan
