"""What several launchers write in one way."""

from __future__ import annotations

from mpigraft.model import Order


def hosts(order: Order, flag: str) -> tuple[str, ...]:
    """`--host n1:4,n2:4`, K ranks each; nothing on this host alone, and nothing for nodes of a
    scheduler, which the launcher knows of."""
    allocation = order.allocation
    if allocation.here or allocation.scheduler:
        return ()
    ranks = order.layout.ranks_per_node
    named = allocation.hosts[: order.layout.nodes]
    return (flag, ",".join(f"{host}:{ranks}" for host in named))


def joined(order: Order, words: tuple[str, ...]) -> tuple[str, ...]:
    """The programs, each behind its `-n N` and `words`, with a colon between them."""
    nodes = order.layout.nodes
    found: list[str] = []
    for group in order.groups:
        found += [*([":"] if found else []), "-n", str(nodes * group.ranks_per_node)]
        found += [*words, *group.words]
    return tuple(found)
