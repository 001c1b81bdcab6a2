"""What ranks add up under --like osu: signed chars, whose sums must fit in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import BENCH
from tests.native.native_world import World, compile_part, values

pytestmark = pytest.mark.mpi


def test_no_sum_overflows_and_no_rank_is_missed(world: World, tmp_path: Path) -> None:
    """Libraries differ in what an overflow gives: Open MPI's loops for AVX stop at 127."""
    words = ("-isystem", world.mpis[Family.MPICH] / "include", "-Wno-unused-function")
    checked = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    library = world.mpis[Family.MPICH] / "lib/libmpi.so.12"
    linked = (library, "-Wl,--allow-shlib-undefined")
    program = compile_part(BENCH, "sums.c", tmp_path / "sums", *words, *checked, *linked)
    done = run_command(
        [program], env={**world.environment(Family.MPICH), "ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert done.code == 0, done.text()


@pytest.mark.parametrize(
    ("family", "ranks"), [(Family.OPENMPI, 3), (Family.OPENMPI, 4), (Family.INTEL, 2)]
)
def test_sums_like_osu_are_right(world: World, family: Family, ranks: int) -> None:
    """Short ones, and what loops for 64 bytes at a time take, with a rest."""
    once = ("--like", "osu", "--warmup", "2", "--samples", "1", "--iterations", "1")
    names = ("--benchmark", "allreduce,reduce")
    done = world.bench(family, *names, *once, "--min", "333", "--max", "333", ranks=ranks)
    assert done.code == 0, done.text()
    assert [v["valid"] for v in values(done)] == [True, True]
