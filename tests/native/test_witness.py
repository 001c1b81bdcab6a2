"""libmpigraft-witness.so: one record per rank, whatever way the program takes into MPI."""

from __future__ import annotations

import mmap
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.core.model import Abi, Family, RankRecord
from mpigraft.core.process.command import Completed, run_command
from mpigraft.evidence.world.records import cpus, read_entered, read_witness
from mpigraft.native.programs import SOURCES, SPAWN, WITNESS, programs
from tests.native.native_world import World, compile_c, compile_part

pytestmark = pytest.mark.mpi

OF_C = {"MPI_Init", "MPI_Init_thread", "MPI_Session_init"}
SPAWNING = {f"{p}MPI_Comm_spawn{m}" for p in ("", "P") for m in ("", "_multiple")}
OF_FORTRAN = {
    "mpi_init", "mpi_init_", "mpi_init__", "MPI_INIT", "mpi_init_f08_",
    "mpi_init_thread", "mpi_init_thread_", "mpi_init_thread__", "MPI_INIT_THREAD",
    "mpi_init_thread_f08_",
}  # fmt: skip

Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(world: World, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile a program for a family and ABI."""

    def made(family: Family, source: str, *words: str | Path, abi: Abi | None = None) -> Path:
        prefix = world.mpis[family]
        output = tmp_path_factory.mktemp("enter") / source.removesuffix(".c")
        library = {Abi.MPI_ABI: "libmpi_abi.so.1", Abi.OMPI: "libmpi.so.40"}.get(
            abi or (Abi.OMPI if family is Family.OPENMPI else Abi.MPICH), "libmpi.so.12"
        )
        flags = ["-DMPI_ABI"] if abi is Abi.MPI_ABI else []
        return compile_c(
            source, output, *flags, *words, "-isystem", prefix / "include",
            prefix / "lib" / library, "-Wl,--allow-shlib-undefined",
        )  # fmt: skip

    return made


def start(world: World, family: Family, folder: Path, *words: str | Path) -> Completed:
    env = {"LD_PRELOAD": str(world.programs / WITNESS), "MPIGRAFT_WITNESS": str(folder)}
    return world.launch(family, *words, env=env)


def read(folder: Path) -> tuple[RankRecord, ...]:
    """All that was written: the files of one node, and empty ones beside them."""
    files = sorted(folder.iterdir())
    assert len([f for f in files if f.suffix == ".ranks"]) == 1, files
    others = [f for f in files if f.suffix not in (".ranks", ".entered")]
    assert all((f.suffix, f.stat().st_size) == (".map", 0) for f in others)
    assert read_entered(folder) == ()  # all that entered came back
    return read_witness(folder)


def check(records: tuple[RankRecord, ...], soname: str) -> None:
    """Two ranks of one world of two, on this host, with one libmpi mapped, and that the right."""
    assert [r.rank for r in records] == [0, 1]
    for record in records:
        assert record.size == 2
        assert record.host == socket.gethostname()
        assert set(record.cores) <= os.sched_getaffinity(0)
        assert record.cores
        assert record.library_version
        libraries = [r for r in record.libraries if Path(r.path).name.startswith("libmpi")]
        names = {Path(r.path).name for r in libraries}
        (mapped,) = {n for n in names if n.startswith(("libmpi.", "libmpi_abi."))}
        assert mapped.startswith(soname)  # a link's file has more numbers
        for library in record.libraries:
            seen = Path(library.path).stat()
            assert (seen.st_dev, seen.st_ino) == (library.device, library.inode), library.path


WORLDS = (
    (Family.OPENMPI, Abi.OMPI, "libmpi.so.40"),
    (Family.MPICH, Abi.MPICH, "libmpi.so.12"),
    (Family.MPICH, Abi.MPI_ABI, "libmpi_abi.so.1"),
    (Family.INTEL, Abi.MPICH, "libmpi.so.12"),
    (Family.INTEL, Abi.MPI_ABI, "libmpi_abi.so.1"),
)


@pytest.mark.parametrize("way", ["init", "thread", "session"])
@pytest.mark.parametrize(("family", "abi", "soname"), WORLDS, ids=str)
def test_ways_of_c(
    world: World, build: Build, tmp_path: Path,
    family: Family, abi: Abi, soname: str, way: str,
) -> None:  # fmt: skip
    # Intel's libmpi.so.12 has no sessions yet; its standard library has.
    if (way, family, abi) == ("session", Family.INTEL, Abi.MPICH):
        pytest.skip("this library has no sessions")
    headers = Family.MPICH if family is Family.INTEL else family
    program = build(headers, "enter.c", abi=abi)
    done = start(world, family, tmp_path, program, way)
    assert done.code == 0, done.text()
    assert sorted(s for s in done.text().splitlines() if " of " in s) == ["0 of 2", "1 of 2"]
    check(read(tmp_path), soname)


@pytest.mark.parametrize("way", sorted(OF_FORTRAN))
def test_ways_of_fortran(world: World, tmp_path: Path, way: str) -> None:
    """By the symbols themselves, since a compiler makes only one of them."""
    thread = ["-DTHREAD"] if "thread" in way.lower() else []
    check(fortran_records(world, tmp_path, f"-DWAY={way}", *thread), "libmpi.so.12")


def fortran_records(world: World, scratch: Path, *flags: str) -> tuple[RankRecord, ...]:
    """The records of two ranks of fortran.c, built with these flags."""
    fortran = world.mpis[Family.INTEL] / "lib/libmpifort.so.12"
    program = compile_c(
        "fortran.c", scratch / "fortran", *flags, fortran, "-Wl,--allow-shlib-undefined"
    )
    folder = scratch / "records"
    folder.mkdir()
    done = start(world, Family.INTEL, folder, program)
    assert done.text().count("done") == 2, done.text()
    return read(folder)


def test_the_code_of_fortran_may_be_absent(world: World, tmp_path: Path) -> None:
    assert len(fortran_records(world, tmp_path, "-DWAY=mpi_init_f08_", "-DABSENT")) == 2


def test_a_real_fortran_program(world: World, tmp_path: Path) -> None:
    if not shutil.which("gfortran"):
        pytest.skip("needs gfortran")
    source = tmp_path / "enter.f90"
    source.write_text(
        "program enter\n  implicit none\n  integer :: code\n  external :: mpi_init, mpi_finalize\n"
        "  call mpi_init(code)\n  call mpi_finalize(code)\nend program\n",
        encoding="ascii",
    )
    fortran = world.mpis[Family.INTEL] / "lib/libmpifort.so.12"
    program = tmp_path / "enter"
    made = run_command(
        ["gfortran", source, fortran, "-Wl,--allow-shlib-undefined", "-o", program],
        env=dict(os.environ),
    )
    assert made.ok, made.text()
    folder = tmp_path / "records"
    folder.mkdir()
    done = start(world, Family.INTEL, folder, program)
    assert done.code == 0, done.text()
    check(read(folder), "libmpi.so.12")


def test_mpi_that_came_with_a_plug_in(world: World, build: Build, tmp_path: Path) -> None:
    host = compile_c("host.c", tmp_path / "host")
    for family, soname in ((Family.OPENMPI, "libmpi.so.40"), (Family.MPICH, "libmpi.so.12")):
        plug_in = build(family, "plugin.c", "-shared", "-fPIC")
        folder = tmp_path / family
        folder.mkdir()
        done = start(world, family, folder, host, plug_in)
        assert done.code == 0, done.text()
        check(read(folder), soname)


# ------------------------------------------------------------------ many ranks, and trouble


def test_sixty_four_ranks_share_a_file_and_a_list(
    world: World, build: Build, tmp_path: Path
) -> None:
    program = build(Family.MPICH, "enter.c")
    env = {"LD_PRELOAD": str(world.programs / WITNESS), "MPIGRAFT_WITNESS": str(tmp_path)}
    done = world.launch(Family.MPICH, program, ranks=64, env=env)
    assert done.code == 0, done.text()
    records = read(tmp_path)
    assert [(r.rank, r.size) for r in records] == [(n, 64) for n in range(64)]
    assert len({r.libraries for r in records}) == 1
    assert len(list(tmp_path.iterdir())) == 3
    (entered,) = (f.read_bytes() for f in tmp_path.iterdir() if f.suffix == ".entered")
    assert entered.count(b'"libraries"') == 64
    (data,) = (f.read_bytes() for f in tmp_path.iterdir() if f.suffix == ".ranks")
    assert data.count(b'"libraries"') == data.count(b'"library_version"') == 1
    assert len([line for line in data.splitlines() if len(line) > 200]) == 1


def test_long_lines_that_are_written_at_once_stay_whole(tmp_path: Path) -> None:
    """Longer than a page, and than what a pipe writes at once; under sanitizers."""
    folder = tmp_path / "records"
    folder.mkdir()
    flags = ("-I", SOURCES, "-Wshadow", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    program = compile_part(WITNESS, "tell.c", tmp_path / "tell", *flags)
    env = {**os.environ, "A_VISIBLE_DEVICES": "x" * 20_000}
    words = [[program, str(folder), "50", str(first)] for first in range(0, 400, 50)]
    writers = [subprocess.Popen([*map(str, own)], env=env) for own in words]
    assert [writer.wait() for writer in writers] == [0] * 8
    assert [r.rank for r in read(folder)] == [*range(400)]


def test_what_a_rank_may_see_of_the_node(world: World, build: Build, tmp_path: Path) -> None:
    visible = ["CUDA_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=0,\u00e9"]
    hidden = ["VISIBLE_DEVICES=3", "CUDA_VISIBLE_DEVICES_OLD=4", "MY=X_VISIBLE_DEVICES=5"]
    program = build(Family.MPICH, "enter.c")
    done = start(world, Family.MPICH, tmp_path, "env", *visible, *hidden, program)
    assert done.code == 0, done.text()
    nodes = {
        int(node.name[4:]): (node / "cpulist").read_text()
        for node in Path("/sys/devices/system/node").glob("node[0-9]*")
    }
    for record in read(tmp_path):
        assert sorted(record.gpus) == visible
        here = [
            n for n, text in nodes.items() if not {*cpus(text.strip())}.isdisjoint(record.cores)
        ]
        assert record.numa == tuple(sorted(here))
        assert record.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert record.devices == ()


def alone(world: World, program: Path, script: str, folder: Path) -> Completed:
    """A world of one in mounts of its own, after `script`, which finds the program in "$@"."""
    env = world.environment(Family.MPICH) | {
        "MPIGRAFT_WITNESS": str(folder), "WITNESS": str(world.programs / WITNESS)
    }  # fmt: skip
    return run_command(["unshare", "--mount", "sh", "-ec", script, "sh", program], env=env)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_network_devices_that_are_open(world: World, build: Build, tmp_path: Path) -> None:
    folder, dev = tmp_path / "records", tmp_path / "dev"
    folder.mkdir()
    script = (
        f"mkdir -p {dev}/shm {dev}/infiniband; cd {dev}; cp -a /dev/null /dev/zero /dev/urandom .; "
        "touch cxi0 cxi1 infiniband/uverbs0 other hfi1; mount --bind . /dev; "
        'LD_PRELOAD=$WITNESS exec "$@" 4</dev/cxi1 5</dev/cxi0 6</dev/cxi1 '
        "7</dev/infiniband/uverbs0 8</dev/other 9</dev/hfi1"
    )
    done = alone(world, build(Family.MPICH, "enter.c"), script, folder)
    assert done.code == 0, done.text()
    (record,) = read(folder)
    assert record.devices == ("/dev/cxi0", "/dev/cxi1", "/dev/infiniband/uverbs0")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_full_disk_costs_records_and_never_the_program(
    world: World, build: Build, tmp_path: Path
) -> None:
    """There is room for what all note before and, in one page, for the list and some ranks."""
    program, kept = build(Family.MPICH, "enter.c"), tmp_path / "kept"
    env = world.environment(Family.MPICH)

    def run_on(folder: Path, *mount: str) -> Completed:
        folder.mkdir()
        preload = ["env", f"LD_PRELOAD={world.programs / WITNESS}", f"MPIGRAFT_WITNESS={folder}"]
        argv = [*mount, *world.launcher(Family.MPICH, 40), *preload, program]
        return run_command(argv, env=env, limit_s=240)

    run_on(tmp_path / "free")
    (before,) = (tmp_path / "free").glob("*.entered")
    size = (1 + -(-before.stat().st_size // mmap.PAGESIZE)) * mmap.PAGESIZE
    full = tmp_path / "full"
    script = f'mount -t tmpfs -o size={size} t {full}; "$@"; cp -r {full} {kept}'
    done = run_on(full, "unshare", "--mount", "sh", "-ec", script, "sh")
    assert done.code == 0, done.text()
    assert len([s for s in done.text().splitlines() if " of 40" in s]) == 40
    assert "no record of rank" in done.text()
    assert "No space left on device" in done.text()
    records = read_witness(kept)
    good = [r for r in records if r.rank >= 0]
    assert 0 < len(good) < 40
    assert any("cut short" in r.library_version for r in records if r.rank < 0)


# ------------------------------------------------------------------ it is in nobody's way


def test_nothing_else_passes_through_it(programs: Path) -> None:
    """It costs nothing after the start, because of what a program calls then it has the names of
    two calls alone, which take a second."""
    witness = reader.read_elf(programs / WITNESS)
    assert {s.name for s in witness.exported} == OF_C | OF_FORTRAN | SPAWNING | {"dlsym"}
    assert not [n for n in witness.needed if "mpi" in n]
    assert not [s.name for s in witness.imported if s.name.lower().startswith(("mpi", "pmpi"))]


def test_silent_without_its_variable(world: World, build: Build, tmp_path: Path) -> None:
    program = build(Family.MPICH, "enter.c")
    bare = world.launch(Family.MPICH, program)
    env = {"LD_PRELOAD": str(world.programs / WITNESS)}
    for more in ({}, {"MPIGRAFT_WITNESS": ""}):
        done = world.launch(Family.MPICH, "sh", "-c", f"cd {tmp_path} && {program}", env=env | more)
        assert done.code == 0
        assert sorted(done.stdout.splitlines()) == sorted(bare.stdout.splitlines())
        assert done.stderr == bare.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_does_not_stop_the_program(
    world: World, build: Build, tmp_path: Path
) -> None:
    program = build(Family.MPICH, "enter.c")
    done = start(world, Family.MPICH, tmp_path / "none", program)
    assert done.code == 0
    assert done.text().count(" of 2") == 2
    assert f"no record of rank 1 in {tmp_path}/none: No such file" in done.text()


def test_paths_of_any_bytes(world: World, build: Build, tmp_path: Path) -> None:
    """Quotes, a newline, Unicode beyond 16 bits and a byte that is no UTF-8."""
    name = b'a "b" \\ \xc3\xa9 \xf0\x9f\x90\x8e \xff'
    odd = os.fsdecode(bytes(tmp_path) + b"/" + name)
    shutil.copy(build(Family.MPICH, "enter.c"), odd)
    folder = tmp_path / "records"
    folder.mkdir()
    done = start(world, Family.MPICH, folder, odd)
    assert done.code == 0, done.text()
    for file in folder.iterdir():
        assert file.read_bytes().isascii()
    for record in read(folder):
        assert odd in [library.path for library in record.libraries]


def test_a_program_without_mpi_runs_as_ever(world: World) -> None:
    env = {**world.environment(Family.MPICH), "LD_PRELOAD": str(world.programs / WITNESS)}
    assert run_command(["true"], env=env).ok


def test_under_sanitizers(world: World, build: Build, tmp_path: Path) -> None:
    """Compiled into the program, because a sanitizer must be the first library of a process."""
    flags = (
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        *programs()[WITNESS].sources,
    )
    for family in (Family.OPENMPI, Family.MPICH):
        program = build(family, "enter.c", "-I", SOURCES, *flags)
        for way in ("init", "thread", "session"):
            folder = tmp_path / f"{family}-{way}"
            folder.mkdir()
            env = {"MPIGRAFT_WITNESS": str(folder), "ASAN_OPTIONS": "detect_leaks=0"}
            done = world.launch(family, program, way, env=env)
            assert done.code == 0, done.text()
            assert [r.rank for r in read(folder)] == [0, 1]


def test_children_of_a_spawn_are_a_world_of_their_own(world: World, tmp_path: Path) -> None:
    """They have the witness where the launcher hands it on to all that it starts."""
    witness, program = world.programs / WITNESS, world.programs / Abi.MPICH / SPAWN
    words = (f"-genv LD_PRELOAD {witness} -genv MPIGRAFT_WITNESS {tmp_path}").split()
    argv = [*world.launcher(Family.MPICH, 2), *words, program]
    done = run_command(argv, env=world.environment(Family.MPICH))
    assert done.ok, done.text()
    records = read_witness(tmp_path, 2)
    assert [(r.rank, r.size, r.world, r.world_kind) for r in records] == [
        (0, 2, 0, "launch"), (1, 2, 0, "launch"), (0, 2, 1, "spawned"), (1, 2, 1, "spawned"),
    ]  # fmt: skip
