"""A launch that ended: what it printed, what its ranks recorded, and where they should run."""

from __future__ import annotations

from dataclasses import dataclass

from mpigraft.core.model import NOWHERE, Finding, Placement, RankRecord
from mpigraft.core.process import Completed


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """`placement` is of each rank of a node, where the launcher was given one; `hosts` are those of
    the allocation, none for this host alone; `nodes` is what is wrong with these, where the launch
    did not end well, or was not even `started`."""

    completed: Completed
    ranks: tuple[RankRecord, ...]
    placement: Placement = NOWHERE
    hosts: tuple[str, ...] = ()
    nodes: tuple[Finding, ...] = ()
    started: bool = True

    @property
    def output(self) -> dict[str, bytes]:
        """What it printed, by stream."""
        return {"stdout": self.completed.stdout, "stderr": self.completed.stderr}
