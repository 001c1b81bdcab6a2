"""All-to-alls of a record: what is read of them, and the synthetic records that are made of it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from mpigraft.native.programs import SOURCES
from mpigraft.report.profile import exchange_lines
from mpigraft.trace.record import (
    Exchange,
    find_exchanges,
    make_ladder,
    read_record,
    read_record_file,
)
from mpigraft.trace.record.coding import write_call
from mpigraft.trace.record.types import PREDEFINED, TypeSizes
from mpigraft.trace.record.values import Call, Leaf, RankRecord, Record, Routine

ALLTOALLV = Routine("Alltoallv", "aIItaIItc")
SPLIT = Routine("Comm_split", "ciiC")
CONTIGUOUS = Routine("Type_contiguous", "itA")
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
    assert sizes.spread_s == 0.0
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
        ranks.append(RankRecord(rank, 4, ROUTINES, texts, nodes))
    found = find_exchanges(Record(tuple(ranks)))
    assert [(one.ranks, one.calls) for one in found] == [(2, 10), (2, 10)]
    assert found[0].bytes_sent == ((120.0, 168.0), (0.0, 0.0))
    assert (found[0].zeros, found[0].silent, found[0].skew) == (0.5, 0.5, 2.0)
    assert (found[0].block(0.5), found[0].block(1)) == (120, 168)
    assert found[0].time_s == pytest.approx(50e-6)
    lines = exchange_lines("./app", found)
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("Alltoallv on 2") for line in lines)


def test_an_alltoall_has_even_blocks() -> None:
    texts = (write_call(0, Routine("Alltoall", "aitaitc"), (0, 3, DOUBLE, 0, 3, DOUBLE, -1)),)
    routines = (Routine("Alltoall", "aitaitc"),)
    ranks = [RankRecord(n, 2, routines, texts, (Leaf(0, 4, 0, 0),)) for n in range(2)]
    (one,) = find_exchanges(Record(tuple(ranks)))
    assert one.bytes_sent == ((24.0, 24.0), (24.0, 24.0))


def test_a_program_without_exchanges_says_so() -> None:
    (line,) = exchange_lines("./app", find_exchanges(Record((RankRecord(0, 1, (), (), ()),))))
    assert "no all-to-all" in line


def test_each_predefined_datatype_has_a_size() -> None:
    text = (SOURCES / "record_file.h").read_text("ascii")
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
    types.note(Call(Routine(f"Type_{name}", fields), values))
    assert types.of(1) == size
