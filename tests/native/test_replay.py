"""mpigraft-replay: it calls what the program called, on any MPI, and checks what arrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import Completed, run_command
from mpigraft.native.programs import REPLAY, TRACE
from mpigraft.trace.record.coding import read_call
from mpigraft.trace.record.prepared import prepare
from mpigraft.trace.record.rank_file import read_rank
from mpigraft.trace.record.values import RankCalls
from tests.native.native_world import C, World, abi_of, values
from tests.native.structure import record_parts

FAMILIES = (Family.OPENMPI, Family.MPICH)
MARKS = ("Finalize", "Comm_split_type", "Comm_split")  # not called, or the one for the other


@pytest.fixture(scope="session")
def patterns(world: World, tmp_path_factory: pytest.TempPathFactory) -> Mapping[Family, Path]:
    made = {}
    for family in FAMILIES:
        made[family] = tmp_path_factory.mktemp("patterns") / "patterns"
        wrapper = world.mpis[family] / "bin/mpicc"
        words: list[str | Path] = [wrapper, "-O1", C / "patterns.c", "-o", made[family]]
        done = run_command(words, env=world.environment(family))
        assert done.ok, done.text()
    return made


def recorded(
    world: World, family: Family, folder: Path, *words: str | Path, ranks: int = 2
) -> list[bytes]:
    """What each rank of a program recorded."""
    trace = world.programs / abi_of(family) / TRACE
    folder.mkdir()
    env = {"LD_PRELOAD": str(trace), "MPIGRAFT_TRACE": str(folder)}
    env["MPIGRAFT_TRACE_OPTIONS"] = "record,budget=16"
    done = world.launch(family, *words, ranks=ranks, env=env)
    assert done.ok, done.text()
    return record_parts(folder, ranks)


def replayed(world: World, family: Family, file: Path, *words: str, ranks: int = 2) -> Completed:
    return world.launch(family, world.programs / abi_of(family) / REPLAY, file, *words, ranks=ranks)


def calls_of(record: RankCalls) -> Counter[str]:
    """How often each routine was called."""
    count: Counter[str] = Counter()
    for leaf in record.leaves():
        name = read_call(record.signatures[leaf.signature], record.routines).routine.name
        count[name] += leaf.times
    return count


def structure_of(record: RankCalls) -> Counter[object]:
    """How often each call came, without what depends on time or is replayed in another way:
    sources of receives, ranks that may be reordered. Numbers of communicators differ, since one
    is made in another way."""
    count: Counter[object] = Counter()
    for leaf in record.leaves():
        text = record.signatures[leaf.signature]
        call = read_call(text, record.routines)
        timed = set(call.routine.fields) & set("xXZz")
        dropped = "cCrk" if call.routine.name == "Irecv" else "cC"
        if not (timed or call.routine.name in (*MARKS, "Cart_create")):
            pairs = zip(call.routine.fields, call.values, strict=True)
            kept = tuple(value for letter, value in pairs if letter not in dropped)
            count[call.routine.name, kept] += leaf.times
    return count


@pytest.mark.parametrize(
    ("family", "ranks"), [(Family.OPENMPI, 2), (Family.OPENMPI, 4), (Family.MPICH, 2)]
)
def test_a_replay_is_the_program(
    world: World, patterns: Mapping[Family, Path], family: Family, ranks: int, tmp_path: Path
) -> None:
    parts = recorded(world, family, tmp_path / "program", patterns[family], "6", ranks=ranks)
    file = tmp_path / "with space"
    file.write_bytes(prepare(parts, abi_of(family)))
    words = (world.programs / abi_of(family) / REPLAY, file)
    again = recorded(world, family, tmp_path / "replay", *words, ranks=ranks)
    for one, other in zip(map(read_rank, parts), map(read_rank, again), strict=True):
        calls = calls_of(one)
        calls["Comm_split"] += calls.pop("Comm_split_type")
        assert calls_of(other) == calls
        assert structure_of(other) == structure_of(one)


@pytest.mark.parametrize("family", FAMILIES)
def test_data_is_right_on_both_mpis(
    world: World, patterns: Mapping[Family, Path], family: Family, tmp_path: Path
) -> None:
    parts = recorded(world, family, tmp_path / "program", patterns[family], "4", ranks=2)
    file = tmp_path / "file"
    file.write_bytes(prepare(parts, abi_of(family)))
    for other in FAMILIES:
        done = replayed(world, other, file, "--check", "--gaps", "none")
        assert done.ok, done.text()
        assert b" of 0 wrong" in done.stderr, done.text()
        rows = {row["benchmark"]: row for row in values(done)}
        assert rows["replay,routine=Alltoallv"]["iterations"] == 8
        assert all(row["valid"] for row in rows.values())


@pytest.mark.parametrize("name", ["Alltoallv", "Bcast", "Allreduce", "Gather"])
def test_a_wrong_byte_is_caught(
    world: World, patterns: Mapping[Family, Path], corrupt: Path, name: str, tmp_path: Path
) -> None:
    parts = recorded(world, Family.MPICH, tmp_path / "program", patterns[Family.MPICH], "1")
    file = tmp_path / "file"
    file.write_bytes(prepare(parts, "mpich"))
    program = world.programs / "mpich" / REPLAY
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": name}
    done = world.launch(Family.MPICH, program, file, "--check", env=env)
    assert done.code == 1, done.text()
    assert f"MPI_{name} got wrong data from rank" in done.stderr.decode()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:200], "its end is missing"),
        (lambda data: data[:5000] + b"\x55" + data[5001:], "its content is damaged"),
        (lambda data: b"no record" + data, "it is not a file that mpigraft prepared"),
    ],
)
def test_damage_is_refused_by_all_ranks(
    world: World,
    patterns: Mapping[Family, Path],
    damage: object,
    words: str,
    tmp_path: Path,
) -> None:
    parts = recorded(world, Family.MPICH, tmp_path / "program", patterns[Family.MPICH], "1")
    file = tmp_path / "file"
    assert callable(damage)
    file.write_bytes(damage(prepare(parts, "mpich")))
    done = replayed(world, Family.MPICH, file)
    assert done.code == 2, done.text()
    assert words in done.stderr.decode()


def test_a_call_of_an_unknown_window_is_refused(world: World, tmp_path: Path) -> None:
    wrapper, source = world.mpis[Family.MPICH] / "bin/mpicc", C.parents[1] / "mpi/phases.c"
    done = run_command(
        [wrapper, source, "-o", tmp_path / "phases"], env=world.environment(Family.MPICH)
    )
    assert done.ok, done.text()
    parts = recorded(world, Family.MPICH, tmp_path / "program", tmp_path / "phases", "dynamic")
    file = tmp_path / "file"
    file.write_bytes(prepare(parts, "mpich"))
    done = replayed(world, Family.MPICH, file)
    assert done.code == 2, done.text()
    assert "Win_fence, for no call that is recorded made its window" in done.stderr.decode()


def test_another_number_of_ranks_is_refused(
    world: World, patterns: Mapping[Family, Path], tmp_path: Path
) -> None:
    parts = recorded(world, Family.OPENMPI, tmp_path / "program", patterns[Family.OPENMPI], "1")
    file = tmp_path / "file"
    file.write_bytes(prepare(parts, "ompi"))
    done = replayed(world, Family.OPENMPI, file, ranks=3)
    assert done.code == 2
    assert "it is a record of 2 ranks, and this world has 3" in done.stderr.decode()


def test_one_routine_alone(world: World, patterns: Mapping[Family, Path], tmp_path: Path) -> None:
    parts = recorded(world, Family.MPICH, tmp_path / "program", patterns[Family.MPICH], "3")
    file = tmp_path / "file"
    file.write_bytes(prepare(parts, "mpich"))
    done = replayed(world, Family.MPICH, file, "--only", "Alltoallv", "--check")
    assert done.ok, done.text()
    rows = {row["benchmark"] for row in values(done)}
    assert "replay,routine=Alltoallv" in rows
    assert not rows & {f"replay,routine={name}" for name in ("Bcast", "Isend", "Waitall", "Put")}
    done = replayed(world, Family.MPICH, file, "--only", "p2p", "--check")
    rows = {row["benchmark"] for row in values(done)}
    assert {"replay,routine=Isend", "replay,routine=Waitall", "replay,routine=Mrecv"} <= rows
    assert "replay,routine=Alltoallv" not in rows
    refused = replayed(world, Family.MPICH, file, "--only", "Ialltoallw")
    assert refused.code == 2
    assert "no call of --only is in it" in refused.stderr.decode()
