"""Which processes of a job are the ranks of its launch, and which are other worlds.

A launcher starts a task per rank and connects it: by PMIx, a PMI descriptor or port. The rank of a
task is the process that has this connection, was not spawned, and has no process above it that
entered MPI itself. All others are worlds of their own: what an inner `mpiexec` started, a program
that was cut off from the launcher (a singleton), children of MPI_Comm_spawn.
`native/preload/task.h` says how processes write this. Witness, profile and record use this rule,
and so does the quick look of `run`: standard library only, and little of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNNAMED = "-"  # a job whose launcher has no name for it
# Kinds of worlds: the ranks of the launch; those of a program that its tasks ran afterwards; a
# program that some tasks ran alone; what another launcher started, or nobody; what was spawned.
LAUNCH, LATER, ALONE, INNER, SPAWNED = "launch", "later", "alone", "inner", "spawned"
STARTED = (LAUNCH, LATER)  # by the launcher: each is to be on the MPI that was requested


class Lineage:
    """The place of a process in a job. `key` is the caller's name for it."""

    __slots__ = (
        "above", "connected", "job", "key", "node", "process", "program", "rank", "size",
        "spawned", "task",
    )  # fmt: skip

    def __init__(
        self, key: Any, place: tuple[str, int, int], line: Mapping[str, Any], program: str
    ) -> None:
        self.key = key
        self.node, self.rank, self.size = place
        self.program = program.rpartition("/")[2]
        self.process = f"{line['pid']}.{line.get('start', '')}"
        task = line.get("task", {})
        self.task: str = task.get("process", self.process)
        self.connected: bool = task.get("connected", True)
        self.spawned: bool = task.get("spawned", False)
        self.job: str = task.get("job", "")
        self.above: tuple[str, ...] = tuple(task.get("above", ()))

    @property
    def of_launcher(self) -> bool:
        """Whether the launcher of the job connected it as it started it."""
        return self.connected and not self.spawned


def make_lineage(
    key: Any, place: tuple[str, int, int], line: Mapping[str, Any], program: str = ""
) -> Lineage:
    """Return the lineage of the process that wrote `line` (native/preload/task.h), at (node, rank,
    size). Raises one of KeyError, TypeError, AttributeError for a line that no process writes."""
    task = line.get("task", {})
    texts = [task.get("process", ""), task.get("job", ""), *task.get("above", ())]
    if any(type(text) is not str for text in texts):
        raise TypeError(f"{texts} of a task are no texts")
    answers = [task[name] for name in ("connected", "spawned") if name in task]
    if any(type(answer) is not bool for answer in answers):
        raise TypeError(f"{answers} of a task are neither true nor false")
    return Lineage(key, place, line, program)


class ProcessWorld:
    """Processes that are of one world, or as far as is known of one kind."""

    __slots__ = ("kind", "members")

    def __init__(self, kind: str, members: Sequence[Lineage]) -> None:
        self.kind, self.members = kind, members


def sort_worlds(processes: Sequence[Lineage], ranks: int) -> list[ProcessWorld]:
    """Sort the processes of a job of so many ranks into worlds; 0: as many as the largest has.

    The first world is that of the launch, whole or not; it may have no member. Processes of a node
    are in the order in which they came.
    """
    top = topmost(processes)
    own = [one for one in top if one.of_launcher] or _cut_off(top)
    ranks = ranks or max({one.size for one in own} or {ranks})
    first, later, wrong = _by_turn([one for one in own if one.size == ranks], ranks)
    odd = [one for one in own if one.size != ranks]
    if len(first) == ranks and not wrong:
        wrong = _in_every_task(odd, {(one.node, one.task) for one in first})
    else:
        wrong += odd
    launch = [*first, *wrong]
    joined = {id(one) for one in launch}
    alone = [one for one in odd if id(one) not in joined]
    known = {id(one) for world in (launch, alone, *later) for one in world}
    rest = [one for one in processes if id(one) not in known]
    return [
        ProcessWorld(LAUNCH, launch),
        *(ProcessWorld(LATER, turn) for turn in later),
        *(ProcessWorld(ALONE, world) for world in group_ranks(alone)),
        *(ProcessWorld(_kind(world), world) for world in group_ranks(rest)),
    ]


def topmost(processes: Iterable[Lineage]) -> list[Lineage]:
    """Return those below no other process that entered MPI."""
    known = {(one.node, one.process) for one in processes}
    return [one for one in processes if not any((one.node, a) in known for a in one.above)]


def _cut_off(top: Sequence[Lineage]) -> list[Lineage]:
    """Return the ranks of a launch where the launcher's connection reached none: what lost it."""
    lost = [one for one in top if not one.spawned and not one.job]
    return lost if len(lost) == len(top) else []


def _by_turn(
    ranks: Iterable[Lineage], count: int
) -> tuple[list[Lineage], list[list[Lineage]], list[Lineage]]:
    """Return the first process of each rank; whole worlds of programs that the same tasks ran
    later; and what is neither: a rank that is there twice, or a later world that is not whole."""
    turns: list[list[Lineage]] = [[]]
    of_rank: dict[int, list[Lineage]] = {}
    wrong = []
    for one in ranks:
        before = of_rank.setdefault(one.rank, [])
        if before and (before[0].node, before[0].task) != (one.node, one.task):
            wrong.append(one)
            continue
        _append(turns, len(before), one)
        before.append(one)
    first, *others = turns
    later = [turn for turn in others if len(turn) == count]
    wrong += [one for turn in others if len(turn) != count for one in turn]
    return first, later, wrong


def _append(worlds: list[list[Lineage]], number: int, one: Lineage) -> None:
    """Append it to the world of that number, the next one at most."""
    if number == len(worlds):
        worlds.append([])
    worlds[number].append(one)


def _in_every_task(odd: Iterable[Lineage], tasks: set[tuple[str, str]]) -> list[Lineage]:
    """Return ranks of a program that every task ran as another world than the launcher's: that is
    what a library does that does not know the launcher. What some tasks run alone is a tool."""
    by_program: dict[str, list[Lineage]] = {}
    for one in odd:
        by_program.setdefault(one.program, []).append(one)
    return [
        one
        for own in by_program.values()
        if {(o.node, o.task) for o in own} >= tasks
        for one in own
    ]


def _kind(world: Iterable[Lineage]) -> str:
    return SPAWNED if any(one.spawned for one in world) else INNER


def group_ranks(processes: Iterable[Lineage]) -> list[list[Lineage]]:
    """Worlds of processes by job and size; where a number comes again, another world begins."""
    jobs: dict[tuple[object, ...], list[list[Lineage]]] = {}
    counts: dict[tuple[object, ...], int] = {}
    for one in processes:
        where = (one.node, one.above[:1]) if one.job == UNNAMED else ()
        job = (one.job, one.size, where)
        number = counts.get((job, one.rank), 0)
        counts[job, one.rank] = number + 1
        _append(jobs.setdefault(job, []), number, one)
    return [world for worlds in jobs.values() for world in worlds]


def list_worlds(worlds: Iterable[tuple[str, int, str]], most: int = 4) -> str:
    """Name worlds by (program, ranks, kind): "2 x python3 (1 rank), app (2 ranks, spawned)"."""
    counts: dict[str, int] = {}
    for program, size, kind in worlds:
        ranks = f"{size} rank" if size == 1 else f"{size} ranks"
        spawned = ", spawned" if kind == SPAWNED else ""
        text = f"{program or 'a program'} ({ranks}{spawned})"
        counts[text] = counts.get(text, 0) + 1
    texts = [f"{count} x {text}" if count > 1 else text for text, count in counts.items()]
    more = [f"{len(texts) - most} more kinds"] if len(texts) > most else []
    return ", ".join([*texts[:most], *more])
