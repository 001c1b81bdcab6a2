"""The mini-apps of mpigraft-mini: right on every MPI and number of ranks, and never right by luck:
what arrives wrong is noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.bench.matrix.file import Problem, matrix_name
from mpigraft.bench.matrix.partition import has_metis
from mpigraft.bench.suites import mini, native
from mpigraft.bench.suites.base import Parsed
from mpigraft.core.model import Family
from mpigraft.core.process.command import Completed
from mpigraft.native.programs import MINI
from tests.native.native_world import World, abi_of, compile_program, values

pytestmark = pytest.mark.mpi

SHORT = ("--budget", "1", "--samples", "3")
SMALL = {  # options with which each is over in a moment
    "dirac": ("--size", "4x3x2x5", "--unknowns", "3"),
    "halo": ("--size", "8x14x16", "--fields", "2"),
    "ocean": ("--size", "23x14", "--every", "3"),
    "particles": ("--size", "6x5x7", "--every", "3"),
    "transpose": ("--size", "6x10x9"),
}
FORMS = ("dirac", "halo")  # which have --halo
LONG = pytest.mark.long
FAMILIES = (Family.OPENMPI, Family.MPICH, Family.INTEL)
DAILY = {("dirac", Family.OPENMPI, 2), ("halo", Family.MPICH, 3), ("ocean", Family.INTEL, 3),
         ("particles", Family.OPENMPI, 7), ("particles", Family.MPICH, 1),
         ("transpose", Family.MPICH, 4)}  # fmt: skip
RUNS = [
    pytest.param(app, family, ranks, marks=() if (app, family, ranks) in DAILY else LONG)
    for app in SMALL
    for family in FAMILIES
    for ranks in (1, 2, 3, 4, 7, 8)
]


def run(
    world: World, family: Family, app: str, *more: str, ranks: int = 2, program: Path | None = None
) -> Completed:
    path = program or world.programs / abi_of(family) / MINI
    return world.launch(family, path, "--app", app, *SHORT, *SMALL[app], *more, ranks=ranks)


def read(done: Completed) -> Parsed:
    return native.parse(done.stdout, source="launch", suite="mini", metrics=mini.METRICS)


def test_each_mini_app_has_a_name_here_and_in_the_program(world: World) -> None:
    done = world.launch(Family.MPICH, world.programs / "mpich" / MINI, "--list", ranks=1)
    assert tuple(done.stdout.decode().split()) == tuple(mini.PARTS) == tuple(SMALL)
    assert mini.PARTS.keys() == mini.TAKES.keys()


@pytest.mark.parametrize(("app", "family", "ranks"), RUNS)
def test_the_result_is_that_of_one_rank_alone(
    world: World, app: str, family: Family, ranks: int
) -> None:
    done = run(world, family, app, ranks=ranks)
    assert done.code == 0, done.text()
    parsed = read(done)
    assert not [f for f in parsed.findings if f.level == "error"]
    assert parsed.header["ranks"] == str(ranks)
    named = [m.metric.split()[0] for m in parsed.measurements]
    assert named[0] == "iteration"
    assert set(named[1:]) <= set(mini.PARTS[app])
    assert all(m.valid and m.value > 0 for m in parsed.measurements)


@pytest.mark.parametrize("app", FORMS)
@pytest.mark.parametrize("halo", [pytest.param("packed", marks=LONG), "indexed"])
def test_both_forms_of_a_message(world: World, app: str, halo: str) -> None:
    done = run(world, Family.OPENMPI, app, "--halo", halo, ranks=3)
    assert done.code == 0, done.text()
    assert all(f"halo={halo}" in v["benchmark"] for v in values(done))
    parts = [v["value"] for v in values(done) if v["metric"] != "iteration"]
    assert sum(parts) <= 1.3 * values(done)[0]["value"]  # means against the slowest rank


@pytest.fixture(scope="module")
def spoiled(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build in which one value of every message that arrives is wrong by a thousandth."""
    prefix = world.mpis[Family.MPICH]
    libraries = (prefix / "lib/libmpi.so.12", "-Wl,--allow-shlib-undefined")
    output = tmp_path_factory.mktemp("spoiled") / "mini"
    headers = ("-isystem", prefix / "include")
    return compile_program(MINI, output, "-DSPOILED=1", *headers, *libraries)


@pytest.mark.parametrize("app", SMALL)
@pytest.mark.parametrize("serial", ["0", pytest.param("200000", marks=LONG)])
def test_a_wrong_halo_is_noticed(world: World, spoiled: Path, app: str, serial: str) -> None:
    few = ("--steps", "30")  # dirac would never be done
    done = run(world, Family.MPICH, app, "--serial", serial, *few, ranks=2, program=spoiled)
    assert done.code == 1, done.text()
    assert f"wrong result: {app}" in done.text()
    assert not values(done)
    ignored = run(world, Family.MPICH, app, "--no-validate", *few, ranks=2, program=spoiled)
    assert ignored.code == 0, ignored.text()
    assert {v["valid"] for v in values(ignored)} == {None}


@pytest.mark.parametrize("app", SMALL)
@pytest.mark.parametrize("kind", ["cuda", pytest.param("rocm", marks=LONG)])
def test_messages_in_the_memory_of_a_gpu(world: World, gpus: Path, app: str, kind: str) -> None:
    """The drivers are stand-ins, whose memory is the host's."""
    path = f"{gpus}:{world.mpis[Family.MPICH] / 'lib'}"
    program = world.programs / "mpich" / MINI
    for halo in ("packed", "indexed") if app in FORMS else ("",):
        form = ("--halo", halo) if halo else ()
        words = ("--app", app, *SHORT, *SMALL[app], *form, "--buffers", kind)
        done = world.launch(Family.MPICH, program, *words, ranks=3, env={"LD_LIBRARY_PATH": path})
        assert done.code == 0, done.text()
        assert all(v["valid"] for v in values(done))


@pytest.mark.parametrize(("words", "problem"), [
    (("--app", "none"), "no such mini-app"),
    (("--app", "dirac", "--size", "4x4"), "want 4 numbers"),
    (("--app", "dirac", "--size", "0x1x1x1"), "want 4 numbers"),
    (("--app", "dirac", "--size", "4", "--local", "4"), "exclude each other"),
    (("--app", "dirac", "--halo", "round"), "want packed or indexed"),
    (("--app", "transpose", "--size", "4x4x4x4"), "want 3 numbers"),
    (("--app",), "needs a value"),
    ((), "no such mini-app"),
])  # fmt: skip
def test_wrong_words_are_refused(world: World, words: tuple[str, ...], problem: str) -> None:
    done = world.launch(Family.MPICH, world.programs / "mpich" / MINI, *words, ranks=1)
    assert done.code == 2, done.text()
    assert problem in done.text()


@pytest.mark.parametrize(("kind", "library"), [("cuda", "libcuda.so"), ("rocm", "libamdhip64.so")])
def test_no_gpu_runtime_is_refused(world: World, kind: str, library: str) -> None:
    words = ("--app", "halo", *SHORT, "--buffers", kind)
    done = world.launch(Family.MPICH, world.programs / "mpich" / MINI, *words, ranks=1)
    if done.code != 2:
        pytest.skip(f"this machine has {library}")
    assert f"--buffers {kind}: no " in done.text()


def test_a_problem_that_does_not_fit_is_refused_before_memory_is_touched(world: World) -> None:
    done = world.launch(
        Family.MPICH, world.programs / "mpich" / MINI, "--app", "dirac", "--size", "100",
        "--unknowns", "20", ranks=1,
    )  # fmt: skip
    assert done.code == 3, done.text()
    assert "this problem needs" in done.text() or "are more than" in done.text()


def test_a_halo_that_is_deeper_than_a_part_is_refused(world: World) -> None:
    words = ("--app", "halo", "--size", "8x14x3", "--depth", "4")
    done = world.launch(Family.MPICH, world.programs / "mpich" / MINI, *words, ranks=2)
    assert done.code == 3, done.text()
    assert "fewer than 4 layers" in done.text()


PARTICLES = {  # what is refused, and the words for it
    "7 0 --size 6x5x5": "6 cells along an edge are fewer than the 7 ranks there",
    "1 0 --local 3": "3 cells along an edge are fewer than twice the reach of pairs, 2.4",
    "2 0 --every 1000": "twice the reach of pairs, 42",
    "2 2": "2 ranks of PME, of 2, leave none that has particles",
    "1 0 --size 900": "particles are more than",
}


@pytest.mark.parametrize("case", PARTICLES)
def test_particles_that_cannot_be_divided_are_refused(world: World, case: str) -> None:
    ranks, pme, *words = case.split()
    program = world.programs / "mpich" / MINI
    done = world.launch(
        Family.MPICH, program, "--app", "particles", *SHORT, "--pme", pme, *words, ranks=int(ranks)
    )
    assert done.code == 3, done.text()
    assert PARTICLES[case] in done.text()


@pytest.mark.parametrize(("ranks", "words"), [
    (5, ("--pme", "2")),  # 3 ranks that 2 serve
    pytest.param(4, ("--pme", "3"), marks=LONG),  # two that serve none
    pytest.param(8, ("--pme", "1", "--density", "5", "--depth", "1"), marks=LONG),
    pytest.param(7, ("--size", "7x5x5", "--seed", "8"), marks=LONG),  # three pulses
    pytest.param(2, ("--steps", "60"), marks=LONG),  # more than are compared
])  # fmt: skip
def test_particles_divided_in_other_ways(world: World, ranks: int, words: tuple[str, ...]) -> None:
    done = run(world, Family.OPENMPI, "particles", *words, ranks=ranks)
    assert done.code == 0, done.text()
    assert ("pme" in {v["metric"] for v in values(done)}) == ("--pme" in words)


@pytest.mark.parametrize("serial", ["0", pytest.param("200000", marks=LONG)])
def test_wrong_forces_of_ranks_apart_are_noticed(world: World, spoiled: Path, serial: str) -> None:
    """No rank has a halo here: of three, two serve."""
    words = ("--pme", "2", "--serial", serial)
    done = run(world, Family.MPICH, "particles", *words, ranks=3, program=spoiled)
    assert done.code == 1, done.text()
    assert "wrong result: particles" in done.text()


@pytest.mark.parametrize("io", ["0", "2"])
def test_ranks_of_output_apart(world: World, io: str) -> None:
    done = run(world, Family.OPENMPI, "ocean", "--io", io, ranks=3)
    assert done.code == 0, done.text()
    assert ("output" in {v["metric"] for v in values(done)}) == (io == "2")
    assert all(f",io={io}," in v["benchmark"] for v in values(done))


def test_output_alone_is_refused(world: World) -> None:
    done = run(world, Family.OPENMPI, "ocean", "--io", "3", ranks=3)
    assert done.code == 3, done.text()
    assert "leave none that computes" in done.text()


def test_more_ranks_than_columns_of_a_transform(world: World) -> None:
    done = run(world, Family.OPENMPI, "transpose", "--size", "2x1x3", "--percent", "100", ranks=4)
    assert done.code == 0, done.text()


@pytest.mark.parametrize("size", ["1x1x1x1", "2x1x3x1"])
def test_fewer_sites_than_ranks(world: World, size: str) -> None:
    done = run(world, Family.OPENMPI, "dirac", "--size", size, ranks=4)
    assert done.code == 0, done.text()


def test_an_extent_for_each_rank_grows_the_whole(world: World) -> None:
    words = ("--app", "dirac", *SHORT, "--local", "2x2x2x3", "--unknowns", "2")
    done = world.launch(Family.MPICH, world.programs / "mpich" / MINI, *words, ranks=4)
    assert done.code == 0, done.text()
    names = {v["benchmark"] for v in values(done)}
    assert names == {"dirac,halo=packed,local=2x2x2x3,partition=blocks,unknowns=2"}


# ------------------------------------------------------------------ divided by a file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "a home"))
    return tmp_path


def dirac(world: World, problem: Problem, *more: str, ranks: int) -> Completed:
    words = ("--app", "dirac", *SHORT, "--partition", str(problem.path), *more)
    program = world.programs / "mpich" / MINI
    return world.launch(Family.MPICH, program, *words, ranks=ranks)


@pytest.mark.skipif(not has_metis(), reason="pymetis has no wheel for this machine")
@pytest.mark.parametrize(("ranks", "words"), [
    (1, ()), (3, ("--size", "4x3x2x5")), (4, ("--local", "2x2x2x3")), (7, ("--local", "2")),
])  # fmt: skip
def test_a_lattice_that_metis_divides(
    world: World, home: Path, ranks: int, words: tuple[str, ...]
) -> None:
    assert home
    size = {
        name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }
    problem = Problem("metis", ranks, **size)
    problem.write()
    done = dirac(world, problem, *words, "--halo", "indexed", ranks=ranks)
    assert done.code == 0, done.text()
    assert all("partition=metis" in v["benchmark"] for v in values(done))


@pytest.mark.parametrize("method", ["blocks", "metis"])
def test_a_matrix_of_a_file(world: World, home: Path, method: str) -> None:
    """Its pattern is not symmetric: ranks give to those from whom they take nothing."""
    if method == "metis" and not has_metis():
        pytest.skip("pymetis has no wheel for this machine")
    rows = 30
    entries = [(r, r, 4.0) for r in range(rows)]
    entries += [(r, (7 * r + 3) % rows, 0.5) for r in range(rows) if (6 * r + 3) % rows]
    entries += [(r, 0, 1.0) for r in range(10, rows)]
    lines = "".join(f"{r + 1} {c + 1} {v}\n" for r, c, v in entries)
    path = home / "my matrix.mtx"
    head = "%%MatrixMarket matrix coordinate real general"
    path.write_text(f"{head}\n{rows} {rows} {len(entries)}\n{lines}")
    problem = Problem(method, 4, matrix=str(path))
    problem.write()
    named = ("--matrix", matrix_name(str(path)))
    for halo in ("packed", "indexed"):
        done = dirac(world, problem, "--halo", halo, *named, ranks=4)
        assert done.code == 0, done.text()
        assert (
            f"matrix=my-matrix-{named[1][-8:]},partition={method}" in values(done)[0]["benchmark"]
        )


@pytest.mark.parametrize(("spoil", "problem"), [
    (lambda data: data[:64], "too short"),
    (lambda data: data[:-8], "it is damaged"),
    (lambda data: b"something" + data[9:], "no partition"),
    (lambda data: data[:16] + b"\3" + data[17:], "it is for 3 ranks"),
    (lambda data: data[:40] + b"\7" + data[41:], "another lattice"),
    (lambda data: data[:128] + b"\x7f" + data[129:], "rank 127, which is not there"),
    (lambda data: data[:131] + b"\xff" + data[132:], "which is not there"),
])  # fmt: skip
def test_a_damaged_file_is_refused(
    world: World, home: Path, spoil: Callable[[bytes], bytes], problem: str
) -> None:
    assert home
    made = Problem("blocks", 2, size="2x2x2x2")
    made.write()
    made.path.write_bytes(spoil(made.path.read_bytes()))
    done = dirac(world, made, "--size", "2x2x2x2", ranks=2)
    assert done.code == 3, done.text()
    assert problem in done.text()
