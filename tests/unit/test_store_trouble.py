"""The store in trouble: killed, full, read-only, damaged, written by two."""

from __future__ import annotations

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

from mpigraft import store_file
from mpigraft.errors import MissingError
from mpigraft.store import Store, Writer
from tests.unit.stored import CAMPAIGN, launch, measured


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
from tests.unit.stored import launch, measured
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
