"""`mpigraft results`: what the store holds, and what really ran behind each figure."""

from __future__ import annotations

import json as jsonlib
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.cli import common

if TYPE_CHECKING:
    from mpigraft.model import (
        CampaignRecord,
        ConfigurationRecord,
        EvidenceRecord,
        Finding,
        LaunchRecord,
    )
    from mpigraft.store import Store

NO_EVIDENCE = "no evidence"
WIDTH = 80  # of the text form

app = typer.Typer(
    help="Look at stored results.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print a JSON document.")]


@app.command("list")
def list_(ctx: typer.Context, json: Json = False) -> None:
    """List the campaigns of the store, oldest first.

    Example: mpigraft results list
    """
    from mpigraft.jsonout import document
    from mpigraft.store import Store

    store = Store(common.settings(ctx).store)
    rows = [summary(store, campaign) for campaign in store.campaigns()]
    if json:
        common.out(document(campaigns=rows, findings=store.findings))
        return
    if not rows:
        common.out(f"no results in {store.folder}; `mpigraft bench` makes some")
    else:
        common.out(f"{'id':8}  {'created (UTC)':16}  origin  configurations  launches  name")
    for row in rows:
        common.out(
            f"{row['id'][:8]}  {row['created'][:16].replace('T', ' ')}  {row['origin']:6}  "
            f"{row['configurations']:14}  {row['launches']:8}  {row['name']}"
        )
    for finding in store.findings:
        common.out(f"{finding.level}: {finding.seen}")


@app.command("show")
def show(
    ctx: typer.Context,
    campaign: Annotated[
        str | None,
        typer.Argument(help="Id, its beginning, or name of a campaign.", show_default="the latest"),
    ] = None,
    json: Json = False,
) -> None:
    """Show for each configuration what was asked, what ran, and how that is known.

    Example: mpigraft results show nightly --json
    """
    from mpigraft.jsonout import document
    from mpigraft.store import Store

    store = Store(common.settings(ctx).store)
    record = store.campaign(campaign)
    head = summary(store, record)
    told = _homeless(configurations(store, record))
    if json:
        launches = [_launch(one) for one in store.launches(record.id)]
        common.out(document(campaign=head, configurations=told, launches=_homeless(launches),
                            findings=store.findings))  # fmt: skip
        return
    common.out("\n".join(text(head, told)))
    for finding in store.findings:
        common.out(f"{finding.level}: {finding.seen}")


def summary(store: Store, campaign: CampaignRecord) -> dict[str, Any]:
    """One campaign in short; the same in `list` and at the head of `show`."""
    from mpigraft.looks import looks_of

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
        "looks": [look.rounds for look in looks_of(campaign)] if planned else [],
        "extensions": jsonlib.loads(campaign.plan).get("extensions", []) if planned else [],
        "baseline": labels.get(campaign.baseline, campaign.baseline),
        "configurations": len(labels),
        "launches": len(launches),
        "tool": campaign.tool,
    }


def _rounds(launches: Sequence[LaunchRecord]) -> int:
    """An imported campaign has as many rounds as were imported."""
    return 1 + max((launch.round for launch in launches), default=-1)


def configurations(store: Store, campaign: CampaignRecord) -> list[dict[str, Any]]:
    """Per configuration what was asked, what ran, the proof, all findings, the provenance."""
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
    from mpigraft.report import words

    asked = {e.evidence.asked: None for e in evidence}
    ran = {e.evidence.ran: None for e in evidence}
    states = Counter(launch.state for launch in launches)
    return {
        "id": record.id,
        "key": record.key,
        "baseline": baseline,
        "buffers": record.buffers,
        "layouts": sorted({e.layout for e in evidence} | {x.layout for x in launches}),
        "asked": ", ".join(a for a in asked if a) or record.id,
        "ran": ", ".join(r for r in ran if r) or NO_EVIDENCE,
        "proven": bool(evidence) and all(e.evidence.ok for e in evidence),
        "proof": [
            {
                "layout": e.layout,
                "peer": proof.peer,
                "kind": proof.kind,
                "standing": proof.standing,
                "lane": proof.lane,
                "sign": proof.sign,
                "says": proof.says and f"the library says that {proof.says}",
                "beside": words.beside(e.evidence, proof),
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
                "own": words.own_through(e.evidence, interface),
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
    from mpigraft import disturbance

    known = [launch for launch in launches if launch.conditions]
    if not known:
        return None
    states = [s for x in known if (c := x.conditions) for s in (c.before, c.after)]
    nodes = [use for x in known if x.conditions for use in x.conditions.nodes]
    governors = {name for s in states for name in s.governor.split(",") if name}
    return {
        "launches": len(known),
        "marked": sum(map(disturbance.marked, known)),
        "others": _span(use.others for use in nodes),
        "switches": _span(use.switches for use in nodes),
        "load": _span(s.load[0] for s in states if s.load),
        "pressure": _span(s.pressure for s in states if s.pressure is not None),
        "governor": sorted(governors),
    }


def _span(values: Iterable[float]) -> list[float] | None:
    found = sorted(values)
    return [found[0], found[-1]] if found else None


def _launch(launch: LaunchRecord) -> dict[str, Any]:
    """One launch without what its configuration says of all: when, how it ended, under what."""
    from mpigraft.jsonout import plain

    said = plain(launch)
    return {key: said[key] for key in said if key not in ("campaign", "findings", "artefacts")}


def _findings(
    evidence: Sequence[EvidenceRecord], launches: Sequence[LaunchRecord]
) -> list[dict[str, Any]]:
    """Every finding once, worst first, with how often it was made and the first one's evidence."""
    from mpigraft.jsonout import plain
    from mpigraft.model import Level

    made = [f for record in evidence for f in record.evidence.findings]
    made += [f for launch in launches for f in launch.findings]
    times: dict[Finding, list[Finding]] = {}
    for finding in made:
        times.setdefault(replace(finding, evidence=()), []).append(finding)
    order = [Level.ERROR, Level.WARNING, Level.INFO]
    worst_first = sorted(times.values(), key=lambda same: order.index(same[0].level))
    return [{**plain(same[0]), "times": len(same)} for same in worst_first]


def _homeless(value: Any) -> Any:
    """A document without the name of anybody's home in it: what is shown here gets published."""
    from mpigraft.report import words

    if isinstance(value, dict):
        return {key: _homeless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_homeless(inner) for inner in value]
    return words.homeless(value) if isinstance(value, str) else value


def _json(text: str) -> Any:
    """Stored JSON as a value; what redaction made unreadable stays text."""
    try:
        return jsonlib.loads(text)
    except ValueError:
        return text


def text(head: dict[str, Any], told: list[dict[str, Any]]) -> list[str]:
    """The document for a person, in lines of at most WIDTH characters."""
    rounds = "1 round" if head["rounds"] == 1 else f"{head['rounds']} rounds"
    if head["begun"] < head["rounds"]:
        rounds = f"{head['begun']} of {rounds}"
    lines = [
        *_wrap("", f"campaign {head['name']} ({head['id'][:8]})"),
        *_wrap("", f"{head['origin']}, {head['created'][:16].replace('T', ' ')}, {rounds}, "
                   f"{head['launches']} launches, baseline {head['baseline']}"),
        *_wrap("", _looks(head["looks"])),
        *_wrap("", "; ".join(_extension(step) for step in head["extensions"])),
    ]  # fmt: skip
    for c in told:
        states = ", ".join(f"{n} {state}" for state, n in c["launches"].items()) or "none"
        proof = list(_proofs(c["proof"]))
        lines += [
            "",
            *_wrap("", c["id"] + ("  (baseline)" if c["baseline"] else "")),
            *_wrap("asked", c["asked"]),
            *_wrap("ran", c["ran"]),
            *_wrap("buffers", c["buffers"]),
            *_wrap("layouts", ", ".join(c["layouts"])),
            *_wrap("launches", states),
            *_load(c["conditions"]),
            *_wrap("from", _origin(c["provenance"])),
            *_guest(c["provenance"]),
            *(proof or _wrap("proof", NO_EVIDENCE)),
            *(line for w in c["wire"] if w["bytes"] or w["named"] for line in _wire(w)),
        ]
        for f in c["findings"]:
            again = f" ({f['times']} times)" if f["times"] > 1 else ""
            lines += _wrap(f["level"], f"{f['code']}: {f['seen']}{again}")
            lines += [line for key in ("why", "mend") if f[key] for line in _wrap(" ", f[key])]
    return lines


def _looks(rounds: Sequence[int]) -> str:
    return f"looks after {', '.join(map(str, rounds))} rounds" if len(rounds) > 1 else ""


def _extension(step: dict[str, Any]) -> str:
    at = step["at"][:16].replace("T", " ")
    return f"extended from {step['planned']} to {step['rounds']} rounds, {at}"


def _load(conditions: dict[str, Any] | None) -> list[str]:
    """Who else used the machine; nothing for launches of which nobody knows."""
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
    return _wrap("load", "; ".join(parts)) if parts else []


def _origin(provenance: Any) -> str:
    """The plain entries of a provenance; lists and the like are in the JSON document."""
    if not isinstance(provenance, dict):
        return str(provenance)
    plain = {k: v for k, v in provenance.items() if v and not isinstance(v, (list, dict))}
    return "; ".join(k if v is True else f"{k} {v}" for k, v in plain.items())


def _guest(provenance: Any) -> list[str]:
    """In what it ran; nothing for a configuration of the machine itself."""
    told = provenance.get("guest") if isinstance(provenance, dict) else None
    if not isinstance(told, dict):
        return []
    return _wrap("guest", "; ".join(f"{k} {v}" for k, v in told.items() if v))


def _proofs(proofs: list[dict[str, Any]]) -> Iterator[str]:
    """A row for each lane; those that nothing used share one, since they are the most."""
    from mpigraft.model import Standing

    idle: dict[str, list[str]] = {}
    for proof in proofs:
        if proof["standing"] == Standing.NOT_EXERCISED and not proof["sign"]:
            idle.setdefault(proof["layout"], []).append(f"{proof['peer']} {proof['kind']}")
        else:
            yield from _proof(proof)
    for layout, lanes in idle.items():
        yield from _wrap("proof", f"{layout} {Standing.NOT_EXERCISED}: {', '.join(lanes)}")


def _proof(proof: dict[str, Any]) -> list[str]:
    from mpigraft.report import words

    what = f"{proof['layout']} {proof['peer']} {proof['kind']}: {proof['standing']}"
    what += f", {proof['lane']}" if proof["lane"] else ""
    what += f", {words.BESIDE}" if proof["beside"] else ""
    sign = " ".join(proof["sign"].split())
    return _wrap("proof", what) + (_wrap(" ", sign) if sign else [])


def _wire(wire: dict[str, Any]) -> list[str]:
    from mpigraft.report import words

    told = words.counted(
        wire["interface"], wire["bytes"], wire["counter"], wire["payload"],
        due=wire["named"], own=wire["own"],
    )  # fmt: skip
    return _wrap("wire", f"{wire['layout']} p2p: {told}")


def _wrap(head: str, body: str) -> list[str]:
    """`body` beside `head`, and under itself where it is longer than the line."""
    if not head:
        return textwrap.wrap(body, WIDTH)
    first = f"  {head:10}"
    return textwrap.wrap(body, WIDTH, initial_indent=first, subsequent_indent=" " * len(first))
