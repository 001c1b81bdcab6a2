"""Imports that run at once, or die: no file is lost or counts twice."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpigraft.bench.importing import import_ledger
from mpigraft.bench.importing.batches import BATCH
from mpigraft.core.errors import MissingError
from mpigraft.store import Store, file
from tests.builders.commands import run_on_store as run
from tests.builders.messages import matches
from tests.unit.bench.test_import import LATENCY, bring, rounds, table


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_imports_at_once_lose_nothing_and_count_rounds(store: Store, tmp_path: Path) -> None:
    """Five processes: two rounds of one configuration, the same file twice, another one."""
    one = table(tmp_path, LATENCY + "1 1.00\n", "one")
    two = table(tmp_path, LATENCY + "1 2.00\n", "two")
    jobs = [(one, "vendor"), (two, "vendor"), (one, "vendor"), (one, "mine"), (two, "mine")]
    command = [sys.executable, "-m", "mpigraft.cli.main", "--store", str(store.folder), "import"]
    environment = {**os.environ, "PYTHONPATH": str(Path(import_ledger.__file__).parents[3])}
    started = [
        subprocess.Popen([*command, path, "--configuration", name], env=environment)
        for path, name in jobs
    ]
    assert [process.wait(60) for process in started] == [0] * len(jobs)
    (campaign,) = store.campaigns()
    values = store.values(campaign.id)
    labels = {c.key: c.id for c in store.configurations(campaign.id)}
    assert sorted((labels[v.configuration], v.value) for v in values) == [
        ("mine", 1.0), ("mine", 2.0), ("vendor", 1.0), ("vendor", 2.0)
    ]  # fmt: skip
    assert sorted((labels[v.configuration], v.round) for v in values) == [
        ("mine", 0), ("mine", 1), ("vendor", 0), ("vendor", 1)
    ]  # fmt: skip
    assert store.findings == ()


def many(folder: Path, files: int) -> Path:
    folder.mkdir()
    for number in range(files):
        rows = "".join(f"{size} {number + 1}.00\n" for size in (1, 2, 3))
        (folder / f"{number}.txt").write_text(LATENCY + rows)
    return folder


@pytest.mark.parametrize("where", ["while it reads", "while it writes"])
def test_a_killed_import_loses_one_batch_and_is_repaired(
    store: Store, tmp_path: Path, where: str
) -> None:
    """SIGKILL: what was committed is there as whole batches, and importing again adds the rest."""
    folder = many(tmp_path / "files", 2 * BATCH + 50)
    os.mkfifo(tmp_path / "fifo")
    writer = os.open(tmp_path / "fifo", os.O_RDWR)  # that never writes: reading it never ends
    command = [sys.executable, "-m", "mpigraft.cli.main", "--store", str(store.folder), "import",
               str(folder), "--configuration", "x"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(import_ledger.__file__).parents[3])}
    stuck = [str(tmp_path / "fifo")] if where == "while it reads" else []
    killed = subprocess.Popen([*command, *stuck], env=environment, stdout=subprocess.DEVNULL)
    due = 2 * BATCH if stuck else BATCH
    deadline = time.monotonic() + 60
    while stored(store) < due and time.monotonic() < deadline:
        time.sleep(0.01)
    if not stuck:
        time.sleep(0.03)  # somewhere in the next batch
    killed.kill()
    killed.wait()
    os.close(writer)
    whole = stored(Store(store.folder))
    assert whole in (BATCH, 2 * BATCH) if not stuck else whole == 2 * BATCH
    assert subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == 0
    again = Store(store.folder)
    assert stored(again) == 2 * BATCH + 50
    assert again.findings == ()
    values = again.values(again.campaign().id)
    assert {v.value for v in values} == {float(n + 1) for n in range(2 * BATCH + 50)}
    assert len(values) == 3 * (2 * BATCH + 50)


def stored(store: Store) -> int:
    """The number of files that are in the store, by the digests of their tables."""
    with contextlib.suppress(MissingError):
        return len({row.table for row in store.launch_tables(store.campaign().id)})
    return 0


def test_rounds_are_counted_by_one_import_at_a_time(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would count round 0 if both could read before either wrote: here each waits for the
    other after reading, and goes on only because the other cannot get that far."""
    both = threading.Barrier(2)
    read = import_ledger.Book.__init__

    def read_and_wait(*args: object) -> None:
        read(*args)  # type: ignore[arg-type]
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)

    monkeypatch.setattr(import_ledger.Book, "__init__", read_and_wait)
    paths = [table(tmp_path, LATENCY + f"1 {n}.00\n", str(n)) for n in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda path: bring(Store(store.folder), path), paths))
    assert [number for _, number, _ in rounds(store)] == [0, 1]


def test_a_full_disk_keeps_whole_batches_and_the_next_import_adds_the_rest(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(many(tmp_path / "files", 2 * BATCH + 50).iterdir())
    create = file.create

    def on_a_small_disk(path: Path) -> sqlite3.Connection:
        db = create(path)
        db.execute("PRAGMA max_page_count = 100")
        return db

    with monkeypatch.context() as full:
        full.setattr(file, "create", on_a_small_disk)
        with pytest.raises(MissingError, match="full"):
            bring(store, *files)
    assert stored(Store(store.folder)) == BATCH
    bring(store, *files)
    assert stored(store) == 2 * BATCH + 50
    assert len(store.values(store.campaign().id)) == 3 * (2 * BATCH + 50)


def test_a_file_that_a_job_appended_to_counts_no_run_twice(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was added is imported by itself; a job's last words alone change nothing."""
    words = ("--configuration", "a", "--machine", "m", "--nodes", 1, "--ranks-per-node", 2)
    first, second = (
        f"# OSU MPI Latency Test v7.5\n# Size Latency (us)\n1 {n}.00\n" for n in (1, 2)
    )
    log, added = tmp_path / "log", tmp_path / "added"
    log.write_text(first)
    assert run(store.folder, "import", log, *words) == 0
    log.write_text(f"{first}State: COMPLETED\n")
    assert run(store.folder, "import", log, *words) == 0
    assert "stored already" in capsys.readouterr().out
    log.write_text(first + second)
    assert run(store.folder, "import", log, *words) == 2
    said = capsys.readouterr().err
    assert matches(said, "import-grown")
    place = int(said.partition("tail -c +")[2].split()[0])
    added.write_bytes(log.read_bytes()[place - 1 :])
    assert run(store.folder, "import", added, *words) == 0
    values = store.values(store.campaign().id)
    assert [(row.round, row.value) for row in values] == [(0, 1.0), (1, 2.0)]
    assert run(store.folder, "import", log, *words[:1], "b", *words[2:]) == 0
