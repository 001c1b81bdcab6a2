"""What the store holds of a campaign: as a document, and as text for a terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mpigraft.analysis import campaign_looks, is_disturbed
from mpigraft.core.homes import hide_homes
from mpigraft.core.model import (
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    LaunchRecord,
    Level,
    ProofStatus,
    layout_order,
)
from mpigraft.core.numbers import counted
from mpigraft.core.serialize import document, plain
from mpigraft.core.text import fold, labelled
from mpigraft.report.table import Column, Table
from mpigraft.report.wording import words
from mpigraft.store import Store

NO_EVIDENCE = "no evidence"
_row = partial(labelled, whole=False)  # at most 80 columns of a library's output


def render_stored(
    store: Store, campaign: CampaignRecord | None = None, *, as_json: bool = False
) -> str:
    """Render what a store has: one campaign, or all in short."""
    if campaign is None:
        return _campaigns(store, as_json=as_json)
    return _one_campaign(store, campaign, as_json=as_json)


def _campaigns(store: Store, *, as_json: bool = False) -> str:
    """Render the campaigns of the store, oldest first, and what was wrong with its files."""
    rows = [summary(store, campaign) for campaign in store.campaigns()]
    if as_json:
        return document(campaigns=rows, findings=store.findings)
    if not rows:
        lines = [f"no results in {store.folder}; `mpigraft bench` makes some"]
    else:
        columns = (
            Column("id"),
            Column("created (UTC)"),
            Column("origin"),
            Column("configurations", right=True),
            Column("launches", right=True),
            Column("name"),
        )
        cells = tuple(
            (row["id"][:8], row["created"][:16].replace("T", " "), row["origin"],
             row["configurations"], row["launches"], row["name"])
            for row in rows
        )  # fmt: skip
        lines = Table("Campaigns", columns, cells, gap=2).lines()
    return "\n".join([*lines, *_damage(store)])


def _one_campaign(store: Store, campaign: CampaignRecord, *, as_json: bool = False) -> str:
    """Render one campaign: what was requested, what ran, and how that is known."""
    head, rows = summary(store, campaign), _without_homes(configurations(store, campaign))
    if as_json:
        launches = _without_homes([_launch(one) for one in store.launches(campaign.id)])
        findings = store.findings  # last: files are read as they are asked for
        return document(campaign=head, configurations=rows, launches=launches, findings=findings)
    return "\n".join([*text(head, rows), *_damage(store)])


def _damage(store: Store) -> list[str]:
    return [f"{finding.level}: {finding.message}" for finding in store.findings]


def summary(store: Store, campaign: CampaignRecord) -> dict[str, Any]:
    """Return one campaign in short; the same in `list` and at the head of `show`."""
    labels = {c.key: c.id for c in store.configurations(campaign.id)}
    launches = store.launches(campaign.id)
    planned = campaign.origin == "run"
    return {
        "id": campaign.id,
        "name": campaign.name,
        "created": campaign.created,
        "origin": campaign.origin,
        "rounds": campaign.rounds if planned else _rounds(launches),
        "begun": len({launch.round for launch in launches}),
        "looks": [look.rounds for look in campaign_looks(campaign)] if planned else [],
        "extensions": json.loads(campaign.plan).get("extensions", []) if planned else [],
        "baseline": labels.get(campaign.baseline, campaign.baseline),
        "configurations": len(labels),
        "launches": len(launches),
        "tool": campaign.tool,
    }


def _rounds(launches: Sequence[LaunchRecord]) -> int:
    """Count rounds: an import has as many as were imported."""
    return 1 + max((launch.round for launch in launches), default=-1)


def configurations(store: Store, campaign: CampaignRecord) -> list[dict[str, Any]]:
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
) -> dict[str, Any]:
    asked = {e.evidence.asked: None for e in evidence}
    ran = {e.evidence.ran: None for e in evidence}
    states = Counter(launch.state for launch in launches)
    return {
        "id": record.id,
        "key": record.key,
        "baseline": baseline,
        "buffers": record.buffers,
        "layouts": sorted(
            {e.layout for e in evidence} | {x.layout for x in launches}, key=layout_order
        ),
        "requested": ", ".join(a for a in asked if a) or record.id,
        "ran": ", ".join(r for r in ran if r) or NO_EVIDENCE,
        "proven": bool(evidence) and all(e.evidence.ok for e in evidence),
        "proof": [
            {
                **plain(proof),
                "layout": e.layout,
                "says": proof.says and f"the library says that {proof.says}",
                "unrequested": words.is_unrequested(e.evidence, proof),
            }
            for e in evidence
            for proof in e.evidence.proof
        ],
        "wire": [
            {
                "layout": e.layout,
                "interface": interface,
                "bytes": sent,
                "counter": dict(e.evidence.counters).get(interface, ""),
                "named": interface in e.evidence.named,
                "payload": e.evidence.payload,
                "own": words.own_bytes(e.evidence, interface),
            }
            for e in evidence
            for interface, sent in e.evidence.wire
        ],
        "launches": {str(state): n for state, n in sorted(states.items())},
        "conditions": _conditions(launches),
        "findings": _findings(evidence, launches),
        "provenance": _json(record.provenance),
    }


def _conditions(launches: Sequence[LaunchRecord]) -> dict[str, Any] | None:
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


def _launch(launch: LaunchRecord) -> dict[str, Any]:
    """Return one launch without what its configuration has for all: when, how it ended, under
    what."""
    row = plain(launch)
    return {key: row[key] for key in row if key not in ("campaign", "findings", "artefacts")}


def _findings(
    evidence: Sequence[EvidenceRecord], launches: Sequence[LaunchRecord]
) -> list[dict[str, Any]]:
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


def _without_homes(value: Any) -> Any:
    """Give a document without the name of anybody's home in it: what is shown here gets
    published."""
    if isinstance(value, dict):
        return {key: _without_homes(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_homes(inner) for inner in value]
    return hide_homes(value) if isinstance(value, str) else value


def _json(text: str) -> Any:
    """Read stored JSON as a value; what redaction made unreadable stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def text(head: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Lay out the document in lines of at most 80 characters."""
    rounds = counted(head["rounds"], "round")
    if head["begun"] < head["rounds"]:
        rounds = f"{head['begun']} of {rounds}"
    lines = [
        *fold(f"campaign {head['name']} ({head['id'][:8]})"),
        *fold(f"{head['origin']}, {head['created'][:16].replace('T', ' ')}, {rounds}, "
                   f"{head['launches']} launches, baseline {head['baseline']}"),
        *fold(_looks(head["looks"])),
        *fold("; ".join(_extension(step) for step in head["extensions"])),
    ]  # fmt: skip
    for c in rows:
        states = ", ".join(f"{n} {state}" for state, n in c["launches"].items()) or "none"
        proof = list(_proofs(c["proof"]))
        lines += [
            "",
            *fold(c["id"] + ("  (baseline)" if c["baseline"] else "")),
            *_row("  requested", c["requested"]),
            *_row("  ran", c["ran"]),
            *_row("  buffers", c["buffers"]),
            *_row("  layouts", ", ".join(c["layouts"])),
            *_row("  launches", states),
            *_load(c["conditions"]),
            *_row("  from", _origin(c["provenance"])),
            *_guest(c["provenance"]),
            *(proof or _row("  proof", NO_EVIDENCE)),
            *(line for w in c["wire"] if w["bytes"] or w["named"] for line in _wire(w)),
        ]
        for f in c["findings"]:
            again = f" ({f['times']} times)" if f["times"] > 1 else ""
            lines += _row("  " + f["level"], f"{f['code']}: {f['message']}{again}")
            lines += [line for key in ("why", "fix") if f[key] for line in _row("   ", f[key])]
    return lines


def _looks(rounds: Sequence[int]) -> str:
    return f"looks after {', '.join(map(str, rounds))} rounds" if len(rounds) > 1 else ""


def _extension(step: dict[str, Any]) -> str:
    at = step["at"][:16].replace("T", " ")
    return f"extended from {step['planned']} to {step['rounds']} rounds, {at}"


def _load(conditions: dict[str, Any] | None) -> list[str]:
    """Return who else used the machine; nothing for launches without a record."""
    if conditions is None:
        return []
    parts = []
    if load := conditions["load"]:
        parts.append(f"average {load[0]:.1f} to {load[1]:.1f}")
    if others := conditions["others"]:
        low, high = (f"{100 * share:.0f}" for share in others)
        marked = f"{conditions['marked']} of {conditions['launches']} launches marked"
        parts.append(f"others took {low} to {high} % of the CPUs, {marked}")
    if switches := conditions["switches"]:
        low, high = (f"{count:,}" for count in switches)
        parts.append(f"{low} to {high} involuntary switches")
    if conditions["governor"]:
        parts.append(f"governor {', '.join(conditions['governor'])}")
    return _row("  load", "; ".join(parts)) if parts else []


def _origin(provenance: Any) -> str:
    """Write the plain entries of a provenance; lists and the like are in the JSON document."""
    if not isinstance(provenance, dict):
        return str(provenance)
    plain = {k: v for k, v in provenance.items() if v and not isinstance(v, (list, dict))}
    return "; ".join(k if v is True else f"{k} {v}" for k, v in plain.items())


def _guest(provenance: Any) -> list[str]:
    """In what it ran; nothing for a configuration of the machine itself."""
    guest = provenance.get("guest") if isinstance(provenance, dict) else None
    if not isinstance(guest, dict):
        return []
    return _row("  guest", "; ".join(f"{k} {v}" for k, v in guest.items() if v))


def _proofs(proofs: list[dict[str, Any]]) -> Iterator[str]:
    """List a row for each lane; those that nothing used share one, since they are the most."""
    idle: dict[str, list[str]] = {}
    for proof in proofs:
        if proof["standing"] == ProofStatus.NOT_EXERCISED and not proof["sign"]:
            idle.setdefault(proof["layout"], []).append(f"{proof['peer']} {proof['kind']}")
        else:
            yield from _proof(proof)
    for layout, lanes in idle.items():
        yield from _row("  proof", f"{layout} {ProofStatus.NOT_EXERCISED}: {', '.join(lanes)}")


def _proof(proof: dict[str, Any]) -> list[str]:
    what = f"{proof['layout']} {proof['peer']} {proof['kind']}: {proof['standing']}"
    what += f", {proof['lane']}" if proof["lane"] else ""
    what += f", {words.UNREQUESTED}" if proof["unrequested"] else ""
    sign = " ".join(proof["sign"].split())
    return _row("  proof", what) + (_row("   ", sign) if sign else [])


def _wire(wire: dict[str, Any]) -> list[str]:
    sent = words.counted_bytes(
        wire["interface"], wire["bytes"], wire["counter"], wire["payload"],
        due=wire["named"], own=wire["own"],
    )  # fmt: skip
    return _row("  wire", f"{wire['layout']} p2p: {sent}")
