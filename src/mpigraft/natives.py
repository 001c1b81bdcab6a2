"""Our C programs for one MPI: the binaries of the wheel, or built here with the MPI's wrapper.

`prebuilt` binaries are chosen by architecture and ABI alone: one binary serves every MPI of an
ABI, so that two of them are compared with the same code. `mpicc` is for an MPI or a machine that
they do not fit; the build is kept under a digest of sources, flags and wrapper.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mpigraft import env
from mpigraft.cache import file_digest, folders
from mpigraft.errors import MissingError, UsageError
from mpigraft.jsonout import digest
from mpigraft.model import MpiInstall, Scope
from mpigraft.run import clean, run

SOURCES = Path(__file__).parent / "native"
PREBUILT = SOURCES / "prebuilt"
# What mpigraft-bench --list prints; a test holds the two together.
BENCHMARKS = (
    "latency", "bw", "bibw", "multi_lat", "mbw_mr", "pairs", "barrier", "bcast", "allreduce",
    "reduce", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall",
    "alltoallv", "put_lat", "put_bw", "get_lat", "get_bw", "init_time",
    "launch_time", "memory",
)  # fmt: skip
STARTUP = ("init_time", "launch_time", "memory")  # of which one rank has a value too
OWN = ("pairs", "launch_time", "memory")  # that OSU has none of
NOW = "@now"  # a word of a command line: when its launcher is started, seconds of CLOCK_REALTIME
OPTIONS = {
    "counts": ("equal", "skewed", "sparse"),
    "datatype": ("contiguous", "indexed", "packed"),
    "like": ("osu",),  # timed and averaged as the OSU benchmark of its kind
    "window": (),  # any number
}
BENCH, WITNESS, GUARD = "mpigraft-bench", "libmpigraft-witness.so", "mpigraft-guard"
SEAT, STDIN, RELAY = "mpigraft-seat", "mpigraft-stdin", "mpigraft-relay"
VARS, SPAWN = "mpigraft-vars", "mpigraft-spawn"
UNLINKED = {  # they know no MPI
    WITNESS: "witness.c", GUARD: "guard.c", SEAT: "seat.c", STDIN: "stdin.c", RELAY: "relay.c",
}  # fmt: skip
LINKED = {BENCH: "bench.c", VARS: "vars.c", SPAWN: "spawn.c"}  # to an MPI: one for each ABI

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC")
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror")  # ours: a site's compiler may know others
SHARED = ("-shared", "-fvisibility=hidden")
BUILD_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Natives:
    """Paths of the three programs. `digest` is of their content, or of what they are built of."""

    bench: Path
    witness: Path
    guard: Path
    digest: str

    @property
    def seat(self) -> Path:
        """Gives a rank what is its own; it measures nothing, so `digest` leaves it out."""
        return self.guard.with_name(SEAT)

    @property
    def stdin(self) -> Path:
        """Hands standard input to ranks; `digest` leaves it out as well."""
        return self.guard.with_name(STDIN)

    @property
    def relay(self) -> Path:
        """Brings signals past an engine to the rank; linked statically, since it runs in guests
        too. It measures nothing, as `seat`."""
        return self.guard.with_name(RELAY)


def natives(mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Natives:
    """The programs for `mpi` on `architecture` (as uname has it: x86_64, aarch64).

    `build` is prebuilt or mpicc. Raises MissingError when there is no binary, wrapper or
    compiler, or when the build fails; UsageError for another `build`.
    """
    match build:
        case "prebuilt":
            return _prebuilt(mpi, architecture)
        case "mpicc":
            return _built(mpi, architecture)
    raise UsageError(f"--native-build {build}", mend="prebuilt or mpicc")


def tool(name: str, mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Path:
    """VARS or SPAWN for `mpi`: programs that ask an MPI something and measure nothing, so that
    what was measured has not changed where they have. Raises as `natives` does."""
    if build != "prebuilt":
        return natives(mpi, architecture, build).bench.parent / name
    path = PREBUILT / architecture / mpi.abi / name
    return _there(path, mpi, architecture, "is asked with it")


# ------------------------------------------------------------------ prebuilt


def _prebuilt(mpi: MpiInstall, architecture: str) -> Natives:
    folder = PREBUILT / architecture
    paths = (folder / mpi.abi / BENCH, folder / WITNESS, folder / GUARD)
    for path in (*paths, folder / SEAT, folder / STDIN, folder / RELAY):
        _there(path, mpi, architecture, "is measured with it")
    return Natives(*paths, digest=digest([file_digest(path) for path in paths]))


def _there(path: Path, mpi: MpiInstall, architecture: str, why: str) -> Path:
    if os.access(path, os.X_OK):
        return path
    raise MissingError(
        f"there is no {path.name} for {mpi.abi} on {architecture}",
        why=f"{mpi.id} {why}; {path} is not there",
        mend="--native-build mpicc builds it with this MPI's own wrapper; in a source tree, "
        "`make natives` builds all of them",
    )


# ------------------------------------------------------------------ built here


def sources() -> tuple[Path, ...]:
    """Every C file that a build reads, in one order."""
    return tuple(sorted((*SOURCES.glob("*.c"), *SOURCES.glob("*.h"))))


def _built(mpi: MpiInstall, architecture: str) -> Natives:
    wrapper = dict(mpi.wrappers).get("c")
    if wrapper is None:
        raise MissingError(
            f"{mpi.id} has no C wrapper",
            why="--native-build mpicc builds with it",
            mend="load the module or install the package with its compiler wrappers",
        )
    environment = env.apply(os.environ, mpi.environment, Scope.LAUNCHER)
    compiler = _compiler(architecture)
    key = digest(
        {
            "sources": [[p.name, file_digest(p)] for p in sources()],
            "flags": [FLAGS, SHARED],
            "wrapper": [str(wrapper), file_digest(wrapper), _version(wrapper, environment)],
            "compiler": str(compiler),
            "libmpi": file_digest(mpi.libmpi) if mpi.libmpi else "",
        }
    )
    folder = folders().data / "native" / key
    made = Natives(folder / BENCH, folder / WITNESS, folder / GUARD, key)
    if not all((folder / name).is_file() for name in (*LINKED, *UNLINKED)):
        _build(folder, wrapper, compiler, architecture, environment)
    return made


def _compiler(architecture: str) -> Path | None:
    """The compiler of the programs that know no MPI; None: take the prebuilt ones."""
    if all((PREBUILT / architecture / name).is_file() for name in UNLINKED):
        return None
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return Path(found)
    raise MissingError(
        "there is no C compiler",
        why="the witness and the guard are to be built with it: a wrapper would tie them to its "
        "MPI",
        mend="load a compiler's module, or set CC",
    )


def _version(wrapper: Path, environment: dict[str, str]) -> str:
    return clean(run([wrapper, "--version"], env=environment, limit_s=30).stdout)


def _build(
    folder: Path,
    wrapper: Path,
    compiler: Path | None,
    architecture: str,
    environment: dict[str, str],
) -> None:
    """Build beside `folder` and rename: it is there as a whole or not at all."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as scratch:
            stage = Path(scratch) / "stage"
            stage.mkdir()
            for name, source in LINKED.items():
                _compile([wrapper, *FLAGS, SOURCES / source], stage / name, environment)
            for name, source in UNLINKED.items():
                if compiler is None:
                    shutil.copy2(PREBUILT / architecture / name, stage / name)
                else:
                    shared = SHARED if name == WITNESS else ()
                    argv: list[str | Path] = [compiler, *FLAGS, *shared, SOURCES / source]
                    _compile(argv, stage / name, environment)
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                stage.rename(folder)  # or another process was first: its build is as good
    except OSError as error:
        if folder.is_dir():
            return
        raise MissingError(
            f"cannot write {folder}: {error.strerror or error}",
            why="the C programs are built there",
            mend="free some space, or set MPIGRAFT_HOME to a folder with room",
        ) from error


def _compile(argv: list[str | Path], output: Path, environment: dict[str, str]) -> None:
    done = run([*argv, "-o", output, "-ldl"], env=environment, limit_s=BUILD_LIMIT_S)
    if not done.ok:
        said = clean(done.stderr).strip().splitlines()
        raise MissingError(
            f"{argv[0]} could not build {output.name}",
            why="\n".join(said[:12]) or f"it ended with {done.code}",
            mend="check that its compiler is there (`mpicc -show` names it)",
        )
