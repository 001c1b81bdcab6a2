"""What replays read is kept for a month, and written again where it went."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.trace import Prepared, Provenance, RecordFile, read_record_file, write_record
from mpigraft.trace.record.prepared import KEPT_S
from mpigraft.trace.record.rank_file import write_rank
from mpigraft.trace.record.values import Leaf, RankCalls, RecordedRoutine

HERE = Path("solver.record")


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordFile:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    routines, nodes = (RecordedRoutine("Barrier", "c"),), (Leaf(0, 3, 5, 7),)
    part = write_rank(RankCalls(0, 1, routines, (b"\x00\x01",), nodes, events=1))
    HERE.write_bytes(write_record([part], Provenance("./solver", "openmpi@5.0.11", "ompi")))
    return read_record_file(HERE)


def test_a_phase_is_prepared_once(record: RecordFile) -> None:
    kept = Prepared(record.digest).keep(record, HERE)
    assert kept == Prepared(record.digest).path
    written = kept.stat().st_ino
    assert Prepared(record.digest).keep(record, HERE) == kept
    assert kept.stat().st_ino == written
    assert Prepared(record.digest, 1).keep(record, HERE) not in (kept, HERE)
    with pytest.raises(UsageError) as error:
        Prepared(record.digest, 99).keep(record, HERE)
    assert error.value.code == "phase-unknown"


def test_what_is_a_month_old_goes_when_another_comes(record: RecordFile) -> None:
    old = Prepared(record.digest).keep(record, HERE)
    then = old.stat().st_mtime - KEPT_S - 60
    os.utime(old, (then, then))
    younger = Prepared(record.digest, 1).keep(record, HERE)
    assert not old.exists()
    assert Prepared(record.digest).keep(record, HERE).read_bytes()
    assert younger.exists()


def test_a_folder_that_cannot_be_written_is_named(record: RecordFile) -> None:
    folder = Prepared(record.digest).path.parent
    folder.parent.mkdir()
    folder.write_text("a file in its place")
    with pytest.raises(MissingError) as error:
        Prepared(record.digest).keep(record, HERE)
    assert error.value.code == "replay-unwritable"
