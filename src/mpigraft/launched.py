"""A launch that ended: what it printed, what its ranks recorded, and where these were to be."""

from __future__ import annotations

from typing import NamedTuple

from mpigraft.model import NOWHERE, Finding, Placement, RankRecord
from mpigraft.run import Completed


class Launched(NamedTuple):
    """In this order `prove.judge` and `measure.outcome` take it."""

    completed: Completed
    ranks: tuple[RankRecord, ...]
    placement: Placement = NOWHERE  # of each rank of a node, where it was told to the launcher
    hosts: tuple[str, ...] = ()  # of the allocation; empty: this host alone
    nodes: tuple[Finding, ...] = ()  # what is wrong with these, where the launch did not end well
