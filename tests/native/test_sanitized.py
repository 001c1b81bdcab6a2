"""mpigraft-bench under the address and undefined-behaviour sanitizers, and its own leaks.

The MPIs themselves leak by design (they keep tables until the process ends), so leaks are looked
for in our frames only: one that names no MPI library in its stack is ours.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import BENCH, PROBE
from tests.native.native_world import SHORT, World, compile_program, records, values

pytestmark = pytest.mark.mpi
LONG, COVERING = pytest.mark.long, pytest.mark.covering

NAMES = (
    "latency,bw,bibw,multi_lat,mbw_mr,barrier,bcast,gather,gatherv,scatter,scatterv,allgather,"
    "allgatherv,alltoall,alltoallv,put_lat,put_bw,get_lat,get_bw,init_time,memory"
)
SUPPRESSED = (
    "libmpi", "libopen-pal", "libopen-rte", "libpmix", "libprrte", "libfabric", "libuc",
    "libhwloc", "libevent", "libnuma", "libze", "librdmacm", "libibverbs", "libdl",
)  # fmt: skip


@pytest.fixture(scope="module", params=[Family.MPICH, pytest.param(Family.OPENMPI, marks=LONG)])
def sanitized(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Family, Path]:
    family: Family = request.param
    return family, built(world, family, tmp_path_factory.mktemp("sanitized") / "bench")


def built(world: World, family: Family, output: Path, *more: str, program: str = BENCH) -> Path:
    prefix = world.mpis[family]
    soname = "libmpi.so.40" if family is Family.OPENMPI else "libmpi.so.12"
    flags = ("-Wshadow", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *more)
    libraries = (prefix / "lib" / soname, "-Wl,--allow-shlib-undefined")
    return compile_program(program, output, *flags, "-isystem", prefix / "include", *libraries)


def options(tmp_path: Path) -> dict[str, str]:
    listed = tmp_path / "suppressions"
    listed.write_text("".join(f"leak:{name}\n" for name in SUPPRESSED), encoding="ascii")
    return {
        "ASAN_OPTIONS": "detect_leaks=1:fast_unwind_on_malloc=0",
        "LSAN_OPTIONS": f"suppressions={listed}:print_suppressions=0",
        "UCX_MEM_EVENTS": "n",  # UCX's own hooks on malloc and mmap fight with the sanitizer's
    }


KINDS = (
    "reduce_scatter,alltoallw,ibcast,ireduce,iallgatherv,ialltoallw,bcast_persistent,"
    "gatherv_persistent,allreduce_persistent,neighbor_allgatherv,neighbor_alltoallw,"
    "ineighbor_alltoall,latency_persistent,bibw_persistent,partitioned_latency,acc_lat,"
    "get_acc_lat,fop_lat,cas_lat,allgather:in_place=yes,alltoall:in_place=yes,"
    "reduce:in_place=yes,put_bw:sync=fence,get_lat:sync=pscw,acc_lat:sync=lock,"
    "neighbor_alltoallv:topology=graph"
)
RUNS = {
    "kinds": (KINDS, 2, ()),
    "contiguous": (NAMES + ",allreduce,reduce", 2, ("--counts", "skewed")),
    "indexed": (NAMES, 2, ("--datatype", "indexed", "--counts", "sparse")),
    "packed": (NAMES, 3, ("--datatype", "packed", "--counts", "skewed")),
}


# Datatypes under the sanitizers are in test_large every day.
@pytest.mark.parametrize("datatype", [
    "contiguous", "kinds", pytest.param("indexed", marks=LONG),
    pytest.param("packed", marks=[LONG, COVERING]),
])  # fmt: skip
def test_benchmarks(
    world: World, sanitized: tuple[Family, Path], tmp_path: Path, datatype: str
) -> None:
    """Sizes 3 to 96: rests of blocks, whole blocks, and more than one."""
    family, program = sanitized
    names, ranks, more = RUNS[datatype]
    words = (*SHORT, "--benchmark", names, "--min", "3", "--max", "100", *more)
    done = world.launch(family, program, *words, ranks=ranks, env=options(tmp_path))
    assert done.code == 0, done.text()[-6000:]
    assert len(values(done)) > 100
    if datatype == "kinds":
        threads = world.launch(family, program, *SHORT, "--benchmark", "latency_mt", "--max", "8",
                               env=options(tmp_path))  # fmt: skip
        assert threads.code == 0, threads.text()[-6000:]
    assert "ERROR: " not in done.text()


def test_the_probe(world: World, sanitized: tuple[Family, Path], tmp_path: Path) -> None:
    family, _ = sanitized
    program = built(world, family, tmp_path / "probe", program=PROBE)
    done = world.launch(family, program, ranks=3, env=options(tmp_path))
    assert done.code == 0, done.text()[-6000:]


def test_the_probe_of_many_ranks_takes_no_memory_for_each(world: World, tmp_path: Path) -> None:
    """Three are many here: the long all-to-all is left out, and what it had is not touched."""
    program = built(world, Family.MPICH, tmp_path / "probe", "-DLONG_RANKS=2", program=PROBE)
    done = world.launch(Family.MPICH, program, ranks=3, env=options(tmp_path))
    assert done.code == 0, done.text()[-6000:]
    (phase,) = (one for one in records(done) if one.get("kind") == "collective")
    told = [part["what"] for part in phase["parts"]]
    assert told == ["alltoall 8 B", "allreduce 8 B", "allreduce 64 KiB", "bcast 8 B"]
    assert phase["bytes"] == sum(part["bytes"] for part in phase["parts"]) > 0


def test_osu_and_usage(world: World, sanitized: tuple[Family, Path], tmp_path: Path) -> None:
    family, program = sanitized
    words = (*SHORT, "--format", "osu", "--benchmark", "mbw_mr,barrier,init_time,put_lat")
    done = world.launch(family, program, *words, "--max", "64", env=options(tmp_path))
    assert done.code == 0, done.text()[-6000:]
    for bad in (("--benchmark", "bw:window=1:x"), ("--max", "1T"), ("--benchmark", "," * 300)):
        refused = world.launch(family, program, *bad, ranks=1, env=options(tmp_path))
        assert "AddressSanitizer" not in refused.text()
        assert "runtime error" not in refused.text()
