"""What the quick look at a job's ranks lets pass, while they come."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Configuration, Layout, Level
from mpigraft.evidence.world.records import read_witness
from mpigraft.evidence.world.witness import check_witness
from mpigraft.run import foreground
from mpigraft.run.cached.world import StartedWorld
from tests.builders import witness
from tests.builders.configuration import an_mpi

LIBRARIES = st.sampled_from(["right", "wrong", "twice", "bindings", "deleted", "none"])
RECORD = st.fixed_dictionaries(
    {
        "rank": st.integers(-1, 3) | st.none() | st.booleans(),
        "size": st.integers(0, 3),
        "host": st.sampled_from(["a", "b"]) | st.integers(0, 1),
        "libraries": LIBRARIES,
    }
)
GOOD = st.builds(
    lambda n: [{"rank": r, "size": n, "host": "a", "libraries": "right"} for r in range(n)],
    st.integers(1, 3),
)


def written(folder: Path, records: list[dict[str, Any]], library: Path) -> Path:
    """The file of one node, whose ranks may say that they ran on several hosts."""
    whole = [
        witness.a_rank(
            **{**record, "libraries": witness.mapped(record["libraries"], library)},
            pid=number + 1,
            cores=str(number),
        )
        for number, record in enumerate(records)
    ]
    return witness.written(folder, *whole)


@given(GOOD | st.lists(RECORD, max_size=3), st.integers(1, 3))
def test_what_the_quick_look_passes_the_full_judgement_passes_too(
    tmp_path_factory: Any, records: list[dict[str, Any]], ranks: int
) -> None:
    folder = tmp_path_factory.mktemp("world")
    document = witness.a_document(folder, ranks=ranks)
    library = Path(document["libmpi"][0])
    written(Path(document["home"]), records, library)
    mpi = an_mpi(libmpi=library)
    findings = check_witness(
        Configuration("key", "id", mpi, None),
        Layout(ranks_per_node=ranks, bind="none"),
        read_witness(Path(document["home"])),
    )
    wrong = [f for f in findings if f.level is Level.ERROR]
    world = StartedWorld(document, document["home"])
    whole = world.whole()
    assert not (whole and wrong), wrong
    clean = all(r["host"] in ("a", "b") for r in records)
    assert whole or wrong or not clean


@pytest.mark.parametrize(
    ("records", "answer"),
    [
        ([], foreground.GO_ON),
        ([(0, 2, "right")], foreground.GO_ON),
        ([(0, 2, "right"), (1, 2, "bindings")], foreground.DONE),
        ([(0, 1, "right")], foreground.END),
        ([(0, 2, "wrong")], foreground.END),
        ([(0, 2, "twice")], foreground.END),
        ([(0, 2, "right"), (0, 1, "right")], foreground.END),
        ([(0, 4, "right")], foreground.END),
    ],
)
def test_a_world_that_cannot_become_right_ends_the_job(
    tmp_path: Path, records: list[tuple[int, int, str]], answer: int
) -> None:
    document = witness.a_document(tmp_path, ranks=2)
    ranks = [{"rank": r, "size": s, "host": "a", "libraries": how} for r, s, how in records]
    written(Path(document["home"]), ranks, Path(document["libmpi"][0]))
    assert StartedWorld(document, document["home"]).look() == answer


def test_a_library_of_an_image_is_known_by_its_path(tmp_path: Path) -> None:
    document = witness.a_document(tmp_path, libmpi=["/usr/lib/libmpi.so.40", 0, 0])
    home = Path(document["home"])
    witness.written(home, witness.a_rank(size=1, libraries=[("/usr/lib/libmpi.so.40", 7, 8)]))
    assert StartedWorld(document, document["home"]).whole()
    witness.written(home, witness.a_rank(size=1, libraries=[("/opt/libmpi.so.40", 7, 8)]))
    assert not StartedWorld(document, document["home"]).whole()


def test_each_line_is_read_once_when_it_is_whole(tmp_path: Path) -> None:
    document = witness.a_document(tmp_path, ranks=3)
    right = witness.mapped("right", Path(document["libmpi"][0]))
    ranks = [witness.a_rank(rank=n, size=3, libraries=right) for n in range(3)]
    data = witness.encoded(witness.lines(ranks))
    place = Path(document["home"]) / f"{witness.NODE}.ranks"
    world = StartedWorld(document, document["home"])
    with place.open("wb", buffering=0) as file:
        for at in range(0, len(data), 7):
            assert world.look() == foreground.GO_ON
            file.write(data[at : at + 7])
    assert world.look() == foreground.DONE
    assert len(world.records) == 3
    assert len(world.files) == 1
    world.remove()
    assert not place.exists()


def test_a_rank_with_an_incomplete_node_file_is_waited_for(tmp_path: Path) -> None:
    """Who tells what ranks have in common may be the last to write."""
    document = witness.a_document(tmp_path, ranks=2)
    right = witness.mapped("right", Path(document["libmpi"][0]))
    first, second = witness.lines(witness.a_rank(rank=n, libraries=right) for n in range(2))
    place = Path(document["home"]) / f"{witness.NODE}.ranks"
    place.write_bytes(witness.encoded([second]))
    world = StartedWorld(document, document["home"])
    assert world.look() == foreground.GO_ON
    place.write_bytes(witness.encoded([second, first]))
    assert world.look() == foreground.DONE


@pytest.mark.parametrize(
    ("hosts", "nodes", "whole"),
    [("aabb", 2, True), ("aabb", 1, False), ("aaab", 2, False), ("aaaa", 2, False)],
)
def test_a_world_of_two_nodes_fills_both(
    tmp_path: Path, hosts: str, nodes: int, whole: bool
) -> None:
    document = witness.a_document(tmp_path, ranks=4, nodes=nodes, contents=["ab/1"])
    right = witness.mapped("right", Path(document["libmpi"][0]))
    for host in set(hosts):
        own = [witness.a_rank(rank=n, size=4, host=host, libraries=right, content="ab/1")
               for n, name in enumerate(hosts) if name == host]  # fmt: skip
        witness.written(Path(document["home"]), *own, node=f"{host}-1")
    assert StartedWorld(document, document["home"]).whole() is whole


def test_nodes_with_two_builds_of_a_part_take_the_full_judgement(tmp_path: Path) -> None:
    """Of a part of the MPI that nobody asked for, too."""
    part, document = ("/opt/mpi/lib/mca_x.so", 1, 2), witness.a_document(tmp_path, ranks=2, nodes=2)
    right = witness.mapped("right", Path(document["libmpi"][0]))
    document |= {"contents": ["ab/1"]}
    for there, whole in (("cd/2", True), ("cd/3", False)):
        for n, content in enumerate(("cd/2", there)):
            contents = {right[0][0]: "ab/1", part[0]: content}
            rank = witness.a_rank(rank=n, host=f"n{n}", libraries=[*right, part], contents=contents)
            witness.written(Path(document["home"]), rank, node=f"n{n}-1")
        assert StartedWorld(document, document["home"]).whole() is whole


def test_a_file_of_another_or_a_pipe_is_not_waited_at(tmp_path: Path) -> None:
    document = witness.a_document(tmp_path)
    os.mkfifo(Path(document["home"]) / "n0-1.ranks")
    right = witness.mapped("right", Path(document["libmpi"][0]))
    witness.written(Path(document["home"]), witness.a_rank(size=1, libraries=right))
    assert StartedWorld(document, document["home"]).look() == foreground.GO_ON


@pytest.mark.parametrize(
    ("nodes", "changes", "answer"),
    [
        (1, {"device": 99}, foreground.END),
        (2, {"device": 99, "inode": 99}, foreground.DONE),  # a disk of its own
        (2, {"content": "ab/2"}, foreground.GO_ON),  # the full judgement says which
        (2, {"content": ""}, foreground.GO_ON),
        (2, {"path": "/lib/libother.so"}, foreground.GO_ON),
    ],
)
def test_a_library_on_another_node_ends_no_job(
    tmp_path: Path, nodes: int, changes: dict[str, Any], answer: int
) -> None:
    document = witness.a_document(tmp_path, ranks=2, nodes=nodes, contents=["ab/1"])
    ((path, device, inode),) = witness.mapped("right", Path(document["libmpi"][0]))
    there = {"path": path, "device": device, "inode": inode, "content": "ab/1"} | changes
    home, content = Path(document["home"]), there.pop("content")
    own = witness.a_rank(libraries=[(path, device, inode)], content="ab/1")
    witness.written(home, own, node="a-1")
    libraries = [tuple(there.values())]
    other = witness.a_rank(rank=1, host="n1", libraries=libraries, content=content)
    witness.written(home, other, node="b-2")
    assert StartedWorld(document, document["home"]).look() == answer
