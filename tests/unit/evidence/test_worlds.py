"""Which processes of a job are the ranks of its launch, and which are other worlds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Configuration, Layout, Level
from mpigraft.core.worlds import Lineage, group_ranks, list_worlds, make_lineage
from mpigraft.evidence.world.records import UNREAD, read_entered, read_witness
from mpigraft.evidence.world.witness import check_witness
from mpigraft.run import foreground
from mpigraft.run.cached.world import StartedWorld
from tests.builders import witness
from tests.builders.configuration import an_mpi
from tests.builders.messages import shows

Lines = list[dict[str, Any]]


def rank(number: int, size: int = 2, **changes: Any) -> dict[str, Any]:
    """The process of a task: its number is ten times that of its rank, and one."""
    return witness.a_rank(
        rank=number, size=size, pid=10 * number + 1, start=5, cores=str(number),
        program="/opt/app", **changes,
    )  # fmt: skip


def below(number: int, size: int = 1, own: int = 0, **task: Any) -> dict[str, Any]:
    """A process that the task of rank `number` started, rank `own` of its world."""
    line = witness.a_task(f"{10 * number + 1}.5", **task)
    return rank(own, size, task=line) | {"pid": 10 * number + 2 + own, "program": "/opt/tool"}


def cut(number: int, **task: Any) -> dict[str, Any]:
    """A singleton: the launcher's variables were removed."""
    return below(number, connected=False, **task)


def by_shell(number: int, size: int = 2, pid: int = 0) -> dict[str, Any]:
    """A rank whose task is a shell, which has no record."""
    return below(number, size, number) | {"pid": 10 * number + 5 + pid}


def inner(number: int, own: int, job: str = "aa", **task: Any) -> dict[str, Any]:
    """A rank of a job of two that the task of rank `number` started."""
    return below(number, 2, own, connected=False, job=job, **task)


PAIR = [rank(0), rank(1)]
SHELLS = [by_shell(0), by_shell(1)]
PARENT = {"above": ["7.7", "11.5"]}


@pytest.mark.parametrize(
    ("lines", "code", "others"),
    [
        (PAIR, "", []),
        ([*PAIR, cut(0), cut(1)], "", ["inner", "inner"]),
        ([cut(0), cut(1), *PAIR], "", ["inner", "inner"]),
        ([*PAIR, below(0)], "", ["inner"]),  # it has the connection of its rank still
        ([below(0), *PAIR], "", ["inner"]),
        ([*PAIR, below(0, 2, 0), below(1, 2, 1)], "", ["inner"]),
        ([*PAIR, inner(0, 0), inner(0, 1)], "", ["inner"]),
        ([*PAIR, inner(0, 0), inner(0, 0), inner(0, 1)], "", ["inner", "inner"]),
        ([*PAIR, inner(0, 0, "-", **PARENT), inner(1, 1, "-")], "", ["inner", "inner"]),
        ([*PAIR, below(0, 2, 0, spawned=True), below(0, 2, 1, spawned=True)], "", ["spawned"]),
        ([*PAIR, rank(0, task=witness.a_task("1.5", spawned=True, above=[]))], "", ["spawned"]),
        (SHELLS, "", []),
        ([*SHELLS, by_shell(0, pid=1), by_shell(1, pid=1)], "", ["later"]),
        ([*SHELLS, by_shell(0, pid=1)], "world-ranks", []),
        ([*SHELLS, cut(0), cut(1)], "", ["inner", "inner"]),
        ([*SHELLS, below(0)], "", ["alone"]),
        ([*SHELLS, below(0, 4)], "", ["alone"]),
        ([*SHELLS, below(0), below(1)], "world-size", []),
        ([below(0), below(1)], "LCH-01", []),
        ([cut(0), cut(1)], "LCH-01", []),
        ([inner(0, 0), inner(0, 1)], "no-launch-world", ["inner"]),
        ([below(0, 2, 0, spawned=True)], "no-launch-world", ["spawned"]),
        ([cut(0), inner(1, 0)], "no-launch-world", ["inner", "inner"]),
        ([rank(0), cut(0)], "world-ranks", ["inner"]),
        ([rank(0), rank(1), rank(1) | {"pid": 99}], "world-ranks", []),
        ([*PAIR, rank(0) | {"pid": 98}, rank(1) | {"pid": 99}], "world-ranks", []),
        ([*PAIR, inner(0, 0), inner(0, 1, spawned=True)], "", ["spawned"]),
        ([rank(0), rank(1, 1)], "world-size", []),
    ],
)  # fmt: skip
def test_the_world_of_the_launch_is_the_job_of_its_launcher(
    tmp_path: Path, lines: Lines, code: str, others: list[str]
) -> None:
    document = witness.a_document(tmp_path, ranks=2)
    library = Path(document["libmpi"][0])
    right = [{**line, "libraries": witness.mapped("right", library)} for line in lines]
    witness.written(Path(document["home"]), *right)
    ranks = read_witness(Path(document["home"]), 2)
    assert UNREAD not in [r.rank for r in ranks]
    asked = Configuration("key", "id", an_mpi(libmpi=library), None)
    findings = check_witness(asked, Layout(1, 2, bind="none"), ranks)
    assert [f.code for f in findings if f.level is Level.ERROR] == ([code] if code else [])
    kinds = {r.world: r.world_kind for r in ranks if r.world}
    assert sorted(kinds.values()) == sorted(others)
    known = {f.code for f in findings} & {"worlds-inner", "worlds-alone"}
    listed = {"worlds-alone" if "alone" in others else "worlds-inner"} if others else set()
    assert known == (set() if code == "no-launch-world" else listed)
    world = StartedWorld(document, document["home"])
    assert world.whole() == (not code and "alone" not in others)


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([cut(0), cut(1)], foreground.GO_ON),  # their ranks may enter MPI yet
        ([below(0)], foreground.GO_ON),
        ([below(0), below(1)], foreground.END),  # every rank is alone
        ([rank(0), cut(1)], foreground.GO_ON),
        ([rank(0), cut(1), rank(1)], foreground.DONE),
        ([rank(0), rank(1, 1)], foreground.END),
        ([rank(0), below(0), below(0) | {"pid": 8}], foreground.GO_ON),
    ],
)
def test_only_what_is_a_rank_for_certain_ends_a_job(
    tmp_path: Path, lines: Lines, answer: int
) -> None:
    document = witness.a_document(tmp_path, ranks=2)
    right = witness.mapped("right", Path(document["libmpi"][0]))
    witness.written(Path(document["home"]), *({**line, "libraries": right} for line in lines))
    assert StartedWorld(document, document["home"]).look() == answer


def test_each_program_that_tasks_run_is_on_the_mpi_that_was_requested(tmp_path: Path) -> None:
    """Of other worlds no library is compared."""
    document = witness.a_document(tmp_path, ranks=2)
    library = Path(document["libmpi"][0])
    asked = Configuration("key", "id", an_mpi(libmpi=library), None)
    right, wrong = (witness.mapped(how, library) for how in ("right", "wrong"))
    for another, codes in (
        ([cut(0), cut(1)], []),
        ([by_shell(0, pid=1), by_shell(1, pid=1)], ["libmpi-several"]),
    ):
        lines = [{**line, "libraries": right} for line in SHELLS]
        lines += [{**line, "libraries": wrong} for line in another]
        witness.written(Path(document["home"]), *lines)
        findings = check_witness(
            asked, Layout(1, 2, bind="none"), read_witness(Path(document["home"]), 2)
        )
        assert [f.code for f in findings if f.level is Level.ERROR] == codes
        assert StartedWorld(document, document["home"]).whole() == (not codes)


DAMAGED = [
    0, [], {"above": 3}, {"above": [3]}, {"job": 1}, {"process": 1}, {"connected": "yes"},
    {"spawned": 0},
]  # fmt: skip


@pytest.mark.parametrize("task", DAMAGED)
def test_a_damaged_task_is_an_unreadable_record(tmp_path: Path, task: Any) -> None:
    witness.written(tmp_path, rank(0, 1, task=task))
    assert [r.rank for r in read_witness(tmp_path)] == [UNREAD]


def test_what_an_inner_world_left_in_mpi_init_is_no_rank_of_the_launch(tmp_path: Path) -> None:
    note = {"host": "n0", "program": "/opt/app", "search": "", "libraries": []}
    own = {"id": "a", "pid": 1, "start": 5, **note}
    child = {"id": "b", "pid": 2, "start": 6, "task": witness.a_task("1.5"), **note}
    alone = {"id": "c", "pid": 3, "start": 6, "task": witness.a_task("9.5", connected=False)}
    entered = tmp_path / f"{witness.NODE}.entered"
    entered.write_bytes(witness.encoded([own, child, alone | note]))
    assert [one.pid for one in read_entered(tmp_path)] == [1]
    entered.write_bytes(witness.encoded([alone | note]))
    assert [one.pid for one in read_entered(tmp_path)] == [3]


def test_without_a_number_of_ranks_the_largest_world_is_the_launch(tmp_path: Path) -> None:
    witness.written(tmp_path, by_shell(0, 1), *SHELLS)
    assert [r.world for r in read_witness(tmp_path)] == [0, 0, 1]
    witness.written(tmp_path, inner(0, 0))
    assert [r.world for r in read_witness(tmp_path)] == [1]


def test_worlds_of_one_job_and_of_several_nodes_are_told_apart() -> None:
    def process(job: str, size: int, number: int, node: str, parent: str) -> Lineage:
        task = witness.a_task(job=job, above=parent.split())
        return make_lineage(None, (node, number, size), {"pid": 1, "task": task})

    def sizes(*rows: tuple[str, int, int, str, str]) -> list[int]:
        return [len(world) for world in group_ranks(process(*row) for row in rows)]

    assert sizes(("a", 2, 0, "n0", "1"), ("a", 2, 1, "n1", "2")) == [2]
    assert sizes(("a", 2, 0, "n0", "1"), ("b", 2, 1, "n0", "1")) == [1, 1]
    assert sizes(("a", 2, 0, "n0", "1"), ("a", 3, 1, "n0", "1")) == [1, 1]
    assert sizes(("-", 2, 0, "n0", "1"), ("-", 2, 1, "n0", "1")) == [2]
    assert sizes(("-", 2, 0, "n0", "1"), ("-", 2, 1, "n1", "1")) == [1, 1]
    assert sizes(("-", 2, 0, "n0", "1"), ("-", 2, 1, "n0", "2")) == [1, 1]
    assert sizes(("-", 2, 0, "n0", "1 7"), ("-", 2, 1, "n0", "1 8")) == [2]
    assert sizes(*[("", 1, 0, "n0", "1")] * 3) == [1, 1, 1]


def test_other_worlds_are_named_briefly() -> None:
    one, two = ("tool", 1, "inner"), ("app", 2, "spawned")
    assert shows(list_worlds([one, two, one]), "2 x tool (1 rank)", "app (2 ranks, spawned)")
    assert list_worlds([("a", 1, "inner")]) == "a (1 rank)"
    many = [(f"p{n}", 1, "inner") for n in range(6)]
    assert shows(list_worlds(many), "p3 (1 rank)", "2 more kinds")
    assert list_worlds(many[:4]).endswith("p3 (1 rank)")
