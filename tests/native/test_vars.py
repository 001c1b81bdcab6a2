"""mpigraft-vars and mpigraft-spawn on real MPIs, as they are and under the sanitizers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import Completed, run_command
from mpigraft.evidence.variables.listing import Listing, parse
from mpigraft.native.programs import SPAWN, VARS
from tests.native.native_world import World, abi_of, compile_program, records

pytestmark = pytest.mark.mpi

KNOWN = {  # a variable of each that has been there for years, and its beginning in the environment
    Family.OPENMPI: ("btl_tcp_eager_limit", "OMPI_MCA_"),
    Family.MPICH: ("MPIR_CVAR_BCAST_MIN_PROCS", ""),
    Family.INTEL: ("MPIR_CVAR_BCAST_MIN_PROCS", ""),
}


def alone(world: World, family: Family, program: Path, *words: str, **more: str) -> Completed:
    environment = world.environment(family) | more
    if family is Family.OPENMPI:
        environment["OPAL_PREFIX"] = str(world.mpis[family])
    return run_command([program, *words], env=environment, limit_s=120)


def listing(world: World, family: Family, *words: str, **more: str) -> Listing:
    done = alone(world, family, world.programs / abi_of(family) / VARS, *words, **more)
    assert done.ok, done.text()
    return parse(done.stdout)


@pytest.mark.parametrize("family", KNOWN)
def test_each_mpi_tells_its_variables(world: World, family: Family) -> None:
    name, begins = KNOWN[family]
    before, after = (listing(world, family, *words) for words in ((), ("--init",)))
    assert (before.initialised, after.initialised) == (False, True)
    assert before.version == after.version
    one = before.by_key()["control", name, 0]
    assert isinstance(one.value, int)
    assert one.categories
    assert one.text
    kinds = Counter(v.kind for v in before.variables)
    assert kinds["control"] > 300
    strange = [v.name for v in before.variables if "unknown" in (v.scope, v.sort, v.binding)]
    assert not strange
    assert not [v.name for v in before.variables if v.type == "other"]
    unread = [v for v in before.variables if v.kind == "control" and v.value is None]
    assert not [v.name for v in unread if v.binding == "none" and not v.fatal]
    changed = listing(world, family, **{begins + name: "77"}).by_key()["control", name, 0]
    assert changed.value == 77 != one.value


def test_a_variable_of_a_closed_part_costs_its_value_only(world: World) -> None:
    """Open MPI lists `vprotocol` after it has freed it; what stands behind it is there too."""
    after = listing(world, Family.OPENMPI, "--init")
    names = [v.name for v in after.variables]
    assert len(names) == len(set(names)) > 500
    lost = {v.name for v in after.variables if v.fatal}
    assert lost <= {"vprotocol"}
    queue = after.by_key()["performance", "pml_ob1_unexpected_msgq_length", 0]
    assert (queue.value, queue.binding) == (0, "communicator")


def test_bad_words_are_refused(world: World) -> None:
    done = alone(world, Family.MPICH, world.programs / "mpich" / VARS, "--finit")
    assert (done.code, done.stdout) == (2, b"")


def test_a_full_disk_is_no_short_list(world: World) -> None:
    program = world.programs / "mpich" / VARS
    done = run_command(
        ["sh", "-c", 'exec "$0" >/dev/full', program],
        env=world.environment(Family.MPICH),
        limit_s=60,
    )
    assert done.code == 3, done.text()
    assert b"cannot write the list" in done.stderr


@pytest.fixture(params=[Family.OPENMPI, Family.MPICH])
def family(request: pytest.FixtureRequest) -> Family:
    found: Family = request.param
    return found


def sanitized(world: World, family: Family, name: str, folder: Path) -> Path:
    prefix = world.mpis[family]
    soname = "libmpi.so.40" if family is Family.OPENMPI else "libmpi.so.12"
    flags = ("-Wshadow", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    libraries = (prefix / "lib" / soname, "-Wl,--allow-shlib-undefined")
    include = ("-isystem", prefix / "include")
    return compile_program(name, folder / "program", *flags, *include, *libraries)


# What dies in a closed part of an MPI dies under the sanitizer too, which then tells of it on
# stderr: that is the MPI's. Leaks are, as elsewhere.
QUIET = {"ASAN_OPTIONS": "detect_leaks=0", "UCX_MEM_EVENTS": "n"}


@pytest.mark.parametrize("words", [(), ("--init",)], ids=["before", "after"])
def test_vars_under_sanitizers(
    world: World, family: Family, words: tuple[str, ...], tmp_path: Path
) -> None:
    program = sanitized(world, family, VARS, tmp_path)
    done = alone(world, family, program, *words, **QUIET)
    assert done.code == 0, done.text()[-4000:]
    assert len(parse(done.stdout).variables) > 300
    assert b"runtime error" not in done.stderr


def test_spawn_under_sanitizers(world: World, family: Family, tmp_path: Path) -> None:
    """PMIx maps its shared memory where the sanitizer has its own, unless it is told not to."""
    program = sanitized(world, family, SPAWN, tmp_path)
    done = spawn(world, family, 2, program, PMIX_MCA_gds="hash", **QUIET)
    assert done.code == 0, done.text()[-4000:]
    assert "AddressSanitizer" not in done.text()
    assert spawned(done) == [(2, 2)]


@pytest.mark.parametrize("family", KNOWN)
def test_ranks_start_others(world: World, family: Family) -> None:
    for ranks in (1, 3):
        done = spawn(world, family, ranks, world.programs / abi_of(family) / SPAWN)
        assert done.code == 0, done.text()
        assert spawned(done) == [(ranks, 2)]


def test_intel_mpi_over_shared_memory_alone_dies(world: World) -> None:
    """As knowledge/spawn.toml says; over shm:ofi it spawns."""
    program = world.programs / "mpich" / SPAWN
    done = spawn(world, Family.INTEL, 1, program, I_MPI_FABRICS="shm")
    assert done.code != 0
    assert not spawned(done)


def spawn(world: World, family: Family, ranks: int, program: Path, **more: str) -> Completed:
    """Environment for the launcher: what it starts later has none of the first ranks' own."""
    environment = world.environment(family) | {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}
    return run_command(
        [*world.launcher(family, ranks), program], env=environment | more, limit_s=60
    )


def spawned(done: Completed) -> list[tuple[int, int]]:
    found = [r for r in records(done) if r["mpigraft"] == "spawned"]
    return [(r["parents"], r["children"]) for r in found]
