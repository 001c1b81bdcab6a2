"""The store: nothing is lost, nothing half-written, no secret reaches the disk."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft import store_file
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import (
    AllocationRecord,
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
    MappedLibrary,
    Measurement,
    Origin,
    Peer,
    Proof,
    RankRecord,
    Standing,
    ValueRow,
)
from mpigraft.store import Store, Writer

KEPT = Path(__file__).parent.parent / "data" / "store"
SECRET = 'ghp_"quoted"_and_höly'
CAMPAIGN = CampaignRecord(
    "c0ffee00-0000-4000-8000-000000000001", "nightly", "2026-01-02T03:04:05+00:00", Origin.RUN,
    7, 6, "k0", '{"rounds":6}', "0.1",
)  # fmt: skip
ALLOCATION = AllocationRecord("a1", CAMPAIGN.id, "2026-01-02T03:04:06+00:00", "n1", "{}")
LATENCY = Benchmark("native", "latency")
INDEXED = Benchmark("native", "bw", (("datatype", "indexed"),))


def launch(number: int = 0, **changes: object) -> LaunchRecord:
    record = LaunchRecord(
        str(uuid4()), CAMPAIGN.id, ALLOCATION.id, "k0", "1x2", number, 0, 0,
        f"2026-01-02T03:05:{number:02}+00:00", 1.5, 0, LaunchState.OK,
        (Finding(Level.WARNING, "unbound", "rank 0 may run anywhere"),),
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def measured(*values: float, benchmark: Benchmark = LATENCY) -> list[Measurement]:
    return [Measurement(benchmark, "latency", i + 1, v) for i, v in enumerate(values)]


def evidence(ran: str) -> Evidence:
    rank = RankRecord(0, 2, "n1", 11, "Open MPI v5", (0, 1), (MappedLibrary("/lib/m.so", 8, 9),))
    proof = Proof(Peer.ON_NODE, Kind.P2P, Standing.PROVEN, "sm", "btl sm")
    return Evidence("ob1-sm", ran, (proof,), (), (rank,), (("lo", 512),), ok=True)


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "results")
    full = Measurement(
        INDEXED, "bandwidth", 8, 5.5, 5.6, 5.0, 6.0, 5.9, 6.0, 1000, True, (5.0, 5.5, math.nan)
    )
    asked = ConfigurationRecord(CAMPAIGN.id, "k0", "openmpi@5.0.11/ob1-sm", '{"a":1}', "cuda")
    proof = EvidenceRecord(CAMPAIGN.id, "k0", "1x2", evidence("ob1-sm"))
    with store.writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_allocation(ALLOCATION)
        writer.add_configuration(asked)
        writer.add_evidence(proof)
        stored = writer.add_launch(launch(), [full], {"stdout": b"\0\xff out", "stderr": b""})
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
    row = ValueRow("k0", "1x2", "a1", 0, 0, key, "bandwidth", 8, 5.5, "cuda")
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
    shutil.copy(writer.path, tmp_path / f"backup{store_file.SUFFIX}")
    assert len(store.values(CAMPAIGN.id)) == 2
    assert len(store.launches(CAMPAIGN.id)) == 1
    assert len(store.campaigns()) == 1


def test_a_writer_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    with Store(tmp_path).writer():
        pass
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------ which campaign


def campaigns(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    with store.writer() as writer:
        for day, (ident, name) in enumerate((("aa10", "x"), ("aa20", "y"), ("bb30", "x")), 1):
            created = f"2026-01-0{day}T00:00:00+00:00"
            writer.add_campaign(replace(CAMPAIGN, id=ident, name=name, created=created))
    return store


@pytest.mark.parametrize(
    ("wish", "found"),
    [
        (None, "bb30"),
        ("aa20", "aa20"),
        ("x", "bb30"),
        ("y", "aa20"),
        ("aa1", "aa10"),
        ("b", "bb30"),
    ],
)
def test_a_campaign_is_found_by_id_name_or_prefix(
    tmp_path: Path, wish: str | None, found: str
) -> None:
    assert campaigns(tmp_path).campaign(wish).id == found


@pytest.mark.parametrize("wish", ["aa", "cc"])
def test_no_or_several_campaigns_are_named(tmp_path: Path, wish: str) -> None:
    with pytest.raises(UsageError, match=wish) as caught:
        campaigns(tmp_path).campaign(wish)
    assert "aa10" in caught.value.mend


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no results") as caught:
        Store(tmp_path / "none").campaign()
    assert "--store" in caught.value.mend


# ------------------------------------------------------------------ secrets


def test_no_secret_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_JOB_TOKEN", SECRET)
    store = Store(tmp_path)
    said = Finding(Level.ERROR, "launch-failed", f"it printed {SECRET}", SECRET, SECRET)
    document = json.dumps({"env": {"X": SECRET}, SECRET: [SECRET]})
    printed = {
        "stdout": f"token={SECRET}\n".encode() + b"\xff\0",
        "json": document.encode(),
        "plain": json.dumps(SECRET, ensure_ascii=False).encode(),
    }
    with store.writer() as writer:
        writer.add_campaign(replace(CAMPAIGN, name=SECRET, plan=document))
        writer.add_allocation(replace(ALLOCATION, machine=document))
        writer.add_configuration(ConfigurationRecord(CAMPAIGN.id, "k0", SECRET, document))
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
    assert json.loads(store.campaign().plan)["env"]["X"] == "[struck out]"


@given(st.binary(max_size=200))
def test_redaction_leaves_other_bytes_as_they_are(data: bytes) -> None:
    assert store_file.redacted_bytes(data) == data


@given(st.lists(st.floats(allow_nan=False), max_size=40))
def test_samples_keep_every_bit(samples: list[float]) -> None:
    assert store_file.unpack(store_file.pack(samples)) == tuple(samples)


# ------------------------------------------------------------------ damage, versions


def test_a_damaged_file_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    paths = []
    for number in range(4):
        with store.writer() as writer:
            writer.add_campaign(CAMPAIGN)
            writer.add_launch(launch(number), measured(*range(1, 400)), {"stdout": b"x" * 5000})
            paths.append(writer.path)
    paths[0].write_bytes(b"this is no database, and longer than its header " * 20)
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[: len(whole) // 2])
    paths[2].write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    assert {row.round for row in store.values(CAMPAIGN.id)} == {3}
    assert [f.code for f in store.findings] == ["store-file-unreadable"] * 3
    assert {str(p) for p in paths[:3]} == {f.seen.split(" cannot")[0] for f in store.findings}


def test_every_kept_version_is_read(tmp_path: Path) -> None:
    """Made by `python tests/data/store/make.py`; the files of older versions stay as they are."""
    for version in range(1, store_file.VERSION + 1):
        folder = tmp_path / str(version)
        folder.mkdir()
        shutil.copy(KEPT / f"version{version}.sqlite", folder)
        store = Store(folder)
        campaign = store.campaign()
        assert (campaign.name, campaign.rounds, campaign.origin) == ("kept", 2, Origin.RUN)
        assert [c.id for c in store.configurations(campaign.id)] == ["openmpi@5.0.11/ob1-sm"]
        assert store.evidence(campaign.id)[0].evidence.proof[0].lane == "sm"
        assert [r.value for r in store.values(campaign.id)] == [0.5, 0.625, 0.75, 0.875]
        first = store.launches(campaign.id)[0]
        assert first.findings[0].code == "unbound"
        assert store.artefact(dict(first.artefacts)["stdout"]) == b"kept output\n"
        assert store.measurements(first.id)[0].samples == (0.5, 0.25)
        assert store.findings == ()


def test_an_older_file_is_migrated_in_memory_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copy(KEPT / "version1.sqlite", tmp_path))
    before = path.read_bytes()
    step = "UPDATE campaign SET name = name || ' and migrated'"
    monkeypatch.setattr(store_file, "MIGRATIONS", {1: step, 2: step})
    monkeypatch.setattr(store_file, "VERSION", 3)
    assert Store(tmp_path).campaign().name == "kept and migrated and migrated"
    assert path.read_bytes() == before


def test_a_newer_file_is_named(tmp_path: Path) -> None:
    path = Path(shutil.copy(KEPT / "version1.sqlite", tmp_path))
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {store_file.VERSION + 1}")
    db.close()
    store = Store(tmp_path)
    assert store.campaigns() == ()
    assert "newer" in store.findings[0].seen
    with pytest.raises(MissingError, match="newer"):
        store.campaign()


# ------------------------------------------------------------------ kill, full disk, no rights


def write_for_ever(folder: Path, first: int = 0) -> None:
    with Store(folder).writer() as writer:
        for number in range(first, 10**9):
            writer.add_launch(launch(0, round=number), measured(*range(1, 200)), {"o": b"y" * 999})


def test_killed_at_any_moment_loses_no_launch_that_had_ended(tmp_path: Path) -> None:
    for delay in (0.05, 0.11, 0.17):
        child = multiprocessing.get_context("fork").Process(target=write_for_ever, args=(tmp_path,))
        child.start()
        deadline = time.monotonic() + 20
        while not Store(tmp_path).launches(CAMPAIGN.id) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(delay)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    store = Store(tmp_path)
    launches = store.launches(CAMPAIGN.id)
    assert launches
    assert len(store.values(CAMPAIGN.id)) == 199 * len(launches)
    assert store.findings == ()


def test_a_hot_journal_is_rolled_back_even_without_the_right_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of file and journal in the middle of a transaction is what a kill leaves."""
    with Store(tmp_path / "live").writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_launch(launch(0), measured(1.0), {})
        db = sqlite3.connect(writer.path, isolation_level=None)
        db.execute("PRAGMA cache_size = 1")  # spills: the file itself is half-changed
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE launch SET round = 99")
        db.executemany(
            "INSERT INTO artefact VALUES (?, ?)", ((str(i), b"z" * 4000) for i in range(99))
        )
        killed = tmp_path / "killed"
        killed.mkdir()
        for part in (tmp_path / "live").iterdir():
            shutil.copy(part, killed)
        db.execute("ROLLBACK")
        db.close()
    assert len(list(killed.iterdir())) == 2
    open_file = store_file._connect

    def read_only(path: Path) -> sqlite3.Connection:
        mode = "ro" if path.parent == killed else "rw"
        return sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True)

    monkeypatch.setattr(store_file, "_connect", read_only)
    assert [x.round for x in Store(killed).launches(CAMPAIGN.id)] == [0]
    assert len(list(killed.iterdir())) == 2
    monkeypatch.setattr(store_file, "_connect", open_file)
    assert [x.round for x in Store(killed).launches(CAMPAIGN.id)] == [0]


def test_two_writers_at_once_lose_no_rows(tmp_path: Path) -> None:
    def write(first: int) -> None:
        with Store(tmp_path).writer() as writer:
            writer.add_campaign(CAMPAIGN)
            for number in range(first, first + 20):
                writer.add_launch(launch(0, round=number), measured(1.0, 2.0, 3.0), {"o": b"same"})

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=write, args=(100 * i,)) for i in range(3)]
    for child in children:
        child.start()
    while any(child.is_alive() for child in children):
        Store(tmp_path).values(CAMPAIGN.id)  # a reader in between hinders nobody
    assert [child.exitcode for child in children] == [0, 0, 0]
    rounds = {x.round for x in Store(tmp_path).launches(CAMPAIGN.id)}
    assert rounds == {100 * i + n for i in range(3) for n in range(20)}
    assert len(Store(tmp_path).values(CAMPAIGN.id)) == 3 * 60
    assert len(Store(tmp_path).campaigns()) == 1


def test_a_full_disk_is_said_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writer() as writer:
        writer.add_launch(launch(0), measured(1.0), {})
        pages = writer._db.execute("PRAGMA page_count").fetchone()[0]
        writer._db.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(MissingError, match="full") as caught:
            writer.add_launch(launch(1), measured(*range(1, 900)), {"stdout": os.urandom(50_000)})
        assert "free some space" in caught.value.mend
        writer.add_launch(launch(2), measured(2.0), {})
    assert [x.round for x in store.launches(CAMPAIGN.id)] == [0, 2]
    assert [row.value for row in store.values(CAMPAIGN.id)] == [1.0, 2.0]


LIMITED = """
import resource, signal, sys
from pathlib import Path
from test_store_module import launch, measured
from mpigraft.errors import MissingError
from mpigraft.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with Store(Path(sys.argv[1])).writer() as writer:
        for number in range(60):
            writer.add_launch(launch(number % 60), measured(*range(1, 300)), {})
except MissingError as error:
    print(error.code, error.mend)
"""


@pytest.mark.parametrize("limit", [0, 10_000, 500_000])
def test_a_quota_is_said_too(tmp_path: Path, limit: int) -> None:
    """A file size limit makes write(2) itself fail, at creation or later."""
    folder = tmp_path / "results"
    (tmp_path / "test_store_module.py").symlink_to(__file__)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    argv = [sys.executable, "-c", LIMITED, str(folder), str(limit)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("3 "), done
    assert "--store" in done.stdout
    store = Store(folder)
    launches = store.launches(CAMPAIGN.id)
    assert bool(launches) == (limit == 500_000)
    assert len(store.values(CAMPAIGN.id)) == 299 * len(launches)
    assert store.findings == ()


def test_a_store_that_cannot_be_written_is_said_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/self/none")):
        with pytest.raises(MissingError, match="cannot be written") as caught:
            Writer(folder)
        assert "--store" in caught.value.mend


def test_a_read_only_store_is_read_and_refuses_to_be_written() -> None:
    """As a user without rights, whoever runs the test."""
    outer = Path(tempfile.mkdtemp(prefix="mpigraft-", dir="/tmp"))
    folder = outer / "results"
    try:
        with Store(folder).writer() as writer:
            writer.add_campaign(CAMPAIGN)
            writer.add_launch(launch(), measured(1.0), {})
        writer.path.chmod(0o444)
        folder.chmod(0o555)
        outer.chmod(0o755)
        assert _as_nobody(lambda: _reads_but_cannot_write(folder)) == 0
        assert len(list(folder.iterdir())) == 1
    finally:
        folder.chmod(0o755)
        shutil.rmtree(outer)


def _reads_but_cannot_write(folder: Path) -> None:
    assert len(Store(folder).values(CAMPAIGN.id)) == 1
    with pytest.raises(MissingError):
        Writer(folder)


def _as_nobody(check: object) -> int:
    def child() -> None:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        check()  # type: ignore[operator]

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode
