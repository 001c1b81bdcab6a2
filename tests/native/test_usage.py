"""mpigraft-bench's command line: what is wrong is said before MPI starts, with exit 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import osu
from mpigraft.core.model import Abi, Family
from mpigraft.core.process.command import Completed, run_command
from mpigraft.knowledge.fit.ranks import rank_rows
from mpigraft.native.programs import BENCH, benchmarks, own_benchmarks
from tests.native.native_world import World, records

pytestmark = pytest.mark.mpi

RECORDED = Path(__file__).parents[1] / "data/osu-7.4"


def ask(world: World, *words: str, **env: str) -> Completed:
    """Without a launcher: usage is answered by every rank alone."""
    program = world.programs / Abi.MPICH / BENCH
    return run_command([program, *words], env={**world.environment(Family.MPICH), **env})


BAD = {
    ("--benchmark", "foo"): "--benchmark foo: no such benchmark",
    ("--benchmark", ""): "no such benchmark",
    ("--benchmark", "latency,"): "no such benchmark",
    ("--benchmark", "latency:counts=sparse"): "counts is not an option of it",
    ("--benchmark", "latency:size=3"): "size is not an option of it",
    ("--benchmark", "bw:window"): "window is not an option of it",
    ("--benchmark", "bw:window=0"): "--window 0: want a whole number from 1 to 4096",
    ("--benchmark", "barrier:datatype=packed"): "datatype is not an option of it",
    ("--benchmark", "allreduce:datatype=indexed"): "MPI sums no derived datatypes",
    ("--benchmark", "alltoallv:datatype=indexed:counts=skewed"): "skewed counts need",
    ("--benchmark", ",".join(["bw"] * 257)): "more than 256",
    ("--benchmark", "memory", "--format", "osu"): "OSU has no such benchmark",
    ("--min", "8", "--max", "4"): "--min 8 is more than --max 4",
    ("--min", "0"): "--min 0: want",
    ("--min", "-1"): "--min -1: want",
    ("--max", "4097G"): "--max 4097G: want a whole number from 1 to 4398046511104",
    ("--datatype", "indexed", "--max", "128G"): "latency: datatype indexed has at most 2147483647",
    ("--max", "9223372036854775807"): "--max 9223372036854775807: want",
    ("--max", "99999999999999999999999"): "want",
    ("--max", "8589934592G"): "want",
    ("--max", "1e3"): "--max 1e3: want",
    ("--max", "1KB"): "--max 1KB: want",
    ("--max", ""): "--max : want",
    ("--budget", "nan"): "--budget nan: want",
    ("--budget", "0"): "--budget 0: want",
    ("--budget", "inf"): "--budget inf: want",
    ("--samples", "10001"): "--samples 10001: want",
    ("--buffers", "vulkan"): "--buffers vulkan: want host, cuda or rocm",
    ("--buffers", "cuda", "--datatype", "packed"): "packing by hand is done by the CPU",
    ("--format", "xml"): "--format xml: want json or osu",
    ("--like", "imb"): "--like imb: want osu",
    ("--benchmark", "memory:like=osu"): "like is not an option of it",
    ("--benchmark", "pairs:like=osu"): "like is not an option of it",
    ("--benchmark", "bcast:in_place=yes"): "in_place is not an option of it",
    ("--benchmark", "reduce_scatter:in_place=yes"): "in_place is not an option of it",
    ("--benchmark", "latency:sync=fence"): "sync is not an option of it",
    ("--benchmark", "put_lat:sync=later"): "--sync later: want flush, fence, pscw or lock",
    ("--benchmark", "fop_lat:datatype=packed"): "datatype is not an option of it",
    ("--benchmark", "acc_lat:datatype=packed"): "MPI sums no derived datatypes",
    ("--benchmark", "allgather:in_place=yes:datatype=packed"): "so nothing is in place",
    ("--benchmark", "latency,latency_mt"): "latency_mt: it starts MPI with MPI_THREAD_MULTIPLE",
    ("--benchmark", "latency_mt:threads=0"): "--threads 0: want a whole number from 1 to 256",
    ("--benchmark", "latency_mt", "--buffers", "cuda"): "use host buffers",
    ("--window",): "--window needs a value",
    ("--list=yes",): "--list takes no value",
    ("--frobnicate",): "--frobnicate: no such option",
    ("latency",): "latency: no such option",
    ("--benchmark", "launch_time"): "launch_time: --launched says since when",
    ("--launched", "yesterday"): "--launched yesterday: want a number",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_wrong_usage_says_what_is_wrong(world: World, words: tuple[str, ...]) -> None:
    done = ask(world, *words)
    assert done.code == 2, done.text()
    assert done.stdout == b""
    assert BAD[words] in done.stderr.decode()
    assert done.stderr.decode().startswith("mpigraft-bench: ")
    assert done.stderr.count(b"\n") == 1


def test_only_the_first_rank_complains(world: World) -> None:
    """Whichever launcher tells it its number."""
    names = {name for row in rank_rows() for name in row.world}
    for name in names:
        assert ask(world, "--min", "x", **{name: "0"}).stderr
        done = ask(world, "--min", "x", **{name: "1"})
        assert (done.code, done.stderr) == (2, b"")
    done = ask(world, "--min", "x", FLUX_TASK_RANK="1", SLURM_PROCID="0")  # of the batch step
    assert (done.code, done.stderr) == (2, b"")


def test_no_gpu_runtime_is_said(world: World) -> None:
    for buffers, library in (("cuda", "libcuda.so.1"), ("rocm", "libamdhip64.so")):
        done = ask(world, "--buffers", buffers)
        if done.code == 2:
            assert f"--buffers {buffers}: no " in done.stderr.decode()
        else:
            pytest.skip(f"this machine has {library}")


def test_help_has_every_option(world: World) -> None:
    done = ask(world, "--help")
    assert done.code == 0
    for option in ("--benchmark", "--max", "--budget", "--counts", "--no-validate"):
        assert option in done.stdout.decode()


@given(st.text(st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=24))
def test_any_text_is_a_size_or_refused(world: World, text: str) -> None:
    """Never a crash, and never another number than the one that was written."""
    done = ask(world, "--list", f"--max={text}")
    assert done.code in {0, 2}, (text, done)
    number = re.fullmatch(r"\s*[+-]?(\d+)([KMG]?)", text, re.ASCII)
    if done.code == 0:
        assert number, text
        value = int(number[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[number[2]]
        assert 1 <= value <= 1 << 42


def test_what_can_be_timed_like_osu_is_listed(world: World) -> None:
    told = ask(world, "--list", "--like", "osu").stdout.decode().split()
    assert told == [f"{name},like=osu" for name in benchmarks() if name not in own_benchmarks()]


# ------------------------------------------------------------------ OSU's layout

LIKE = {  # benchmark: the recorded output of its model, and the number of lines of its head
    "latency": ("mpich-lat_c_z.out", 4),
    "bw": ("mpich-bw_c.out", 4),
    "bibw": ("mpich-bibw.out", 4),
    "multi_lat": ("mpich-multi_lat.out", 4),
    "mbw_mr": ("mpich-mbw_mr.out", 4),
    "allreduce": ("mpich-allreduce.out", 4),
    "alltoallv": ("mpich-alltoallv_f.out", 4),
    "barrier": ("mpich-barrier_f.out", 3),
    "put_lat": ("mpich-put_lat.out", 5),
    "acc_lat": ("openmpi-acc.out", 5),
    "get_bw": ("openmpi-get_bw.out", 5),
}
OURS = {  # where the recorded run was another: other columns, other ways to synchronise
    "MPI_FLOAT": "MPI_CHAR",
    "# Window creation: MPI_Win_allocate": "# Window creation: MPI_Win_create",
    "# Synchronization: MPI_Win_flush": "# Synchronization: MPI_Win_lock/unlock",
}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("validate", [True, False])
def test_osu_layout(world: World, name: str, validate: bool) -> None:
    words = ("--format", "osu", "--benchmark", name, "--max", "1K")
    flags = words if validate else (*words, "--no-validate")
    done = world.bench(Family.MPICH, *flags)
    assert done.code == 0, done.text()
    file, head = LIKE[name]
    recorded = (RECORDED / file).read_text(encoding="utf-8").split("\n")
    printed = done.stdout.decode().split("\n")
    for line, model in zip(printed[:head], recorded[:head], strict=True):
        swapped = line
        if model != line:
            for ours, theirs in OURS.items():
                swapped = swapped.replace(ours, theirs)
        columns = swapped.removesuffix("        Validation")
        assert model.startswith(columns), (line, model)
    for line, model in zip(printed[head:], recorded[head:], strict=False):
        both = min(len(shape(line)), len(shape(model)))
        assert shape(line)[:both] == shape(model)[:both]
    assert len(printed) > head
    assert not records(done)


@pytest.mark.parametrize("validate", [True, False])
def test_osu_init_line(world: World, validate: bool) -> None:
    """A sentence, not a table: its numbers are as wide as the start was slow."""
    flags = () if validate else ("--no-validate",)
    done = world.bench(Family.MPICH, "--format", "osu", "--benchmark", "init_time", *flags)
    assert done.code == 0, done.text()
    recorded = (RECORDED / "mpich-init.out").read_text(encoding="utf-8").split("\n")
    printed = done.stdout.decode().split("\n")
    assert printed[0] == recorded[0]
    assert [re.sub(r"\d+", "0", line) for line in printed[1:]] == [
        re.sub(r"\d+", "0", line) for line in recorded[1:]
    ]
    assert not records(done)


def shape(line: str) -> list[int]:
    """Where the columns of a row end."""
    return [m.end() for m in re.finditer(r"\S+", line)]


def test_osu_output_is_read_as_osu_output(world: World) -> None:
    words = ("--format", "osu", "--benchmark", "mbw_mr", "--min", "8", "--max", "64")
    done = world.bench(Family.MPICH, *words)
    parsed = osu.parse(done.stdout, source="ours")
    assert {m.size for m in parsed.measurements} == {8, 16, 32, 64}
    assert all(m.valid for m in parsed.measurements)


def test_osu_layout_of_a_call_that_is_started(world: World) -> None:
    """As OSU prints it without -f, and with a title that it has."""
    recorded = (RECORDED / "mpich-iallreduce_f_c_z.out").read_text(encoding="utf-8").splitlines()
    words = ("--format", "osu", "--benchmark", "iallreduce,ibarrier", "--min", "8", "--max", "16")
    done = world.bench(Family.MPICH, *words)
    assert done.code == 0, done.text()
    printed = done.stdout.decode().splitlines()
    assert printed[:4] == recorded[:4]
    assert printed[5].startswith("# Size           Overall(us)       Compute(us)    Pure Comm.(us)")
    assert recorded[5].startswith(printed[5][:46])
    parsed = osu.parse(done.stdout, source="ours")
    figures = {(m.benchmark.key, m.metric) for m in parsed.measurements}
    key = "osu:iallreduce,datatype=MPI_FLOAT"
    assert {(key, "latency"), (key, "overlap"), (f"{key},time=overall", "latency")} <= figures
    assert ("osu:ibarrier", "overlap") in figures


def test_osu_names_how_an_access_ends(world: World) -> None:
    words = ("--format", "osu", "--benchmark", "put_lat:sync=fence,get_lat:sync=pscw", "--max", "8")
    printed = world.bench(Family.MPICH, *words).stdout.decode()
    assert "# Synchronization: MPI_Win_fence\n" in printed
    assert "# Synchronization: MPI_Win_post/start/complete/wait\n" in printed


def test_osu_says_fail(world: World, corrupt: Path) -> None:
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": "Recv"}
    words = ("--format", "osu", "--min", "8", "--max", "8")
    done = world.bench(Family.MPICH, *words, env=env)
    assert done.code == 1
    lines = done.stdout.decode().splitlines()
    assert lines[-2].endswith("Fail")
    assert lines[-1].startswith("DATA VALIDATION ERROR: ")
    assert lines[-1].endswith("exited with status 1 on message size 8.")
