"""Two users of one machine: what one left in a shared folder, a lock that one holds, and a store
in the folder of a group."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from mpigraft.core import lock
from mpigraft.core.errors import MissingError
from mpigraft.core.model import Allocation
from mpigraft.store import Store
from tests.builders.forged import command, honest_store
from tests.unit.store.test_store_shared import stored
from tests.unit.store.test_store_users import HONEST, OTHER, as_user, shared, umask

__all__ = ("shared", "umask")  # fixtures
pytestmark = pytest.mark.root
GROUP = 43210
THIS_HOST = Allocation(("localhost",), "this host", here=True)


@pytest.mark.parametrize("line", [
    "report -o", "history -o", "history --junit", "export --format csv -o", "bundle -o",
])  # fmt: skip
def test_no_command_overwrites_what_a_link_of_another_user_leads_to(
    shared: Path, tmp_path: Path, line: str
) -> None:
    own, link = shared / "own", shared / "x.tar.gz"
    honest_store(tmp_path / "store")  # and what both import, where users may not read Python
    assert command("--store", tmp_path / "store", *line.split(), tmp_path / "x.tar.gz").code == 0

    def begin() -> None:
        honest_store(shared / "store")
        own.write_text("precious")

    def write() -> None:
        ended = command("--store", shared / "store", *line.split(), link)
        assert ended.code == 3, ended
        assert "another user's" in ended.err
        assert own.read_text() == "precious"

    as_user(HONEST, 0o022, begin)
    as_user(OTHER, 0o022, lambda: link.symlink_to(own))
    as_user(HONEST, 0o022, write)


def test_a_lock_of_another_user_is_named_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from mpigraft.cli.common import wait_for_others

    monkeypatch.setattr(lock, "NAME", f"\0mpigraft-test-{os.getpid()}")
    ready = multiprocessing.get_context("fork").Event()

    def hold() -> None:
        os.setuid(OTHER)
        with lock.campaign_lock(lock.NAME):
            ready.set()
            signal.pause()

    holder = multiprocessing.get_context("fork").Process(target=hold)
    holder.start()
    assert ready.wait(10)

    def refused() -> None:
        holds = f"pid {holder.pid}, user id {OTHER}"
        with pytest.raises(MissingError, match=holds), lock.nodes_lock(THIS_HOST):
            pass

    as_user(HONEST, 0o022, refused)

    def wait() -> None:
        os.setuid(HONEST)
        wait_for_others(THIS_HOST)

    waiter = multiprocessing.get_context("fork").Process(target=wait)
    waiter.start()
    waiter.join(1)
    assert waiter.is_alive()
    holder.kill()
    holder.join()
    waiter.join(10)
    assert waiter.exitcode == 0
    assert f"user id {OTHER}" in capfd.readouterr().err


def test_a_store_in_the_folder_of_a_group(shared: Path, umask: int) -> None:
    """Each reads what the other's umask lets him, and what it does not is named."""
    os.chown(shared, 0, GROUP)
    shared.chmod(0o2770)

    def member(user: int, number: int) -> None:
        def work() -> None:
            stored(shared, number)
            store = Store(shared)
            read = len(store.campaigns())
            assert read + len(store.findings) == number
            assert read == number if umask == 0 else read == 1

        as_member(user, umask, work)

    member(HONEST, 1)
    member(OTHER, 2)
    for path in shared.glob("*.sqlite"):
        assert path.stat().st_gid == GROUP
        assert not path.stat().st_mode & 0o022


def as_member(user: int, umask: int, work: object) -> None:
    def child() -> None:
        os.setgroups([GROUP])
        os.setgid(user)
        os.setuid(user)
        os.umask(umask)
        assert callable(work)
        work()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(20)
    assert process.exitcode == 0
