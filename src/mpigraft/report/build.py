"""What `build` shows: its progress, and which transports of what was built are proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpigraft.core.numbers import duration
from mpigraft.core.text import fold

if TYPE_CHECKING:
    from mpigraft.build import BuildProgress
    from mpigraft.core.model import MpiInstall
    from mpigraft.run import TransportProof

OUTCOME = 17  # columns of what became of a transport


def build_progress(now: BuildProgress) -> str:
    """`[2/5] libfabric 2.1.0: building, about 12 min left`."""
    head = f"[{now.number}/{now.count}] {now.package} {now.version}"
    if now.phase == "kept":
        return f"{head}: was built before"
    parts = [now.phase] if now.phase else []
    parts += [f"after {duration(now.elapsed_s)}"] if now.phase else []
    parts += [f"about {duration(now.left_s)} left"] if now.left_s >= 0 else []
    return f"{head}: {', '.join(parts)}" if parts else head


def proved_transports(mpi: MpiInstall, proofs: Sequence[TransportProof]) -> Iterator[str]:
    """Describe what became of each transport."""
    width = max((len(offer.name) for offer in mpi.transports), default=0)
    for proof in proofs:
        head = f"  {proof.name:{width}}  {proof.outcome:{OUTCOME}}  "
        yield from fold(proof.why.partition("\n")[0], head, len(head))
