"""What the store holds of a campaign, as a document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from mpigraft.analysis import campaign_looks, is_disturbed
from mpigraft.core.homes import hide_homes
from mpigraft.core.model import (
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    LaunchRecord,
    LaunchState,
    Level,
    Origin,
    Proof,
    SettingState,
    layout_order,
)
from mpigraft.core.serialize import map_leaves, parse_object, plain, row_of
from mpigraft.report.wording import words
from mpigraft.store import Store

if TYPE_CHECKING:
    from mpigraft.core.serialize import Keys

    ProofKeys = Annotated[dict[str, Any], Proof, Keys(layout=str, unrequested=bool)]
    LaunchKeys = Annotated[dict[str, Any], LaunchRecord, Keys("campaign", "findings", "artefacts")]
    FindingKeys = Annotated[dict[str, Any], Finding, Keys(times=int)]


class Extension(TypedDict):
    """When rounds were added to those planned."""

    planned: int  # rounds before
    rounds: int  # rounds from then on
    at: str  # ISO 8601, UTC


class CampaignSummary(TypedDict):
    """A campaign in short."""

    id: str  # UUID
    name: str
    created: str  # ISO 8601, UTC
    origin: Origin
    rounds: int  # as planned; of an imported campaign, as many as were imported
    begun: int  # rounds that have a launch
    looks: list[int]  # rounds after which curves are tested; the last is the end
    extensions: list[Extension]  # oldest first
    baseline: str  # id of the baseline configuration
    configurations: int
    launches: int  # that ended
    tool: str  # version of mpigraft that made it


class WireRow(TypedDict):
    """Bytes through a network interface during the p2p probe."""

    layout: str
    interface: str
    bytes: int
    counter: str  # what counted them: netdev, infiniband
    named: bool  # the transport names the interface: the payload had to cross it
    payload: int  # bytes that the probe sent
    own: int | None  # sent by the ranks' own TCP connections; null: not known


class SettingRow(TypedDict):
    """A variable of a setting, and how far it is shown to be in effect."""

    variable: str
    state: SettingState
    sign: str  # what the MPI or its library says


class ConditionsSummary(TypedDict):
    """Under what launches were measured: lowest and highest."""

    launches: int  # that have a record of them
    marked: int  # of these, those beside which other processes used the CPU
    others: list[float] | None
    switches: list[float] | None
    load: list[float] | None
    pressure: list[float] | None
    governor: list[str]


class ConfigurationSummary(TypedDict):
    """What was requested, what ran, and how that is known."""

    id: str  # a label
    key: str  # SHA-256 over contents: the same key is the same configuration
    baseline: bool
    buffers: str  # host, cuda, rocm
    layouts: list[str]  # unknown: of a table that did not state one
    requested: str  # transports, or the label of an import
    ran: str  # no evidence: nothing is known
    proven: bool  # the evidence of every layout says that the requested transport ran
    proof: list[ProofKeys]
    wire: list[WireRow]
    settings: list[SettingRow]  # of the setting that it was measured with
    launches: dict[LaunchState, int]  # how many ended in which state
    conditions: ConditionsSummary | None  # of its launches; null: nothing is known
    findings: list[FindingKeys]  # of evidence and launches, each once, worst first
    provenance: Any  # MPI, transport, environment, contents, redacted; what an import stated


class CampaignsDocument(TypedDict):
    """The campaigns of a store."""

    campaigns: list[CampaignSummary]  # oldest first
    findings: Sequence[Finding]  # damaged files, files of a newer mpigraft


class CampaignDocument(TypedDict):
    """One campaign."""

    campaign: CampaignSummary
    configurations: list[ConfigurationSummary]  # the baseline first, then by id
    launches: list[LaunchKeys]  # that ended, in the order in which they started
    findings: Sequence[Finding]


NO_EVIDENCE = "no evidence"


def summary(store: Store, campaign: CampaignRecord) -> CampaignSummary:
    """Return one campaign in short; the same in `list` and at the head of `show`."""
    labels = {c.key: c.id for c in store.configurations(campaign.id)}
    launches = store.launches(campaign.id)
    planned = campaign.origin == "run"
    plan = parse_object(campaign.plan) if planned else {}
    added = [*filter(None, [plan.get("spare")]), *plan.get("extensions", [])]
    return row_of(
        CampaignSummary,
        campaign,
        rounds=campaign.rounds if planned else _rounds(launches),
        begun=len({launch.round for launch in launches}),
        looks=[look.rounds for look in campaign_looks(campaign)] if planned else [],
        extensions=added,
        baseline=labels.get(campaign.baseline, campaign.baseline),
        configurations=len(labels),
        launches=len(launches),
    )


def _rounds(launches: Sequence[LaunchRecord]) -> int:
    """Count rounds: an import has as many as were imported."""
    return 1 + max((launch.round for launch in launches), default=-1)


def configurations(store: Store, campaign: CampaignRecord) -> list[ConfigurationSummary]:
    """List per configuration what was requested, what ran, the proof, findings, provenance."""
    evidence = store.evidence(campaign.id)
    launches = store.launches(campaign.id)
    return [
        _configuration(
            record,
            [e for e in evidence if e.configuration == record.key],
            [x for x in launches if x.configuration == record.key],
            baseline=record.key == campaign.baseline,
        )
        for record in sorted(
            store.configurations(campaign.id), key=lambda c: (c.key != campaign.baseline, c.id)
        )
    ]


def _configuration(
    record: ConfigurationRecord,
    evidence: Sequence[EvidenceRecord],
    launches: Sequence[LaunchRecord],
    *,
    baseline: bool,
) -> ConfigurationSummary:
    asked = {e.evidence.asked: None for e in evidence}
    ran = {e.evidence.ran: None for e in evidence}
    states = Counter(launch.state for launch in launches)
    return row_of(
        ConfigurationSummary,
        record,
        baseline=baseline,
        layouts=sorted(
            {e.layout for e in evidence} | {x.layout for x in launches}, key=layout_order
        ),
        requested=", ".join(a for a in asked if a) or record.id,
        ran=", ".join(r for r in ran if r) or NO_EVIDENCE,
        proven=bool(evidence) and all(e.evidence.ok for e in evidence),
        proof=[
            {
                **plain(proof),
                "layout": e.layout,
                "says": proof.says and f"the library says that {proof.says}",
                "unrequested": words.is_unrequested(e.evidence, proof),
            }
            for e in evidence
            for proof in e.evidence.proof
        ],
        wire=[
            row_of(
                WireRow,
                e.evidence,
                layout=e.layout,
                interface=interface,
                bytes=sent,
                counter=dict(e.evidence.counters).get(interface, ""),
                named=interface in e.evidence.named,
                own=words.own_bytes(e.evidence, interface),
            )
            for e in evidence
            for interface, sent in e.evidence.wire
        ],
        settings=[
            row_of(SettingRow, one)
            for one in dict.fromkeys(one for e in evidence for one in e.evidence.settings)
        ],
        launches=dict(sorted(states.items())),
        conditions=_conditions(launches),
        findings=_findings(evidence, launches),
        provenance=_json(record.provenance),
    )


def _conditions(launches: Sequence[LaunchRecord]) -> ConditionsSummary | None:
    """Under what a configuration's launches measured, lowest and highest; None: nobody knows."""
    known = [launch for launch in launches if launch.conditions]
    if not known:
        return None
    states = [s for x in known if (c := x.conditions) for s in (c.before, c.after)]
    nodes = [use for x in known if x.conditions for use in x.conditions.nodes]
    governors = {name for s in states for name in s.governor.split(",") if name}
    return {
        "launches": len(known),
        "marked": sum(map(is_disturbed, known)),
        "others": _span(use.others for use in nodes),
        "switches": _span(use.switches for use in nodes),
        "load": _span(s.load[0] for s in states if s.load),
        "pressure": _span(s.pressure for s in states if s.pressure is not None),
        "governor": sorted(governors),
    }


def _span(values: Iterable[float]) -> list[float] | None:
    ordered = sorted(values)
    return [ordered[0], ordered[-1]] if ordered else None


def launch_row(launch: LaunchRecord) -> LaunchKeys:
    """Return one launch without what its configuration has for all: when, how it ended, under
    what."""
    row = plain(launch)
    return {key: row[key] for key in row if key not in ("campaign", "findings", "artefacts")}


def _findings(
    evidence: Sequence[EvidenceRecord], launches: Sequence[LaunchRecord]
) -> list[FindingKeys]:
    """Return every finding once, worst first, with how often it was made and the first one's
    evidence."""
    made = [f for record in evidence for f in record.evidence.findings]
    made += [f for launch in launches for f in launch.findings]
    times: dict[Finding, list[Finding]] = {}
    for finding in made:
        times.setdefault(replace(finding, evidence=()), []).append(finding)
    order = [Level.ERROR, Level.WARNING, Level.INFO]
    worst_first = sorted(times.values(), key=lambda same: order.index(same[0].level))
    return [{**plain(same[0]), "times": len(same)} for same in worst_first]


def without_homes(value: Any) -> Any:
    """Give a document without the name of anybody's home in it: what is shown here gets
    published."""
    return map_leaves(value, lambda one: hide_homes(one) if isinstance(one, str) else one)


def _json(text: str) -> Any:
    """Read stored JSON as a value; what redaction made unreadable stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
