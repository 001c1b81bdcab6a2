"""Where mpigraft-bench's messages lie and how they are counted: places, slots, large counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpigraft.core.model import Abi, Family
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import BENCH
from tests.native.native_world import SHORT, World, abi_of, compile_c, compile_part, values
from tests.native.test_sanitized import built, options

pytestmark = pytest.mark.mpi

SMALL = ("-DINT_LIMIT=1000", "-DPIECE=256")  # ints end at 1000: the rest takes the way of 2 GiB
PAIRS = "latency,bw,bibw,multi_lat,mbw_mr"
COLLECTIVES = (
    "bcast,allreduce,reduce,gather,gatherv,scatter,scatterv,allgather,allgatherv,alltoall,alltoallv"
)
ONE_SIDED = "put_lat,put_bw,get_lat,get_bw"
CALLS = {
    f"{name}_c"
    for name in (
        "Send", "Recv", "Isend", "Irecv", "Bcast", "Allreduce", "Reduce", "Gather", "Gatherv",
        "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Put", "Get",
    )
}  # fmt: skip
GIB = 1 << 30


# ------------------------------------------------------------------ places


@pytest.mark.parametrize("name", ["get_bw", "put_bw"])
def test_each_access_of_a_window_has_a_place_of_its_own(
    world: World, corrupt: Path, name: str
) -> None:
    """Were all to use the first one's place, it would be read from the nearest cache."""
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": "SamePlace"}
    words = ("--benchmark", name, "--min", "8", "--max", "8")
    done = world.bench(Family.MPICH, *words, env=env)
    assert done.code == 1, done.text()
    assert [v["valid"] for v in values(done)] == [False]
    assert "message 1 of 64" in done.text()


def test_more_messages_than_planned_end_with_the_name_of_the_benchmark(
    world: World, tmp_path: Path
) -> None:
    prefix = world.mpis[Family.MPICH]
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wno-unused-function")
    more = ("-Wno-unused-variable", "-isystem", prefix / "include")
    libraries = (prefix / "lib/libmpi.so.12", "-Wl,--allow-shlib-undefined", "-lm")
    program = compile_part(BENCH, "slots.c", tmp_path / "slots", *flags, *more, *libraries)
    done = run_command(
        [program], env={**world.environment(Family.MPICH), "ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert done.code == 3, done.text()
    assert "greedy: its setup takes more than the 4 messages" in done.text()
    assert "AddressSanitizer" not in done.text()


# ------------------------------------------------------------------ large counts


@pytest.fixture(scope="module")
def small(world: World, tmp_path_factory: pytest.TempPathFactory) -> dict[Family, Path]:
    """mpigraft-bench with sanitizers, whose ints end at 1000."""
    folder = tmp_path_factory.mktemp("small")
    families = (Family.MPICH, Family.OPENMPI)
    return {family: built(world, family, folder / family, *SMALL) for family in families}


@pytest.fixture(scope="module")
def counted(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shim that says which calls with large counts are made."""
    headers = world.mpis[Family.MPICH] / "include"
    output = tmp_path_factory.mktemp("large") / "large.so"
    return compile_c("large.c", output, "-shared", "-fPIC", "-isystem", headers)


def large_calls(world: World, small: Path, shim: Path, tmp_path: Path, *words: str) -> set[str]:
    """The calls for large counts that a run of valid values made."""
    env = {**options(tmp_path), "LD_PRELOAD": str(shim)}
    env["ASAN_OPTIONS"] += ":verify_asan_link_order=0"
    once = ("--warmup", "1", "--iterations", "1", "--samples", "1")
    done = world.launch(Family.MPICH, small, *SHORT, *once, *words, env=env)
    assert done.code == 0, done.text()[-6000:]
    assert values(done)
    assert all(v["valid"] for v in values(done))
    return set(re.findall(r"^made MPI_(\w+)$", done.text(), re.MULTILINE))


def test_every_call_with_a_count_has_one_for_large_counts(
    world: World, small: dict[Family, Path], counted: Path, tmp_path: Path
) -> None:
    """4,800 bytes are 1,200 floats."""
    names = ("--benchmark", f"{PAIRS},{COLLECTIVES},{ONE_SIDED}")
    where = (world, small[Family.MPICH], counted, tmp_path)
    assert large_calls(*where, *names, "--min", "4800", "--max", "4800") == CALLS
    assert large_calls(*where, *names, "--min", "400", "--max", "400") == set()


@pytest.mark.parametrize(
    ("datatype", "counts"), [("contiguous", "skewed"), ("packed", "skewed"), ("indexed", "sparse")]
)
def test_datatypes_and_counts_beyond_ints(
    world: World, small: dict[Family, Path], counted: Path, tmp_path: Path, datatype: str,
    counts: str,
) -> None:  # fmt: skip
    """900 bytes to each rank are displacements, or addresses of a datatype, over 1,000; a derived
    datatype is one of its kind and needs no large count."""
    names = f"bw,get_bw,{COLLECTIVES}".replace("allreduce,reduce,", "")
    where = (world, small[Family.MPICH], counted, tmp_path)
    words = ("--datatype", datatype, "--counts", counts, "--min", "900", "--max", "900")
    vectors = {"Gatherv_c", "Scatterv_c", "Allgatherv_c", "Alltoallv_c"}
    assert large_calls(*where, "--benchmark", names, *words) == (
        {"Type_create_hindexed"} if datatype == "indexed" else vectors
    )


def test_an_mpi_without_large_counts_is_refused_by_the_name_of_what_it_lacks(
    world: World, small: dict[Family, Path], tmp_path: Path
) -> None:
    def bench(*words: str) -> str:
        program = small[Family.OPENMPI]
        done = world.launch(Family.OPENMPI, program, *SHORT, *words, env=options(tmp_path))
        codes.append(done.code)
        return done.text()

    codes: list[int] = []
    asked = bench("--benchmark", "bw", "--min", "512", "--max", "1K")
    assert "bw: messages of 1024 B need counts or displacements over 1000, and this MPI has no "\
        "MPI_Isend_c; use a smaller --max" in asked  # fmt: skip
    not_asked = bench("--benchmark", "alltoallv", "--min", "250")
    assert "alltoallv: sizes over 500 B are left out: messages of 1000 B need counts or "\
        "displacements over 1000, and this MPI has no MPI_Alltoallv_c" in not_asked  # fmt: skip
    indexed = bench("--benchmark", "latency,get_bw", "--datatype", "indexed", "--min", "2K",
                    "--max", "2K")  # fmt: skip
    assert indexed.count('"valid":true') == 2
    assert codes == [2, 0, 0]


def test_a_wrong_byte_in_any_piece_is_noticed(
    world: World, small: dict[Family, Path], corrupt: Path, tmp_path: Path
) -> None:
    """Content is made of pieces of 256 bytes here; the last one of 900 has 132."""
    for place in (0, 255, 256, 899):
        env = {**options(tmp_path), "LD_PRELOAD": str(corrupt), "CORRUPT": "Recv", "AT": str(place),
               "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}  # fmt: skip
        words = (*SHORT, "--min", "900", "--max", "900")
        done = world.launch(Family.MPICH, small[Family.MPICH], *words, env=env)
        assert done.code == 1, done.text()[-6000:]


def test_prototypes_are_those_of_the_standard(world: World, tmp_path: Path) -> None:
    prefix = world.mpis[Family.MPICH]
    more = ("-Wno-unused-function", "-Wno-unused-variable")
    for name, abi in (("libmpi.so.12", ()), ("libmpi_abi.so.1", ("-DMPI_ABI",))):
        libraries = (prefix / "lib" / name, "-Wl,--allow-shlib-undefined")
        headers = ("-isystem", prefix / "include")
        compile_part(BENCH, "prototypes.c", tmp_path / name, *abi, *more, *headers, *libraries)


# ------------------------------------------------------------------ more than 2 GiB


def free_memory() -> int:
    """Bytes."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "abi"),
    [(Family.MPICH, Abi.MPICH), (Family.MPICH, Abi.MPI_ABI), (Family.INTEL, Abi.MPICH)],
    ids=str,
)
def test_more_than_2_gib_arrives(world: World, family: Family, abi: Abi) -> None:
    if free_memory() < 10 * GIB:
        pytest.skip(f"needs 10 GiB of free memory; {free_memory() / GIB:.1f} GiB are free")
    words = ("--benchmark", "bw", "--min", "2200M", "--max", "2200M", "--iterations", "1")
    once = ("--warmup", "0", "--samples", "1", "--budget", "1")
    done = world.bench(family, *words, *once, abi=abi)
    assert done.code == 0, done.text()
    assert [(v["size"], v["valid"]) for v in values(done)] == [(2200 << 20, True)]


def test_more_than_2_gib_without_large_counts_is_refused(world: World) -> None:
    words = ("--benchmark", "bw", "--min", "2200M", "--max", "2200M")
    done = world.bench(Family.OPENMPI, *words, abi=abi_of(Family.OPENMPI))
    assert done.code == 2, done.text()
    assert "and this MPI has no MPI_Isend_c" in done.text()
