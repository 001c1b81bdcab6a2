"""Runs the tests in two lanes side by side: one with this machine's network, one with its own.

    python -m tests.lanes [OPTION OF PYTEST]...

Most tests wait, for a launcher, a scheduler or the kernel, and two lanes wait at once. MPIs of one
network namespace see each other's traffic and hold one lock between their campaigns, so the second
lane has a namespace with nothing but a loopback and an interface that leads nowhere; clusters and
images are for the first, which has the way out. Modules of SHARED need neither: a lane
that has run its own tests takes of these, one module at a time, what the other has not begun.
Where no namespace can be made the lanes run one after the other.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

PROJECT = Path(__file__).resolve().parents[1]
FIRST = ("tests/testbed",)
SECOND = ("tests/mpi", "tests/native", "tests/browser")
SHARED = ("tests/unit",)
OWN_NETWORK = ("unshare", "--net", "--mount", "tests/own-network")
NOTHING_COLLECTED = 5  # exit code of pytest


def may_unshare() -> bool:
    tried = subprocess.run([*OWN_NETWORK, "true"], cwd=PROJECT, stderr=subprocess.DEVNULL)
    return tried.returncode == 0


def main(words: list[str]) -> int:
    with tempfile.TemporaryDirectory() as claims, tempfile.TemporaryFile() as log:
        pytest_ = [sys.executable, "-m", "pytest", f"--claims={claims}", *words]
        first, second = [*pytest_, *FIRST, *SHARED], [*pytest_, *SECOND, *SHARED]
        if not may_unshare():
            return worst([subprocess.run(argv, cwd=PROJECT).returncode for argv in (first, second)])
        began = time.monotonic()
        codes = run_lanes(first, [*OWN_NETWORK, *second], log)
        log.seek(0)
        sys.stdout.buffer.write(log.read())
    sys.stdout.write(f"both lanes: {time.monotonic() - began:.0f} s\n")
    return worst(codes)


def run_lanes(first: list[str], second: list[str], log: IO[bytes]) -> list[int]:
    """Run both, the second into a log. Asked to end, they end as after Ctrl-C: both clean up."""
    lanes: list[subprocess.Popen[bytes]] = []

    def interrupt(*_: object) -> None:
        for lane in lanes:
            if lane.poll() is None:
                lane.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGINT, lambda *_: None)  # a terminal sends it to the lanes too
    lanes.append(subprocess.Popen(first, cwd=PROJECT))
    lanes.append(subprocess.Popen(second, cwd=PROJECT, stdout=log, stderr=log))
    return [lane.wait() for lane in lanes]


def worst(codes: list[int]) -> int:
    """0 if both lanes are well; one in which an option chose no test is, unless both are."""
    ran = [code for code in codes if code != NOTHING_COLLECTED]
    return max(ran, key=abs) if ran else NOTHING_COLLECTED


class Claims:
    """Of SHARED, runs only the modules that this lane claims first; `folder` has the claims."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claimed: dict[Path, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """As pytest's own, but what comes next is not known before it comes."""
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest says so
        mine = self._mine(session.items)
        item = next(mine, None)
        while item is not None:
            following = next(mine, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
        return True

    def _mine(self, items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
        for item in items:
            if item.path not in self.claimed:
                self.claimed[item.path] = self._claim(item.path.relative_to(PROJECT))
            if self.claimed[item.path]:
                yield item

    def _claim(self, module: Path) -> bool:
        if not any(module.is_relative_to(folder) for folder in SHARED):
            return True
        with contextlib.suppress(FileExistsError):
            (self.folder / "-".join(module.parts)).touch(exist_ok=False)
            return True
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
