"""Who used the CPUs of the ranks: from the kernel's figures, and beside a real launch."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpigraft.bench.suites import native
from mpigraft.core.model import Family
from mpigraft.native.programs import BENCH
from tests.native.native_world import World, compile_c, compile_part, records

TICK = os.sysconf("SC_CLK_TCK")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-lm")
Used = tuple[int, int, float, float, float, float, int]


@pytest.fixture(scope="module")
def program(mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output, prefix = tmp_path_factory.mktemp("cpu-use") / "cpu-use", mpis[Family.MPICH]
    libraries = (prefix / "lib/libmpi.so.12", f"-Wl,--allow-shlib-undefined,-rpath,{prefix}/lib")
    more = ("-Wno-unused-function", "-isystem", prefix / "include", *libraries)
    return compile_part(BENCH, "cpu_use.c", output, *SANITIZED, *more)


def stat(*cpus: tuple[float, float, float, float] | None) -> str:
    """/proc/stat: of each CPU seconds in user, nice and system mode, and stolen; None: it is off.
    Idle, waiting and interrupted for 9 s each."""
    lines = ["cpu  1 2 3 4 5 6 7 8 0 0"]
    for number, seconds in enumerate(cpus):
        if seconds is not None:
            user, nice, system, steal = (round(s * TICK) for s in seconds)
            rest = " ".join([str(9 * TICK)] * 4)
            lines.append(f"cpu{number} {user} {nice} {system} {rest} {steal} 0 0")
    return "\n".join([*lines, "intr 99 1 2", "ctxt 7", ""])


def used(program: Path, tmp_path: Path, before: str, after: str, *ranks: str) -> Used:
    """Of a node whose ranks ran for 10 s between two readings."""
    names = [tmp_path / "before", tmp_path / "after"]
    for name, text in zip(names, (before, after), strict=True):
        name.write_text(text)
    done = subprocess.run([program, *names, "10", *ranks], capture_output=True, check=True)
    count, cpus, busy, steal, own, others, switches = done.stdout.split()
    return (int(count), int(cpus), *map(float, (busy, steal, own, others)), int(switches))  # type: ignore[return-value]


IDLE = (0.0, 0.0, 0.0, 0.0)
QUIET = stat(IDLE, IDLE, IDLE, IDLE)


@pytest.mark.parametrize(
    ("after", "ranks", "expected"),
    [
        # Two ranks alone on a core each: polling is no load.
        (stat((9.0, 0.0, 1.0, 0.0), (10.0, 0.0, 0.0, 0.0), IDLE, IDLE),
         ("0:10:3", "1:10:4"), (2, 2, 20.0, 0.0, 20.0, 0.0, 7)),
        # Another process had half of the second core: the worst core counts, not the mean.
        (stat((10.0, 0.0, 0.0, 0.0), (10.0, 0.0, 0.0, 0.0), IDLE, IDLE),
         ("0:10:0", "1:5:0"), (2, 2, 20.0, 0.0, 15.0, 0.5, 0)),
        # The same, and nothing is bound: which core it was is not known.
        (stat((10.0, 0.0, 0.0, 0.0), (10.0, 0.0, 0.0, 0.0), IDLE, IDLE),
         ("0,1:10:0", "0,1:5:0"), (2, 2, 20.0, 0.0, 15.0, 0.25, 0)),
        # Four ranks on two cores take from each other, which is the layout's own affair.
        (stat((10.0, 0.0, 0.0, 0.0), (10.0, 0.0, 0.0, 0.0), IDLE, IDLE),
         ("0,1:5:9", "0,1:5:9", "0,1:5:9", "0,1:5:9"), (4, 2, 20.0, 0.0, 20.0, 0.0, 36)),
        # Others on CPUs that no rank may use; niced ones on those of a rank.
        (stat((5.0, 2.0, 0.0, 0.0), IDLE, (10.0, 0.0, 0.0, 0.0), IDLE),
         ("0,1:5:0",), (1, 2, 7.0, 0.0, 5.0, 0.1, 0)),
        # A hypervisor took a fifth of one core.
        (stat((8.0, 0.0, 0.0, 2.0), IDLE, IDLE, IDLE), ("0:8:0",), (1, 1, 8.0, 2.0, 8.0, 0.2, 0)),
        # Ranks 0 and 2 are joined by rank 3.
        (stat((10.0, 0.0, 0.0, 0.0), (4.0, 0.0, 0.0, 0.0), (10.0, 0.0, 0.0, 0.0), IDLE),
         ("0:4:0", "1:4:0", "2:4:0", "0,2:8:0"), (4, 3, 24.0, 0.0, 20.0, 0.2, 0)),
        # Kernel and clock disagree a little: nobody took less than nothing, or more than all.
        (stat((9.9, 0.0, 0.0, 0.0), IDLE, IDLE, IDLE), ("0:10:0",), (1, 1, 9.9, 0.0, 10.0, 0.0, 0)),
        (stat((10.1, 0.0, 0.0, 0.0), IDLE, IDLE, IDLE), ("0:0:0",), (1, 1, 10.1, 0.0, 0.0, 1.0, 0)),
        # One CPU was turned off meanwhile, and is not known.
        (stat(None, (5.0, 0.0, 0.0, 0.0), IDLE, IDLE),
         ("0,1:5:0",), (1, 1, 5.0, 0.0, 5.0, 0.0, 0)),
        # No kernel that says: nothing is known.
        ("", ("0:10:3",), (1, 0, 0.0, 0.0, 10.0, 0.0, 3)),
    ],
)  # fmt: skip
def test_others_have_what_the_ranks_have_not(
    program: Path, tmp_path: Path, after: str, ranks: tuple[str, ...], expected: Used
) -> None:
    assert used(program, tmp_path, QUIET, after, *ranks) == pytest.approx(expected)


def test_a_counter_that_begins_anew_takes_nothing_from_others(
    program: Path, tmp_path: Path
) -> None:
    before = stat((50.0, 0.0, 0.0, 7.0), IDLE, IDLE, IDLE)
    after = stat((1.0, 0.0, 0.0, 0.0), (8.0, 0.0, 0.0, 0.0), IDLE, IDLE)
    got = used(program, tmp_path, before, after, "0,1:6:0")
    assert got == pytest.approx((1, 2, 8.0, 0.0, 6.0, 0.1, 0))


@contextmanager
def busy_loops() -> Iterator[None]:
    """One on each CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    loops = [
        subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
        for cpu in cpus
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.mpi
@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH])
def test_a_launch_says_who_used_its_cpus(world: World, family: Family) -> None:
    """Busy loops beside it get their part; the ranks that poll do not count as others."""
    with busy_loops():
        done = world.bench(family, "--benchmark", "latency,allreduce", "--budget", "20")
    assert done.code == 0, done.text()
    parsed = native.parse(done.stdout, source="launch")
    *each, node = parsed.nodes
    assert [use.benchmark for use in each] == ["native:latency", "native:allreduce"]
    assert all(use.others > 0.1 for use in each)
    assert sum(use.wall_s for use in each) < node.wall_s
    assert sum(use.own_s for use in each) == pytest.approx(node.own_s, rel=0.1)
    assert not [f for f in parsed.findings if f.level == "error"]
    assert (node.ranks, node.cpus) == (2, len(os.sched_getaffinity(0)))
    assert 0 < node.own_s < node.busy_s
    assert node.others == pytest.approx(
        (node.busy_s - node.own_s + node.steal_s) / (node.wall_s * node.cpus), abs=0.001
    )
    assert node.others > 0.1
    assert node.switches > 0


@pytest.mark.mpi
def test_each_node_says_it_and_a_probe_does_not(world: World, corrupt: Path) -> None:
    env = {"LD_PRELOAD": str(corrupt), "NODES": "2"}
    done = world.bench(Family.MPICH, "--benchmark", "latency", ranks=4, env=env)
    *own, one, other = native.parse(done.stdout, source="launch").nodes
    assert (one.ranks, other.ranks, one.benchmark, other.benchmark) == (2, 2, "", "")
    assert {use.benchmark for use in own} == {"native:latency"}
    assert [r["mpigraft"] for r in records(done)[-2:]] == ["node", "end"]
    probe = world.probe(Family.MPICH)
    assert "node" not in {r["mpigraft"] for r in records(probe)}
    osu = world.bench(Family.MPICH, "--benchmark", "latency", "--format", "osu")
    assert b"node" not in osu.stdout


@pytest.mark.mpi
def test_a_kernel_that_does_not_say_costs_no_value(world: World, tmp_path: Path) -> None:
    shim = compile_c("meminfo.c", tmp_path / "shim.so", "-shared", "-fPIC", "-DSTAT")
    env = {"LD_PRELOAD": str(shim), "MEMINFO": str(tmp_path / "none")}
    done = world.bench(Family.MPICH, "--benchmark", "latency", env=env)
    assert done.code == 0, done.text()
    parsed = native.parse(done.stdout, source="launch")
    assert parsed.measurements
    assert parsed.nodes == ()
