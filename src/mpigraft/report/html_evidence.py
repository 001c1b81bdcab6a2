"""Evidence in the HTML report: what was asked, what ran, and the lines that show it."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.model import (
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    Finding,
    Kind,
    Peer,
    Proof,
    Standing,
)
from mpigraft.report import ReportData, words
from mpigraft.report.html_provenance import provenance
from mpigraft.report.html_ranks import ranks
from mpigraft.report.markup import Html, el, foreign, hidden, join, table
from mpigraft.report.trouble import left_out

CLASSES = {
    Standing.PROVEN: "ok",
    Standing.CONTRADICTED: "bad",
    Standing.NOT_EXERCISED: "n",
    Standing.NO_EVIDENCE: "none",
}


def evidence(data: ReportData) -> Html:
    """One row per configuration and kind of traffic, then each configuration in full."""
    records: dict[str, list[EvidenceRecord]] = {}
    for record in data.evidence:
        records.setdefault(record.configuration, []).append(record)
    parts = []
    if data.evidence:
        parts.append(_overview(data))
    else:
        parts.append(el("p", "There is no evidence of what ran: these figures were imported."))
    for configuration in sorted(data.configurations, key=lambda c: c.id):
        parts.append(_configuration(configuration, records.get(configuration.key, [])))
    out = left_out(data)
    if out:
        items = (el("li", el("b", who), ": ", why) for who, why in out)
        parts.append(join(el("h3", "Left out"), el("ul", *items)))
    return join(*parts)


def _overview(data: ReportData) -> Html:
    """Configurations by (peer, kind), as far as any launch sent such bytes."""
    names = {c.key: c.id for c in data.configurations}
    used = {(p.peer, p.kind) for r in data.evidence for p in _exercised(r.evidence)}
    places = [(peer, kind) for peer in Peer for kind in Kind if (peer, kind) in used]
    rows = []
    for record in sorted(data.evidence, key=lambda r: (names.get(r.configuration, ""), r.layout)):
        proof = {(p.peer, p.kind): p for p in record.evidence.proof}
        cells = (_proof_cell(record.evidence, proof.get(place)) for place in places)
        name = names.get(record.configuration, record.configuration[:12])
        head = el("th", name, el("small", record.layout), scope="row")
        rows.append(el("tr", head, _asked_cell(record.evidence), *cells))
    heads = ("configuration", "asked", *(join(peer, el("small", kind)) for peer, kind in places))
    caption = join(
        "What carried the bytes: ",
        ", ".join(f"{words.STANDINGS[s]} {s}" for s in Standing),
    )
    if any(words.beside(r.evidence, p) for r in data.evidence for p in r.evidence.proof):
        told = f", {words.BESIDE}: this MPI takes that lane whatever was asked"
        caption = join(caption, el("span", told, class_="none"))
    idle = [peer for peer in Peer if peer not in {peer for peer, _ in used}]
    if idle:
        caption = join(caption, f". No launch sent anything to these peers: {', '.join(idle)}.")
    return table(caption, heads, rows, class_="proof")


def _exercised(evidence: Evidence) -> list[Proof]:
    return [p for p in evidence.proof if p.standing is not Standing.NOT_EXERCISED]


def _asked_cell(evidence: Evidence) -> Html:
    if evidence.ok:
        return el("td", "✓ ", foreign(evidence.asked), class_="ok")
    return el("td", "✗ ", foreign(f"{evidence.asked}; ran: {evidence.ran}"), class_="bad")


def _proof_cell(evidence: Evidence, proof: Proof | None) -> Html:
    standing = proof.standing if proof else Standing.NO_EVIDENCE
    lane = foreign(proof.lane) if proof and proof.lane else hidden(standing)
    if proof and words.beside(evidence, proof):
        lane = join(lane, f", {words.BESIDE}")
    return el(
        "td",
        el("span", words.STANDINGS[standing], aria_hidden="true"),
        " ",
        lane,
        class_=_class(evidence, proof) if proof else CLASSES[standing],
    )


def _class(evidence: Evidence, proof: Proof) -> str:
    """A standing's colour; a lane that nobody asked for has that of what is not known."""
    return "none" if words.beside(evidence, proof) else CLASSES[proof.standing]


def _configuration(configuration: ConfigurationRecord, records: list[EvidenceRecord]) -> Html:
    body = [_evidence(record) for record in records]
    if not records:
        body.append(el("p", "No evidence: nothing shows which transport ran."))
    body.append(provenance(configuration.provenance))
    body.append(el("p", "key ", el("code", configuration.key), class_="key"))
    ok = all(record.evidence.ok for record in records)
    mark = "?" if not records else "✓" if ok else "✗"
    return el(
        "details",
        el("summary", el("h3", f"{mark} ", configuration.id)),
        *body,
        class_="configuration",
    )


def _sign(proof: Proof) -> Iterator[Html]:
    """What the library said, as a sentence, and the line itself."""
    if proof.says:
        yield el("p", foreign(f"The library says that {proof.says}."))
    if proof.sign:
        yield el("code", foreign(proof.sign))


def _evidence(record: EvidenceRecord) -> Html:
    found = record.evidence
    rows = [
        el(
            "tr",
            el("th", f"{p.peer}, {p.kind}", scope="row"),
            el("td", _standing(found, p), class_=_class(found, p)),
            el("td", foreign(p.lane)),
            el("td", *_sign(p)),
        )
        for p in _exercised(found)
    ]
    idle = [f"{p.peer} {p.kind}" for p in found.proof if p.standing is Standing.NOT_EXERCISED]
    says = [el("p", "asked ", el("b", foreign(found.asked)), ", ran ", el("b", foreign(found.ran)))]
    if found.wire:
        by = dict(found.counters)
        sent = "; ".join(
            words.counted(
                name,
                n,
                by.get(name, ""),
                found.payload,
                due=name in found.named,
                own=words.own_through(found, name),
            )
            for name, n in found.wire
            if n or name in found.named
        )
        sent = sent or f"no byte through {', '.join(name for name, _ in found.wire)}"
        says.append(el("p", "during the point-to-point probe: ", foreign(sent)))
    heads = ("traffic", "standing", "lane", "the line that was seen")
    says.append(table(f"Proof on layout {record.layout}", heads, rows, class_="plain"))
    if idle:
        says.append(el("p", f"{Standing.NOT_EXERCISED}: {', '.join(idle)}", class_="key"))
    if found.findings:
        says.append(findings(found.findings))
    if found.ranks:
        says.append(ranks(found.ranks))
    return join(*says)


def _standing(evidence: Evidence, proof: Proof) -> str:
    said = f"{words.STANDINGS[proof.standing]} {proof.standing}"
    return f"{said}, {words.BESIDE}" if words.beside(evidence, proof) else said


def findings(found: tuple[Finding, ...]) -> Html:
    """Findings as a list: what was seen, why it matters, what to do."""
    items = []
    for finding in found:
        why = el("div", foreign(finding.why), class_="why") if finding.why else None
        mend = el("div", el("b", "What to do: "), foreign(finding.mend)) if finding.mend else None
        head = el("b", f"{finding.level} {finding.code}")
        items.append(el("li", head, " ", foreign(finding.seen), why, mend, class_=finding.level))
    return el("ul", *items, class_="findings")
