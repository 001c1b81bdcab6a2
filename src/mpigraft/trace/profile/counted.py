"""Make a profile of what the ranks of a run counted."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath

from mpigraft.core.listing import refresh_listing
from mpigraft.core.numbers import counted
from mpigraft.core.text import join_some, printable
from mpigraft.core.worlds import LAUNCH, list_worlds
from mpigraft.trace.profile.node_file import (
    Dropped,
    RankSlot,
    RoutineCounts,
    ThreadCounts,
    read_node_file,
)
from mpigraft.trace.profile.places import Places
from mpigraft.trace.profile.values import (
    ENTRIES,
    CallSite,
    PeerKind,
    PeerTraffic,
    Profile,
    RankUse,
    Routine,
    SizeUse,
    by_time,
    heaviest,
    spread_of,
)
from mpigraft.trace.profile.worlds import CountedWorld, sort_counts

SUFFIX = ".trace"
MAIN = re.compile(r"(main|MAIN__) \(")
INTERPRETER = re.compile(r"python[0-9.]*$")
HOST = re.compile(r"(.+)-[0-9a-f]{16}")
KINDS = tuple(PeerKind)
MOST_PEERS, MOST_SITES = 100_000, 500  # of a profile; the heaviest stay
MOST_WORLDS = 16  # other ones, with a profile each
DROPPED = {
    Dropped.THREADS: "calls of some threads",
    Dropped.SIZES: "sizes of some messages",
    Dropped.PEERS: "who sent to whom",
    Dropped.SITES: "some call sites",
}
SHOWN = 8  # ranks that a note names
UNDIVIDED = frozenset((
    "Wait", "Waitall", "Waitany", "Waitsome", "Send", "Ssend", "Rsend", "Sendrecv",
    "Sendrecv_replace", "Probe", "Mprobe", "Mrecv", "Barrier", "Win_fence", "Win_wait",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counted:
    """One rank of a run: its slot, its node, and its number in the profile."""

    slot: RankSlot
    host: str
    number: int
    end: int  # ticks at which it finalized, or the run ended

    @property
    def threads(self) -> tuple[ThreadCounts, ...]:
        """Those that called MPI. One of them may be several, one after the other."""
        return tuple(one for one in self.slot.threads if one.routines or one.current)

    @property
    def runs_s(self) -> tuple[float, ...]:
        """How long each thread ran, once the rank was in MPI: its calls are in this time, each
        after the other, so that they take no more of it than all. While a session begins, other
        threads may call MPI."""
        whole = self.end - self.slot.began - self.paused
        entries = [sum(self.ticks_in(one, name) for name in ENTRIES) for one in self.threads]
        sessions = any(self.ticks_in(one, "Session_init") for one in self.threads)
        first = 0 if sessions else max(entries, default=0)
        return tuple(self.seconds(max(0, whole - (own or first))) for own in entries or [first])

    @property
    def run_s(self) -> float:
        return min(self.runs_s)

    def ticks_in(self, thread: ThreadCounts, routine: str) -> int:
        """Return a thread's time in a routine, with the call that has not returned."""
        row = thread.routines.get(routine)
        inside = self.since(thread) if thread.current == routine else 0
        return (row.ticks if row else 0) + inside

    def since(self, thread: ThreadCounts) -> int:
        """Ticks since a thread's call began, or the last one returned, without what MPI_Pcontrol
        left out of them; of a rank that finalized 0."""
        if self.slot.finalized or not thread.entered:
            return 0
        out = self.paused - thread.paused if thread.current else 0
        if (began := self.slot.paused_since) and began < thread.entered:
            out -= thread.entered - began
        return max(0, self.end - thread.entered - max(0, out))

    @property
    def paused(self) -> int:
        """Ticks that MPI_Pcontrol left out."""
        since = self.slot.paused_since
        return self.slot.paused + (max(0, self.end - since) if since else 0)

    def seconds(self, ticks: int) -> float:
        speed = self.slot.ticks_per_s
        return ticks / speed if speed else 0.0

    @property
    def current(self) -> tuple[str, int]:
        """The routine that had not returned, and ticks since it was called; without one those
        since the last call returned."""
        if self.slot.finalized or not self.slot.threads:
            return "", 0
        thread = max(self.slot.threads, key=lambda one: (bool(one.current), one.entered))
        return thread.current, self.since(thread)


def read_counts(folder: Path) -> dict[str, tuple[RankSlot, ...]]:
    """Read the files of all nodes in a folder: {host: ranks}. Raises UsageError."""
    slots: dict[str, tuple[RankSlot, ...]] = {}
    refresh_listing(folder)
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        match = HOST.fullmatch(path.stem)
        host = match[1] if match else path.stem
        slots[host] = (*slots.get(host, ()), *read_node_file(path))
    return slots


@dataclass(frozen=True, slots=True)
class Counting:
    """How a run was counted. `root`: where the files of the program are, to name call sites; None:
    in an image. `now_ns`: when it ended; None: now."""

    ranks: int = 0  # that were requested; 0: as many as the largest world has
    waits: bool = False
    exit_code: int | None = None
    now_ns: int | None = None
    root: Path | None = Path("/")


def counted_profile(nodes: dict[str, tuple[RankSlot, ...]], counting: Counting) -> Profile | None:
    """Make the profile of a run: of its launch's world, with those of the other worlds that ran in
    the job; None where no rank entered MPI_Init."""
    worlds = sort_counts(nodes, counting.ranks)
    if not worlds:
        return None
    first, *others = (_profile(world, counting) for world in worlds[: MOST_WORLDS + 1])
    return replace(
        first,
        others=tuple(others),
        notes=(*_of_worlds(worlds), *first.notes),
        exit_code=counting.exit_code,
    )


def _of_worlds(worlds: Sequence[CountedWorld]) -> Iterator[str]:
    """Yield notes on the worlds of a job."""
    if worlds[0].kind != LAUNCH:
        yield "no rank of the launch entered MPI: the figures are of another world in its job"
    if worlds[1:]:
        named = list_worlds(one.label for one in worlds[1:])
        yield (
            f"other MPI worlds ran in the job and are not counted here: {named}. "
            "Of a file of -o, --show FILE --world N shows them"
        )
    if len(worlds) > MOST_WORLDS + 1:
        yield f"the first {MOST_WORLDS} of {len(worlds) - 1} other worlds are kept"


def _profile(own: CountedWorld, counting: Counting) -> Profile:
    now_ns, waits = counting.now_ns, counting.waits
    ranks, notes = _numbered(own, time.time_ns() if now_ns is None else now_ns)
    first = ranks[0].slot
    world = max(len(ranks), *(one.slot.size for one in ranks))
    total_s = sum(sum(one.runs_s) for one in ranks)
    routines = tuple(_routines(ranks, world, waits=waits))
    peers, sites = _peers(ranks), _sites(ranks, counting.root)
    began_ns = min(one.slot.began_ns for one in ranks)
    return Profile(
        program=_program(ranks),
        ranks=world,
        hosts=tuple(dict.fromkeys(one.host for one in ranks)),
        began=datetime.fromtimestamp(began_ns / 1e9, UTC).isoformat(timespec="seconds"),
        run_s=max(one.run_s for one in ranks),
        total_s=total_s,
        mpi_s=sum(one.time_s or 0.0 for one in routines if one.name not in ENTRIES),
        entry_s=max(
            (one.spread.high for one in routines if one.spread and one.name in ENTRIES), default=0.0
        ),
        waits=waits,
        routines=by_time(routines),
        each=tuple(_each(ranks)),
        peers=tuple(heaviest(peers))[:MOST_PEERS],
        sites=sites[:MOST_SITES],
        notes=(
            *notes,
            *_notes(ranks, world, first, len(peers), len(sites)),
            *(_waiting(ranks, routines) if waits else ()),
        ),
    )


def _numbered(world: CountedWorld, now_ns: int) -> tuple[list[Counted], list[str]]:
    """Return all ranks in order; after them those that never returned from MPI_Init."""
    inside = [row for row in world.rows if row[1].rank < 0 or row[1].size == 0]
    numbers = [slot.rank for _, slot in world.rows[: len(world.rows) - len(inside)]]
    numbers += range(world.size, world.size + len(inside))
    ranks = [
        Counted(slot, host, number, _end(slot, now_ns))
        for number, (host, slot) in zip(numbers, world.rows, strict=True)
    ]
    note = f"{counted(len(inside), 'rank')} never returned from MPI_Init"
    return ranks, [note] if inside else []


def _end(slot: RankSlot, now_ns: int) -> int:
    """Return when a rank ended, in ticks: it finalized, or the run ended."""
    if slot.ended:
        return slot.ended
    last = max((thread.entered for thread in slot.threads), default=slot.began)
    now = slot.began + int(max(0, now_ns - slot.began_ns) * slot.ticks_per_s / 1e9)
    return max(last, now)


def _program(ranks: Sequence[Counted]) -> str:
    names = dict.fromkeys(printable(_command(one.slot.program)) for one in ranks)
    return join_some([name for name in names if name], 3, " : ")


def _command(words: str) -> str:
    """Return the name of a command, whose words end in NUL; of an interpreter its script too."""
    program, *others = (PurePath(word).name for word in words.split("\0"))
    script = next((word for word in others if word.endswith(".py")), "")
    return f"{program} {script}" if INTERPRETER.match(program) and script else program


def _routines(ranks: Sequence[Counted], world: int, *, waits: bool) -> Iterator[Routine]:
    """Add up each routine over ranks and threads, with the time of calls that did not return."""
    times: dict[str, dict[int, float]] = defaultdict(dict)
    rows: dict[str, list[tuple[Counted, RoutineCounts]]] = defaultdict(list)
    for one in ranks:
        for thread in one.threads:
            for name in {*thread.routines, *filter(None, (thread.current,))}:
                own, ticks = times[name], one.ticks_in(thread, name)
                own[one.number] = own.get(one.number, 0.0) + one.seconds(ticks)
            for name, row in thread.routines.items():
                rows[name].append((one, row))
    for name, own in times.items():
        every = rows[name]
        yield Routine(
            name,
            time_s=sum(own.values()),
            calls=sum(row.calls for _, row in every),
            bytes=sum(row.bytes for _, row in every),
            waited_s=sum(one.seconds(row.waited) for one, row in every) if waits else None,
            longest_s=max((one.seconds(row.longest) for one, row in every), default=0.0),
            errors=sum(row.errors for _, row in every),
            spread=spread_of(own, world),
            sizes=tuple(_sizes(name, every)),
        )


def _sizes(name: str, rows: Sequence[tuple[Counted, RoutineCounts]]) -> Iterator[SizeUse]:
    classes: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for one, row in rows:
        for number, calls, total, ticks in row.sizes:
            own = classes[number]
            own[0] += calls
            own[1] += total
            own[2] += one.seconds(ticks)
    for number, sums in sorted(classes.items()):
        least = 1 << (number - 1) if number else 0
        estimated = name == "Startall" and sums[2] > 0
        most = max(0, 2 * least - 1)
        yield SizeUse(least, most, int(sums[0]), int(sums[1]), sums[2], estimated=estimated)
    if mixed := [(one, row.mixed) for one, row in rows if row.mixed]:
        least, most = min(own[3] for _, own in mixed), max(own[4] for _, own in mixed)
        messages, size = (sum(own[k] for _, own in mixed) for k in (0, 1))
        spent = sum(one.seconds(own[2]) for one, own in mixed)
        yield SizeUse(least, most, messages, size, spent, mixed=True)


def _each(ranks: Sequence[Counted]) -> Iterator[RankUse]:
    for one in ranks:
        current, since = one.current
        used = sum(
            one.ticks_in(thread, name)
            for thread in one.threads
            for name in {*thread.routines, thread.current} - {"", *ENTRIES}
        )
        yield RankUse(
            rank=one.number, host=one.host, run_s=one.run_s, mpi_s=one.seconds(used),
            finalized=one.slot.finalized, inside=current,
            inside_s=None if one.slot.finalized else one.seconds(since), threads=len(one.runs_s),
        )  # fmt: skip


def _peers(ranks: Sequence[Counted]) -> list[PeerTraffic]:
    """Return who sent to whom in the largest world; others have numbers of their own."""
    world = max(one.slot.size for one in ranks)
    sums: dict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for one in ranks:
        if one.number >= world:
            continue
        for thread in one.slot.threads:
            for target, kind, messages, total in thread.peers:
                own = sums[one.number, target, kind]
                own[0] += messages
                own[1] += total
    return [PeerTraffic(a, b, KINDS[kind], n, total) for (a, b, kind), (n, total) in sums.items()]


def _sites(ranks: Sequence[Counted], root: Path | None) -> tuple[CallSite, ...]:
    """Join call sites of all ranks that have one name."""
    sums: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    name_of: dict[str, Callable[[int], str]] = {}
    for one in ranks:
        if not one.slot.sites:
            continue
        if one.slot.maps not in name_of:
            name_of[one.slot.maps] = Places(one.slot.maps, root).name
        for site in one.slot.sites:
            frames = up_to_main(tuple(map(name_of[one.slot.maps], site.frames)))
            own = sums[site.routine, frames]
            own[0] += site.calls
            own[1] += one.seconds(site.ticks)
            own[2] += site.bytes
    sites = (
        CallSite(routine, frames, int(calls), time_s, int(total))
        for (routine, frames), (calls, time_s, total) in sums.items()
    )
    return tuple(sorted(sites, key=lambda s: (-(s.time_s or 0), -(s.calls or 0), s.frames)))


def up_to_main(frames: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out what starts every program."""
    place = next((k for k, frame in enumerate(frames) if MAIN.match(frame)), len(frames))
    return frames[: place + 1]


def _notes(
    ranks: Sequence[Counted], world: int, first: RankSlot, peers: int, sites: int
) -> Iterator[str]:
    """Yield notes on the figures."""
    for flag, what in DROPPED.items():
        hit = [one for one in ranks if flag in one.slot.dropped]
        if hit:
            full = any(Dropped.NO_DISK_SPACE in one.slot.dropped for one in hit)
            why = "no space on the disk" if full else "the budget of memory was used up"
            yield f"not counted: {what}, by {_named(hit)}: {why}"
    paused = max(one.seconds(one.paused) for one in ranks)
    if paused:
        yield f"MPI_Pcontrol left out up to {paused:.3g} s of a rank's run"
    silent = set(range(first.size)) - {one.number for one in ranks}
    if silent:
        yield f"no counts of {counted(len(silent), 'rank')} of {world}"
    if (threads := max(len(one.threads) for one in ranks)) > 1:
        yield (
            f"up to {threads} threads of a rank called MPI: their times are added up, "
            "and shares are of the run time of these threads together"
        )
    if peers > MOST_PEERS:
        yield f"of {peers} pairs of ranks the {MOST_PEERS} heaviest are kept"
    if sites > MOST_SITES:
        yield f"of {sites} call sites the {MOST_SITES} longest are kept"


def _waiting(ranks: Sequence[Counted], routines: Sequence[Routine]) -> Iterator[str]:
    """Yield routines that mix waiting and moving, and the last rank, which waits least."""
    whole = [one.name for one in by_time(routines) if one.name in UNDIVIDED and one.time_s]
    if whole:
        yield f"waiting and moving are not separated in {join_some(whole, SHOWN, ', ')}"
    waited = {
        one.number: one.seconds(sum(r.waited for t in one.threads for r in t.routines.values()))
        for one in ranks
    }
    last, mean = min(waited, key=lambda rank: waited[rank]), sum(waited.values()) / len(waited)
    if waited[last] < mean / 2:
        own = f"{waited[last]:.3g} s"
        yield f"others wait most for rank {last}: it waited {own}, a rank {mean:.3g} s"


def _named(ranks: Sequence[Counted]) -> str:
    return f"rank {join_some([str(one.number) for one in ranks], SHOWN, ', ')}"
