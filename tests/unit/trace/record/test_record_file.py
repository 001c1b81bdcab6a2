"""The file of a record: deterministic, whole or refused."""

from __future__ import annotations

import json
import lzma
import random
import re
import tracemalloc
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.trace import Provenance, collect_ranks, read_record, read_record_file, write_record
from mpigraft.trace.record.file import FIRST
from mpigraft.trace.record.rank_file import write_rank
from mpigraft.trace.record.values import Leaf, Loop, RankCalls, RecordedRoutine
from tests.builders.traces import ARank, write_node
from tests.builders.witness import a_task

WHERE = Provenance("./app input", "openmpi@5.0.11", "ompi", date="2026-11-23")


def parts(size: int = 2) -> list[bytes]:
    nodes = (Loop(3, (Leaf(0, 3, 5, 7), Leaf(1, 3, 5, 7))),)
    texts, routines = (b"\x00\x01", b"\x00\x03"), (RecordedRoutine("Barrier", "c"),)
    return [
        write_rank(RankCalls(rank, size, routines, texts, nodes, events=6)) for rank in range(size)
    ]


def test_a_file_comes_back_and_is_the_same_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a record"
    path.write_bytes(write_record(parts(), WHERE))
    file = read_record_file(path)
    assert (list(file.parts), file.provenance) == (parts(), WHERE)
    assert write_record(file.parts, file.provenance) == path.read_bytes()
    record = read_record(file, path)
    assert record.size == 2
    assert record.totals() == {"events": 12, "nodes": 4, "signatures": 4}


def test_damaged_cut_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "file", write_record(parts(), WHERE)
    dice = random.Random(5)
    cuts = [data[:length] for length in range(0, len(data), 7)]
    spots = [dice.randrange(len(data)) for _ in range(100)]
    changed = [data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :] for at in spots]
    for spoiled in (*cuts, *changed):
        path.write_bytes(spoiled)
        try:
            kept = list(read_record_file(path).parts)
        except UsageError:
            continue
        assert kept == parts()  # it was a word of the provenance
    with pytest.raises(UsageError, match="No such file"):
        read_record_file(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("claimed", "code"),
    [
        ([8], "record-damaged"),
        ([8, 1 << 20], "record-damaged"),
        ([1 << 28], "file-over-budget"),
        ([2, 1 << 28], "file-over-budget"),
    ],
)
def test_a_record_that_unpacks_to_much_more_is_refused_before(
    tmp_path: Path, claimed: list[int], code: str
) -> None:
    path, body = tmp_path / "bomb", lzma.compress(bytes(1 << 24), preset=0)
    line = {**asdict(WHERE), "parts": claimed, "sha256": sha256(body).hexdigest()}
    path.write_bytes(FIRST + json.dumps(line).encode() + b"\n" + body)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=re.escape(str(path))) as error:
            read_record_file(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
    assert error.value.code == code


def test_a_rank_that_wrote_nothing_is_named(tmp_path: Path) -> None:
    """Other processes of the job have the same ranks in worlds of their own."""
    tool = ARank(0, 1, task=a_task("4000.", connected=False, above=["4000."]), program="/opt/tool")
    node = write_node(tmp_path, "n1", [tool, *(ARank(rank, 3) for rank in range(3))]).stem
    (tmp_path / f"{node}.0.record").write_bytes(parts(1)[0])
    for rank, part in enumerate(parts(3)):
        (tmp_path / f"{node}.{rank + 1}.record").write_bytes(part)
    assert collect_ranks(tmp_path, 3) == (
        tuple(parts(3)),
        ("other worlds of the job are not recorded: tool (1 rank)",),
    )
    (tmp_path / f"{node}.2.record").unlink()
    with pytest.raises(UsageError, match="1 of 3 ranks wrote no record; the first is rank 1"):
        collect_ranks(tmp_path)
    assert collect_ranks(tmp_path / "nothing") == ((), ())
