"""Ranks in the report: one by one while they are few, by the nodes that are alike after that."""

from __future__ import annotations

import re
from dataclasses import replace

from mpigraft.core.model import MappedLibrary, RankRecord
from mpigraft.report.html.ranks import EACH, ranks
from tests.builders.messages import shows

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
    assert shows(text(page), "33 of 64", "nid001 16")
    assert shows(text(page), "Mapped", "rank", "/opt/mpi/lib/libmpi.so.40")
    assert "libc.so.6" not in page
    assert "NUMA" not in page


def test_many_ranks_are_grouped_by_equal_nodes() -> None:
    page = ranks(world(100, 4))
    assert page.count("<tr>") == 1 + 4
    told = text(page)
    assert shows(told, "Ranks", "100 nodes", "000-099", "nid000", "0", "100", "200", "300")
    assert shows(told, "number", "CPUs 0 0 1 1", "2 2 3 3")


def test_a_page_does_not_grow_with_the_nodes() -> None:
    assert len(ranks(world(4096, 2))) < len(ranks(world(64, 2))) + 40


def test_the_node_that_is_unlike_is_named() -> None:
    few = world(50, 2)
    few[7] = replace(few[7], numa=(1,), gpus=("A=1",), devices=("/dev/cxi0",))
    told = text(ranks(few))
    assert shows(told, "Ranks", "49 nodes", "000-006", "008-049", "nid000", "0", "50")
    assert shows(told, "Ranks", "nid007", "7", "57 of 100", "number", "CPUs NUMA")
    assert shows(told, "0 0 1 A=1", "/dev/cxi0")


def test_only_the_most_frequent_kinds_of_nodes_are_shown() -> None:
    each = [replace(rank, cores=(rank.rank,)) for rank in world(65, 1)]
    page = ranks(each)
    assert page.count("<table") == 4
    assert shows(text(page), "Other CPUs", "devices", "61", "more nodes", "004-064")


def test_ranks_of_another_library_are_named_as_ranges() -> None:
    mixed = [replace(rank, libraries=OTHER) if rank.rank > 70 else rank for rank in world(10, 10)]
    told = text(ranks(mixed))
    assert shows(told, "Mapped", "rank 0-70", "/opt/mpi/lib/libmpi.so.40")
    assert shows(told, "Mapped", "rank 71-99", "/usr/lib/libmpi.so.40")


def test_what_others_wrote_is_no_markup() -> None:
    hostile = [replace(rank, host=f"<b>{rank.host}") for rank in world(70, 1)]
    assert "<b>" not in ranks(hostile)
    assert "<b>" not in ranks(hostile[:3])
