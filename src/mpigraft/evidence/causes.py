"""Why a launch failed, where its output says so: a line of the launcher's, of ssh's or of Slurm's.

The lines are rows of knowledge/causes.toml. A program may print such words itself, so they must be
whole lines of a launch that failed, and what keeps ranks from starting counts only if some did not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from mpigraft.core.model import Finding
from mpigraft.core.process import Completed, clean
from mpigraft.knowledge import cause_table

MOST = 8  # nodes that a finding lists


def named_causes(
    completed: Completed, hosts: Sequence[str], *, whole: bool, slurm: bool = False
) -> tuple[Finding, ...]:
    """Name the causes that the output of a failed launch on `hosts` has, one finding for all nodes
    of a cause. `whole`: every rank came into MPI; `slurm`: it is in a job of Slurm."""
    output, table = completed.text(), cause_table()
    unnamed = table.named_nodes(output) or _others(hosts)
    nodes: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for row in table.cause:
        if (row.vague and nodes) or not row.concerns(completed.code, whole=whole, slurm=slurm):
            continue
        hits = [*row.hits(output)]
        if any("node" in fields for fields in hits):
            hits = [fields for fields in hits if "node" in fields]
        for fields in hits:
            names = (fields.pop("node"),) if "node" in fields else unnamed
            listed = nodes.setdefault((row.finding, tuple(sorted(fields.items()))), [])
            listed.extend(name for name in names if name not in listed)
    return tuple(
        Finding.of(code, **{**dict[str, Any](fields), "node": _listed(names)})
        for (code, fields), names in nodes.items()
    )


def ends_launch(line: bytes) -> bool:
    """Return whether the launcher would wait in vain after this line of its errors."""
    text = clean(line)
    return any(row.waits and any(row.hits(text)) for row in cause_table().cause)


def is_cause(code: str) -> bool:
    """Return whether findings of this code come from the output of a launch."""
    return any(row.finding == code for row in cause_table().cause)


def _others(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes that a launcher here starts daemons on: a cause that names none is of one of
    them."""
    own = os.uname().nodename.partition(".")[0]
    others = tuple(host for host in hosts if host.partition(".")[0] != own)
    return others if len(others) < 2 else (f"one of {_listed(others)}",)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return (", ".join(names[:MOST]) or "a node") + more
