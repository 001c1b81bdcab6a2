"""What the store holds of a campaign, as JSON or as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from mpigraft.core.model import CampaignRecord, ProofStatus
from mpigraft.core.numbers import counted
from mpigraft.core.serialize import document
from mpigraft.core.text import fold, labelled
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
from mpigraft.report.table import Column, Table
from mpigraft.report.wording import words
from mpigraft.store import Store

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


def _damage(store: Store) -> list[str]:
    return [f"{finding.level}: {finding.message}" for finding in store.findings]


def text(head: CampaignSummary, rows: list[ConfigurationSummary]) -> list[str]:
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
