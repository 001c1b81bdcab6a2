"""A store that others may write to: what they put into it is named and left out."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from mpigraft.core.errors import MissingError
from mpigraft.core.model import ConfigurationRecord, EvidenceRecord
from mpigraft.core.serialize import canonical
from mpigraft.store import Store, agree_on_plan, agreed_plan, bounds, file
from tests.builders.messages import matches
from tests.builders.records import ALLOCATION, CAMPAIGN, evidence, launch, measured
from tests.hang import no_hang

NESTED = "[" * 900 + "]" * 900


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"x")
        file.truncate(1 << 40)


TEXTS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "endless": endless,
    "nested": lambda path: path.write_text(f'{{"accepted":"x","campaign":{NESTED}}}'),
    "deeper": lambda path: path.write_text("[" * 100_000),
}


@pytest.mark.parametrize("plant", TEXTS.values(), ids=TEXTS)
def test_a_mark_that_is_none_is_named(tmp_path: Path, plant: Callable[[Path], object]) -> None:
    store = Store(tmp_path)
    store.accept(CAMPAIGN.id)
    plant(tmp_path / "x.accepted")
    assert [name for _, name in store.accepted()] == [CAMPAIGN.id]
    assert [f.code for f in store.findings] == ["store-file-unreadable"]
    assert str(tmp_path / "x.accepted") in store.findings[0].message


@pytest.mark.parametrize("plant", TEXTS.values(), ids=TEXTS)
def test_an_agreed_plan_that_is_none_is_named(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    plant(tmp_path / f"{CAMPAIGN.id}.campaign")
    with pytest.raises(MissingError, match="agreed on, cannot be read"):
        agreed_plan(tmp_path, CAMPAIGN.id)
    with pytest.raises(MissingError, match="agreed on, cannot be read"):
        agree_on_plan(tmp_path, CAMPAIGN)
    assert agreed_plan(tmp_path, "other") is None


@pytest.mark.root
def test_an_agreed_plan_of_another_user_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / f"{CAMPAIGN.id}.campaign"
    path.write_text(canonical(CAMPAIGN))
    assert agreed_plan(tmp_path, CAMPAIGN.id) == CAMPAIGN
    os.chown(path, 4321, 4321)
    with pytest.raises(MissingError, match=r"another user \(id 4321\)"):
        agreed_plan(tmp_path, CAMPAIGN.id)
    os.chown(tmp_path, 4321, 4321)
    assert agreed_plan(tmp_path, CAMPAIGN.id) == CAMPAIGN


@pytest.mark.parametrize("plant", [TEXTS["fifo"], lambda path: path.symlink_to("../own")])
def test_a_mark_takes_the_place_of_what_others_put_there(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    own, folder = tmp_path / "own", tmp_path / "store"
    own.write_text("mine")
    folder.mkdir()
    plant(folder / f"{CAMPAIGN.id}.accepted")
    Store(folder).accept(CAMPAIGN.id)
    assert own.read_text() == "mine"
    assert [name for _, name in Store(folder).accepted()] == [CAMPAIGN.id]


ENDLESS = "WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n FROM c) SELECT n AS campaign FROM c"
SPOILED = {
    "view": f"DROP TABLE launch; CREATE VIEW launch AS {ENDLESS}",
    "other view": f"CREATE VIEW extra AS {ENDLESS}",
    "trigger": "CREATE TRIGGER t AFTER UPDATE ON launch BEGIN SELECT 1; END",
    "virtual": "CREATE VIRTUAL TABLE extra USING fts4(campaign)",
    "computed": "ALTER TABLE launch ADD COLUMN x AS (hex(zeroblob(99999999)))",
    "named a query": f'CREATE TABLE "({ENDLESS})" (campaign); UPDATE campaign SET plan = 7',
    "many": "INSERT INTO campaign SELECT value, name, created, origin, seed, rounds, baseline,"
    " plan, tool FROM campaign, (WITH RECURSIVE c(value) AS (VALUES(1) UNION ALL SELECT value + 1"
    " FROM c) SELECT * FROM c LIMIT 20000)",
    "plan": f"UPDATE campaign SET plan = '{NESTED}'",
    "plan that is none": "UPDATE campaign SET plan = '[]'",
    "machine": f"UPDATE allocation SET machine = '{{\"a\":{NESTED}}}'",
    "provenance": f"UPDATE configuration SET provenance = '{NESTED}'",
    "evidence": f"UPDATE evidence SET evidence = '{NESTED}'",
    "findings": f"UPDATE launch SET findings = '{NESTED}'",
    "artefact": "UPDATE artefact SET data = (SELECT data FROM bomb)",
    "samples": "UPDATE samples SET data = (SELECT data FROM bomb)",
    "big": "UPDATE launch SET findings = zeroblob(90000000)",
}


@functools.cache
def bomb() -> bytes:
    return zlib.compress(bytes(140_000_000), 1)


def stored(folder: Path, number: int = 0) -> Path:
    """A file with one of everything, of a campaign of its own."""
    identity = f"{number:08}-1111-4111-8111-111111111111"
    with Store(folder).writer() as writer:
        writer.add_campaign(replace(CAMPAIGN, id=identity))
        writer.add_allocation(replace(ALLOCATION, campaign=identity))
        writer.add_configuration(ConfigurationRecord(identity, "k0", "mpi", "{}"))
        writer.add_evidence(EvidenceRecord(identity, "k0", "1x2", evidence("sm")))
        one = replace(measured(1.0)[0], samples=(1.0, 2.0))
        writer.add_launch(launch(0, campaign=identity), [one], {"stdout": b"%d" % number})
    return writer.path


def spoil(path: Path, script: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TEMP TABLE bomb AS SELECT ? AS data", (bomb(),))
        db.executescript(script)
    db.close()


def read_all(store: Store, number: int) -> list[object]:
    """All that readers ask of a store, of one campaign; what fails as a whole fails the test."""
    identity = f"{number:08}-1111-4111-8111-111111111111"
    every: list[object] = [
        [c for c in store.campaigns() if c.id == identity],
        store.allocations(identity), store.configurations(identity), store.evidence(identity),
        store.launches(identity), store.values(identity), store.launch_tables(identity),
        list(store.last_rounds(identity)), list(store.measured(identity)),
    ]  # fmt: skip
    for launched in store.launches(identity):
        with contextlib.suppress(MissingError):
            every.append(store.artefact(dict(launched.artefacts)["stdout"], identity))
    return every


@pytest.mark.parametrize("script", SPOILED.values(), ids=SPOILED)
def test_a_file_that_means_harm_is_named_and_the_rest_is_read(tmp_path: Path, script: str) -> None:
    bad, good = stored(tmp_path), stored(tmp_path, 1)
    spoil(bad, script)
    with no_hang():
        store = Store(tmp_path)
        read_all(store, 0)
        every = read_all(store, 1)
    assert len(every) == 10
    assert all(map(bool, every))
    assert [str(bad) in f.message for f in store.findings] == [True], store.findings
    assert str(good) not in store.findings[0].message


def test_a_tree_whose_pages_share_one_child_ends(tmp_path: Path) -> None:
    """A file of 100 pages has 10^19 rows, if each page may be read again."""
    path = stored(tmp_path)
    stored(tmp_path, 1)
    with sqlite3.connect(path) as db:
        row = "VALUES (?, 'c', '', ?, '{}', '[]', '', '', 0, '')"
        rows = ((str(i), "x" * 900) for i in range(900))
        db.executemany(f"INSERT INTO allocation {row}", rows)
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'allocation'"
        ).fetchone()
        size = db.execute("PRAGMA page_size").fetchone()[0]
    db.close()
    data = bytearray(path.read_bytes())
    top = (root - 1) * size
    (count,) = struct.unpack_from(">H", data, top + 3)
    assert data[top] == 5, "an inner page"
    cells = struct.unpack_from(f">{count}H", data, top + 12)
    (child,) = struct.unpack_from(">I", data, top + cells[0])
    for _ in range(12):  # each new page repeats the one below it
        for cell in cells:
            struct.pack_into(">I", data, top + cell, child)
        struct.pack_into(">I", data, top + 8, child)
        data += data[top : top + size]
        child = len(data) // size
    struct.pack_into(">I", data, 28, child)
    path.write_bytes(data)
    with no_hang():
        store = Store(tmp_path)
        assert [c.id[:8] for c in store.campaigns()] == ["00000001"]
    assert [("interrupted" in f.message) for f in store.findings] == [True]


BESIDE: dict[str, Callable[[Path], object]] = {
    "journal is a fifo": lambda path: os.mkfifo(f"{path}-journal"),
    "journal is a device": lambda path: Path(f"{path}-journal").symlink_to("/dev/zero"),
    "journal is endless": lambda path: endless(Path(f"{path}-journal")),
    "holes": endless,
}


@pytest.mark.parametrize("plant", BESIDE.values(), ids=BESIDE)
def test_what_lies_beside_a_file_holds_nobody_up(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    bad = stored(tmp_path)
    stored(tmp_path, 1)
    plant(bad)
    before = sorted(tmp_path.iterdir())
    store = Store(tmp_path)
    assert all(map(bool, read_all(store, 1)))
    assert [str(bad) in f.message for f in store.findings] == [True]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("plant", [os.mkfifo, Path.touch])
def test_a_log_beside_a_file_is_passed_over(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    path = stored(tmp_path)
    plant(Path(f"{path}-wal"))
    before = sorted(tmp_path.iterdir())
    store = Store(tmp_path)
    assert all(map(bool, read_all(store, 0)))
    assert store.findings == ()
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_with_a_log_is_named_and_none_is_made(tmp_path: Path) -> None:
    """SQLite would make files beside it to read it, for whoever reads."""
    bad = stored(tmp_path)
    with sqlite3.connect(bad) as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    store = Store(tmp_path)
    assert store.campaigns() == ()
    assert matches(store.findings[0], "store-file-unreadable", error="write-ahead log")
    assert list(tmp_path.iterdir()) == [bad]


def plant_journal(path: Path, victim: Path) -> None:
    """Leave a transaction half written, with a journal that names the victim."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA cache_size = 1")
    db.execute("BEGIN IMMEDIATE")
    rows = ((str(i), b"z" * 4000) for i in range(99))
    db.executemany("INSERT INTO artefact VALUES (?, ?)", rows)
    journal = Path(f"{path}-journal")
    kept = {part: part.read_bytes() for part in (path, journal)}
    db.execute("ROLLBACK")
    db.close()
    name = bytes(victim)
    kept[journal] += struct.pack(">I", 1 << 18) + name + struct.pack(">II", len(name), sum(name))
    kept[journal] += bytes.fromhex("d9d505f920a163d7")
    for part, data in kept.items():
        part.write_bytes(data)


def test_a_journal_cannot_name_a_file_to_remove(tmp_path: Path) -> None:
    """SQLite removes the super-journal that a hot journal names, whatever file it is."""
    folder, victim = tmp_path / "store", tmp_path / "victim"
    victim.write_text("precious")
    plant_journal(stored(folder), victim)
    store = Store(folder)
    assert store.campaigns() == ()
    assert matches(store.findings[0], "store-file-unreadable", error="names another file")
    assert victim.read_text() == "precious"


def test_a_file_that_is_replaced_while_it_is_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked is what is read: in a group's folder another user may rename files."""
    path, other = stored(tmp_path, 1), stored(tmp_path / "other", 2)
    real = file._lockable

    def swapping(opened: BinaryIO) -> bool:
        if other.exists():
            other.replace(path)
        return real(opened)

    monkeypatch.setattr(file, "_lockable", swapping)
    with pytest.raises(OSError, match="took its place"), file.reading(path):
        pass


@pytest.mark.root
def test_a_journal_that_is_replaced_while_it_is_copied_is_not_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stored(tmp_path, 1)
    journal = Path(f"{path}-journal")
    journal.touch()
    real = bounds.has_journal

    def swapping(beside: Path) -> bool:
        there = real(beside)
        os.chown(journal, 12345, 12345)
        return there

    monkeypatch.setattr(file, "_in_place", lambda _: None)
    monkeypatch.setattr(bounds, "has_journal", swapping)
    with pytest.raises(OSError, match="of another user"), file.reading(path):
        pass
