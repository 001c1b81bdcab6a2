"""Thousands of nodes and ranks: what is wrong with them is told so that a person can read it."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.core.model import Layout, Level, RankRecord
from mpigraft.evidence.world.records import UNREAD
from mpigraft.evidence.world.witness import FEW, check_witness
from tests.builders.messages import matches, shows
from tests.builders.probes import LAYOUT, configuration, records

ASKED = configuration("openmpi@5.0.11", "ob1-sm")
BIG = Layout(64, 8)
NAMES = tuple(f"n{number}" for number in range(64))
WORLD = records(512, hosts=64)


def seen(ranks: tuple[RankRecord, ...], layout: Layout = BIG) -> str:
    found = check_witness(ASKED, layout, ranks, hosts=NAMES)
    (error,) = (f for f in found if f.level is Level.ERROR)
    assert len(error.message) < 600
    return error.message


def test_nodes_without_records_fold() -> None:
    some = tuple(r for r in WORLD if r.host != "n3" and not 80 <= r.rank < 256)
    assert matches(
        seen(some), "witness-unshared", nodes="n3,n[10-31]", others="n[0-2],n[4-9],n[32-63]"
    )


def test_ranks_without_records_and_with_several_fold() -> None:
    told = seen((*WORLD[:100], *WORLD[101:]))
    assert matches(told, "world-ranks", numbers="0-99, 101-511", where="(7 of 8 on n12)")
    assert matches(
        seen((*WORLD[:100], *WORLD[101:], WORLD[7])), "world-ranks",
        numbers="0-99, 101-511, several of 7", where="(7 of 8 on n12)",
    )  # fmt: skip


def test_where_no_node_lacks_a_rank_none_is_named() -> None:
    told = seen((*WORLD, WORLD[7]))
    assert matches(told, "world-ranks", numbers="0-511, several of 7")
    assert "(" not in told


def test_of_many_nodes_that_lack_a_rank_some_are_named() -> None:
    assert matches(
        seen(tuple(r for r in WORLD if r.rank % 8)), "world-ranks",
        where="7 of 8 on n15 and 48 more)",
    )  # fmt: skip
    assert " more" not in seen(tuple(r for r in WORLD if r.rank % 8 or r.rank >= 8 * FEW))


def test_nodes_that_are_filled_otherwise_fold() -> None:
    assert shows(seen(WORLD, Layout(4, 128)), "4 nodes", "64", "n[0-63]")
    moved = tuple(replace(r, host=f"n{r.rank // 8 + (r.rank % 16 == 7)}") for r in WORLD)
    told = seen(moved)
    assert shows(told, "8 ranks per node", "7 on n0", "9 on n1", "7 on n10", "9 on n11")
    assert shows(told, "7 on n22", "48 more")


def test_of_many_records_that_cannot_be_read_some_are_reported() -> None:
    bad = tuple(RankRecord(UNREAD, 0, f"f{n}", 0, "why", (), ()) for n in range(FEW + 3))
    told = [f.message for f in check_witness(ASKED, LAYOUT, (*bad, *records()))]
    assert told == [*(f"f{n}: why" for n in range(FEW)), "3 more, the last f18: why"]
    few = [f.message for f in check_witness(ASKED, LAYOUT, (*bad[:FEW], *records()))]
    assert few == told[:FEW]
