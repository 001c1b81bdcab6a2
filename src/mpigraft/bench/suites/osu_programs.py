"""How the OSU Micro-Benchmarks are started: where a build has a program, and which options it
takes.

A build of any version serves: the option strings of getopt are in the program, so what a version
understands is read there and nothing is tried. Sources: omb's option tables of 5.6, 7.2 and 7.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import PurePosixPath

from mpigraft.bench.suites import osu
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.programs import (
    Ranks,
    Tool,
    refuse_absent,
    refuse_options,
    refuse_unknown,
)
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.model import Benchmark, Finding, Layout, Machine, Measurement, MpiInstall
from mpigraft.request import CampaignSpec

PAIR = (
    "latency", "bw", "bibw", "latency_mt", "latency_mp", "latency_persistent", "bw_persistent",
    "bibw_persistent", "partitioned_latency",
)  # fmt: skip
ONE_SIDED = (
    "put_latency", "put_bw", "put_bibw", "get_latency", "get_bw", "acc_latency",
    "get_acc_latency", "cas_latency", "fop_latency",
)  # fmt: skip
PAIRS = ("multi_lat", "mbw_mr")
CONGESTION = ("bw_fan_in", "bw_fan_out")
STARTUP = ("init",)
COLLECTIVES = (
    "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier",
    "bcast", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scatter",
    "scatterv",
)  # fmt: skip
NEIGHBOURS = tuple(f"neighbor_{c}" for c in COLLECTIVES if c.startswith(("allg", "allto")))
BLOCKING = (*COLLECTIVES, *NEIGHBOURS)
NON_BLOCKING = tuple(f"i{name}" for name in BLOCKING)
PERSISTENT = tuple(f"{name}_persistent" for name in COLLECTIVES)
ALL = (
    *PAIR, *PAIRS, *CONGESTION, *BLOCKING, *NON_BLOCKING, *PERSISTENT, *ONE_SIDED, *STARTUP,
)  # fmt: skip
TYPES = ("MPI_INT", "MPI_FLOAT")  # besides MPI_CHAR, the default
SYNCS = ("pscw", "fence", "lock", "flush", "flush_local", "lock_all")
WINDOWS = ("create", "allocate", "dynamic")
QUICK_ITERATIONS, QUICK_COLLECTIVE_ITERATIONS = 1000, 100
OPTION_STRINGS = re.compile(rb"(?<=[\0\"])[+:]{0,2}((?:[A-Za-z]:{0,2}){6,40})[\0\"]")
EVERY_PROGRAM = {"h", "v", "m", "x"}  # letters of an option string that is OSU's


def names(_spec: CampaignSpec) -> tuple[str, ...]:
    return ALL


def check(benchmark: Benchmark, spec: CampaignSpec) -> None:
    refuse_absent("--osu", spec.osu, spec)
    refuse_unknown(benchmark, ALL)
    known: dict[str, tuple[str, ...]] = {}
    if benchmark.name in ONE_SIDED:
        known = {"window": WINDOWS, "sync": SYNCS}
    elif benchmark.name not in STARTUP and "barrier" not in benchmark.name:
        known = {"datatype": TYPES}
        if "bw" in benchmark.name:
            known["window"] = ()
    refuse_options(benchmark, known)


def ranks(benchmark: Benchmark, _spec: CampaignSpec) -> Ranks:
    if benchmark.name in (*PAIR, *ONE_SIDED):
        return Ranks.PAIR
    if benchmark.name in PAIRS:
        return Ranks.EVEN
    if benchmark.name in CONGESTION:
        return Ranks.NODES
    return Ranks.ANY if benchmark.name in STARTUP else Ranks.SEVERAL


def folders(spec: CampaignSpec, _machine: Machine) -> tuple[str, ...]:
    return spec.osu


def tools(
    benchmark: Benchmark,
    spec: CampaignSpec,
    _machine: Machine,
    files: RankFiles,
    _mpi: MpiInstall,
) -> Iterator[Tool]:
    """Yield the program in each build that was named, then the one in PATH; a module may bring
    that."""
    name = f"osu_{benchmark.name}"
    for text in spec.osu:
        for path in _build(files, files.folder(text)).get(name, ()):
            yield _tool(files, path, f"--osu {text}")
    for folder in files.path:
        if files.is_program(f"{folder}/{name}"):
            yield _tool(files, f"{folder}/{name}", "PATH")


def _tool(files: RankFiles, path: str, source: str) -> Tool:
    if path.endswith(".py"):
        return Tool((files.which("python3") or "python3", path), source)
    return Tool((path,), source, option_letters(files, path))


@lru_cache(maxsize=16)
def _build(files: RankFiles, text: str) -> dict[str, list[str]]:
    """Return programs of a build or an installation by name, wherever they are in it: a folder
    for each kind, `bin`, or all in one; mpi4py's are Python scripts."""
    programs: dict[str, list[str]] = {}
    for path in sorted(files.below(text)):
        pure = PurePosixPath(path)
        if not pure.name.startswith("osu_"):
            continue
        if pure.suffix == ".py" or (
            not pure.suffix and ".libs" not in pure.parts and files.is_program(path)
        ):
            programs.setdefault(pure.stem, []).append(path)
    return programs


@lru_cache(maxsize=256)
def option_letters(files: RankFiles, path: str) -> frozenset[str]:
    """Letters of the options that a program understands, of any kind of benchmark. A script that
    comes before a program is read like one: it may name them in its text."""
    data = b"\0" + files.read(path) + b"\0"
    letters: set[str] = set()
    for match in OPTION_STRINGS.finditer(data):
        own = set(match[1].decode().replace(":", ""))
        if own >= EVERY_PROGRAM:
            letters |= own
    return frozenset(letters)


def missing(benchmark: Benchmark, spec: CampaignSpec) -> str:
    where = f"in {', '.join(spec.osu)} or below;" if spec.osu else "here;"
    return f"no osu_{benchmark.name} {where} name a build with --osu PATH, or a module that has one"


def words(benchmark: Benchmark, tool: Tool, spec: CampaignSpec, _layout: Layout) -> tuple[str, ...]:
    """Return options by what the kind of benchmark takes and this version understands."""
    name, own = benchmark.name, dict(benchmark.options)
    if name in STARTUP or not tool.options:
        return tool.words
    collective = name in (*BLOCKING, *NON_BLOCKING, *PERSISTENT)
    made = [*tool.words]
    if "barrier" not in name:
        made += ["-m", f"{spec.min_size}:{spec.max_size}"]
    if spec.quick:
        made += ["-i", str(QUICK_COLLECTIVE_ITERATIONS if collective else QUICK_ITERATIONS)]
    if collective and "f" in tool.options:
        made.append("-f")
    if name in ONE_SIDED:
        made += _window(own, spec)
    else:
        made += _checked(name, own, tool, spec)
    if "window" in own and name not in ONE_SIDED:
        made += ["-W", own["window"]]
    if spec.buffers != "host":
        made += ["-d", spec.buffers]
        if not collective:
            made += ["D", "D"]
    return tuple(made)


def _window(own: dict[str, str], spec: CampaignSpec) -> list[str]:
    """MPI_Win_allocate, the default, is not valid with device memory."""
    kind = own.get("window", "" if spec.buffers == "host" else "create")
    made = ["-w", kind] if kind else []
    return [*made, "-s", own["sync"]] if "sync" in own else made


def _checked(name: str, own: dict[str, str], tool: Tool, spec: CampaignSpec) -> list[str]:
    """Make the options for validation, percentiles and datatype. Sums of MPI_CHAR saturate in Open
    MPI on x86, where OSU's own check then fails without a fault: reductions are checked with
    MPI_INT, and not at all by a version that has no other type."""
    made: list[str] = []
    sums = "reduce" in name
    types = "T" in tool.options and "barrier" not in name
    kind = own.get("datatype", "MPI_INT" if sums and types else "")
    if kind:
        made += ["-T", kind.lower()]
    # Version 7.3 brought -z, and -c for several pairs with it; congestion has no check.
    able = name not in CONGESTION and "barrier" not in name
    able = able and (name not in PAIRS or "z" in tool.options)
    if spec.validate and able and "c" in tool.options and (types or not sums):
        made.append("-c")
    if "z" in tool.options:
        made.append("-z")
    return made


def _is_wanted(m: Measurement, spec: CampaignSpec) -> bool:
    """Return whether a size was asked for: programs of mpi4py take no sizes, and measure all."""
    python = ("binding", "mpi4py") in m.benchmark.options
    return not python or m.size == 0 or spec.min_size <= m.size <= spec.max_size


def read(benchmark: Benchmark, data: bytes, spec: CampaignSpec, source: str) -> Parsed:
    parsed = osu.parse(data, source=source)
    wanted = tuple(m for m in parsed.measurements if _is_wanted(m, spec))
    parsed = replace(parsed, measurements=wanted)
    if "reduce" not in benchmark.name or "datatype" in dict(benchmark.options):
        return parsed
    note = Finding.of("osu-reduction-type", key=benchmark.key)
    return replace(parsed, findings=(*parsed.findings, note))
