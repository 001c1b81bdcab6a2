"""Where ranks really ran, held against where their layout wants them: CPUs and GPUs.

All of it warns and refuses nothing: a container or a batch system may forbid binding, and the
values are still those of the transport that was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mpigraft import seating
from mpigraft.launchers.parts import listed
from mpigraft.model import Finding, Layout, Level, Placement, RankRecord

SHOWN = 4  # ranks that a finding names
CODES = ("binding", "gpu")


def check(layout: Layout, placement: Placement, ranks: Sequence[RankRecord]) -> tuple[Finding, ...]:
    """What is wrong with the CPUs and GPUs of ranks that left a record. `placement` is of each
    node; without its masks ranks only must not share cores."""
    seats = tuple(by_seat(ranks))
    return (*_unlike(placement, seats), *_shared(layout, seats), *_gpus(placement, seats))


def by_seat(ranks: Sequence[RankRecord]) -> Iterator[tuple[int, RankRecord]]:
    """(number on its node, record): launchers number the ranks of a node in the order of the
    world."""
    ordered = sorted(ranks, key=lambda r: (r.host, r.rank))
    for _, on_host in groupby(ordered, key=lambda r: r.host):
        yield from enumerate(on_host)


def _unlike(placement: Placement, seats: Sequence[tuple[int, RankRecord]]) -> Iterator[Finding]:
    """Ranks that may run elsewhere than on their mask. Fewer CPUs of it are fine: a scheduler that
    hands out one hardware thread of each core has no more."""
    wrong = [
        f"rank {rank.rank} on {rank.host} may run on {listed(rank.cores) or 'none'} instead of "
        f"{listed(mask)}"
        for local, rank in seats
        if local < len(placement.masks)
        and not set(rank.cores) <= set(mask := placement.masks[local])
    ]
    if wrong:
        yield _warning(
            "binding",
            _some(wrong),
            why="the layout that was asked for is not the one that was measured",
            mend="see whether the job has these CPUs (`mpigraft layout` draws them), and what "
            "else binds: the scheduler, a wrapper, the engine",
        )


def _shared(layout: Layout, seats: Iterable[tuple[int, RankRecord]]) -> Iterator[Finding]:
    """Cores that two ranks have, though each was to have its own."""
    if layout.bind != "core":
        return
    owners = Counter((rank.host, core) for _, rank in seats for core in rank.cores)
    shared = sorted({core for (_, core), count in owners.items() if count > 1})
    if shared:
        yield _warning(
            "binding",
            f"ranks share cores {listed(shared)} although each was to have its own",
            why="ranks that share a core wait for each other's time slice: latency in milliseconds",
            mend="use fewer ranks, or a layout with -none",
        )


def _gpus(placement: Placement, seats: Iterable[tuple[int, RankRecord]]) -> Iterator[Finding]:
    """Ranks that see other GPUs than the one that was chosen for them."""
    wrong = []
    for local, rank in seats:
        if local >= len(placement.gpus):
            continue
        due = seating.shown(placement, local)
        name = due.partition("=")[0]
        if due not in rank.gpus:
            seen = next((word for word in rank.gpus if word.startswith(f"{name}=")), "")
            wrong.append(f"rank {rank.rank} on {rank.host} has {seen or f'no {name}'}, not {due}")
    if wrong:
        yield _warning(
            "gpu",
            _some(wrong),
            why="its GPU is not the nearest one, or another rank's too",
            mend="see what else sets it: --set, a module, a wrapper, the engine",
        )


def _some(wrong: Sequence[str]) -> str:
    more = len(wrong) - SHOWN
    return "; ".join(wrong[:SHOWN]) + (f"; and {more} more ranks" if more > 0 else "")


def _warning(code: str, seen: str, *, why: str, mend: str) -> Finding:
    return Finding(Level.WARNING, code, seen, why, mend)
