"""Any command as a benchmark: its figure of merit, by a pattern or a path in JSON. An application
named by a file that ends in .record is a record, which `records` replays.

One launch gives one value. Which of several figures counts is the application's `take`; a figure
that is missing, not a number above 0, or one of several where one is due is refused, since a wrong
figure would be compared like a right one.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpigraft.bench.suites import records
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.programs import Ranks, Tool, filled, refuse_options, refuse_unknown
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, Finding, Layout, Machine, Measurement, MpiInstall
from mpigraft.core.process import clean
from mpigraft.native import Natives
from mpigraft.request import App, CampaignSpec

TOGETHER = ("sum", "median")  # takes that count all figures
FORTRAN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[dD][+-]?\d+")  # 1.0D+02
PLACE = re.compile(r"-?[0-9]{1,9}")
SHOWN = 5  # figures that a finding lists


def names(spec: CampaignSpec) -> tuple[str, ...]:
    return tuple(app.name for app in spec.app)


def check(benchmark: Benchmark, spec: CampaignSpec) -> None:
    if records.is_record(benchmark):
        records.check(benchmark, spec)
        return
    if not spec.app:
        raise UsageError.of("app-undefined", key=benchmark.key)
    refuse_unknown(benchmark, names(spec))
    refuse_options(benchmark, {})
    app = app_of(benchmark, spec)
    if app.folder and not Path(app.folder).is_dir():
        raise UsageError.of("app-folder-missing", name=app.name, path=app.folder)


def ranks(_benchmark: Benchmark, _spec: CampaignSpec) -> Ranks:
    return Ranks.ANY


def app_of(benchmark: Benchmark, spec: CampaignSpec) -> App:
    return next(app for app in spec.app if app.name == benchmark.name)


def folders(_spec: CampaignSpec, _machine: Machine) -> tuple[str, ...]:
    return ()  # ranks see the folder in which they start


def tools(
    benchmark: Benchmark,
    spec: CampaignSpec,
    machine: Machine,
    files: RankFiles,
    mpi: MpiInstall,
) -> Iterator[Tool]:
    """Yield the command; a program with a `/` in its name is in the application's folder."""
    if records.is_record(benchmark):
        yield from records.tools(
            benchmark, Natives.replay_of(mpi, machine.cpu.architecture, spec.native_build), files
        )
        return
    app = app_of(benchmark, spec)
    folder = Path(app.folder) if app.folder else Path.cwd()
    first, *rest = app.command
    program = str(folder / first) if "/" in first else files.which(first)
    if program is None or not files.is_file(program):
        return
    yield Tool(
        (program, *rest),
        "the campaign",
        folder=folder,
        files=tuple(folder / name for name in app.files),
        output=folder / app.output if app.output else None,
        success=app.success,
        limit_s=app.limit_s,
        whole=True,
    )


def missing(benchmark: Benchmark, _spec: CampaignSpec) -> str:
    return f"the program of {benchmark.key} is not here; its command may name it by a path"


def words(benchmark: Benchmark, tool: Tool, _spec: CampaignSpec, layout: Layout) -> tuple[str, ...]:
    """Return the command with the numbers of the layout: {nodes}, {ranks}, {ranks_per_node},
    {threads}. Other braces stay as they are."""
    if records.is_record(benchmark):
        return records.words(benchmark, tool, layout)
    return tuple(filled(word, layout) for word in tool.words)


def read(benchmark: Benchmark, data: bytes, spec: CampaignSpec, source: str) -> Parsed:
    if records.is_record(benchmark):
        return records.read(benchmark, data, source)
    app = app_of(benchmark, spec)
    text = clean(data)
    figures = _by_pattern(app.figure, text) if app.figure else _by_path(app.json, text)
    problem = _problem(app, figures)
    taken = (
        figures if app.take in TOGETHER else figures[:1] if app.take == "first" else figures[-1:]
    )
    values = [(figure, _number(figure)) for figure in taken]
    numbers = [number for _, number in values if number is not None]
    odd = [figure for figure, number in values if number is None]
    value = sum(numbers) if app.take == "sum" else statistics.median(numbers or [0.0])
    if not problem and (odd or not math.isfinite(value)):
        problem = f"the figure is {str(odd[0] if odd else value)[:40]!r}, not a number above 0"
    if problem:
        return Parsed((), (Finding.of("app-figure", source=source, problem=problem),))
    return Parsed((Measurement(benchmark, app.metric_key, 0, value, mean=value, iterations=1),))


def _problem(app: App, figures: list[Any]) -> str:
    where = f"{app.figure!r}" if app.figure else f"json = {app.json!r}"
    if not figures:
        return f"there is no figure by {where}"
    if len(figures) > 1 and app.take == "one":
        shown = ", ".join(str(one)[:20] for one in figures[:SHOWN])
        makes = 'take = "last", "sum" or "median" makes one of them'
        return f"there are {len(figures)} figures by {where}: {shown}; {makes}"
    return ""


def _by_pattern(pattern: str, text: str) -> list[Any]:
    return [match[1] for match in re.finditer(pattern, text, re.MULTILINE) if match[1] is not None]


def _by_path(path: str, text: str) -> list[Any]:
    """Return the value at a path of keys and places in the document: the whole text, else each line
    that is one, since a launcher prints beside it."""
    documents = []
    for part in (text, *text.splitlines()):
        if part.lstrip()[:1] in ("{", "["):
            try:
                documents.append(json.loads(part))
            except (ValueError, RecursionError):
                continue
            if part is text:
                break
    values = (value for one in documents for value in _at([one], path.split(".")))
    return [value for value in values if value is not None]


def _at(values: list[Any], keys: list[str]) -> list[Any]:
    """Return the values at a path: each key of an object, each place of a list from 0, or from its
    end if it is negative; `*` is every one of them."""
    for key in keys:
        values = [below for value in values for below in _below(value, key)]
    return values


def _below(value: Any, key: str) -> list[Any]:
    if key == "*":
        every = value.values() if isinstance(value, dict) else value
        return [*every] if isinstance(value, (dict, list)) else []
    if isinstance(value, dict):
        return [value[key]] if key in value else []
    if isinstance(value, list) and PLACE.fullmatch(key):
        place = int(key)
        return [value[place]] if -len(value) <= place < len(value) else []
    return []


def _number(figure: Any) -> float | None:
    """Return a finite number above 0: ratios are compared by their logarithms."""
    if isinstance(figure, bool) or not isinstance(figure, (int, float, str)):
        return None
    if isinstance(figure, str) and ("_" in figure or not figure.isascii()):
        return None
    if isinstance(figure, str) and FORTRAN.fullmatch(figure.strip()):
        figure = figure.lower().replace("d", "e")
    try:
        value = float(figure)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and value > 0 else None
