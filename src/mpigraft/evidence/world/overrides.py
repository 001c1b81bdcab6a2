"""Whether each node has in a stack's overrides what this one has.

Overrides such as EESSI's host_injections are often folders of each node. A node to which nobody
injected runs the stack's own MPI, and one to which something else was injected runs that, under
the same path and number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from mpigraft.core.model import Configuration, Finding, GraftPlan, GuestKind, RankRecord
from mpigraft.core.text import join_some
from mpigraft.evidence.world.mapped import LIBMPI
from mpigraft.graft import generation_mark, mapped_marks

FEW = 8  # nodes that are named


def due_mark(configuration: Configuration) -> str:
    """Give the file that every rank must map which runs on the generation of a stack; empty where
    none is due."""
    plan = configuration.graft
    stack = plan is not None and plan.guest.kind is GuestKind.STACK
    return generation_mark(plan.libmpi) if plan and stack else ""


def check_overrides(configuration: Configuration, ranks: Sequence[RankRecord]) -> list[Finding]:
    """Report the nodes whose ranks mapped another MPI than a stack has on this node."""
    plan = configuration.graft
    if plan is None or plan.guest.kind is not GuestKind.STACK:
        return []
    mark = due_mark(configuration)
    pairs = {(id(rank.libraries), rank.host): rank for rank in ranks}  # thousands share a list
    mapped = []
    for rank in pairs.values():
        files = (lib.path.removesuffix(" (deleted)") for lib in rank.libraries)
        paths = [path for path in files if LIBMPI.fullmatch(PurePath(path).name)]
        other = next((path for path in paths if path != plan.libmpi), "")
        if not other and paths and mark and mapped_marks(rank.libraries) != {mark}:
            other = f"another generation at {plan.libmpi}"
        if other:
            mapped.append((rank.host, other))
    return differing_nodes(plan, mapped)


def differing_nodes(plan: GraftPlan, mapped: Iterable[tuple[str, str]]) -> list[Finding]:
    """Report (node, what its ranks mapped instead), but for this node: there it is no matter of
    where overrides lie."""
    here = os.uname().nodename
    nodes: dict[str, dict[str, None]] = {}
    for host, other in sorted(mapped):
        if host != here:
            nodes.setdefault(other, {})[host] = None
    return [
        Finding.of(
            "override-differs",
            nodes=join_some([*hosts], FEW, ", "),
            mapped=other,
            due=plan.libmpi,
            here=here,
            stack=plan.guest.source,
        )
        for other, hosts in nodes.items()
    ]
