"""Our C programs for one MPI: the binaries of the wheel, or built here with the MPI's wrapper.

`prebuilt` binaries are chosen by architecture and ABI alone: one binary serves every MPI of an
ABI, so that two of them are compared with the same code. `mpicc` is for an MPI or a machine that
they do not fit; the build is kept under a digest of sources, flags and wrapper.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from mpigraft.core import env
from mpigraft.core.cache import file_digest, folders
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.messages import Lines
from mpigraft.core.model import Abi, MpiInstall, Scope
from mpigraft.core.noexec import INSTALL_FIX, refuse_noexec
from mpigraft.core.process import clean, run_command
from mpigraft.core.serialize import digest
from mpigraft.core.write import make_folder

SOURCES = Path(__file__).parent
PREBUILT = SOURCES / "prebuilt"
# A row of bench/table.c: a benchmark, or a collective in one of its forms. Those without a title
# OSU has not, or makes in another way.
ROW = re.compile(
    r'^    \{"(?P<name>\w+)", (?P<title>")?|'
    r'^    (?P<form>[A-Z]+)_ROW\((?P<collective>\w+), (?:"[^"]*", TITLED(?P<titled>,))?',
    re.MULTILINE,
)
FORMS = {"STARTED": ("i{}",), "READY": ("{}_persistent",), "NEIGHBOR": ("{}", "i{}")}
STARTUP = ("init_time", "launch_time", "memory")  # a single rank has a value too
ALONE = ("latency_mt",)  # which start MPI in another way: each has a launch to itself
NOW = "@now"  # a word of a command line: when its launcher is started, seconds of CLOCK_REALTIME
BENCHMARK_OPTIONS = {
    "counts": ("equal", "skewed", "sparse"),
    "datatype": ("contiguous", "indexed", "packed"),
    "in_place": ("no", "yes"),
    "like": ("osu",),  # timed and averaged as the OSU benchmark of its kind
    "partitions": (),  # any number
    "sync": ("flush", "fence", "pscw", "lock"),
    "threads": (),
    "topology": ("cart", "graph"),
    "window": (),
}
BENCH, PROBE, GUARD = "mpigraft-bench", "mpigraft-probe", "mpigraft-guard"
GPU_SELECT, STDIN, RELAY = "mpigraft-gpu-select", "mpigraft-stdin", "mpigraft-relay"
VARS, SPAWN, SETTINGS = "mpigraft-vars", "mpigraft-spawn", "libmpigraft-settings.so"
TRACE, WITNESS = "libmpigraft-trace.so", "libmpigraft-witness.so"
MINI, REPLAY = "mpigraft-mini", "mpigraft-replay"
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden")
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror")  # ours: a site's compiler may know others
SHARED = ("-shared",)
BUILD_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Program:
    """A row of programs.toml, which says what each field means."""

    name: str
    sources: tuple[Path, ...]
    links: Literal["mpi", "types", "none"]
    static: bool = False
    generated: tuple[str, ...] = ()

    @property
    def kind(self) -> tuple[str, ...]:
        """What tells a compiler that it is a library."""
        return SHARED if self.name.endswith(".so") else ()


@cache
def benchmarks() -> dict[str, bool]:
    """Read bench/table.c: each benchmark in the order of the table, and whether OSU has it too."""
    text = (SOURCES / "bench/table.c").read_text(encoding="utf-8")
    return {
        form.format(row["name"] or row["collective"]): bool(row["title"] or row["titled"])
        for row in ROW.finditer(text)
        for form in FORMS.get(row["form"], ("{}",))
    }


def own_benchmarks() -> tuple[str, ...]:
    """Return the benchmarks that OSU has not, or makes in another way."""
    return tuple(name for name, of_osu in benchmarks().items() if not of_osu)


@cache
def programs() -> dict[str, Program]:
    """Read programs.toml: each program by its name."""
    from mpigraft.core.parsers import parse_toml  # not on the path of `run`

    table = parse_toml((SOURCES / "programs.toml").read_text(encoding="utf-8"))
    return {
        name: Program(name, **{**row, "sources": tuple(SOURCES / file for file in row["sources"])})
        for name, row in table.items()
    }


def unlinked() -> list[Program]:
    """Return the programs that need nothing of an MPI."""
    return [program for program in programs().values() if program.links == "none"]


@dataclass(frozen=True, slots=True)
class Natives:
    """Paths of programs. `digest` is of the content of those that measure and prove, or of what
    they are built of."""

    bench: Path
    witness: Path
    guard: Path
    digest: str
    trace: Path | None = None  # what profiles and records calls; it is not in `digest`

    @property
    def probe(self) -> Path:
        """Sends known traffic, for proofs."""
        return self.bench.with_name(PROBE)

    def has_program(self, program: tuple[str, ...]) -> bool:
        """Tell whether a program is ours: it starts no other, and reads no options of MPI."""
        return program[:1] in ((str(self.bench),), (str(self.probe),))

    @property
    def gpu_select(self) -> Path:
        """Selects a rank's GPU; it measures nothing, so `digest` leaves it out."""
        return self.guard.with_name(GPU_SELECT)

    @property
    def stdin(self) -> Path:
        """Passes standard input to ranks; `digest` leaves it out as well."""
        return self.guard.with_name(STDIN)

    @property
    def relay(self) -> Path:
        """Brings signals past an engine to the rank; linked statically, since it runs in guests
        too. It measures nothing, as `gpu_select`."""
        return self.guard.with_name(RELAY)

    @staticmethod
    def guard_for(architecture: str) -> Path | None:
        """Return the guard alone, which serves every MPI; None where none was made."""
        guard = PREBUILT / architecture / GUARD
        return guard if os.access(guard, os.X_OK) else None

    @staticmethod
    def mini_for(architecture: str) -> tuple[Path, ...]:
        """Return the prebuilt mini-apps, one program for each ABI."""
        paths = (PREBUILT / architecture / abi / MINI for abi in Abi)
        return tuple(path for path in paths if os.access(path, os.X_OK))

    @staticmethod
    def mini_of(mpi: MpiInstall, architecture: str, build: str) -> tuple[Path, ...]:
        """Return the mini-apps that may fit `mpi`: the prebuilt ones, or those built for it now.
        Raises as `choose_natives`."""
        if build == "prebuilt":
            return Natives.mini_for(architecture)
        return (choose_tool(MINI, mpi, architecture, build),)

    @staticmethod
    def replay_of(mpi: MpiInstall, architecture: str, build: str) -> tuple[Path, ...]:
        """As `mini_of`, of the programs that replay records."""
        if build == "prebuilt":
            return tuple(Natives.replay_for(abi, architecture) for abi in Abi)
        return (choose_tool(REPLAY, mpi, architecture, build),)

    @staticmethod
    def built_folder() -> Path:
        """Return the folder below which programs are built here."""
        return folders().data / "native"

    @staticmethod
    def replay_for(abi: str, architecture: str) -> Path:
        """Return the program that replays records on MPIs of an ABI, whether it was made or not."""
        return PREBUILT / architecture / abi / REPLAY


def choose_natives(mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Natives:
    """Choose the programs for `mpi` on `architecture` (as uname has it: x86_64, aarch64).

    `build` is prebuilt or mpicc. Raises MissingError when there is no binary, wrapper or
    compiler, or when the build fails; UsageError for another `build`.
    """
    match build:
        case "prebuilt":
            return _prebuilt(mpi, architecture)
        case "mpicc":
            return _built(mpi, architecture)
    raise UsageError.unknown("word-unknown", build, ("prebuilt", "mpicc"), what="--native-build")


def choose_tool(name: str, mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Path:
    """Choose VARS, SPAWN or REPLAY for `mpi`: values of BENCH stay comparable where only they
    changed. Raises as `choose_natives`."""
    if build != "prebuilt":
        path = choose_natives(mpi, architecture, build).bench.parent / name
    else:
        path = PREBUILT / architecture / mpi.abi / name
    return _there(path, mpi, architecture, "is queried with it")


def settings_library(mpi: MpiInstall, architecture: str) -> Path:
    """Choose the library that sets an MPI's environment where no launcher does. Raises
    MissingError."""
    return _there(PREBUILT / architecture / SETTINGS, mpi, architecture, "is copied with it")


# ------------------------------------------------------------------ prebuilt


def _prebuilt(mpi: MpiInstall, architecture: str) -> Natives:
    folder = PREBUILT / architecture
    of_abi = folder / mpi.abi
    paths = (of_abi / BENCH, folder / WITNESS, folder / GUARD)
    measuring = (*paths, of_abi / PROBE)
    for path in (*measuring, folder / GPU_SELECT, folder / STDIN, folder / RELAY):
        _there(path, mpi, architecture, "is measured with it")
    trace = of_abi / TRACE
    return Natives(
        *paths,
        digest=digest([file_digest(path) for path in measuring]),
        trace=trace if os.access(trace, os.R_OK) else None,
    )


def _there(path: Path, mpi: MpiInstall, architecture: str, why: str) -> Path:
    if os.access(path, os.X_OK):
        return path
    refuse_noexec(path.parent, "the C programs of mpigraft", INSTALL_FIX)
    raise MissingError.of(
        "program-not-built",
        name=path.name,
        abi=mpi.abi,
        architecture=architecture,
        id=mpi.id,
        why=why,
        path=path,
    )


# ------------------------------------------------------------------ built here


def sources(program: str = "") -> dict[str, Path]:
    """Return every C file that a build reads, by its path below native/, in one order; those that a
    program is compiled of, where one is named."""
    paths = programs()[program].sources if program else sorted(SOURCES.glob("*/*.[ch]"))
    return {str(path.relative_to(SOURCES)): path for path in paths}


def _built(mpi: MpiInstall, architecture: str) -> Natives:
    wrapper = dict(mpi.wrappers).get("c")
    if wrapper is None:
        raise MissingError.of("wrapper-missing", id=mpi.id)
    environment = env.apply(os.environ, mpi.environment, Scope.LAUNCHER)
    compiler = _compiler(architecture)
    key = digest(
        {
            "sources": [[name, file_digest(path)] for name, path in sources().items()],
            "flags": [FLAGS, SHARED],
            "wrapper": [str(wrapper), file_digest(wrapper), _version(wrapper, environment)],
            "compiler": str(compiler),
            "libmpi": file_digest(mpi.libmpi) if mpi.libmpi else "",
        }
    )
    folder = Natives.built_folder() / key
    made = Natives(folder / BENCH, folder / WITNESS, folder / GUARD, key)
    if not all((folder / program.name).is_file() for program in _built_here()):
        _build(folder, wrapper, compiler, architecture, environment)
    refuse_noexec(folder, "programs that were built")
    trace = folder / TRACE
    return replace(made, trace=trace) if trace.is_file() else made


def _built_here() -> list[Program]:
    """Return the programs of a build: the preloaded library of an ABI's types is in none."""
    return [
        program
        for program in programs().values()
        if program.links != "types"
        and all((SOURCES / name).is_file() for name in program.generated)
    ]


def _compiler(architecture: str) -> Path | None:
    """Return the compiler of programs that need no MPI; None: take the prebuilt ones."""
    if all((PREBUILT / architecture / program.name).is_file() for program in unlinked()):
        return None
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (program := shutil.which(name)):
            return Path(program)
    raise MissingError.of("compiler-missing")


def _version(wrapper: Path, environment: dict[str, str]) -> str:
    return clean(run_command([wrapper, "--version"], env=environment, limit_s=30).stdout)


def _build(
    folder: Path,
    wrapper: Path,
    compiler: Path | None,
    architecture: str,
    environment: dict[str, str],
) -> None:
    """Build in a folder next to `folder` and rename it, so that no build is incomplete."""
    try:
        make_folder(folder.parent)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as scratch:
            stage = Path(scratch) / "stage"
            make_folder(stage)
            for program in _built_here():
                by = wrapper if program.links == "mpi" else compiler
                if by is None:
                    shutil.copy2(PREBUILT / architecture / program.name, stage / program.name)
                else:
                    argv: list[str | Path] = [by, *FLAGS, *program.kind, *program.sources]
                    _compile(argv, stage / program.name, environment)
            for path in stage.iterdir():
                path.chmod(0o755)  # a compiler asks the umask alone
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                stage.rename(folder)  # or another process was first: its build is as good
    except OSError as error:
        if folder.is_dir():
            return
        raise MissingError.of(
            "build-folder-unwritable", path=folder, reason=error.strerror or error
        ) from error


def _compile(argv: list[str | Path], output: Path, environment: dict[str, str]) -> None:
    done = run_command(
        [*argv, "-o", output, "-ldl", "-lpthread"], env=environment, limit_s=BUILD_LIMIT_S
    )
    if not done.ok:
        errors = clean(done.stderr).strip().splitlines()
        raise MissingError.of(
            "program-build-failed",
            wrapper=argv[0],
            name=output.name,
            output=Lines("\n".join(errors[:12]) or f"it ended with {done.code}"),
        )
