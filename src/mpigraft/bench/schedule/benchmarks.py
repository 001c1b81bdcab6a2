"""Which benchmarks a request means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mpigraft.analysis import PAIRS_BENCHMARK
from mpigraft.bench.suites.programs import unknown_option
from mpigraft.bench.suites.registry import NATIVE, PROGRAM_SUITES
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark
from mpigraft.native import BENCHMARK_OPTIONS, benchmarks, own_benchmarks
from mpigraft.request import CampaignSpec

QUICK_BENCHMARKS = ("native:latency", "native:bibw", "native:allreduce")
DEFAULT_BENCHMARKS = (*QUICK_BENCHMARKS, "native:bw", "native:bcast", "native:alltoall")


def requested_benchmarks(spec: CampaignSpec) -> tuple[Benchmark, ...]:
    """Return those that were named; else the applications that were given; else the usual ones."""
    usual = QUICK_BENCHMARKS if spec.quick else DEFAULT_BENCHMARKS
    names = spec.benchmark or tuple(f"app:{app.name}" for app in spec.app) or usual
    benchmarks = [Benchmark.parse(key) for name in names for key in split_benchmarks(name)]
    if spec.like != CampaignSpec().like:
        benchmarks = [_like(b, spec.like) for b in benchmarks]
    for benchmark in benchmarks:
        _check(benchmark, spec)
    if spec.matrix and ("mini", "dirac") not in {(b.suite, b.name) for b in benchmarks}:
        raise UsageError.of("matrix-idle", path=spec.matrix)
    return tuple(dict.fromkeys(benchmarks))


def benchmark_names(spec: CampaignSpec) -> list[str]:
    """List every benchmark that can be named, by suite."""
    suites = {NATIVE: benchmarks(), **{s: one.names(spec) for s, one in PROGRAM_SUITES.items()}}
    return [f"{suite}:{name}" for suite, names in suites.items() for name in names]


def _like(benchmark: Benchmark, suite: str) -> Benchmark:
    """Return the same, timed like another suite's: native ones, unless their options say how."""
    if benchmark.suite != NATIVE or "like" in dict(benchmark.options):
        return benchmark
    return replace(benchmark, options=tuple(sorted((*benchmark.options, ("like", suite)))))


def split_benchmarks(text: str) -> list[str]:
    """`latency,alltoallv,counts=sparse` -> `latency` and `alltoallv,counts=sparse`: a word with
    `=` belongs to the benchmark before it. Raises UsageError for an empty word."""
    keys: list[str] = []
    for word in map(str.strip, text.split(",")):
        if not word:
            raise UsageError.of("value-empty", place="a benchmark's name")
        if "=" in word and keys:
            keys[-1] += f",{word}"
        else:
            keys.append(word)
    return keys


def pairing_spec(spec: CampaignSpec, hosts: Sequence[str]) -> CampaignSpec:
    """Request the benchmark of pairs with one rank on each of `hosts`. Raises UsageError for a
    single host, and for a spec with benchmarks or layouts of its own."""
    if len(hosts) < 2:
        raise UsageError.of("pairs-one-node", host=hosts[0])
    if spec.benchmark or spec.layout or spec.axes:
        raise UsageError.of("pairs-options")
    name = PAIRS_BENCHMARK.partition(":")[2]
    return replace(spec, benchmark=(name,), layout=(f"{len(hosts)}x1",), name=spec.name or name)


def _check(benchmark: Benchmark, spec: CampaignSpec) -> None:
    """Refuse what cannot be started, before anything is."""
    if benchmark.suite in PROGRAM_SUITES:
        PROGRAM_SUITES[benchmark.suite].check(benchmark, spec)
        return
    if benchmark.suite != NATIVE:
        suites = (NATIVE, *PROGRAM_SUITES)
        raise UsageError.unknown("word-unknown", benchmark.suite, suites, what="suite")
    if benchmark.name not in benchmarks():
        others = [f"{s}:{name}" for s, one in PROGRAM_SUITES.items() for name in one.names(spec)]
        raise UsageError.unknown("benchmark-unknown", benchmark.name, (*benchmarks(), *others))
    for option, value in benchmark.options:
        if (
            option not in BENCHMARK_OPTIONS
            or not value
            or value not in (BENCHMARK_OPTIONS[option] or (value,))
        ):
            raise unknown_option(benchmark, option, value, BENCHMARK_OPTIONS)
        if option == "like" and benchmark.name in own_benchmarks():
            raise UsageError.of(
                "benchmark-not-in-osu",
                key=benchmark.key,
                own_benchmarks=", ".join(own_benchmarks()),
            )
