"""Findings of a whole campaign: the comparison's, the evidence's, and launches that failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from mpigraft.model import Evidence, Finding, LaunchState, Level, Origin
from mpigraft.report import ReportData

ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}


def trouble(data: ReportData) -> tuple[Finding, ...]:
    """All findings, worst first, each once; those of a configuration start with its id."""
    found = [*data.comparison.findings, *_evidence(data), *_no_evidence(data), *_failed(data)]
    return tuple(sorted(dict.fromkeys(found), key=lambda f: ORDER[f.level]))


def labels(data: ReportData) -> dict[str, str]:
    """Configuration ids by key."""
    return {c.key: c.id for c in data.configurations}


def mismatch(evidence: Evidence) -> str:
    return f"asked for {evidence.asked or 'nothing'}, ran {evidence.ran or 'unknown'}"


def _evidence(data: ReportData) -> list[Finding]:
    found = []
    for record in data.evidence:
        who = f"{labels(data).get(record.configuration, record.configuration)} ({record.layout})"
        evidence = record.evidence
        if not evidence.ok and not any(f.level is Level.ERROR for f in evidence.findings):
            seen = f"{who}: {mismatch(evidence)}"
            found.append(Finding(Level.ERROR, "transport-mismatch", seen))
        found += [replace(f, seen=f"{who}: {f.seen}") for f in evidence.findings]
    return found


def _no_evidence(data: ReportData) -> list[Finding]:
    """A configuration that was run here and has no evidence is named: silence is no pass."""
    if data.comparison.origin is Origin.IMPORT:
        return []
    proven = {record.configuration for record in data.evidence}
    lacking = [c.id for c in data.configurations if c.key not in proven]
    if not lacking:
        return []
    seen = f"nothing shows which transport ran for {', '.join(lacking)}"
    return [Finding(Level.WARNING, "no-evidence", seen)]


def _failed(data: ReportData) -> list[Finding]:
    """Launches that did not end well, counted per configuration and way of failing."""
    names = labels(data)
    started = Counter(launch.configuration for launch in data.launches)
    failed = Counter(
        (launch.configuration, launch.state)
        for launch in data.launches
        if launch.state is not LaunchState.OK
    )
    return [
        Finding(
            Level.WARNING,
            f"launch-{state}",
            f"{names.get(key, key)}: {number} of {started[key]} launches: {state}",
            mend=f"see `mpigraft results show {data.comparison.campaign[:8]}`",
        )
        for (key, state), number in failed.items()
    ]
