"""One store of two users: in a sticky folder, where one of them means harm, whatever the umask."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError
from mpigraft.store import Store, agree_on_plan
from tests.builders.records import CAMPAIGN, launch, measured
from tests.unit.store.test_store_shared import (
    BESIDE,
    SPOILED,
    TEXTS,
    plant_journal,
    read_all,
    spoil,
    stored,
)

pytestmark = pytest.mark.root

HONEST, OTHER = 43211, 43212  # ids of users; no account is needed
FIRST = "00000001-1111-4111-8111-111111111111"


@pytest.fixture(params=[0o000, 0o077], ids=["umask 000", "umask 077"])
def umask(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def shared() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mpigraft-", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def as_user(user: int, umask: int, work: Callable[[], object]) -> None:
    """Do it in a process of that user's; what fails there fails here, and so does what waits."""

    def child() -> None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os.umask(umask)
        work()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(20)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0


def reads_go_on(folder: Path, named: int | None = None) -> None:
    """All of the first campaign is read, and so many other files are named."""
    store = Store(folder)
    assert all(map(bool, read_all(store, 1)))
    store.accept(FIRST)
    assert FIRST in [name for _, name in store.accepted()]
    read_all(store, 0)
    assert named in (None, len(store.findings)), store.findings
    assert not [f for f in store.findings if FIRST in f.message]


def plant_files(folder: Path) -> None:
    for script in SPOILED.values():
        spoil(stored(folder), script)
    for number, plant in enumerate(BESIDE.values()):
        plant(stored(folder, 10 + number))
    for number, plant in enumerate(TEXTS.values()):
        plant(folder / f"{number}.accepted")


def test_what_one_user_plants_does_not_keep_the_other_from_reading(
    shared: Path, umask: int
) -> None:
    as_user(HONEST, umask, lambda: stored(shared, 1))
    as_user(OTHER, umask, lambda: plant_files(shared))
    # With 077 the other's files cannot be read, and are named all the same; a link leads on.
    as_user(HONEST, umask, lambda: reads_go_on(shared, len(SPOILED) + len(BESIDE) + len(TEXTS)))
    assert all(path.stat().st_mode & 0o022 == 0 for path in shared.glob("*.sqlite"))


@pytest.mark.parametrize(
    "plant",
    [os.mkfifo, Path.touch, lambda path: path.symlink_to("/dev/zero")],
    ids=["fifo", "file", "device"],
)
@pytest.mark.parametrize("end", ["-journal", "-wal"])
def test_what_another_user_puts_beside_a_file_does_not_hide_it(
    shared: Path, umask: int, end: str, plant: Callable[[Path], object]
) -> None:
    as_user(HONEST, umask, lambda: stored(shared, 1))
    (path,) = shared.glob("*.sqlite")
    as_user(OTHER, umask, lambda: plant(Path(f"{path}{end}")))
    as_user(HONEST, umask, lambda: reads_go_on(shared, 0))
    as_user(HONEST, umask, lambda: stored(shared, 2))
    as_user(HONEST, umask, lambda: reads_go_on(shared, 0))


def test_a_plan_that_another_user_offers_first_is_refused(shared: Path, umask: int) -> None:
    def refused() -> None:
        with pytest.raises(MissingError, match=r"another user|Permission denied"):
            agree_on_plan(shared, CAMPAIGN)

    as_user(OTHER, umask, lambda: agree_on_plan(shared, CAMPAIGN))
    as_user(HONEST, umask, refused)


def test_a_mark_never_overwrites_what_a_link_leads_to(shared: Path, umask: int) -> None:
    """In a sticky folder the other user's link stays, and the mark is refused."""
    own = shared / "own"

    def begin() -> None:
        own.write_text("mine")
        stored(shared, 1)

    def accept() -> None:
        with pytest.raises(MissingError, match="cannot be written"):
            Store(shared).accept(FIRST)

    as_user(HONEST, umask, begin)
    as_user(OTHER, umask, lambda: (shared / f"{FIRST}.accepted").symlink_to(own))
    as_user(HONEST, umask, accept)
    assert own.read_text() == "mine"


def test_a_store_that_is_made_under_any_umask_is_its_owners(shared: Path, umask: int) -> None:
    as_user(HONEST, umask, lambda: stored(shared / "deep" / "results", 1))

    def refused() -> None:
        with pytest.raises(MissingError, match="cannot be written"):
            stored(shared / "deep" / "results", 2)

    as_user(OTHER, umask, refused)
    as_user(HONEST, umask, lambda: reads_go_on(shared / "deep" / "results", 0))


def test_a_journal_of_another_user_is_not_written_by(shared: Path) -> None:
    """SQLite would roll it back into the results, and remove the file that it names."""
    own = shared / "own"
    own.write_text("mine")
    with Store(shared).writer() as writer:
        writer.add_campaign(CAMPAIGN)
        journal = Path(f"{writer.path}-journal")
        plant_journal(writer.path, own)
        os.chown(journal, OTHER, OTHER)
        with pytest.raises(MissingError, match="-journal is of another user"):
            writer.add_launch(launch(0), measured(1.0), {})
    assert own.read_text() == "mine"
