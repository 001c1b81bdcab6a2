"""Ranks in the report: one by one while they are few, by the nodes that are alike after that."""

from __future__ import annotations

import re
from dataclasses import replace

from mpigraft.core.model import MappedLibrary, RankRecord
from mpigraft.report.html.ranks import EACH, ranks

OWN = (MappedLibrary("/opt/mpi/lib/libmpi.so.40", 1, 2), MappedLibrary("/lib/libc.so.6", 1, 3))
OTHER = (MappedLibrary("/usr/lib/libmpi.so.40", 1, 4),)


def world(nodes: int, per_node: int) -> list[RankRecord]:
    """Ranks go round the nodes."""
    return [
        RankRecord(rank, nodes * per_node, f"nid{rank % nodes:03}", 1, "v5", (rank // nodes,), OWN)
        for rank in range(nodes * per_node)
    ]


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_few_ranks_have_a_row_each() -> None:
    page = ranks(world(2, EACH // 2))
    assert page.count("<tr>") == 1 + EACH
    assert "33 of 64 nid001 16" in text(page)
    assert "Mapped by every rank: /opt/mpi/lib/libmpi.so.40" in text(page)
    assert "libc.so.6" not in page
    assert "NUMA" not in page


def test_many_ranks_are_grouped_by_equal_nodes() -> None:
    page = ranks(world(100, 4))
    assert page.count("<tr>") == 1 + 4
    told = text(page)
    assert "Ranks on each of 100 nodes, nid[000-099]; those on nid000 are 0,100,200,300 of" in told
    assert "its number there CPUs 0 0 1 1 2 2 3 3 " in told


def test_a_page_does_not_grow_with_the_nodes() -> None:
    assert len(ranks(world(4096, 2))) < len(ranks(world(64, 2))) + 40


def test_the_node_that_is_unlike_is_named() -> None:
    few = world(50, 2)
    few[7] = replace(few[7], numa=(1,), gpus=("A=1",), devices=("/dev/cxi0",))
    told = text(ranks(few))
    assert "Ranks on each of 49 nodes, nid[000-006],nid[008-049]; those on nid000 are 0,50" in told
    assert "Ranks on nid007: 7,57 of 100 its number there CPUs NUMA GPUs that it sees" in told
    assert "0 0 1 A=1 /dev/cxi0" in told


def test_only_the_most_frequent_kinds_of_nodes_are_shown() -> None:
    each = [replace(rank, cores=(rank.rank,)) for rank in world(65, 1)]
    page = ranks(each)
    assert page.count("<table") == 4
    assert "Other CPUs or devices, on 61 more nodes: nid[004-064]" in text(page)


def test_ranks_of_another_library_are_named_as_ranges() -> None:
    mixed = [replace(rank, libraries=OTHER) if rank.rank > 70 else rank for rank in world(10, 10)]
    told = text(ranks(mixed))
    assert "Mapped by rank 0-70: /opt/mpi/lib/libmpi.so.40" in told
    assert "Mapped by rank 71-99: /usr/lib/libmpi.so.40" in told


def test_what_others_wrote_is_no_markup() -> None:
    hostile = [replace(rank, host=f"<b>{rank.host}") for rank in world(70, 1)]
    assert "<b>" not in ranks(hostile)
    assert "<b>" not in ranks(hostile[:3])
