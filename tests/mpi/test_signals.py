"""Signals reach the ranks as the launcher delivers them: once each, whatever stands between."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.mpi.test_run import ENTRY
from tests.native.native_world import compile_c
from tests.readable import readable

pytestmark = pytest.mark.mpi

WAIT_S = 60.0
MPIS = {Family.OPENMPI: "openmpi@5", Family.MPICH: "mpich@5", Family.INTEL: "intel"}
# Which of them the launchers of Open MPI 5.0.11, MPICH 5.0.2 and Intel MPI 2021 forward, seen
# without mpigraft. Open MPI makes SIGTSTP a SIGSTOP, of which a rank notices the end.
FORWARDED = {
    Family.OPENMPI: (signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGUSR1),
    Family.MPICH: (signal.SIGUSR1, signal.SIGUSR1),
    Family.INTEL: (signal.SIGUSR1, signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR1),
}


class Running:
    """A job of two ranks of signals.c, up when the constructor returns."""

    def __init__(self, argv: Sequence[object], **more: object) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, process_group=0, **more,
        )  # type: ignore[call-overload]  # fmt: skip
        self.text = b""
        self.until(lambda: self.text.count(b"ready") == 2)

    def until(self, true: object) -> None:
        assert callable(true)
        deadline = time.monotonic() + WAIT_S
        out = self.process.stdout
        while not true():
            assert time.monotonic() < deadline, self.text
            if readable(out, wait_s=1):
                read = os.read(out.fileno(), 10000)
                assert read, self.text + self.process.stderr.read()
                self.text += read

    def got(self, number: int) -> list[int]:
        """How often each rank got it."""
        return [self.text.count(b"rank %d got %d\n" % (rank, number)) for rank in range(2)]

    def end(self) -> int:
        """End it in order; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        rest, _ = self.process.communicate(timeout=WAIT_S)
        self.text += rest
        return int(self.process.returncode)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def check(running: Running, sent: Sequence[signal.Signals]) -> None:
    """Each signal that is sent to mpigraft arrives, and no rank gets more than were sent."""
    for place, number in enumerate(sent):
        due = [sent[: place + 1].count(number)] * 2
        running.process.send_signal(number)
        running.until(lambda number=number, due=due: running.got(number) == due)
    assert running.process.poll() is None


@pytest.fixture(scope="module")
def programs(
    mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Family, Path]:
    made = {}
    for family in MPIS:
        lib = mpis[family] / "lib"
        library = next(p for p in sorted(lib.glob("libmpi.so.*")) if p.name.count(".") == 2)
        headers = ("-isystem", mpis[family] / "include")
        source = Path(__file__).parent / "signals.c"
        output = tmp_path_factory.mktemp(family.value) / "signals"
        made[family] = compile_c(source, output, *headers, library)
    return made


@pytest.fixture
def jobs() -> Iterator[list[Running]]:
    running: list[Running] = []
    yield running
    for one in running:
        one.close()


@pytest.mark.parametrize("engine", ["none", "bwrap"])
@pytest.mark.parametrize("family", MPIS, ids=str)
def test_each_signal_arrives_once(
    programs: Mapping[Family, Path],
    fresh_home: Path,
    jobs: list[Running],
    family: Family,
    engine: str,
) -> None:
    program = programs[family]
    words = ("--image", program, "--engine", engine, "--mpi", MPIS[family], "-n", "2")
    jobs.append(Running([*ENTRY, *words, "--", program]))
    check(jobs[0], FORWARDED[family])
    assert jobs[0].end() != 0
    # Open MPI 5 ends ranks by itself, before they can say so.
    assert jobs[0].got(signal.SIGTERM) == ([0, 0] if family is Family.OPENMPI else [1, 1])


def test_one_request_that_comes_twice_is_one(
    programs: Mapping[Family, Path], fresh_home: Path, jobs: list[Running]
) -> None:
    """timeout(1) sends its signal to the process that it started, then to its whole group."""
    words = ("--mpi", "mpich@5", "-n", "2", "--", programs[Family.MPICH])
    jobs.append(Running([*ENTRY, *words]))
    jobs[0].process.send_signal(signal.SIGTERM)
    os.killpg(jobs[0].process.pid, signal.SIGTERM)
    jobs[0].text += jobs[0].process.communicate(timeout=WAIT_S)[0]
    assert jobs[0].got(signal.SIGTERM) == [1, 1]
    assert jobs[0].process.returncode == 128 + signal.SIGTERM  # 137 when it was killed at once
