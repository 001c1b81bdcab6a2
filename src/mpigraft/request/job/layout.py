"""Nodes, ranks, places and programs of one job: what was asked, on the nodes that are there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Allocation, Group, Layout, granted_cpus, layout_key, parse_layout
from mpigraft.request.job.spec import JobPlacement, MpmdProgram

COUNTS = ("-n", "-np", "--ranks-per-node")  # one of them begins each program behind a colon
NUMBER = re.compile(r"0*([1-9][0-9]{0,5})")  # to layouts.MOST; int() refuses 5000 digits


def mpmd_programs(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[MpmdProgram, ...]]:
    """Return the first program and the others: `a x : -n 2 b y : --ranks-per-node 1 c`. A colon
    without a count behind it is a word of the program's own, since programs may have such arguments
    and a job must not fall apart by them. Raises UsageError for a bad count, and a program
    that is missing."""
    begins = [
        n
        for n, word in enumerate(words[:-1])
        if word == ":" and words[n + 1].partition("=")[0] in COUNTS
    ]
    ends = [*begins[1:], len(words)] if begins else []
    first = tuple(words[: begins[0]] if begins else words)
    others = tuple(_part(words[begin + 1 : end]) for begin, end in zip(begins, ends, strict=True))
    if not first:
        raise UsageError.of("program-before-colon")
    return first, others


def _part(words: Sequence[str]) -> MpmdProgram:
    flag, equals, value = words[0].partition("=")
    rest = tuple(words[1:] if equals else words[2:])
    value = value if equals else "".join(words[1:2])
    number = NUMBER.fullmatch(value)
    if not number:
        raise UsageError.of("ranks-after-colon", words=" ".join(words[:2]))
    if not rest:
        raise UsageError.of("program-after-colon", flag=flag, value=value)
    count = int(number[1])
    return (
        MpmdProgram(rest, ranks_per_node=count) if flag == COUNTS[-1] else MpmdProgram(rest, count)
    )


def decide_layout(
    where: JobPlacement, cores: int, allocation: Allocation, environ: Mapping[str, str]
) -> tuple[Layout, tuple[Group, ...]]:
    """Return the layout, and the programs besides the first.

    All nodes of the allocation unless fewer are asked for, or there are fewer ranks; as many
    threads as OMP_NUM_THREADS says; a rank for every `cores` // threads, of no more than the job
    was granted on each node. Raises UsageError for more nodes than there are, and for ranks that
    do not spread over them evenly.
    """
    here = len(allocation.hosts)
    nodes = where.nodes or min(here, where.ranks or here)
    if nodes > here:
        raise UsageError.of("nodes-too-many", nodes=nodes, source=allocation.source, here=here)
    cores = min(cores, *granted_cpus(allocation, nodes))
    threads = where.threads or _omp_threads(environ)
    groups = tuple(
        Group(part.ranks_per_node or _spread(part.ranks, nodes), part.words)
        for part in where.others
    )
    taken = sum(group.ranks_per_node for group in groups)
    first = where.ranks_per_node or (_spread(where.ranks, nodes) if where.ranks else 0)
    if where.ranks and where.ranks != first * nodes:
        raise UsageError.of("ranks-contradict", ranks=where.ranks, first=first, nodes=_nodes(nodes))
    first = first or max(1, cores // threads - taken)
    asked = (nodes, first + taken, threads, where.map_by, where.bind_to, where.gpus)
    return parse_layout(layout_key(*asked), cores), groups


def _spread(ranks: int, nodes: int) -> int:
    if ranks % nodes:
        raise UsageError.of("ranks-uneven", ranks=ranks, nodes=_nodes(nodes))
    return ranks // nodes


def _nodes(count: int) -> str:
    return "one node" if count == 1 else f"{count} nodes"


def _omp_threads(environ: Mapping[str, str]) -> int:
    first = environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(match[1]) if (match := NUMBER.fullmatch(first)) else 1
