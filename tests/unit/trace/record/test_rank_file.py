"""Records of ranks: what is written is read again, and damage is refused."""

from __future__ import annotations

import random

import pytest

from mpigraft.trace.record.coding import Bytes, Damage, read_call, signed, unsigned, write_call
from mpigraft.trace.record.rank_file import read_rank, write_rank
from mpigraft.trace.record.values import Leaf, Loop, Node, RankCalls, RecordedRoutine

ROUTINES = (
    RecordedRoutine("Barrier", "c"),
    RecordedRoutine("Alltoallv", "aIItaIItc"),
    RecordedRoutine("Comm_split", "ciiC"),
    RecordedRoutine("Waitsome", "iQXZ"),
    RecordedRoutine("Recv", "aitrkcz"),
    RecordedRoutine("Finalize", ""),
)


def some_values(dice: random.Random, fields: str) -> tuple[object, ...]:
    def numbers(most: int = 4) -> tuple[int, ...]:
        return tuple(dice.randint(-(2**40), 2**40) for _ in range(dice.randint(0, most)))

    made: list[object] = []
    for letter in fields:
        if letter in "IXTQ":
            made.append(numbers())
        elif letter == "C":
            made.append((3, 4, 1, (2,)) if dice.random() < 0.5 else (0, 0, -1, ()))
        elif letter == "z":
            made.append((5, 6) if dice.random() < 0.5 else ())
        elif letter == "Z":
            made.append(tuple((i, 1, 2) for i in range(dice.randint(0, 3))))
        else:
            made.append(dice.randint(-9, 9))
    return tuple(made)


def some_nodes(dice: random.Random, signatures: int, depth: int = 0) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for _ in range(dice.randint(1, 4)):
        if depth < 3 and dice.random() < 0.3:
            nodes.append(Loop(dice.randint(1, 9), some_nodes(dice, signatures, depth + 1)))
        else:
            gaps = tuple((e, 2, 2 * 4**e, e) for e in range(dice.randint(0, 3)))
            nodes.append(Leaf(dice.randrange(signatures), 3, 7, 11, gaps))
    return tuple(nodes)


def some_record(seed: int) -> RankCalls:
    dice = random.Random(seed)
    texts = []
    for _ in range(dice.randint(1, 6)):
        number = dice.randrange(len(ROUTINES))
        values = some_values(dice, ROUTINES[number].fields)
        texts.append(write_call(number, ROUTINES[number], values))
    return RankCalls(1, 4, ROUTINES, tuple(texts), some_nodes(dice, len(texts)), 2e9, events=5)


@pytest.mark.parametrize("number", [0, 1, -1, 63, -64, 64, 2**31, -(2**63), 2**63 - 1])
def test_numbers_come_back(number: int) -> None:
    source = Bytes(signed(number) + unsigned(abs(number)))
    assert (source.signed(), source.unsigned()) == (number, abs(number))


@pytest.mark.parametrize("seed", range(50))
def test_records_come_back(seed: int) -> None:
    record = some_record(seed)
    data = write_rank(record)
    assert read_rank(data) == record
    for text in record.signatures:
        call = read_call(text, ROUTINES)
        assert write_call(ROUTINES.index(call.routine), call.routine, call.values) == text


def test_damage_is_refused_and_nothing_else_happens() -> None:
    """Every cut is refused; a changed byte is refused or gives another record."""
    data = write_rank(some_record(3))
    for length in range(len(data)):
        with pytest.raises(Damage):
            read_rank(data[:length])
    with pytest.raises(Damage):
        read_rank(data + b"\0")
    dice = random.Random(1)
    for _ in range(3000):
        spoiled = bytearray(data)
        for _ in range(dice.randint(1, 3)):
            spoiled[dice.randrange(len(data))] = dice.randrange(256)
        try:
            for text in read_rank(bytes(spoiled)).signatures:
                read_call(text, ROUTINES)
        except Damage:
            pass
