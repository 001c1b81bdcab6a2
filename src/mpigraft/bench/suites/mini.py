"""Mini-apps: our own small applications, which use an MPI as real ones do.

One program, `mpigraft-mini`, has all of them and checks its own results against a serial solution.
A launch gives the time of an iteration and of each of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from mpigraft.bench.matrix.file import Problem, matrix_name
from mpigraft.bench.matrix.market import read_market
from mpigraft.bench.matrix.partition import has_metis, usual_method
from mpigraft.bench.suites import native
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.programs import Ranks, Tool, refuse_unknown, unknown_option
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    Benchmark,
    Better,
    Finding,
    Layout,
    Machine,
    Metric,
    MpiInstall,
)
from mpigraft.native import Natives
from mpigraft.request import CampaignSpec

BUDGETS = 25  # of one message size: what a mini-app is measured for
NUMBER = r"[0-9]{1,9}"
EXTENTS = r"[1-9][0-9]{0,6}(x[1-9][0-9]{0,6}){0,3}"
OPTIONS = {  # by what follows `=`
    "density": NUMBER,
    "depth": NUMBER,
    "every": NUMBER,
    "fields": NUMBER,
    "halo": "packed|indexed",
    "io": NUMBER,
    "local": EXTENTS,
    "partition": "blocks|metis",
    "percent": NUMBER,
    "pme": NUMBER,
    "seed": NUMBER,
    "size": EXTENTS,
    "unknowns": NUMBER,
}
PARTS = {  # of an iteration, as the program names them; the options that each has
    "dirac": ("spmv", "halo", "allreduce", "preconditioner", "vectors"),
    "halo": ("compute", "pack", "wait"),
    "ocean": ("compute", "halo", "fold", "allreduce", "output"),
    "particles": ("force", "halo", "migrate", "reduce", "pme"),
    "transpose": ("alltoallv", "compute", "pack"),
}
TAKES = {
    "dirac": ("halo", "local", "partition", "seed", "size", "unknowns"),
    "halo": ("depth", "fields", "halo", "local", "seed", "size"),
    "ocean": ("every", "io", "local", "seed", "size"),
    "particles": ("density", "depth", "every", "local", "pme", "seed", "size"),
    "transpose": ("local", "percent", "seed", "size"),
}
METRICS = {
    name: Metric(name, "us", Better.LOWER)
    for name in ("iteration", *(part for parts in PARTS.values() for part in parts))
}


def names(_spec: CampaignSpec) -> tuple[str, ...]:
    return tuple(PARTS)


def check(benchmark: Benchmark, spec: CampaignSpec) -> None:
    refuse_unknown(benchmark, tuple(PARTS))
    takes = TAKES[benchmark.name]
    for option, value in benchmark.options:
        if option not in takes or not re.fullmatch(OPTIONS[option], value):
            shown = "; ".join(f"{name}={_shown(name)}" for name in takes)
            raise unknown_option(benchmark, option, value, dict.fromkeys(takes, ()), shown)
    if {"local", "size"} <= dict(benchmark.options).keys():
        raise UsageError.of("mini-two-sizes", key=benchmark.key)
    if benchmark.name == "dirac":
        _check_dirac(benchmark, spec)


def _check_dirac(benchmark: Benchmark, spec: CampaignSpec) -> None:
    options = dict(benchmark.options)
    if spec.matrix and {"local", "size", "unknowns", "seed"} & options.keys():
        raise UsageError.of("mini-matrix-and-lattice", key=benchmark.key)
    if spec.matrix and not Path(spec.matrix).is_file():
        raise UsageError.of("matrix-invalid", path=spec.matrix, problem="there is no such file")
    if spec.matrix:
        read_market(Path(spec.matrix))  # before anything is started
    if spec.image and (spec.matrix or options.get("partition") == "metis"):
        raise UsageError.of("mini-partition-in-guest", key=benchmark.key)
    if options.get("partition") == "metis" and not has_metis():
        raise MissingError.of("metis-missing")


def _problem(benchmark: Benchmark, spec: CampaignSpec, layout: Layout) -> Problem | None:
    """Return the matrix that a file divides; None: the program divides a lattice into blocks
    itself."""
    if benchmark.name != "dirac":
        return None
    options = dict(benchmark.options)
    method = options.get("partition") or ("blocks" if spec.image else usual_method())
    if method == "blocks" and not spec.matrix:
        return None
    size, local = options.get("size", ""), options.get("local", "")
    return Problem(method, layout.ranks, size, local, spec.matrix)


def _prepare(benchmark: Benchmark, spec: CampaignSpec, layout: Layout) -> None:
    if problem := _problem(benchmark, spec, layout):
        problem.write()


def _shown(option: str) -> str:
    """Describe the values that an option takes."""
    return {NUMBER: "N", EXTENTS: "AxBx..."}.get(OPTIONS[option], OPTIONS[option])


def ranks(_benchmark: Benchmark, _spec: CampaignSpec) -> Ranks:
    return Ranks.ANY


def folders(spec: CampaignSpec, machine: Machine) -> tuple[str, ...]:
    if spec.native_build != "prebuilt":
        return (str(Natives.built_folder()),)
    paths = Natives.mini_for(machine.cpu.architecture)
    return tuple(str(path.parent) for path in paths)


def tools(
    benchmark: Benchmark,
    spec: CampaignSpec,
    machine: Machine,
    files: RankFiles,
    mpi: MpiInstall,
) -> Iterator[Tool]:
    """Yield the program of each ABI: an MPI fits one of them. Or the one that is built for it."""
    for path in Natives.mini_of(mpi, machine.cpu.architecture, spec.native_build):
        program = f"{files.folder(str(path.parent))}/{path.name}"
        if files.is_program(program):
            prepare = partial(_prepare, benchmark, spec)
            yield Tool((program,), "this package", whole=True, prepare=prepare)


def missing(_benchmark: Benchmark, _spec: CampaignSpec) -> str:
    return "the mini-apps are not built for this architecture; `make natives` builds them"


def words(benchmark: Benchmark, tool: Tool, spec: CampaignSpec, layout: Layout) -> tuple[str, ...]:
    problem = _problem(benchmark, spec, layout)
    given = {f"--{name}": value for name, value in benchmark.options if name != "partition"}
    if problem:
        given["--partition"] = str(problem.path)
    if problem and spec.matrix:
        given["--matrix"] = matrix_name(spec.matrix)
    own = ("--budget", f"{BUDGETS * spec.budget_ms:g}", "--buffers", spec.buffers)
    check_or_not = () if spec.validate else ("--no-validate",)
    pairs = (word for pair in given.items() for word in pair)
    return (*tool.words, "--app", benchmark.name, *pairs, *own, *check_or_not)


def read(benchmark: Benchmark, data: bytes, spec: CampaignSpec, source: str) -> Parsed:
    parsed = native.parse(data, source=source, suite="mini", metrics=METRICS)
    usual = "partition" not in dict(benchmark.options) and not spec.image
    if benchmark.name == "dirac" and usual and not has_metis():
        return replace(parsed, findings=(*parsed.findings, Finding.of("mini-blocks")))
    return parsed
