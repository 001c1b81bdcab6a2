"""mpigraft-bench on real MPIs: every benchmark runs, and says when data is wrong."""

from __future__ import annotations

import re
import statistics
import time
from pathlib import Path

import pytest

from mpigraft.bench.suites import native
from mpigraft.core.model import METRICS, Abi, Family
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import BENCH, benchmarks, own_benchmarks
from tests.native.native_world import World, compile_c, records, values

pytestmark = pytest.mark.mpi

NAMES = (
    "latency", "bw", "bibw", "multi_lat", "mbw_mr", "pairs", "barrier", "bcast", "allreduce",
    "reduce", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall",
    "alltoallv", "put_lat", "put_bw", "get_lat", "get_bw", "init_time",
    "launch_time", "memory",
)  # fmt: skip
SIZELESS = {"barrier", "init_time", "launch_time", "memory"}
HERE = tuple(n for n in NAMES if n != "pairs")  # what one host can measure
SUMS = {"allreduce", "reduce"}
MOVES = ",".join(n for n in HERE if n not in SIZELESS | SUMS)

LONG = pytest.mark.long
RUNS = (
    (Family.OPENMPI, Abi.OMPI),
    (Family.MPICH, Abi.MPICH),
    (Family.INTEL, Abi.MPI_ABI),
    pytest.param(Family.MPICH, Abi.MPI_ABI, marks=LONG),
    pytest.param(Family.INTEL, Abi.MPICH, marks=LONG),
)


def list_of(world: World) -> list[str]:
    program = world.programs / Abi.MPICH / BENCH
    done = run_command([program, "--list"], env=world.environment(Family.MPICH))
    return done.stdout.decode().split()


def test_the_list_is_what_is_documented(world: World) -> None:
    assert list_of(world) == list(benchmarks())
    assert [name for name in benchmarks() if name in NAMES] == list(NAMES)


@pytest.mark.parametrize(("family", "abi"), RUNS, ids=str)
def test_every_benchmark_on_every_mpi(world: World, family: Family, abi: Abi) -> None:
    started = f"{time.time():.6f}"
    wanted = ("--benchmark", ",".join(HERE), "--max", "64K", "--launched", started)
    done = world.bench(family, *wanted, abi=abi)
    assert done.code == 0, done.text()
    parsed = native.parse(done.stdout, source="launch")
    assert not [f for f in parsed.findings if f.level == "error"]
    assert list(dict.fromkeys(m.benchmark.name for m in parsed.measurements)) == list(HERE)
    for m in parsed.measurements:
        assert m.metric in METRICS
        assert m.value > 0
        assert m.valid is (None if m.benchmark.name in SIZELESS else True), m
    sizes = [m.size for m in parsed.measurements if m.benchmark.name == "latency"]
    assert sizes == [2**k for k in range(17)]
    rates = [m for m in parsed.measurements if m.benchmark.name == "mbw_mr"]
    assert {m.metric for m in rates} == {"bandwidth", "message_rate"}
    for bandwidth, rate in zip(rates[::2], rates[1::2], strict=True):
        assert bandwidth.value * 1e6 == pytest.approx(rate.value * bandwidth.size, rel=1e-4)
    launch, init = (
        next(m.value for m in parsed.measurements if m.metric == name)
        for name in ("launch_time", "init_time")
    )
    assert launch > init


@pytest.mark.parametrize(("nodes", "ranks"), [
    pytest.param(2, 2, marks=LONG), (3, 3), pytest.param(4, 4, marks=LONG), (2, 4)
])  # fmt: skip
def test_every_two_hosts_meet_once(world: World, corrupt: Path, nodes: int, ranks: int) -> None:
    """The first rank of each; an odd number of hosts leaves one to rest."""
    env = {"LD_PRELOAD": str(corrupt), "NODES": str(nodes)}
    done = world.bench(Family.MPICH, "--benchmark", "pairs", ranks=ranks, env=env)
    assert done.code == 0, done.text()
    parsed = native.parse(done.stdout, source="launch")
    assert not [f for f in parsed.findings if f.level == "error"]
    links = [(m.metric, m.benchmark.options) for m in parsed.measurements if m.benchmark.options]
    names = [f"node{k}" for k in range(nodes)]
    both = {(("from", a), ("to", b)) for a in names for b in names if a != b}
    assert {pair for metric, pair in links if metric == "bandwidth"} == both
    assert {pair for metric, pair in links if metric == "latency"} == {
        pair for pair in both if pair[0][1] < pair[1][1]
    }
    assert len(links) == len(set(links))
    assert [m.metric for m in parsed.measurements if not m.benchmark.options] == [
        "latency", "bandwidth",
    ]  # fmt: skip


def test_one_host_has_no_pairs(world: World) -> None:
    for _ in range(5):  # hydra may end before it has printed the last words of a rank that fails
        done = world.bench(Family.MPICH, "--benchmark", "pairs")
        assert done.code != 0
        if done.stderr:
            break
    assert "pairs: all ranks are on one host" in done.text()


def test_a_launch_that_began_later_than_now_is_an_error(world: World) -> None:
    """Clocks of hosts that differ give no value."""
    words = ("--benchmark", "launch_time", "--launched", f"{time.time() + 3600:.6f}")
    done = world.bench(Family.MPICH, *words)
    assert done.code != 0
    assert not values(done)
    assert "clocks of hosts differ" in done.text()


@pytest.mark.parametrize(("family", "datatype"), [
    (Family.OPENMPI, "packed"), (Family.MPICH, "indexed"),
    pytest.param(Family.OPENMPI, "indexed", marks=LONG),
    pytest.param(Family.MPICH, "packed", marks=LONG),
])  # fmt: skip
def test_datatypes_arrive_whole(world: World, family: Family, datatype: str) -> None:
    """70 bytes are a block and a rest; 3 ranks leave one over from the pairs."""
    words = ("--benchmark", MOVES, "--datatype", datatype, "--min", "35", "--max", "3K")
    done = world.bench(family, *words, ranks=3)
    assert done.code == 0, done.text()
    assert len(values(done)) > 100
    assert all(v["valid"] is True for v in values(done))
    assert all(v["benchmark"].endswith(f",datatype={datatype}") for v in values(done))


@pytest.mark.parametrize("counts", ["equal", "skewed", "sparse"])
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=LONG), 4])
def test_counts(world: World, counts: str, ranks: int) -> None:
    names = [f"{n}:counts={counts}" for n in ("gatherv", "scatterv", "allgatherv", "alltoallv")]
    names += ["alltoallv:datatype=packed:counts=skewed", "alltoallv:datatype=indexed:counts=sparse"]
    done = world.bench(Family.MPICH, "--benchmark", ",".join(names), "--max", "256", ranks=ranks)
    assert done.code == 0, done.text()
    assert all(v["valid"] for v in values(done))
    assert list(dict.fromkeys(v["benchmark"] for v in values(done))) == [
        *(f"{n.partition(':')[0]},counts={counts}" for n in names[:4]),
        "alltoallv,counts=skewed,datatype=packed",
        "alltoallv,counts=sparse,datatype=indexed",
    ]


@pytest.mark.parametrize(
    ("family", "ranks"), [pytest.param(Family.OPENMPI, 3, marks=LONG), (Family.MPICH, 4)]
)
def test_every_benchmark_as_osu_has_it(world: World, family: Family, ranks: int) -> None:
    """Part of its name, so that such a value is never held against another one; data checked."""
    names = [name for name in HERE if name not in own_benchmarks()]
    words = ("--like", "osu", "--max", "512", "--benchmark")
    done = world.bench(family, *words, ",".join([*names, "memory"]), ranks=ranks)
    assert done.code == 0, done.text()
    parsed = native.parse(done.stdout, source="launch")
    assert not [f for f in parsed.findings if f.level == "error"]
    keys = list(dict.fromkeys(m.benchmark.key for m in parsed.measurements))
    assert keys == [f"native:{name},like=osu" for name in names] + ["native:memory"]
    assert all(m.valid is not False for m in parsed.measurements)
    for m in parsed.measurements:
        if m.metric == "latency":
            assert m.value == pytest.approx(m.mean, rel=1e-4)
    one = world.bench(
        family, "--max", "8", "--benchmark", "bw,bw:window=2:like=osu:datatype=packed"
    )
    assert list(dict.fromkeys(v["benchmark"] for v in values(one))) == [
        "bw", "bw,datatype=packed,like=osu,window=2",
    ]  # fmt: skip


def test_the_clock_and_the_step_of_each_value_are_told(world: World) -> None:
    words = ("--benchmark", "latency,bw,init_time,memory", "--min", "8", "--max", "8")
    done = world.bench(Family.MPICH, *words)
    begin, *rest = records(done)
    found = [record for record in rest if record["mpigraft"] == "value"]
    assert len(found) == 4
    assert 0 < begin["clock_ns"] < 1e6
    assert 0 < begin["clock_resolution_ns"] < 1e8
    latency, bandwidth = found[0], found[1]
    step = begin["clock_resolution_ns"] / latency["batch"] / 2e3
    assert latency["resolution"] == pytest.approx(step, rel=0.02)
    assert 0 < bandwidth["resolution"] < bandwidth["value"]
    assert all(v["resolution"] > 0 for v in found)


# ------------------------------------------------------------------ wrong data is seen

SPOILED = (
    ("latency", "Recv"), ("bw", "Waitall"), ("bibw", "Waitall"), ("multi_lat", "Recv"),
    ("mbw_mr", "Waitall"), ("bcast", "Bcast"), ("allreduce", "Allreduce"), ("reduce", "Reduce"),
    ("gather", "Gather"), ("gatherv", "Gatherv"), ("scatter", "Scatter"),
    ("scatterv", "Scatterv"), ("allgather", "Allgather"), ("allgatherv", "Allgatherv"),
    ("alltoall", "Alltoall"), ("alltoallv", "Alltoallv"), ("put_lat", "Put"), ("put_bw", "Put"),
    ("get_lat", "Get"), ("get_bw", "Get"),
)  # fmt: skip


def test_every_benchmark_that_moves_data_is_spoiled_below() -> None:
    assert {name for name, _ in SPOILED} == set(HERE) - SIZELESS


@pytest.mark.parametrize(("name", "call"), SPOILED)
def test_a_wrong_byte_is_seen(world: World, corrupt: Path, name: str, call: str) -> None:
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": call}
    words = ("--benchmark", f"barrier,{name}", "--min", "8", "--max", "64")
    done = world.bench(Family.MPICH, *words, env=env)
    assert done.code == 1, done.text()
    seen = [v for v in values(done) if v["benchmark"] == name]
    assert seen
    assert all(v["valid"] is False for v in seen)
    assert records(done)[-1]["mpigraft"] == "end"
    assert f"wrong data: {name}, 8 B" in done.text()


def test_a_spoiled_launch_is_fine_without_the_shim(world: World) -> None:
    done = world.bench(Family.MPICH, "--benchmark", "latency,put_lat", "--min", "8", "--max", "64")
    assert done.code == 0, done.text()


def test_bytes_between_blocks_and_after_the_end_are_looked_at(world: World, corrupt: Path) -> None:
    """Block 0 is bytes 0 to 63 of 128; a message of 64 bytes has nothing at 64 to 127."""
    base = {"LD_PRELOAD": str(corrupt), "CORRUPT": "Recv"}
    one = ("--min", "64", "--max", "64", "--benchmark")
    gap = world.bench(Family.MPICH, *one, "latency:datatype=indexed", env={**base, "AT": "100"})
    after = world.bench(Family.MPICH, *one, "latency", env={**base, "AT": "70"})
    assert [v["valid"] for v in (*values(gap), *values(after))] == [False, False]
    assert "bytes after the buffer" in after.text()
    assert (gap.code, after.code) == (1, 1)


def test_without_validation_nothing_is_claimed(world: World, corrupt: Path) -> None:
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": "Recv"}
    done = world.bench(Family.MPICH, "--no-validate", "--min", "8", "--max", "8", env=env)
    assert done.code == 0, done.text()
    assert [v["valid"] for v in values(done)] == [None]


def test_a_failed_call_is_named_with_its_line(world: World, corrupt: Path) -> None:
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": "Recv", "FAIL": "1"}
    done = world.bench(Family.MPICH, "--min", "8", "--max", "8", env=env)
    assert done.code not in {0, 1, 2}
    assert "MPI_Recv(" in done.text()
    assert "pt2pt.h:" in done.text()
    assert records(done)[-1]["mpigraft"] != "end"


# ------------------------------------------------------------------ how much is measured


def test_iterations_are_the_batches(world: World) -> None:
    done = world.bench(Family.MPICH, "--min", "8", "--max", "8", "--iterations", "5000")
    (value,) = values(done)
    assert value["iterations"] == value["batch"] * len(value["samples"])
    assert 5000 <= value["iterations"] < 5000 + value["batch"]
    assert len(value["samples"]) <= 4


def test_statistics_are_those_of_the_samples(world: World) -> None:
    words = ("--min", "8", "--max", "8", "--samples", "9", "--iterations", "90000")
    (value,) = values(world.bench(Family.MPICH, *words))
    samples = value["samples"]
    assert 1 < len(samples) <= 9
    assert value["value"] == pytest.approx(statistics.median(samples), rel=1e-4)
    assert value["mean"] == pytest.approx(statistics.fmean(samples), rel=1e-4)
    assert (value["min"], value["max"]) == (min(samples), max(samples))
    assert value["value"] <= value["p90"] <= value["p99"] <= value["max"]


def test_a_short_operation_is_timed_in_batches(world: World) -> None:
    """A tenth of a microsecond is about three readings of the clock, however small the budget."""
    words = ("--benchmark", "put_lat", "--min", "8", "--max", "8", "--budget", "0.01")
    (value,) = values(world.bench(Family.MPICH, *words))
    assert value["batch"] > 1


def test_large_messages_have_a_shorter_window(world: World) -> None:
    words = ("--benchmark", "bw,bw:window=3", "--min", "4M", "--max", "4M", "--no-validate")
    done = world.bench(Family.MPICH, *words)
    assert done.code == 0, done.text()
    assert [v["benchmark"] for v in values(done)] == ["bw", "bw,window=3"]


def test_sizes_that_do_not_fit_are_refused_or_left_out(world: World, tmp_path: Path) -> None:
    shim = compile_c("meminfo.c", tmp_path / "meminfo.so", "-shared", "-fPIC")
    little = tmp_path / "meminfo"
    little.write_text("MemTotal: 8000 kB\nMemAvailable: 4000 kB\n", encoding="ascii")
    env = {"LD_PRELOAD": str(shim), "MEMINFO": str(little)}
    asked = world.bench(Family.MPICH, "--benchmark", "alltoall", "--max", "4M", env=env)
    assert asked.code == 2, asked.text()
    assert "alltoall: messages of 4194304 B need" in asked.text()
    free = world.bench(Family.MPICH, "--benchmark", "alltoall", "--min", "64K", env=env)
    assert free.code == 0, free.text()
    assert max(v["size"] for v in values(free)) < 1 << 20
    assert re.search(r"sizes over \d+ B are left out: messages of \d+ B need", free.text())


# ------------------------------------------------------------------ GPU buffers


@pytest.mark.parametrize("buffers", ["cuda", "rocm"])
def test_gpu_buffers(world: World, gpus: Path, buffers: str) -> None:
    path = f"{gpus}:{world.mpis[Family.MPICH] / 'lib'}"
    words = ("--buffers", buffers, "--max", "4K", "--benchmark")
    names = (
        "latency,bw,bcast,allreduce,alltoallv:counts=skewed,put_lat,get_bw,bcast:datatype=indexed"
    )
    env = {"LD_LIBRARY_PATH": path}
    done = world.bench(Family.MPICH, *words, names, env=env)
    assert done.code == 0, done.text()
    assert len(values(done)) == 8 * 13
    assert all(v["valid"] for v in values(done))
    assert "this MPI cannot use GPU memory" in done.text()
    spoiled = world.bench(Family.MPICH, *words, "latency", env={**env, "GPU_SPOILS": "1"})
    assert spoiled.code == 1
    assert not any(v["valid"] for v in values(spoiled))


def test_ranks_of_a_node_take_turns_on_its_gpus(world: World, gpus: Path) -> None:
    path = f"{gpus}:{world.mpis[Family.MPICH] / 'lib'}"
    words = ("--buffers", "cuda", "--max", "8", "--benchmark", "barrier")
    done = world.bench(Family.MPICH, *words, ranks=3, env={"LD_LIBRARY_PATH": path})
    assert sorted(s for s in done.text().splitlines() if s.startswith("device")) == [
        "device 0", "device 0", "device 1",
    ]  # fmt: skip
    none = world.bench(
        Family.MPICH, *words, env={"LD_LIBRARY_PATH": path, "GPU_COUNT": "0"}, ranks=1
    )
    assert none.code == 2
    assert "no CUDA device here" in none.text()


def test_one_rank_is_enough_for_collectives_only(world: World) -> None:
    done = world.bench(Family.MPICH, "--benchmark", "latency", ranks=1)
    assert done.code == 2
    assert "needs two ranks" in done.text()
    alone = world.bench(Family.MPICH, "--benchmark", "allreduce,memory", "--max", "8", ranks=1)
    assert alone.code == 0, alone.text()


def test_the_ranks_in_the_middle_wait(world: World) -> None:
    """Rank 0 and rank n/2 talk; the rest is there when the next benchmark begins."""
    names = "latency,allreduce,put_bw,multi_lat"
    done = world.bench(Family.OPENMPI, "--benchmark", names, "--max", "8", ranks=5)
    assert done.code == 0, done.text()
    assert len(values(done)) == 16
    assert records(done)[0]["ranks"] == 5
