"""`mpigraft results`: what the store holds, as a document and at 80 columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import mpigraft
from mpigraft.cli import main
from mpigraft.core.model import (
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    Finding,
    Kind,
    LaunchRecord,
    LaunchState,
    Level,
    Measurement,
    Origin,
    Peer,
    Proof,
    ProofStatus,
)
from mpigraft.core.serialize import canonical, plain
from mpigraft.report import store_document
from mpigraft.store import Store
from tests.builders.messages import matches, shows
from tests.builders.outputs import assert_output
from tests.builders.records import CONDITIONS, add_campaign

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/results.json").read_text())
OLIVIA = Path(__file__).parents[2] / "data/olivia"
NIGHTLY = CampaignRecord(
    "11111111-1111-4111-8111-111111111111", "nightly", "2026-02-03T04:05:06+00:00", Origin.RUN,
    7, 6, "k1", "{}", "0.1",
)  # fmt: skip
OB1 = "openmpi@5.0.11/ob1-sm"
NOISY = Finding(Level.WARNING, "unbound", "rank 0 may run anywhere " * 9, "why", "mend")
WRONG = Finding(Level.ERROR, "LNX-02", "asked for lnx, got ob1")
PROOF = (
    Proof(Peer.ON_NODE, Kind.P2P, ProofStatus.CONTRADICTED, "sm", "btl: sm \u00e9 " + "x" * 150),
    Proof(Peer.OFF_NODE, Kind.COLLECTIVE, ProofStatus.NO_EVIDENCE, "", ""),
)

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command's output, with the exit code that is expected of it."""

    def start(*words: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main.main(["--store", str(tmp_path / "store"), *words])
        assert (ended.value.code or 0) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return start


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One run campaign: a proven and a contradicted configuration, good and bad launches."""
    store = Store(tmp_path / "store")
    provenance = '{"environment":[{"name":"A"}],"mpi":"openmpi@5.0.11","version":"5.0.11"}'
    launch = LaunchRecord("l0", NIGHTLY.id, "a0", "k1", "1x2", 0, 0, 0, "2026-02-03T04:06:00Z",
                          1.0, 0, LaunchState.OK, (NOISY,))  # fmt: skip
    values = [Measurement(Benchmark("native", "latency"), "latency", 8, 1.0)]
    with store.writer() as writer:
        names = {"k2": "openmpi@5.0.11/ofi-lnx", "k1": OB1}
        add_campaign(writer, NIGHTLY, names, provenance)
        proven = replace(PROOF[0], standing=ProofStatus.PROVEN)
        writer.add_evidence(EvidenceRecord(NIGHTLY.id, "k1", "1x2", Evidence(
            "ob1-sm", "ob1-sm", (proven,), (), (), (("lo", 4096),))))  # fmt: skip
        writer.add_evidence(EvidenceRecord(NIGHTLY.id, "k2", "1x2", Evidence(
            "ofi-lnx", "ob1-sm", PROOF, (WRONG,), (), ok=False)))  # fmt: skip
        writer.add_launch(launch, values, {})
        writer.add_launch(replace(launch, id="l1", round=1), values, {})
        launch = replace(launch, conditions=CONDITIONS)
        bad = replace(launch, id="l2", configuration="k2", state=LaunchState.MISMATCH,
                      findings=(NOISY, WRONG))  # fmt: skip
        writer.add_launch(bad, [], {})
    return store


def document(text: str) -> Any:
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA, format_checker=jsonschema.FormatChecker())
    return found


def test_list_names_every_campaign(run: Run, store: Store) -> None:
    run("import", str(OLIVIA / "2025-cray-mpich-8.1.32.bibw.txt"), "--configuration", "x")
    campaigns = document(run("results", "list", "--json"))["campaigns"]
    assert [(c["name"], c["origin"], c["baseline"]) for c in campaigns] == [
        ("nightly", "run", OB1),
        ("import", "import", "x"),
    ]
    assert [(c["rounds"], c["configurations"], c["launches"]) for c in campaigns] == [
        (6, 2, 3), (1, 1, 1)
    ]  # fmt: skip
    (line,) = (x for x in run("results", "list").splitlines() if NIGHTLY.name in x)
    assert_output("results/list", line)


def test_spare_rounds_are_shown_as_rounds_that_were_added(run: Run, store: Store) -> None:
    spare = {"planned": 6, "rounds": 8, "at": "2026-01-02T03:04:05+00:00"}
    longer = replace(NIGHTLY, rounds=8, plan=canonical({"spare": spare}))
    with store.writer() as writer:
        writer.add_campaign(longer)
    (shown,) = document(run("results", "list", "--json"))["campaigns"]
    assert (shown["rounds"], shown["extensions"]) == (8, [spare])
    assert shows(run("results", "show", "nightly"), "6 to 8 rounds")


def test_show_has_the_own_bytes_of_ranks(run: Run, store: Store) -> None:
    counted = (("lo", "netdev"), ("e0", "netdev"))
    found = Evidence("ob1-tcp", "tcp", (PROOF[0],), (), (), (("lo", 4096), ("e0", 9)),
                     counters=counted, payload=4000, own=(("lo", 4001),))  # fmt: skip
    with store.writer() as writer:
        writer.add_evidence(EvidenceRecord(NIGHTLY.id, "k1", "1x4", found))
    good = document(run("results", "show", "nightly", "--json"))["configurations"][0]
    assert [(w["interface"], w["own"]) for w in good["wire"]] == [
        ("lo", None), ("lo", 4001), ("e0", 0)
    ]  # fmt: skip
    assert_output("results/bytes", run("results", "show", "nightly", "--full"))


def test_list_of_an_empty_store_is_no_error(run: Run, tmp_path: Path) -> None:
    assert document(run("results", "list", "--json"))["campaigns"] == []
    assert_output("results/none", run("results", "list"), TMP=tmp_path)
    assert matches(run("results", "show", code=3), "store-empty")


def test_show_has_request_proof_findings_and_provenance(run: Run, store: Store) -> None:
    told = document(run("results", "show", "nightly", "--json"))
    good, bad = told["configurations"]
    assert [x["conditions"] for x in told["launches"]] == [None, plain(CONDITIONS), None]
    assert {x["configuration"] for x in told["launches"]} == {good["key"], bad["key"]}
    assert (good["conditions"], bad["conditions"]["launches"]) == (None, 1)
    assert bad["conditions"]["others"] == [0.05, 0.05]
    assert (good["id"], good["baseline"], good["proven"]) == (OB1, True, True)
    assert good["requested"] == good["ran"] == "ob1-sm"
    assert good["wire"] == [
        {"layout": "1x2", "interface": "lo", "bytes": 4096, "counter": "", "named": False,
         "payload": 0, "own": None}
    ]  # fmt: skip
    assert good["launches"] == {"ok": 2}
    assert [(f["code"], f["times"]) for f in good["findings"]] == [("unbound", 2)]
    assert (bad["requested"], bad["ran"], bad["proven"]) == ("ofi-lnx", "ob1-sm", False)
    assert [(p["layout"], p["standing"]) for p in bad["proof"]] == [
        ("1x2", "contradicted"), ("1x2", "no evidence")
    ]  # fmt: skip
    assert [(f["code"], f["times"]) for f in bad["findings"]] == [("LNX-02", 2), ("unbound", 1)]
    assert bad["launches"] == {"mismatch": 1}
    assert bad["provenance"]["environment"] == [{"name": "A"}]


def test_an_unrequested_lane_is_marked(run: Run, store: Store) -> None:
    proof = Proof(Peer.ON_NODE, Kind.ONE_SIDED, ProofStatus.PROVEN, "sm", "osc: sm")
    told = Finding(Level.WARNING, "lane-other", "one-sided on-node went by sm, not by ob1-tcp")
    other = replace(PROOF[0], standing=ProofStatus.PROVEN, lane="tcp")
    evidence = Evidence("ob1-tcp", "tcp", (other, proof), (told,), ())
    with store.writer() as writer:
        writer.add_evidence(EvidenceRecord(NIGHTLY.id, "k1", "2x1", evidence))
    good, _ = document(run("results", "show", "--json"))["configurations"]
    marked = [(p["layout"], p["kind"]) for p in good["proof"] if p["unrequested"]]
    assert marked == [("2x1", "one-sided")]
    assert_output("results/unrequested", run("results", "show", "--full"))


def test_lanes_that_nothing_used_share_a_row(run: Run, store: Store) -> None:
    idle = tuple(Proof(Peer.SELF, kind, ProofStatus.NOT_EXERCISED, "", "") for kind in Kind)
    proof = Proof(Peer.ON_NODE, Kind.P2P, ProofStatus.PROVEN, "sm", "btl: sm")
    with store.writer() as writer:
        ran = Evidence("ob1-sm", "sm", (*idle, proof), (), ())
        writer.add_evidence(EvidenceRecord(NIGHTLY.id, "k1", "2x1", ran))
    assert_output("results/unused", run("results", "show", "--full"))


def test_home_folders_are_hidden(run: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/cluster/h/ann")
    told = '{"libmpi":"/cluster/h/ann/mpi/lib/libmpi.so.40"}'
    with store.writer() as writer:
        writer.add_configuration(ConfigurationRecord(NIGHTLY.id, "k3", "mine", told))
    for words in (("--json",), ("--full",)):
        text = run("results", "show", *words)
        assert "~/mpi/lib/libmpi.so.40" in text
        assert "ann/" not in text


def test_show_reads_at_80_columns(run: Run, store: Store) -> None:
    for words, name in (((), "results/answer"), (("--full",), "results/show")):
        text = run("results", "show", *words)
        assert max(map(len, text.splitlines())) <= 80
        assert_output(name, text)


def test_show_is_one_screen(run: Run, store: Store) -> None:
    lanes = ((Kind.P2P, "tcp (e0)"), (Kind.ONE_SIDED, "sm"), (Kind.COLLECTIVE, "tcp (e0)"))
    proofs = [Proof(Peer.ON_NODE, kind, ProofStatus.PROVEN, lane, "") for kind, lane in lanes]
    proven = Evidence("ob1-sm", "lanes", tuple(proofs), (), ())
    proofs = [replace(p, lane="vader" if p.kind != Kind.ONE_SIDED else "") for p in proofs]
    unknown = replace(proven, proof=tuple(proofs))
    with store.writer() as writer:
        for number in range(60):
            key = f"x{number}"
            told = ConfigurationRecord(NIGHTLY.id, key, f"openmpi@5/{number}-" + "x" * 70, "{}")
            writer.add_configuration(told)
            kinds = (Finding(Level.WARNING, f"kind{number % 3}", "what was seen " * 11),)
            evidence = replace(unknown if number % 2 else proven, findings=kinds, ok=number > 2)
            writer.add_evidence(EvidenceRecord(NIGHTLY.id, key, "1x2", evidence))
    lines = run("results", "show").splitlines()
    assert len(lines) <= 40
    assert shows("\n".join(lines), "58 of 62 configurations", "openmpi@5.0.11/ofi-lnx")
    assert shows(lines, "p2p/collective tcp, one-sided sm")
    assert shows(lines, "vader (one-sided not shown)")
    assert shows(lines, "more: --full")


def test_a_campaign_is_found_by_its_file(run: Run, store: Store) -> None:
    (path,) = store.folder.glob("*.sqlite")
    shown = run("results", "show", NIGHTLY.id)
    for name in (path.stem, path.stem[:10], path.name, str(path)):
        assert run("results", "show", name) == shown
    with store.writer() as writer:
        for number in (2, 3):
            other = replace(NIGHTLY, id=str(number) * 8 + NIGHTLY.id[8:], name=f"other{number}")
            add_campaign(writer, other, {"k1": OB1}, "{}")
    (second,) = {*store.folder.glob("*.sqlite")} - {path}
    refusal = run("results", "show", second.stem, code=2)
    assert matches(refusal, "campaign-not-one", word=second.stem, known="other2")
    assert NIGHTLY.name not in refusal


def test_show_names_guest_and_engine(run: Run, store: Store) -> None:
    told = {"guest": {"name": "app.sif", "digest": "ab" * 32, "engine": "bwrap", "os": ""}}
    with store.writer() as writer:
        told_as = ConfigurationRecord(NIGHTLY.id, "k3", "openmpi@5/ucx@app.sif", json.dumps(told))
        writer.add_configuration(told_as)
    assert_output("results/guest", run("results", "show", "nightly", "--full"))


def test_an_import_has_no_evidence_and_does_not_pass(run: Run) -> None:
    run("import", str(OLIVIA / "2025-cray-mpich-8.1.32.bibw.txt"), "--configuration", "cray")
    (only,) = document(run("results", "show", "--json"))["configurations"]
    assert (only["requested"], only["ran"], only["proven"]) == ("cray", "no evidence", False)
    assert (only["proof"], only["buffers"], only["layouts"]) == ([], "cuda", ["unknown"])
    assert shows(run("results", "show", "--full"), "proof", ProofStatus.NO_EVIDENCE)
    assert shows(run("results", "show"), "cray", ProofStatus.NO_EVIDENCE)


def test_a_run_without_evidence_is_no_pass(run: Run, tmp_path: Path) -> None:
    with Store(tmp_path / "store").writer() as writer:
        add_campaign(writer, NIGHTLY, {"k1": OB1}, "{}")
    assert matches(run("results", "show", code=6), "nothing-proven")


def test_a_campaign_that_is_not_there_is_named(run: Run, store: Store) -> None:
    assert matches(run("results", "show", "weekly", code=2), "campaign-not-one", word="weekly")
    near = run("results", "show", "nigthly", code=2)
    assert matches(near, "campaign-not-one", near="did you mean nightly")
    wrong = f"{NIGHTLY.id[:7]}0"
    near = run("results", "show", wrong, code=2)
    assert matches(near, "campaign-not-one", near=f"did you mean {NIGHTLY.id[:8]}")


def test_show_names_a_damaged_store_file(run: Run, store: Store) -> None:
    broken = store.folder / "broken.sqlite"
    broken.write_bytes(b"no database" * 100)
    assert document(run("results", "show", "--json"))["findings"]
    assert all(broken.name in run("results", what) for what in ("show", "list"))


@pytest.mark.parametrize("drop", ["requested", "ran", "proof", "findings", "provenance"])
def test_the_schema_can_say_no(run: Run, store: Store, drop: str) -> None:
    told = document(run("results", "show", "--json"))
    del told["configurations"][0][drop]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told, SCHEMA)


def test_a_finding_of_many_launches_is_counted_once(store: Store) -> None:
    """What differs from launch to launch is evidence, and the first one's is shown."""
    far = Finding(Level.WARNING, "samples-scattered", "native:allreduce: far", evidence=("8 B",))
    launches = [replace(x, findings=(far,)) for x in store.launches(NIGHTLY.id)]
    launches[1] = replace(launches[1], findings=(replace(far, evidence=("64 B",)),))
    with store.writer() as writer:
        for number, launch in enumerate(launches):
            writer.add_launch(replace(launch, id=f"m{number}", round=9 + number), [], {})
    rows = store_document.configurations(store, store.campaign(NIGHTLY.id))
    told = [f for row in rows for f in row["findings"] if f["code"] == "samples-scattered"]
    assert sorted(f["times"] for f in told) == [1, 2]
    assert all(f["evidence"] in (["8 B"], ["64 B"]) for f in told)
