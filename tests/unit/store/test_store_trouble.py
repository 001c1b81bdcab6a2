"""The store in trouble: killed, full, read-only, damaged, written by two."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError
from mpigraft.core.model import EvidenceRecord
from mpigraft.store import Store, Writer, file, refuse_unwritable
from tests.builders.messages import matches
from tests.builders.records import CAMPAIGN, evidence, launch, measured


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
    assert {str(p) for p in paths[:3]} == {f.message.split(" cannot")[0] for f in store.findings}


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


def test_a_hot_journal_is_rolled_back_on_a_copy(tmp_path: Path) -> None:
    """A copy of file and journal in the middle of a transaction is what a kill leaves, and what a
    live writer on another node looks like where locks do not reach: it stays as it is."""
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
    left = {path.name: path.read_bytes() for path in killed.iterdir()}
    assert len(left) == 2
    assert [x.round for x in Store(killed).launches(CAMPAIGN.id)] == [0]
    assert {path.name: path.read_bytes() for path in killed.iterdir()} == left


@pytest.fixture(params=[None, errno.ENOSYS, errno.ENOLCK], ids=["locks", "lustre", "nfs"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system with locks; a Lustre without `flock`; a file server whose locks are away."""

    def refuse(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    if request.param:
        monkeypatch.setattr(fcntl, "lockf", refuse)


@pytest.mark.usefixtures("locks")
def test_two_writers_at_once_lose_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "COPIES", 200)  # a busy machine has few quiet moments

    def write(first: int) -> None:
        with Store(tmp_path).writer() as writer:
            writer.add_campaign(CAMPAIGN)
            for number in range(first, first + 20):
                writer.add_launch(launch(0, round=number), measured(1.0, 2.0, 3.0), {"o": b"same"})

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=write, args=(100 * i,)) for i in range(3)]
    for child in children:
        child.start()
    reader = Store(tmp_path)
    while any(child.is_alive() for child in children):  # a reader in between hinders nobody
        assert len(reader.values(CAMPAIGN.id)) % 3 == 0
    assert reader.findings == ()
    assert [child.exitcode for child in children] == [0, 0, 0]
    rounds = {x.round for x in Store(tmp_path).launches(CAMPAIGN.id)}
    assert rounds == {100 * i + n for i in range(3) for n in range(20)}
    assert len(Store(tmp_path).values(CAMPAIGN.id)) == 3 * 60
    assert len(Store(tmp_path).campaigns()) == 1


@pytest.mark.parametrize("damage", ["[" * 5000, "[1", '{"ranks": 1}', "null", "", b"\xff", 7])
def test_damage_inside_of_a_row_is_named(tmp_path: Path, damage: object) -> None:
    store = Store(tmp_path)
    for number in range(2):
        with store.writer() as writer:
            writer.add_evidence(EvidenceRecord(CAMPAIGN.id, f"k{number}", "1x2", evidence("sm")))
            writer.add_launch(launch(number), measured(1.0), {})
    with sqlite3.connect(writer.path) as db:
        db.execute("UPDATE evidence SET evidence = ?", (damage,))
        db.execute("UPDATE launch SET findings = ?", (damage,))
    db.close()
    assert [e.configuration for e in store.evidence(CAMPAIGN.id)] == ["k0"]
    assert [f.code for f in store.findings] == ["store-file-unreadable"]
    assert [x.round for x in store.launches(CAMPAIGN.id)] == [0]


def test_what_is_no_file_is_named_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.sqlite")
    (tmp_path / "b.sqlite").mkdir()
    (tmp_path / "c.sqlite").symlink_to(tmp_path / "b.sqlite")
    store = Store(tmp_path)
    assert store.campaigns() == ()
    assert ["not a regular file" in f.message for f in store.findings] == [True] * 3


def test_a_file_that_never_rests_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied in the middle of one transaction, and of the next."""
    with Store(tmp_path).writer() as writer:
        writer.add_campaign(CAMPAIGN)
    turn = iter(range(99))
    monkeypatch.setattr(file, "_lockable", lambda _: False)
    monkeypatch.setattr(file, "BETWEEN_S", 0)
    monkeypatch.setattr(file, "_state", lambda path: {path: (next(turn), 0)})
    store = Store(tmp_path)
    assert store.campaigns() == ()
    assert matches(store.findings[0], "store-file-unreadable", error=20)
    monkeypatch.setattr(file, "_state", lambda path: {path: (next(turn) // 9, 0)})
    assert store.campaigns() == (CAMPAIGN,)


def test_a_folder_that_cannot_be_looked_into_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def stale(path: Path) -> list[str]:
        if tmp_path in (path, *Path(path).parents):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", stale)
    with pytest.raises(MissingError, match="cannot be read: Stale file handle") as caught:
        Store(tmp_path).campaign()
    assert "--store" in caught.value.fix
    assert "no results" not in str(caught.value)


def test_a_full_disk_is_an_error_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writer() as writer:
        writer.add_launch(launch(0), measured(1.0), {})
        pages = writer._db.execute("PRAGMA page_count").fetchone()[0]
        writer._db.execute(f"PRAGMA max_page_count = {pages + 3}")
        with pytest.raises(MissingError, match="full") as caught:
            writer.add_launch(launch(1), measured(*range(1, 900)), {"stdout": os.urandom(50_000)})
        assert matches(caught.value, "store-unwritable", advice="free some space")
        writer.add_launch(launch(2), measured(2.0), {})
    assert [x.round for x in store.launches(CAMPAIGN.id)] == [0, 2]
    assert [row.value for row in store.values(CAMPAIGN.id)] == [1.0, 2.0]


LIMITED = """
import resource, signal, sys
from pathlib import Path
from tests.builders.records import launch, measured
from mpigraft.core.errors import MissingError
from mpigraft.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    with Store(Path(sys.argv[1])).writer() as writer:
        for number in range(60):
            writer.add_launch(launch(number % 60), measured(*range(1, 300)), {})
except MissingError as error:
    print(error.exit_code, error.fix)
"""


@pytest.mark.parametrize("limit", [0, 10_000, 500_000])
def test_an_exceeded_quota_is_an_error(tmp_path: Path, limit: int) -> None:
    """A file size limit makes write(2) itself fail, at creation or later."""
    folder = tmp_path / "results"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", LIMITED, str(folder), str(limit)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("3 "), done
    assert "--store" in done.stdout
    store = Store(folder)
    launches = store.launches(CAMPAIGN.id)
    assert bool(launches) == (limit == 500_000)
    assert len(store.values(CAMPAIGN.id)) == 299 * len(launches)
    assert store.findings == ()


def test_a_store_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """By a writer, and by a dry run."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nothing/there")
    for folder, code in ((tmp_path / "file", "store-no-folder"),
                         (tmp_path / "file" / "below", "store-no-folder"),
                         (tmp_path / "loop", "store-unwritable"),
                         (tmp_path / "dangling", "store-unwritable"),
                         (tmp_path / "dangling" / "below", "store-unwritable"),
                         (tmp_path / ("x" * 300), "store-unwritable"),
                         (Path("/proc/self/none"), "store-unwritable")):  # fmt: skip
        for begin in (Writer, refuse_unwritable):
            with pytest.raises(MissingError) as caught:
                begin(folder)
            assert caught.value.code == code
            assert "--store" in caught.value.fix


def test_a_dry_run_refuses_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(tmp_path)
    full = os.statvfs_result((*real[:3], 0, 0, *real[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(MissingError) as caught:
        refuse_unwritable(tmp_path)
    assert matches(
        caught.value, "store-unwritable", folder=tmp_path, advice="free some space there"
    )


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
