"""mpigraft-mini and mpigraft-replay under the address and undefined-behaviour sanitizers, and what
they leak themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.bench.matrix.file import Problem
from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import MINI, REPLAY, TRACE
from mpigraft.trace.record.prepared import prepare
from tests.native.native_world import C, World, abi_of, compile_program, values
from tests.native.structure import record_parts
from tests.native.test_sanitized import built, options

pytestmark = [pytest.mark.mpi, pytest.mark.long]

SHORT = ("--budget", "1", "--samples", "3")
RUNS = {  # of a mini-app: ranks and words
    "dirac packed": (3, "dirac --size 4x3x2x5 --unknowns 3"),
    "dirac indexed": (4, "dirac --size 4x3x2x5 --unknowns 2 --halo indexed"),
    "dirac few": (4, "dirac --size 2x1x3x1"),
    "halo packed": (3, "halo --size 8x14x16 --fields 2"),
    "halo indexed": (4, "halo --size 9x8x7 --depth 3 --halo indexed"),
    "ocean": (5, "ocean --size 23x14 --every 3 --io 2"),
    "particles": (3, "particles --size 6x5x7 --every 3"),
    "particles pulses": (6, "particles --size 6x5x5 --every 4 --depth 2"),
    "particles alone": (1, "particles --size 5 --pme 0 --steps 60"),
    "particles pme": (5, "particles --size 6x5x7 --every 3 --pme 2"),
    "particles idle": (4, "particles --size 6x5x7 --pme 3"),
    "transpose": (3, "transpose --size 6x10x9"),
    "transpose few": (4, "transpose --size 2x1x3 --percent 100"),
    "local": (2, "dirac --local 2x2x2x3"),
}
REFUSED = (
    "none", "dirac --size 0x1x1x1", "halo --size 8x14x3 --depth 4", "particles --size 3",
    "particles --pme 9", "transpose --size 4x4x4x4", "dirac --partition /dev/null",
)  # fmt: skip


@pytest.fixture(scope="module", params=[Family.MPICH, Family.OPENMPI])
def family(request: pytest.FixtureRequest) -> Family:
    made: Family = request.param
    return made


@pytest.fixture(scope="module")
def mini(family: Family, world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(world, family, tmp_path_factory.mktemp("sanitized") / "mini", program=MINI)


@pytest.mark.parametrize("name", RUNS)
def test_mini_apps(world: World, family: Family, mini: Path, tmp_path: Path, name: str) -> None:
    ranks, words = RUNS[name]
    done = world.launch(
        family, mini, *SHORT, "--app", *words.split(), ranks=ranks, env=options(tmp_path)
    )
    assert done.code == 0, done.text()[-6000:]
    assert all(value["valid"] for value in values(done))
    assert "ERROR: " not in done.text()


def test_a_divided_matrix(
    world: World, family: Family, mini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    path = tmp_path / "a.mtx"
    rows = range(1, 30)
    entries = [f"{r} {r} 4" for r in rows] + [f"{r} {r * 7 % 29 + 1} 0.5" for r in rows]
    head = "%%MatrixMarket matrix coordinate real general\n29 29"
    path.write_text("\n".join([f"{head} {len(entries)}", *entries]))
    problem = Problem("blocks", 3, matrix=str(path))
    problem.write()
    words = (mini, *SHORT, "--app", "dirac", "--partition", problem.path)
    done = world.launch(family, *words, ranks=3, env=options(tmp_path))
    assert done.code == 0, done.text()[-6000:]
    data = problem.path.read_bytes()
    for damaged in (data[:64], data[:-8], data[:131] + b"\xff" + data[132:], data[:400]):
        problem.path.write_bytes(damaged)
        refused = world.launch(family, *words, ranks=3, env=options(tmp_path))
        assert refused.code == 3, refused.text()[-6000:]
        assert "AddressSanitizer" not in refused.text()


@pytest.mark.parametrize("words", REFUSED)
def test_refusals(world: World, family: Family, mini: Path, tmp_path: Path, words: str) -> None:
    done = world.launch(
        family, mini, *SHORT, "--app", *words.split(), ranks=2, env=options(tmp_path)
    )
    assert done.code in (2, 3), done.text()[-6000:]
    assert "AddressSanitizer" not in done.text()
    assert "runtime error" not in done.text()


def compiled(world: World, family: Family, name: str, folder: Path) -> Path:
    """A program that knows nothing of sanitizers."""
    wrapper = world.mpis[family] / "bin/mpicc"
    words = (wrapper, "-O1", C / f"{name}.c", "-o", folder / name)
    done = run_command(words, env=world.environment(family))
    assert done.ok, done.text()
    return folder / name


@pytest.mark.parametrize("name", ["counts", "varied"])
def test_the_tracing_library(world: World, family: Family, tmp_path: Path, name: str) -> None:
    program = compiled(world, family, name, tmp_path)
    flags = ("-shared", "-fPIC", "-fvisibility=hidden", "-isystem", world.mpis[family] / "include")
    sanitizers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-lpthread")
    library = compile_program(TRACE, tmp_path / TRACE, *flags, *sanitizers)
    names = (f"-print-file-name=lib{one}.so" for one in ("asan", "ubsan"))
    runtimes = [run_command(["gcc", one]).stdout.decode().strip() for one in names]
    env = {**options(tmp_path), "ASAN_OPTIONS": "detect_leaks=0"}  # what it has is for good
    env["LD_PRELOAD"] = ":".join([*runtimes, str(library)])
    for words in ("", "record,budget=16", "sites,waits"):
        folder = tmp_path / f"trace {words}"
        folder.mkdir()
        own = {"MPIGRAFT_TRACE": str(folder), "MPIGRAFT_TRACE_OPTIONS": words}
        done = world.launch(family, program, "5", "60", tmp_path / "own", ranks=3, env=env | own)
        assert done.ok, done.text()[-6000:]
        assert "runtime error" not in done.text()
        assert len(list(folder.glob("*.record"))) == (3 if "record" in words else 0)


def test_replays(world: World, family: Family, tmp_path: Path) -> None:
    program, records = compiled(world, family, "patterns", tmp_path), tmp_path / "records"
    records.mkdir()
    env = {
        "LD_PRELOAD": str(world.programs / abi_of(family) / TRACE),
        "MPIGRAFT_TRACE": str(records),
        "MPIGRAFT_TRACE_OPTIONS": "record,budget=16",
    }
    recorded = world.launch(family, program, "4", env=env)
    assert recorded.ok, recorded.text()
    parts = record_parts(records, 2)
    file = tmp_path / "file"
    file.write_bytes(prepare(parts, abi_of(family)))
    replay = built(world, family, tmp_path / "replay", program=REPLAY)
    for words in (("--check", "--gaps", "none"), ("--check", "--only", "Alltoallv"), ()):
        done = world.launch(family, replay, file, *words, env=options(tmp_path))
        assert done.code == 0, done.text()[-6000:]
        assert "ERROR: " not in done.text()
    data = file.read_bytes()
    for damaged in (data[:200], data[:-9], data[:5000] + b"\x55" + data[5001:], b"no" + data):
        file.write_bytes(damaged)
        refused = world.launch(family, replay, file, env=options(tmp_path))
        assert refused.code == 2, refused.text()[-6000:]
        assert "AddressSanitizer" not in refused.text()
