"""What must not get into an HTML report, and the figures that its charts draw."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from rich.console import Console

from mpigraft.core.model import (
    AllocationRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    Kind,
    Level,
    MappedLibrary,
    Peer,
    Proof,
    ProofStatus,
)
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import curves, median_interval
from mpigraft.report.headline import headline
from mpigraft.report.html import page as html
from mpigraft.report.json import render_json
from mpigraft.report.markdown import render_markdown
from mpigraft.report.software import guest_roles
from mpigraft.report.terminal import print_answer, print_report
from mpigraft.report.wording import labels
from tests.builders.html import Page, body_of
from tests.builders.messages import shows
from tests.builders.reports import BASELINE, olivia, report_of, small_data

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


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
        proof=(Proof(Peer.ON_NODE, Kind.P2P, ProofStatus.PROVEN, EVIL, EVIL),),
    )  # fmt: skip
    told = json.dumps({EVIL: EVIL, "environment": [{"name": EVIL, "value": EVIL}], "x": [[EVIL]]})
    machine = json.dumps({"hostname": EVIL, "cpu": {"model": EVIL}, "gpus": [{"name": EVIL}]})
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
    text = html.render_html(poisoned())
    page = Page(text)
    assert len(page.all("script")) == 2
    assert not page.all("img")
    assert not [a for _, a in page.elements if any(n.startswith("on") for n in a)]
    assert EVIL not in text
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
    text = html.render_html(data)
    assert secret not in text
    assert "in the clear" not in text
    assert "[struck out]" in text


def test_no_home_gets_in(monkeypatch: pytest.MonkeyPatch) -> None:
    home, below = "/cluster/h/ann", "mpi/lib/libmpi.so.40"
    monkeypatch.setenv("HOME", home)
    data = small_data()
    record, path = data.evidence[0], f"{home}/{below}"
    library = MappedLibrary(path, 1, 2)
    ranks = tuple(replace(r, libraries=(library,)) for r in record.evidence.ranks)
    group = replace(data.comparison.groups[0], configuration=f"mine@{path}")
    text = html.render_html(
        replace(
            data,
            comparison=replace(data.comparison, groups=(group,), summary=(path,)),
            configurations=(ConfigurationRecord("c", "k", path, json.dumps({"libmpi": path})),),
            evidence=(replace(record, evidence=replace(record.evidence, ranks=ranks)),),
        )
    )
    assert home not in text
    assert f"~/{below}" in text


def test_every_device_of_a_machine_has_its_line() -> None:
    data = small_data()
    nics = [{"name": f"eth{n}", "state": "up"} for n in range(2)]
    seen = json.dumps({"hostname": "n1", "fabrics": nics, "gpus": []})
    text = body_of(replace(data, allocations=(replace(data.allocations[0], machine=seen),)))
    lines = "".join(f"<div>{nic['name']} {nic['state']}</div>" for nic in nics)
    for name, due in (("network", lines), ("GPUs", "<div>none</div>")):
        assert f"<dt>{name}</dt><dd>{due}</dd>" in text


@pytest.mark.parametrize("broken", ["", "[]", "{", '"x"', "null"])
def test_a_record_that_is_no_object_is_shown_and_fails_nothing(broken: str) -> None:
    data = small_data()
    data = replace(
        data,
        campaign=replace(data.campaign, plan=broken),
        configurations=(ConfigurationRecord("c", "k", "one", broken),),
        allocations=(replace(data.allocations[0], machine=broken),),
    )
    Page(html.render_html(data))


# ------------------------------------------------------------------ figures


def figures(data: ReportData) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(curves(data)))
    return found


def test_the_figures_are_those_of_the_comparison() -> None:
    data = small_data()
    found = figures(data)
    section, group = found["sections"][0], data.comparison.groups[0]
    assert section["sizes"] == [8, 1 << 10, 1 << 16, 1 << 22]
    assert section["lower"] is True
    assert found["sections"][1]["lower"] is False
    value, ratio, low, high, call, rounds = section["groups"][0]["cells"][2]
    cell = group.cells[2]
    assert (section["sizes"][2], call, rounds) == (cell.size, "f", 6)
    assert cell.rounds_needed is None
    assert [value, ratio, low, high] == pytest.approx(
        [cell.value, cell.ratio, cell.low, cell.high], rel=1e-4
    )


def test_what_is_not_finite_is_null() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    cells = (replace(group.cells[0], ratio=float("inf"), low=float("nan")), *group.cells[1:])
    bad = replace(data.comparison, groups=(replace(group, cells=cells),))
    assert figures(report_of(bad))["sections"][0]["groups"][0]["cells"][0][1:3] == [None, None]


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


def test_the_rows_of_a_stack_are_told_apart_in_figures() -> None:
    """Outside, injected and the stack's own: a hue each, and names that a small panel has room
    for."""
    rows = {
        "openmpi@5.0.11/ofi-lnx": "ofi-lnx",
        "openmpi@5.0.11/ob1-sm": "ob1-sm",
        "openmpi@5.0.11/ofi-lnx@2023.06-zen4": "ofi-lnx@2023.06-zen4",
        "openmpi@5.0.11/ob1-sm@2023.06-zen4": "ob1-sm@2023.06-zen4",
        "2023.06-zen4:openmpi@4.1.6/ofi-lnx": "2023.06-zen4:ofi-lnx",
        "2023.06-zen4:openmpi@4.1.6/ob1-sm": "2023.06-zen4:ob1-sm",
    }
    assert labels.short([*rows]) == rows
    styles = labels.styles([*rows])
    hues, variants = zip(*(styles[name] for name in rows), strict=True)
    assert hues[::2] == hues[1::2]
    assert len({*hues}) == 3
    assert hues[0] == labels.FAMILIES.index("openmpi")
    assert variants == variants[:2] * 3
    (name, *_) = labels.short(["a.sif:mpich@4/ucx", "b@2/ucx"]).values()
    assert name.split() == ["a.sif:mpich", "ucx"]


def test_the_baseline_is_one_of_the_names_whose_styles_are_those_of_the_key() -> None:
    data = small_data()
    group = replace(data.comparison.groups[0], configuration="a.sif:openmpi@4.1.6/ob1-sm")
    groups = (group, *data.comparison.groups[1:])
    names = figures(replace(data, comparison=replace(data.comparison, groups=groups)))["names"]
    assert BASELINE in names
    for name, (hue, variant) in labels.styles([*names]).items():
        assert (names[name]["hue"], names[name]["dash"]) == (hue, labels.dash(variant))


# ------------------------------------------------------------------ a page for others


OF_STACK = "software/OpenMPI/4.1.6/lib/libmpi.so.40"
OF_STORE = ".mpigraft-system/generations/1/lib/libmpi.so.40"


def stack_data() -> ReportData:
    """The three rows of a stack, on a host of a site."""
    data = small_data()
    native, own, injected, other = data.configurations

    def of(record: ConfigurationRecord, replaced: str, libmpi: str) -> ConfigurationRecord:
        guest = {"kind": "stack", "name": "2023.06-zen3", "replace": replaced}
        facts = {**json.loads(record.provenance), "guest": guest, "libmpi": libmpi}
        return replace(record, provenance=json.dumps(facts))

    rows = (
        native,
        of(own, "nothing", f"/cvmfs/e/software/linux/x/{OF_STACK}"),
        of(injected, "mpi", f"/apps/site/rpath_overrides/OpenMPI/{OF_STORE}"),
    )
    machine = replace(data.allocations[0], host="login7", hosts=("login7.site.example",))
    return replace(data, configurations=(*rows, other), allocations=(machine,))


def test_each_row_of_a_stack_says_which_mpi_it_is() -> None:
    data = stack_data()
    page = unescape(html.render_html(data))
    console = Console(width=80, file=io.StringIO())
    print_report(data, console)
    assert isinstance(console.file, io.StringIO)
    (answer, *_) = headline(data)
    assert shows(answer, "(native)", "(injected)") or shows(answer, "(native)", "(own)")
    assert answer in json.loads(render_json(data))["headline"]
    for text in (page, console.file.getvalue(), render_markdown(data)):
        words = " ".join(text.replace("\\", "").replace("\xa0", " ").split())
        assert answer in words
        assert shows(words, "MPI", "2023.06-zen3")
        assert shows(words, "injected (this machine's MPI, in 2023.06-zen3)")
        assert shows(words, "native (this machine's MPI, outside of any guest)")
    assert shows(page, "<h1>Native, own and injected MPI on login7")
    assert shows(page, "<dt>stack</dt><dd>2023.06-zen3</dd>")
    assert shows(page, "<dd>mpich@5.0.1/ofi-tcp, native</dd>")
    named = [one["label"].rpartition(" ")[2] for one in curves(data)["names"].values()]
    assert {*named} == {"native", "own", "injected"}
    assert not guest_roles(small_data())


def test_the_answer_has_a_line_for_each_kind_of_row_below_its_table() -> None:
    """A stack over five transports had fifteen lines of them above its answer."""
    data = stack_data()
    second = replace(data.configurations[0], id="mpich@5.0.1/ucx")
    console = Console(width=80, file=io.StringIO())
    print_answer(replace(data, configurations=(*data.configurations, second)), console)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    (native,) = (line for line in lines if ": native" in line)
    assert shows(native, "mpich@5.0.1/ofi-tcp and 2 more: native (this machine's MPI")
    assert lines.index(native) > next(n for n, line in enumerate(lines) if line.startswith("1x2"))


def test_a_public_page_names_no_host_and_no_folder_of_a_site() -> None:
    data = stack_data()
    inside, outside = html.render_html(data), html.render_html(data, public=True)
    for word in ("login7", "/apps/site", "/cvmfs/e"):
        assert word in inside
        assert word not in outside
    assert all(f"…/{path}" in outside for path in (OF_STORE, OF_STACK))
    assert shows(outside, "<h1>", "1 node")
    assert Page(outside).texts["script"] == Page(inside).texts["script"]  # allowed by their hash


def test_a_public_page_of_an_import_names_the_machine_that_its_user_named() -> None:
    data = olivia()
    plan = json.dumps({"machine": "Olivia"})
    run = replace(data.campaign, plan=plan)
    place = replace(small_data().allocations[0], host="Olivia", hosts=("n7.site.example",))
    public = html.render_html(replace(data, campaign=run, allocations=(place,)), public=True)
    assert shows(public, "Measured on Olivia")
    assert "n7" not in public
