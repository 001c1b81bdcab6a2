"""The HTML report: one well-formed file that asks for nothing and lets nothing through."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from mpigraft import prove
from mpigraft.lanes import Heard
from mpigraft.model import (
    AllocationRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    Kind,
    Level,
    MappedLibrary,
    Peer,
    Proof,
    Standing,
    Verdict,
)
from mpigraft.report import ReportData, html, labels
from mpigraft.report.curves import curves, median_interval
from mpigraft.report.html_tables import verdict_class
from mpigraft.report.method import method
from tests.unit.report_samples import BASELINE, campaign_data, olivia, single_data, small_data

VOID = {"meta", "br", "link", "img", "input", "hr", "col"}
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


class Page(HTMLParser):
    """Elements with their attributes and text; fails on a tag that is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def words(self) -> str:
        """All that is read, no-break spaces as plain ones."""
        read = (t for tag, t in self.texts.items() if tag not in ("script", "style"))
        return " ".join(" ".join(t) for t in read).replace("\xa0", " ")


@pytest.fixture(scope="module")
def text() -> str:
    return html.render(campaign_data())


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def body_of(data: ReportData) -> str:
    """A rendered page less the charts' library, which has markup of its own in its strings."""
    return re.sub(r"<script>/\*\*\n\* plotly.*?</script>", "", html.render(data), flags=re.DOTALL)


# ------------------------------------------------------------------ one file, offline


def test_nothing_is_fetched(page: Page, text: str) -> None:
    for tag, attrs in page.elements:
        assert "src" not in attrs, tag
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert not [name for name in attrs if name.startswith("on")]
        if (href := attrs.get("href")) is not None:
            assert href.startswith("#"), href
    style = "".join(page.texts["style"])
    assert "@import" not in style
    assert "url(" not in style
    assert text.count("* plotly.js v") == 1


def test_the_policy_lets_only_these_scripts_run(page: Page) -> None:
    (policy,) = (
        a["content"] or ""
        for a in page.all("meta")
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    _, library, charts = page.texts["script"]
    allowed = re.search(r"script-src ([^;]*)", policy)
    assert allowed is not None
    assert allowed[1].split() == [
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in (library, charts)
    ]


def test_the_same_data_give_the_same_file(text: str) -> None:
    assert html.render(campaign_data()) == text


def test_what_is_ours_in_the_file_is_small() -> None:
    assert len(body_of(campaign_data())) < 700_000


# ------------------------------------------------------------------ what it shows


def test_links_ids_and_labels_fit_together(page: Page) -> None:
    ids = Counter(a["id"] for _, a in page.elements if "id" in a)
    assert not [name for name, times in ids.items() if times > 1]
    for _, attrs in page.elements:
        for name in ("href", "aria-labelledby"):
            if target := attrs.get(name):
                assert target.removeprefix("#") in ids


def test_headings_and_tables_can_be_heard(page: Page) -> None:
    order = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert order[0] == 1
    assert order.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(order))
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(a.get("scope") in ("col", "row") for a in page.all("th"))
    charts = [a for a in page.all("div") if a.get("class") == "chart"]
    assert len(charts) == 2 * 6
    assert all(a.get("role") == "img" and a.get("aria-label") for a in charts)


def test_every_cell_of_the_matrix_has_sign_word_and_ratio(text: str) -> None:
    data = campaign_data()
    cells = re.findall(
        r'<td class="(\w+)"><span aria-hidden="true">(.)</span>'
        r'<span class="vh">(\w+) </span>([\d.]+)</td>',
        text,
    )
    expected = [c for g in data.comparison.groups for c in g.cells]
    assert len(cells) == len(expected) == 6 * 9 * 23
    for (name, sign, word, ratio), cell in zip(cells, expected, strict=True):
        assert (word, name[0]) == (cell.verdict, cell.verdict[0])
        assert sign == {"faster": "▲", "slower": "▼", "equivalent": "=", "inconclusive": "·"}[word]
        assert float(ratio) == pytest.approx(cell.ratio, rel=0.03)


def test_strength_of_a_verdict_follows_the_factor_in_both_directions() -> None:
    assert [verdict_class(Verdict.FASTER, r) for r in (0.9, 0.7, 0.4, 1.1, 1.3, 2.5)] == [
        "f1", "f2", "f3", "f1", "f2", "f3",
    ]  # fmt: skip
    assert verdict_class(Verdict.SLOWER, 2.0) == "s3"
    assert verdict_class(Verdict.INCONCLUSIVE, 9.0) == "i"


def test_all_figures_are_there_without_scripts(page: Page) -> None:
    data = campaign_data()
    bodies = [a for a in page.all("table") if a.get("class") == "figures"]
    assert len(bodies) == len(data.comparison.groups)


def test_evidence_shows_the_line_that_was_seen_and_the_mend(page: Page) -> None:
    assert "mca: bml: Using sm btl for send" in page.texts["code"]
    for said in (
        "proven", "no evidence", "not exercised", "lnx (shm+lo)", "1,048,576 bytes through lo",
        "set OMPI_MCA_osc=^sm to send windows through the network too",
        "openmpi@5.0.11/ofi-cxi", "no cxi device", "AMD EPYC 7763", "OMPI_MCA_pml",
        "fetched by mpigraft get openmpi", "6 rounds; a typical cell",
    ):  # fmt: skip
        assert said in page.words, said


def test_a_contradiction_is_marked_and_told() -> None:
    data = small_data()
    record = data.evidence[1]
    proof = (replace(record.evidence.proof[0], standing=Standing.CONTRADICTED, sign="using ob1"),)
    wrong = replace(record.evidence, ok=False, ran="ob1", proof=proof)
    text = body_of(replace(data, evidence=(replace(record, evidence=wrong),)))
    assert '<td class="bad">✗ shm; ran: ob1</td>' in text
    assert "✗ contradicted" in text
    assert "transport-mismatch" in text


def beside_data() -> ReportData:
    """One-sided bytes took a lane of their own, told in the words of the proof."""
    data = small_data()
    record = data.evidence[0]
    proof = Proof(Peer.ON_NODE, Kind.ONE_SIDED, Standing.PROVEN, "sm", "osc: selected sm")
    told = prove._of_lanes("ofi-lnx", [Heard(proof=proof, beside=True)], (), ended=True)
    found = replace(record.evidence, proof=(record.evidence.proof[0], proof), findings=tuple(told))
    return replace(data, evidence=(replace(record, evidence=found), *data.evidence[1:]))


def test_a_lane_that_nobody_asked_for_is_proven_but_not_green() -> None:
    text = body_of(beside_data())
    cell = '<td class="none"><span aria-hidden="true">✓</span> sm, beside the wish</td>'
    assert text.count(cell) == 1
    assert '<td class="none">✓ proven, beside the wish</td>' in text
    assert "this MPI takes that lane whatever was asked" in text
    assert "beside the wish" not in body_of(small_data())


def test_a_mixed_curve_says_so_in_its_cell_and_in_the_legend() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    verdicts = (Verdict.FASTER, Verdict.FASTER, Verdict.SLOWER, Verdict.SLOWER)
    cells = tuple(replace(c, verdict=v) for c, v in zip(group.cells, verdicts, strict=True))
    group = replace(group, cells=cells, curve=Verdict.INCONCLUSIVE)
    text = body_of(replace(data, comparison=replace(data.comparison, groups=(group,))))
    assert "<small>mixed: faster up to 1 KiB, slower from 64 KiB</small></td>" in text
    assert "mixed: faster at some sizes" in text
    assert "mixed" not in body_of(data)


def test_peers_that_nothing_was_sent_to_are_named_and_have_no_column(page: Page) -> None:
    assert "No launch sent anything to these peers: self, off-node." in page.words
    assert "not exercised: off-node p2p" in page.words
    assert "no byte through lo" in page.words


def test_a_configuration_without_values_has_a_row() -> None:
    data = small_data()
    lost = ConfigurationRecord("c", "k", "openmpi@5.0.11/ofi-lnx", "{}")
    text = body_of(replace(data, configurations=(*data.configurations, lost)))
    row = '<th scope="row">openmpi@5.0.11/ofi-lnx</th><td colspan="2" class="n">no values</td>'
    assert row in text
    assert text.count("no values") == 1


def test_imported_tables_say_what_they_cannot_say() -> None:
    page = Page(html.render(olivia()))
    assert "every verdict is inconclusive" in page.words
    assert "these figures were imported" in page.words
    assert "Bands" not in page.words
    assert "Each round starts" not in page.words
    data = olivia()
    dated = replace(data, campaign=campaign_data().campaign)
    assert "<dt>imported on</dt><dd>2026-01-02</dd>" in body_of(dated)


def with_rounds(*rounds: int) -> ReportData:
    """Cells with these numbers of rounds in turn."""
    data = small_data()
    turns = itertools.cycle(rounds)
    groups = tuple(
        replace(g, cells=tuple(replace(c, rounds=next(turns)) for c in g.cells))
        for g in data.comparison.groups
    )
    return replace(data, comparison=replace(data.comparison, groups=groups))


def test_the_method_is_the_one_that_these_rounds_had() -> None:
    said = {n: " ".join(method(with_rounds(*n))) for n in ((11,), (12,), (6, 20))}
    assert "Student" in said[11,]
    assert "order statistics" not in said[11,]
    assert "order statistics" in said[12,]
    assert "Student" not in said[12,]
    assert "order statistics" in said[6, 20]
    assert "Student" in said[6, 20]
    assert not [text for text in said.values() if "bootstrap" in text]
    data = with_rounds(6)
    cells = tuple(replace(c, low=None) for c in data.comparison.groups[0].cells)
    group = replace(data.comparison.groups[0], cells=cells)
    none = replace(data, comparison=replace(data.comparison, groups=(group,)))
    assert "none has an interval" in " ".join(method(none))


def test_several_allocations_are_said_and_a_resumed_round_is_not_another() -> None:
    data = with_rounds(6)
    other = replace(data.allocations[0], id="a2")
    late = tuple(r._replace(allocation="a2") if r.round > 2 else r for r in data.values)
    two = replace(data, allocations=(*data.allocations, other), values=late)
    assert "bootstrap over the 2 allocations" in " ".join(method(two))
    split = tuple(r._replace(allocation="a2" if i % 2 else "a1") for i, r in enumerate(data.values))
    one = replace(data, allocations=(*data.allocations, other), values=split)
    assert "one allocation" in " ".join(method(one))


def test_a_benchmark_without_sizes_has_one_chart() -> None:
    data = small_data()
    groups = tuple(
        replace(
            g, benchmark="native:init", metric="init_time", unit="ms", crossovers=(),
            cells=(replace(g.cells[0], size=0),),
        )
        for g in data.comparison.groups[:3]
    )  # fmt: skip
    page = Page(html.render(ReportData(replace(data.comparison, groups=groups, noise=()))))
    charts = [a["data-kind"] for a in page.all("div") if a.get("class") == "chart"]
    assert charts == ["ratio"]


def test_a_single_configuration_shows_its_own_values() -> None:
    text = body_of(single_data())
    assert text.count('<table class="figures">') == 2
    assert f"{BASELINE} at native:latency on 1x2: latency in us, lower is better" in text
    assert "0 cells" not in text
    assert '<table class="glance">' not in text
    Page(html.render(single_data()))


def test_nothing_at_all_is_still_a_page() -> None:
    data = small_data()
    empty = replace(data.comparison, groups=(), noise=(), findings=(), summary=())
    assert "Nothing was compared." in Page(html.render(ReportData(empty))).words


# ------------------------------------------------------------------ what must not get in


def poisoned() -> ReportData:
    """Every foreign text is an attack."""
    data = small_data()
    comparison = data.comparison
    groups = tuple(
        replace(g, configuration=f"{EVIL}{g.configuration}", benchmark=EVIL, layout=EVIL)
        for g in comparison.groups[:3]
    )
    finding = Finding(Level.ERROR, EVIL, EVIL, EVIL, EVIL)
    evidence = replace(
        data.evidence[0].evidence,
        asked=EVIL, ran=EVIL, findings=(finding,), wire=((EVIL, 1),),
        proof=(Proof(Peer.ON_NODE, Kind.P2P, Standing.PROVEN, EVIL, EVIL),),
    )  # fmt: skip
    told = json.dumps({EVIL: EVIL, "environment": [{"name": EVIL, "value": EVIL}], "x": [[EVIL]]})
    machine = json.dumps({"hostname": EVIL, "cpu": {"model": EVIL}, "gpus": [{"name": EVIL}]})
    assert data.campaign is not None
    return replace(
        data,
        comparison=replace(
            comparison, groups=groups, baseline=EVIL, findings=(finding,), summary=(EVIL,), noise=()
        ),
        campaign=replace(
            data.campaign, name=EVIL, tool=EVIL, plan=json.dumps({"skipped": [[EVIL, EVIL]]})
        ),
        configurations=(ConfigurationRecord(EVIL, EVIL, EVIL, told),),
        evidence=(EvidenceRecord(EVIL, EVIL, EVIL, evidence),),
        allocations=(AllocationRecord(EVIL, EVIL, EVIL, EVIL, machine),),
        values=(),
    )


def test_no_text_becomes_markup() -> None:
    text = html.render(poisoned())
    page = Page(text)
    assert len(page.all("script")) == 3
    assert not page.all("img")
    assert not [a for _, a in page.elements if any(n.startswith("on") for n in a)]
    assert "<script>alert" not in text
    assert EVIL in page.words
    figures = json.loads(page.texts["script"][0])
    assert figures["baseline"] == EVIL
    assert "<" not in page.texts["script"][0]


def test_no_secret_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "planted-token-3141"
    monkeypatch.setenv("CI_JOB_TOKEN", secret)
    data = small_data()
    evidence = data.evidence[0].evidence
    proof = (replace(evidence.proof[0], sign=f"saw {secret}", lane=secret),)
    told = json.dumps({"environment": [{"name": "A", "value": secret}], "note": secret})
    named = json.dumps({"environment": [{"name": "MY_PASSWORD", "value": "in the clear"}]})
    machine = json.dumps({"hostname": secret})
    data = replace(
        data,
        comparison=replace(data.comparison, summary=(secret,)),
        configurations=(
            ConfigurationRecord("c", "k1", "one", told),
            ConfigurationRecord("c", "k2", "two", named),
        ),
        evidence=(replace(data.evidence[0], evidence=replace(evidence, proof=proof, ran=secret)),),
        allocations=(replace(data.allocations[0], host=secret, machine=machine),),
    )
    text = html.render(data)
    assert secret not in text
    assert "in the clear" not in text
    assert "[struck out]" in text


def test_no_home_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/cluster/h/ann")
    data = small_data()
    record, path = data.evidence[0], "/cluster/h/ann/mpi/lib/libmpi.so.40"
    library = MappedLibrary(path, 1, 2)
    ranks = tuple(replace(r, libraries=(library,)) for r in record.evidence.ranks)
    group = replace(data.comparison.groups[0], configuration=f"mine@{path}")
    text = html.render(
        replace(
            data,
            comparison=replace(data.comparison, groups=(group,), summary=(path,)),
            configurations=(ConfigurationRecord("c", "k", path, json.dumps({"libmpi": path})),),
            evidence=(replace(record, evidence=replace(record.evidence, ranks=ranks)),),
        )
    )
    assert "/cluster/h/ann" not in text
    assert "~/mpi/lib/libmpi.so.40" in text


def test_every_device_of_a_machine_has_its_line() -> None:
    data = small_data()
    nics = [{"name": f"eth{n}", "state": "up"} for n in range(2)]
    seen = json.dumps({"hostname": "n1", "fabrics": nics, "gpus": []})
    text = body_of(replace(data, allocations=(replace(data.allocations[0], machine=seen),)))
    assert "<dt>network</dt><dd><div>eth0 up</div><div>eth1 up</div></dd>" in text
    assert "<dt>GPUs</dt><dd><div>none</div></dd>" in text


@pytest.mark.parametrize("broken", ["", "[]", "{", '"x"', "null"])
def test_a_record_that_is_no_object_is_shown_and_fails_nothing(broken: str) -> None:
    data = small_data()
    assert data.campaign is not None
    data = replace(
        data,
        campaign=replace(data.campaign, plan=broken),
        configurations=(ConfigurationRecord("c", "k", "one", broken),),
        allocations=(replace(data.allocations[0], machine=broken),),
    )
    Page(html.render(data))


# ------------------------------------------------------------------ figures


def figures(data: ReportData) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(curves(data))
    return found


def test_the_figures_are_those_of_the_comparison() -> None:
    data = small_data()
    found = figures(data)
    section, group = found["sections"][0], data.comparison.groups[0]
    assert section["sizes"] == [8, 1 << 10, 1 << 16, 1 << 22]
    assert section["lower"] is True
    assert found["sections"][1]["lower"] is False
    size, value, ratio, low, high, call, rounds, needed = section["groups"][0]["cells"][2]
    cell = group.cells[2]
    assert (size, call, rounds, needed) == (cell.size, "f", 6, None)
    assert [value, ratio, low, high] == pytest.approx(
        [cell.value, cell.ratio, cell.low, cell.high], rel=1e-4
    )


def test_what_is_not_finite_is_null() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    cells = (replace(group.cells[0], ratio=float("inf"), low=float("nan")), *group.cells[1:])
    bad = replace(data.comparison, groups=(replace(group, cells=cells),))
    assert figures(ReportData(bad))["sections"][0]["groups"][0]["cells"][0][2:4] == [None, None]


def test_the_interval_of_a_median_is_the_one_of_the_tables() -> None:
    """Ranks of the 95 % interval of a median for small n (Conover; also NIST handbook 7.2.6)."""
    ranks = {6: (1, 6), 8: (1, 8), 9: (2, 8), 12: (3, 10), 20: (6, 15), 30: (10, 21)}
    for n, (low, high) in ranks.items():
        assert median_interval([float(v) for v in range(n, 0, -1)]) == (low, high)
    assert median_interval([1.0] * 5) is None
    assert median_interval([]) is None


def test_families_share_a_hue_and_members_differ() -> None:
    names = ["openmpi@5/a", "openmpi@5/b", "mpich@5/a", "eessi-2025", "eessi-2026"]
    styles = labels.styles(names)
    assert styles["openmpi@5/a"][0] == styles["openmpi@5/b"][0] != styles["mpich@5/a"][0]
    assert len(set(styles.values())) == len(names)
    assert labels.short(["a@1/x", "b@1/x"]) == {"a@1/x": "a x", "b@1/x": "b x"}
    assert labels.short(["a@1/x", "a@2/x"]) == {"a@1/x": "a@1/x", "a@2/x": "a@2/x"}


def test_the_baseline_is_one_of_the_names() -> None:
    assert BASELINE in figures(small_data())["names"]
