"""The store gives back what was written, of every version, and no secret reaches the disk."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    LaunchState,
    Level,
    Measurement,
    Origin,
    ValueRow,
)
from mpigraft.store import Store, file
from tests.builders.records import (
    ALLOCATION,
    CAMPAIGN,
    CONDITIONS,
    INDEXED,
    evidence,
    launch,
    measured,
)
from tests.data.store import make

KEPT = Path(__file__).parents[2] / "data" / "store"
SECRET = 'ghp_"quoted"_and_höly'


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "results")
    full = Measurement(
        INDEXED,
        "bandwidth",
        8,
        5.5,
        5.6,
        5.0,
        6.0,
        5.9,
        6.0,
        1000,
        True,
        (5.0, 5.5, math.nan),
        0.25,
    )
    asked = ConfigurationRecord(CAMPAIGN.id, "k0", "openmpi@5.0.11/ob1-sm", '{"a":1}', "cuda")
    proof = EvidenceRecord(CAMPAIGN.id, "k0", "1x2", evidence("ob1-sm"))
    with store.writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_allocation(ALLOCATION)
        writer.add_configuration(asked)
        writer.add_evidence(proof)
        stored = writer.add_launch(
            launch(conditions=CONDITIONS), [full], {"stdout": b"\0\xff out", "stderr": b""}
        )
    assert store.campaigns() == (CAMPAIGN,)
    assert store.allocations(CAMPAIGN.id) == (ALLOCATION,)
    assert store.configurations(CAMPAIGN.id) == (asked,)
    assert store.evidence(CAMPAIGN.id) == (proof,)
    assert store.launches(CAMPAIGN.id) == (stored,)
    (back,) = store.measurements(stored.id)
    assert replace(back, samples=()) == replace(full, samples=())
    assert back.samples[:2] == (5.0, 5.5)
    assert math.isnan(back.samples[2])
    key = "native:bw,datatype=indexed"
    row = ValueRow("k0", "1x2", "a1", 0, 0, key, "bandwidth", 8, 5.5, "cuda", 0.25)
    assert store.values(CAMPAIGN.id) == [row]
    assert [store.artefact(sha) for _, sha in stored.artefacts] == [b"\0\xff out", b""]
    assert store.findings == ()


def test_later_evidence_takes_the_place_of_earlier(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for ran in ("ob1-sm", "ob1-tcp", "ofi-tcp"):
        with store.writer() as writer:
            writer.add_evidence(EvidenceRecord(CAMPAIGN.id, "k0", "1x2", evidence(ran)))
    assert [e.evidence.ran for e in store.evidence(CAMPAIGN.id)] == ["ofi-tcp"]


def test_what_cannot_be_compared_is_kept_but_gives_no_value(tmp_path: Path) -> None:
    store = Store(tmp_path)
    wrong = [replace(measured(1.0)[0], valid=False), replace(measured(1.0)[0], value=math.nan)]
    with store.writer() as writer:
        writer.add_launch(launch(0), [*wrong, *measured(3.0)], {})
        writer.add_launch(launch(1, state=LaunchState.MISMATCH), measured(4.0), {})
        writer.add_launch(launch(2, state=LaunchState.FAILED), measured(5.0), {})
    assert [row.value for row in store.values(CAMPAIGN.id)] == [3.0, 5.0]
    assert len(store.launches(CAMPAIGN.id)) == 3


def test_a_copied_file_does_not_count_twice(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_launch(launch(), measured(1.0, 2.0), {})
    shutil.copy(writer.path, tmp_path / f"backup{file.SUFFIX}")
    assert len(store.values(CAMPAIGN.id)) == 2
    assert len(store.launches(CAMPAIGN.id)) == 1
    assert len(store.campaigns()) == 1


def test_a_writer_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    with Store(tmp_path).writer():
        pass
    assert list(tmp_path.iterdir()) == []


def campaigns(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    with store.writer() as writer:
        for day, (ident, name) in enumerate((("aa10", "x"), ("aa20", "y"), ("bb30", "x")), 1):
            created = f"2026-01-0{day}T00:00:00+00:00"
            writer.add_campaign(replace(CAMPAIGN, id=ident, name=name, created=created))
    return store


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, "bb30"),
        ("aa20", "aa20"),
        ("x", "bb30"),
        ("y", "aa20"),
        ("aa1", "aa10"),
        ("b", "bb30"),
    ],
)
def test_a_campaign_is_selected_by_id_name_or_prefix(
    tmp_path: Path, name: str | None, expected: str
) -> None:
    assert campaigns(tmp_path).campaign(name).id == expected


@pytest.mark.parametrize("name", ["aa", "cc"])
def test_no_or_several_campaigns_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=name) as caught:
        campaigns(tmp_path).campaign(name)
    assert "aa10" in caught.value.fix


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no results") as caught:
        Store(tmp_path / "none").campaign()
    assert "--store" in caught.value.fix


def test_no_secret_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_JOB_TOKEN", SECRET)
    store = Store(tmp_path)
    said = Finding(Level.ERROR, "launch-failed", f"it printed {SECRET}", SECRET, SECRET)
    document = json.dumps({"env": {"X": SECRET}, "list": [SECRET], SECRET: 1})
    printed = {
        "stdout": f"token={SECRET}\n".encode() + b"\xff\0",
        "json": document.encode(),
        "plain": json.dumps(SECRET, ensure_ascii=False).encode(),
    }
    with store.writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_allocation(replace(ALLOCATION, machine=document))
        writer.add_configuration(ConfigurationRecord(CAMPAIGN.id, "k0", "an id", document))
        told = replace(evidence(SECRET), findings=(said,))
        writer.add_evidence(EvidenceRecord(CAMPAIGN.id, "k0", "1x2", told))
        stored = writer.add_launch(launch(findings=(said,)), [], printed)
    monkeypatch.delenv("CI_JOB_TOKEN")
    db = sqlite3.connect(writer.path)
    everything = "\n".join(db.iterdump()).encode() + writer.path.read_bytes()
    db.close()
    everything += b"".join(store.artefact(sha) for _, sha in stored.artefacts)
    for form in (SECRET, json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]):
        assert form.encode() not in everything
    assert dict(stored.artefacts)["stdout"]
    assert store.artefact(dict(stored.artefacts)["stdout"]).endswith(b"\xff\0")
    provenance = json.loads(store.configurations(CAMPAIGN.id)[0].provenance)
    assert provenance["env"]["X"] == "[struck out]"


@given(st.binary(max_size=200))
def test_redaction_leaves_other_bytes_as_they_are(data: bytes) -> None:
    assert file.redacted_bytes(data) == data


@given(st.lists(st.floats(allow_nan=False), max_size=40))
def test_samples_keep_every_bit(samples: list[float]) -> None:
    assert file.unpack(file.pack(samples)) == tuple(samples)


def test_good_evidence_does_not_hide_what_other_nodes_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    wrong = replace(evidence("other"), ok=False)
    a, b, again = (replace(ALLOCATION, id=i, hosts=(h,))
                   for i, h in (("a", "n1"), ("b", "n2"), ("again", "n1")))  # fmt: skip
    proofs = [("a", wrong), ("b", evidence("ob1-sm"))]
    with store.writer() as writer:
        for allocation in (a, b, again):
            writer.add_allocation(allocation)
        for where, told in proofs:
            writer.add_evidence(EvidenceRecord(CAMPAIGN.id, "k0", "1x2", told, where))
    assert [e.evidence.ok for e in store.evidence(CAMPAIGN.id)] == [False]
    assert len(store.evidence(CAMPAIGN.id, every=True)) == 2
    with store.writer() as writer:  # the same nodes, looked at again
        writer.add_evidence(EvidenceRecord(CAMPAIGN.id, "k0", "1x2", evidence("ob1-sm"), "again"))
    assert [e.evidence.ok for e in store.evidence(CAMPAIGN.id)] == [True]
    assert len(store.evidence(CAMPAIGN.id, every=True)) == 3


def test_the_end_of_an_allocation_takes_the_place_of_its_begin(tmp_path: Path) -> None:
    store = Store(tmp_path)
    begun = replace(ALLOCATION, hosts=("n1", "n2"), job="42", share="1/2", steps=9)
    with store.writer() as writer:
        writer.add_allocation(begun)
        assert store.allocations(CAMPAIGN.id) == (begun,)
        writer.add_allocation(replace(begun, ended="2026-01-02T04:00:00+00:00"))
    assert [a.ended != "" for a in store.allocations(CAMPAIGN.id)] == [True]
    assert store.allocations(CAMPAIGN.id)[0].nodes == "n1,n2"


def test_every_kept_version_is_read(tmp_path: Path) -> None:
    """Made by `python tests/data/store/make.py`; the files of older versions stay as they are."""
    names = {path.stem: int(path.stem[7]) for path in KEPT.glob("version*.sqlite")}
    assert {*names.values()} == {*range(1, file.VERSION + 1)}
    for name, version in names.items():
        folder = tmp_path / name
        folder.mkdir()
        shutil.copy(KEPT / f"{name}.sqlite", folder)
        store = Store(folder)
        campaign = store.campaign()
        assert (campaign.name, campaign.rounds, campaign.origin) == ("kept", 2, Origin.RUN)
        assert [c.id for c in store.configurations(campaign.id)] == ["openmpi@5.0.11/ob1-sm"]
        told = store.evidence(campaign.id)[0].evidence
        assert told.proof[0].lane == "sm"
        assert told.own is None  # nobody asked the ranks for it then
        assert told.ranks == (() if name in ("version1", "version2") else make.RANKS)
        assert store.allocations(campaign.id)[0].nodes == ("n1" if version == 1 else "n1,n2")
        assert [j.job for j in store.jobs(campaign.id)] == ([] if version == 1 else ["42"])
        assert len(store.submissions()) == (version > 1)
        assert [r.value for r in store.values(campaign.id)] == [0.5, 0.625, 0.75, 0.875]
        first = store.launches(campaign.id)[0]
        assert first.findings[0].code == "unbound"
        assert store.artefact(dict(first.artefacts)["stdout"]) == b"kept output\n"
        assert store.measurements(first.id)[0].samples == (0.5, 0.25)
        assert first.conditions == (make.CONDITIONS if version > 3 else None)
        steps = [r.resolution for r in store.values(campaign.id)]
        assert steps == ([None, 0.001] * 2 if version > 3 else [None] * 4)
        # Until version 4 the end of a launch was stored as its start; each took a second.
        at = ["00:00:00", "00:00:01"] if version > 3 else ["23:59:59", "00:00:00"]
        launches = store.launches(campaign.id)
        assert [x.started[11:19] for x in launches] == at
        ends = [datetime.fromisoformat(x.ended).timestamp() for x in launches]
        begins = [datetime.fromisoformat(x.started).timestamp() for x in launches]
        assert [e - b for b, e in zip(begins, ends, strict=True)] == [1.0, 1.0]
        programs = ["", "osu:latency"] if version > 4 else ["", ""]
        assert [x.program for x in launches] == programs
        assert store.findings == ()


def test_an_older_file_is_migrated_in_memory_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(KEPT / "version1.sqlite", tmp_path))
    before = path.read_bytes()
    step = "UPDATE campaign SET name = name || ' and migrated'"
    monkeypatch.setattr(file, "MIGRATIONS", {1: step, 2: step})
    monkeypatch.setattr(file, "VERSION", 3)
    assert Store(tmp_path).campaign().name == "kept and migrated and migrated"
    assert path.read_bytes() == before


def test_a_newer_file_is_named(tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / "version1.sqlite", tmp_path))
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {file.VERSION + 1}")
    db.close()
    store = Store(tmp_path)
    assert store.campaigns() == ()
    assert "newer" in store.findings[0].message
    with pytest.raises(MissingError, match="newer"):
        store.campaign()


def test_a_campaign_that_stopped_before_its_first_launch_hides_no_other(tmp_path: Path) -> None:
    """Neither as the latest nor by its name; its id finds it, and so does what goes on with it."""
    store = campaigns(tmp_path)
    with store.writer() as writer:
        writer.add_launch(replace(launch(), id="x1", campaign="aa10"), [], {})
    assert store.campaign().id == store.campaign("x").id == "aa10"
    assert store.campaign(planned=True).id == store.campaign("x", planned=True).id == "bb30"
    assert store.campaign("y").id == "aa20"
    assert store.campaign("bb30").id == "bb30"
    refused = replace(evidence("ob1-sm"), ok=False)
    for key, last in (("other", "aa10"), (CAMPAIGN.baseline, "bb30")):
        with store.writer() as writer:
            writer.add_evidence(EvidenceRecord("bb30", key, "1x2", refused, "a1"))
        assert store.campaign().id == last
    with store.writer() as writer:  # all that it would have measured was refused
        writer.add_allocation(replace(ALLOCATION, campaign="bb30", ended=ALLOCATION.started))
    assert store.campaign().id == store.campaign("x").id == "bb30"
