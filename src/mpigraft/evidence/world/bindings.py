"""Where ranks really ran, compared with where their layout puts them: CPUs and GPUs.

All of it warns and refuses nothing: a container or a batch system may forbid binding, and the
values are still those of the transport that was asked for.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mpigraft.core.cpuset import format_cpus, is_confined
from mpigraft.core.fingerprint import boot_id
from mpigraft.core.model import Finding, Layout, Placement, RankRecord
from mpigraft.launch import visible_gpus

SHOWN = 4  # ranks that a finding names
BINDING_CODES = ("binding", "cores-shared", "gpu")


def check(
    layout: Layout, placement: Placement, ranks: Sequence[RankRecord], *, scheduled: bool = False
) -> tuple[Finding, ...]:
    """Report what is wrong with the CPUs and GPUs of ranks that left a record. `placement` is of
    each node; without its masks ranks must not share cores, nor leave the affinity mask of this
    process on its node. A scheduler's launcher knows no such mask: its ranks are `scheduled`."""
    numbered = tuple(with_local_rank(ranks))
    own = () if placement.masks or scheduled or layout.bind == "none" else _own_mask()
    return (
        *_outside_masks(placement, numbered),
        *_outside_mask(own, numbered),
        *_shared(layout, numbered),
        *_gpus(placement, numbered),
    )


def with_local_rank(ranks: Sequence[RankRecord]) -> Iterator[tuple[int, RankRecord]]:
    """Yield (number on its node, record): launchers number the ranks of a node in the order of the
    world."""
    ordered = sorted(ranks, key=lambda r: (r.host, r.rank))
    for _, on_host in groupby(ordered, key=lambda r: r.host):
        yield from enumerate(on_host)


def _outside_masks(
    placement: Placement, numbered: Sequence[tuple[int, RankRecord]]
) -> Iterator[Finding]:
    """Yield ranks that may run elsewhere than on their mask. Fewer CPUs of it are fine: a scheduler
    that hands out one hardware thread of each core has no more."""
    wrong = [
        f"rank {rank.rank} on {rank.host} may run on {format_cpus(rank.cores) or 'none'} "
        f"instead of {format_cpus(mask)}"
        for local, rank in numbered
        if local < len(placement.masks)
        and not set(rank.cores) <= set(mask := placement.masks[local])
    ]
    if wrong:
        yield Finding.of("binding", ranks=_some(wrong))


def _own_mask() -> tuple[int, ...]:
    """Return the CPUs that an affinity mask leaves this process; nothing where there is no such
    mask."""
    return tuple(sorted(os.sched_getaffinity(0))) if is_confined() else ()


def _outside_mask(
    own: tuple[int, ...], numbered: Iterable[tuple[int, RankRecord]]
) -> Iterator[Finding]:
    """Yield ranks on this node outside of the CPUs that this process was given."""
    here = (os.uname().nodename, boot_id())
    wrong = [
        f"rank {rank.rank} on {rank.host} may run on {format_cpus(rank.cores)}, outside of the "
        f"CPUs that this command may use: {format_cpus(own)}"
        for _, rank in numbered
        if own and (rank.host, rank.boot) == here and not set(rank.cores) <= set(own)
    ]
    if wrong:
        yield Finding.of("binding", ranks=_some(wrong))


def _shared(layout: Layout, numbered: Iterable[tuple[int, RankRecord]]) -> Iterator[Finding]:
    """Cores that two ranks have, though each was to have its own."""
    if layout.bind != "core":
        return
    owners = Counter((rank.host, core) for _, rank in numbered for core in rank.cores)
    shared = sorted({core for (_, core), count in owners.items() if count > 1})
    if shared:
        yield Finding.of("cores-shared", cores=format_cpus(shared))


def _gpus(placement: Placement, numbered: Iterable[tuple[int, RankRecord]]) -> Iterator[Finding]:
    """Yield ranks that see other GPUs than the one that was chosen for them."""
    wrong = []
    for local, rank in numbered:
        if local >= len(placement.gpus):
            continue
        due = visible_gpus(placement, local)
        name = due.partition("=")[0]
        if due not in rank.gpus:
            visible = next((word for word in rank.gpus if word.startswith(f"{name}=")), "")
            wrong.append(
                f"rank {rank.rank} on {rank.host} has {visible or f'no {name}'}, not {due}"
            )
    if wrong:
        yield Finding.of("gpu", ranks=_some(wrong))


def _some(wrong: Sequence[str]) -> str:
    more = len(wrong) - SHOWN
    return "; ".join(wrong[:SHOWN]) + (f"; and {more} more ranks" if more > 0 else "")
