"""One campaign at a time on a host, freed however the holder ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from mpigraft.core import lock
from mpigraft.core.errors import MissingError
from mpigraft.core.lock import campaign_lock, file_lock, nodes_lock, open_lock, wait_for_release
from mpigraft.core.model import Allocation
from tests.builders.messages import shows

HOLD = """
import sys, time
from mpigraft.core.lock import campaign_lock
with campaign_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def name() -> str:
    return f"\0mpigraft-test-{os.getpid()}"


def test_a_second_campaign_names_the_holder_of_the_lock(name: str) -> None:
    with campaign_lock(name):
        with pytest.raises(MissingError, match=f"pid {os.getpid()}") as caught, campaign_lock(name):
            pass
        assert caught.value.exit_code == 3
    with campaign_lock(name):
        pass


def test_the_lock_goes_with_a_killed_holder(name: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("sys.argv[1]", repr(name))], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(MissingError, match=f"pid {holder.pid}"), campaign_lock(name):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    with campaign_lock(name):
        pass


def test_campaigns_on_other_nodes_lock_those_nodes_only() -> None:
    mark = uuid.uuid4().hex[:8]
    a, b, c = (f"{name}{mark}" for name in "abc")
    with nodes_lock(Allocation((a, f"{b}.site"), "--hosts")):
        with (
            pytest.raises(MissingError, match=f"running on {b}"),
            nodes_lock(Allocation((c, b), "--hosts")),
        ):
            pytest.fail("two campaigns on one node")
        with nodes_lock(Allocation((c,), "--hosts")):
            pass


def test_a_node_of_the_allocation_locks_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one name, whatever else the allocation has: a job of one's own is on the first node."""
    monkeypatch.setattr(lock, "NAME", name)
    own = os.uname().nodename
    with (
        nodes_lock(Allocation(("elsewhere", own), "Slurm job 1")),
        pytest.raises(MissingError, match="this host"),
        nodes_lock(Allocation((own,), "this host", here=True)),
    ):
        pytest.fail("two campaigns on this host")


def test_more_nodes_than_files_that_may_be_open_are_refused() -> None:
    mark = uuid.uuid4().hex[:8]
    many = Allocation(tuple(f"{mark}-{number}" for number in range(200)), "--hosts")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(path.name) for path in Path("/proc/self/fd").iterdir()}  # fixtures have some open
    limit = next(n for n in range(len(used) + 101) if n - len(used & set(range(n))) == 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        with (
            pytest.raises(MissingError, match="200 nodes need an open file each") as caught,
            nodes_lock(many),
        ):
            pytest.fail("more files than the limit")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ulimit -n" in caught.value.fix
    with nodes_lock(many):  # what was held until then was given back
        pass


def test_a_wait_ends_when_the_holder_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "NAME", name)
    here = Allocation(("any",), "this host", here=True)
    wait_for_release(here)  # nobody holds it
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("sys.argv[1]", repr(name))], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    ended: list[bool] = []

    def wait() -> None:
        wait_for_release(here)
        ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.2)
    assert not ended
    holder.kill()
    holder.wait()
    waiting.join()
    holder.stdout.close()
    assert ended


@pytest.mark.parametrize("plant", ["link", "hard link", "fifo", "folder"])
def test_a_lock_empties_no_file_of_another_name(tmp_path: Path, plant: str) -> None:
    """In a sticky folder another user may put anything where the lock will be."""
    own, place = tmp_path / "own", tmp_path / "lock"
    own.write_text("precious")
    match plant:
        case "link":
            place.symlink_to(own)
        case "hard link":
            place.hardlink_to(own)
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
    with pytest.raises(OSError, match=r"symbolic links|of its own|directory"):
        open_lock(place)
    assert own.read_text() == "precious"


def test_a_lock_of_a_file_names_its_holder(tmp_path: Path) -> None:
    refused = pytest.raises(MissingError, match=f"process {os.getpid()} on ")
    with file_lock(tmp_path / "lock", "x"), refused, file_lock(tmp_path / "lock", "x"):
        pass
    (tmp_path / "lock").write_text("process 1 on a host with a name that is longer than this one")
    with file_lock(tmp_path / "lock", "x"):
        assert shows((tmp_path / "lock").read_text(), os.getpid(), os.uname().nodename)
