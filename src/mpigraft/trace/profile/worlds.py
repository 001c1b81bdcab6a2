"""Sort what the processes of a job counted into its worlds (core/worlds.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from mpigraft.core.worlds import LAUNCH, group_ranks, sort_worlds
from mpigraft.trace.profile.node_file import RankSlot

Row = tuple[str, RankSlot]  # host, and what a process of it counted


@dataclass(frozen=True, slots=True)
class CountedWorld:
    """The processes of one world, by rank; with those of the launch all that never returned from
    MPI_Init."""

    kind: str
    rows: tuple[Row, ...]

    @property
    def size(self) -> int:
        return max(slot.size for _, slot in self.rows)

    @property
    def label(self) -> tuple[str, int, str]:
        """What list_worlds names it by: program, ranks, kind."""
        program = PurePath(self.rows[0][1].program.partition("\0")[0]).name
        return program, self.size, self.kind


def sort_counts(
    nodes: Mapping[str, Sequence[RankSlot]], ranks: int = 0
) -> tuple[CountedWorld, ...]:
    """Return the worlds of a job of so many ranks, that of the launch first, if there is one. 0
    ranks: as many as its largest world has. A launch that fell apart into several worlds is
    several."""
    rows = [(host, slot) for host, slots in nodes.items() for slot in slots]
    inside = tuple(row for row in rows if row[1].rank < 0 or row[1].size == 0)
    known = {id(row[1].lineage): row for row in rows if row not in inside}
    lineages = [slot.lineage for _, slot in known.values()]
    worlds = []
    for world in sort_worlds(lineages, ranks):
        parts = group_ranks(world.members) if world.kind == LAUNCH else [world.members]
        for members in sorted(parts, key=lambda own: -own[0].size):
            own = (known[id(one)] for one in members)
            worlds.append(CountedWorld(world.kind, tuple(sorted(own, key=_rank))))
    if inside and worlds and worlds[0].kind == LAUNCH:
        worlds[0] = CountedWorld(LAUNCH, (*worlds[0].rows, *inside))
    elif inside:
        worlds.insert(0, CountedWorld(LAUNCH, inside))
    return tuple(worlds)


def _rank(row: Row) -> int:
    return row[1].rank
