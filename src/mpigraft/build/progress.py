"""How far a build is, from what EasyBuild prints while it runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mpigraft.build.values import BuildStep
from mpigraft.core.process import clean

PHASE = re.compile(r"^== (?P<phase>[a-z][a-z &,-]*?)\.\.\.$")
# What of a package's time has passed when a phase of it begins, as measured with Open MPI.
SHARES = {
    "configuring": 0.02,
    "building": 0.2,
    "testing": 0.85,
    "installing": 0.85,
    "sanity checking": 0.97,
    "creating module": 0.99,
}


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """A package of a build, and the step of EasyBuild that it is in; `left_s` of the whole build is
    negative as long as nobody can know."""

    package: str
    version: str
    number: int
    count: int
    phase: str = ""  # empty: it starts; `kept`: it was built before
    elapsed_s: float = 0.0
    left_s: float = -1.0


KEPT = "kept"
Report = Callable[[BuildProgress], None]


class Meter:
    """Reports the progress of a build. The time that is left is estimated by the work of packages,
    in seconds of one core, against that of those that were built before in this run."""

    def __init__(self, steps: Sequence[BuildStep], built: frozenset[str], report: Report) -> None:
        self.steps, self.report = steps, report
        self.work = [0.0 if step.id in built else step.package.work for step in steps]
        self.began = time.monotonic()
        self.rest = b""
        self.now = BuildProgress("", "", 0, len(steps))
        self.share = 0.0

    def start(self, number: int, phase: str = "") -> None:
        """Note that a package starts, counted from 1; or it is kept."""
        step = self.steps[number - 1]
        self.now = replace(self.now, package=step.id, version=step.version, number=number)
        self.share = 0.0
        self._tell(phase)

    def listen(self, block: bytes) -> None:
        """Take what EasyBuild printed."""
        *lines, self.rest = (self.rest + block).split(b"\n")
        for line in lines:
            if match := PHASE.match(clean(line).rstrip()):
                self.share = SHARES.get(match["phase"], self.share)
                self._tell(match["phase"])

    def _tell(self, phase: str) -> None:
        elapsed = time.monotonic() - self.began
        self.now = replace(
            self.now, phase=phase, elapsed_s=elapsed, left_s=self._remaining_s(elapsed)
        )
        self.report(self.now)

    def _remaining_s(self, elapsed: float) -> float:
        number = self.now.number - 1
        done = sum(self.work[:number]) + self.share * self.work[number]
        rest = sum(self.work) - done
        return elapsed * rest / done if done > 0 else -1.0
