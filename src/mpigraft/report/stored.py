"""What the store holds of a campaign, as JSON or as text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mpigraft.core.homes import hide_homes
from mpigraft.core.model import CampaignRecord, Finding, LaunchState, Origin, ProofStatus
from mpigraft.core.numbers import counted
from mpigraft.core.serialize import document
from mpigraft.core.text import columns, fold, join_some, labelled, printable
from mpigraft.report.screen import Screen, finding_lines, folded, joined, shorten
from mpigraft.report.store_document import (
    NO_EVIDENCE,
    CampaignDocument,
    CampaignsDocument,
    CampaignSummary,
    ConditionsSummary,
    ConfigurationSummary,
    Extension,
    WireRow,
    configurations,
    launch_row,
    summary,
    without_homes,
)
from mpigraft.report.table import Column, Line, Table
from mpigraft.report.wording import words
from mpigraft.store import Store

PROVEN, NOT_PROVEN = "proven", "not proven"
NAMED = 3  # configurations that the answer names
SCREEN, BLANK_LINES, FEW = 40, 3, 6  # lines of a screen, in between, and of the table at least
RAN = 16  # columns for what ran, at least

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
        return document(**CampaignsDocument(campaigns=rows, findings=store.findings))
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
    head, rows = summary(store, campaign), without_homes(configurations(store, campaign))
    if as_json:
        launches = without_homes([launch_row(one) for one in store.launches(campaign.id)])
        keys = CampaignDocument(
            campaign=head,
            configurations=rows,
            launches=launches,
            findings=store.findings,  # last: files are read as they are asked for
        )
        return document(**keys)
    return "\n".join([*text(head, rows), *_damage(store)])


def stored_screen(store: Store, campaign: CampaignRecord) -> Screen:
    """Describe one campaign in one screen: how many configurations are proven to have run what was
    requested, and a line for each."""
    head, rows = summary(store, campaign), without_homes(configurations(store, campaign))
    width, one = columns(), head["id"][:8]
    about = f"{head['origin']}, {_rounds(head)}, {counted(head['launches'], 'launch')}"
    answer = [printable(line) for line in _answer(head, rows)]
    findings = [*finding_lines([*store.findings, *_findings(store, campaign)], width)]
    rest = joined(
        f"proof of each lane, load: mpigraft results show {one} --full",
        f"values: mpigraft compare {one}",
        width=width,
    )
    title = [
        printable(f"{head['name']} {one}, {head['created'][:16].replace('T', ' ')}; {about}"),
        printable(f"baseline: {head['baseline']}"),
        *(printable(_extension(step)) for step in head["extensions"]),
    ]
    others = (*title, *answer, *(line for _, line in findings), *rest)
    free = SCREEN - BLANK_LINES - sum(len(folded(line, width)) for line in others)
    return Screen(answer, _rows(rows, width, max(free, FEW)), findings, rest, title)


def _findings(store: Store, campaign: CampaignRecord) -> Iterator[Finding]:
    """Give what evidence and launches of each configuration noticed, each once."""
    names = {c.key: c.id for c in store.configurations(campaign.id)}
    made = [(e.configuration, f) for e in store.evidence(campaign.id) for f in e.evidence.findings]
    made += [(x.configuration, f) for x in store.launches(campaign.id) for f in x.findings]
    for key, finding in dict.fromkeys((key, replace(f, evidence=())) for key, f in made):
        yield replace(finding, message=hide_homes(f"{names.get(key, key)}: {finding.message}"))


def _answer(head: CampaignSummary, rows: Sequence[ConfigurationSummary]) -> Iterator[str]:
    count = counted(len(rows), "configuration")
    if head["origin"] == Origin.IMPORT:
        yield f"{count}, imported: nothing shows what ran."
    else:
        other = [row["id"] for row in rows if not row["proven"]]
        names = f" Not proven: {join_some(other, NAMED, ', ')}." if other else ""
        yield f"Proven to run as requested: {len(rows) - len(other)} of {count}.{names}"
    bad = [row["launches"].get(state, 0) for row in rows for state in LaunchState if state != "ok"]
    if sum(bad):
        yield f"{sum(bad)} of {counted(head['launches'], 'launch')} did not end well."


def _rows(rows: Sequence[ConfigurationSummary], width: int, most: int) -> list[Line]:
    """Write what ran of each configuration, and how its launches ended where some failed, in `most`
    lines."""
    heads = ("configuration", "evidence", "launches", "ran")
    cells = [
        (
            printable(row["id"]),
            PROVEN if row["proven"] else NO_EVIDENCE if row["ran"] == NO_EVIDENCE else NOT_PROVEN,
            ", ".join(f"{n} {state}" for state, n in row["launches"].items()) or "none",
            _lanes(row) if row["ran"] != NO_EVIDENCE else "",
        )
        for row in rows
    ]
    own, ended = (max(len(row[place]) for row in (heads, *cells)) + 2 for place in (1, 2))
    ended = 0 if all({*row["launches"]} == {LaunchState.OK} for row in rows) else ended
    room = width - own - ended - RAN - 2
    name = max((len(row[0]) for row in (heads, *cells) if len(row[0]) <= room), default=2) + 2
    lines: list[Line] = []
    for place, (first, evidence, launches, ran) in enumerate((heads, *cells)):
        fits = len(first) + 2 <= name
        if len(lines) + (1 if fits else 2) > most - 1:
            return [*lines, [(f"and {len(cells) - place + 1} more: --full", "dim")]]
        style = "" if lines else "dim"
        if not fits:
            lines.append([(first, style)])
        text = f"{first if fits else '':{name}}{evidence:{own}}"
        text += f"{launches:{ended}}" if ended else ""
        lines.append([(text + shorten(printable(ran), width - len(text)), style)])
    return lines


def _lanes(row: ConfigurationSummary) -> str:
    """Name the lanes that ran, without their interfaces: `tcp (one-sided not shown)`."""
    by_kind: dict[str, dict[str, None]] = {}
    for proof in row["proof"]:
        if proof["standing"] != ProofStatus.NOT_EXERCISED:
            lane = re.sub(r" \(.*?\)", "", proof["lane"])
            by_kind.setdefault(proof["kind"], {}).update({lane: None} if lane else {})
    kinds: dict[str, list[str]] = {}
    for kind, own in by_kind.items():
        kinds.setdefault(" and ".join(own), []).append(kind)
    unknown = kinds.pop("", [])
    lanes = [lane if len(kinds) == 1 else f"{'/'.join(of)} {lane}" for lane, of in kinds.items()]
    shown = f" ({'/'.join(unknown)} not shown)" if unknown else ""
    return ", ".join(lanes) + shown if lanes else row["ran"]


def _damage(store: Store) -> list[str]:
    return [f"{finding.level}: {finding.message}" for finding in store.findings]


def text(head: CampaignSummary, rows: list[ConfigurationSummary]) -> list[str]:
    """Lay out the document in lines of at most 80 characters."""
    rounds = _rounds(head)
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
            *_row("  ran", words.lanes(c["ran"])),
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


def _rounds(head: CampaignSummary) -> str:
    rounds = counted(head["rounds"], "round")
    return f"{head['begun']} of {rounds}" if head["begun"] < head["rounds"] else rounds


def _looks(rounds: Sequence[int]) -> str:
    return f"looks after {', '.join(map(str, rounds))} rounds" if len(rounds) > 1 else ""


def _extension(step: Extension) -> str:
    at = step["at"][:16].replace("T", " ")
    return f"extended from {step['planned']} to {step['rounds']} rounds, {at}"


def _load(conditions: ConditionsSummary | None) -> list[str]:
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


def _wire(wire: WireRow) -> list[str]:
    sent = words.counted_bytes(
        wire["interface"], wire["bytes"], wire["counter"], wire["payload"],
        due=wire["named"], own=wire["own"],
    )  # fmt: skip
    return _row("  wire", f"{wire['layout']} p2p: {sent}")
