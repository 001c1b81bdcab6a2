"""One campaign at a time on a host, freed however the holder ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from mpigraft.errors import MissingError
from mpigraft.lock import campaign_lock

HOLD = """
import sys, time
from mpigraft.lock import campaign_lock
with campaign_lock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def name() -> str:
    return f"\0mpigraft-test-{os.getpid()}"


def test_a_second_campaign_is_told_who_holds_the_lock(name: str) -> None:
    with campaign_lock(name):
        with pytest.raises(MissingError, match=f"pid {os.getpid()}") as caught, campaign_lock(name):
            pass
        assert caught.value.code == 3
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
