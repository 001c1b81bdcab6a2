"""A replay's structure is exact: calls and bytes of each routine, and what each rank gives to each
other one, equal those of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import MINI
from mpigraft.trace.record.rank_file import read_rank
from mpigraft.trace.record.values import Loop, Node
from tests.native.native_world import C, World, abi_of
from tests.native.structure import differences, record_parts, traced

pytestmark = pytest.mark.mpi

LONG = pytest.mark.long
FAMILIES = (Family.OPENMPI, Family.MPICH)
RANKS = (2, 3, 8, 64)
MINIS = {  # which are over in a moment
    "dirac": ("--size", "4x3x2x5", "--unknowns", "3"),
    "halo": ("--size", "8x14x130", "--fields", "2"),
    "ocean": ("--size", "23x14", "--every", "3"),
    "transpose": ("--size", "6x10x9"),
}
DAILY = {
    ("irregular", Family.OPENMPI, 3), ("irregular", Family.MPICH, 3),
    ("patterns", Family.MPICH, 8), ("dirac", Family.MPICH, 2), ("halo", Family.MPICH, 3),
    ("ocean", Family.MPICH, 3), ("transpose", Family.MPICH, 3),
}  # fmt: skip


def cases(*names: str) -> list[object]:
    """Each name on each MPI and number of ranks; those that are not daily are long."""
    every = [(name, family, ranks) for name in names for family in FAMILIES for ranks in RANKS]
    return [pytest.param(*case, marks=() if case in DAILY else LONG) for case in every]


@pytest.fixture(scope="module")
def callers(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[tuple[str, Family], Path]:
    made = {}
    for name in ("patterns", "irregular"):
        for family in FAMILIES:
            made[name, family] = tmp_path_factory.mktemp(name) / name
            wrapper = world.mpis[family] / "bin/mpicc"
            words: list[str | Path] = [wrapper, "-O1", C / f"{name}.c", "-o", made[name, family]]
            done = run_command(words, env=world.environment(family))
            assert done.ok, done.text()
    return made


@pytest.mark.parametrize(("name", "family", "ranks"), cases("patterns", "irregular"))
def test_counts_of_programs(
    world: World,
    callers: Mapping[tuple[str, Family], Path],
    tmp_path: Path,
    name: str,
    family: Family,
    ranks: int,
) -> None:
    assert differences(world, family, tmp_path, callers[name, family], "4", ranks=ranks) == {}


@pytest.mark.parametrize(("name", "family", "ranks"), cases(*MINIS))
def test_counts_of_mini_apps(
    world: World, tmp_path: Path, name: str, family: Family, ranks: int
) -> None:
    short = ("--app", name, "--budget", "1", "--samples", "3", *MINIS[name])
    program = world.programs / abi_of(family) / MINI
    assert differences(world, family, tmp_path, program, *short, ranks=ranks) == {}


def test_a_call_that_is_left_out_is_noticed(
    world: World, callers: Mapping[tuple[str, Family], Path], tmp_path: Path
) -> None:
    program, options = callers["patterns", Family.MPICH], ("--only", "Bcast")
    found = differences(world, Family.MPICH, tmp_path, program, "4", ranks=2, options=options)
    assert found[0, "Allreduce", "calls"] == (4, 0)
    assert found[1, "Sendrecv", "bytes"] == (4 * 10 * 4, 0)
    assert (0, 1, 0, "messages") in found
    assert (0, "Bcast", "calls") not in found


def nodes_of(nodes: Sequence[Node]) -> int:
    return sum(1 + (nodes_of(node.items) if isinstance(node, Loop) else 0) for node in nodes)


@pytest.mark.parametrize("part", ["s", "t"])
@pytest.mark.parametrize(
    ("family", "ranks"),
    [(Family.MPICH, 2), pytest.param(Family.MPICH, 4, marks=LONG),
     pytest.param(Family.OPENMPI, 4, marks=LONG)],
)  # fmt: skip
def test_what_completes_first_does_not_unfold_steps(
    world: World,
    callers: Mapping[tuple[str, Family], Path],
    tmp_path: Path,
    family: Family,
    ranks: int,
    part: str,
) -> None:
    """MPI_Waitsome, Testsome and Testany (s) and MPI_Test (t): a thousand steps as ten."""
    sizes = []
    for steps in ("10", "1000"):
        folder, program = tmp_path / steps, callers["irregular", family]
        traced(world, family, folder, program, steps, part, ranks=ranks, options="record,budget=16")
        parts = map(read_rank, record_parts(folder, ranks))
        sizes.append(sum(nodes_of(one.nodes) for one in parts))
    assert sizes[1] <= 2 * sizes[0]
