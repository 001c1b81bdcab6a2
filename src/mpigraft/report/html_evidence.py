"""Evidence in the HTML report: what was asked, what ran, and the lines that show it."""

from __future__ import annotations

from mpigraft.model import ConfigurationRecord, EvidenceRecord, Finding, Kind, Peer, Proof, Standing
from mpigraft.report import ReportData, words
from mpigraft.report.html_provenance import lines, provenance
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
    """Configurations by (peer, kind), as far as any probe says something."""
    names = {c.key: c.id for c in data.configurations}
    seen = {(p.peer, p.kind) for r in data.evidence for p in r.evidence.proof}
    places = [(peer, kind) for peer in Peer for kind in Kind if (peer, kind) in seen]
    rows = []
    for record in sorted(data.evidence, key=lambda r: (names.get(r.configuration, ""), r.layout)):
        proof = {(p.peer, p.kind): p for p in record.evidence.proof}
        cells = (_proof_cell(proof.get(place)) for place in places)
        name = names.get(record.configuration, record.configuration[:12])
        mark = "✓" if record.evidence.ok else "✗"
        ran = el(
            "td",
            f"{mark} ",
            foreign(record.evidence.ran),
            class_="ok" if record.evidence.ok else "bad",
        )
        rows.append(el("tr", el("th", name, el("small", record.layout), scope="row"), ran, *cells))
    heads = ("configuration", "ran", *(join(peer, el("small", kind)) for peer, kind in places))
    caption = join(
        "What carried the bytes: ",
        ", ".join(f"{words.STANDINGS[s]} {s}" for s in Standing),
    )
    return table(caption, heads, rows, class_="proof")


def _proof_cell(proof: Proof | None) -> Html:
    standing = proof.standing if proof else Standing.NO_EVIDENCE
    lane = foreign(proof.lane) if proof and proof.lane else hidden(standing)
    return el(
        "td",
        el("span", words.STANDINGS[standing], aria_hidden="true"),
        " ",
        lane,
        class_=CLASSES[standing],
    )


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


def _evidence(record: EvidenceRecord) -> Html:
    found = record.evidence
    rows = [
        el(
            "tr",
            el("th", f"{p.peer}, {p.kind}", scope="row"),
            el("td", f"{words.STANDINGS[p.standing]} {p.standing}", class_=CLASSES[p.standing]),
            el("td", foreign(p.lane)),
            el("td", el("code", foreign(p.sign)) if p.sign else None),
        )
        for p in found.proof
    ]
    says = [el("p", "asked ", el("b", foreign(found.asked)), ", ran ", el("b", foreign(found.ran)))]
    if found.wire:
        sent = ", ".join(f"{count:,} bytes through {name}" for name, count in found.wire)
        says.append(el("p", "during the point-to-point probe: ", foreign(sent)))
    heads = ("traffic", "standing", "lane", "the line that was seen")
    says.append(table(f"Proof on layout {record.layout}", heads, rows, class_="plain"))
    if found.findings:
        says.append(findings(found.findings))
    if found.ranks:
        says.append(_ranks(record))
    return join(*says)


def _ranks(record: EvidenceRecord) -> Html:
    rows = [
        el(
            "tr",
            el("th", f"{r.rank} of {r.size}", scope="row"),
            el("td", foreign(r.host)),
            el(
                "td",
                ", ".join(str(c) for c in r.cores[:16]) + (" ..." if len(r.cores) > 16 else ""),
            ),
            el("td", *lines([library.path for library in r.libraries if "mpi" in library.path])),
        )
        for r in record.evidence.ranks
    ]
    heads = ("rank", "host", "CPUs", "mapped MPI libraries")
    return table("What each rank said of itself", heads, rows, class_="plain")


def findings(found: tuple[Finding, ...]) -> Html:
    """Findings as a list: what was seen, why it matters, what to do."""
    items = []
    for finding in found:
        why = el("div", foreign(finding.why), class_="why") if finding.why else None
        mend = el("div", el("b", "What to do: "), foreign(finding.mend)) if finding.mend else None
        head = el("b", f"{finding.level} {finding.code}")
        items.append(el("li", head, " ", foreign(finding.seen), why, mend, class_=finding.level))
    return el("ul", *items, class_="findings")
