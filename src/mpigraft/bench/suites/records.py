"""Records of applications as benchmarks: `app:solver.record` replays what `mpigraft record` wrote.

`mpigraft-replay` makes the calls. A launch gives the time of the whole, of its slowest rank, and
of each routine, averaged over ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from mpigraft.bench.suites import native
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.programs import Tool, unknown_option
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, Better, Layout, Metric
from mpigraft.request import CampaignSpec
from mpigraft.trace import Prepared, read_record_file

SUFFIX = ".record"
TIME = {"time [ms] lower": Metric("time", "ms", Better.LOWER)}  # as the program names it
OPTIONS = {  # by what follows `=`
    "gaps": re.compile(r"none|[0-9]{1,6}(\.[0-9]{1,6})?"),
    "phase": re.compile(r"[1-9][0-9]{0,4}"),
    "only": re.compile(r"[A-Za-z0-9_]{1,40}(\+[A-Za-z0-9_]{1,40})*"),
}
DIGITS = 8  # of a record's digest, in the names of results


def is_record(benchmark: Benchmark) -> bool:
    """Return whether an application is a record, by its name."""
    return benchmark.name.endswith(SUFFIX)


@cache
def _digest(path: Path, _size: int, _changed: int) -> str:
    return read_record_file(path).digest


def digest_of(path: Path) -> str:
    """Return the record's digest, hex; read once while the file does not change."""
    status = path.stat()
    return _digest(path, status.st_size, status.st_mtime_ns)


def phase_of(benchmark: Benchmark) -> int:
    """Return the phase that is replayed, from 1; 0: all."""
    return int(dict(benchmark.options).get("phase", 0))


def check(benchmark: Benchmark, spec: CampaignSpec) -> None:
    """Raise UsageError for a file that is no record, and for another option or value."""
    for option, value in benchmark.options:
        if option not in OPTIONS or not OPTIONS[option].fullmatch(value):
            shown = "gaps=none or a factor; only=ROUTINE+ROUTINE; phase=N"
            raise unknown_option(benchmark, option, value, dict.fromkeys(OPTIONS, ()), shown)
    if spec.image:
        raise UsageError.of("replay-in-guest", key=benchmark.key)
    path, only = Path(benchmark.name), dict(benchmark.options).get("only", "")
    file = read_record_file(path)
    if only:
        file.match_routines(only.replace("+", " "), path)
    Prepared(file.digest, phase_of(benchmark)).data(file, path)


def tools(benchmark: Benchmark, programs: Iterable[Path], files: RankFiles) -> Iterator[Tool]:
    """Yield each of the programs that there is: an MPI fits one of them."""
    path = Path(benchmark.name).resolve()
    for program in programs:
        if files.is_program(str(program)):
            own = partial(_write, path, phase_of(benchmark))
            yield Tool((str(program),), "this package", files=(path,), whole=True, prepare=own)


def words(benchmark: Benchmark, tool: Tool, layout: Layout) -> tuple[str, ...]:
    """Return the command of a rank. Raises UsageError for a layout with another number of ranks."""
    path = Path(benchmark.name).resolve()
    file = read_record_file(path)
    ranks = len(file.parts)
    if layout.ranks != ranks:
        raise UsageError.of("replay-other-ranks", key=benchmark.key, ranks=ranks, layout=layout.key)
    options = dict(benchmark.options)
    given = ["--gaps", options["gaps"]] if "gaps" in options else []
    if "only" in options:
        given += ["--only", file.match_routines(options["only"].replace("+", " "), path)]
    return (*tool.words, str(Prepared(file.digest, phase_of(benchmark)).path), *given)


def _write(path: Path, phase: int, _layout: Layout) -> None:
    """Write what ranks read, unless it is there. Raises MissingError where that cannot be."""
    prepared = Prepared(digest_of(path), phase)
    if not prepared.path.is_file():
        prepared.keep(read_record_file(path), path)


def read(benchmark: Benchmark, data: bytes, source: str) -> Parsed:
    """Return the values under the record's own name, with its digest: another record of this name
    is another benchmark."""
    parsed = native.parse(data, source=source, suite="app", metrics=TIME)
    # The least and the most are of ranks, not of samples.
    findings = tuple(one for one in parsed.findings if one.code != "samples-scattered")
    digest = ("record", digest_of(Path(benchmark.name))[:DIGITS])
    return replace(
        parsed,
        findings=findings,
        measurements=tuple(
            replace(one, benchmark=_named(benchmark, one.benchmark, digest))
            for one in parsed.measurements
        ),
    )


def _named(benchmark: Benchmark, measured: Benchmark, digest: tuple[str, str]) -> Benchmark:
    options = sorted((*benchmark.options, digest, *measured.options))
    return Benchmark(benchmark.suite, benchmark.name, tuple(options))
