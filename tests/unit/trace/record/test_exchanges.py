"""All-to-alls of a record: what is read of them, and the synthetic records that are made of it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from mpigraft.native.programs import SOURCES
from mpigraft.report import exchange_lines
from mpigraft.trace import Exchange, find_exchanges, make_ladder, read_record, read_record_file
from mpigraft.trace.record.coding import read_call, write_call
from mpigraft.trace.record.types import BYTE, PREDEFINED, TypeSizes
from mpigraft.trace.record.values import CallRecord, Leaf, RankCalls, RecordedCall, RecordedRoutine
from tests.builders.messages import shows

ALLTOALLV = RecordedRoutine("Alltoallv", "aIItaIItc")
SPLIT = RecordedRoutine("Comm_split", "ciiC")
CONTIGUOUS = RecordedRoutine("Type_contiguous", "itA")
ROUTINES = (ALLTOALLV, SPLIT, CONTIGUOUS)
DOUBLE = -13


def an_exchange(dice: random.Random, ranks: int) -> Exchange:
    rows = tuple(
        (9.0, *(float(dice.choice((0, dice.randrange(1, 5000)))) for _ in range(ranks - 1)))
        for _ in range(ranks)
    )
    gaps = tuple(dice.random() / 1000 for _ in range(ranks))
    return Exchange("Alltoallv", ranks, 200, rows, (), gaps, (0.0,) * ranks)


@pytest.mark.parametrize("ranks", [1, 2, 5, 16])
def test_the_last_step_is_the_application(tmp_path: Path, ranks: int) -> None:
    """And each step before has one property less, with as many bytes."""
    exchange = an_exchange(random.Random(ranks), ranks)
    read = []
    for step in make_ladder(exchange):
        path = tmp_path / f"{step.name}.record"
        path.write_bytes(step.data)
        (one,) = find_exchanges(read_record(read_record_file(path), path))
        assert (one.ranks, one.calls) == (ranks, 200)
        assert one.total == pytest.approx(exchange.total, abs=ranks**2)
        read.append(one)
    even, skew, zeros, sizes, spread = read
    assert (even.skew, even.zeros) == (1.0, 0.0)
    assert skew.skew == pytest.approx(exchange.skew, abs=0.05)
    assert zeros.silent == exchange.silent
    assert sizes.bytes_sent == exchange.bytes_sent
    assert sizes.gaps_s == (0.0,) * ranks
    assert spread.bytes_sent == exchange.bytes_sent
    assert spread.gaps_s == pytest.approx(exchange.gaps_s, abs=1e-8)


def test_groups_and_datatypes_count() -> None:
    """Four ranks in two groups; a datatype of three doubles; the second rank sends nothing."""
    ranks = []
    for rank in range(4):
        first, own = rank // 2 * 2, rank % 2
        members = (first, first + 1) if own == 0 else (first,)
        counts = (0, 0) if own else (5, 7)
        texts = (
            write_call(1, SPLIT, (-1, rank // 2, 0, (1, 2, own, members))),
            write_call(2, CONTIGUOUS, (3, DOUBLE, 1)),
            write_call(0, ALLTOALLV, (0, counts, (0, 5), 1, 0, (5, 0), (0, 5), 1, 1)),
        )
        nodes = (Leaf(0, 1, 0, 0), Leaf(1, 1, 0, 0), Leaf(2, 10, 20_000, 50_000))
        ranks.append(RankCalls(rank, 4, ROUTINES, texts, nodes))
    found = find_exchanges(CallRecord(tuple(ranks)))
    assert [(one.ranks, one.calls) for one in found] == [(2, 10), (2, 10)]
    assert found[0].bytes_sent == ((120.0, 168.0), (0.0, 0.0))
    assert (found[0].zeros, found[0].silent, found[0].skew) == (0.5, 0.5, 2.0)
    assert (found[0].block(0.5), found[0].block(1)) == (120, 168)
    assert found[0].time_s == pytest.approx(50e-6)
    lines = exchange_lines("./app", found)
    assert max(map(len, lines)) <= 80
    assert shows(lines, "Alltoallv on 2")


def test_an_alltoall_has_even_blocks() -> None:
    texts = (
        write_call(0, RecordedRoutine("Alltoall", "aitaitc"), (0, 3, DOUBLE, 0, 3, DOUBLE, -1)),
    )
    routines = (RecordedRoutine("Alltoall", "aitaitc"),)
    ranks = [RankCalls(n, 2, routines, texts, (Leaf(0, 4, 0, 0),)) for n in range(2)]
    (one,) = find_exchanges(CallRecord(tuple(ranks)))
    assert one.bytes_sent == ((24.0, 24.0), (24.0, 24.0))


ALLTOALL = RecordedRoutine("Alltoall", "aitaitc")
ALLTOALLW = RecordedRoutine("Alltoallw", "aIITaIITc")
INT = -8


def alone(routine: RecordedRoutine, values: tuple[object, ...], ranks: int = 2) -> Exchange:
    """The exchange of a record in which each rank makes one call."""
    text = write_call(0, routine, values)
    made = [RankCalls(n, ranks, (routine,), (text,), (Leaf(0, 1, 0, 0),)) for n in range(ranks)]
    (one,) = find_exchanges(CallRecord(tuple(made)))
    return one


@pytest.mark.parametrize(("routine", "values", "sent"), [
    (ALLTOALL, (1, 0, 0, 0, 3, DOUBLE, -1), (24, 24)),
    (ALLTOALLV, (1, (), (), 0, 0, (1, 4), (0, 9), DOUBLE, -1), (8, 32)),
    (ALLTOALLW, (0, (1, 4), (0, 9), (DOUBLE, INT), 0, (9, 9), (0, 9), (INT, INT), -1), (8, 16)),
    (ALLTOALLW, (1, (), (), (), 0, (1, 4), (0, 9), (INT, DOUBLE), -1), (4, 32)),
], ids=["alltoall in place", "in place", "alltoallw", "alltoallw in place"])  # fmt: skip
def test_what_is_sent(
    routine: RecordedRoutine, values: tuple[object, ...], sent: tuple[int, int]
) -> None:
    """In place, it is what is received."""
    assert alone(routine, values).bytes_sent == (sent, sent)


def test_an_exchange_with_oneself_is_one_of_a_single_rank() -> None:
    texts = (write_call(0, ALLTOALL, (0, 1, DOUBLE, 0, 1, DOUBLE, -2)),)
    ranks = [RankCalls(n, 2, (ALLTOALL,), texts, (Leaf(0, 1, 0, n),)) for n in range(2)]
    found = find_exchanges(CallRecord(tuple(ranks)))
    assert [one.bytes_sent for one in found] == [((8.0,),)] * 2
    assert found[0].took_s > found[1].took_s, "the one that takes longest comes first"


def test_blocks_of_a_step_lie_one_after_the_other(tmp_path: Path) -> None:
    rows = ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    exchange = Exchange("Alltoallv", 3, 1, rows, (), (0.0,) * 3, (0.0,) * 3)
    step = next(one for one in make_ladder(exchange) if one.name == "4-sizes")
    (tmp_path / "a").write_bytes(step.data)
    rank = read_record(read_record_file(tmp_path / "a"), tmp_path / "a").ranks[1]
    call = read_call(rank.signatures[0], rank.routines)
    assert call.values == (0, (4, 5, 6), (0, 4, 9), BYTE, 0, (2, 5, 8), (0, 2, 7), BYTE, -1)


def test_a_copy_of_the_world_is_the_same_group() -> None:
    ranks = []
    for rank in range(2):
        given = (0, (5, 7), (0, 5), DOUBLE, 0, (5, 7), (0, 5), DOUBLE)
        texts = (
            write_call(1, SPLIT, (-1, 0, 0, (1, 2, rank, (0, 1)))),
            write_call(0, ALLTOALLV, (*given, -1)),
            write_call(0, ALLTOALLV, (*given, 1)),
        )
        nodes = tuple(Leaf(n, 1, 0, 0) for n in range(3))
        ranks.append(RankCalls(rank, 2, ROUTINES, texts, nodes))
    (one,) = find_exchanges(CallRecord(tuple(ranks)))
    assert one.calls == 2


def test_counts_of_fewer_ranks_are_no_exchange() -> None:
    texts = (write_call(0, ALLTOALLV, (0, (5,), (0,), DOUBLE, 0, (5,), (0,), DOUBLE, -1)),)
    ranks = [RankCalls(n, 2, ROUTINES, texts, (Leaf(0, 1, 0, 0),)) for n in range(2)]
    assert find_exchanges(CallRecord(tuple(ranks))) == ()


@pytest.mark.parametrize("made", [(1, 2, 0, ()), (0, 0, -1, ()), (2, 2, 0, (0, 1))])
def test_a_group_that_is_not_known_has_no_exchange(made: tuple[object, ...]) -> None:
    texts = (
        write_call(1, SPLIT, (-1, 0, 0, made)),
        write_call(0, ALLTOALLV, (0, (5, 7), (0, 5), DOUBLE, 0, (5, 0), (0, 5), DOUBLE, 1)),
    )
    nodes = (Leaf(0, 1, 0, 0), Leaf(1, 1, 0, 0))
    ranks = [RankCalls(n, 2, ROUTINES, texts, nodes) for n in range(2)]
    assert find_exchanges(CallRecord(tuple(ranks))) == ()


def test_an_exchange_that_a_rank_lacks_is_left_out() -> None:
    """One that ended early may have made none."""
    texts = (write_call(0, ALLTOALL, (0, 1, DOUBLE, 0, 1, DOUBLE, -1)),)
    one = RankCalls(0, 2, (ALLTOALL,), texts, (Leaf(0, 3, 0, 0),))
    other = RankCalls(1, 2, (ALLTOALL,), texts, (Leaf(0, 2, 0, 0),))
    assert find_exchanges(CallRecord((one, RankCalls(1, 2, (), (), ())))) == ()
    (found,) = find_exchanges(CallRecord((one, other)))
    assert found.calls == 3


def test_figures_of_an_exchange() -> None:
    rows = ((0.0, 10.0, 0.0), (0.0, 0.0, 0.0), (0.0, 20.0, 0.0))
    one = Exchange("Alltoallv", 3, 1, rows, ((0, 7), (10, 1), (20, 1)), (3.0, 5.0, 4.0), (0.0,) * 3)
    assert [one.silent, one.zeros] == pytest.approx([7 / 9, 7 / 9])
    assert one.spread_s == 2.0
    assert (one.block(0.5), one.block(0.6), one.block(1), one.block(1.1)) == (10, 20, 20, 20)
    none = Exchange("Alltoallv", 1, 1, ((0.0,),), ((0, 1),), (0.0,), (0.0,))
    assert (none.silent, none.zeros, none.skew, none.block(0.5)) == (1.0, 1.0, 0.0, 0)
    assert Exchange("Alltoallv", 0, 0, (), (), (), ()).zeros == 0


def test_a_program_without_exchanges_says_so() -> None:
    (line,) = exchange_lines("./app", find_exchanges(CallRecord((RankCalls(0, 1, (), (), ()),))))
    assert shows(line, "no all-to-all")


def test_each_predefined_datatype_has_a_size() -> None:
    text = (SOURCES / "calls/record_file.h").read_text("ascii")
    names = re.findall(r"\bTYPE\((\w+), \w+\)", text)
    assert len(PREDEFINED) == len(names)
    sizes = dict(zip(names, PREDEFINED, strict=True))
    assert (sizes["BYTE"], sizes["INT"], sizes["DOUBLE"], sizes["2INTEGER"]) == (1, 4, 8, 8)
    assert TypeSizes().of(-1 - len(PREDEFINED)) == 0


@pytest.mark.parametrize(("name", "fields", "values", "size"), [
    ("contiguous", "itA", (4, DOUBLE, 1), 32),
    ("vector", "iiitA", (3, 2, 9, DOUBLE, 1), 48),
    ("indexed", "iIItA", (2, (1, 4), (0, 9), DOUBLE, 1), 40),
    ("create_indexed_block", "iiItA", (2, 3, (0, 9), DOUBLE, 1), 48),
    ("create_struct", "iIITA", (2, (1, 2), (0, 8), (DOUBLE, -8), 1), 16),
    ("create_subarray", "iIIIitA", (2, (8, 8), (2, 3), (0, 0), 0, DOUBLE, 1), 48),
    ("create_resized", "tiiA", (DOUBLE, 0, 64, 1), 8),
    ("create_darray", "iiiIIIIitA", (1, 0, 1, (8,), (0,), (0,), (1,), 0, DOUBLE, 1), 0),
])  # fmt: skip
def test_sizes_of_made_datatypes(
    name: str, fields: str, values: tuple[object, ...], size: int
) -> None:
    types = TypeSizes()
    types.note(RecordedCall(RecordedRoutine(f"Type_{name}", fields), values))
    assert types.of(1) == size
