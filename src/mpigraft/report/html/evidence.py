"""Evidence on the page: what was requested, what ran, and the lines that show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpigraft.core.model import (
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    Finding,
    Kind,
    Level,
    Peer,
    Proof,
    ProofStatus,
    layout_order,
)
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import left_out
from mpigraft.report.html.provenance import provenance
from mpigraft.report.html.ranks import ranks
from mpigraft.report.markup import Html, el, foreign, hidden, join, table
from mpigraft.report.screen import by_kind, shorten, without_names
from mpigraft.report.software import guest_lines
from mpigraft.report.wording import words

LINE = 150  # characters of a finding's line
CLASSES = {
    ProofStatus.PROVEN: "ok",
    ProofStatus.CONTRADICTED: "bad",
    ProofStatus.NOT_EXERCISED: "n",
    ProofStatus.NO_EVIDENCE: "none",
}


def evidence(data: ReportData) -> Html:
    """Return one row per configuration and kind of traffic, then each configuration in full."""
    records: dict[str, list[EvidenceRecord]] = {}
    for record in data.evidence:
        records.setdefault(record.configuration, []).append(record)
    parts = []
    if data.evidence:
        parts.append(_overview(data))
    else:
        parts.append(el("p", "There is no evidence of what ran: these figures were imported."))
    roles = guest_lines(data)
    for configuration in sorted(data.configurations, key=lambda c: c.id):
        role = roles.get(configuration.id, "")
        parts.append(_configuration(configuration, records.get(configuration.key, []), role))
    out = left_out(data)
    if out:
        reasons: dict[str, list[str]] = {}
        for name, why in out:
            reasons.setdefault(why, []).append(name)
        items = (el("li", el("b", why), ": ", ", ".join(own)) for why, own in reasons.items())
        parts.append(join(el("h3", "Left out"), el("ul", *items)))
    return join(*parts)


def _overview(data: ReportData) -> Html:
    """Render configurations by (peer, kind), as far as any launch sent such bytes."""
    names = {c.key: c.id for c in data.configurations}
    used = {(p.peer, p.kind) for r in data.evidence for p in _exercised(r.evidence)}
    places = [(peer, kind) for peer in Peer for kind in Kind if (peer, kind) in used]
    rows = []
    for record in sorted(
        data.evidence, key=lambda r: (names.get(r.configuration, ""), layout_order(r.layout))
    ):
        proof = {(p.peer, p.kind): p for p in record.evidence.proof}
        cells = (_proof_cell(record.evidence, proof.get(place)) for place in places)
        name = names.get(record.configuration, record.configuration[:12])
        head = el("th", name, el("small", record.layout), scope="row")
        rows.append(el("tr", head, _requested_cell(record.evidence), *cells))
    heads = (
        "configuration",
        "requested",
        *(join(peer, el("small", kind)) for peer, kind in places),
    )
    caption = join(
        "What carried the bytes: ",
        ", ".join(f"{words.STATUS_SIGNS[s]} {s}" for s in ProofStatus),
    )
    if any(words.is_unrequested(r.evidence, p) for r in data.evidence for p in r.evidence.proof):
        legend = f", {words.UNREQUESTED}: this MPI takes that lane with every transport"
        caption = join(caption, el("span", legend, class_="none"))
    idle = [peer for peer in Peer if peer not in {peer for peer, _ in used}]
    if idle:
        caption = join(caption, f". No launch sent anything to these peers: {', '.join(idle)}.")
    return table(caption, heads, rows, class_="proof")


def _exercised(evidence: Evidence) -> list[Proof]:
    return [p for p in evidence.proof if p.standing is not ProofStatus.NOT_EXERCISED]


def _requested_cell(evidence: Evidence) -> Html:
    if evidence.ok:
        return el("td", "✓ ", foreign(evidence.asked), class_="ok")
    return el("td", "✗ ", foreign(f"{evidence.asked}; ran: {evidence.ran}"), class_="bad")


def _proof_cell(evidence: Evidence, proof: Proof | None) -> Html:
    standing = proof.standing if proof else ProofStatus.NO_EVIDENCE
    lane = foreign(proof.lane) if proof and proof.lane else hidden(standing)
    if proof and words.is_unrequested(evidence, proof):
        lane = join(lane, f", {words.UNREQUESTED}")
    return el(
        "td",
        el("span", words.STATUS_SIGNS[standing], aria_hidden="true"),
        " ",
        lane,
        class_=_class(evidence, proof) if proof else CLASSES[standing],
    )


def _class(evidence: Evidence, proof: Proof) -> str:
    """Write a standing's colour; a lane that nobody asked for has that of what is not known."""
    return "none" if words.is_unrequested(evidence, proof) else CLASSES[proof.standing]


def _configuration(
    configuration: ConfigurationRecord, records: list[EvidenceRecord], role: str
) -> Html:
    body = [el("p", role)] if role else []
    body += [_evidence(record) for record in records]
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
    """Render what the library said, as a sentence, and the line itself."""
    if proof.says:
        yield el("p", foreign(f"The library says that {proof.says}."))
    if proof.sign:
        yield el("code", foreign(proof.sign))


def _evidence(record: EvidenceRecord) -> Html:
    shown = record.evidence
    rows = [
        el(
            "tr",
            el("th", f"{p.peer}, {p.kind}", scope="row"),
            el("td", _standing(shown, p), class_=_class(shown, p)),
            el("td", foreign(p.lane)),
            el("td", *_sign(p)),
        )
        for p in _exercised(shown)
    ]
    idle = [f"{p.peer} {p.kind}" for p in shown.proof if p.standing is ProofStatus.NOT_EXERCISED]
    says = [
        el("p", "requested ", el("b", foreign(shown.asked)), ", ran ", el("b", foreign(shown.ran)))
    ]
    if shown.wire:
        by = dict(shown.counters)
        sent = "; ".join(
            words.counted_bytes(
                name,
                n,
                by.get(name, ""),
                shown.payload,
                due=name in shown.named,
                own=words.own_bytes(shown, name),
            )
            for name, n in shown.wire
            if n or name in shown.named
        )
        sent = sent or f"no byte through {', '.join(name for name, _ in shown.wire)}"
        says.append(el("p", "during the point-to-point probe: ", foreign(sent)))
    heads = ("traffic", "standing", "lane", "printed line")
    says.append(table(f"Proof on layout {record.layout}", heads, rows, class_="plain"))
    if idle:
        says.append(el("p", f"{ProofStatus.NOT_EXERCISED}: {', '.join(idle)}", class_="key"))
    if shown.settings:
        effects = [
            el(
                "tr",
                el("th", foreign(one.variable), scope="row"),
                el("td", str(one.state)),
                el("td", el("code", foreign(one.sign))),
            )
            for one in shown.settings
        ]
        columns = ("variable", "state", "sign")
        says.append(table("Variables of its setting", columns, effects, class_="plain"))
    if shown.findings:
        says.append(findings(shown.findings))
    if shown.ranks:
        says.append(ranks(shown.ranks))
    return join(*says)


def _standing(evidence: Evidence, proof: Proof) -> str:
    text = f"{words.STATUS_SIGNS[proof.standing]} {proof.standing}"
    return f"{text}, {words.UNREQUESTED}" if words.is_unrequested(evidence, proof) else text


def findings(rows: tuple[Finding, ...]) -> Html:
    """Render findings as a list, a line for each kind: what happened. Behind it all of them, why
    they matter, and what to do."""
    return el("ul", *(_kind(*kind) for kind in by_kind(rows)), class_="findings")


def _kind(level: Level, code: str, own: list[Finding]) -> Html:
    head, line = el("b", f"{level} {code}"), words.single_line(own[0].message)
    brief = shorten(without_names(line), LINE)
    more = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
    if line == brief and not more and not own[0].why and not own[0].fix:
        return el("li", head, " ", foreign(line), class_=level)
    summary = el("summary", head, " ", foreign(brief), more)
    messages = (el("div", foreign(finding.message)) for finding in own)
    whys = (el("div", foreign(why), class_="why") for why in _distinct(f.why for f in own))
    fixes = _distinct(finding.fix for finding in own)
    does = (el("div", el("b", "What to do: "), foreign(fix)) for fix in fixes)
    every = el("div", *messages, *whys, *does, class_="rest")
    return el("li", el("details", summary, every), class_=level)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(filter(None, dict.fromkeys(texts)))
