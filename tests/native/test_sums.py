"""What ranks add up under --like osu: signed chars, whose sums must fit in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from tests.native.native_world import World, compile_c, values

pytestmark = pytest.mark.mpi


def test_no_sum_overflows_and_no_rank_is_missed(world: World, tmp_path: Path) -> None:
    """Libraries differ in what an overflow gives: Open MPI's loops for AVX stop at 127."""
    words = ("-isystem", world.mpis[Family.MPICH] / "include", "-Wno-unused-function")
    checked = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = run_command([compile_c("sums.c", tmp_path / "sums", *words, *checked)])
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
