"""Mini-apps: small applications of ours that measure an MPI as real ones do.

One program, `mpigraft-mini`, has all of them and checks its own results against a serial solution.
A launch gives the time of an iteration and of each of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpigraft.bench.suites import native
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.programs import Ranks, Tool, refuse_unknown
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, Better, Layout, Machine, Metric
from mpigraft.native import Natives
from mpigraft.request import CampaignSpec

BUDGETS = 25  # of one message size: what a mini-app is measured for
NUMBER = r"[0-9]{1,9}"
EXTENTS = r"[1-9][0-9]{0,6}(x[1-9][0-9]{0,6}){0,3}"
OPTIONS = {  # by what follows `=`
    "halo": "packed|indexed",
    "local": EXTENTS,
    "seed": NUMBER,
    "size": EXTENTS,
    "unknowns": NUMBER,
}
PARTS = {  # of an iteration, as the program names them; the options that each has
    "dirac": ("spmv", "halo", "allreduce", "preconditioner", "vectors"),
}
TAKES = {
    "dirac": ("halo", "local", "seed", "size", "unknowns"),
}
METRICS = {
    name: Metric(name, "us", Better.LOWER)
    for name in ("iteration", *(part for parts in PARTS.values() for part in parts))
}


def names(_spec: CampaignSpec) -> tuple[str, ...]:
    return tuple(PARTS)


def check(benchmark: Benchmark, _spec: CampaignSpec) -> None:
    refuse_unknown(benchmark, tuple(PARTS))
    takes = TAKES[benchmark.name]
    for option, value in benchmark.options:
        if option not in takes or not re.fullmatch(OPTIONS[option], value):
            known = "; ".join(f"{name}={_shown(name)}" for name in takes)
            raise UsageError.of(
                "benchmark-option-unknown",
                key=benchmark.key,
                option=option,
                value=value,
                known=known,
            )
    if {"local", "size"} <= dict(benchmark.options).keys():
        raise UsageError.of("mini-two-sizes", key=benchmark.key)


def _shown(option: str) -> str:
    """What an option takes, as a person reads it."""
    return {NUMBER: "N", EXTENTS: "AxBx..."}.get(OPTIONS[option], OPTIONS[option])


def ranks(_benchmark: Benchmark, _spec: CampaignSpec) -> Ranks:
    return Ranks.ANY


def folders(_spec: CampaignSpec, machine: Machine) -> tuple[str, ...]:
    paths = Natives.mini_for(machine.cpu.architecture)
    return tuple(str(path.parent) for path in paths)


def tools(
    _benchmark: Benchmark, _spec: CampaignSpec, machine: Machine, files: RankFiles
) -> Iterator[Tool]:
    """Yield the program of each ABI: an MPI fits one of them."""
    for path in Natives.mini_for(machine.cpu.architecture):
        program = f"{files.folder(str(path.parent))}/{path.name}"
        if files.is_program(program):
            yield Tool((program,), "this package", whole=True)


def missing(_benchmark: Benchmark, _spec: CampaignSpec) -> str:
    return "the mini-apps are not built for this architecture; `make natives` builds them"


def words(benchmark: Benchmark, tool: Tool, spec: CampaignSpec, _layout: Layout) -> tuple[str, ...]:
    given = [word for name, value in benchmark.options for word in (f"--{name}", value)]
    own = ("--budget", f"{BUDGETS * spec.budget_ms:g}", "--buffers", spec.buffers)
    check_or_not = () if spec.validate else ("--no-validate",)
    return (*tool.words, "--app", benchmark.name, *given, *own, *check_or_not)


def read(_benchmark: Benchmark, data: bytes, _spec: CampaignSpec, source: str) -> Parsed:
    return native.parse(data, source=source, suite="mini", metrics=METRICS)
