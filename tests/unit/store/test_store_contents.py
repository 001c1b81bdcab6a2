"""A store opens the files that have a campaign, and no answer of it is older than its files."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import ConfigurationRecord, EvidenceRecord
from mpigraft.store import Store, file
from tests.builders.records import ALLOCATION, CAMPAIGN, evidence, launch, measured

OTHER = replace(CAMPAIGN, id="11111111-1111-4111-8111-111111111111", name="other")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was opened."""
    counts: Counter[str] = Counter()
    reading = file.reading

    def counted(path: Path) -> AbstractContextManager[sqlite3.Connection | None]:
        counts[path.name] += 1
        return reading(path)

    monkeypatch.setattr(file, "reading", counted)
    return counts


def add(store: Store, *, campaign: str = CAMPAIGN.id, value: float = 1.0) -> Path:
    with store.writer() as writer:
        writer.add_campaign(replace(CAMPAIGN, id=campaign))
        writer.add_launch(launch(0, campaign=campaign), measured(value), {})
    return writer.path


def test_only_files_of_the_campaign_are_opened(tmp_path: Path, opened: Counter[str]) -> None:
    store = Store(tmp_path)
    own = add(store)
    others = [add(store, campaign=f"{n:08}-1111-4111-8111-111111111111") for n in range(9)]
    assert len(store.campaigns()) == 10
    for _ in range(5):
        assert [row.value for row in store.values(CAMPAIGN.id)] == [1.0]
        assert len(store.launches(CAMPAIGN.id)) == 1
        assert len(store.campaigns()) == 10
        assert len(list(store.measured(CAMPAIGN.id))) == 1
    assert {opened[path.name] for path in others} == {1}
    assert opened[own.name] > 10


def test_what_is_written_later_is_there(tmp_path: Path) -> None:
    """By this process and another store of it, in one file and in new ones, and within one tick
    of the file system's clock."""
    store = Store(tmp_path)
    with Store(tmp_path).writer() as writer:
        writer.add_campaign(CAMPAIGN)
        assert store.campaigns() == (CAMPAIGN,)
        for number in range(20):
            writer.add_launch(launch(number), measured(float(number)), {})
            assert len(store.launches(CAMPAIGN.id)) == number + 1
            assert store.launches(OTHER.id) == ()
        writer.add_campaign(OTHER)
        assert set(store.campaigns()) == {CAMPAIGN, OTHER}
    add(store, campaign=OTHER.id)
    assert len(store.launches(OTHER.id)) == 1


def test_a_change_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = add(store)
    status = path.stat()
    assert store.launches(OTHER.id) == ()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE launch SET campaign = ?", (OTHER.id,))
    db.close()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert len(store.launches(OTHER.id)) == 1


def test_a_file_that_another_replaced_is_read_again(tmp_path: Path) -> None:
    store, elsewhere = Store(tmp_path / "a"), Store(tmp_path / "b")
    path, other = add(store), add(elsewhere, campaign=OTHER.id)
    assert store.launches(OTHER.id) == ()
    shutil.copy2(other, tmp_path / "new")
    (tmp_path / "new").replace(path)
    assert len(store.launches(OTHER.id)) == 1
    path.unlink()
    assert store.campaigns() == ()
    assert store.findings == ()


@pytest.mark.parametrize("row", ["allocation", "configuration", "evidence", "launch"])
def test_a_file_with_any_row_of_a_campaign_has_it(tmp_path: Path, row: str) -> None:
    """A resumed campaign spreads over files, and a killed writer may have left but one row."""
    store = Store(tmp_path)
    with store.writer() as writer:
        match row:
            case "allocation":
                writer.add_allocation(ALLOCATION)
            case "configuration":
                writer.add_configuration(ConfigurationRecord(CAMPAIGN.id, "k", "mpi@1", "{}"))
            case "evidence":
                writer.add_evidence(EvidenceRecord(CAMPAIGN.id, "k", "1x2", evidence("sm")))
            case "launch":
                writer.add_launch(launch(0), measured(1.0), {})
    rows = {
        "allocation": store.allocations(CAMPAIGN.id),
        "configuration": store.configurations(CAMPAIGN.id),
        "evidence": store.evidence(CAMPAIGN.id),
        "launch": store.launches(CAMPAIGN.id),
    }
    assert {name for name, every in rows.items() if every} == {row}


def test_a_writer_within_a_transaction_is_read_again_each_time(
    tmp_path: Path, opened: Counter[str]
) -> None:
    """Its journal lies about: what the header says then may be rolled back."""
    store = Store(tmp_path)
    path = add(store)
    journal = path.with_name(f"{path.name}-journal")
    journal.write_bytes(b"")
    assert len(store.campaigns()) == len(store.campaigns()) == 1
    assert opened[path.name] == 2
    journal.unlink()
    assert len(store.campaigns()) == len(store.campaigns()) == 1
    assert opened[path.name] == 3
