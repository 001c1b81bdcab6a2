"""`mpigraft bench --dry-run`: what a campaign would start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mpigraft.cli.common import tell

if TYPE_CHECKING:
    from mpigraft.core.model import Allocation
    from mpigraft.request import CampaignSpec


def nodes_of_job(spec: CampaignSpec, nodes: Allocation, login: str) -> Allocation:
    """For a plan on a login node: as many nodes like it as the layouts need. Tells so."""
    from mpigraft.core.model import MAX_COUNT, parse_layout
    from mpigraft.core.numbers import counted

    counts = [*spec.nodes, *(parse_layout(text, MAX_COUNT**2).nodes for text in spec.layout)]
    if nodes.here and (most := max(counts, default=1)) > 1:
        others = (f"node{number}" for number in range(2, most + 1))
        nodes = replace(nodes, hosts=(*nodes.hosts, *others), source="a job", here=False)
    like = counted(len(nodes.hosts), "node")
    tell(f"{login}: the plan is for {like} like it, and jobs plan on their own nodes")
    return nodes


def benchmark_lines(spec: CampaignSpec) -> list[str]:
    """Return every benchmark that can be named, by suite."""
    from mpigraft.bench import NATIVE, PROGRAM_SUITES
    from mpigraft.native import benchmarks

    lines = [f"{NATIVE}:{name}" for name in benchmarks()]
    for suite, programs in PROGRAM_SUITES.items():
        lines += [f"{suite}:{name}" for name in programs.names(spec)]
    return lines
