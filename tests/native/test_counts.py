"""Calls, bytes and sizes of messages that the tracing library counts, beside an independent count;
and times, which lie in the run of their thread."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import REPLAY, TRACE
from mpigraft.trace import Counting, Profile, counted_profile, read_counts
from mpigraft.trace.profile.node_file import RankSlot
from mpigraft.trace.record.prepared import prepare
from tests.native.native_world import C, World, abi_of, values
from tests.native.structure import record_parts, traced

pytestmark = pytest.mark.mpi

LONG = pytest.mark.long
FAMILIES = (Family.OPENMPI, Family.MPICH)
MIXED = 65  # counts.c's own number for calls with blocks of more than two classes
GENERATORS = ("counts", "varied")
LEAVING = ("exit", "_exit", "quick")
PROGRAMS = (*GENERATORS, "entries")
MIB = 1 << 20
Row = tuple[int, int, dict[int, tuple[int, int]]]  # calls, bytes, {class: (messages, bytes)}


@pytest.fixture(scope="module")
def programs_of(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[tuple[str, Family], Path]:
    made = {}
    for name in PROGRAMS:
        for family in FAMILIES:
            made[name, family] = tmp_path_factory.mktemp(name) / name
            words: list[str | Path] = [world.mpis[family] / "bin/mpicc", "-O1", "-pthread"]
            words += [C / f"{name}.c", "-o", made[name, family]]
            done = run_command(words, env=world.environment(family))
            assert done.ok, done.text()
    return made


def slots_of(folder: Path) -> Iterator[RankSlot]:
    for slots in read_counts(folder).values():
        yield from slots


def counted(folder: Path) -> dict[tuple[int, str], Row]:
    """What the library counted, by rank and routine."""
    found = {}
    for slot in slots_of(folder):
        (thread,) = slot.threads
        for name, row in thread.routines.items():
            sizes = {k: (calls, total) for k, calls, total, _ in row.sizes if calls}
            sizes |= {MIXED: (row.mixed[0], row.mixed[1])} if row.mixed else {}
            found[slot.rank, name] = (row.calls, row.bytes, sizes)
    return found


def expected(path: Path, ranks: int) -> dict[tuple[int, str], Row]:
    """What the program counted."""
    found = {}
    for rank in range(ranks):
        for line in path.with_name(f"{path.name}.{rank}").read_text().splitlines():
            name, calls, total, *classes = line.split()
            parts = (tuple(map(int, one.split(":"))) for one in classes)
            sizes = {k: (messages, size) for k, messages, size in parts}
            found[rank, name] = (int(calls), int(total), sizes)
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("program", GENERATORS)
@pytest.mark.parametrize(
    ("seed", "ranks", "steps"),
    [
        (1, 2, 200),
        (2, 3, 200),
        *(pytest.param(k, k % 3 + 2, 20_000, marks=LONG) for k in range(3, 9)),
    ],
)
def test_counts_equal_an_independent_count(
    world: World, programs_of: Mapping[tuple[str, Family], Path], tmp_path: Path, family: Family,
    program: str, seed: int, ranks: int, steps: int,
) -> None:  # fmt: skip
    folder, own = tmp_path / "trace", tmp_path / "own"
    words = (programs_of[program, family], str(seed), str(steps), own)
    traced(world, family, folder, *words, ranks=ranks, options="")
    found = counted(folder)
    apart = {key: found.pop(key) for key in list(found) if key[1] in ("Init", "Finalize")}
    assert {name for _, name in apart} == {"Init", "Finalize"}
    assert found == expected(own, ranks)
    assert_shares(profiled(folder, ranks))


def profiled(folder: Path, ranks: int) -> Profile:
    profile = counted_profile(read_counts(folder), Counting(ranks=ranks))
    assert profile is not None
    return profile


def assert_shares(profile: Profile) -> None:
    """No rank is longer in MPI than it ran, once for each of its threads."""
    assert profile.mpi_s is not None
    assert profile.total_s is not None
    assert 0 <= profile.mpi_s <= profile.total_s
    if not any(one.name == "Session_init" for one in profile.routines):
        runs_s = sum((one.run_s or 0) * one.threads for one in profile.each)
        assert profile.total_s == pytest.approx(runs_s)
    for one in profile.each:
        assert one.mpi_s is not None
        assert one.run_s is not None
        assert one.mpi_s <= one.run_s * one.threads * (1 + 1e-9)


@pytest.fixture
def entered(
    world: World, programs_of: Mapping[tuple[str, Family], Path], tmp_path: Path
) -> Callable[..., Profile]:
    def run(family: Family, mode: str, ranks: int) -> Profile:
        words = (programs_of["entries", family], mode)
        fine = mode not in LEAVING  # a launcher complains of that
        traced(world, family, tmp_path / "trace", *words, ranks=ranks, options="", fine=fine)
        return profiled(tmp_path / "trace", ranks)

    return run


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", ["threads", "sessions"])
def test_calls_lie_in_the_run_of_their_thread(
    entered: Callable[..., Profile], family: Family, mode: str
) -> None:
    profile = entered(family, mode, 2)
    assert_shares(profile)
    calls = {one.name: one.calls or 0 for one in profile.routines}
    match mode:
        case "threads":
            assert [one.threads for one in profile.each] == [5, 5]
            assert not {"Barrier", "Iprobe"} & set(calls)  # all of them while it pauses
            assert calls["Sendrecv"] == 2 * 4 * 200
            assert 0 < calls["Recv"] <= 2 * 4 * 2  # one that begins while it pauses passes by
        case "sessions":
            each = 2 if family is Family.OPENMPI else 3
            assert calls["Session_init"] == calls["Session_finalize"] == 2 * each
            assert calls["Barrier"] == 2 * 200
            assert all(one.finalized for one in profile.each)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mode", LEAVING)
def test_a_rank_ends_where_it_leaves(
    entered: Callable[..., Profile], family: Family, mode: str, tmp_path: Path
) -> None:
    """Without MPI_Finalize it is not running until its launcher is over."""
    profile = entered(family, mode, 1)
    (slot,) = slots_of(tmp_path / "trace")
    assert (slot.finalized, slot.ended > slot.began) == (False, True)
    assert profile.unfinished
    assert_shares(profile)


@pytest.mark.parametrize("family", FAMILIES)
def test_requests_are_known_however_many_and_whenever_made(
    entered: Callable[..., Profile], tmp_path: Path, family: Family
) -> None:
    starts = {one.name: one for one in entered(family, "pause", 1).routines}
    assert (starts["Startall"].calls, starts["Startall"].bytes) == (1, 100)
    (tmp_path / "trace").rename(tmp_path / "before")
    starts = {one.name: one for one in entered(family, "requests", 1).routines}
    assert (starts["Startall"].calls, starts["Startall"].bytes) == (2, 2 * 6000 * 8)


@pytest.mark.parametrize("family", FAMILIES)
def test_time_is_of_the_size_that_moved(entered: Callable[..., Profile], family: Family) -> None:
    routines = {one.name: one for one in entered(family, "last", 3).routines}
    time_s = {one.least: one.time_s for one in routines["Alltoallv"].sizes}
    assert time_s[0] == 0
    assert time_s[MIB] == pytest.approx(routines["Alltoallv"].time_s)
    started = {one.least: one for one in routines["Startall"].sizes}
    assert started[MIB].time_s == pytest.approx(routines["Startall"].time_s, rel=1e-3)
    assert all(one.estimated for one in started.values() if one.time_s)


@pytest.mark.parametrize("family", FAMILIES)
def test_names_that_the_mpi_lacks_are_absent(
    world: World, programs_of: Mapping[tuple[str, Family], Path], family: Family
) -> None:
    """As without the library: PyPI's mpi4py asks dlsym which functions there are."""
    names = ("MPI_Send", "PMPI_Send", "MPI_Type_get_extent_c", "PMPI_Type_get_extent_c", "MPI_No")
    program = programs_of["entries", family]
    preload = {"LD_PRELOAD": str(world.programs / abi_of(family) / TRACE)}
    lines = []
    for more in ({}, preload):
        env = {**os.environ, **world.environment(family), **more}
        lines.append(run_command([program, "names", *names], env=env).stdout)
    assert lines[0] == lines[1]
    large = b"0 0 1" if family is Family.OPENMPI else b"1 1 0"
    assert b"MPI_Type_get_extent_c " + large in lines[0]


@pytest.fixture
def recorded(
    world: World, programs_of: Mapping[tuple[str, Family], Path], tmp_path: Path
) -> Callable[..., Path]:
    """A record of a program, as a replay reads it."""

    def run(family: Family, ranks: int, name: str, *words: str | Path) -> Path:
        words = (programs_of[name, family], *words)
        folder, file = tmp_path / "record", tmp_path / "prepared"
        traced(world, family, folder, *words, ranks=ranks, options="record,budget=16")
        file.write_bytes(prepare(record_parts(folder, ranks), abi_of(family)))
        return file

    return run


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", GENERATORS)
def test_a_replay_counts_what_the_program_counted(
    world: World, recorded: Callable[..., Path], tmp_path: Path, family: Family, name: str
) -> None:
    own = tmp_path / "own"
    file = recorded(family, 3, name, "5", "60", own)
    program = world.programs / abi_of(family) / REPLAY
    done = world.launch(family, program, file, "--gaps", "none", ranks=3)
    assert done.ok, done.text()
    found = {one["benchmark"].partition("routine=")[2]: one for one in values(done)}
    sums: Counter[tuple[str, str]] = Counter()
    for (_, routine), (calls, total, _) in expected(own, 3).items():
        sums[routine, "iterations"] += calls
        sums[routine, "bytes"] += total
    known = {"Alltoallv", "Startall"} if name == "counts" else {"Alltoallw", "Get_accumulate"}
    assert known <= set(found)
    differing = [
        (routine, what, count, found[routine][what])
        for (routine, what), count in sums.items()
        if routine in found and found[routine][what] != count
    ]
    assert not differing


@pytest.mark.parametrize(
    ("family", "other"),
    [(Family.MPICH, Family.MPICH), (Family.OPENMPI, Family.MPICH),
     pytest.param(Family.MPICH, Family.OPENMPI, marks=LONG)],
)  # fmt: skip
def test_the_largest_tags_and_one_sided_buffers_are_replayed(
    world: World, recorded: Callable[..., Path], family: Family, other: Family
) -> None:
    """Tags of Open MPI reach 2^31 - 1, those of MPICH do not; and MPI_Compare_and_swap has three
    buffers."""
    file = recorded(family, 2, "entries", "window")
    done = world.launch(other, world.programs / abi_of(other) / REPLAY, file, "--table", ranks=2)
    assert done.ok, done.text()
    assert b"Compare_and_swap" in done.stdout
    assert b"the program took" in done.stdout


def test_a_replay_that_needs_two_threads_ends_and_tells_where(
    world: World, recorded: Callable[..., Path]
) -> None:
    file = recorded(Family.MPICH, 1, "entries", "two")
    program = world.programs / abi_of(Family.MPICH) / REPLAY
    done = world.launch(Family.MPICH, program, file, "--patience", "0.5", ranks=1)
    assert not done.ok
    assert b"rank 0 waits in MPI_" in done.stderr
    assert b"calls of several threads" in done.stderr
